//! `toolyard connect`, `toolyard connections` and `toolyard oauth-app`: connect an account.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::{Client, Remote, ShowArgs};
use super::integrations::{encode, list, provided, provided_name, text};
use super::print::{self, Column, Table};
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
const OAUTH_APPS: Table = Table::new(&[Column::text("INTEGRATION"), Column::text("CLIENT ID"), Column::id("ID")])
    .when_empty("there are no OAuth apps; `toolyard oauth-app set INTEGRATION --client-id ID` keeps one");

#[derive(Debug, Args)]
pub(super) struct ConnectArgs {
    /// Key of the integration, such as `github` or, if it was imported, `openapi/my-api`
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
    /// Renew a connection, or start over where a person is needed
    Refresh {
        id: String,
        #[command(flatten)]
        remote: Remote,
    },
    /// Make a connection unusable
    Revoke {
        id: String,
        #[command(flatten)]
        remote: Remote,
    },
    /// Delete a connection
    Delete {
        id: String,
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

#[derive(Debug, Subcommand)]
pub(super) enum OauthAppCommand {
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
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        reach: Reach,
    },
    /// Delete an OAuth app
    Delete {
        id: String,
        #[command(flatten)]
        reach: Reach,
    },
}

/// Whether a connection can be used; a message says why it cannot any more.
fn state(row: &Value) -> &'static str {
    match (row["flags"]["is_valid"] == true, row["status"]["message"].is_string()) {
        (true, false) => "ready",
        (true, true) => "failing",
        (false, true) => "failed",
        (false, false) => "waiting",
    }
}

fn integration_of(row: &Value) -> String {
    provided_name(row["provider_key"].as_str(), &text(row, "integration_key"))
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as name=value")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(super) async fn connect(config: Config, args: ConnectArgs) -> anyhow::Result<()> {
    let client = Client::new(&config, &args.remote)?;
    let (provider, key) = provided(&args.integration);
    let slug = match args.slug {
        Some(slug) => slug,
        None => free_slug(&client, &args.integration).await?,
    };
    let fields: BTreeMap<String, String> = args.fields.into_iter().collect();
    let mut data = json!({});
    if let Some(scheme) = args.scheme {
        data["auth_scheme"] = json!(scheme);
    }
    if !fields.is_empty() {
        data["credentials"] = json!(fields);
    }
    let body = json!({"connection": {"slug": slug, "provider_key": provider, "integration_key": key, "data": data}});
    let mut reply = client.post("/tools/connections", &body).await?;
    let redirect = reply["connection"]["data"]["redirect_url"].as_str().map(str::to_owned);
    if let Some(url) = redirect.filter(|_| !args.json) {
        print::out(&format!("Open this address to connect {}:\n\n  {url}\n\n", args.integration));
        if !args.no_wait {
            reply = wait(&client, &text(&reply["connection"], "id")).await?;
        }
    }
    if args.json {
        print::json(&reply);
    } else if reply["connection"]["flags"]["is_valid"] == true {
        print::out(&format!("connected {} as {}{}\n", args.integration, slug, account(&reply["connection"])));
    }
    Ok(())
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

async fn free_slug(client: &Client, integration: &str) -> anyhow::Result<String> {
    let taken = query(client, Some(integration)).await?;
    let (_, integration) = provided(integration);
    let taken: Vec<String> = list(&taken, "connections").iter().map(|connection| text(connection, "slug")).collect();
    let names = std::iter::once(format!("{integration}-main")).chain((2..).map(|number| format!("{integration}-main-{number}")));
    names.into_iter().find(|name| !taken.contains(name)).context("no name is free")
}

pub(super) async fn query(client: &Client, integration: Option<&str>) -> anyhow::Result<Value> {
    let filter = |name| {
        let (provider, key) = provided(name);
        format!("?provider_key={}&integration_key={}", encode(provider), encode(key))
    };
    let filter = integration.map(filter).unwrap_or_default();
    client.post(&format!("/tools/connections/query{filter}"), &json!({})).await
}

fn account(connection: &Value) -> String {
    connection["meta"]["account"]["label"].as_str().map(|label| format!(" ({label})")).unwrap_or_default()
}

pub(super) async fn connections(config: Config, args: ConnectionsArgs) -> anyhow::Result<()> {
    match args.command.unwrap_or(ConnectionsCommand::List(args.list)) {
        ConnectionsCommand::List(ShowArgs { json, remote }) => {
            let reply = query(&Client::new(&config, &remote)?, None).await?;
            if json {
                print::json(&reply);
                return Ok(());
            }
            let rows: Vec<_> = list(&reply, "connections")
                .iter()
                .map(|found| {
                    let account = text(&found["meta"]["account"], "label");
                    let state = state(found).to_owned();
                    vec![integration_of(found), text(found, "slug"), account, text(found, "id"), state, text(&found["status"], "message")]
                })
                .collect();
            CONNECTIONS.show(&rows);
        }
        ConnectionsCommand::Refresh { id, remote } => {
            let reply = Client::new(&config, &remote)?.post(&format!("/tools/connections/{}/refresh", encode(&id)), &json!({})).await?;
            match reply["connection"]["data"]["redirect_url"].as_str() {
                Some(url) => print::out(&format!("Open this address to connect again:\n\n  {url}\n\n")),
                None => print::out("the connection is fresh\n"),
            }
        }
        ConnectionsCommand::Revoke { id, remote } => {
            Client::new(&config, &remote)?.post(&format!("/tools/connections/{}/revoke", encode(&id)), &json!({})).await?;
            print::out("revoked\n");
        }
        ConnectionsCommand::Delete { id, remote } => {
            Client::new(&config, &remote)?.delete(&format!("/tools/connections/{}", encode(&id))).await?;
            print::out("deleted\n");
        }
    }
    Ok(())
}

pub(super) async fn oauth_app(config: Config, command: OauthAppCommand) -> anyhow::Result<()> {
    match command {
        OauthAppCommand::Set { integration, client_id, client_secret, scopes, reach } => {
            let (client, path) = reach.client(&config)?;
            let (provider, key) = provided(&integration);
            let app = json!({"provider_key": provider, "integration_key": key, "client_id": client_id, "client_secret": client_secret, "scopes": scopes});
            let reply = client.post(path, &json!({"oauth_app": app})).await?;
            print::out(&format!("kept; register this redirect URL at the provider: {}\n", text(&reply["oauth_app"], "redirect_url")));
        }
        OauthAppCommand::List { json, reach } => {
            let (client, path) = reach.client(&config)?;
            let reply = client.get(path).await?;
            if json {
                print::json(&reply);
                return Ok(());
            }
            let rows: Vec<_> =
                list(&reply, "oauth_apps").iter().map(|app| vec![integration_of(app), text(app, "client_id"), text(app, "id")]).collect();
            OAUTH_APPS.show(&rows);
        }
        OauthAppCommand::Delete { id, reach } => {
            let (client, path) = reach.client(&config)?;
            client.delete(&format!("{path}/{}", encode(&id))).await?;
            print::out("deleted\n");
        }
    }
    Ok(())
}
