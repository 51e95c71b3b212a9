//! `toolyard agent`: agents, the apps they have, and the tools they may use.

mod chat;
mod show;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};

use super::client::{Client, Remote};
use super::consent::Consent;
use super::integrations::{encode, list, text};
use super::names;
use super::print;
use crate::config::Config;

const AGENTS: &str = "/agents?limit=1000";

/// Without a command it lists.
#[derive(Debug, Args)]
pub(super) struct AgentArgs {
    #[command(subcommand)]
    command: Option<AgentCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Part of a name or description
    #[arg(long)]
    search: Option<String>,
    /// active, inactive or training
    #[arg(long)]
    status: Option<String>,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// An agent that exists.
#[derive(Debug, Args)]
struct One {
    /// Name, number or UUID
    agent: String,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
struct CreateArgs {
    name: String,
    /// Any word, such as `support`
    #[arg(long = "type", default_value = "custom")]
    kind: String,
    #[arg(long)]
    description: Option<String>,
    /// App to assign; may be repeated
    #[arg(long = "app", value_name = "APP")]
    apps: Vec<String>,
    /// Where its apps come from
    #[arg(long, default_value = "explicit")]
    mode: ToolMode,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Where an agent's apps come from.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ToolMode {
    /// Only what is assigned
    Explicit,
    /// Every connected app that is not switched off
    Inherit,
}

#[derive(Debug, Args)]
struct AssignArgs {
    #[command(flatten)]
    one: One,
    /// Name of the app, such as `github`, or its stable id or catalog id
    #[arg(allow_hyphen_values = true)]
    app: String,
    /// More is more preferred
    #[arg(long, allow_hyphen_values = true)]
    priority: Option<i64>,
    /// full or read_only
    #[arg(long)]
    access: Option<String>,
    /// Only this action; may be repeated
    #[arg(long, value_name = "ACTION")]
    allow: Vec<String>,
    /// Not this action; may be repeated
    #[arg(long, value_name = "ACTION")]
    deny: Vec<String>,
    /// allow, ask or deny
    #[arg(long)]
    permission: Option<String>,
    /// Connection to use [default: the newest that works]
    #[arg(long, value_name = "SLUG")]
    connection: Option<String>,
    /// Provider to use, where several offer the app
    #[arg(long)]
    provider: Option<String>,
}

#[derive(Debug, Args)]
struct ToolsetArgs {
    #[command(flatten)]
    one: One,
    /// What the tools are for
    #[arg(long)]
    prompt: Option<String>,
    /// How many at most
    #[arg(long)]
    limit: Option<usize>,
    /// openai, anthropic, gemini or mcp: print definitions for that API
    #[arg(long)]
    format: Option<String>,
    /// Show what is left out, and why
    #[arg(long)]
    excluded: bool,
}

#[derive(Debug, Subcommand)]
enum AgentCommand {
    /// List agents
    List(ListArgs),
    /// Create an agent
    Create(CreateArgs),
    /// Show an agent with its apps
    Show(One),
    /// Assign an app, or change the settings of one that is assigned
    Assign(Box<AssignArgs>),
    /// Take an app away
    Unassign {
        #[command(flatten)]
        one: One,
        /// Name of the app, its stable id or its catalog id
        #[arg(allow_hyphen_values = true)]
        app: String,
    },
    /// Show the tools that an agent may use right now
    Toolset(ToolsetArgs),
    /// Talk to a workflow of kind agent
    Chat(chat::ChatArgs),
    /// Show who changed what, newest first
    History(One),
    /// Delete an agent
    Delete {
        #[command(flatten)]
        one: One,
        #[command(flatten)]
        consent: Consent,
    },
}

pub(super) async fn run(config: Config, args: AgentArgs) -> anyhow::Result<()> {
    match args.command.unwrap_or(AgentCommand::List(args.list)) {
        AgentCommand::List(args) => list_agents(&config, &args).await,
        AgentCommand::Create(args) => create(&config, args).await,
        AgentCommand::Show(one) => {
            let (client, path) = find(&config, &one).await?;
            show::agent(&client.get(&path).await?, one.json);
            Ok(())
        }
        AgentCommand::Assign(args) => assign(&config, *args).await,
        AgentCommand::Unassign { one, app } => {
            let (client, path) = find(&config, &one).await?;
            show::agent(&client.delete(&format!("{path}/tools/{}", encode(&app))).await?, one.json);
            Ok(())
        }
        AgentCommand::Toolset(args) => toolset(&config, args).await,
        AgentCommand::Chat(args) => chat::run(&config, args).await,
        AgentCommand::History(one) => {
            let (client, path) = find(&config, &one).await?;
            show::history(&client.get(&format!("{path}/history?limit=500")).await?, one.json);
            Ok(())
        }
        AgentCommand::Delete { one, consent } => {
            let (client, path) = find(&config, &one).await?;
            let agent = client.get(&path).await?;
            let apps = app_names(&agent);
            let stops = format!("whoever uses its apps ({apps}) through {path} or /mcp{path}");
            let stops: Vec<String> = (!apps.is_empty()).then_some(stops).into_iter().collect();
            consent.ask(&format!("delete the agent {}", text(&agent, "name")), &stops)?;
            let reply = client.delete(&path).await?;
            print::out(&format!("{}\n", text(&reply, "message")));
            Ok(())
        }
    }
}

async fn list_agents(config: &Config, args: &ListArgs) -> anyhow::Result<()> {
    let filter = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("&{name}={}", encode(value))).unwrap_or_default();
    let path = format!("{AGENTS}{}{}", filter("search", &args.search), filter("status", &args.status));
    show::agents(&Client::new(config, &args.remote)?.get(&path).await?, args.json);
    Ok(())
}

async fn create(config: &Config, args: CreateArgs) -> anyhow::Result<()> {
    let mode = args.mode.to_possible_value().map(|mode| mode.get_name().to_owned());
    let body =
        json!({"name": args.name, "agent_type": args.kind, "description": args.description, "tool_mode": mode, "tool_ids": args.apps});
    show::agent(&Client::new(config, &args.remote)?.post("/agents", &body).await?, args.json);
    Ok(())
}

async fn assign(config: &Config, args: AssignArgs) -> anyhow::Result<()> {
    let (client, path) = find(config, &args.one).await?;
    // A number is a stable id; names are never numbers.
    let id = args.app.parse::<i64>().map_or_else(|_| json!(args.app), |number| json!(number));
    let mut item = json!({"id": id, "priority": args.priority});
    let settings = [
        ("access", args.access.map(Value::from)),
        ("allow", (!args.allow.is_empty()).then(|| json!(args.allow))),
        ("deny", (!args.deny.is_empty()).then(|| json!(args.deny))),
        ("permission", args.permission.map(Value::from)),
        ("connection", args.connection.map(Value::from)),
        ("provider", args.provider.map(Value::from)),
    ];
    let settings: Map<String, Value> = settings.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    if !settings.is_empty() {
        item["config"] = Value::Object(settings);
    }
    show::agent(&client.post(&format!("{path}/tools"), &item).await?, args.one.json);
    Ok(())
}

async fn toolset(config: &Config, args: ToolsetArgs) -> anyhow::Result<()> {
    let (client, path) = find(config, &args.one).await?;
    let body = json!({"prompt": args.prompt, "limit": args.limit, "format": args.format, "excluded": args.excluded});
    let reply = client.post(&format!("{path}/toolset"), &body).await?;
    show::toolset(&reply, args.format.is_some(), args.excluded, args.one.json);
    Ok(())
}

/// A client, and the path of the agent that is meant.
async fn find(config: &Config, one: &One) -> anyhow::Result<(Client, String)> {
    let client = Client::new(config, &one.remote)?;
    let id = id_of(&client, &one.agent).await?;
    Ok((client, format!("/agents/{}", encode(&id))))
}

/// The number or UUID of an agent that is named by one of them or by its name.
pub(super) async fn id_of(client: &Client, written: &str) -> anyhow::Result<String> {
    if written.parse::<i64>().is_ok() || names::is_whole(written) {
        return Ok(written.to_owned());
    }
    Ok(names::AGENT.pick(&all(client).await?, written, |agent| vec![text(agent, "name")])?["id"].to_string())
}

/// All agents with their apps.
pub(super) async fn all(client: &Client) -> anyhow::Result<Vec<Value>> {
    Ok(client.get(AGENTS).await?.as_array().cloned().unwrap_or_default())
}

/// The apps of an agent in one cell.
fn app_names(agent: &Value) -> String {
    list(agent, "tools").iter().map(|tool| text(tool, "app_name")).collect::<Vec<_>>().join(", ")
}
