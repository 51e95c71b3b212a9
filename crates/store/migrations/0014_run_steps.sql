-- What the steps of a run did, sealed: arguments and results hold what accounts hold.
alter table workflow_runs add column steps bytea;
