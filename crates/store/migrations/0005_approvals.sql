-- Calls that wait for a person's word, and what a project says about calls in general.

create table tool_approvals (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    key_id uuid not null,
    user_id uuid,
    call_ref text not null,
    fingerprint bytea not null,
    arguments text not null,
    status text not null,
    note text,
    decided_by_id uuid,
    decided_at bigint,
    created_at bigint not null,
    expires_at bigint not null,
    primary key (project_id, id)
);

create index tool_approvals_call on tool_approvals (project_id, key_id, fingerprint, status);

create table tool_policies (
    project_id uuid not null references projects (id) on delete cascade,
    plan text not null,
    updated_at bigint not null,
    updated_by_id uuid not null,
    primary key (project_id)
);
