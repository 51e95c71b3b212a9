//! `toolyard trigger deliveries`, `cancel`, `retry` and `replay`.

use std::collections::HashMap;

use anyhow::bail;
use clap::Args;
use serde_json::{Map, Value, json};

use super::super::client::{Client, Remote};
use super::super::follow::{Feed, follow};
use super::super::integrations::{encode, list, text};
use super::super::names;
use super::super::print::{self, Column, Table};
use super::{Kind, named};
use crate::config::Config;

const PAGE: u32 = 200;
/// How many deliveries are looked through for the end of an id.
const NEWEST: u32 = 1000;
/// How many rows that have not ended are asked for one by one at each look.
const OPEN: usize = 50;
/// How many ended rows are remembered.
const MEMORY: usize = 20_000;
const DELIVERIES: Table = Table::new(&[
    Column::time("UPDATED"),
    Column::state("STATE"),
    Column::state("CODE").wide(4),
    Column::number("TRIES"),
    Column::id("ID"),
    Column::text("EVENT"),
    Column::text("TRIGGER").wide(12),
    Column::text("WORKFLOW").wide(12),
    Column::time("NEXT TRY"),
    Column::text("MESSAGE"),
])
.when_empty("no deliveries; `toolyard trigger` lists what could make some, `toolyard trigger create` and `schedule` make it");

#[derive(Debug, Args)]
pub(super) struct DeliveriesArgs {
    #[command(flatten)]
    filter: Filter,
    /// Only those in this state: ready, leased, waiting, done, dead or cancelled
    #[arg(long)]
    state: Option<String>,
    /// Print what is new or changed as it comes, until Ctrl-C
    #[arg(long)]
    follow: bool,
    /// How many, at most 1000; with --follow, how many to begin with
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// With --follow, one object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Which deliveries.
#[derive(Debug, Args)]
struct Filter {
    /// Only those with this status code, such as 424
    #[arg(long, value_name = "CODE")]
    status: Option<String>,
    /// Only those of this subscription, by id or name
    #[arg(long, value_name = "TRIGGER")]
    subscription: Option<String>,
    /// Only those of this schedule, by id or name
    #[arg(long, value_name = "TRIGGER")]
    schedule: Option<String>,
    /// Only those made since this time: `yesterday`, 2h (ago), 2026-11-16T08:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct OneArgs {
    /// Id of the delivery, or the end of it as the list shows it
    id: String,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    filter: Filter,
    /// Only those made up to this time, said like --since
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

impl Filter {
    async fn fields(&self, client: &Client) -> anyhow::Result<Value> {
        let mut fields = Map::new();
        if let Some(code) = &self.status {
            fields.insert("status".to_owned(), json!({"code": code}));
        }
        for (kind, who) in [(Kind::Subscription, &self.subscription), (Kind::Schedule, &self.schedule)] {
            if let Some(who) = who {
                let (found, row) = named(client, who).await?;
                if found != kind {
                    bail!("`{who}` is a {}; use --{}", found.one(), found.one());
                }
                fields.insert(format!("{}_id", kind.one()), row["id"].clone());
            }
        }
        Ok(Value::Object(fields))
    }
}

impl DeliveriesArgs {
    fn fits(&self, row: &Value) -> bool {
        let is = |wanted: &Option<String>, found: &Value| wanted.as_ref().is_none_or(|wanted| found == wanted.as_str());
        is(&self.filter.status, &row["status"]["code"]) && is(&self.state, &row["state"])
    }
}

pub(super) async fn list_or_follow(config: &Config, args: &DeliveriesArgs) -> anyhow::Result<()> {
    let client = Client::new(config, &args.remote)?;
    let mut wanted = args.filter.fields(&client).await?;
    if let Some(state) = &args.state {
        wanted["state"] = json!(state);
    }
    let query = Query { client: &client, wanted, since: args.filter.since.as_deref() };
    let limit = args.limit.clamp(1, 1000);
    let reply = query.page(if args.follow { limit.max(PAGE) } else { limit }, &Value::Null).await?;
    let rows = list(&reply, "deliveries");
    if args.follow {
        let first = rows.to_vec();
        return follow(ChangedDeliveries { query, args, first, known: HashMap::new() }, args.json).await;
    }
    if args.json {
        print::json(&reply);
    } else {
        DELIVERIES.show(&rows.iter().map(cells).collect::<Vec<_>>());
    }
    Ok(())
}

/// A list that is asked for again and again.
struct Query<'a> {
    client: &'a Client,
    wanted: Value,
    since: Option<&'a str>,
}

impl Query<'_> {
    async fn page(&self, limit: u32, next: &Value) -> anyhow::Result<Value> {
        let body = json!({"delivery": self.wanted, "windowing": {"limit": limit, "oldest": self.since, "next": next}});
        self.client.post("/triggers/deliveries/query", &body).await
    }
}

/// The name of a delivery's trigger, or its id where it has none.
fn trigger_of(row: &Value) -> String {
    let named = ["trigger_name", "subscription_id", "schedule_id"].iter().find_map(|field| row[*field].as_str());
    named.unwrap_or_default().to_owned()
}

fn cells(row: &Value) -> Vec<String> {
    let status = &row["status"];
    vec![
        text(row, "updated_at"),
        text(row, "state"),
        text(status, "code"),
        row["attempts_count"].to_string(),
        text(row, "id"),
        text(&row["data"], "event_key"),
        trigger_of(row),
        text(row, "workflow"),
        text(row, "next_attempt_at"),
        text(status, "message"),
    ]
}

