-- How accounts of one integration are connected by those who use Composio's API: a scheme, perhaps with an OAuth app or fields of its own.
create table auth_configs (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    provider_key text not null,
    integration_key text not null,
    scheme text not null,
    name text not null,
    is_managed boolean not null,
    is_enabled boolean not null,
    app_id uuid,
    scopes text,
    fields bytea,
    tool_access text,
    created_at bigint not null,
    updated_at bigint not null,
    created_by_id uuid,
    primary key (project_id, id)
);

create index auth_configs_integration on auth_configs (project_id, provider_key, integration_key);

-- The auth config that a connection was made with; empty where it was made without one.
alter table gateway_connections add column auth_config text not null default '';
create index gateway_connections_auth_config on gateway_connections (project_id, auth_config) where auth_config <> '';
