//! `toolyard approval notices`: who is told that a call waits for a person.

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::{Client, Remote, ShowArgs};
use super::integrations::{encode, list, text};
use super::names;
use super::print::{self, Column, Table};
use crate::config::Config;

const PATH: &str = "/tools/approvals/notices";
const NOTICES: Table =
    Table::new(&[Column::id("ID"), Column::text("KIND"), Column::text("WHERE").wide(48), Column::time("LAST"), Column::text("ERROR")])
        .when_empty("nobody is told that a call waits; `toolyard approval notices add` changes that");

/// Without a command it lists.
#[derive(Debug, Args)]
pub(super) struct NoticesArgs {
    #[command(subcommand)]
    command: Option<NoticesCommand>,
    #[command(flatten)]
    show: ShowArgs,
}

#[derive(Debug, Subcommand)]
enum NoticesCommand {
    /// Have an address told, or a tool called
    Add(AddArgs),
    /// Send one about no call, and say how that went
    Test(OneArgs),
    /// Tell somebody no more
    Remove(OneArgs),
}

#[derive(Debug, Args)]
#[group(id = "way", required = true, multiple = false, args = ["webhook", "tool"])]
struct AddArgs {
    /// An address that gets a signed post
    #[arg(long, value_name = "ADDRESS")]
    webhook: Option<String>,
    /// An action through a connection, such as `tools.native.slack.SEND_A_MESSAGE.main`
    #[arg(long, value_name = "REF")]
    tool: Option<String>,
    /// Its arguments as one JSON object; texts may hold `{{ approval.call_ref }}`, `{{ approval.url }}`, `{{ approval.id }}` and `{{ approval.expires_at }}`
    #[arg(long, value_name = "JSON", requires = "tool")]
    args: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
struct OneArgs {
    /// Its id, or the end of it as the list shows it
    id: String,
    #[command(flatten)]
    remote: Remote,
}

pub(super) async fn run(config: &Config, args: NoticesArgs) -> anyhow::Result<()> {
    match args.command {
        None => {
            let reply = Client::new(config, &args.show.remote)?.get(PATH).await?;
            if args.show.json {
                print::json(&reply);
            } else {
                NOTICES.show(&list(&reply, "notices").iter().map(cells).collect::<Vec<_>>());
            }
        }
        Some(NoticesCommand::Add(args)) => add(config, args).await?,
        Some(NoticesCommand::Test(OneArgs { id, remote })) => {
            let client = Client::new(config, &remote)?;
            let reply = client.post(&format!("{}/test", path(&client, &id).await?), &Value::Null).await?;
            if reply["ok"] != true {
                bail!("{}", text(&reply, "message"));
            }
            print::out("sent\n");
        }
        Some(NoticesCommand::Remove(OneArgs { id, remote })) => {
            let client = Client::new(config, &remote)?;
            client.delete(&path(&client, &id).await?).await?;
            print::out("removed\n");
        }
    }
    Ok(())
}

async fn add(config: &Config, args: AddArgs) -> anyhow::Result<()> {
    let arguments: Value = args.args.as_deref().map_or(Ok(json!({})), serde_json::from_str).context("--args is not JSON")?;
    let notice = match (args.webhook, args.tool) {
        (Some(url), _) => json!({"kind": "webhook", "url": url}),
        (None, tool) => json!({"kind": "tool", "call_ref": tool, "arguments": arguments}),
    };
    let reply = Client::new(config, &args.remote)?.post(PATH, &json!({"notice": notice})).await?;
    let secret = text(&reply["notice"], "secret");
    print::fields(&[("id", text(&reply["notice"], "id")), ("secret", secret.clone())]);
    if !secret.is_empty() {
        eprintln!("hint: posts are signed with the secret; it is not shown again");
    }
    Ok(())
}

async fn path(client: &Client, written: &str) -> anyhow::Result<String> {
    let id =
        if names::is_whole(written) { written.to_owned() } else { names::NOTICE.id(list(&client.get(PATH).await?, "notices"), written)? };
    Ok(format!("{PATH}/{}", encode(&id)))
}

fn cells(row: &Value) -> Vec<String> {
    let place = if row["url"].is_string() { text(row, "url") } else { text(row, "call_ref") };
    vec![text(row, "id"), text(row, "kind"), place, text(row, "last_at"), text(row, "last_error")]
}
