//! `toolyard approval` and `toolyard permissions`: which calls must ask, and a person's word on those that wait.

use anyhow::{Context, ensure};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::call::{Arguments, schema_of};
use super::client::{Client, Remote, ShowArgs};
use super::integrations::{encode, list, text};
use super::names;
use super::notices::{self, NoticesArgs};
use super::print::{self, Column, Table};
use crate::config::Config;

const APPROVALS: Table =
    Table::new(&[Column::id("ID"), Column::state("STATUS"), Column::time("ASKED"), Column::text("CALL"), Column::text("ARGUMENTS")])
        .when_empty("no approvals; calls wait for a person where `toolyard permissions ask REF` says so");
const SHOWN_ARGUMENTS: usize = 80;

/// Without a command it lists.
#[derive(Debug, Args)]
pub(super) struct ApprovalArgs {
    #[command(subcommand)]
    command: Option<ApprovalCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// pending, approved, denied, used or expired [default: all]
    #[arg(long)]
    status: Option<String>,
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
enum ApprovalCommand {
    /// List approvals, newest first
    List(ListArgs),
    /// Show an approval with its arguments
    Show {
        /// Its id, or the end of it as the list shows it
        id: String,
        #[command(flatten)]
        remote: Remote,
    },
    /// Let the call go through once
    Approve(DecideArgs),
    /// Refuse the call
    Deny(DecideArgs),
    /// Say who is told that a call waits
    Notices(NoticesArgs),
}

#[derive(Debug, Args)]
struct DecideArgs {
    /// Its id, or the end of it as the list shows it
    id: String,
    /// Why; a denied caller reads it
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

pub(super) async fn approval(config: Config, args: ApprovalArgs) -> anyhow::Result<()> {
    match args.command.unwrap_or(ApprovalCommand::List(args.list)) {
        ApprovalCommand::List(args) => list_approvals(&config, &args).await,
        ApprovalCommand::Show { id, remote } => {
            let client = Client::new(&config, &remote)?;
            let reply = client.get(&path(&client, &id).await?).await?;
            print::json(&reply["approval"]);
            Ok(())
        }
        ApprovalCommand::Notices(args) => notices::run(&config, args).await,
        ApprovalCommand::Approve(args) => {
            let call = decide(&config, args, "approve").await?;
            print::out(&format!("approved; {call} goes through once, made again by the same key with the same arguments\n"));
            Ok(())
        }
        ApprovalCommand::Deny(args) => {
            let call = decide(&config, args, "deny").await?;
            print::out(&format!("denied; {call} is refused with these arguments until the approval expires\n"));
            Ok(())
        }
    }
}

async fn path(client: &Client, written: &str) -> anyhow::Result<String> {
    let id = if names::is_whole(written) {
        written.to_owned()
    } else {
        names::APPROVAL.id(list(&client.get("/tools/approvals?limit=1000").await?, "approvals"), written)?
    };
    Ok(format!("/tools/approvals/{}", encode(&id)))
}

/// Which call was decided.
async fn decide(config: &Config, args: DecideArgs, decision: &str) -> anyhow::Result<String> {
    let body = json!({"decision": decision, "note": args.note});
    let client = Client::new(config, &args.remote)?;
    let reply = client.post(&path(&client, &args.id).await?, &body).await?;
    Ok(text(&reply["approval"], "call_ref"))
}

async fn list_approvals(config: &Config, args: &ListArgs) -> anyhow::Result<()> {
    let filter = args.status.as_ref().map(|status| format!("&status={}", encode(status))).unwrap_or_default();
    let reply = Client::new(config, &args.remote)?.get(&format!("/tools/approvals?limit={}{filter}", args.limit)).await?;
    if args.json {
        print::json(&reply);
        return Ok(());
    }
    let rows: Vec<_> = list(&reply, "approvals")
        .iter()
        .map(|row| {
            let arguments: String = row["arguments"].to_string().chars().take(SHOWN_ARGUMENTS).collect();
            vec![text(row, "id"), text(row, "status"), text(row, "created_at"), text(row, "call_ref"), arguments]
        })
        .collect();
    APPROVALS.show(&rows);
    Ok(())
}

/// Without a command it shows them.
#[derive(Debug, Args)]
pub(super) struct PermissionsArgs {
    #[command(subcommand)]
    command: Option<PermissionsCommand>,
    #[command(flatten)]
    show: ShowArgs,
}

#[derive(Debug, Args)]
struct RuleArgs {
    /// A ref; `*` stands for any text, as in `tools.native.github.CREATE_*`
    pattern: String,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum PermissionsCommand {
    /// Show what the project says about calls
    Show(ShowArgs),
    /// Let calls run
    Allow(RuleArgs),
    /// Make calls wait for a person
    Ask(RuleArgs),
    /// Refuse calls
    Deny(RuleArgs),
    /// Take a rule away
    Remove(RuleArgs),
    /// Say what would happen to a call, by which rule, and which argument made it fit
    Explain(ExplainArgs),
    /// Say what happens to calls that no rule fits
    Default {
        mode: Mode,
        #[command(flatten)]
        remote: Remote,
    },
}

#[derive(Debug, Args)]
struct ExplainArgs {
    /// A whole ref, such as `tools.native.github.CREATE_AN_ISSUE.main`
    target: String,
    #[command(flatten)]
    arguments: Arguments,
    /// Print the whole answer
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// What happens to calls that no rule fits.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    /// They run
    Allow,
    /// They wait for a person
    Ask,
    /// They are refused
    Deny,
    /// Reads run, everything else asks
    #[value(name = "allow_reads")]
    AllowReads,
    /// Nothing is said: calls run, and platform ops that change something ask
    Unset,
}

pub(super) async fn permissions(config: Config, args: PermissionsArgs) -> anyhow::Result<()> {
    match args.command.unwrap_or(PermissionsCommand::Show(args.show)) {
        PermissionsCommand::Show(ShowArgs { json, remote }) => {
            let reply = Client::new(&config, &remote)?.get(PERMISSIONS).await?;
            if json {
                print::json(&reply["permissions"]);
            } else {
                show(&reply["permissions"]);
            }
            Ok(())
        }
        PermissionsCommand::Allow(rule) => set_rule(&config, rule, Some("allow")).await,
        PermissionsCommand::Ask(rule) => set_rule(&config, rule, Some("ask")).await,
        PermissionsCommand::Deny(rule) => set_rule(&config, rule, Some("deny")).await,
        PermissionsCommand::Remove(rule) => set_rule(&config, rule, None).await,
        PermissionsCommand::Explain(args) => explain(&config, args).await,
        PermissionsCommand::Default { mode, remote } => {
            let value = mode.to_possible_value().filter(|_| !matches!(mode, Mode::Unset));
            let value = value.map_or(Value::Null, |value| json!(value.get_name()));
            change(&config, &remote, |permissions| {
                permissions["default"] = value;
                Ok(())
            })
            .await
        }
    }
}

const PERMISSIONS: &str = "/tools/permissions";

async fn explain(config: &Config, args: ExplainArgs) -> anyhow::Result<()> {
    let client = Client::new(config, &args.remote)?;
    let schema = if args.arguments.need_a_schema() { schema_of(&client, &args.target).await } else { None };
    let arguments = args.arguments.read(schema.as_ref())?;
    let reply = client.post(&format!("{PERMISSIONS}/explain"), &json!({"name": args.target, "arguments": arguments})).await?;
    if args.json {
        print::json(&reply);
        return Ok(());
    }
    print::out(&format!("{}: {}\n", text(&reply, "permission"), text(&reply, "why")));
    for rule in list(&reply, "rules").iter().skip(1) {
        print::out(&format!("  also fits: {} {}\n", text(rule, "permission"), text(rule, "pattern")));
    }
    Ok(())
}

/// A pattern has one rule; a new one goes last, and none takes it away.
async fn set_rule(config: &Config, rule: RuleArgs, permission: Option<&str>) -> anyhow::Result<()> {
    let RuleArgs { pattern, remote } = rule;
    change(config, &remote, |permissions| {
        let mut rules = list(permissions, "rules").to_vec();
        let before = rules.len();
        rules.retain(|rule| rule["pattern"] != pattern.as_str());
        match permission {
            Some(permission) => rules.push(json!({"pattern": pattern, "permission": permission})),
            None => ensure!(rules.len() < before, "there is no rule `{pattern}`; `toolyard permissions` shows them"),
        }
        permissions["rules"] = json!(rules);
        Ok(())
    })
    .await
}

async fn change(config: &Config, remote: &Remote, edit: impl FnOnce(&mut Value) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let client = Client::new(config, remote)?;
    let mut body = client.get(PERMISSIONS).await?;
    edit(body.get_mut("permissions").context("the server sent no permissions")?)?;
    show(&client.put(PERMISSIONS, &body).await?["permissions"]);
    Ok(())
}

fn show(permissions: &Value) {
    let mut rows: Vec<_> = list(permissions, "rules").iter().map(|rule| vec![text(rule, "permission"), text(rule, "pattern")]).collect();
    rows.push(vec![permissions["default"].as_str().unwrap_or("unset").to_owned(), "(everything else)".to_owned()]);
    Table::new(&[Column::state("PERMISSION"), Column::text("CALLS")]).show(&rows);
}
