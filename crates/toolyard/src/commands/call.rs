//! `toolyard call`: call an action, or anything else by its ref.

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::{Map, Value, json};

use super::client::{Client, Remote};
use super::connect::{pair, query};
use super::integrations::{list, provided, text};
use super::print;
use crate::config::Config;

#[derive(Debug, Args)]
pub(super) struct CallArgs {
    /// Key of the integration, such as `github` or `openapi/my-api`; or a whole ref, such as `workflow.variant.hello`
    target: String,
    /// Key of the action, such as `CREATE_AN_ISSUE`; nothing after a ref
    action: Option<String>,
    #[command(flatten)]
    arguments: Arguments,
    /// Connection to use [default: the newest usable one]
    #[arg(long, requires = "action")]
    connection: Option<String>,
    /// Print the whole answer
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// What a tool is given.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// An argument; the value is read as JSON where it is JSON
    #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = pair)]
    args: Vec<(String, String)>,
    /// All arguments as one JSON object
    #[arg(long = "args", visible_alias = "arguments", value_name = "JSON", conflicts_with = "args")]
    object: Option<String>,
}

impl Arguments {
    pub(super) fn read(self) -> anyhow::Result<Value> {
        match self.object {
            Some(object) => serde_json::from_str(&object).context("--args is not JSON"),
            None => Ok(Value::Object(self.args.into_iter().map(|(name, value)| (name, read(value))).collect::<Map<_, _>>())),
        }
    }
}

pub(super) fn read(value: String) -> Value {
    serde_json::from_str(&value).unwrap_or(Value::String(value))
}

/// Calls a tool; `false` when it said no or did not run.
pub(super) async fn call(config: Config, args: CallArgs) -> anyhow::Result<bool> {
    let client = Client::new(&config, &args.remote)?;
    let name = match &args.action {
        None => {
            let key = &args.target;
            ensure!(key.contains('.') || key.contains("__"), "name an action of {key}; `toolyard integrations show {key}` lists them");
            key.clone()
        }
        Some(action) => {
            let connection = match args.connection {
                Some(slug) => slug,
                None => usable_slug(&client, &args.target).await?,
            };
            let (provider, key) = provided(&args.target);
            format!("tools.{provider}.{key}.{action}.{connection}")
        }
    };
    let body = json!({"data": {"id": "cli", "type": "function", "function": {"name": name, "arguments": args.arguments.read()?}}});
    let reply = client.doing(format!("calling {name}")).post("/tools/call", &body).await?;
    Ok(outcome(&reply, args.json))
}

async fn usable_slug(client: &Client, integration: &str) -> anyhow::Result<String> {
    let found = query(client, Some(integration)).await?;
    let usable = list(&found, "connections").iter().find(|connection| connection["flags"]["is_valid"] == true);
    usable
        .map(|connection| text(connection, "slug"))
        .with_context(|| format!("{integration} is not connected; run `toolyard connect {integration}`"))
}

/// Prints what a call came to; `false` when the tool said no, or waits for a person.
pub(super) fn outcome(reply: &Value, json: bool) -> bool {
    if let Some(id) = reply["approval"]["id"].as_str() {
        if json {
            print::json(reply);
        }
        eprintln!("waiting: `{}` needs a person's word", text(&reply["approval"], "call_ref"));
        eprintln!("hint: `toolyard approval approve {id}`, then call again");
        return false;
    }
    let call = &reply["call"];
    let succeeded = call["status"]["code"] == "STATUS_CODE_OK";
    if json {
        print::json(reply);
    } else {
        let content: Value = serde_json::from_str(call["data"]["content"].as_str().unwrap_or("null")).unwrap_or(Value::Null);
        // An integration's result travels in an envelope.
        let data = if content["successful"].is_boolean() { &content["data"] } else { &content };
        if succeeded || !data.is_null() {
            print::json(data);
        }
    }
    if let Some(message) = call["status"]["message"].as_str() {
        eprintln!("error: {message}");
    }
    succeeded
}
