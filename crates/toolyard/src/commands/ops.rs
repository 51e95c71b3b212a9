//! `toolyard ops`: what an agent may ask of Toolyard itself.

use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::call::{Arguments, op_schema, outcome};
use super::client::{Client, Remote, ShowArgs};
use super::integrations::{encode, list, text};
use super::names::reference;
use super::print::{self, Column, Table};
use crate::config::Config;

/// Longer than any op takes; `test_subscription` waits for somebody else.
const LONGEST: Duration = Duration::from_secs(330);

/// Without a command it lists.
#[derive(Debug, Args)]
pub(super) struct OpsArgs {
    #[command(subcommand)]
    command: Option<OpsCommand>,
    #[command(flatten)]
    list: ShowArgs,
}

#[derive(Debug, Subcommand)]
enum OpsCommand {
    /// List platform ops
    List(ShowArgs),
    /// Show an op with its schema and what the run decides
    Show {
        op: String,
        #[command(flatten)]
        remote: Remote,
    },
    /// Call an op
    Call(CallArgs),
}

#[derive(Debug, Args)]
struct CallArgs {
    /// Name of the op, such as `read_config`
    op: String,
    #[command(flatten)]
    arguments: Arguments,
    /// What the run decides, as a JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "workflow")]
    context: Option<String>,
    /// The same, for a run of this workflow
    #[arg(long, value_name = "SLUG")]
    workflow: Option<String>,
    /// Print the whole answer
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Does what the command says; `false` when an op said no or waits.
pub(super) async fn run(config: Config, args: OpsArgs) -> anyhow::Result<bool> {
    match args.command.unwrap_or(OpsCommand::List(args.list)) {
        OpsCommand::List(ShowArgs { json, remote }) => {
            let reply = Client::new(&config, &remote)?.get("/tools/ops").await?;
            if json {
                print::json(&reply);
                return Ok(true);
            }
            let rows: Vec<_> = list(&reply, "ops")
                .iter()
                .map(|op| {
                    let description = text(op, "description");
                    let first = description.split_inclusive(". ").next().unwrap_or_default().trim_end().to_owned();
                    vec![text(op, "op"), text(op, "permission"), first]
                })
                .collect();
            Table::new(&[Column::text("OP"), Column::state("PERMISSION"), Column::text("DESCRIPTION")]).show(&rows);
        }
        OpsCommand::Show { op, remote } => {
            let reply = Client::new(&config, &remote)?.get("/tools/ops").await?;
            let known = |found: &&Value| found["op"] == op.as_str() || list(found, "aliases").iter().any(|alias| *alias == op.as_str());
            let found = list(&reply, "ops").iter().find(known);
            print::json(found.with_context(|| format!("there is no op `{op}`; `toolyard ops` lists them"))?);
        }
        OpsCommand::Call(args) => return call(&config, args).await,
    }
    Ok(true)
}

async fn call(config: &Config, args: CallArgs) -> anyhow::Result<bool> {
    let client = Client::new(config, &args.remote)?;
    let context = match (args.context, args.workflow) {
        (Some(context), _) => serde_json::from_str(&context).context("--context is not JSON")?,
        (None, Some(slug)) => run_of(&client, &slug).await?,
        (None, None) => json!({}),
    };
    let schema = if args.arguments.need_a_schema() { op_schema(&client, &args.op).await } else { None };
    let body = json!({"arguments": args.arguments.read(schema.as_ref())?, "context": context});
    let reply =
        client.doing(format!("calling {}", args.op)).post_within(&format!("/tools/ops/{}", encode(&args.op)), &body, LONGEST).await?;
    Ok(outcome(&reply, args.json))
}

/// The context of a run of the workflow's newest revision.
async fn run_of(client: &Client, slug: &str) -> anyhow::Result<Value> {
    let reply = super::workflow::retrieved(client, slug, &json!({"workflow_ref": reference(slug)})).await?;
    let revision = &reply["workflow_revision"];
    let (artifact, variant) = (&revision["workflow_id"], &revision["workflow_variant_id"]);
    Ok(json!({"workflow": {"artifact": {"id": artifact}, "variant": {"id": variant}, "is_draft": false}}))
}
