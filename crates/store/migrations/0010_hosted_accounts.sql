-- Accounts that a provider connects on its own pages and keeps: its name for the one in use, and for the one that an open attempt waits for.
alter table gateway_connections add column remote_id text;
alter table gateway_connections add column attempt_remote_id text;
create index gateway_connections_remote on gateway_connections (provider_key, remote_id);

-- What the deployment as a whole keeps secret, sealed for its name and row.
create table deployment_secrets (
    name text primary key,
    id uuid not null,
    secret bytea not null,
    updated_at bigint not null
);

-- Work that one node at a time does for the deployment.
create table deployment_leases (
    name text primary key,
    until bigint not null
);
