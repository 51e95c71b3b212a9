create table imports (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    provider_key text not null,
    integration_key text not null,
    name text not null,
    source text not null,
    origins text not null,
    definition text not null,
    secret bytea,
    actions_count bigint not null,
    version bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    created_by_id uuid,
    updated_by_id uuid,
    primary key (project_id, id),
    unique (project_id, provider_key, integration_key)
);

-- Which change of all changes a project's imports had last; nodes look for what is later than what they know.
create table import_editions (
    project_id uuid primary key references projects (id) on delete cascade,
    edition bigint not null
);

create index import_editions_by_edition on import_editions (edition);

-- One row. Taking the next edition holds it until the commit, so editions become visible in their order.
create table import_counter (
    id bigint primary key,
    edition bigint not null
);

insert into import_counter (id, edition) values (1, 0);
