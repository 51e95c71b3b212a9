//! The wiring: from a configuration to a running server.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use accounts::Accounts;
use agent_runs::{AgentRun, AgentRuns};
use agents::Agents;
use anyhow::Context;
use calls::{Calls, NewestCalls, Runner};
use catalog::{Catalog, Source, Unconfigured};
use composio::Composio;
use composio_api::ComposioApi;
use connections::{Connections, Connector, Consumer, Host, Listener};
use definitions::Definitions;
use discovery::{Discovery, Finder};
use egress::Egress;
use embeddings::Embeddings;
use end_users::{EndUsers, PersonalRows};
use futures_util::future::BoxFuture;
use grants::Grants;
use imports::{Imports, Mirror};
use kernel::key::PlainKey;
use kernel::{Clock, DeliveryId, Scope, Timestamp};
use mcp_client::Mcp;
use native::Native;
use openapi::OpenApi;
use people::People;
use secrets::Secrets;
use sentences::Sentences;
use server::addresses::DiscoveryAddresses;
use server::{App, ConnectionLimits, Options, Parts};
use store::{Db, StoreError};
use tokio::net::TcpListener;
use triggers::{Completion, EventSource, ProjectWebhook, State, TriggerError, Triggers};
use user_sessions::UserSessions;
use work::Workers;
use workflows::Workflows;

use crate::config::Config;
use crate::files;
use crate::upkeep::Upkeep;
use crate::vault::{self, Vault};

/// How long a stopping server waits for what is in flight.
const GRACE: Duration = Duration::from_secs(30);
/// How long an MCP server that nobody calls is kept.
const MCP_IDLE: Duration = Duration::from_mins(10);

/// Everything that is open: the database and the domains over it.
#[derive(Debug)]
pub struct Yard {
    pub config: Config,
    pub db: Db,
    pub clock: Clock,
    pub workers: Workers,
    pub vault: Vault,
    pub accounts: Accounts,
    pub people: People,
    pub grants: Grants,
    pub catalog: Catalog,
    pub connections: Connections,
    pub end_users: EndUsers,
    pub user_sessions: UserSessions,
    pub imports: Imports,
    pub secrets: Secrets,
    pub mcp: Arc<Mcp>,
    pub composio: Option<Arc<Composio>>,
    pub embeddings: Option<Arc<Embeddings>>,
    pub(crate) upkeep: Upkeep,
    pub workflows: Workflows,
    pub definitions: Definitions,
    pub discovery: Discovery,
    pub calls: Calls,
    pub triggers: Triggers,
    pub agents: Agents,
    pub agent_runs: AgentRuns,
    pub composio_api: ComposioApi,
    /// Kept here, because connections, triggers and end users only point at it.
    pub webhooks: Arc<ComposioApi>,
    /// Kept here, because connections only point at them.
    pub consumers: [Arc<dyn Consumer>; 3],
    /// Kept here, because end users only point at them.
    pub keepers: [Arc<dyn PersonalRows>; 6],
    pub operator_key: PlainKey,
    /// When it was opened.
    pub started_at: Timestamp,
    /// The first project's key, when this start made it.
    pub first_key: Option<PlainKey>,
    /// What invites the first project's owner, when this start made it.
    pub first_invitation: Option<PlainKey>,
}

impl Yard {
    /// Opens the database, brings it up to date and makes what the first start makes.
    pub async fn open(config: Config) -> anyhow::Result<Self> {
        Self::open_at(config, Clock::system()).await
    }

