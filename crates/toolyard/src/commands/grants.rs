//! `toolyard grants`: what people let clients do in the project.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::client::{Client, Remote};
use super::consent::Consent;
use super::integrations::{encode, list, text};
use super::names;
use super::print::{self, Column, Table};
use crate::config::Config;

const GRANTS: Table = Table::new(&[
    Column::id("ID"),
    Column::text("CLIENT"),
    Column::text("LET IN BY"),
    Column::text("OPENS"),
    Column::text("PERMISSIONS"),
    Column::state("STATE"),
    Column::time("LAST USED"),
])
.when_empty("no client was let in; an MCP client signs in from the address alone, see docs/mcp.md");

/// Without a command it lists.
#[derive(Debug, Args)]
pub(super) struct GrantsArgs {
    #[command(subcommand)]
    command: Option<GrantsCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Args)]
struct ListArgs {
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
}

#[derive(Debug, Subcommand)]
enum GrantsCommand {
    /// List grants, newest first
    List(ListArgs),
    /// Revoke a grant with all its tokens
    Revoke {
        /// Its id, or the end of it as the list shows it
        id: String,
        #[command(flatten)]
        consent: Consent,
        #[command(flatten)]
        remote: Remote,
    },
}

pub(super) async fn run(config: Config, args: GrantsArgs) -> anyhow::Result<()> {
    match args.command.unwrap_or(GrantsCommand::List(args.list)) {
        GrantsCommand::List(args) => show(&config, &args).await,
        GrantsCommand::Revoke { id, consent, remote } => {
            let client = Client::new(&config, &remote)?;
            let found = client.get("/grants?limit=500").await?;
            let id = if names::is_whole(&id) { id } else { names::GRANT.id(list(&found, "grants"), &id)? };
            let grant = client.get(&format!("/grants/{}", encode(&id))).await?["grant"].take();
            let used = grant["last_used_at"].as_str().filter(|_| grant["state"] == "active").into_iter();
            let stops: Vec<String> =
                used.map(|last| format!("{}; the last use was at {}", text(&grant, "client_name"), print::time(last))).collect();
            consent.ask(&format!("revoke the grant of {}", text(&grant, "client_name")), &stops)?;
            let ended = client.delete(&format!("/grants/{}", encode(&id))).await?;
            print::out(&format!("revoked what {} was let do\n", text(&ended["grant"], "client_name")));
            Ok(())
        }
    }
}

async fn show(config: &Config, args: &ListArgs) -> anyhow::Result<()> {
    let active = if args.all { "" } else { "&active=true" };
    let reply = Client::new(config, &args.remote)?.get(&format!("/grants?limit={}{active}", args.limit)).await?;
    if args.json {
        print::json(&reply);
        return Ok(());
    }
    let row = |grant: &Value| {
        let by = if grant["user_name"].is_string() { text(grant, "user_name") } else { text(grant, "key_name") };
        let permissions: Vec<&str> = grant["permissions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let (resource, state) = (text(grant, "resource"), text(grant, "state"));
        vec![text(grant, "id"), text(grant, "client_name"), by, resource, permissions.join(" "), state, text(grant, "last_used_at")]
    };
    GRANTS.show(&list(&reply, "grants").iter().map(row).collect::<Vec<_>>());
    Ok(())
}
