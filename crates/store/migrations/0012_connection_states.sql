-- A delivery whose run has to be approved first waits for that approval.
alter table trigger_deliveries add column approval_id uuid;
create index trigger_deliveries_approval on trigger_deliveries (project_id, approval_id) where state = 'waiting' and approval_id is not null;

-- A subscription that stopped with its connection starts again with it; one that a person stopped does not.
alter table trigger_subscriptions add column suspended_at bigint;

-- A credential that the service refused at its last use, since when and in which words.
alter table gateway_connections add column failing_since bigint;
alter table gateway_connections add column failure text;
