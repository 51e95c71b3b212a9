-- Workflows and environments have the same history: artifact, variant, revision.

create table artifacts (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    family text not null,
    slug text not null,
    name text,
    description text,
    flags text,
    tags text,
    meta text,
    is_guarded boolean not null,
    created_at bigint not null,
    updated_at bigint not null,
    archived_at bigint,
    created_by_id uuid,
    primary key (project_id, id),
    unique (project_id, family, slug)
);

create table variants (
    project_id uuid not null,
    id uuid not null,
    artifact_id uuid not null,
    family text not null,
    slug text not null,
    name text,
    description text,
    created_at bigint not null,
    updated_at bigint not null,
    archived_at bigint,
    created_by_id uuid,
    primary key (project_id, id),
    unique (project_id, family, slug),
    foreign key (project_id, artifact_id) references artifacts (project_id, id) on delete cascade
);

create index variants_artifact on variants (project_id, artifact_id, created_at);

create table revisions (
    project_id uuid not null,
    id uuid not null,
    artifact_id uuid not null,
    variant_id uuid not null,
    family text not null,
    slug text not null,
    version bigint not null,
    data text,
    message text,
    created_at bigint not null,
    archived_at bigint,
    created_by_id uuid,
    primary key (project_id, id),
    unique (project_id, variant_id, version),
    foreign key (project_id, variant_id) references variants (project_id, id) on delete cascade
);

create index revisions_slug on revisions (project_id, family, slug);

create table workflow_runs (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    workflow_id uuid not null,
    revision_id uuid not null,
    key_id uuid not null,
    code bigint not null,
    message text,
    inputs text not null,
    outputs text,
    duration_us bigint not null,
    created_at bigint not null,
    primary key (project_id, id)
);
