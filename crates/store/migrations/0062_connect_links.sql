-- Where connect links may lead people in the end, and whose sites may show the pages behind them and are told how they ended.
create table project_connect_links (
    project_id uuid not null references projects (id) on delete cascade,
    return_to text not null,
    origins text not null,
    updated_at bigint not null,
    updated_by_id uuid not null,
    primary key (project_id)
);
