-- One text for SQLite and PostgreSQL. Times are microseconds, JSON is kept as text, secrets are sealed bytes.

create table settings (
    name text primary key,
    value bytea not null
);

create table users (
    id uuid primary key,
    email text not null unique,
    name text,
    created_at bigint not null
);

create table projects (
    id uuid primary key,
    slug text not null unique,
    name text not null,
    user_id uuid references users (id) on delete cascade,
    created_at bigint not null
);

create table api_keys (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid primary key,
    user_id uuid references users (id) on delete cascade,
    name text not null,
    role text not null,
    permissions text,
    hint text not null,
    hash bytea not null unique,
    created_at bigint not null,
    revoked_at bigint
);

create index api_keys_project on api_keys (project_id, created_at);
