-- The webhook of a project in Composio's API: one address that gets the events of triggers and what happens to accounts.
create table composio_webhooks (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    url text not null,
    version text not null,
    events text not null,
    secret bytea not null,
    former_secret bytea,
    former_until bigint,
    created_at bigint not null,
    updated_at bigint not null,
    created_by_id uuid,
    primary key (project_id),
    unique (project_id, id)
);

-- What it is to be told besides events of triggers, until it was or nobody tries any more.
create table composio_messages (
    project_id uuid not null,
    id uuid not null,
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
    foreign key (project_id) references composio_webhooks (project_id) on delete cascade
);

create index composio_messages_due on composio_messages (due_at) where state = 'waiting';
create index composio_messages_end_user on composio_messages (project_id, end_user_id) where end_user_id is not null;
create index composio_messages_age on composio_messages (updated_at) where state <> 'waiting';
