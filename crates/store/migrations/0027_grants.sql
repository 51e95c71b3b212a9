-- Clients that registered themselves; whoever describes itself at its own address has no row.
create table oauth_clients (
    id text primary key,
    name text not null,
    uri text,
    redirect_uris text not null,
    secret_hash bytea,
    address text not null,
    created_at bigint not null,
    used_at bigint
);

create index oauth_clients_unused on oauth_clients (created_at) where used_at is null;
create index oauth_clients_address on oauth_clients (address, created_at);

-- What a person let a client do in a project. A grant is the family of its tokens.
create table oauth_grants (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    user_id uuid references users (id) on delete cascade,
    key_id uuid references api_keys (id) on delete cascade,
    client_id text not null,
    client_name text not null,
    surface text not null,
    scope text not null,
    created_at bigint not null,
    expires_at bigint not null,
    last_used_at bigint,
    ended_at bigint,
    ended_why text,
    primary key (project_id, id)
);

create unique index oauth_grants_id on oauth_grants (id);
create index oauth_grants_user on oauth_grants (user_id);
create index oauth_grants_expiry on oauth_grants (expires_at);

create table oauth_tokens (
    project_id uuid not null,
    hash bytea primary key,
    grant_id uuid not null,
    kind text not null,
    scope text not null,
    created_at bigint not null,
    expires_at bigint not null,
    used_at bigint,
    ended_at bigint,
    foreign key (project_id, grant_id) references oauth_grants (project_id, id) on delete cascade
);

create index oauth_tokens_grant on oauth_tokens (project_id, grant_id);
create index oauth_tokens_expiry on oauth_tokens (expires_at);

create table oauth_codes (
    project_id uuid not null references projects (id) on delete cascade,
    hash bytea primary key,
    user_id uuid references users (id) on delete cascade,
    key_id uuid references api_keys (id) on delete cascade,
    client_id text not null,
    client_name text not null,
    redirect_uri text not null,
    challenge text not null,
    surface text not null,
    scope text not null,
    expires_at bigint not null,
    used_at bigint,
    grant_id uuid
);

create index oauth_codes_expiry on oauth_codes (expires_at);

-- Devices that wait for a person; the project is known once somebody approved.
create table oauth_device_codes (
    hash bytea primary key,
    user_code text not null unique,
    client_id text not null,
    client_name text not null,
    surface text not null,
    scope text not null,
    poll_seconds bigint not null,
    polled_at bigint,
    expires_at bigint not null,
    decision text,
    project_id uuid references projects (id) on delete cascade,
    user_id uuid references users (id) on delete cascade,
    key_id uuid references api_keys (id) on delete cascade,
    granted text,
    used_at bigint
);

create index oauth_device_codes_expiry on oauth_device_codes (expires_at);
