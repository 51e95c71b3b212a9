//! Configuration: flag over environment over `toolyard.toml` over default.

use std::fmt::Write as _;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args};
use operations::TimeLimits;
use serde::Deserialize;
use server::{ConnectionLimits, Setting};

mod embeddings;
mod quotas;
mod service_timeout;
mod sign_in;
mod sockets;

pub use quotas::Quotas;
pub use service_timeout::read_service_timeout;

const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;
const FILE: &str = "toolyard.toml";

/// Settings that every command takes.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(deny_unknown_fields)]
#[command(next_help_heading = "Server settings")]
pub struct Settings {
    /// Address to listen on [default: 127.0.0.1:8665]
    #[arg(long, env = "TOOLYARD_LISTEN", global = true, hide_short_help = true, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// sqlite://FILE or postgres://USER@HOST/NAME [default: a file in the data directory]
    #[arg(long, env = "TOOLYARD_DATABASE_URL", global = true, hide_short_help = true, value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Where the database and the keys are kept [default: toolyard-data]
    #[arg(long, env = "TOOLYARD_DATA_DIR", global = true, hide_short_help = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Address under which others reach this server [default: the listening address]
    #[arg(long, env = "TOOLYARD_PUBLIC_URL", global = true, hide_short_help = true, value_name = "URL")]
    pub public_url: Option<String>,
    /// Key that seals secrets, 32 bytes in base64; older keys may follow after commas [default: kept in the data directory]
    #[arg(long, env = "TOOLYARD_SEALING_KEY", global = true, hide_short_help = true, value_name = "KEY", hide_env_values = true)]
    pub sealing_key: Option<String>,
    /// The operator's key for /admin [default: kept in the data directory]
    #[arg(long, env = "TOOLYARD_ADMIN_KEY", global = true, hide_short_help = true, value_name = "KEY", hide_env_values = true)]
    pub admin_key: Option<String>,
    /// Directory of further integration manifests [default: none]
    #[arg(long, env = "TOOLYARD_INTEGRATIONS_DIR", global = true, hide_short_help = true, value_name = "DIR")]
    pub integrations_dir: Option<PathBuf>,
    /// Private hosts and networks that calls may reach, such as `10.0.0.0/8,jira.internal` [default: none]
    #[arg(long, env = "TOOLYARD_EGRESS_ALLOW", global = true, hide_short_help = true, value_name = "HOSTS")]
    pub egress_allow: Option<String>,
    /// Programs that projects may run as MCP servers, such as `npx,uvx`, or `*`; they run as this server's user [default: none]
    #[arg(long, env = "TOOLYARD_MCP_COMMANDS", global = true, hide_short_help = true, value_name = "PROGRAMS")]
    pub mcp_commands: Option<String>,
    /// Address of the web application that opens connect windows; it is told how they ended [default: the public address]
    #[arg(long, env = "TOOLYARD_WEB_URL", global = true, hide_short_help = true, value_name = "URL")]
    pub web_url: Option<String>,
    /// Largest request body in bytes [default: 1048576]
    #[arg(long, env = "TOOLYARD_BODY_LIMIT", global = true, hide_short_help = true, value_name = "BYTES")]
    pub body_limit: Option<usize>,
    /// Seconds that one request may take [default: 60]
    #[arg(long, env = "TOOLYARD_REQUEST_TIMEOUT", global = true, hide_short_help = true, value_name = "SECONDS")]
    pub request_timeout: Option<u64>,
    /// Connections that may be open at once [default: three quarters of the files that the process may open, at most 16384]
    #[arg(long, env = "TOOLYARD_CONNECTIONS", global = true, hide_short_help = true, value_name = "NUMBER")]
    pub connections: Option<usize>,
    /// Connections that one address may have open, half of all at most unless it is set [default: 256]
    #[arg(long, env = "TOOLYARD_CONNECTIONS_PER_ADDRESS", global = true, hide_short_help = true, value_name = "NUMBER")]
    pub connections_per_address: Option<usize>,
    /// Addresses and networks of proxies, whose connections are counted only in all [default: 127.0.0.0/8,::1]
    #[arg(long, env = "TOOLYARD_TRUSTED_PROXIES", global = true, hide_short_help = true, value_name = "ADDRESSES")]
    pub trusted_proxies: Option<String>,
    /// Seconds that the head of a connection's first request may take [default: 10]
    #[arg(long, env = "TOOLYARD_HEADER_TIMEOUT", global = true, hide_short_help = true, value_name = "SECONDS")]
    pub header_timeout: Option<u64>,
    /// Seconds that a connection may be open without a request, or take nothing of an answer [default: 75]
    #[arg(long, env = "TOOLYARD_IDLE_TIMEOUT", global = true, hide_short_help = true, value_name = "SECONDS")]
    pub idle_timeout: Option<u64>,
    /// Seconds that a service may take to answer, and others by integration, such as `25,github=60,openapi/orders=120` [default: 25]
    #[arg(long, env = "TOOLYARD_SERVICE_TIMEOUT", global = true, hide_short_help = true, value_name = "SECONDS")]
    pub service_timeout: Option<String>,
    /// Start without running triggers, for a restored copy; events that arrive are kept [default: false]
    #[arg(long, env = "TOOLYARD_PAUSED", global = true, hide_short_help = true, value_name = "BOOL")]
    pub paused: Option<bool>,
    /// Runs of triggers that one node makes at once; half of them for one project at most [default: 64]
    #[arg(long, env = "TOOLYARD_TRIGGER_CONCURRENCY", global = true, hide_short_help = true, value_name = "RUNS")]
    pub trigger_concurrency: Option<usize>,
    /// Runs of agents that one node works on at once; half of them for one project at most [default: 512]
    #[arg(long, env = "TOOLYARD_AGENT_CONCURRENCY", global = true, hide_short_help = true, value_name = "RUNS")]
    pub agent_concurrency: Option<usize>,
    /// Runs of agents that a project may have open at once, also those that wait for people [default: 20000]
    #[arg(long, env = "TOOLYARD_OPEN_AGENT_RUNS", global = true, hide_short_help = true, value_name = "RUNS")]
    pub open_agent_runs: Option<u32>,
    /// An OTLP collector that gets a trace of each run of an agent, such as http://127.0.0.1:4318 [default: none]
    #[arg(long, env = "TOOLYARD_OTLP_ENDPOINT", global = true, hide_short_help = true, value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// Seconds after which the work of a node that went away is taken over [default: 30]
    #[arg(long, env = "TOOLYARD_TRIGGER_LEASE", global = true, hide_short_help = true, value_name = "SECONDS")]
    pub trigger_lease: Option<u64>,
    /// Days that ended deliveries and their events are kept [default: 30]
    #[arg(long, env = "TOOLYARD_TRIGGER_RETENTION", global = true, hide_short_help = true, value_name = "DAYS")]
    pub trigger_retention: Option<u64>,
    /// Runs that a project may keep [default: 1000000]
    #[arg(long, env = "TOOLYARD_RUNS_PER_PROJECT", global = true, hide_short_help = true, value_name = "NUMBER")]
    pub runs_per_project: Option<i64>,
    /// Bytes of inputs, outputs and steps of runs that a project may keep [default: 4294967296]
    #[arg(long, env = "TOOLYARD_RUN_BYTES_PER_PROJECT", global = true, hide_short_help = true, value_name = "BYTES")]
    pub run_bytes_per_project: Option<i64>,
    /// Approvals that a project may keep [default: 100000]
    #[arg(long, env = "TOOLYARD_APPROVALS_PER_PROJECT", global = true, hide_short_help = true, value_name = "NUMBER")]
    pub approvals_per_project: Option<i64>,
    /// Bytes of arguments of approvals that a project may keep [default: 268435456]
    #[arg(long, env = "TOOLYARD_APPROVAL_BYTES_PER_PROJECT", global = true, hide_short_help = true, value_name = "BYTES")]
    pub approval_bytes_per_project: Option<i64>,
    /// Schedules that a project may have [default: 10000]
    #[arg(long, env = "TOOLYARD_SCHEDULES_PER_PROJECT", global = true, hide_short_help = true, value_name = "NUMBER")]
    pub schedules_per_project: Option<i64>,
    /// Bytes of schedules that a project may have [default: 67108864]
    #[arg(long, env = "TOOLYARD_SCHEDULE_BYTES_PER_PROJECT", global = true, hide_short_help = true, value_name = "BYTES")]
    pub schedule_bytes_per_project: Option<i64>,
    /// Imports that a project may have [default: 100]
    #[arg(long, env = "TOOLYARD_IMPORTS_PER_PROJECT", global = true, hide_short_help = true, value_name = "NUMBER")]
    pub imports_per_project: Option<i64>,
    /// Bytes of imports that a project may have [default: 100663296]
    #[arg(long, env = "TOOLYARD_IMPORT_BYTES_PER_PROJECT", global = true, hide_short_help = true, value_name = "BYTES")]
    pub import_bytes_per_project: Option<i64>,
    /// Connections that a project may have [default: 20000]
    #[arg(long, env = "TOOLYARD_CONNECTIONS_PER_PROJECT", global = true, hide_short_help = true, value_name = "NUMBER")]
    pub connections_per_project: Option<i64>,
    /// Bytes of connections that a project may have [default: 33554432]
    #[arg(long, env = "TOOLYARD_CONNECTION_BYTES_PER_PROJECT", global = true, hide_short_help = true, value_name = "BYTES")]
    pub connection_bytes_per_project: Option<i64>,
    /// Grants in force that one person or key may have given in a project [default: 100]
    #[arg(long, env = "TOOLYARD_GRANTS_PER_PERSON", global = true, hide_short_help = true, value_name = "NUMBER")]
    pub grants_per_person: Option<i64>,
    /// Grants in force that a project may have [default: 10000]
    #[arg(long, env = "TOOLYARD_GRANTS_PER_PROJECT", global = true, hide_short_help = true, value_name = "NUMBER")]
    pub grants_per_project: Option<i64>,
    /// Clients that may be registered on this server, half of them without anybody who let them in [default: 20000]
    #[arg(long, env = "TOOLYARD_REGISTERED_CLIENTS", global = true, hide_short_help = true, value_name = "NUMBER")]
    pub registered_clients: Option<i64>,
    /// Days that runs are kept, 2 at least [default: 90]
    #[arg(long, env = "TOOLYARD_RUN_RETENTION", global = true, hide_short_help = true, value_name = "DAYS")]
    pub run_retention: Option<u64>,
    /// Days that the record of calls is kept, 2 at least [default: 365]
    #[arg(long, env = "TOOLYARD_CALL_RETENTION", global = true, hide_short_help = true, value_name = "DAYS")]
    pub call_retention: Option<u64>,
    /// Days that approvals are kept, 2 at least [default: 90]
    #[arg(long, env = "TOOLYARD_APPROVAL_RETENTION", global = true, hide_short_help = true, value_name = "DAYS")]
    pub approval_retention: Option<u64>,
    /// Whether a call that only reads is recorded `after` it or, as calls that change something are, also `before` it [default: after]
    #[arg(long, env = "TOOLYARD_AUDIT_READS", global = true, hide_short_help = true, value_name = "WHEN")]
    pub audit_reads: Option<String>,
    /// Whether what is recorded before a call also survives a loss of power; on SQLite each then waits for the disk [default: false]
    #[arg(long, env = "TOOLYARD_AUDIT_SYNC", global = true, hide_short_help = true, value_name = "BOOL")]
    pub audit_sync: Option<bool>,
    /// Whether search also goes by meaning, with the table of words in the binary [default: true]
    #[arg(long, env = "TOOLYARD_SENTENCE_MODEL", global = true, hide_short_help = true, value_name = "BOOL")]
    pub sentence_model: Option<bool>,
    /// An OpenAI-compatible embeddings API that refines search in the background, such as `http://127.0.0.1:11434/v1` [default: none]
    #[arg(long, env = "TOOLYARD_EMBEDDINGS_URL", global = true, hide_short_help = true, value_name = "URL")]
    pub embeddings_url: Option<String>,
    /// The model that the embeddings API is asked for, such as `text-embedding-3-small` [default: none]
    #[arg(long, env = "TOOLYARD_EMBEDDINGS_MODEL", global = true, hide_short_help = true, value_name = "NAME")]
    pub embeddings_model: Option<String>,
    /// Key for the embeddings API, where it wants one [default: none]
    #[arg(long, env = "TOOLYARD_EMBEDDINGS_KEY", global = true, hide_short_help = true, value_name = "KEY", hide_env_values = true)]
    pub embeddings_key: Option<String>,
    /// Key of a Composio project; its toolkits become the provider `composio` [default: none]
    #[arg(long, env = "COMPOSIO_API_KEY", global = true, hide_short_help = true, value_name = "KEY", hide_env_values = true)]
    pub composio_api_key: Option<String>,
    /// Where Composio is [default: https://backend.composio.dev/api/v3.1]
    #[arg(long, env = "COMPOSIO_API_URL", global = true, hide_short_help = true, value_name = "URL")]
    pub composio_api_url: Option<String>,
    /// Where Composio sends its events [default: PUBLIC_URL/triggers/composio/events]
    #[arg(long, env = "COMPOSIO_WEBHOOK_URL", global = true, hide_short_help = true, value_name = "URL")]
    pub composio_webhook_url: Option<String>,
    /// How old the copy of Composio's catalog may get [default: 21600]
    #[arg(long, env = "COMPOSIO_CATALOG_CACHE_TTL_SECONDS", global = true, hide_short_help = true, value_name = "SECONDS")]
    pub composio_catalog_seconds: Option<u64>,
    /// What Composio signs its webhooks with, besides what it says itself [default: none]
    #[arg(long, env = "COMPOSIO_WEBHOOK_SECRET", global = true, hide_short_help = true, value_name = "SECRET", hide_env_values = true)]
    pub composio_webhook_secret: Option<String>,
    /// Whether people may sign in with passwords [default: true]
    #[arg(long, env = "TOOLYARD_PASSWORDS", global = true, hide_short_help = true, value_name = "BOOL")]
    pub passwords: Option<bool>,
    /// Identity providers that people sign in with, a list in JSON; in the file, `[[sign_in]]` tables [default: none]
    #[arg(long, env = "TOOLYARD_SIGN_IN", global = true, hide_short_help = true, value_name = "JSON", hide_env_values = true)]
    pub sign_in: Option<sign_in::Providers>,
    /// Hours after which a session that nobody uses ends [default: 72]
    #[arg(long, env = "TOOLYARD_SESSION_IDLE", global = true, hide_short_help = true, value_name = "HOURS")]
    pub session_idle: Option<u64>,
    /// Days after which a session ends in any case [default: 30]
    #[arg(long, env = "TOOLYARD_SESSION_AGE", global = true, hide_short_help = true, value_name = "DAYS")]
    pub session_age: Option<u64>,
    /// Who gives out access tokens for /mcp, told to MCP clients that ask [default: this server]
    #[arg(long, env = "TOOLYARD_MCP_AUTHORIZATION_SERVER", global = true, hide_short_help = true, value_name = "URL")]
    pub mcp_authorization_server: Option<String>,
    /// Serve the fixtures of the MCP conformance suite at /mcp/conformance, without a key
    #[arg(long, env = "TOOLYARD_MCP_CONFORMANCE", global = true, hide = true)]
    pub mcp_conformance: Option<bool>,
    /// Origins that browsers may call from, separated by commas [default: none]
    #[arg(long, env = "TOOLYARD_CORS_ORIGINS", global = true, hide_short_help = true, value_name = "ORIGINS")]
    pub cors_origins: Option<String>,
    /// What to log, such as `info` or `debug,sqlx=warn` [default: info]
    #[arg(long, env = "TOOLYARD_LOG", global = true, hide_short_help = true, value_name = "FILTER")]
    pub log: Option<String>,
    /// `text` or `json` [default: text on a terminal, else json]
    #[arg(long, env = "TOOLYARD_LOG_FORMAT", global = true, hide_short_help = true, value_name = "FORMAT")]
    pub log_format: Option<String>,
}

