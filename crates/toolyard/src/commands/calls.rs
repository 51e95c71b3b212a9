//! `toolyard calls`: who called what, and how it ended.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::agent;
use super::client::{Client, Remote};
use super::follow::{Feed, follow};
use super::integrations::{encode, list, text};
use super::names;
use super::print::{self, Column, Table};
use crate::config::Config;

const PAGE: u32 = 500;
const KEEPING: &str = "/tools/calls/keeping";
/// Longer than any call takes: whatever ends now began within it.
const LONGEST: &str = "6m";
/// A call is listed by when it began, so one that took long turns up among older ones; every so many looks they are gone through too.
const THOROUGH: u32 = 20;
/// How many calls are remembered.
const MEMORY: usize = 50_000;
const CALLS: Table = Table::new(&[
    Column::time("CALLED"),
    Column::state("OUTCOME"),
    Column::number("MS").wide(7),
    Column::text("TOOL").wide(48),
    Column::text("KEY").wide(12),
    Column::id("AGENT"),
    Column::id("RUN"),
    Column::text("STEP").wide(12),
    Column::text("MESSAGE"),
])
.when_empty("no calls; `toolyard call` makes one");

const BUCKETS: Table = Table::new(&[
    Column::time("FROM"),
    Column::number("CALLS").wide(7),
    Column::number("ERRORS").wide(7),
    Column::number("P50 MS").wide(8),
    Column::number("P95 MS").wide(8),
]);
const FAILING: Table = Table::new(&[
    Column::number("ERRORS").wide(7),
    Column::number("CALLS").wide(7),
    Column::text("TOOL").wide(48),
    Column::text("LAST MESSAGE"),
]);

/// Without a command it lists.
#[derive(Debug, Args)]
pub(super) struct CallsArgs {
    #[command(subcommand)]
    command: Option<CallsCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum CallsCommand {
    /// Show a call with all that the record knows of it
    Show {
        /// Its id, or the end of it
        id: String,
        #[command(flatten)]
        remote: Remote,
    },
    /// Count calls and errors over a time, and say which tools fail most
    Stats(StatsArgs),
    /// Say, or show, for how many days arguments and results of calls are kept
    Keep {
        /// 0 keeps nothing; 90 at most
        days: Option<u32>,
        #[command(flatten)]
        remote: Remote,
    },
}

/// Which time is counted.
#[derive(Debug, Args)]
pub(super) struct StatsArgs {
    /// Since this time, such as 2h, yesterday or 2026-11-16T08:00:00Z [default: 24 hours before --until]
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Before this time [default: now]
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// In so many parts, at most 200
    #[arg(long, value_name = "N", default_value_t = 24)]
    buckets: u32,
    /// Print the answer as JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    remote: Remote,
}

impl StatsArgs {
    pub(super) async fn ask(&self, config: &Config, path: &str) -> anyhow::Result<Value> {
        let mut path = format!("{path}?buckets={}", self.buckets);
        for (name, value) in [("since", &self.since), ("until", &self.until)] {
            if let Some(value) = value {
                path.push_str(&format!("&{name}={}", encode(value)));
            }
        }
        Client::new(config, &self.remote)?.get(&path).await
    }
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Only calls of this tool: a ref, or a pattern such as `tools.native.github.*`
    #[arg(long, value_name = "REF")]
    tool: Option<String>,
    /// Only those that ended so: ok, error (the tool said no), failed (it did not run to its end), waiting (a person is asked first), running, or unknown (the server went away before the end)
    #[arg(long)]
    outcome: Option<String>,
    /// Only those of this agent, by name, number or id
    #[arg(long)]
    agent: Option<String>,
    /// Only those since this time, such as 2h, yesterday or 2026-11-16T08:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only those before this time
    #[arg(long, value_name = "TIME", conflicts_with = "follow")]
    until: Option<String>,
    /// Print calls as they end, until Ctrl-C
    #[arg(long)]
    follow: bool,
    /// How many, at most 500; with --follow, how many to begin with
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// With --follow, one object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

pub(super) async fn run(config: Config, args: CallsArgs) -> anyhow::Result<()> {
    match args.command {
        None => list_calls(config, args.list).await,
        Some(CallsCommand::Show { id, remote }) => show(&config, &id, &remote).await,
        Some(CallsCommand::Stats(args)) => stats(&config, &args).await,
        Some(CallsCommand::Keep { days, remote }) => keep(&config, days, &remote).await,
    }
}

async fn show(config: &Config, written: &str, remote: &Remote) -> anyhow::Result<()> {
    let client = Client::new(config, remote)?;
    let id = if names::is_whole(written) {
        written.to_owned()
    } else {
        names::CALL.id(list(&client.get("/tools/calls?limit=500").await?, "calls"), written)?
    };
    print::json(&client.get(&format!("/tools/calls/{}", encode(&id))).await?["call"]);
    Ok(())
}

async fn keep(config: &Config, days: Option<u32>, remote: &Remote) -> anyhow::Result<()> {
    let client = Client::new(config, remote)?;
    let reply = match days {
        Some(days) => client.put(KEEPING, &json!({"days": days})).await?,
        None => client.get(KEEPING).await?,
    };
    print::out(&match reply["days"].as_i64().unwrap_or_default() {
        0 => "arguments and results of calls are not kept\n".to_owned(),
        days => format!("arguments and results of calls are kept for {days} days\n"),
    });
    Ok(())
}

async fn stats(config: &Config, args: &StatsArgs) -> anyhow::Result<()> {
    let reply = args.ask(config, "/tools/calls/stats").await?;
    if args.json {
        print::json(&reply);
        return Ok(());
    }
    let count = |row: &Value, name: &str| row[name].as_i64().unwrap_or_default().to_string();
    let ms = |row: &Value, name: &str| row[name].as_f64().map(|ms| format!("{ms:.0}")).unwrap_or_default();
    let bucket = |row: &Value| vec![text(row, "from"), count(row, "calls"), count(row, "errors"), ms(row, "p50_ms"), ms(row, "p95_ms")];
    BUCKETS.show(&list(&reply, "buckets").iter().map(bucket).collect::<Vec<_>>());
    let failing = list(&reply, "failing");
    if !failing.is_empty() {
        print::out("\n");
        let row = |row: &Value| vec![count(row, "errors"), count(row, "calls"), text(row, "tool"), text(row, "last_message")];
        FAILING.show(&failing.iter().map(row).collect::<Vec<_>>());
    }
    Ok(())
}

async fn list_calls(config: Config, args: ListArgs) -> anyhow::Result<()> {
    let client = Client::new(&config, &args.remote)?;
    let mut filter = String::new();
    let agent = match &args.agent {
        Some(name) => Some(agent::id_of(&client, name).await?),
        None => None,
    };
    for (name, value) in [("tool", &args.tool), ("outcome", &args.outcome), ("agent_id", &agent), ("until", &args.until)] {
        if let Some(value) = value {
            filter.push_str(&format!("&{name}={}", encode(value)));
        }
    }
    let query = Query { client: &client, filter };
    let reply = query.page(args.limit.clamp(1, PAGE), args.since.as_deref(), None).await?;
    let rows = list(&reply, "calls");
    if args.follow {
        return follow(EndedCalls { query, first: rows.to_vec(), known: BTreeSet::new(), looks: 0 }, args.json).await;
    }
    if args.json {
        print::json(&reply);
    } else {
        CALLS.show(&rows.iter().map(cells).collect::<Vec<_>>());
    }
    Ok(())
}

/// A list that is asked for again and again.
struct Query<'a> {
    client: &'a Client,
    filter: String,
}

impl Query<'_> {
    async fn page(&self, limit: u32, since: Option<&str>, cursor: Option<&str>) -> anyhow::Result<Value> {
        let mut path = format!("/tools/calls?limit={limit}{}", self.filter);
        for (name, value) in [("since", since), ("cursor", cursor)] {
            if let Some(value) = value {
                path.push_str(&format!("&{name}={}", encode(value)));
            }
        }
        self.client.get(&path).await
    }

