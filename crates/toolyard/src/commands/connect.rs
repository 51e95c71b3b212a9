//! `toolyard connect`, `toolyard connections` and `toolyard oauth-app`: connect an account.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::{Client, Remote, ShowArgs};
use super::consent::Consent;
use super::integrations::{encode, list, text};
use super::names::{self, Integration};
use super::print::{self, Column, Table};
use super::usage;
use crate::config::Config;

const WAIT: Duration = Duration::from_mins(10);
const POLL: Duration = Duration::from_secs(1);

const CONNECTIONS: Table = Table::new(&[
    Column::text("INTEGRATION"),
    Column::text("SLUG"),
    Column::text("ACCOUNT"),
    Column::id("ID"),
    Column::state("STATE"),
    Column::text("WHY"),
])
.when_empty("nothing is connected; `toolyard connect INTEGRATION` connects an account, `toolyard integrations` lists what there is");
const CONSUMERS: Table =
    Table::new(&[Column::text("KIND"), Column::text("NAME"), Column::id("ID")]).when_empty("no agent, trigger or workflow uses it");
const OAUTH_APPS: Table = Table::new(&[Column::text("INTEGRATION"), Column::text("CLIENT ID"), Column::id("ID")])
    .when_empty("there are no OAuth apps; `toolyard oauth-app set INTEGRATION --client-id ID` keeps one");