/// One setting, for reading and showing all of them alike.
struct Entry {
    name: &'static str,
    secret: bool,
    text: fn(&Settings) -> Option<String>,
    default: fn(&Config) -> String,
}

const ENTRIES: &[Entry] = &[
    Entry { name: "listen", secret: false, text: |s| s.listen.clone(), default: |c| c.listen.to_string() },
    Entry { name: "database_url", secret: true, text: |s| s.database_url.clone(), default: |c| c.database_url.clone() },
    Entry {
        name: "data_dir",
        secret: false,
        text: |s| s.data_dir.as_ref().map(|dir| dir.display().to_string()),
        default: |c| c.data_dir.display().to_string(),
    },
    Entry { name: "public_url", secret: false, text: |s| s.public_url.clone(), default: |c| c.public_url.clone() },
    Entry {
        name: "sealing_key",
        secret: true,
        text: |s| s.sealing_key.clone(),
        default: |c| c.data_dir.join("sealing.key").display().to_string(),
    },
    Entry {
        name: "admin_key",
        secret: true,
        text: |s| s.admin_key.clone(),
        default: |c| c.data_dir.join("operator.key").display().to_string(),
    },
    Entry {
        name: "integrations_dir",
        secret: false,
        text: |s| s.integrations_dir.as_ref().map(|dir| dir.display().to_string()),
        default: |_| String::new(),
    },
    Entry { name: "egress_allow", secret: false, text: |s| s.egress_allow.clone(), default: |_| String::new() },
    Entry { name: "mcp_commands", secret: false, text: |s| s.mcp_commands.clone(), default: |_| String::new() },
    Entry { name: "web_url", secret: false, text: |s| s.web_url.clone(), default: |c| c.web_url.clone() },
    Entry { name: "body_limit", secret: false, text: |s| s.body_limit.map(|n| n.to_string()), default: |c| c.body_limit.to_string() },
    Entry {
        name: "request_timeout",
        secret: false,
        text: |s| s.request_timeout.map(|n| n.to_string()),
        default: |c| c.request_timeout.as_secs().to_string(),
    },
    Entry {
        name: "connections",
        secret: false,
        text: |s| s.connections.map(|n| n.to_string()),
        default: |c| c.connections.total.to_string(),
    },
    Entry {
        name: "connections_per_address",
        secret: false,
        text: |s| s.connections_per_address.map(|n| n.to_string()),
        default: |c| c.connections.per_address.to_string(),
    },
    Entry { name: "trusted_proxies", secret: false, text: |s| s.trusted_proxies.clone(), default: |_| sockets::LOOPBACK.to_owned() },
    Entry {
        name: "header_timeout",
        secret: false,
        text: |s| s.header_timeout.map(|n| n.to_string()),
        default: |c| c.connections.header.as_secs().to_string(),
    },
    Entry {
        name: "idle_timeout",
        secret: false,
        text: |s| s.idle_timeout.map(|n| n.to_string()),
        default: |c| c.connections.idle.as_secs().to_string(),
    },
    Entry { name: "service_timeout", secret: false, text: |s| s.service_timeout.clone(), default: |_| "25".to_owned() },
    Entry { name: "paused", secret: false, text: |s| s.paused.map(|on| on.to_string()), default: |c| c.triggers.paused.to_string() },
    Entry {
        name: "trigger_concurrency",
        secret: false,
        text: |s| s.trigger_concurrency.map(|n| n.to_string()),
        default: |c| c.triggers.concurrency.to_string(),
    },
    Entry {
        name: "agent_concurrency",
        secret: false,
        text: |s| s.agent_concurrency.map(|n| n.to_string()),
        default: |c| c.agent_runs.concurrency.to_string(),
    },
    Entry {
        name: "open_agent_runs",
        secret: false,
        text: |s| s.open_agent_runs.map(|n| n.to_string()),
        default: |c| c.agent_runs.open_runs.to_string(),
    },
    Entry { name: "otlp_endpoint", secret: false, text: |s| s.otlp_endpoint.clone(), default: |_| String::new() },
    Entry {
        name: "trigger_lease",
        secret: false,
        text: |s| s.trigger_lease.map(|n| n.to_string()),
        default: |c| c.triggers.lease.as_secs().to_string(),
    },
    Entry {
        name: "trigger_retention",
        secret: false,
        text: |s| s.trigger_retention.map(|n| n.to_string()),
        default: |c| (c.triggers.retention.as_secs() / DAY).to_string(),
    },
    Entry {
        name: "runs_per_project",
        secret: false,
        text: |s| s.runs_per_project.map(|n| n.to_string()),
        default: |c| c.quotas.runs.quota.rows.to_string(),
    },
    Entry {
        name: "run_bytes_per_project",
        secret: false,
        text: |s| s.run_bytes_per_project.map(|n| n.to_string()),
        default: |c| c.quotas.runs.quota.bytes.to_string(),
    },
    Entry {
        name: "approvals_per_project",
        secret: false,
        text: |s| s.approvals_per_project.map(|n| n.to_string()),
        default: |c| c.quotas.calls.approvals.rows.to_string(),
    },
    Entry {
        name: "approval_bytes_per_project",
        secret: false,
        text: |s| s.approval_bytes_per_project.map(|n| n.to_string()),
        default: |c| c.quotas.calls.approvals.bytes.to_string(),
    },
    Entry {
        name: "schedules_per_project",
        secret: false,
        text: |s| s.schedules_per_project.map(|n| n.to_string()),
        default: |c| c.quotas.schedules.rows.to_string(),
    },
    Entry {
        name: "schedule_bytes_per_project",
        secret: false,
        text: |s| s.schedule_bytes_per_project.map(|n| n.to_string()),
        default: |c| c.quotas.schedules.bytes.to_string(),
    },
    Entry {
        name: "imports_per_project",
        secret: false,
        text: |s| s.imports_per_project.map(|n| n.to_string()),
        default: |c| c.quotas.imports.rows.to_string(),
    },
    Entry {
        name: "import_bytes_per_project",
        secret: false,
        text: |s| s.import_bytes_per_project.map(|n| n.to_string()),
        default: |c| c.quotas.imports.bytes.to_string(),
    },
    Entry {
        name: "connections_per_project",
        secret: false,
        text: |s| s.connections_per_project.map(|n| n.to_string()),
        default: |c| c.quotas.connections.rows.to_string(),
    },
    Entry {
        name: "connection_bytes_per_project",
        secret: false,
        text: |s| s.connection_bytes_per_project.map(|n| n.to_string()),
        default: |c| c.quotas.connections.bytes.to_string(),
    },
    Entry {
        name: "grants_per_person",
        secret: false,
        text: |s| s.grants_per_person.map(|n| n.to_string()),
        default: |c| c.quotas.grants.of_granter.to_string(),
    },
    Entry {
        name: "grants_per_project",
        secret: false,
        text: |s| s.grants_per_project.map(|n| n.to_string()),
        default: |c| c.quotas.grants.of_project.to_string(),
    },
    Entry {
        name: "registered_clients",
        secret: false,
        text: |s| s.registered_clients.map(|n| n.to_string()),
        default: |c| c.quotas.grants.clients.to_string(),
    },
    Entry {
        name: "run_retention",
        secret: false,
        text: |s| s.run_retention.map(|n| n.to_string()),
        default: |c| (c.quotas.runs.retention.as_secs() / DAY).to_string(),
    },
    Entry {
        name: "call_retention",
        secret: false,
        text: |s| s.call_retention.map(|n| n.to_string()),
        default: |c| (c.quotas.calls.call_retention.as_secs() / DAY).to_string(),
    },
    Entry {
        name: "approval_retention",
        secret: false,
        text: |s| s.approval_retention.map(|n| n.to_string()),
        default: |c| (c.quotas.calls.approval_retention.as_secs() / DAY).to_string(),
    },
    Entry {
        name: "audit_reads",
        secret: false,
        text: |s| s.audit_reads.clone(),
        default: |c| if c.audit.reads_first { "before" } else { "after" }.to_owned(),
    },
    Entry { name: "audit_sync", secret: false, text: |s| s.audit_sync.map(|on| on.to_string()), default: |c| c.audit.sync.to_string() },
    Entry {
        name: "sentence_model",
        secret: false,
        text: |s| s.sentence_model.map(|on| on.to_string()),
        default: |c| c.sentence_model.to_string(),
    },
    Entry { name: "embeddings_url", secret: false, text: |s| s.embeddings_url.clone(), default: |_| String::new() },
    Entry { name: "embeddings_model", secret: false, text: |s| s.embeddings_model.clone(), default: |_| String::new() },
    Entry { name: "embeddings_key", secret: true, text: |s| s.embeddings_key.clone(), default: |_| String::new() },
    Entry { name: "composio_api_key", secret: true, text: |s| s.composio_api_key.clone(), default: |_| String::new() },
    Entry { name: "composio_api_url", secret: false, text: |s| s.composio_api_url.clone(), default: |_| composio::URL.to_owned() },
    Entry { name: "composio_webhook_url", secret: false, text: |s| s.composio_webhook_url.clone(), default: |_| String::new() },
    Entry {
        name: "composio_catalog_seconds",
        secret: false,
        text: |s| s.composio_catalog_seconds.map(|seconds| seconds.to_string()),
        default: |c| c.composio_catalog_life.as_secs().to_string(),
    },
    Entry { name: "composio_webhook_secret", secret: true, text: |s| s.composio_webhook_secret.clone(), default: |_| String::new() },
    Entry {
        name: "passwords",
        secret: false,
        text: |s| s.passwords.map(|on| on.to_string()),
        default: |c| c.sign_in.passwords.to_string(),
    },
    Entry { name: "sign_in", secret: false, text: |s| s.sign_in.as_ref().map(sign_in::Providers::names), default: |_| String::new() },
    Entry {
        name: "session_idle",
        secret: false,
        text: |s| s.session_idle.map(|n| n.to_string()),
        default: |c| (c.sign_in.idle.as_secs() / HOUR).to_string(),
    },
    Entry {
        name: "session_age",
        secret: false,
        text: |s| s.session_age.map(|n| n.to_string()),
        default: |c| (c.sign_in.age.as_secs() / DAY).to_string(),
    },
    Entry { name: "mcp_authorization_server", secret: false, text: |s| s.mcp_authorization_server.clone(), default: |_| String::new() },
    Entry { name: "cors_origins", secret: false, text: |s| s.cors_origins.clone(), default: |c| c.cors_origins.join(",") },
    Entry { name: "log", secret: false, text: |s| s.log.clone(), default: |c| c.log.clone() },
    Entry { name: "log_format", secret: false, text: |s| s.log_format.clone(), default: |c| c.log_format.name().to_owned() },
];

