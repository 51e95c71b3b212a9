//! `toolyard call`: call an action, or anything else by its ref.

use anyhow::{Context, ensure};
use clap::Args;
use kernel::CallRef;
use serde_json::{Value, json};

use super::client::{Client, Remote};
use super::connect::{is_ready, pair, query};
use super::integrations::{encode, list, text};
use super::names::{self, Integration};
use super::{print, typed};
use crate::config::Config;

#[derive(Debug, Args)]
pub(super) struct CallArgs {
    /// Key of the integration, such as `github` or, if it was imported, `my-api`; or a whole ref, such as `workflow.variant.hello`
    target: String,
    /// Key of the action, such as `CREATE_AN_ISSUE`; nothing after a ref
    action: Option<String>,
    #[command(flatten)]
    arguments: Arguments,
    /// Connection to use [default: the newest usable one]
    #[arg(long, requires = "action")]
    connection: Option<String>,
    /// The end user whom the call is for; it goes through an account of theirs
    #[arg(long, value_name = "NAME")]
    end_user: Option<String>,
    /// Print the whole answer
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// What a tool is given.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// An argument, in the type that the tool's schema names; where it names none, JSON is read as JSON
    #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = pair)]
    args: Vec<(String, String)>,
    /// All arguments as one JSON object
    #[arg(long = "args", visible_alias = "arguments", value_name = "JSON", conflicts_with = "args")]
    object: Option<String>,
}

impl Arguments {
    /// Whether a schema is needed to read them.
    pub(super) fn need_a_schema(&self) -> bool {
        !self.args.is_empty()
    }

    pub(super) fn read(self, schema: Option<&Value>) -> anyhow::Result<Value> {
        match self.object {
            Some(object) => serde_json::from_str(&object).context("--args is not JSON"),
            None => Ok(Value::Object(typed::fields("--arg", self.args, schema)?)),
        }
    }
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
            let integration = names::integration(&client, &args.target).await?;
            let connection = match args.connection {
                Some(slug) => slug,
                None if args.end_user.is_some() => "auto".to_owned(),
                None => usable_slug(&client, &integration).await?,
            };
            let Integration { provider, key } = integration;
            format!("tools.{provider}.{key}.{action}.{connection}")
        }
    };
    let schema = if args.arguments.need_a_schema() { schema_of(&client, &name).await } else { None };
    let arguments = args.arguments.read(schema.as_ref())?;
    let mut body = json!({"data": {"id": "cli", "type": "function", "function": {"name": name, "arguments": arguments}}});
    if let Some(end_user) = args.end_user {
        body["end_user"] = json!(end_user);
    }
    let reply = client.doing(format!("calling {name}")).post("/tools/call", &body).await?;
    Ok(outcome(&reply, args.json))
}

/// The schema of what a ref takes. Where there is none to read, the call says what is wrong.
pub(super) async fn schema_of(client: &Client, name: &str) -> Option<Value> {
    let revision = |references: Value| async move {
        let reply = client.post("/workflows/revisions/retrieve", &references).await.ok()?;
        reply.pointer("/workflow_revision/data/schemas/inputs").cloned()
    };
    match name.parse::<CallRef>().ok()? {
        CallRef::Gateway { provider, integration, action, .. } => {
            let path = Integration { provider, key: integration }.path("tools");
            let reply = client.find(&format!("{path}/actions/{}", encode(&action))).await.ok()??;
            reply.pointer("/action/schemas/inputs").cloned()
        }
        CallRef::Reserved { op } => op_schema(client, &op).await,
        CallRef::Variant { slug, version: None } => revision(json!({"workflow_ref": {"slug": slug}})).await,
        CallRef::Variant { slug, version: Some(version) } => {
            revision(json!({"workflow_ref": {"slug": slug}, "workflow_revision_ref": {"version": version}})).await
        }
        CallRef::Environment { environment, slug } => {
            revision(json!({"workflow_ref": {"slug": slug}, "environment_ref": {"slug": environment}})).await
        }
    }
}

/// The schema of a platform op.
pub(super) async fn op_schema(client: &Client, op: &str) -> Option<Value> {
    let reply = client.get("/tools/ops").await.ok()?;
    let is_it = |found: &&Value| found["op"] == op || list(found, "aliases").iter().any(|alias| *alias == op);
    list(&reply, "ops").iter().find(is_it)?.get("input_schema").cloned()
}

async fn usable_slug(client: &Client, integration: &Integration) -> anyhow::Result<String> {
    let found = query(client, Some(integration)).await?;
    let usable = list(&found, "connections").iter().filter(|connection| is_ready(connection));
    if list(&found, "connections").is_empty() {
        // An integration without accounts has a connection that nobody made.
        let known = client.find(&integration.path("tools")).await?.unwrap_or_default();
        if known["integration"].is_object() && known["integration"].get("auth_schemes").is_none() {
            return Ok(format!("{}-main", integration.key));
        }
    }
    usable
        .min_by_key(|connection| connection["flags"]["is_failing"] == true)
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
        // What only repeats the message below is not said twice.
        let says_no_more = data.is_null() || *data == json!({"error": call["status"]["message"]});
        if succeeded || !says_no_more {
            print::json(data);
        }
    }
    if let Some(message) = call["status"]["message"].as_str() {
        eprintln!("error: {message}");
    }
    succeeded
}
