-- How much a project keeps of something, counted as rows come and go.
create table project_usage (
    project_id uuid not null references projects (id) on delete cascade,
    kind text not null,
    row_count bigint not null,
    byte_count bigint not null,
    primary key (project_id, kind)
);

-- What a row takes, so that the count falls by what it rose by; nothing for rows from before.
alter table workflow_runs add column size bigint not null default 0;
alter table tool_approvals add column size bigint not null default 0;

insert into project_usage (project_id, kind, row_count, byte_count) select project_id, 'runs', count(*), 0 from workflow_runs group by project_id;
insert into project_usage (project_id, kind, row_count, byte_count) select project_id, 'approvals', count(*), 0 from tool_approvals group by project_id;
