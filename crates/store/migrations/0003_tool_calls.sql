create table tool_calls (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    key_id uuid not null,
    user_id uuid,
    call_ref text not null,
    connection_id uuid,
    outcome text not null,
    message text,
    duration_us bigint not null,
    created_at bigint not null,
    primary key (project_id, id)
);

create index tool_calls_connection on tool_calls (project_id, connection_id);

create table tool_idempotency (
    project_id uuid not null references projects (id) on delete cascade,
    name text not null,
    fingerprint bytea not null,
    call_id uuid not null,
    reply text,
    created_at bigint not null,
    primary key (project_id, name)
);

create index tool_idempotency_age on tool_idempotency (project_id, created_at);
