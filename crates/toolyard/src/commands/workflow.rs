//! `toolyard workflow`: make, change, deploy and run workflows.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::calls::StatsArgs;
use super::client::{Client, Remote};
use super::consent::Consent;
use super::integrations::{encode, list, text};
use super::names::{self, reference};
use super::print::{self, Column, Table};
use super::usage;
use crate::config::Config;

const PAGE: usize = 500;

const WORKFLOWS: Table = Table::new(&[Column::text("SLUG"), Column::text("NAME"), Column::id("ID"), Column::state("STATE")])
    .when_empty("there are no workflows; `toolyard workflow create SLUG --file DATA.json` makes one");
const RUNS: Table = Table::new(&[
    Column::time("STARTED"),
    Column::state("CODE"),
    Column::number("TOOK"),
    Column::id("ID"),
    Column::text("WORKFLOW"),
    Column::state("STATE"),
    Column::text("MESSAGE"),
])
.when_empty("no runs; `toolyard workflow run SLUG` makes one");

const RUN_BUCKETS: Table = Table::new(&[Column::time("FROM"), Column::number("RUNS").wide(7), Column::number("FAILED").wide(7)]);

/// Without a command it lists.
#[derive(Debug, Args)]
pub(super) struct WorkflowArgs {
    #[command(subcommand)]
    command: Option<WorkflowCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Part of a slug or name
    #[arg(long)]
    search: Option<String>,
    /// Archived ones too
    #[arg(long)]
    archived: bool,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Which revision is meant; the newest if nothing is said.
#[derive(Debug, Args)]
struct RevisionArgs {
    /// One version
    #[arg(long, value_name = "N", conflicts_with = "environment")]
    version: Option<String>,
    /// What is deployed there
    #[arg(long, value_name = "SLUG")]
    environment: Option<String>,
}

#[derive(Debug, Subcommand)]
enum WorkflowCommand {
    /// List workflows
    List(ListArgs),
    /// Show a workflow's data and versions
    Show {
        slug: String,
        #[command(flatten)]
        which: RevisionArgs,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        remote: Remote,
    },
    /// Create a workflow
    Create {
        slug: String,
        #[arg(long)]
        name: Option<String>,
        /// Its data as JSON; `-` reads standard input
        #[arg(long)]
        file: Option<PathBuf>,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        remote: Remote,
    },
    /// Say whether data could be saved, and what its steps call; nothing is saved
    Check {
        /// The data as JSON; `-` reads standard input
        file: PathBuf,
        /// The slug that it has or will have, so that a step may call it
        #[arg(long, default_value = "")]
        slug: String,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        remote: Remote,
    },
    /// Commit a new version
    Commit {
        slug: String,
        /// The data as JSON; `-` reads standard input
        #[arg(long)]
        file: PathBuf,
        #[arg(long)]
        message: Option<String>,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        remote: Remote,
    },
    /// Deploy a version to an environment
    Deploy {
        slug: String,
        /// Slug of the environment, such as `staging`
        #[arg(long, value_name = "ENVIRONMENT")]
        to: String,
        /// Version to deploy [default: the newest]
        #[arg(long, value_name = "N")]
        version: Option<String>,
        #[arg(long)]
        message: Option<String>,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        remote: Remote,
    },
    /// Run a workflow and print its outputs
    Run {
        slug: String,
        #[command(flatten)]
        which: RevisionArgs,
        /// The inputs as one JSON object
        #[arg(long, value_name = "JSON", default_value = "{}")]
        inputs: String,
        /// Print the whole answer
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        remote: Remote,
    },
    /// List runs, newest first, or show one
    Runs(RunsArgs),
    /// Archive a workflow: it is not listed, run or deployed any more
    Archive {
        slug: String,
        /// Bring it back
        #[arg(long)]
        undo: bool,
        #[command(flatten)]
        consent: Consent,
        #[command(flatten)]
        remote: Remote,
    },
}

/// Without a command it lists.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
struct RunsArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    /// Only those of this workflow
    slug: Option<String>,
    /// How they ended: succeeded, failed, waiting or cancelled; or open, for those of agents that have not
    #[arg(long)]
    state: Option<String>,
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// Count runs over a time, by how they ended
    Stats(StatsArgs),
    /// Cancel a run of an agent: it ends at once, wherever it is worked on
    Cancel {
        /// Its id, or the end of it as the list of open runs shows it
        id: String,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        remote: Remote,
    },
    /// Show a run: what went in and out, and what each step did
    Show {
        /// Its id, or the end of it as the list shows it
        id: String,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        remote: Remote,
    },
}

