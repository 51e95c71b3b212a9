-- Who is told that a call waits: an address that gets a signed post, or a tool that is called. A project has a few of them.
create table approval_notices (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    kind text not null,
    url text,
    secret bytea,
    call_ref text,
    arguments text,
    key_id uuid not null,
    user_id uuid,
    created_at bigint not null,
    last_error text,
    last_at bigint,
    primary key (project_id, id)
);
