-- The people whom a project acts for. Other rows name them by id, so that whoever is forgotten here is nobody there.
create table end_user_names (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    name text not null,
    created_at bigint not null,
    primary key (project_id, id),
    unique (project_id, name)
);

-- Whose account a connection is: empty for the project's own, else the id of an end user; and what it is called among those of that user.
alter table gateway_connections add column owner text not null default '';
alter table gateway_connections add column alias text;
create index gateway_connections_owner on gateway_connections (project_id, owner, provider_key, integration_key);
create unique index gateway_connections_alias on gateway_connections (project_id, owner, provider_key, integration_key, alias) where alias is not null;

-- For whom calls, approvals, triggers and runs are.
alter table tool_calls add column end_user_id uuid;
alter table tool_approvals add column end_user_id uuid;
alter table trigger_subscriptions add column end_user_id uuid;
alter table trigger_schedules add column end_user_id uuid;
alter table workflow_runs add column end_user_id uuid;
create index tool_calls_end_user on tool_calls (project_id, end_user_id, id) where end_user_id is not null;
create index tool_approvals_end_user on tool_approvals (project_id, end_user_id, id) where end_user_id is not null;
create index trigger_subscriptions_end_user on trigger_subscriptions (project_id, end_user_id) where end_user_id is not null;
create index trigger_schedules_end_user on trigger_schedules (project_id, end_user_id) where end_user_id is not null;
create index workflow_runs_end_user on workflow_runs (project_id, end_user_id) where end_user_id is not null;

-- Sessions of end users: what one of them may use for a while, through a token that is kept as a hash.
create table user_sessions (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    end_user_id uuid not null,
    token_hash bytea not null unique,
    settings text not null,
    made_by_key_id uuid not null,
    made_by_user_id uuid,
    created_at bigint not null,
    expires_at bigint not null,
    revoked_at bigint,
    primary key (project_id, id),
    foreign key (project_id, end_user_id) references end_user_names (project_id, id) on delete cascade
);

create index user_sessions_end_user on user_sessions (project_id, end_user_id, id);
create index user_sessions_age on user_sessions (expires_at);