    /// The same, with a clock of the caller's.
    pub async fn open_at(config: Config, clock: Clock) -> anyhow::Result<Self> {
        files::ensure_dir(&config.data_dir)?;
        let _starting = files::lock(&config.data_dir)?;
        let db = connect(&config).await?;
        vault::require_key(&config, &db).await?;
        let ring = vault::key_ring(&config)?;
        db.migrate().await.context("cannot bring the database up to date")?;
        let vault = vault::open(&db, vault::sealer(&config, ring)).await?;
        let operator_key = operator_key(&config)?;
        let accounts = Accounts::new(db.clone(), clock.clone());
        let people = People::new(people::Parts {
            db: db.clone(),
            clock: clock.clone(),
            accounts: accounts.clone(),
            sealer: vault.sealer.clone(),
            signer: vault.signer.clone(),
            egress: sign_in_egress(&config)?,
            operator_key: operator_key.hash(),
            settings: config.sign_in.clone(),
        });
        let egress = egress(&config)?;
        let grants = Grants::new(db.clone(), clock.clone(), egress.clone(), config.quotas.grants);
        let workers = Workers::default();
        let added = config.integrations_dir.as_ref().map(|dir| native::read_dir(dir)).transpose();
        let added = added.context("cannot read the integrations directory")?.unwrap_or_default();
        let native = Native::new(native::each_built_in().chain(added.into_iter().map(Ok)), egress.clone())?.with_workers(workers.clone());
        let native = native.within(config.service_timeout.clone());
        let native = Arc::new(native.map_err(|error| anyhow::anyhow!("`service_timeout` is not usable: {error}"))?);
        let openapi = Arc::new(OpenApi::new(egress.clone()).with_workers(workers.clone()).within(config.service_timeout.clone()));
        let (changes, changed) = tokio::sync::mpsc::unbounded_channel();
        let mcp = Arc::new(Mcp::new(egress.clone(), workers.clone(), mcp_settings(&config), changes));
        let mirror = Mirror::new(db.clone(), vault.sealer.clone(), vec![openapi.clone(), mcp.clone()]);
        let composio = composio(&config, &workers, &clock)?;
        let mut listed = vec![native.clone() as Arc<dyn Source>, mirror.source(OpenApi::about()), mirror.source(Mcp::about())];
        listed.extend(composio.clone().map(|composio| composio as Arc<dyn Source>));
        let mut catalog = Catalog::new(listed);
        if composio.is_none() {
            catalog = catalog.without(Unconfigured { provider: composio::KEY, setting: "COMPOSIO_API_KEY" });
        }
        if config.sentence_model {
            catalog = catalog.with_embedder(Arc::new(Sentences::new()));
        }
        let embeddings = embeddings(&config, &db, &clock)?;
        if let Some(embeddings) = &embeddings {
            catalog = catalog.with_remote_embedder(embeddings.clone());
        }
        let end_users = EndUsers::new(db.clone(), clock.clone());
        let connections = Connections::new(connections::Parts {
            db: db.clone(),
            clock: clock.clone(),
            sealer: vault.sealer.clone(),
            signer: vault.signer.clone(),
            catalog: catalog.clone(),
            egress: egress.clone(),
            connectors: HashMap::from([
                (native::KEY, native.clone() as Arc<dyn Connector>),
                (openapi::KEY, openapi.clone() as Arc<dyn Connector>),
                (mcp_client::KEY, mcp.clone() as Arc<dyn Connector>),
            ]),
            hosts: composio.iter().map(|composio| (composio::KEY, composio.clone() as Arc<dyn Host>)).collect(),
            pages: server::addresses::connect_pages(&config.public_url),
            quota: config.quotas.connections,
            end_users: end_users.clone(),
        });
        let imports = Imports::new(imports::Parts {
            db: db.clone(),
            clock: clock.clone(),
            sealer: vault.sealer.clone(),
            catalog: catalog.clone(),
            mirror,
            connections: connections.clone(),
            quota: config.quotas.imports,
            workers: workers.clone(),
        });
        imports.hear(changed);
        let mut sources = HashMap::from([(native::KEY, native.clone() as Arc<dyn EventSource>)]);
        let mut runners = HashMap::from([
            (native::KEY, native as Arc<dyn Runner>),
            (openapi::KEY, openapi as Arc<dyn Runner>),
            (mcp_client::KEY, mcp.clone() as Arc<dyn Runner>),
        ]);
        if let Some(composio) = &composio {
            sources.insert(composio::KEY, composio.clone());
            runners.insert(composio::KEY, composio.clone());
        }
        let finders = composio.iter().map(|composio| composio.clone() as Arc<dyn Finder>).collect();
        let secrets = Secrets::new(db.clone(), clock.clone(), vault.sealer.clone(), config.quotas.calls.call_retention);
        let (workflows, executor) = Workflows::open(workflows::Parts {
            db: db.clone(),
            clock: clock.clone(),
            egress: egress.clone(),
            signer: vault.signer.clone(),
            sealer: vault.sealer.clone(),
            secrets: secrets.clone(),
            limits: config.quotas.runs,
            workers: workers.clone(),
        });
        workflows.read_old_rows().await.context("cannot read the rows of an earlier version")?;
        definitions::ops::check_all().map_err(|problems| anyhow::anyhow!(problems))?;
        let definitions = Definitions::new(catalog.clone(), connections.clone(), workflows.clone(), secrets.clone());
        let discovery = Discovery::new(discovery::Parts {
            db: db.clone(),
            clock: clock.clone(),
            catalog: catalog.clone(),
            connections: connections.clone(),
            workers: workers.clone(),
            addresses: Arc::new(DiscoveryAddresses),
            finders,
            recent_calls: Arc::new(NewestCalls::new(db.clone())),
        });
        let calls = Calls::new(calls::Parts {
            db: db.clone(),
            clock: clock.clone(),
            sealer: vault.sealer.clone(),
            catalog: catalog.clone(),
            connections: connections.clone(),
            discovery: discovery.clone(),
            executor,
            runners,
            audit: config.audit,
            limits: config.quotas.calls,
            op_address: server::addresses::op,
            public_url: config.public_url.clone(),
            approval_address: server::addresses::approval,
            accounts: accounts.clone(),
            egress: egress.clone(),
        });
        let triggers = Triggers::new(triggers::Parts {
            db: db.clone(),
            clock: clock.clone(),
            sealer: vault.sealer.clone(),
            catalog: catalog.clone(),
            connections: connections.clone(),
            workflows: workflows.clone(),
            runs: Arc::new(calls.clone()),
            accounts: accounts.clone(),
            workers: workers.clone(),
            sources,
            public_url: config.public_url.clone(),
            hub_url: config.composio_webhook_url.clone(),
            settings: config.triggers,
        });
        let agents = Agents::new(agents::Parts {
            db: db.clone(),
            clock: clock.clone(),
            catalog: catalog.clone(),
            connections: connections.clone(),
            workers: workers.clone(),
            definitions: definitions.clone(),
            calls: calls.clone(),
        });
        let agent_runs = AgentRuns::new(agent_runs::Parts {
            db: db.clone(),
            clock: clock.clone(),
            sealer: vault.sealer.clone(),
            workers: workers.clone(),
            egress: egress.clone(),
            accounts: accounts.clone(),
            catalog: catalog.clone(),
            connections: connections.clone(),
            secrets: secrets.clone(),
            workflows: workflows.clone(),
            calls: calls.clone(),
            agents: agents.clone(),
            settings: config.agent_runs,
            collector: collector(&config)?,
        });
        agent_runs.set_deliveries(Arc::new(WaitingDeliveries(triggers.clone())));
        let consumers: [Arc<dyn Consumer>; 3] = [Arc::new(calls.clone()), Arc::new(triggers.clone()), Arc::new(agents.clone())];
        for consumer in &consumers {
            connections.register(consumer);
        }
        let user_sessions = UserSessions::new(db.clone(), clock.clone(), accounts.clone());
        // In this order: who is forgotten begins nothing more, then loses triggers, then the accounts behind them.
        let keepers: [Arc<dyn PersonalRows>; 6] = [
            Arc::new(user_sessions.clone()),
            Arc::new(triggers.clone()),
            Arc::new(agent_runs.clone()),
            Arc::new(connections.clone()),
            Arc::new(calls.clone()),
            Arc::new(workflows.clone()),
        ];
        for keeper in &keepers {
            end_users.register(keeper);
        }
        let composio_api = ComposioApi::new(composio_api::Parts {
            db: db.clone(),
            clock: clock.clone(),
            sealer: vault.sealer.clone(),
            workers: workers.clone(),
            accounts: accounts.clone(),
            catalog: catalog.clone(),
            connections: connections.clone(),
            end_users: end_users.clone(),
            user_sessions: user_sessions.clone(),
            calls: calls.clone(),
            definitions: definitions.clone(),
            discovery: discovery.clone(),
            triggers: triggers.clone(),
            egress: egress.clone(),
            public_url: config.public_url.trim_end_matches('/').to_owned(),
        });
        let webhooks = Arc::new(composio_api.clone());
        connections.set_listener(&(webhooks.clone() as Arc<dyn Listener>));
        triggers.set_webhook(&(webhooks.clone() as Arc<dyn ProjectWebhook>));
        end_users.register(&(webhooks.clone() as Arc<dyn PersonalRows>));
        let first_key = accounts.bootstrap().await?.map(|first| first.key);
        let mut first_invitation = None;
        if let Some(key) = &first_key {
            files::write_secret(&config.data_dir.join("owner.key"), &format!("{}\n", key.expose()))?;
            let project = accounts.find_project(accounts::DEFAULT_PROJECT).await?.id;
            first_invitation = Some(people.invite_to(project, None, kernel::Role::Owner, None).await?.1);
        }
        let started_at = clock.now();
        Ok(Self {
            config,
            db,
            clock,
            workers,
            vault,
            accounts,
            people,
            grants,
            catalog,
            connections,
            end_users,
            user_sessions,
            imports,
            secrets,
            mcp,
            composio,
            embeddings,
            upkeep: Upkeep::default(),
            workflows,
            definitions,
            discovery,
            calls,
            triggers,
            agents,
            agent_runs,
            composio_api,
            webhooks,
            consumers,
            keepers,
            operator_key,
            started_at,
            first_key,
            first_invitation,
        })
    }

