-- What is watched, what the clock starts, what came in, and what became of it.

create table trigger_subscriptions (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    connection_id uuid,
    provider text not null,
    integration text not null,
    event_key text not null,
    fingerprint bytea not null,
    name text,
    description text,
    tags text,
    meta text,
    data text not null,
    is_active boolean not null,
    is_valid boolean not null,
    is_test boolean not null,
    reason text,
    token text not null unique,
    secret bytea,
    trigger_id text,
    poll_cursor text,
    poll_at bigint,
    actor_key_id uuid not null,
    actor_user_id uuid,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    created_by_id uuid,
    updated_by_id uuid,
    deleted_by_id uuid,
    primary key (project_id, id)
);

create unique index trigger_subscriptions_live on trigger_subscriptions (project_id, fingerprint) where deleted_at is null;
create index trigger_subscriptions_connection on trigger_subscriptions (project_id, connection_id);
create index trigger_subscriptions_trigger on trigger_subscriptions (trigger_id) where trigger_id is not null and deleted_at is null;
create index trigger_subscriptions_poll on trigger_subscriptions (poll_at) where poll_at is not null;

create table trigger_schedules (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    event_key text not null,
    name text,
    description text,
    tags text,
    meta text,
    data text not null,
    is_active boolean not null,
    next_fire_at bigint,
    run_at bigint,
    actor_key_id uuid not null,
    actor_user_id uuid,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    created_by_id uuid,
    updated_by_id uuid,
    deleted_by_id uuid,
    primary key (project_id, id)
);

create index trigger_schedules_due on trigger_schedules (run_at) where run_at is not null;

create table trigger_events (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    subscription_id uuid not null,
    event_id text not null,
    event_type text not null,
    headers text not null,
    body bytea not null,
    attributes text not null,
    received_at bigint not null,
    primary key (project_id, id),
    unique (project_id, subscription_id, event_id)
);

create index trigger_events_age on trigger_events (received_at);

create table trigger_signatures (
    project_id uuid not null references projects (id) on delete cascade,
    subscription_id uuid not null,
    signature text not null,
    seen_at bigint not null,
    primary key (project_id, subscription_id, signature)
);

create index trigger_signatures_age on trigger_signatures (seen_at);

create table trigger_deliveries (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    subscription_id uuid,
    schedule_id uuid,
    event_row_id uuid,
    event_id text not null,
    event_key text not null,
    state text not null,
    is_ordered boolean not null,
    code text not null,
    message text,
    data text not null,
    attempts bigint not null,
    due_at bigint not null,
    lease_until bigint,
    lease_owner uuid,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (project_id, id)
);

create unique index trigger_deliveries_event on trigger_deliveries (project_id, subscription_id, event_id) where subscription_id is not null;
create unique index trigger_deliveries_slot on trigger_deliveries (project_id, schedule_id, event_id) where schedule_id is not null;
create index trigger_deliveries_ready on trigger_deliveries (project_id, due_at, id) where state = 'ready';
create index trigger_deliveries_leased on trigger_deliveries (lease_until) where state = 'leased';
create index trigger_deliveries_waiting on trigger_deliveries (due_at) where state = 'waiting';
create index trigger_deliveries_open on trigger_deliveries (project_id, subscription_id, id) where state in ('ready', 'leased', 'waiting');
create index trigger_deliveries_age on trigger_deliveries (updated_at);

create table trigger_attempts (
    project_id uuid not null references projects (id) on delete cascade,
    delivery_id uuid not null,
    number bigint not null,
    started_at bigint not null,
    ended_at bigint not null,
    code text not null,
    message text,
    run_id uuid,
    primary key (project_id, delivery_id, number)
);
