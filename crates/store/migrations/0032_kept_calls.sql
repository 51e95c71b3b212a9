-- For how many days a project keeps what calls were made with and what they came to; without a row, not at all.
create table call_keeping (
    project_id uuid not null references projects (id) on delete cascade,
    days bigint not null,
    updated_at bigint not null,
    updated_by_id uuid not null,
    primary key (project_id)
);

-- Arguments and result of a call, sealed.
create table kept_calls (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    content bytea not null,
    created_at bigint not null,
    size bigint not null,
    primary key (project_id, id)
);

create index kept_calls_age on kept_calls (project_id, created_at);