    /// The edge over this yard.
    pub fn app(&self) -> App {
        App::new(Parts {
            db: self.db.clone(),
            clock: self.clock.clone(),
            workers: self.workers.clone(),
            accounts: self.accounts.clone(),
            people: self.people.clone(),
            grants: self.grants.clone(),
            catalog: self.catalog.clone(),
            connections: self.connections.clone(),
            end_users: self.end_users.clone(),
            user_sessions: self.user_sessions.clone(),
            imports: self.imports.clone(),
            secrets: self.secrets.clone(),
            workflows: self.workflows.clone(),
            definitions: self.definitions.clone(),
            discovery: self.discovery.clone(),
            calls: self.calls.clone(),
            triggers: self.triggers.clone(),
            mcp: mcp::Mcp::default(),
            agents: self.agents.clone(),
            agent_runs: self.agent_runs.clone(),
            composio_api: self.composio_api.clone(),
            signer: self.vault.signer.clone(),
            operator_key: self.operator_key.hash(),
            metrics: server::operations::Metrics::default(),
            readiness: server::operations::health::DatabaseProbe::default(),
            started_at: self.started_at,
            options: Options {
                public_url: self.config.public_url.clone(),
                body_limit: self.config.body_limit,
                request_timeout: self.config.request_timeout,
                cors_origins: self.config.cors_origins.clone(),
                callback: format!("{}/api/tools/call", self.config.public_url.trim_end_matches('/'))
                    .parse()
                    .expect("the public address is checked when it is read"),
                web_origin: self.config.web_url.parse::<url::Url>().ok().map(|url| url.origin().ascii_serialization()),
                authorization_server: self.config.mcp_authorization_server.clone(),
                proxies: self.config.connections.proxies.clone(),
                mcp_conformance: self.config.mcp_conformance,
                settings: self.config.in_force(),
            },
        })
    }

