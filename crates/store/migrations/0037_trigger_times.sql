-- What came in to a project over a time, and what became of it, is counted by these.
create index trigger_events_times on trigger_events (project_id, received_at);
create index trigger_deliveries_times on trigger_deliveries (project_id, created_at);
