//! `toolyard calls`: who called what, and how it ended.

use std::collections::BTreeSet;

use clap::Args;
use serde_json::Value;

use super::agent;
use super::client::{Client, Remote};
use super::follow::{Feed, follow};
use super::integrations::{encode, list, text};
use super::print::{self, Column, Table};
use crate::config::Config;

const PAGE: u32 = 500;
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

#[derive(Debug, Args)]
pub(super) struct CallsArgs {
    /// Only calls of this tool: a ref, or a pattern such as `tools.native.github.*`
    #[arg(long, value_name = "REF")]
    tool: Option<String>,
    /// Only those that ended so: ok, error (the tool said no), failed (it did not run to its end), running, or unknown (the server went away before the end)
    #[arg(long)]
    outcome: Option<String>,
    /// Only those of this agent, by name, number or id
    #[arg(long)]
    agent: Option<String>,
    /// Only those since this time, such as 2h, yesterday or 2026-11-16T08:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
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
    let client = Client::new(&config, &args.remote)?;
    let mut filter = String::new();
    let agent = match &args.agent {
        Some(name) => Some(agent::id_of(&client, name).await?),
        None => None,
    };
    for (name, value) in [("tool", &args.tool), ("outcome", &args.outcome), ("agent_id", &agent)] {
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