/// What is told apart: a row that has the same is not printed again.
type Seen = (String, String, String);

fn seen(row: &Value) -> Seen {
    (text(row, "state"), text(&row["status"], "code"), row["attempts_count"].to_string())
}

fn has_ended(seen: &Seen) -> bool {
    matches!(seen.0.as_str(), "done" | "dead" | "cancelled")
}

/// Deliveries as they come and change.
struct ChangedDeliveries<'a> {
    query: Query<'a>,
    args: &'a DeliveriesArgs,
    /// The newest deliveries when it began.
    first: Vec<Value>,
    known: HashMap<String, Seen>,
}

impl Feed for ChangedDeliveries<'_> {
    const TABLE: Table<'static> = DELIVERIES;

    fn cells(row: &Value) -> Vec<String> {
        cells(row)
    }

    async fn begin(&mut self) -> anyhow::Result<Vec<Value>> {
        let mut shown = std::mem::take(&mut self.first);
        let older = shown.split_off(shown.len().min(self.args.limit as usize));
        self.known.extend(older.iter().map(|row| (text(row, "id"), seen(row))));
        shown.reverse();
        Ok(shown)
    }

    async fn look(&mut self) -> anyhow::Result<Vec<Value>> {
        if self.known.len() > MEMORY {
            forget(&mut self.known);
        }
        look(&self.query, &mut self.known).await
    }

    fn is_new(&mut self, row: &Value) -> bool {
        let now = seen(row);
        let changed = self.known.insert(text(row, "id"), now.clone()).is_none_or(|before| before != now);
        changed && self.args.fits(row)
    }
}

/// Forgets the older half of what has ended; ids grow with time.
fn forget(known: &mut HashMap<String, Seen>) {
    let mut ended: Vec<String> = known.iter().filter(|(_, seen)| has_ended(seen)).map(|(id, _)| id.clone()).collect();
    ended.sort_unstable();
    for id in &ended[..ended.len() / 2] {
        known.remove(id);
    }
}

/// The newest rows, as far back as there are unknown ones, and what has not ended yet; oldest first.
async fn look(query: &Query<'_>, known: &mut HashMap<String, Seen>) -> anyhow::Result<Vec<Value>> {
    let newest_known = known.keys().max().cloned();
    let mut found: Vec<Value> = Vec::new();
    let mut next = Value::Null;
    loop {
        let reply = query.page(PAGE, &next).await?;
        let rows = list(&reply, "deliveries");
        found.extend_from_slice(rows);
        next = reply["cursor"].clone();
        let reached = newest_known.as_ref().is_none_or(|newest| rows.last().is_none_or(|row| text(row, "id") <= *newest));
        if next.is_null() || reached {
            break;
        }
    }
    let mut open: Vec<String> = known.iter().filter(|(_, seen)| !has_ended(seen)).map(|(id, _)| id.clone()).collect();
    open.retain(|id| !found.iter().any(|row| row["id"] == id.as_str()));
    open.sort_unstable();
    for id in open.into_iter().take(OPEN) {
        match query.client.find(&format!("/triggers/deliveries/{}", encode(&id))).await? {
            Some(reply) => found.push(reply["delivery"].clone()),
            None => drop(known.remove(&id)),
        }
    }
    found.sort_by_key(|row| text(row, "updated_at"));
    Ok(found)
}

/// The id of a delivery that is named by it or by its end; the newest are looked through.
pub(super) async fn delivery_id(client: &Client, written: &str) -> anyhow::Result<String> {
    if names::is_whole(written) {
        return Ok(written.to_owned());
    }
    let newest = Query { client, wanted: json!({}), since: None }.page(NEWEST, &Value::Null).await?;
    names::DELIVERY.id(list(&newest, "deliveries"), written)
}

pub(super) async fn cancel(config: &Config, args: &OneArgs) -> anyhow::Result<()> {
    act(config, args, "cancel", |id| format!("cancelled {id}")).await
}

pub(super) async fn retry(config: &Config, args: &OneArgs) -> anyhow::Result<()> {
    act(config, args, "retry", |id| format!("running {id} again")).await
}

async fn act(config: &Config, args: &OneArgs, verb: &str, done: impl Fn(&str) -> String) -> anyhow::Result<()> {
    let client = Client::new(config, &args.remote)?;
    let id = delivery_id(&client, &args.id).await?;
    let reply = client.post(&format!("/triggers/deliveries/{}/{verb}", encode(&id)), &json!({})).await?;
    print::done(&reply, args.json, &done(&id));
    Ok(())
}

pub(super) async fn replay(config: &Config, args: &ReplayArgs) -> anyhow::Result<()> {
    let client = Client::new(config, &args.remote)?;
    let body = json!({"delivery": args.filter.fields(&client).await?, "windowing": {"oldest": args.filter.since, "newest": args.until}});
    let reply = client.post("/triggers/deliveries/replay", &body).await?;
    let done = match reply["count"].as_u64() {
        Some(0) => "nothing that failed for good fits".to_owned(),
        Some(1) => "running 1 delivery again".to_owned(),
        count => format!("running {} deliveries again", count.unwrap_or_default()),
    };
    print::done(&reply, args.json, &done);
    Ok(())
}
