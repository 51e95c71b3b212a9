-- Keys that act for certain agents and for nothing else.

alter table api_keys add column is_for_agents boolean not null default false;

create table agent_keys (
    project_id uuid not null,
    key_id uuid not null references api_keys (id) on delete cascade,
    agent_id uuid not null,
    primary key (project_id, key_id, agent_id),
    foreign key (project_id, agent_id) references agents (project_id, id) on delete cascade
);