/// A setting that somebody gave, and where. Of a secret one nothing is repeated.
#[derive(Clone, Debug)]
struct Given {
    name: &'static str,
    value: String,
    source: &'static str,
}

/// Every setting that the command line (with the environment) or the file gives.
fn given(line: &Settings, file: &Settings) -> Vec<Given> {
    let one = |entry: &Entry| {
        let (value, source) = (entry.text)(line).map(|value| (value, "flag")).or_else(|| Some(((entry.text)(file)?, "file")))?;
        let value = match (entry.secret, value.is_empty()) {
            (true, true) => "not set".to_owned(),
            (true, false) => "set".to_owned(),
            (false, _) => without_password(value),
        };
        Some(Given { name: entry.name, value, source })
    };
    ENTRIES.iter().filter_map(one).collect()
}

/// What is in force.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting that is on or off")]
pub struct Config {
    pub listen: SocketAddr,
    pub database_url: String,
    pub data_dir: PathBuf,
    /// Where others reach this server; from the listening address unless it was set.
    pub public_url: String,
    pub public_url_set: bool,
    pub web_url_set: bool,
    pub sealing_key: Option<String>,
    pub admin_key: Option<String>,
    pub integrations_dir: Option<PathBuf>,
    pub egress_allow: String,
    pub mcp_commands: String,
    pub web_url: String,
    pub body_limit: usize,
    pub request_timeout: Duration,
    pub connections: ConnectionLimits,
    pub quotas: Quotas,
    pub service_timeout: TimeLimits,
    pub triggers: triggers::Settings,
    pub agent_runs: agent_runs::Settings,
    pub otlp_endpoint: Option<url::Url>,
    pub audit: calls::AuditSettings,
    pub sentence_model: bool,
    pub embeddings: Option<::embeddings::Settings>,
    pub composio_api_key: Option<String>,
    pub composio_api_url: url::Url,
    pub composio_webhook_url: Option<String>,
    pub composio_catalog_life: Duration,
    pub composio_webhook_secret: Option<String>,
    pub sign_in: people::Settings,
    pub mcp_authorization_server: Option<String>,
    pub mcp_conformance: bool,
    pub cors_origins: Vec<String>,
    pub log: String,
    pub log_format: LogFormat,
    given: Vec<Given>,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Auto,
    Text,
    Json,
}

