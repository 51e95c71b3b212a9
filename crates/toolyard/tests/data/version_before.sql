-- A database as the version made it that had SQLite behind sqlx: tables, rows and its record of migrations.
BEGIN TRANSACTION;
CREATE TABLE _sqlx_migrations (
    version BIGINT PRIMARY KEY,
    description TEXT NOT NULL,
    installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    success BOOLEAN NOT NULL,
    checksum BLOB NOT NULL,
    execution_time BIGINT NOT NULL
);
INSERT INTO "_sqlx_migrations" VALUES(1,'0001_foundation','2026-11-16 22:02:55',1,X'723A485838A524097CD81ABDCFB16047B55CD9099C848289917A13E96F7114A62F9F0DB36CB93359B1985CFD435BA0D6',1089341);
INSERT INTO "_sqlx_migrations" VALUES(2,'0002_connections','2026-11-16 22:02:55',1,X'620E9238F582B07AC589961E172F4357E488B494F415AEED50CCBD58F8B045EEB598223E4EB67FC7FC877EAC6BC0CA69',662716);
INSERT INTO "_sqlx_migrations" VALUES(3,'0003_tool_calls','2026-11-16 22:02:55',1,X'21AD864EB5E94173A2D698701D0A8DEEE365EB90C918213D45176D06F5E086C8DA2E2F9BB856FA9E177F6CF92E4AC605',789141);
INSERT INTO "_sqlx_migrations" VALUES(4,'0004_workflows','2026-11-16 22:02:55',1,X'217DEA06F89F187B5CA468273632CA9A85722A82B0BD6EF736EFE278EC5D74405BB641CA31BD4A0F9EE89714DECAAE03',1323729);
INSERT INTO "_sqlx_migrations" VALUES(5,'0005_approvals','2026-11-16 22:02:55',1,X'BCF7B43AC6A4055A52CFDE838F85576B790B95A82E2674BDC2989A8D6C6A33ACFCCF121A4CE4EE30630DBD11C079C008',663577);
INSERT INTO "_sqlx_migrations" VALUES(6,'0006_triggers','2026-11-16 22:02:55',1,X'10AE74F273ECD91E4ECA3C5C752940E0A14208AD50EF04F52D77BF83302EAF21D1D0903CC1EFC6B6B35916A8D1D2DBE3',2866005);
INSERT INTO "_sqlx_migrations" VALUES(7,'0007_agents','2026-11-16 22:02:55',1,X'4A957D41283B83807D53B007706B6326C257DFD4FB0CF454E80571E8EF5E5504CEABCB9F8FD7D96C89068EA1627BCAB1',1744543);
INSERT INTO "_sqlx_migrations" VALUES(8,'0008_imports','2026-11-16 22:02:55',1,X'8B637E28E0CB752C2D0DC1CB62CCB54027861FD97D733ECBD31B3FA01EDE66BE8C4D361FA92F0F67C1BF056643A85ADE',1409739);
INSERT INTO "_sqlx_migrations" VALUES(9,'0009_discovery','2026-11-16 22:02:55',1,X'7E705F434DA0622212BAA1A416D2B6D8725798F92A23E72CA6BD158DED9D654E2EFEA5840DD42D2CDD1785748C6D7D80',886744);
INSERT INTO "_sqlx_migrations" VALUES(10,'0010_hosted_accounts','2026-11-16 22:02:55',1,X'6DA81E7F9C65DE07F4126E97727AE939E7EC9B3C1E9C9CD0FB61FCF0DCA8E2FDF36D5E6ABD07D20167C95AFC18B34778',4412228);
INSERT INTO "_sqlx_migrations" VALUES(11,'0011_trigger_ends','2026-11-16 22:02:55',1,X'9198F6F3A1B501CC84210FC929619577722351D878B0FAF1C1C9211E8EF8E82E12F5709FB0A3EAB04F9F201722082D6E',1714197);
INSERT INTO "_sqlx_migrations" VALUES(12,'0012_connection_states','2026-11-16 22:02:55',1,X'6F61D0618F92668004D14AA32DC3AE5384B7D4E26B792812D2377EE3FC3D28010E25CB06182EFFF5EC8DA04C87D620DC',7765712);
INSERT INTO "_sqlx_migrations" VALUES(13,'0013_call_origins','2026-11-16 22:02:55',1,X'99ACED9F5AC70B12FEED65F26F06E7CF1D2858C8F2EF1CBF2AB7BDA800B7283E286163A7331EA996D08A87DDDADCF3EE',9520955);
INSERT INTO "_sqlx_migrations" VALUES(14,'0014_run_steps','2026-11-16 22:02:55',1,X'446DB5E51F81AF9B3645619E2D887782E9FD57147B930228E0FD40F990002770644CD981E9E85C926906DBABBEF4D858',1509295);
INSERT INTO "_sqlx_migrations" VALUES(15,'0015_agent_keys','2026-11-16 22:02:55',1,X'B78D72303075812D6F599A4E9E27C31E5F7E66D0FEF13421E40D0314211A597EDF9190133DA90137BE0ABEE53D4F6C9A',1677379);
INSERT INTO "_sqlx_migrations" VALUES(17,'0017_key_use','2026-11-16 22:02:55',1,X'FDF0C096311F6827CCB607F4BBDE7AF45F7F62B762F5013E64A7A5B413DBF1156A3D1D862F346DC4C6BC1762BFB19202',1312939);
INSERT INTO "_sqlx_migrations" VALUES(18,'0018_call_intentions','2026-11-16 22:02:55',1,X'995DEFA9B338FC6078B7C8FCA6924886642487FFFC944F6F135D3D2265D80452DF57D911E621362A257AF5AD4A37DD6E',1808002);
CREATE TABLE agent_app_assignments (
    project_id uuid not null,
    id bigint not null,
    agent_id uuid not null,
    app_name text not null,
    is_active boolean not null,
    priority bigint not null,
    config text not null,
    assigned_at bigint not null,
    assigned_by text not null,
    updated_at bigint not null,
    primary key (project_id, id),
    foreign key (project_id, agent_id) references agents (project_id, id) on delete cascade
);
INSERT INTO "agent_app_assignments" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',1,X'01A1E66282A67667A4FC8DD9DDFB8385','WIKIPEDIA',1,0,'{}',1794866578078968,'01a1e662-816b-70ee-9ae3-bc91f6fc0e3c',1794866578078968);
CREATE TABLE agent_history (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    agent_id uuid not null,
    agent_number bigint not null,
    version bigint not null,
    change text not null,
    app_name text,
    before text,
    after text,
    actor text not null,
    created_at bigint not null,
    primary key (project_id, id)
);
INSERT INTO "agent_history" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E66282AA75518E92E6152B24C11E',X'01A1E66282A67667A4FC8DD9DDFB8385',1,1,'created',NULL,NULL,'{"name":"helper","agent_type":"custom","description":null,"status":"active","configuration":{},"tags":[],"job_title":null,"marketplace_category":null,"priority_level":"medium","max_concurrent_tasks":5,"auto_start":false,"tool_mode":"explicit","tool_configs":[]}','01a1e662-816b-70ee-9ae3-bc91f6fc0e3c',1794866578078968);
INSERT INTO "agent_history" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E66282AB74B5AF693E43234DE506',X'01A1E66282A67667A4FC8DD9DDFB8385',1,1,'assigned','WIKIPEDIA',NULL,'{"assignment_id":1,"is_active":true,"priority":0,"config":{}}','01a1e662-816b-70ee-9ae3-bc91f6fc0e3c',1794866578078968);
CREATE TABLE agent_keys (
    project_id uuid not null,
    key_id uuid not null references api_keys (id) on delete cascade,
    agent_id uuid not null,
    primary key (project_id, key_id, agent_id),
    foreign key (project_id, agent_id) references agents (project_id, id) on delete cascade
);
CREATE TABLE agent_numbers (
    project_id uuid not null references projects (id) on delete cascade,
    kind text not null,
    last bigint not null,
    primary key (project_id, kind)
);
INSERT INTO "agent_numbers" VALUES(X'01A1E662816B70EE9AE3BC9031949E45','agent',1);
INSERT INTO "agent_numbers" VALUES(X'01A1E662816B70EE9AE3BC9031949E45','assignment',1);
CREATE TABLE agents (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    number bigint not null,
    name text not null,
    agent_type text not null,
    description text,
    status text not null,
    configuration text not null,
    tags text not null,
    job_title text,
    marketplace_category text,
    priority_level text not null,
    max_concurrent_tasks bigint not null,
    auto_start boolean not null,
    tool_mode text not null,
    tool_configs text not null,
    version bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    created_by text not null,
    updated_by text not null,
    primary key (project_id, id)
);
INSERT INTO "agents" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E66282A67667A4FC8DD9DDFB8385',1,'helper','custom',NULL,'active','{}','[]',NULL,NULL,'medium',5,0,'explicit','[]',1,1794866578078968,1794866578078968,'01a1e662-816b-70ee-9ae3-bc91f6fc0e3c','01a1e662-816b-70ee-9ae3-bc91f6fc0e3c');
CREATE TABLE api_keys (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid primary key,
    user_id uuid references users (id) on delete cascade,
    name text not null,
    role text not null,
    permissions text,
    hint text not null,
    hash bytea not null unique,
    created_at bigint not null,
    revoked_at bigint
, is_for_agents boolean not null default false, last_used_at bigint);
INSERT INTO "api_keys" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E662816B70EE9AE3BC91F6FC0E3C',NULL,'first key','owner',NULL,'tyk_r7uQ',X'4B2BC029BCBF1B8B1949B00D834B6EBAC864AD6BD2303D77CAE979BC5971CCD4',1794866577771305,NULL,0,1794866577843468);
CREATE TABLE artifacts (
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
INSERT INTO "artifacts" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E66281B4720FB338ECEF609E3789','workflow','echo','Echo',NULL,NULL,NULL,NULL,0,1794866577844716,1794866577844716,NULL,X'01A1E662816B70EE9AE3BC91F6FC0E3C');
INSERT INTO "artifacts" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E66281D6739BA9719E1DECC22EF1','environment','development','development',NULL,NULL,NULL,NULL,0,1794866577878841,1794866577878841,NULL,NULL);
INSERT INTO "artifacts" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E66281D7765CB953E7D68904E070','environment','staging','staging',NULL,NULL,NULL,NULL,0,1794866577879243,1794866577879243,NULL,NULL);
INSERT INTO "artifacts" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E66281D7765CB953E7D9DDD8CFED','environment','production','production',NULL,NULL,NULL,NULL,0,1794866577879402,1794866577879402,NULL,NULL);
CREATE TABLE deployment_leases (
    name text primary key,
    until bigint not null
);
CREATE TABLE deployment_secrets (
    name text primary key,
    id uuid not null,
    secret bytea not null,
    updated_at bigint not null
);
CREATE TABLE discovery_settings (
    project_id uuid not null references projects (id) on delete cascade,
    learns boolean not null,
    updated_at bigint not null,
    updated_by_id uuid not null,
    primary key (project_id)
);
CREATE TABLE gateway_connections (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    slug text not null,
    name text,
    description text,
    provider_key text not null,
    integration_key text not null,
    tags text,
    meta text,
    is_active boolean not null,
    is_valid boolean not null,
    auth_scheme text,
    scopes text,
    asked text,
    account text,
    reason text,
    app_id uuid,
    credentials bytea,
    refresh_at bigint,
    expires_at bigint,
    generation bigint not null,
    lease uuid,
    lease_until bigint,
    attempt text,
    attempt_until bigint,
    attempt_data bytea,
    created_at bigint not null,
    updated_at bigint not null,
    created_by_id uuid,
    updated_by_id uuid, remote_id text, attempt_remote_id text, failing_since bigint, failure text,
    primary key (project_id, id),
    unique (project_id, provider_key, integration_key, slug)
);
INSERT INTO "gateway_connections" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E662820275758893B149D7B56244','main',NULL,NULL,'native','brave-search',NULL,NULL,1,1,'api_key',NULL,'{}',NULL,NULL,NULL,X'01661F0D002472C761CB1AFF04F57333692F05FB6B86595B981AA843332C0B42EC5D5356C1FC22AED49CE126227F23F2A791CC327958E5CBDF50B40FE837E27634CBC9D6',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,1794866577922172,1794866577922172,X'01A1E662816B70EE9AE3BC91F6FC0E3C',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "gateway_connections" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E66282A67667A4FC8DDA851CDFFC','wikipedia-main',NULL,NULL,'native','wikipedia',NULL,NULL,1,1,'none',NULL,'{}',NULL,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,1794866578086912,1794866578086912,X'01A1E662816B70EE9AE3BC91F6FC0E3C',NULL,NULL,NULL,NULL,NULL);
CREATE TABLE hub_signatures (
    provider text not null,
    signature text not null,
    seen_at bigint not null,
    primary key (provider, signature)
);
CREATE TABLE import_counter (
    id bigint primary key,
    edition bigint not null
);
INSERT INTO "import_counter" VALUES(1,0);
CREATE TABLE import_editions (
    project_id uuid primary key references projects (id) on delete cascade,
    edition bigint not null
);
CREATE TABLE imports (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    provider_key text not null,
    integration_key text not null,
    name text not null,
    source text not null,
    origins text not null,
    definition text not null,
    secret bytea,
    actions_count bigint not null,
    version bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    created_by_id uuid,
    updated_by_id uuid,
    primary key (project_id, id),
    unique (project_id, provider_key, integration_key)
);
CREATE TABLE learned_use_cases (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    use_case text not null,
    provider_key text not null,
    integration_key text not null,
    action_key text not null,
    uses bigint not null,
    created_at bigint not null,
    used_at bigint not null,
    primary key (project_id, id),
    unique (project_id, use_case, provider_key, integration_key, action_key)
);
CREATE TABLE nodes (
    id uuid primary key,
    alive_until bigint not null
);
INSERT INTO "nodes" VALUES(X'01A1E662816A76E6A6422B3BC26EFACC',1794866608028159);
CREATE TABLE oauth_apps (
    project_id uuid references projects (id) on delete cascade,
    id uuid primary key,
    owner text not null,
    provider_key text not null,
    integration_key text not null,
    client_id text not null,
    client_secret bytea not null,
    scopes text,
    created_at bigint not null,
    unique (owner, provider_key, integration_key)
);
CREATE TABLE project_apps (
    project_id uuid not null references projects (id) on delete cascade,
    app_name text not null,
    added_at bigint not null,
    added_by text not null,
    primary key (project_id, app_name)
);
CREATE TABLE projects (
    id uuid primary key,
    slug text not null unique,
    name text not null,
    user_id uuid references users (id) on delete cascade,
    created_at bigint not null
);
INSERT INTO "projects" VALUES(X'01A1E662816B70EE9AE3BC9031949E45','default','Default',NULL,1794866577771305);
CREATE TABLE revisions (
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
INSERT INTO "revisions" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E66281B576959069204975E0C880',X'01A1E66281B4720FB338ECEF609E3789',X'01A1E66281B5769590692048CA3EDBB1','workflow','echo-0',0,NULL,NULL,1794866577845269,NULL,X'01A1E662816B70EE9AE3BC91F6FC0E3C');
INSERT INTO "revisions" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E66281B576959069204A847F1637',X'01A1E66281B4720FB338ECEF609E3789',X'01A1E66281B5769590692048CA3EDBB1','workflow','echo-1',1,'{"kind":"echo"}',NULL,1794866577845428,NULL,X'01A1E662816B70EE9AE3BC91F6FC0E3C');
INSERT INTO "revisions" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E66281D6739BA9719E1FB9E8D04A',X'01A1E66281D6739BA9719E1DECC22EF1',X'01A1E66281D6739BA9719E1EBFDDC5D0','environment','development-0',0,NULL,NULL,1794866577878841,NULL,NULL);
INSERT INTO "revisions" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E66281D7765CB953E7D88045C940',X'01A1E66281D7765CB953E7D68904E070',X'01A1E66281D7765CB953E7D7B41774AA','environment','staging-0',0,NULL,NULL,1794866577879243,NULL,NULL);
INSERT INTO "revisions" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E66281D7765CB953E7DB90B6FADD',X'01A1E66281D7765CB953E7D9DDD8CFED',X'01A1E66281D7765CB953E7DADD2C27C2','environment','production-0',0,NULL,NULL,1794866577879402,NULL,NULL);
INSERT INTO "revisions" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E66281DA76A9BF765206BB5D10FD',X'01A1E66281D7765CB953E7D68904E070',X'01A1E66281D7765CB953E7D7B41774AA','environment','staging-1',1,'{"references":{"echo.revision":{"workflow":{"id":"01a1e662-81b4-720f-b338-ecef609e3789","slug":"echo"},"workflow_variant":{"id":"01a1e662-81b5-7695-9069-2048ca3edbb1","slug":"echo"},"workflow_revision":{"id":"01a1e662-81b5-7695-9069-204a847f1637","slug":"echo-1","version":"1"}}}}',NULL,1794866577882458,NULL,X'01A1E662816B70EE9AE3BC91F6FC0E3C');
CREATE TABLE settings (
    name text primary key,
    value bytea not null
);
INSERT INTO "settings" VALUES('signing_key',X'01661F0D00A7D721A7DD54F07A74C7B24AED9119CB03DE6C01417E7E726AD4FD6284C89264D16BEE014339037B5407770527540E0A3DBAC9ECA842E575183C30AD3ACC26D0823A37EA103DDD35');
CREATE TABLE tool_approvals (
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
CREATE TABLE tool_calls (
    project_id uuid not null references projects (id) on delete cascade,
    id uuid not null,
    key_id uuid not null,
    user_id uuid,
    call_ref text not null,
    connection_id uuid,
    outcome text not null,
    message text,
    duration_us bigint not null,
    created_at bigint not null, tool text, agent_id uuid, run_id uuid, step text, delivery_id uuid, node_id uuid,
    primary key (project_id, id)
);
INSERT INTO "tool_calls" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E662826B71E9A29440A479251311',X'01A1E662816B70EE9AE3BC91F6FC0E3C',NULL,'workflow.variant.echo',NULL,'ok',NULL,2348,1794866578027191,'workflow.variant.echo',NULL,NULL,NULL,NULL,NULL);
CREATE TABLE tool_idempotency (
    project_id uuid not null references projects (id) on delete cascade,
    name text not null,
    fingerprint bytea not null,
    call_id uuid not null,
    reply text,
    created_at bigint not null,
    primary key (project_id, name)
);
CREATE TABLE tool_policies (
    project_id uuid not null references projects (id) on delete cascade,
    plan text not null,
    updated_at bigint not null,
    updated_by_id uuid not null,
    primary key (project_id)
);
CREATE TABLE trigger_attempts (
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
CREATE TABLE trigger_deliveries (
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
    updated_at bigint not null, cancelled_by_id uuid, approval_id uuid,
    primary key (project_id, id)
);
CREATE TABLE trigger_events (
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
CREATE TABLE trigger_schedules (
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
INSERT INTO "trigger_schedules" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E662823E73CB8E9578A61AD43BE1','tick','daily',NULL,NULL,NULL,'{"event_key":"tick","schedule":"0 9 * * *","references":{"workflow":{"slug":"echo"}}}',1,1794906000000000,1794906000000000,X'01A1E662816B70EE9AE3BC91F6FC0E3C',NULL,1794866577982362,1794866577982362,NULL,X'01A1E662816B70EE9AE3BC91F6FC0E3C',X'01A1E662816B70EE9AE3BC91F6FC0E3C',NULL);
CREATE TABLE trigger_signatures (
    project_id uuid not null references projects (id) on delete cascade,
    subscription_id uuid not null,
    signature text not null,
    seen_at bigint not null,
    primary key (project_id, subscription_id, signature)
);
CREATE TABLE trigger_subscriptions (
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
    deleted_by_id uuid, suspended_at bigint,
    primary key (project_id, id)
);
INSERT INTO "trigger_subscriptions" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E662821F73A9816360EEFAA581A6',NULL,'native','webhook','WEBHOOK_RECEIVED',X'3519397E2558C883F25DD8266B894C41A87D08FDFBE152341119DB9DF9FDE287','hook',NULL,NULL,NULL,'{"event_key":"WEBHOOK_RECEIVED","references":{"workflow":{"slug":"echo"}}}',1,1,0,NULL,'265cfbdcfca94079b1554ec844f266835fe1673431ec4a019629b01080816ff2',X'01661F0D00DC3103C650D39758865DD2D2D04C1F71B24A9AA6AF93CF87DC0BC644E0AA07E833FF6AD02ACFEC197D5D92BA411D515A0F77A201F3A827BD8FBE2CBD82140BBE918615F672A4245271321DC62962D2FCA538',NULL,NULL,NULL,X'01A1E662816B70EE9AE3BC91F6FC0E3C',NULL,1794866577951610,1794866577951610,NULL,X'01A1E662816B70EE9AE3BC91F6FC0E3C',X'01A1E662816B70EE9AE3BC91F6FC0E3C',NULL,NULL);
CREATE TABLE users (
    id uuid primary key,
    email text not null unique,
    name text,
    created_at bigint not null
);
CREATE TABLE variants (
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
INSERT INTO "variants" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E66281B5769590692048CA3EDBB1',X'01A1E66281B4720FB338ECEF609E3789','workflow','echo',NULL,NULL,1794866577845034,1794866577845034,NULL,X'01A1E662816B70EE9AE3BC91F6FC0E3C');
INSERT INTO "variants" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E66281D6739BA9719E1EBFDDC5D0',X'01A1E66281D6739BA9719E1DECC22EF1','environment','development',NULL,NULL,1794866577878841,1794866577878841,NULL,NULL);
INSERT INTO "variants" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E66281D7765CB953E7D7B41774AA',X'01A1E66281D7765CB953E7D68904E070','environment','staging',NULL,NULL,1794866577879243,1794866577881721,NULL,NULL);
INSERT INTO "variants" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E66281D7765CB953E7DADD2C27C2',X'01A1E66281D7765CB953E7D9DDD8CFED','environment','production',NULL,NULL,1794866577879402,1794866577879402,NULL,NULL);
CREATE TABLE workflow_runs (
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
    created_at bigint not null, steps bytea,
    primary key (project_id, id)
);
INSERT INTO "workflow_runs" VALUES(X'01A1E662816B70EE9AE3BC9031949E45',X'01A1E662826D7468A518D3F6F2423CB9',X'01A1E66281B4720FB338ECEF609E3789',X'01A1E66281B576959069204A847F1637',X'01A1E662816B70EE9AE3BC91F6FC0E3C',200,'Success','{"a":1}','{"a":1}',31,1794866578029225,NULL);
CREATE INDEX api_keys_project on api_keys (project_id, created_at);
CREATE INDEX tool_calls_connection on tool_calls (project_id, connection_id);
CREATE INDEX tool_idempotency_age on tool_idempotency (project_id, created_at);
CREATE INDEX variants_artifact on variants (project_id, artifact_id, created_at);
CREATE INDEX revisions_slug on revisions (project_id, family, slug);
CREATE INDEX tool_approvals_call on tool_approvals (project_id, key_id, fingerprint, status);
CREATE UNIQUE INDEX trigger_subscriptions_live on trigger_subscriptions (project_id, fingerprint) where deleted_at is null;
CREATE INDEX trigger_subscriptions_connection on trigger_subscriptions (project_id, connection_id);
CREATE INDEX trigger_subscriptions_trigger on trigger_subscriptions (trigger_id) where trigger_id is not null and deleted_at is null;
CREATE INDEX trigger_subscriptions_poll on trigger_subscriptions (poll_at) where poll_at is not null;
CREATE INDEX trigger_schedules_due on trigger_schedules (run_at) where run_at is not null;
CREATE INDEX trigger_events_age on trigger_events (received_at);
CREATE INDEX trigger_signatures_age on trigger_signatures (seen_at);
CREATE UNIQUE INDEX trigger_deliveries_event on trigger_deliveries (project_id, subscription_id, event_id) where subscription_id is not null;
CREATE UNIQUE INDEX trigger_deliveries_slot on trigger_deliveries (project_id, schedule_id, event_id) where schedule_id is not null;
CREATE INDEX trigger_deliveries_ready on trigger_deliveries (project_id, due_at, id) where state = 'ready';
CREATE INDEX trigger_deliveries_leased on trigger_deliveries (lease_until) where state = 'leased';
CREATE INDEX trigger_deliveries_waiting on trigger_deliveries (due_at) where state = 'waiting';
CREATE INDEX trigger_deliveries_open on trigger_deliveries (project_id, subscription_id, id) where state in ('ready', 'leased', 'waiting');
CREATE INDEX trigger_deliveries_age on trigger_deliveries (updated_at);
CREATE UNIQUE INDEX agents_number on agents (project_id, number);
CREATE UNIQUE INDEX agents_name on agents (project_id, name);
CREATE UNIQUE INDEX agent_app_assignments_app on agent_app_assignments (project_id, agent_id, app_name);
CREATE INDEX agent_app_assignments_used on agent_app_assignments (project_id, app_name, is_active);
CREATE INDEX agent_history_agent on agent_history (project_id, agent_id, version);
CREATE INDEX agent_history_number on agent_history (project_id, agent_number, version);
CREATE INDEX import_editions_by_edition on import_editions (edition);
CREATE INDEX learned_use_cases_used on learned_use_cases (project_id, used_at);
CREATE INDEX gateway_connections_remote on gateway_connections (provider_key, remote_id);
CREATE INDEX hub_signatures_age on hub_signatures (seen_at);
CREATE INDEX trigger_deliveries_approval on trigger_deliveries (project_id, approval_id) where state = 'waiting' and approval_id is not null;
CREATE INDEX tool_calls_under_way on tool_calls (node_id) where node_id is not null;
COMMIT;