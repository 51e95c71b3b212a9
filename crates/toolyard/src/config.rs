//! Configuration: flag over environment over `toolyard.toml` over default.

use std::fmt::Write as _;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args};
use providers::TimeLimits;
use serde::Deserialize;

const DAY: u64 = 24 * 60 * 60;
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
    /// Seconds that a service may take to answer, and others by integration, such as `25,github=60,openapi/orders=120` [default: 25]
    #[arg(long, env = "TOOLYARD_SERVICE_TIMEOUT", global = true, hide_short_help = true, value_name = "SECONDS")]
    pub service_timeout: Option<String>,
    /// Start without running triggers, for a restored copy; events that arrive are kept [default: false]
    #[arg(long, env = "TOOLYARD_PAUSED", global = true, hide_short_help = true, value_name = "BOOL")]
    pub paused: Option<bool>,
    /// Runs of triggers that one node makes at once; half of them for one project at most [default: 64]
    #[arg(long, env = "TOOLYARD_TRIGGER_CONCURRENCY", global = true, hide_short_help = true, value_name = "RUNS")]
    pub trigger_concurrency: Option<usize>,
    /// Seconds after which the work of a node that went away is taken over [default: 30]
    #[arg(long, env = "TOOLYARD_TRIGGER_LEASE", global = true, hide_short_help = true, value_name = "SECONDS")]
    pub trigger_lease: Option<u64>,
    /// Days that ended deliveries and their events are kept [default: 30]
    #[arg(long, env = "TOOLYARD_TRIGGER_RETENTION", global = true, hide_short_help = true, value_name = "DAYS")]
    pub trigger_retention: Option<u64>,
    /// Whether search also goes by meaning, with a model that takes 90 MB of memory once it is used [default: true]
    #[arg(long, env = "TOOLYARD_SENTENCE_MODEL", global = true, hide_short_help = true, value_name = "BOOL")]
    pub sentence_model: Option<bool>,
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
    /// Who gives out access tokens for /mcp, told to MCP clients that ask [default: nobody; project keys are tokens]
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
    Entry { name: "service_timeout", secret: false, text: |s| s.service_timeout.clone(), default: |_| "25".to_owned() },
    Entry { name: "paused", secret: false, text: |s| s.paused.map(|on| on.to_string()), default: |c| c.triggers.paused.to_string() },
    Entry {
        name: "trigger_concurrency",
        secret: false,
        text: |s| s.trigger_concurrency.map(|n| n.to_string()),
        default: |c| c.triggers.concurrency.to_string(),
    },
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
        name: "sentence_model",
        secret: false,
        text: |s| s.sentence_model.map(|on| on.to_string()),
        default: |c| c.sentence_model.to_string(),
    },
    Entry { name: "composio_api_key", secret: true, text: |s| s.composio_api_key.clone(), default: |_| String::new() },
    Entry {
        name: "composio_api_url",
        secret: false,
        text: |s| s.composio_api_url.clone(),
        default: |_| providers::composio::URL.to_owned(),
    },
    Entry { name: "composio_webhook_url", secret: false, text: |s| s.composio_webhook_url.clone(), default: |_| String::new() },
    Entry {
        name: "composio_catalog_seconds",
        secret: false,
        text: |s| s.composio_catalog_seconds.map(|seconds| seconds.to_string()),
        default: |c| c.composio_catalog_life.as_secs().to_string(),
    },
    Entry { name: "composio_webhook_secret", secret: true, text: |s| s.composio_webhook_secret.clone(), default: |_| String::new() },
    Entry { name: "mcp_authorization_server", secret: false, text: |s| s.mcp_authorization_server.clone(), default: |_| String::new() },
    Entry { name: "cors_origins", secret: false, text: |s| s.cors_origins.clone(), default: |c| c.cors_origins.join(",") },
    Entry { name: "log", secret: false, text: |s| s.log.clone(), default: |c| c.log.clone() },
    Entry { name: "log_format", secret: false, text: |s| s.log_format.clone(), default: |c| c.log_format.name().to_owned() },
];

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
    pub service_timeout: TimeLimits,
    pub triggers: triggers::Settings,
    pub sentence_model: bool,
    pub composio_api_key: Option<String>,
    pub composio_api_url: url::Url,
    pub composio_webhook_url: Option<String>,
    pub composio_catalog_life: Duration,
    pub composio_webhook_secret: Option<String>,
    pub mcp_authorization_server: Option<String>,
    pub mcp_conformance: bool,
    pub cors_origins: Vec<String>,
    pub log: String,
    pub log_format: LogFormat,
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
        let service_timeout = line.service_timeout.or(file.service_timeout).unwrap_or_default();
        let service_timeout = service_timeout.parse().map_err(|error| anyhow::anyhow!("`service_timeout` is not usable: {error}"))?;
        let paused = line.paused.or(file.paused).unwrap_or_default();
        let mut triggers = triggers::Settings { paused, ..triggers::Settings::default() };
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
            service_timeout,
            triggers,
            sentence_model: line.sentence_model.or(file.sentence_model).unwrap_or(true),
            composio_api_key: line
                .composio_api_key
                .or(file.composio_api_key)
                .map(|key| key.trim().to_owned())
                .filter(|key| !key.is_empty()),
            composio_api_url: web_address("composio_api_url", line.composio_api_url.or(file.composio_api_url))?
                .map_or_else(|| providers::composio::URL.parse().context("the built-in address of Composio"), Ok)?,
            composio_webhook_url: web_address("composio_webhook_url", line.composio_webhook_url.or(file.composio_webhook_url))?
                .map(String::from),
            composio_catalog_life: Duration::from_secs(
                line.composio_catalog_seconds.or(file.composio_catalog_seconds).unwrap_or(6 * 60 * 60).max(60),
            ),
            composio_webhook_secret: line.composio_webhook_secret.or(file.composio_webhook_secret),
            mcp_authorization_server: line.mcp_authorization_server.or(file.mcp_authorization_server).filter(|url| !url.is_empty()),
            mcp_conformance: line.mcp_conformance.or(file.mcp_conformance).unwrap_or_default(),
            cors_origins: origins.split(',').map(str::trim).filter(|origin| !origin.is_empty()).map(str::to_owned).collect(),
            log: line.log.or(file.log).unwrap_or_else(|| "info".to_owned()),
            log_format,
            public_url: public_url.trim_end_matches('/').to_owned(),
            public_url_set,
        })
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
    fn secrets_are_hidden() {
        assert_eq!(hide("postgres://yard:secret@db/yard"), "postgres://yard:…@db/yard");
        assert_eq!(hide("postgres://db/yard?user=yard&password=secret"), "postgres://db/yard");
        assert_eq!(hide("sqlite://x.db"), "sqlite://x.db");
        assert_eq!(hide("c2VjcmV0"), "(hidden)");
    }
}
