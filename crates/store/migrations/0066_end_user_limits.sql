-- How many calls an end user of the project may make, where the project says so.
create table project_user_limits (
    project_id uuid not null references projects (id) on delete cascade,
    calls_at_once bigint,
    calls_per_minute bigint,
    calls_per_day bigint,
    updated_at bigint not null,
    updated_by_id uuid not null,
    primary key (project_id)
);
