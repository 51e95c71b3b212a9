-- Deliveries that ended badly are few among many: they are listed and counted by indexes of their own.
drop index trigger_deliveries_dead;
create index trigger_deliveries_dead on trigger_deliveries (project_id, id) where state = 'dead';
create index trigger_deliveries_cancelled on trigger_deliveries (project_id, id) where state = 'cancelled';
