-- Use cases that led to a call that succeeded, and whether a project remembers them.

create table learned_use_cases (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    use_case text not null,
    provider_key text not null,
    integration_key text not null,
    action_key text not null,
    uses bigint not null,
    created_at bigint not null,
    used_at bigint not null,
    primary key (project_id, id),
    unique (project_id, use_case, provider_key, integration_key, action_key)
);

create index learned_use_cases_used on learned_use_cases (project_id, used_at);

create table discovery_settings (
    project_id uuid not null references projects (id) on delete cascade,
    learns boolean not null,
    updated_at bigint not null,
    updated_by_id uuid not null,
    primary key (project_id)
);