pub(super) async fn run(config: Config, args: WorkflowArgs) -> anyhow::Result<()> {
    match args.command.unwrap_or(WorkflowCommand::List(args.list)) {
        WorkflowCommand::List(args) => list_all(&Client::new(&config, &args.remote)?, &args).await,
        WorkflowCommand::Show { slug, which, json, remote } => show(&Client::new(&config, &remote)?, &slug, &which, json).await,
        WorkflowCommand::Create { slug, name, file, json, remote } => {
            let data = file.as_deref().map(read).transpose()?;
            let body = json!({"workflow": {"slug": slug, "name": name, "data": data}});
            let reply = Client::new(&config, &remote)?.post("/simple/workflows", &body).await?;
            let done = format!("created {slug}, version {}", text(&reply["workflow"], "version"));
            print::done(&reply, json, &done);
            Ok(())
        }
        WorkflowCommand::Check { file, slug, json, remote } => {
            let body = json!({"workflow": {"slug": slug, "data": read(&file)?}});
            let reply = Client::new(&config, &remote)?.post("/workflows/check", &body).await?;
            let calls: Vec<&str> = list(&reply, "calls").iter().filter_map(Value::as_str).collect();
            let done =
                if calls.is_empty() { "it can be saved".to_owned() } else { format!("it can be saved; it calls {}", calls.join(", ")) };
            print::done(&reply, json, &done);
            Ok(())
        }
        WorkflowCommand::Commit { slug, file, message, json, remote } => {
            let data = read(&file)?;
            let client = Client::new(&config, &remote)?;
            let slug = slug_of(&client, &slug).await?;
            let found = retrieved(&client, &slug, &json!({"workflow_ref": {"slug": slug}})).await?;
            let variant = &found["workflow_revision"]["workflow_variant_id"];
            let body = json!({"workflow_revision": {"workflow_variant_id": variant, "data": data, "message": message}});
            let reply = client.post("/workflows/revisions/commit", &body).await?;
            let version = text(&reply["workflow_revision"], "version");
            let verb = if reply["status"] == "committed" { "committed" } else { "nothing changed:" };
            print::done(&reply, json, &format!("{verb} {slug}, version {version}"));
            Ok(())
        }
        WorkflowCommand::Deploy { slug, to, version, message, json, remote } => {
            let client = Client::new(&config, &remote)?;
            let slug = slug_of(&client, &slug).await?;
            let mut body = json!({"workflow_ref": {"slug": slug}, "environment_ref": reference(&to), "message": message});
            if let Some(version) = version {
                body["workflow_revision_ref"] = json!({"version": version});
            }
            let reply = client.post("/workflows/revisions/deploy", &body).await?;
            print::done(&reply, json, &format!("deployed {slug}, version {}, to {to}", text(&reply["workflow_revision"], "version")));
            Ok(())
        }
        WorkflowCommand::Run { slug, which, inputs, json, remote } => {
            let inputs: Value = serde_json::from_str(&inputs).context("--inputs is not JSON")?;
            let client = Client::new(&config, &remote)?;
            let slug = slug_of(&client, &slug).await?;
            let body = json!({"references": which.references(&slug, ""), "data": {"inputs": inputs}});
            let reply = client.doing(format!("running {slug}")).post("/workflows/invoke", &body).await?;
            print::json(if json { &reply } else { &reply["data"]["outputs"] });
            let run = reply["meta"]["run_id"].as_str();
            if let Some(run) = run.filter(|_| reply["status"]["code"] == 202) {
                let asked = reply["data"]["outputs"]["approval"]["url"].as_str();
                eprintln!("{}", asked.map_or_else(|| "the run goes on".to_owned(), |url| format!("the run waits for a person: {url}")));
                eprintln!("hint: `toolyard workflow runs show {run}` shows how far it is");
            }
            Ok(())
        }
        WorkflowCommand::Runs(RunsArgs { command: Some(RunsCommand::Show { id, json, remote }), .. }) => {
            show_run(&Client::new(&config, &remote)?, &id, json).await
        }
        WorkflowCommand::Runs(RunsArgs { command: Some(RunsCommand::Stats(args)), .. }) => run_stats(&config, &args).await,
        WorkflowCommand::Runs(RunsArgs { command: Some(RunsCommand::Cancel { id, json, remote }), .. }) => {
            let client = Client::new(&config, &remote)?;
            let id = run_id(&client, &id, "?state=open&limit=500").await?;
            let reply = client.post(&format!("/workflows/runs/{id}/cancel"), &json!({})).await?;
            print::done(&reply, json, &format!("cancelled {id}"));
            Ok(())
        }
        WorkflowCommand::Runs(args) => runs(&Client::new(&config, &args.remote)?, &args).await,
        WorkflowCommand::Archive { slug, undo, consent, remote } => {
            let client = Client::new(&config, &remote)?;
            let verb = if undo { "unarchive" } else { "archive" };
            let row = named(&client, &slug).await?;
            let slug = text(&row, "slug");
            if !undo && !consent.yes {
                consent.ask(&format!("archive the workflow {slug}"), &usage::of_workflow(&client, &row).await)?;
            }
            client.post(&format!("/workflows/{}/{verb}", text(&row, "id")), &json!({})).await?;
            print::out(&format!("{verb}d {slug}\n"));
            Ok(())
        }
    }
}