    /// Calls that are not known yet, the oldest first.
    async fn fresh(&self, known: &BTreeSet<String>, is_thorough: bool) -> anyhow::Result<Vec<Value>> {
        let mut found = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let reply = self.page(PAGE, Some(LONGEST), cursor.as_deref()).await?;
            let before = found.len();
            found.extend(list(&reply, "calls").iter().filter(|row| has_ended(row) && !known.contains(&text(row, "id"))).cloned());
            cursor = reply["cursor"].as_str().map(str::to_owned);
            if cursor.is_none() || (found.len() == before && !is_thorough) {
                break;
            }
        }
        found.reverse();
        Ok(found)
    }
}

/// Calls as they end.
struct EndedCalls<'a> {
    query: Query<'a>,
    /// The newest calls when it began.
    first: Vec<Value>,
    known: BTreeSet<String>,
    looks: u32,
}

impl Feed for EndedCalls<'_> {
    const TABLE: Table<'static> = CALLS;

    fn cells(row: &Value) -> Vec<String> {
        cells(row)
    }

    async fn begin(&mut self) -> anyhow::Result<Vec<Value>> {
        // What was there before and is not shown now is not shown later either.
        self.known = self.query.fresh(&BTreeSet::new(), true).await?.iter().map(|row| text(row, "id")).collect();
        Ok(std::mem::take(&mut self.first).into_iter().filter(has_ended).rev().collect())
    }

    async fn look(&mut self) -> anyhow::Result<Vec<Value>> {
        while self.known.len() > MEMORY {
            self.known.pop_first();
        }
        self.looks += 1;
        self.query.fresh(&self.known, self.looks.is_multiple_of(THOROUGH)).await
    }

    fn is_new(&mut self, row: &Value) -> bool {
        self.known.insert(text(row, "id"));
        true
    }
}

/// A call under way is printed when it has ended.
fn has_ended(row: &Value) -> bool {
    row["outcome"] != "running"
}

fn cells(row: &Value) -> Vec<String> {
    let tool = if row["tool"].is_string() { text(row, "tool") } else { text(row, "call_ref") };
    let key = if row["user_name"].is_string() { text(row, "user_name") } else { text(row, "key_name") };
    let ms = format!("{:.0}", row["duration_ms"].as_f64().unwrap_or_default());
    vec![
        text(row, "created_at"),
        text(row, "outcome"),
        ms,
        tool,
        key,
        text(row, "agent_id"),
        text(row, "run_id"),
        text(row, "step"),
        text(row, "message"),
    ]
}
