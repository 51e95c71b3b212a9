-- The approval that a run stopped for; such a run goes on with its next try and has not failed. Runs from before do not say.
alter table workflow_runs add column waits_for uuid;

-- Runs are counted over a time along this, without looking at a row.
create index workflow_runs_times on workflow_runs (project_id, created_at, code, waits_for);
create index workflow_runs_workflow on workflow_runs (project_id, workflow_id, id);

-- A call that waits for a person was recorded as one that failed.
update tool_calls set outcome = 'waiting', stat_bin = null
    where outcome = 'failed' and message like 'The call of `%` waits for approval ____________________________________.';