impl RevisionArgs {
    /// References to it, with names that end as the route wants them.
    fn references(&self, slug: &str, end: &str) -> Value {
        let mut references = json!({format!("workflow{end}"): {"slug": slug}});
        if let Some(version) = &self.version {
            references[format!("workflow_revision{end}")] = json!({"version": version});
        }
        if let Some(environment) = &self.environment {
            references[format!("environment{end}")] = reference(environment);
        }
        references
    }
}

/// All workflows; with `part`, those that have it in their slug or name.
async fn all(client: &Client, part: Option<&str>, archived: bool) -> anyhow::Result<Vec<Value>> {
    let mut found: Vec<Value> = Vec::new();
    let mut next = Value::Null;
    loop {
        let body = json!({"workflow": {"name": part}, "include_archived": archived, "windowing": {"limit": PAGE, "next": next}});
        let reply = client.post("/workflows/query", &body).await?;
        found.extend_from_slice(list(&reply, "workflows"));
        next = reply["windowing"]["next"].clone();
        if next.is_null() {
            return Ok(found);
        }
    }
}

/// The slug of every workflow by its id, archived ones too.
pub(super) async fn slugs(client: &Client) -> anyhow::Result<HashMap<String, String>> {
    Ok(all(client, None, true).await?.iter().map(|row| (text(row, "id"), text(row, "slug"))).collect())
}

/// The workflow that a slug, a name or an id means.
async fn named(client: &Client, written: &str) -> anyhow::Result<Value> {
    let all = all(client, None, true).await?;
    names::WORKFLOW.pick(&all, written, |row| vec![text(row, "slug"), text(row, "name")]).cloned()
}

/// The slug of the workflow that is meant. A slug that is there needs no second look, and a key that may not list workflows must give one.
async fn slug_of(client: &Client, written: &str) -> anyhow::Result<String> {
    match client.post("/workflows/query", &json!({"workflow": {"slug": written}})).await {
        Ok(found) if list(&found, "workflows").is_empty() => Ok(text(&named(client, written).await?, "slug")),
        _ => Ok(written.to_owned()),
    }
}

/// What references to a workflow lead to; there may be no such version, or none at all.
pub(super) async fn retrieved(client: &Client, slug: &str, references: &Value) -> anyhow::Result<Value> {
    let found = client.post("/workflows/revisions/retrieve", references).await?;
    anyhow::ensure!(
        found["workflow_revision"].is_object(),
        "{slug} has no such version; `toolyard workflow show {slug}` lists those that it has"
    );
    Ok(found)
}

async fn list_all(client: &Client, args: &ListArgs) -> anyhow::Result<()> {
    let found = all(client, args.search.as_deref(), args.archived).await?;
    if args.json {
        print::json(&json!({"count": found.len(), "workflows": found}));
        return Ok(());
    }
    let state = |row: &Value| if row["deleted_at"].is_string() { "archived" } else { "" };
    let rows: Vec<_> = found.iter().map(|row| vec![text(row, "slug"), text(row, "name"), text(row, "id"), state(row).to_owned()]).collect();
    WORKFLOWS.show(&rows);
    Ok(())
}

