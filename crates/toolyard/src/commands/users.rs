//! `toolyard users`: the end users of the project, their sessions, and forgetting one.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::client::{Client, Remote};
use super::consent::Consent;
use super::integrations::{encode, list, text};
use super::print::{self, Column, Table};
use crate::config::Config;

const USERS: Table = Table::new(&[Column::text("END USER"), Column::id("ID"), Column::time("SINCE")])
    .when_empty("no end users; a connection or a session for one makes them known, see docs/end-users.md");

const SESSIONS: Table =
    Table::new(&[Column::id("ID"), Column::text("END USER"), Column::text("FOR"), Column::state("STATE"), Column::time("EXPIRES")])
        .when_empty("no sessions; `toolyard users open NAME` makes one");

/// Without a command it lists.
#[derive(Debug, Args)]
pub(super) struct UsersArgs {
    #[command(subcommand)]
    command: Option<UsersCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Only those whose name holds this
    #[arg(long)]
    name: Option<String>,
    /// The newest so many
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum UsersCommand {
    /// List end users, newest first
    List(ListArgs),
    /// Print what is kept about an end user, as JSON and without secrets
    Export {
        /// What the project calls them
        name: String,
        #[command(flatten)]
        remote: Remote,
    },
    /// Remove an end user's accounts, sessions, triggers, approvals and runs
    Forget {
        /// What the project calls them
        name: String,
        #[command(flatten)]
        consent: Consent,
        #[command(flatten)]
        remote: Remote,
    },
    /// List sessions of end users that have not ended, newest first
    Sessions {
        /// Only those of this end user
        name: Option<String>,
        /// Also those that have ended
        #[arg(long)]
        all: bool,
        /// The newest so many
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        remote: Remote,
    },
    /// Open a session for an end user, and print its token and its MCP address
    Open(OpenArgs),
    /// End a session of an end user
    Close {
        /// The id of the session
        id: String,
        #[command(flatten)]
        remote: Remote,
    },
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that is given or not")]
struct OpenArgs {
    /// What the project calls them
    name: String,
    /// An integration that may be used; may be repeated [default: all that the user connected]
    #[arg(long = "app", value_name = "INTEGRATION")]
    apps: Vec<String>,
    /// In place of apps: the tools of this agent, by its number or id
    #[arg(long, conflicts_with_all = ["apps", "tools"])]
    agent: Option<String>,
    /// A tool that may be used, a ref without its connection; may be repeated
    #[arg(long = "tool", value_name = "REF")]
    tools: Vec<String>,
    /// Show three tools in place of all: find, call, connect
    #[arg(long)]
    search: bool,
    /// The user may not connect accounts
    #[arg(long)]
    no_connect: bool,
    /// The user may approve calls that wait
    #[arg(long)]
    may_approve: bool,
    /// What triggers start that the user makes: a workflow, by slug, or `webhook` for the project's webhook in Composio's API [default: they make none]
    #[arg(long, value_name = "WORKFLOW", conflicts_with = "agent")]
    triggers: Option<String>,
    /// How long it lasts, in hours
    #[arg(long, default_value_t = 24)]
    hours: u64,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

pub(super) async fn run(config: Config, args: UsersArgs) -> anyhow::Result<()> {
    match args.command.unwrap_or(UsersCommand::List(args.list)) {
        UsersCommand::List(args) => show(&config, &args).await,
        UsersCommand::Export { name, remote } => {
            print::json(&Client::new(&config, &remote)?.get(&format!("/end-users/{}", encode(&name))).await?);
            Ok(())
        }
        UsersCommand::Forget { name, consent, remote } => forget(&Client::new(&config, &remote)?, &name, &consent).await,
        UsersCommand::Sessions { name, all, limit, json, remote } => {
            let open = if all { "" } else { "&open=true" };
            let of = name.map(|name| format!("&end_user={}", encode(&name))).unwrap_or_default();
            let reply = Client::new(&config, &remote)?.get(&format!("/sessions?limit={limit}{open}{of}")).await?;
            if json {
                print::json(&reply);
            } else {
                SESSIONS.show(&list(&reply, "sessions").iter().map(session_row).collect::<Vec<_>>());
            }
            Ok(())
        }
        UsersCommand::Open(args) => open(&config, args).await,
        UsersCommand::Close { id, remote } => {
            let ended = Client::new(&config, &remote)?.delete(&format!("/sessions/{}", encode(&id))).await?;
            print::out(&format!("ended the session of {}\n", text(&ended["session"], "end_user")));
            Ok(())
        }
    }
}

async fn show(config: &Config, args: &ListArgs) -> anyhow::Result<()> {
    let name = args.name.as_ref().map(|name| format!("&name={}", encode(name))).unwrap_or_default();
    let reply = Client::new(config, &args.remote)?.get(&format!("/end-users?limit={}{name}", args.limit)).await?;
    if args.json {
        print::json(&reply);
        return Ok(());
    }
    let row = |user: &Value| vec![text(user, "end_user"), text(user, "id"), text(user, "created_at")];
    USERS.show(&list(&reply, "end_users").iter().map(row).collect::<Vec<_>>());
    Ok(())
}

async fn forget(client: &Client, name: &str, consent: &Consent) -> anyhow::Result<()> {
    let kept = client.get(&format!("/end-users/{}", encode(name))).await?;
    let many = |kind: &str| kept["data"][kind].as_array().map_or(0, Vec::len);
    let stops: Vec<String> = ["connections", "sessions", "subscriptions", "schedules", "approvals", "runs"]
        .into_iter()
        .filter(|kind| many(kind) > 0)
        .map(|kind| format!("{} {kind}", many(kind)))
        .collect();
    consent.ask(&format!("forget {name}"), &stops)?;
    let forgotten = client.delete(&format!("/end-users/{}", encode(name))).await?;
    let removed: Vec<String> =
        forgotten["forgotten"].as_object().into_iter().flatten().map(|(kind, count)| format!("{count} {kind}")).collect();
    print::out(&format!("forgot {name}: {}\n", removed.join(", ")));
    Ok(())
}

async fn open(config: &Config, args: OpenArgs) -> anyhow::Result<()> {
    let mut new = Map::from_iter([
        ("end_user".to_owned(), json!(args.name)),
        ("lifetime_seconds".to_owned(), json!(args.hours.saturating_mul(3600))),
    ]);
    let lists = [("apps", args.apps), ("tools", args.tools)];
    new.extend(lists.into_iter().filter(|(_, named)| !named.is_empty()).map(|(field, named)| (field.to_owned(), json!(named))));
    new.extend(args.agent.map(|agent| ("agent_id".to_owned(), json!(agent))));
    let flags = [("may_connect", !args.no_connect), ("may_approve", args.may_approve)];
    new.extend(flags.into_iter().map(|(field, is_so)| (field.to_owned(), json!(is_so))));
    if let Some(start) = &args.triggers {
        let start = if start == "webhook" { json!({"webhook": true}) } else { json!({"references": {"workflow": {"slug": start}}}) };
        new.insert("triggers".to_owned(), start);
    }
    new.insert("mode".to_owned(), json!(if args.search { "search" } else { "all" }));
    let made = Client::new(config, &args.remote)?.post("/sessions", &json!({"session": new})).await?;
    if args.json {
        print::json(&made);
        return Ok(());
    }
    let session = &made["session"];
    print::out(&format!(
        "session {} of {} until {}\ntoken: {}\nMCP:   {}\n",
        text(session, "id"),
        text(session, "end_user"),
        print::time(&text(session, "expires_at")),
        text(session, "token"),
        text(session, "mcp_url")
    ));
    Ok(())
}

fn session_row(session: &Value) -> Vec<String> {
    let names = |field: &str| session[field].as_array().map(|names| names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "));
    let about = names("tools").or_else(|| names("apps")).or_else(|| session["agent_id"].as_str().map(|agent| format!("agent {agent}")));
    let about = about.or_else(|| (session["is_tool_router"] == true).then(|| "tool router".to_owned()));
    let state = if session["is_open"] == true { "open" } else { "ended" };
    vec![
        text(session, "id"),
        text(session, "end_user"),
        about.unwrap_or_else(|| "all".to_owned()),
        state.to_owned(),
        text(session, "expires_at"),
    ]
}
