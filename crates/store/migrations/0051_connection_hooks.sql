-- Who is told what happens to accounts: addresses that get a signed post. A project has a few of them.
create table connection_hooks (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    url text not null,
    secret bytea not null,
    created_at bigint not null,
    created_by_id uuid,
    primary key (project_id, id)
);

-- What is to be told, until it was or nobody tries any more.
create table connection_messages (
    project_id uuid not null,
    id uuid not null,
    hook_id uuid not null,
    end_user_id uuid,
    event text not null,
    body text not null,
    state text not null,
    attempts bigint not null,
    due_at bigint not null,
    lease_until bigint,
    status bigint,
    error text,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (project_id, id),
    foreign key (project_id, hook_id) references connection_hooks (project_id, id) on delete cascade
);

create index connection_messages_due on connection_messages (due_at) where state = 'waiting';
create index connection_messages_hook on connection_messages (project_id, hook_id, id);
create index connection_messages_end_user on connection_messages (project_id, end_user_id) where end_user_id is not null;
create index connection_messages_age on connection_messages (updated_at) where state <> 'waiting';
