-- When a key was last used, to the minute: a key that nobody uses can go.
alter table api_keys add column last_used_at bigint;
