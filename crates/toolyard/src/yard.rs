//! The wiring: from a configuration to a running server.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use accounts::Accounts;
use agents::Agents;
use anyhow::Context;
use axum::Router;
use catalog::{Catalog, Source, Unconfigured};
use connections::{Connections, Connector, Consumer, Host};
use egress::Egress;
use imports::{Imports, Mirror};
use kernel::Clock;
use kernel::key::PlainKey;
use providers::composio::{self, Composio};
use providers::mcp::{self, Mcp};
use providers::native::{self, Native};
use providers::openapi::{self, OpenApi};
use sentences::Sentences;
use server::{App, Options, Parts};
use store::Db;
use tokio::net::TcpListener;
use tools::{Finder, Runner, Tools};
use triggers::{EventSource, Triggers};
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
    pub vault: Vault,
    pub accounts: Accounts,
    pub catalog: Catalog,
    pub connections: Connections,
    pub imports: Imports,
    pub mcp: Arc<Mcp>,
    pub composio: Option<Arc<Composio>>,
    pub(crate) upkeep: Upkeep,
    pub workflows: Workflows,
    pub tools: Tools,
    pub triggers: Triggers,
    pub agents: Agents,
    /// Kept here, because connections only point at them.
    pub consumers: [Arc<dyn Consumer>; 3],
    pub operator_key: PlainKey,
    /// The first project's key, when this start made it.
    pub first_key: Option<PlainKey>,
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
        let egress = egress(&config)?;
        let added = config.integrations_dir.as_ref().map(|dir| native::read_dir(dir)).transpose();
        let added = added.context("cannot read the integrations directory")?.unwrap_or_default();
        let native = Native::new(native::each_built_in().chain(added.into_iter().map(Ok)), egress.clone())?;
        let native = native.within(config.service_timeout.clone());
        let native = Arc::new(native.map_err(|error| anyhow::anyhow!("`service_timeout` is not usable: {error}"))?);
        let openapi = Arc::new(OpenApi::new(egress.clone()).within(config.service_timeout.clone()));
        let (changes, changed) = tokio::sync::mpsc::unbounded_channel();
        let mcp = Arc::new(Mcp::new(egress.clone(), mcp_settings(&config), changes));
        let mirror = Mirror::new(db.clone(), vault.sealer.clone(), vec![openapi.clone(), mcp.clone()]);
        let composio = composio(&config, &clock)?;
        let mut listed = vec![native.clone() as Arc<dyn Source>, mirror.source(OpenApi::about()), mirror.source(Mcp::about())];
        listed.extend(composio.clone().map(|composio| composio as Arc<dyn Source>));
        let mut catalog = Catalog::new(listed);
        if composio.is_none() {
            catalog = catalog.without(Unconfigured { provider: composio::KEY, setting: "COMPOSIO_API_KEY" });
        }
        if config.sentence_model {
            catalog = catalog.with_embedder(Arc::new(Sentences::new(Some(config.data_dir.join("sentences.vectors")))));
        }
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
                (mcp::KEY, mcp.clone() as Arc<dyn Connector>),
            ]),
            hosts: composio.iter().map(|composio| (composio::KEY, composio.clone() as Arc<dyn Host>)).collect(),
            public_url: config.public_url.clone(),
        });
        let imports = Imports::new(imports::Parts {
            db: db.clone(),
            clock: clock.clone(),
            sealer: vault.sealer.clone(),
            mirror,
            connections: connections.clone(),
        });
        imports.hear(changed);
        let mut sources = HashMap::from([(native::KEY, native.clone() as Arc<dyn EventSource>)]);
        let mut runners = HashMap::from([
            (native::KEY, native as Arc<dyn Runner>),
            (openapi::KEY, openapi as Arc<dyn Runner>),
            (mcp::KEY, mcp.clone() as Arc<dyn Runner>),
        ]);
        if let Some(composio) = &composio {
            sources.insert(composio::KEY, composio.clone());
            runners.insert(composio::KEY, composio.clone());
        }
        let finders = composio.iter().map(|composio| composio.clone() as Arc<dyn Finder>).collect();
        let (workflows, executor) = Workflows::open(db.clone(), clock.clone(), egress, vault.signer.clone(), vault.sealer.clone());
        ::tools::ops::check_all().map_err(|problems| anyhow::anyhow!(problems))?;
        let tools = Tools::new(db.clone(), clock.clone(), catalog.clone(), connections.clone(), executor, runners, finders);
        let triggers = Triggers::new(triggers::Parts {
            db: db.clone(),
            clock: clock.clone(),
            sealer: vault.sealer.clone(),
            catalog: catalog.clone(),
            connections: connections.clone(),
            workflows: workflows.clone(),
            runs: Arc::new(tools.clone()),
            accounts: accounts.clone(),
            sources,
            public_url: config.public_url.clone(),
            hub_url: config.composio_webhook_url.clone(),
            composio_secret: config.composio_webhook_secret.clone(),
            settings: config.triggers,
        });
        let agents = Agents::new(agents::Parts {
            db: db.clone(),
            clock: clock.clone(),
            catalog: catalog.clone(),
            connections: connections.clone(),
            tools: tools.clone(),
        });
        let consumers: [Arc<dyn Consumer>; 3] = [Arc::new(tools.clone()), Arc::new(triggers.clone()), Arc::new(agents.clone())];
        for consumer in &consumers {
            connections.register(consumer);
        }
        let first_key = accounts.bootstrap().await?.map(|first| first.key);
        if let Some(key) = &first_key {
            files::write_secret(&config.data_dir.join("owner.key"), &format!("{}\n", key.expose()))?;
        }
        Ok(Self {
            config,
            db,
            clock,
            vault,
            accounts,
            catalog,
            connections,
            imports,
            mcp,
            composio,
            upkeep: Upkeep::default(),
            workflows,
            tools,
            triggers,
            agents,
            consumers,
            operator_key,
            first_key,
        })
    }

    /// The edge over this yard.
    pub fn app(&self) -> App {
        App::new(Parts {
            db: self.db.clone(),
            clock: self.clock.clone(),
            accounts: self.accounts.clone(),
            catalog: self.catalog.clone(),
            connections: self.connections.clone(),
            imports: self.imports.clone(),
            workflows: self.workflows.clone(),
            tools: self.tools.clone(),
            triggers: self.triggers.clone(),
            mcp: ::mcp::Mcp::default(),
            agents: self.agents.clone(),
            operator_key: self.operator_key.hash(),
            metrics: server::operations::Metrics::default(),
            options: Options {
                body_limit: self.config.body_limit,
                request_timeout: self.config.request_timeout,
                cors_origins: self.config.cors_origins.clone(),
                callback: format!("{}/api/tools/call", self.config.public_url.trim_end_matches('/'))
                    .parse()
                    .expect("the public address is checked when it is read"),
                web_origin: self.config.web_url.parse::<url::Url>().ok().map(|url| url.origin().ascii_serialization()),
                authorization_server: self.config.mcp_authorization_server.clone(),
                mcp_conformance: self.config.mcp_conformance,
            },
        })
    }

    /// Ends what is under way and closes the database.
    pub async fn close(&self) {
        self.upkeep.end().await;
        self.triggers.drain().await;
        self.imports.drain().await;
        self.tools.drain().await;
        self.connections.drain().await;
        self.mcp.close().await;
        self.db.close().await;
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

/// Composio, where the operator has a key for it. Its address is the operator's word, so it may be a private one.
fn composio(config: &Config, clock: &Clock) -> anyhow::Result<Option<Arc<Composio>>> {
    let Some(key) = &config.composio_api_key else { return Ok(None) };
    let url = config.composio_api_url.clone();
    let host = url.host_str().unwrap_or_default();
    let own = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let allow = if config.egress_allow.is_empty() { own } else { format!("{},{own}", config.egress_allow) };
    let allow = allow.parse().context("`composio_api_url` is not usable")?;
    let egress = Egress::new(egress::Config { allow, ..egress::Config::default() })?;
    let settings = composio::Settings {
        url,
        key: key.clone().into(),
        kept: config.data_dir.join("composio.catalog"),
        catalog_life: config.composio_catalog_life,
        limit: time_to_answer(config),
    };
    Ok(Some(Arc::new(Composio::new(settings, egress, clock.clone()))))
}

/// A call ends a little before the request does, so that the caller hears why.
fn time_to_answer(config: &Config) -> Duration {
    config.request_timeout.saturating_sub(Duration::from_secs(2)).max(Duration::from_secs(1))
}

/// How MCP servers are used.
fn mcp_settings(config: &Config) -> mcp::Settings {
    let Ok(commands) = config.mcp_commands.parse();
    mcp::Settings { commands, limit: time_to_answer(config), idle: MCP_IDLE }
}

fn operator_key(config: &Config) -> anyhow::Result<PlainKey> {
    if let Some(key) = &config.admin_key {
        return Ok(PlainKey::from(key.clone()));
    }
    let path = config.data_dir.join("operator.key");
    Ok(PlainKey::from(files::ensure_secret(&path, || PlainKey::generate("tyo").expose().to_owned())?))
}

/// Serves until `stop` is ready, then finishes what is in flight.
pub async fn serve(
    listener: TcpListener,
    routes: Router<App>,
    app: App,
    stop: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<()> {
    let mcp = app.mcp.clone();
    let service = axum::ServiceExt::<axum::extract::Request>::into_make_service(server::service(routes, app));
    let (stopping, stopped) = tokio::sync::oneshot::channel();
    let graceful = axum::serve(listener, service).with_graceful_shutdown(async move {
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
        served = graceful.into_future() => served.context("the server failed"),
        () = overdue => {
            tracing::warn!("stopped with requests still in flight");
            Ok(())
        }
    }
}
