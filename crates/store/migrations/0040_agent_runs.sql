-- Runs of agents, which outlive the process that works on them.
create table agent_runs (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    workflow_id uuid not null,
    revision_id uuid not null,
    key_id uuid not null,
    user_id uuid,
    state text not null,
    config text not null,
    inputs text not null,
    session_id text,
    idempotency_key text,
    fingerprint bytea not null,
    delivery_id uuid,
    agent_id uuid,
    depth bigint not null,
    is_test boolean not null,
    approval_id uuid,
    due_at bigint not null,
    lease_until bigint,
    lease_owner uuid,
    tries bigint not null,
    turns bigint not null,
    tool_calls bigint not null,
    input_tokens bigint not null,
    output_tokens bigint not null,
    cached_input_tokens bigint not null,
    nano_usd bigint not null,
    active_us bigint not null,
    code bigint,
    message text,
    outputs text,
    is_told boolean not null,
    created_at bigint not null,
    updated_at bigint not null,
    ended_at bigint,
    primary key (project_id, id)
);

create unique index agent_runs_key on agent_runs (project_id, key_id, idempotency_key) where idempotency_key is not null;
create index agent_runs_due on agent_runs (state, project_id, due_at) where state in ('ready', 'running', 'waiting');
create index agent_runs_owner on agent_runs (lease_owner) where lease_owner is not null;
create index agent_runs_approval on agent_runs (project_id, approval_id) where approval_id is not null;
create index agent_runs_untold on agent_runs (ended_at) where delivery_id is not null and ended_at is not null and not is_told;
create index agent_runs_ended on agent_runs (project_id, ended_at) where ended_at is not null;

-- One row for each turn of the model and each call of a tool; what they hold is sealed.
create table agent_run_steps (
    project_id uuid not null references projects (id) on delete cascade,
    run_id uuid not null,
    number bigint not null,
    id uuid not null,
    kind text not null,
    begun bytea,
    ended bytea,
    began_at bigint,
    ended_at bigint,
    primary key (project_id, run_id, number)
);

-- What happened in a run, for whoever follows it: a row holds the events from its number on, sealed.
create table agent_run_events (
    project_id uuid not null references projects (id) on delete cascade,
    run_id uuid not null,
    number bigint not null,
    last_number bigint not null,
    id uuid not null,
    events bytea not null,
    created_at bigint not null,
    primary key (project_id, run_id, number)
);

-- What runs of a session said, sealed. A row that replaces stands for everything before it.
create table agent_sessions (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    workflow_id uuid not null,
    session_id text not null,
    run_id uuid not null,
    is_replacing boolean not null,
    messages bytea not null,
    created_at bigint not null,
    primary key (project_id, id)
);

create index agent_sessions_session on agent_sessions (project_id, workflow_id, session_id, id);

-- Runs that wait are woken by what was decided since the last look.
create index tool_approvals_decided on tool_approvals (decided_at) where decided_at is not null;
