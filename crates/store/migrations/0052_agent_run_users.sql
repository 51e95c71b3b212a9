-- The end user whose accounts a run of an agent uses.
alter table agent_runs add column end_user_id uuid;

create index agent_runs_end_user on agent_runs (project_id, end_user_id) where end_user_id is not null;
