//! `toolyard connect`, `toolyard connections`, `toolyard oauth-app` and `toolyard call`: connect an account and use it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::client::{Client, Remote};
use super::integrations::{encode, list, text};
use super::print;
use crate::config::Config;

const WAIT: Duration = Duration::from_mins(10);
const POLL: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(super) struct ConnectArgs {
    /// Key of the integration, such as `github`
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
    list: ListArgs,
}

#[derive(Debug, Args)]
struct ListArgs {
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum ConnectionsCommand {
    /// List connections
    List(ListArgs),
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

#[derive(Debug, Args)]
pub(super) struct CallArgs {
    /// Key of the integration, such as `github`
    integration: String,
    /// Key of the action, such as `CREATE_AN_ISSUE`
    action: String,
    /// An argument; the value is read as JSON where it is JSON
    #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = pair)]
    args: Vec<(String, String)>,
    /// All arguments as one JSON object
    #[arg(long = "args", value_name = "JSON", conflicts_with = "args")]
    object: Option<String>,
    /// Connection to use [default: the newest usable one]
    #[arg(long)]
    connection: Option<String>,
    /// Print the whole answer
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as name=value")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(super) async fn connect(config: Config, args: ConnectArgs) -> anyhow::Result<()> {
    let client = Client::new(&config, &args.remote)?;
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
    let body = json!({"connection": {"slug": slug, "provider_key": "native", "integration_key": args.integration, "data": data}});
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

async fn wait(client: &Client, id: &str) -> anyhow::Result<Value> {
    let started = Instant::now();
    eprintln!("waiting for the browser (Ctrl-C to stop waiting)");
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
    let taken: Vec<String> = list(&taken, "connections").iter().map(|connection| text(connection, "slug")).collect();
    let names = std::iter::once(format!("{integration}-main")).chain((2..).map(|number| format!("{integration}-main-{number}")));
    names.into_iter().find(|name| !taken.contains(name)).context("no name is free")
}

async fn query(client: &Client, integration: Option<&str>) -> anyhow::Result<Value> {
    let filter = integration.map(|key| format!("?provider_key=native&integration_key={}", encode(key))).unwrap_or_default();
    client.post(&format!("/tools/connections/query{filter}"), &json!({})).await
}

fn account(connection: &Value) -> String {
    connection["meta"]["account"]["label"].as_str().map(|label| format!(" ({label})")).unwrap_or_default()
}

pub(super) async fn connections(config: Config, args: ConnectionsArgs) -> anyhow::Result<()> {
    match args.command.unwrap_or(ConnectionsCommand::List(args.list)) {
        ConnectionsCommand::List(ListArgs { json, remote }) => {
            let reply = query(&Client::new(&config, &remote)?, None).await?;
            if json {
                print::json(&reply);
                return Ok(());
            }
            let rows: Vec<_> = list(&reply, "connections")
                .iter()
                .map(|found| {
                    let state = if found["flags"]["is_valid"] == true {
                        "ready".to_owned()
                    } else {
                        found["status"]["message"].as_str().unwrap_or("waiting").to_owned()
                    };
                    vec![
                        text(found, "integration_key"),
                        text(found, "slug"),
                        text(&found["meta"]["account"], "label"),
                        text(found, "id"),
                        state,
                    ]
                })
                .collect();
            print::table(&["INTEGRATION", "SLUG", "ACCOUNT", "ID", "STATE"], &rows);
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
            let app = json!({"integration_key": integration, "client_id": client_id, "client_secret": client_secret, "scopes": scopes});
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
            let rows: Vec<_> = list(&reply, "oauth_apps")
                .iter()
                .map(|app| vec![text(app, "integration_key"), text(app, "client_id"), text(app, "id")])
                .collect();
            print::table(&["INTEGRATION", "CLIENT ID", "ID"], &rows);
        }
        OauthAppCommand::Delete { id, reach } => {
            let (client, path) = reach.client(&config)?;
            client.delete(&format!("{path}/{}", encode(&id))).await?;
            print::out("deleted\n");
        }
    }
    Ok(())
}

/// Calls an action; `false` when the tool said no.
pub(super) async fn call(config: Config, args: CallArgs) -> anyhow::Result<bool> {
    let client = Client::new(&config, &args.remote)?;
    let connection = match args.connection {
        Some(slug) => slug,
        None => usable_slug(&client, &args.integration).await?,
    };
    let arguments = match args.object {
        Some(object) => serde_json::from_str(&object).context("--args is not JSON")?,
        None => Value::Object(args.args.into_iter().map(|(name, value)| (name, read(value))).collect::<Map<_, _>>()),
    };
    let name = format!("tools.native.{}.{}.{connection}", args.integration, args.action);
    let body = json!({"data": {"id": "cli", "type": "function", "function": {"name": name, "arguments": arguments}}});
    let reply = client.post("/tools/call", &body).await?;
    if args.json {
        print::json(&reply);
    } else {
        let content: Value = serde_json::from_str(reply["call"]["data"]["content"].as_str().unwrap_or("null")).unwrap_or(Value::Null);
        print::json(&content["data"]);
    }
    if let Some(message) = reply["call"]["status"]["message"].as_str() {
        eprintln!("error: {message}");
    }
    Ok(reply["call"]["status"]["code"] == "STATUS_CODE_OK")
}

async fn usable_slug(client: &Client, integration: &str) -> anyhow::Result<String> {
    let found = query(client, Some(integration)).await?;
    let usable = list(&found, "connections").iter().find(|connection| connection["flags"]["is_valid"] == true);
    usable
        .map(|connection| text(connection, "slug"))
        .with_context(|| format!("{integration} is not connected; run `toolyard connect {integration}`"))
}

/// A value of the command line, as JSON where it is JSON.
pub(super) fn read(value: String) -> Value {
    serde_json::from_str(&value).unwrap_or(Value::String(value))
}