#[derive(Debug, Args)]
pub(super) struct ConnectArgs {
    /// Key of the integration, such as `github` or, if it was imported, `my-api` or `openapi/my-api`
    integration: String,
    /// Name of the connection [default: INTEGRATION-main, or the next free one]
    #[arg(long)]
    slug: Option<String>,
    /// `oauth`, `api_key` or one of the integration's schemes
    #[arg(long)]
    scheme: Option<String>,
    /// A field of the credential; without any, a person types it in the browser
    #[arg(long = "field", value_name = "NAME=VALUE", value_parser = pair)]
    fields: Vec<(String, String)>,
    /// Do not wait for the person
    #[arg(long)]
    no_wait: bool,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Without a command it lists.
#[derive(Debug, Args)]
pub(super) struct ConnectionsArgs {
    #[command(subcommand)]
    command: Option<ConnectionsCommand>,
    #[command(flatten)]
    list: ShowArgs,
}

#[derive(Debug, Subcommand)]
enum ConnectionsCommand {
    /// List connections
    List(ShowArgs),
    /// List the agents, triggers and workflows that use a connection
    Consumers {
        /// Slug or id
        connection: String,
        #[command(flatten)]
        show: ShowArgs,
    },
    /// Renew a connection, or start over where a person is needed
    Refresh {
        /// Slug or id
        connection: String,
        #[command(flatten)]
        remote: Remote,
    },
    /// Make a connection unusable
    Revoke {
        /// Slug or id
        connection: String,
        #[command(flatten)]
        consent: Consent,
        #[command(flatten)]
        remote: Remote,
    },
    /// Delete a connection
    Delete {
        /// Slug or id
        connection: String,
        #[command(flatten)]
        consent: Consent,
        #[command(flatten)]
        remote: Remote,
    },
}

/// For one project, or for all of them.
#[derive(Debug, Args)]
pub(super) struct Reach {
    /// For every project of the deployment; needs the operator's key
    #[arg(long)]
    everywhere: bool,
    #[command(flatten)]
    remote: Remote,
}

impl Reach {
    fn client(&self, config: &Config) -> anyhow::Result<(Client, &'static str)> {
        if self.everywhere {
            Ok((Client::operator(config, &self.remote)?, "/admin/oauth-apps"))
        } else {
            Ok((Client::new(config, &self.remote)?, "/tools/oauth-apps"))
        }
    }
}

impl Reach {
    /// The operator's key opens no catalog, so that an app for all projects names its provider.
    async fn integration(&self, client: &Client, name: &str) -> anyhow::Result<Integration> {
        if self.everywhere { Ok(Integration::written(name)) } else { names::integration(client, name).await }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum OauthAppCommand {
    /// Show the redirect URL to register at a provider, before an app is kept
    Redirect {
        /// Its key, or provider and key as in `openapi/orders`
        integration: String,
        #[command(flatten)]
        remote: Remote,
    },
    /// Keep the client id and secret that a provider gave you
    Set {
        integration: String,
        #[arg(long)]
        client_id: String,
        #[arg(long, env = "TOOLYARD_CLIENT_SECRET", hide_env_values = true, default_value = "")]
        client_secret: String,
        /// Scopes to ask for, separated by commas
        #[arg(long, value_delimiter = ',')]
        scopes: Option<Vec<String>>,
        #[command(flatten)]
        reach: Reach,
    },
    /// List OAuth apps
    List {
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        reach: Reach,
    },
    /// Delete an OAuth app
    Delete {
        /// Its integration or its id
        #[arg(value_name = "INTEGRATION|ID")]
        app: String,
        #[command(flatten)]
        consent: Consent,
        #[command(flatten)]
        reach: Reach,
    },
}

pub(super) fn is_ready(row: &Value) -> bool {
    row["flags"]["is_valid"] == true
}

/// Whether a connection can be used; a message says why it cannot any more.
fn state(row: &Value) -> &'static str {
    match (is_ready(row), row["status"]["message"].is_string()) {
        (true, false) => "ready",
        (true, true) => "failing",
        (false, true) if row["status"]["message"] == "revoked" => "revoked",
        (false, true) => "failed",
        (false, false) => "waiting",
    }
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as name=value")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(super) async fn connect(config: Config, args: ConnectArgs) -> anyhow::Result<()> {
    let client = Client::new(&config, &args.remote)?;
    let integration = names::integration(&client, &args.integration).await?;
    let found = query(&client, Some(&integration)).await?;
    let there = list(&found, "connections");
    let fields: BTreeMap<String, String> = args.fields.into_iter().collect();
    let waiting = waiting(there, args.slug.as_deref());
    let slug = match (args.slug, waiting) {
        (Some(slug), _) => slug,
        (None, Some(row)) => text(row, "slug"),
        (None, None) => free_slug(there, &integration.key)?,
    };
    let mut reply = match waiting {
        // An attempt that waits goes on under a new address; the older one is void.
        Some(row) if fields.is_empty() && args.scheme.is_none() => {
            eprintln!("picking up {slug}, which nobody has finished connecting");
            client.post(&format!("/tools/connections/{}/refresh", encode(&text(row, "id"))), &json!({})).await?
        }
        started => {
            if let Some(row) = started {
                client.delete(&format!("/tools/connections/{}", encode(&text(row, "id")))).await?;
            }
            let mut data = json!({});
            if let Some(scheme) = args.scheme {
                data["auth_scheme"] = json!(scheme);
            }
            if !fields.is_empty() {
                data["credentials"] = json!(fields);
            }
            let Integration { provider, key } = &integration;
            let body = json!({"connection": {"slug": slug, "provider_key": provider, "integration_key": key, "data": data}});
            client.post("/tools/connections", &body).await?
        }
    };
    let redirect = reply["connection"]["data"]["redirect_url"].as_str().map(str::to_owned);
    if let Some(url) = redirect.filter(|_| !args.json) {
        print::out(&format!("Open this address to connect {integration}:\n\n  {url}\n\n"));
        if !args.no_wait {
            reply = wait(&client, &text(&reply["connection"], "id")).await?;
        }
    }
    if args.json {
        print::json(&reply);
    } else if is_ready(&reply["connection"]) {
        print::out(&format!("connected {integration} as {slug}{}\n", account(&reply["connection"])));
        if let Some(note) = reply["connection"]["status"]["message"].as_str() {
            eprintln!("note: {note}");
        }
    }
    Ok(())
}

/// The connection that somebody began and nobody finished: the named one, else the newest. One that had an account is not begun anew by the way.
fn waiting<'a>(rows: &'a [Value], slug: Option<&str>) -> Option<&'a Value> {
    let is_unfinished = |row: &&Value| matches!(state(row), "waiting" | "failed") && row["meta"]["account"].is_null();
    rows.iter().filter(is_unfinished).find(|row| slug.is_none_or(|slug| row["slug"] == slug))
}

