-- Sessions of the tool router have no token of their own, and may be the project's own: then they name no end user.
create table user_sessions_with_routed (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    end_user_id uuid,
    token_hash bytea unique,
    settings text not null,
    -- The version of the tool router's config that is in force; none for a session that has a token.
    config_version bigint,
    made_by_key_id uuid not null,
    made_by_user_id uuid,
    created_at bigint not null,
    expires_at bigint not null,
    revoked_at bigint,
    primary key (project_id, id),
    foreign key (project_id, end_user_id) references end_user_names (project_id, id) on delete cascade
);

insert into user_sessions_with_routed
    (project_id, id, end_user_id, token_hash, settings, made_by_key_id, made_by_user_id, created_at, expires_at, revoked_at)
select project_id, id, end_user_id, token_hash, settings, made_by_key_id, made_by_user_id, created_at, expires_at, revoked_at
from user_sessions;

drop table user_sessions;
alter table user_sessions_with_routed rename to user_sessions;

create index user_sessions_end_user on user_sessions (project_id, end_user_id, id);
create index user_sessions_age on user_sessions (expires_at);

-- Every config that a session of the tool router had.
create table session_configs (
    project_id uuid not null,
    session_id uuid not null,
    version bigint not null,
    config text not null,
    created_at bigint not null,
    primary key (project_id, session_id, version),
    foreign key (project_id, session_id) references user_sessions (project_id, id) on delete cascade
);
