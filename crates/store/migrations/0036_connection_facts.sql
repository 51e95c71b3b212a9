-- When a connection was last used, to the hour, and the OAuth scopes that its credential was granted.
alter table gateway_connections add column last_used_at bigint;
alter table gateway_connections add column granted_scopes text;