    /// Ends what is under way and closes the database.
    pub async fn close(&self) {
        self.upkeep.end().await;
        self.triggers.drain().await;
        self.agent_runs.drain().await;
        self.composio_api.drain().await;
        self.imports.drain().await;
        self.end_users.drain().await;
        self.calls.drain().await;
        self.discovery.drain().await;
        self.connections.drain().await;
        self.mcp.close().await;
        self.db.close().await;
    }
}

/// Deliveries that wait for runs of agents.
#[derive(Debug)]
struct WaitingDeliveries(Triggers);

impl agent_runs::Deliveries for WaitingDeliveries {
    fn ended<'a>(&'a self, run: &'a AgentRun, delivery: DeliveryId) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let scope = Scope::operator(run.project);
            let state = match self.0.delivery(scope, delivery).await {
                Ok((found, _)) => found.state,
                Err(TriggerError::Store(error)) => return Err(error),
                Err(_) => return Ok(true),
            };
            match state {
                // Its node is about to write that it waits.
                State::Leased => return Ok(false),
                State::Waiting => {}
                _ => return Ok(true),
            }
            let end = Completion { code: run.code.unwrap_or(500), message: run.message.clone(), outputs: run.outputs.clone() };
            match self.0.complete(scope, delivery, end).await {
                Err(TriggerError::Store(error)) => Err(error),
                _ => Ok(true),
            }
        })
    }
}

/// Opens the database without changing it.
pub async fn connect(config: &Config) -> anyhow::Result<Db> {
    if let Some(path) = Db::file(&config.database_url) {
        files::open_private(&path).with_context(|| format!("cannot open the database `{}`", path.display()))?;
    }
    Db::open(&config.database_url).await.map_err(|error| anyhow::anyhow!("cannot open the database: {error}"))
}