impl LogFormat {
    fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// An address that a browser on this machine can open.
fn reachable(address: SocketAddr) -> String {
    if address.ip().is_unspecified() { format!("http://127.0.0.1:{}", address.port()) } else { format!("http://{address}") }
}

/// `127.0.0.1:8665`, or a name of this machine in place of the number.
fn listening_address(text: &str) -> anyhow::Result<SocketAddr> {
    let wrong = || format!("`{text}` is not an address; use HOST:PORT, such as 127.0.0.1:8665");
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let found: Vec<SocketAddr> = text.to_socket_addrs().with_context(wrong)?.collect();
    // `localhost` is often both; what else listens there by default is on the older one.
    found.iter().find(|address| address.is_ipv4()).or(found.first()).copied().with_context(wrong)
}

/// Reads the file that `--config` names, or `toolyard.toml` if it is there.
pub fn read_file(named: Option<&Path>) -> anyhow::Result<Settings> {
    let path = named.unwrap_or(Path::new(FILE));
    match std::fs::read_to_string(path) {
        Ok(text) => toml::from_str(&text).with_context(|| format!("cannot read `{}`", path.display())),
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => Ok(Settings::default()),
        Err(error) => Err(error).with_context(|| format!("cannot read `{}`", path.display())),
    }
}

impl Config {
    /// Settles every setting from the command line (which holds the environment too) and the file.
    pub fn settle(line: Settings, file: Settings) -> anyhow::Result<Self> {
        let given = given(&line, &file);
        let listen = line.listen.or(file.listen).unwrap_or_else(|| "127.0.0.1:8665".to_owned());
        let listen = listening_address(&listen)?;
        let data_dir = line.data_dir.or(file.data_dir).unwrap_or_else(|| PathBuf::from("toolyard-data"));
        let database_url = line.database_url.or(file.database_url);
        let named = line.public_url.or(file.public_url);
        let public_url_set = named.is_some();
        let public_url = named.unwrap_or_else(|| reachable(listen));
        let is_web = |url: &url::Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        if !public_url.parse().is_ok_and(|url| is_web(&url)) {
            bail!("`{public_url}` is not a web address; `public_url` starts with http:// or https://");
        }
        let origins = line.cors_origins.or(file.cors_origins).unwrap_or_default();
        let log_format = match line.log_format.or(file.log_format).as_deref() {
            None | Some("auto") => LogFormat::Auto,
            Some("text") => LogFormat::Text,
            Some("json") => LogFormat::Json,
            Some(other) => bail!("`{other}` is not a log format; use text or json"),
        };
        let connections = sockets::limits(&Settings {
            connections: line.connections.or(file.connections),
            connections_per_address: line.connections_per_address.or(file.connections_per_address),
            trusted_proxies: line.trusted_proxies.or(file.trusted_proxies),
            header_timeout: line.header_timeout.or(file.header_timeout),
            idle_timeout: line.idle_timeout.or(file.idle_timeout),
            ..Settings::default()
        })?;
        let quotas = quotas::read(&Settings {
            runs_per_project: line.runs_per_project.or(file.runs_per_project),
            run_bytes_per_project: line.run_bytes_per_project.or(file.run_bytes_per_project),
            approvals_per_project: line.approvals_per_project.or(file.approvals_per_project),
            approval_bytes_per_project: line.approval_bytes_per_project.or(file.approval_bytes_per_project),
            schedules_per_project: line.schedules_per_project.or(file.schedules_per_project),
            schedule_bytes_per_project: line.schedule_bytes_per_project.or(file.schedule_bytes_per_project),
            imports_per_project: line.imports_per_project.or(file.imports_per_project),
            import_bytes_per_project: line.import_bytes_per_project.or(file.import_bytes_per_project),
            connections_per_project: line.connections_per_project.or(file.connections_per_project),
            connection_bytes_per_project: line.connection_bytes_per_project.or(file.connection_bytes_per_project),
            grants_per_person: line.grants_per_person.or(file.grants_per_person),
            grants_per_project: line.grants_per_project.or(file.grants_per_project),
            registered_clients: line.registered_clients.or(file.registered_clients),
            run_retention: line.run_retention.or(file.run_retention),
            call_retention: line.call_retention.or(file.call_retention),
            approval_retention: line.approval_retention.or(file.approval_retention),
            ..Settings::default()
        });
        let sign_in = sign_in::read(Settings {
            passwords: line.passwords.or(file.passwords),
            sign_in: line.sign_in.or(file.sign_in),
            session_idle: line.session_idle.or(file.session_idle),
            session_age: line.session_age.or(file.session_age),
            ..Settings::default()
        })?;
        let service_timeout = line.service_timeout.or(file.service_timeout).unwrap_or_default();
        let service_timeout =
            read_service_timeout(&service_timeout).map_err(|error| anyhow::anyhow!("`service_timeout` is not usable: {error}"))?;
        let paused = line.paused.or(file.paused).unwrap_or_default();
        let mut triggers = triggers::Settings { paused, schedules: quotas.schedules, ..triggers::Settings::default() };
        if let Some(runs) = line.trigger_concurrency.or(file.trigger_concurrency) {
            triggers.concurrency = runs.max(1);
            triggers.project_concurrency = (runs / 2).max(1);
        }
        if let Some(seconds) = line.trigger_lease.or(file.trigger_lease) {
            triggers.lease = Duration::from_secs(seconds.max(1));
        }
        if let Some(days) = line.trigger_retention.or(file.trigger_retention) {
            triggers.retention = Duration::from_secs(days.max(1).saturating_mul(DAY));
        }
        let mut agent_runs = agent_runs::Settings { paused, lease: triggers.lease, ..agent_runs::Settings::default() };
        if let Some(runs) = line.agent_concurrency.or(file.agent_concurrency) {
            agent_runs.concurrency = runs.max(1);
            agent_runs.project_concurrency = (runs / 2).max(1);
        }
        if let Some(runs) = line.open_agent_runs.or(file.open_agent_runs) {
            agent_runs.open_runs = i64::from(runs.max(1));
        }
        let reads_first = match line.audit_reads.or(file.audit_reads).as_deref() {
            None | Some("after") => false,
            Some("before") => true,
            Some(other) => bail!("`{other}` is no time for `audit_reads`; use after or before"),
        };
        let sync = line.audit_sync.or(file.audit_sync).unwrap_or_default();
        let sentence_model = line.sentence_model.or(file.sentence_model).unwrap_or(true);
        let embeddings = embeddings::read(
            Settings {
                embeddings_url: line.embeddings_url.or(file.embeddings_url),
                embeddings_model: line.embeddings_model.or(file.embeddings_model),
                embeddings_key: line.embeddings_key.or(file.embeddings_key),
                ..Settings::default()
            },
            sentence_model,
        )?;
        Ok(Self {
            listen,
            database_url: database_url.unwrap_or_else(|| format!("sqlite://{}", data_dir.join("toolyard.db").display())),
            data_dir,
            sealing_key: line.sealing_key.or(file.sealing_key).filter(|key| !key.is_empty()),
            admin_key: line.admin_key.or(file.admin_key).filter(|key| !key.is_empty()),
            integrations_dir: line.integrations_dir.or(file.integrations_dir),
            egress_allow: line.egress_allow.or(file.egress_allow).unwrap_or_default(),
            mcp_commands: line.mcp_commands.or(file.mcp_commands).unwrap_or_default(),
            web_url_set: line.web_url.is_some() || file.web_url.is_some(),
            web_url: line.web_url.or(file.web_url).unwrap_or_else(|| public_url.clone()),
            body_limit: line.body_limit.or(file.body_limit).unwrap_or(1 << 20),
            request_timeout: Duration::from_secs(line.request_timeout.or(file.request_timeout).unwrap_or(60).max(1)),
            connections,
            quotas,
            service_timeout,
            triggers,
            agent_runs,
            otlp_endpoint: web_address("otlp_endpoint", line.otlp_endpoint.or(file.otlp_endpoint))?,
            audit: calls::AuditSettings { reads_first, sync, lease: triggers.lease },
            sentence_model,
            embeddings,
            composio_api_key: line
                .composio_api_key
                .or(file.composio_api_key)
                .map(|key| key.trim().to_owned())
                .filter(|key| !key.is_empty()),
            composio_api_url: web_address("composio_api_url", line.composio_api_url.or(file.composio_api_url))?
                .map_or_else(|| composio::URL.parse().context("the built-in address of Composio"), Ok)?,
            composio_webhook_url: web_address("composio_webhook_url", line.composio_webhook_url.or(file.composio_webhook_url))?
                .map(String::from),
            composio_catalog_life: Duration::from_secs(
                line.composio_catalog_seconds.or(file.composio_catalog_seconds).unwrap_or(6 * 60 * 60).max(60),
            ),
            sign_in,
            composio_webhook_secret: line.composio_webhook_secret.or(file.composio_webhook_secret),
            mcp_authorization_server: line.mcp_authorization_server.or(file.mcp_authorization_server).filter(|url| !url.is_empty()),
            mcp_conformance: line.mcp_conformance.or(file.mcp_conformance).unwrap_or_default(),
            cors_origins: origins.split(',').map(str::trim).filter(|origin| !origin.is_empty()).map(str::to_owned).collect(),
            log: line.log.or(file.log).unwrap_or_else(|| "info".to_owned()),
            log_format,
            public_url: public_url.trim_end_matches('/').to_owned(),
            public_url_set,
            given,
        })
    }

