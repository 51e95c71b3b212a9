-- Named secrets of projects. `hosts` is a list of the hosts that a secret may be sent to in a header.
create table secrets (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    slug text not null,
    name text,
    description text,
    hosts text not null,
    value bytea not null,
    created_at bigint not null,
    updated_at bigint not null,
    updated_by_id uuid,
    primary key (project_id, id),
    unique (project_id, slug)
);

-- Who was shown a value. A row stays when its secret goes.
create table secret_reads (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    secret_id uuid not null,
    key_id uuid not null,
    user_id uuid,
    purpose text not null,
    read_at bigint not null,
    primary key (project_id, id)
);

create index secret_reads_of_one on secret_reads (project_id, secret_id, id);
create index secret_reads_age on secret_reads (project_id, read_at);