/// The way out, as the operator opened it.
pub fn egress(config: &Config) -> anyhow::Result<Egress> {
    let allow = config.egress_allow.parse().context("`egress_allow` is not usable")?;
    Ok(Egress::new(egress::Config { allow, ..egress::Config::default() })?)
}

/// The way to identity providers. Their addresses are the operator's word, so they may be private ones.
fn sign_in_egress(config: &Config) -> anyhow::Result<Egress> {
    let hosts = config.sign_in.providers.iter().filter_map(people::oidc::ProviderConfig::host);
    let named = Some(config.egress_allow.clone()).filter(|allow| !allow.is_empty());
    let allow = named.into_iter().chain(hosts).collect::<Vec<_>>().join(",").parse().context("`egress_allow` is not usable")?;
    Ok(Egress::new(egress::Config { allow, ..egress::Config::default() })?)
}

/// The way out to an address of the operator's own, which may be a private one.
fn egress_to(config: &Config, url: &url::Url, setting: &str) -> anyhow::Result<Egress> {
    let host = url.host_str().unwrap_or_default();
    let own = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let allow = if config.egress_allow.is_empty() { own } else { format!("{},{own}", config.egress_allow) };
    let allow = allow.parse().with_context(|| format!("`{setting}` is not usable"))?;
    Ok(Egress::new(egress::Config { allow, ..egress::Config::default() })?)
}

/// The embeddings API, where the operator has one.
fn embeddings(config: &Config, db: &Db, clock: &Clock) -> anyhow::Result<Option<Arc<Embeddings>>> {
    let Some(settings) = config.embeddings.clone() else { return Ok(None) };
    let egress = egress_to(config, &settings.url, "embeddings_url")?;
    Ok(Some(Arc::new(Embeddings::new(settings, egress, db.clone(), clock.clone())?)))
}

/// Where traces of agents' runs go, where the operator has a collector.
fn collector(config: &Config) -> anyhow::Result<Option<agent_runs::Collector>> {
    let Some(url) = config.otlp_endpoint.clone() else { return Ok(None) };
    let egress = egress_to(config, &url, "otlp_endpoint")?;
    Ok(Some(agent_runs::Collector { url, egress }))
}

/// Composio, where the operator has a key for it.
fn composio(config: &Config, workers: &Workers, clock: &Clock) -> anyhow::Result<Option<Arc<Composio>>> {
    let Some(key) = &config.composio_api_key else { return Ok(None) };
    let url = config.composio_api_url.clone();
    let egress = egress_to(config, &url, "composio_api_url")?;
    let settings = composio::Settings {
        url,
        key: key.clone().into(),
        kept: config.data_dir.join("composio.catalog"),
        catalog_life: config.composio_catalog_life,
        limit: time_to_answer(config),
        webhook_secret: config.composio_webhook_secret.clone().map(Into::into),
    };
    Ok(Some(Arc::new(Composio::new(settings, egress, workers.clone(), clock.clone()))))
}

/// A call ends a little before the request does, so that the caller hears why.
fn time_to_answer(config: &Config) -> Duration {
    config.request_timeout.saturating_sub(Duration::from_secs(2)).max(Duration::from_secs(1))
}

/// How MCP servers are used.
fn mcp_settings(config: &Config) -> mcp_client::Settings {
    let Ok(commands) = config.mcp_commands.parse();
    mcp_client::Settings { commands, limit: time_to_answer(config), idle: MCP_IDLE }
}

fn operator_key(config: &Config) -> anyhow::Result<PlainKey> {
    if let Some(key) = &config.admin_key {
        return Ok(PlainKey::from(key.clone()));
    }
    let path = config.data_dir.join("operator.key");
    Ok(PlainKey::from(files::ensure_secret(&path, || PlainKey::generate("tyo").expose().to_owned())?))
}

/// Serves until `stop` is ready, then finishes what is in flight.
pub async fn serve(listener: TcpListener, app: App, limits: ConnectionLimits, stop: impl Future<Output = ()> + Send + 'static) {
    let mcp = app.mcp.clone();
    let (stopping, stopped) = tokio::sync::oneshot::channel();
    let graceful = server::listen(listener, server::Service::new(app), limits, async move {
        stop.await;
        // Streams that wait for changes would hold up the end.
        mcp.stop();
        let _ = stopping.send(());
    });
    let overdue = async {
        let _ = stopped.await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        () = graceful => {}
        () = overdue => tracing::warn!("stopped with requests still in flight"),
    }
}
