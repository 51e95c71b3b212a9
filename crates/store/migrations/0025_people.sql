-- People: who belongs to which project, how they sign in, and where they are signed in.
alter table users add column disabled_at bigint;
alter table users add column password text;
alter table users add column password_changed_at bigint;
alter table users add column totp bytea;
alter table users add column totp_confirmed_at bigint;
-- The last interval whose code was taken, so that no code is taken twice.
alter table users add column totp_used bigint;

-- A member that was removed keeps the row, so that records of what they did still name them.
create table members (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid primary key,
    user_id uuid not null references users (id) on delete cascade,
    role text not null,
    source text not null,
    created_at bigint not null,
    removed_at bigint,
    unique (project_id, user_id)
);

create index members_user on members (user_id);

-- Whoever a project was made for owns it. There is one such member per project, so the project's id serves.
insert into members (project_id, id, user_id, role, source, created_at)
    select id, id, user_id, 'owner', 'account', created_at from projects where user_id is not null;

create table invitations (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid primary key,
    email text,
    role text not null,
    hash bytea not null unique,
    invited_by_id uuid,
    created_at bigint not null,
    expires_at bigint not null,
    accepted_at bigint,
    accepted_by_id uuid,
    revoked_at bigint
);

create index invitations_project on invitations (project_id, created_at);

create table sessions (
    id uuid primary key,
    hash bytea not null unique,
    user_id uuid references users (id) on delete cascade,
    key_id uuid references api_keys (id) on delete cascade,
    method text not null,
    address text,
    client text,
    created_at bigint not null,
    used_at bigint not null
);

create index sessions_user on sessions (user_id);
create index sessions_key on sessions (key_id);

create table sign_in_links (
    hash bytea primary key,
    user_id uuid not null references users (id) on delete cascade,
    created_at bigint not null,
    expires_at bigint not null
);

-- Somebody who was sent to an identity provider and has not come back.
create table sign_in_attempts (
    hash bytea primary key,
    browser bytea not null,
    provider text not null,
    return_to text not null,
    invitation bytea,
    created_at bigint not null
);

create table identities (
    issuer text not null,
    subject text not null,
    user_id uuid not null references users (id) on delete cascade,
    created_at bigint not null,
    primary key (issuer, subject)
);

create index identities_user on identities (user_id);

create table recovery_codes (
    user_id uuid not null references users (id) on delete cascade,
    hash bytea not null,
    primary key (user_id, hash)
);

-- How often somebody tried to sign in, by account and by address.
create table sign_in_tries (
    name text primary key,
    tries bigint not null,
    ends_at bigint not null
);