/// Waits for the person in the browser.
async fn wait(client: &Client, id: &str) -> anyhow::Result<Value> {
    eprintln!("waiting for the browser (Ctrl-C to stop waiting)");
    print::during("nobody has finished it yet", Box::pin(settled(client, id))).await
}

async fn settled(client: &Client, id: &str) -> anyhow::Result<Value> {
    let started = Instant::now();
    while started.elapsed() < WAIT {
        let reply = client.get(&format!("/tools/connections/{id}")).await?;
        if reply["connection"]["flags"]["is_valid"] == true {
            return Ok(reply);
        }
        if let Some(reason) = reply["connection"]["status"]["message"].as_str() {
            bail!("{reason}");
        }
        tokio::time::sleep(POLL).await;
    }
    bail!("nobody finished connecting within {} minutes", WAIT.as_secs() / 60)
}

fn free_slug(there: &[Value], key: &str) -> anyhow::Result<String> {
    let names = std::iter::once(format!("{key}-main")).chain((2..).map(|number| format!("{key}-main-{number}")));
    names.into_iter().find(|name| !there.iter().any(|row| row["slug"] == name.as_str())).context("no name is free")
}

pub(super) async fn query(client: &Client, integration: Option<&Integration>) -> anyhow::Result<Value> {
    let filter = |of: &Integration| format!("?provider_key={}&integration_key={}", encode(&of.provider), encode(&of.key));
    let filter = integration.map(filter).unwrap_or_default();
    client.post(&format!("/tools/connections/query{filter}"), &json!({})).await
}

/// The connection that a slug or an id means.
async fn named(client: &Client, written: &str) -> anyhow::Result<Value> {
    let all = query(client, None).await?;
    names::connection(list(&all, "connections"), written).cloned()
}

/// Its path, once nobody minds that what uses it stops.
async fn given_up(client: &Client, written: &str, verb: &str, consent: Consent) -> anyhow::Result<(String, String)> {
    let row = named(client, written).await?;
    let slug = text(&row, "slug");
    if !consent.yes {
        consent.ask(&format!("{verb} the connection {slug}"), &usage::of_connection(client, &row).await?)?;
    }
    Ok((format!("/tools/connections/{}", encode(&text(&row, "id"))), slug))
}

fn account(connection: &Value) -> String {
    connection["meta"]["account"]["label"].as_str().map(|label| format!(" ({label})")).unwrap_or_default()
}

fn row(connection: &Value) -> Vec<String> {
    let (integration, slug, state) = (Integration::of(connection), text(connection, "slug"), state(connection));
    let why = match state {
        "waiting" => format!("nobody finished it; `toolyard connect {integration} --slug {slug}` goes on"),
        _ => text(&connection["status"], "message"),
    };
    let account = text(&connection["meta"]["account"], "label");
    vec![integration.to_string(), slug, account, text(connection, "id"), state.to_owned(), why]
}

