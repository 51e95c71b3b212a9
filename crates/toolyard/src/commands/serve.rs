//! `toolyard serve`

use std::path::Path;

use anyhow::Context;
use kernel::ProjectId;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::print;
use crate::config::Config;
use crate::files;
use crate::log;
use crate::yard::{self, Yard};

/// Starts the server and runs it until it is told to stop.
pub(super) async fn serve(mut config: Config) -> anyhow::Result<()> {
    log::start(&config)?;
    let listen = config.listen;
    let listener = TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
    config.listens_on(listener.local_addr()?);
    let _only_one = store::Db::file(&config.database_url).map(|file| hold(&config, &file)).transpose()?;
    let yard = Yard::open(config).await?;
    yard.connections.start().await.context("cannot look after the connections")?;
    if !yard.config.triggers.paused {
        // A copy must not tell what the original tells.
        yard.connections.start_hooks();
        yard.composio_api.start();
    }
    yard.calls.start().await.context("cannot look after the record of calls")?;
    yard.imports.start();
    yard.triggers.start().await.context("cannot start the triggers")?;
    yard.agent_runs.start().await.context("cannot start the runs of agents")?;
    yard.start_composio();
    yard.start_embeddings();
    yard.start_forgetting();
    warm(&yard);
    greet(&yard);
    yard::serve(listener, yard.app(), yard.config.connections.clone(), stop_signal()?).await;
    yard.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// Makes this the one server of a SQLite file; the directory may not be there yet.
fn hold(config: &Config, file: &Path) -> anyhow::Result<std::fs::File> {
    files::ensure_dir(&config.data_dir)?;
    files::hold_database(file)
}

/// Builds the search index that all projects share; the first to search would wait for it.
fn warm(yard: &Yard) {
    let catalog = yard.catalog.clone();
    // A project that nobody has sees what every project sees.
    tokio::task::spawn_blocking(move || catalog.warm(ProjectId::new()));
}

fn greet(yard: &Yard) {
    let config = &yard.config;
    let url = &config.public_url;
    let data = config.data_dir.display();
    let kept = |name: &str, given: &Option<String>| if given.is_some() { String::new() } else { format!(", {data}/{name}") };
    print::out(&format!("Toolyard {} listens on http://{}\n", env!("CARGO_PKG_VERSION"), config.listen));
    print::out(&format!("  dashboard {url}/app\n  mcp       {url}/mcp\n  docs      {url}/docs\n  database  {}\n", yard.db.kind()));
    if config.triggers.paused {
        print::out("  triggers  paused: events are stored, and nothing runs, fires or polls\n");
    }
    let (operator, sealing) = (kept("operator.key", &config.admin_key), kept("sealing.key", &config.sealing_key));
    let owner =
        if config.data_dir.join("owner.key").exists() { format!("{data}/owner.key") } else { "`toolyard key create` makes one".to_owned() };
    print::out(&format!("  keys      {owner}{operator}{sealing}\n"));
    if let Some(key) = &yard.first_key {
        let key = key.expose();
        print::out(&format!(
            "\nFirst start: the project `default` is ready. Its key, shown this once and kept in {data}/owner.key:\n\n  {key}\n\n\
             Try it:\n\n  curl -X POST -H \"Authorization: ApiKey {key}\" {url}/tools/connections/query\n\n"
        ));
    }
    if let Some(invitation) = &yard.first_invitation {
        let link = server::addresses::invitation(url, invitation.expose());
        print::out(&format!("Sign in as its owner with this link, which works once and for a week:\n\n  {link}\n\n"));
    }
}

/// Ready at the first SIGTERM or SIGINT.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
    })
}