async fn show(client: &Client, written: &str, which: &RevisionArgs, json: bool) -> anyhow::Result<()> {
    let slug = &slug_of(client, written).await?;
    let reply = retrieved(client, slug, &which.references(slug, "_ref")).await?;
    if json {
        print::json(&reply);
        return Ok(());
    }
    let revision = &reply["workflow_revision"];
    print::out(&format!("{slug}, version {}\n\n", text(revision, "version")));
    match revision.get("data") {
        Some(data) => print::json(data),
        None => print::out("no data\n"),
    }
    let start = json!({"workflow_revision": {"workflow_variant_id": revision["workflow_variant_id"]}});
    let log = client.post("/workflows/revisions/log", &start).await?;
    print::out("\n");
    let rows: Vec<_> = list(&log, "workflow_revisions")
        .iter()
        .map(|row| vec![text(row, "version"), text(row, "created_at"), text(row, "message")])
        .collect();
    Table::new(&[Column::number("VERSION"), Column::time("CREATED"), Column::text("MESSAGE")]).show(&rows);
    Ok(())
}

async fn runs(client: &Client, args: &RunsArgs) -> anyhow::Result<()> {
    let mut path = format!("/workflows/runs?limit={}", args.limit);
    if let Some(slug) = &args.slug {
        path.push_str(&format!("&workflow_id={}", text(&named(client, slug).await?, "id")));
    }
    if let Some(state) = &args.state {
        path.push_str(&format!("&state={}", encode(state)));
    }
    let reply = client.get(&path).await?;
    if args.json {
        print::json(&reply);
        return Ok(());
    }
    let slugs = slugs(client).await?;
    let rows: Vec<_> = list(&reply, "runs")
        .iter()
        .map(|row| {
            let status = &row["status"];
            let workflow = slugs.get(&text(row, "workflow_id")).cloned().unwrap_or_default();
            vec![
                text(row, "created_at"),
                status["code"].to_string(),
                took(row),
                text(row, "id"),
                workflow,
                text(row, "state"),
                text(status, "message"),
            ]
        })
        .collect();
    RUNS.show(&rows);
    Ok(())
}

async fn run_stats(config: &Config, args: &StatsArgs) -> anyhow::Result<()> {
    let reply = args.ask(config, "/workflows/runs/stats").await?;
    if args.json {
        print::json(&reply);
        return Ok(());
    }
    let bucket = |row: &Value| vec![text(row, "from"), row["runs"].to_string(), row["failed"].to_string()];
    RUN_BUCKETS.show(&list(&reply, "buckets").iter().map(bucket).collect::<Vec<_>>());
    let states = reply["states"].as_object().into_iter().flatten().map(|(state, count)| format!("{count} {state}"));
    print::out(&format!("\n{}\n", states.collect::<Vec<_>>().join(", ")));
    Ok(())
}

/// The id of the run that is meant, among those that the query lists.
async fn run_id(client: &Client, written: &str, query: &str) -> anyhow::Result<String> {
    if names::is_whole(written) {
        return Ok(written.to_owned());
    }
    names::RUN.id(list(&client.get(&format!("/workflows/runs{query}")).await?, "runs"), written)
}

async fn show_run(client: &Client, written: &str, json: bool) -> anyhow::Result<()> {
    let id = match run_id(client, written, "?limit=500").await {
        Ok(id) => id,
        Err(unknown) => run_id(client, written, "?state=open&limit=500").await.map_err(|_| unknown)?,
    };
    let reply = client.get(&format!("/workflows/runs/{id}")).await?;
    let run = &reply["run"];
    if json {
        print::json(run);
        return Ok(());
    }
    let status = &run["status"];
    let (state, started) = (text(run, "state"), print::time(&text(run, "created_at")));
    print::out(&format!("{} {}, {state}, {}, {started}\n", status["code"], text(status, "message"), took(run)));
    show_value("inputs", &run["inputs"]);
    show_value("agent", &run["agent"]);
    for step in list(run, "steps") {
        print::out(&format!("\n{}: {}, {}, {}\n", text(step, "name"), text(step, "state"), took(step), text(step, "call")));
        for name in ["arguments", "result", "status", "note"] {
            show_value(name, &step[name]);
        }
    }
    print::out("\n");
    show_value("outputs", &run["outputs"]);
    Ok(())
}

fn show_value(name: &str, value: &Value) {
    if !value.is_null() {
        print::out(&format!("  {name}: {value}\n"));
    }
}

fn took(row: &Value) -> String {
    format!("{:.0} ms", row["duration_ms"].as_f64().unwrap_or(0.0))
}

fn read(path: &Path) -> anyhow::Result<Value> {
    let name = path.display();
    let content = if path == Path::new("-") {
        let mut content = String::new();
        std::io::stdin().read_to_string(&mut content).map(|_| content)
    } else {
        std::fs::read_to_string(path)
    };
    serde_json::from_str(&content.with_context(|| format!("cannot read `{name}`"))?).with_context(|| format!("`{name}` is not JSON"))
}
