-- How the pages look on which people connect accounts: a name, colours as numbers, and a small PNG.
create table project_branding (
    project_id uuid not null references projects (id) on delete cascade,
    name text,
    accent bigint,
    background bigint,
    logo bytea,
    updated_at bigint not null,
    updated_by_id uuid not null,
    primary key (project_id)
);

-- For how many days a project keeps its records, where that is shorter than the deployment does.
create table project_retention (
    project_id uuid not null references projects (id) on delete cascade,
    run_days bigint,
    call_days bigint,
    approval_days bigint,
    updated_at bigint not null,
    updated_by_id uuid not null,
    primary key (project_id)
);