    /// Tells flags from the environment, which the command line alone can.
    #[must_use]
    pub fn with_sources(mut self, matches: &ArgMatches) -> Self {
        for given in &mut self.given {
            if matches.value_source(given.name) == Some(ValueSource::EnvVariable) {
                given.source = "env";
            }
        }
        self
    }

    /// Every setting as it is in force, for the operator.
    pub fn in_force(&self) -> Vec<Setting> {
        let one = |entry: &Entry| match self.given.iter().find(|given| given.name == entry.name) {
            Some(Given { name, value, source }) => Setting { name, value: value.clone(), source },
            None if entry.secret => Setting { name: entry.name, value: "not set".to_owned(), source: "default" },
            None => Setting { name: entry.name, value: (entry.default)(self), source: "default" },
        };
        ENTRIES.iter().map(one).collect()
    }

    /// Learns the address that the system chose, when the port was left to it.
    pub fn listens_on(&mut self, address: SocketAddr) {
        self.listen = address;
        if !self.public_url_set {
            self.public_url = reachable(address);
        }
        if !self.web_url_set {
            self.web_url.clone_from(&self.public_url);
        }
    }
}

/// What is in force and where each value comes from, secrets hidden.
pub fn describe(matches: &ArgMatches, line: &Settings, file: &Settings, config: &Config) -> String {
    let mut text = String::new();
    for entry in ENTRIES {
        let given = (entry.text)(line).or_else(|| (entry.text)(file));
        let source = match matches.value_source(entry.name) {
            Some(ValueSource::CommandLine) => "flag",
            Some(ValueSource::EnvVariable) => "environment",
            _ if (entry.text)(file).is_some() => "file",
            _ => "default",
        };
        let value = match &given {
            Some(value) if entry.secret => hide(value),
            Some(value) => value.clone(),
            None => (entry.default)(config),
        };
        let _ = writeln!(text, "{:<16} = {:<50} # {source}", entry.name, format!("\"{value}\""));
    }
    text
}

/// A secret as it may be shown: an address without its password, anything else not at all.
fn hide(value: &str) -> String {
    if value.contains("://") { store::redact(value) } else { "(hidden)".to_owned() }
}

/// An address without the password that somebody may have put into it; anything else as it is.
fn without_password(value: String) -> String {
    let has_password = value.parse::<url::Url>().is_ok_and(|url| url.password().is_some());
    if has_password { store::redact(&value) } else { value }
}

/// An `http` or `https` address, if one was given.
fn web_address(setting: &str, given: Option<String>) -> anyhow::Result<Option<url::Url>> {
    let Some(given) = given.filter(|given| !given.trim().is_empty()) else { return Ok(None) };
    let url: url::Url = given.trim().parse().with_context(|| format!("`{setting}` is not an address: {given}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        bail!("`{setting}` must begin with http:// or https://: {given}");
    }
    Ok(Some(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_wins_over_the_file() {
        let line = Settings { listen: Some("127.0.0.1:1".to_owned()), ..Settings::default() };
        let file: Settings = toml::from_str("listen = '127.0.0.1:2'\ndata_dir = '/var/lib/yard'").unwrap();
        let config = Config::settle(line, file).unwrap();
        assert_eq!(config.listen.port(), 1);
        assert_eq!(config.database_url, "sqlite:///var/lib/yard/toolyard.db");
        assert!(toml::from_str::<Settings>("lisen = 'x'").is_err());
    }

    #[test]
    fn a_name_of_this_machine_is_an_address() {
        assert_eq!(listening_address("127.0.0.1:1").unwrap().to_string(), "127.0.0.1:1");
        let local = listening_address("localhost:8665").unwrap();
        assert!(local.ip().is_loopback() && local.port() == 8665, "{local}");
        for wrong in ["localhost", "nonsense", "8665", "http://localhost:8665", "localhost:x"] {
            assert!(listening_address(wrong).unwrap_err().to_string().contains("is not an address"), "{wrong}");
        }
    }

    #[test]
    fn what_is_in_force_says_where_it_comes_from_and_no_secret() {
        let key = Some("k3y".to_owned());
        let line = Settings { listen: Some("127.0.0.1:1".to_owned()), admin_key: key.clone(), ..Settings::default() };
        let url = Some("http://yard:k3y@127.0.0.1:1/v1".to_owned());
        let file = Settings { embeddings_url: url, embeddings_model: Some("m".to_owned()), body_limit: Some(5), ..Settings::default() };
        let all = Config::settle(line, file).unwrap().in_force();
        let of =
            |name: &str| all.iter().find(|setting| setting.name == name).map(|setting| (setting.value.as_str(), setting.source)).unwrap();
        assert_eq!(of("listen"), ("127.0.0.1:1", "flag"));
        assert_eq!(of("body_limit"), ("5", "file"));
        assert_eq!(of("request_timeout"), ("60", "default"));
        assert_eq!((of("admin_key"), of("sealing_key")), (("set", "flag"), ("not set", "default")));
        assert!(all.iter().all(|setting| !setting.value.contains("k3y")), "{all:?}");
    }

    #[test]
    fn secrets_are_hidden() {
        assert_eq!(hide("postgres://yard:secret@db/yard"), "postgres://yard:…@db/yard");
        assert_eq!(hide("postgres://db/yard?user=yard&password=secret"), "postgres://db/yard");
        assert_eq!(hide("sqlite://x.db"), "sqlite://x.db");
        assert_eq!(hide("c2VjcmV0"), "(hidden)");
    }
}