pub(super) async fn connections(config: Config, args: ConnectionsArgs) -> anyhow::Result<()> {
    match args.command.unwrap_or(ConnectionsCommand::List(args.list)) {
        ConnectionsCommand::List(ShowArgs { json, remote }) => {
            let reply = query(&Client::new(&config, &remote)?, None).await?;
            if json {
                print::json(&reply);
                return Ok(());
            }
            let rows: Vec<_> = list(&reply, "connections").iter().map(row).collect();
            CONNECTIONS.show(&rows);
        }
        ConnectionsCommand::Consumers { connection, show: ShowArgs { json, remote } } => {
            let client = Client::new(&config, &remote)?;
            let id = text(&named(&client, &connection).await?, "id");
            let reply = client.get(&format!("/tools/connections/{}/consumers", encode(&id))).await?;
            if json {
                print::json(&reply);
                return Ok(());
            }
            let row = |user: &Value| vec![text(user, "kind"), text(user, "name"), text(user, "id")];
            let rows: Vec<_> = list(&reply, "consumers").iter().map(row).collect();
            CONSUMERS.show(&rows);
        }
        ConnectionsCommand::Refresh { connection, remote } => {
            let client = Client::new(&config, &remote)?;
            let id = text(&named(&client, &connection).await?, "id");
            let reply = client.post(&format!("/tools/connections/{}/refresh", encode(&id)), &json!({})).await?;
            match reply["connection"]["data"]["redirect_url"].as_str() {
                Some(url) => print::out(&format!("Open this address to connect again:\n\n  {url}\n\n")),
                None => print::out("the connection is fresh\n"),
            }
        }
        ConnectionsCommand::Revoke { connection, consent, remote } => {
            let client = Client::new(&config, &remote)?;
            let (path, slug) = given_up(&client, &connection, "revoke", consent).await?;
            client.post(&format!("{path}/revoke"), &json!({})).await?;
            print::out(&format!("revoked {slug}\n"));
        }
        ConnectionsCommand::Delete { connection, consent, remote } => {
            let client = Client::new(&config, &remote)?;
            let (path, slug) = given_up(&client, &connection, "delete", consent).await?;
            client.delete(&path).await?;
            print::out(&format!("deleted {slug}\n"));
        }
    }
    Ok(())
}

pub(super) async fn oauth_app(config: Config, command: OauthAppCommand) -> anyhow::Result<()> {
    match command {
        OauthAppCommand::Set { integration, client_id, client_secret, scopes, reach } => {
            let (client, path) = reach.client(&config)?;
            let Integration { provider, key } = reach.integration(&client, &integration).await?;
            let app = json!({"provider_key": provider, "integration_key": key, "client_id": client_id, "client_secret": client_secret, "scopes": scopes});
            let reply = client.post(path, &json!({"oauth_app": app})).await?;
            print::out(&format!("kept; register this redirect URL at the provider: {}\n", text(&reply["oauth_app"], "redirect_url")));
        }
        OauthAppCommand::Redirect { integration, remote } => {
            let client = Client::new(&config, &remote)?;
            let Integration { provider, key } = names::integration(&client, &integration).await?;
            let path = format!("/tools/oauth-apps/redirect/{}/{}", encode(&provider), encode(&key));
            print::out(&format!("{}\n", text(&client.get(&path).await?, "redirect_url")));
        }
        OauthAppCommand::List { json, reach } => {
            let (client, path) = reach.client(&config)?;
            let reply = client.get(path).await?;
            if json {
                print::json(&reply);
                return Ok(());
            }
            let rows: Vec<_> = list(&reply, "oauth_apps")
                .iter()
                .map(|app| vec![Integration::of(app).to_string(), text(app, "client_id"), text(app, "id")])
                .collect();
            OAUTH_APPS.show(&rows);
        }
        OauthAppCommand::Delete { app, consent, reach } => {
            let (client, path) = reach.client(&config)?;
            let all = client.get(path).await?;
            let names = |row: &Value| vec![Integration::of(row).to_string(), text(row, "integration_key"), text(row, "client_id")];
            let found = names::OAUTH_APP.pick(list(&all, "oauth_apps"), &app, names)?;
            let deed = format!("delete the OAuth app of {}", Integration::of(found));
            if reach.everywhere {
                consent.ask(&deed, &["every project's connections that were made with it, once their tokens expire".to_owned()])?;
            } else if !consent.yes {
                consent.ask(&deed, &usage::of_oauth_app(&client, found).await?)?;
            }
            client.delete(&format!("{path}/{}", encode(&text(found, "id")))).await?;
            print::out(&format!("deleted the OAuth app of {}\n", Integration::of(found)));
        }
    }
    Ok(())
}
