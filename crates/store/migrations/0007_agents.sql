-- Agents, the apps assigned to them, the apps that a project added, and who changed what.

create table agents (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    number bigint not null,
    name text not null,
    agent_type text not null,
    description text,
    status text not null,
    configuration text not null,
    tags text not null,
    job_title text,
    marketplace_category text,
    priority_level text not null,
    max_concurrent_tasks bigint not null,
    auto_start boolean not null,
    tool_mode text not null,
    tool_configs text not null,
    version bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    created_by text not null,
    updated_by text not null,
    primary key (project_id, id)
);

create unique index agents_number on agents (project_id, number);
create unique index agents_name on agents (project_id, name);

-- The last number given to an agent or an assignment; a number is never given twice.
create table agent_numbers (
    project_id uuid not null references projects (id) on delete cascade,
    kind text not null,
    last bigint not null,
    primary key (project_id, kind)
);

create table agent_app_assignments (
    project_id uuid not null,
    id bigint not null,
    agent_id uuid not null,
    app_name text not null,
    is_active boolean not null,
    priority bigint not null,
    config text not null,
    assigned_at bigint not null,
    assigned_by text not null,
    updated_at bigint not null,
    primary key (project_id, id),
    foreign key (project_id, agent_id) references agents (project_id, id) on delete cascade
);

create unique index agent_app_assignments_app on agent_app_assignments (project_id, agent_id, app_name);
create index agent_app_assignments_used on agent_app_assignments (project_id, app_name, is_active);

-- Only ever added to. It outlives the agent.
create table agent_history (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    agent_id uuid not null,
    agent_number bigint not null,
    version bigint not null,
    change text not null,
    app_name text,
    before text,
    after text,
    actor text not null,
    created_at bigint not null,
    primary key (project_id, id)
);

create index agent_history_agent on agent_history (project_id, agent_id, version);
create index agent_history_number on agent_history (project_id, agent_number, version);

-- Apps that somebody chose for the project before an account was connected.
create table project_apps (
    project_id uuid not null references projects (id) on delete cascade,
    app_name text not null,
    added_at bigint not null,
    added_by text not null,
    primary key (project_id, app_name)
);
