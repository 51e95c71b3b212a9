-- When a node last said that it is there, whether it has calls under way or not.
alter table nodes add column seen_at bigint not null default 0;

-- What the operator counts over all projects.
create index trigger_deliveries_dead on trigger_deliveries (project_id) where state = 'dead';
create index tool_approvals_waiting on tool_approvals (expires_at) where status = 'pending';
