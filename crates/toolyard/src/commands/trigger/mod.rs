//! `toolyard trigger`: events and clocks that start workflows, and what became of them.

mod deliveries;
mod make;
mod show;
mod update;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::{Client, Remote};
use super::consent::Consent;
use super::integrations::{encode, list, text};
use super::names;
use super::print::{self, Column, Table};
use crate::config::Config;

const PAGE: usize = 500;

const TRIGGERS: Table = Table::new(&[
    Column::text("KIND"),
    Column::text("NAME"),
    Column::text("WHAT"),
    Column::text("RUNS"),
    Column::state("STATE"),
    Column::time("NEXT OR WHY"),
    Column::id("ID"),
])
.when_empty(
    "there are no triggers; `toolyard trigger create EVENT --workflow SLUG` and `toolyard trigger schedule CRON --workflow SLUG` make some",
);

/// Without a command it lists.
#[derive(Debug, Args)]
pub(super) struct TriggerArgs {
    #[command(subcommand)]
    command: Option<TriggerCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Part of a name
    #[arg(long)]
    search: Option<String>,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// All subscriptions of the project.
pub(super) async fn subscriptions(client: &Client) -> anyhow::Result<Vec<Value>> {
    rows(client, Kind::Subscription, None).await
}

/// All schedules of the project.
pub(super) async fn schedules(client: &Client) -> anyhow::Result<Vec<Value>> {
    rows(client, Kind::Schedule, None).await
}

/// A trigger in a few words: what it is called, and what starts it.
pub(super) fn label(row: &Value) -> String {
    let what = [&row["data"]["event_key"], &row["data"]["schedule"]].into_iter().rev().find_map(Value::as_str).unwrap_or_default();
    format!("{} ({what})", called(row))
}

/// One trigger, by id or name.
#[derive(Debug, Args)]
struct Named {
    /// Id or name of a subscription or schedule
    #[arg(value_name = "TRIGGER")]
    who: String,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum TriggerCommand {
    /// List subscriptions and schedules
    List(ListArgs),
    /// List the events that can be watched, or show one with its configuration
    Events(show::EventsArgs),
    /// Show a subscription, schedule, delivery or stored event
    Show(show::ShowArgs),
    /// Run a workflow when something happens
    Create(make::CreateArgs),
    /// Run a workflow at times
    Schedule(make::ScheduleArgs),
    /// Change a subscription or schedule; what is not said stays as it is
    Update(Box<update::UpdateArgs>),
    /// Wait for one event without running anything
    Test(make::TestArgs),
    /// Run a schedule now, besides its times
    Run(Named),
    /// Start nothing until it is resumed
    Pause(Named),
    /// Start again what was paused
    Resume(Named),
    /// Delete a subscription or schedule; its deliveries stay
    Delete {
        #[command(flatten)]
        named: Named,
        #[command(flatten)]
        consent: Consent,
    },
    /// List deliveries, newest first, or watch them come
    Deliveries(deliveries::DeliveriesArgs),
    /// Call off a delivery that has not ended; it is not tried again
    Cancel(deliveries::OneArgs),
    /// Run one delivery again
    Retry(deliveries::OneArgs),
    /// Run again everything that failed for good
    Replay(deliveries::ReplayArgs),
}

pub(super) async fn run(config: Config, args: TriggerArgs) -> anyhow::Result<()> {
    match args.command.unwrap_or(TriggerCommand::List(args.list)) {
        TriggerCommand::List(args) => list_all(&Client::new(&config, &args.remote)?, &args).await,
        TriggerCommand::Events(args) => show::events(&config, &args).await,
        TriggerCommand::Show(args) => show::show(&config, &args).await,
        TriggerCommand::Create(args) => make::create(&config, args).await,
        TriggerCommand::Schedule(args) => make::schedule(&config, args).await,
        TriggerCommand::Update(args) => update::update(&config, &args).await,
        TriggerCommand::Test(args) => make::test(&config, args).await,
        TriggerCommand::Run(args) => run_now(&config, &args).await,
        TriggerCommand::Pause(args) => switch(&config, &args, "stop", "paused").await,
        TriggerCommand::Resume(args) => switch(&config, &args, "start", "resumed").await,
        TriggerCommand::Delete { named, consent } => delete(&config, &named, consent).await,
        TriggerCommand::Deliveries(args) => deliveries::list_or_follow(&config, &args).await,
        TriggerCommand::Cancel(args) => deliveries::cancel(&config, &args).await,
        TriggerCommand::Retry(args) => deliveries::retry(&config, &args).await,
        TriggerCommand::Replay(args) => deliveries::replay(&config, &args).await,
    }
}

/// What starts runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Subscription,
    Schedule,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Subscription, Self::Schedule];

    fn one(self) -> &'static str {
        match self {
            Self::Subscription => "subscription",
            Self::Schedule => "schedule",
        }
    }

    fn many(self) -> &'static str {
        match self {
            Self::Subscription => "subscriptions",
            Self::Schedule => "schedules",
        }
    }

    fn path(self, id: &str) -> String {
        format!("/triggers/{}/{}", self.many(), encode(id))
    }
}

/// All rows of a kind, newest first; with `name`, those whose name holds it.
async fn rows(client: &Client, kind: Kind, name: Option<&str>) -> anyhow::Result<Vec<Value>> {
    let mut found: Vec<Value> = Vec::new();
    let mut next = Value::Null;
    loop {
        let body = json!({kind.one(): {"name": name}, "windowing": {"limit": PAGE, "next": next}});
        let reply = client.post(&format!("/triggers/{}/query", kind.many()), &body).await?;
        found.extend_from_slice(list(&reply, kind.many()));
        next = reply["cursor"].clone();
        if next.is_null() {
            return Ok(found);
        }
    }
}

async fn list_all(client: &Client, args: &ListArgs) -> anyhow::Result<()> {
    let subscriptions = rows(client, Kind::Subscription, args.search.as_deref()).await?;
    let schedules = rows(client, Kind::Schedule, args.search.as_deref()).await?;
    if args.json {
        let count = subscriptions.len() + schedules.len();
        print::json(&json!({"count": count, "subscriptions": subscriptions, "schedules": schedules}));
        return Ok(());
    }
    let line = |kind: Kind, row: &Value| {
        vec![
            kind.one().to_owned(),
            text(row, "name"),
            what(kind, row),
            target(row),
            state(row).to_owned(),
            row["next_fire_at"].as_str().or(row["reason"].as_str()).unwrap_or_default().to_owned(),
            text(row, "id"),
        ]
    };
    let lines = subscriptions.iter().map(|row| line(Kind::Subscription, row)).chain(schedules.iter().map(|row| line(Kind::Schedule, row)));
    TRIGGERS.show(&lines.collect::<Vec<_>>());
    Ok(())
}

/// The event, or the times.
fn what(kind: Kind, row: &Value) -> String {
    let data = &row["data"];
    match kind {
        Kind::Subscription => text(data, "event_key"),
        Kind::Schedule => match data["timezone"].as_str() {
            Some(zone) => format!("{} {zone}", text(data, "schedule")),
            None => text(data, "schedule"),
        },
    }
}

/// What is run, as short as it can be said.
fn target(row: &Value) -> String {
    let references = &row["data"]["references"];
    let name = |key: &str| {
        let reference = &references[key];
        ["slug", "version", "id"].iter().find_map(|field| reference[*field].as_str().map(str::to_owned))
    };
    let families = ["workflow", "application", "evaluator"];
    let whole = families.iter().find_map(|family| {
        let parts = [format!("{family}_revision"), format!("{family}_variant"), (*family).to_owned()];
        let mut found = parts.iter().rev().filter_map(|part| name(part));
        let first = found.next()?;
        Some(found.fold(first, |whole, part| format!("{whole}/{part}")))
    });
    let key = || row["data"]["selector"]["key"].as_str().map(str::to_owned);
    let whole = whole.or_else(key).unwrap_or_else(|| "-".to_owned());
    match name("environment") {
        Some(environment) => format!("{whole}@{environment}"),
        None => whole,
    }
}

fn state(row: &Value) -> &'static str {
    let flags = &row["flags"];
    if row["deleted_at"].is_string() {
        "deleted"
    } else if flags["is_test"] == true {
        "test"
    } else if flags["is_valid"] == false {
        "invalid"
    } else if flags["is_active"] == true {
        "active"
    } else {
        "paused"
    }
}

/// The trigger that an id or a name means.
async fn named(client: &Client, who: &str) -> anyhow::Result<(Kind, Value)> {
    let (mut all, mut kinds) = (Vec::new(), Vec::new());
    for kind in Kind::ALL {
        let found = if names::is_whole(who) {
            client.find(&kind.path(who)).await?.map(|reply| reply[kind.one()].clone()).into_iter().collect()
        } else {
            rows(client, kind, None).await?
        };
        kinds.extend(found.iter().map(|_| kind));
        all.extend(found);
    }
    let row = names::TRIGGER.pick(&all, who, |row| vec![text(row, "name")])?;
    let kind = all.iter().zip(kinds).find(|(found, _)| found["id"] == row["id"]).map(|(_, kind)| kind);
    Ok((kind.context("it is one of them")?, row.clone()))
}

/// A trigger's name, or its id where it has none.
fn called(row: &Value) -> String {
    row["name"].as_str().map_or_else(|| text(row, "id"), str::to_owned)
}

async fn switch(config: &Config, args: &Named, verb: &str, done: &str) -> anyhow::Result<()> {
    let client = Client::new(config, &args.remote)?;
    let (kind, row) = named(&client, &args.who).await?;
    let reply = client.post(&format!("{}/{verb}", kind.path(&text(&row, "id"))), &json!({})).await?;
    let next = reply[kind.one()]["next_fire_at"].as_str().map(|next| format!(", next at {next}")).unwrap_or_default();
    print::done(&reply, args.json, &format!("{done} {}{next}", called(&row)));
    Ok(())
}

async fn delete(config: &Config, args: &Named, consent: Consent) -> anyhow::Result<()> {
    let client = Client::new(config, &args.remote)?;
    let (kind, row) = named(&client, &args.who).await?;
    if !consent.yes {
        consent.ask(&format!("delete the {} {}", kind.one(), called(&row)), &stops(&client, kind, &row).await?)?;
    }
    client.delete(&kind.path(&text(&row, "id"))).await?;
    print::done(&json!({"deleted": row["id"]}), args.json, &format!("deleted {}", called(&row)));
    Ok(())
}

/// What a trigger would not do any more.
async fn stops(client: &Client, kind: Kind, row: &Value) -> anyhow::Result<Vec<String>> {
    let mut stops = Vec::new();
    if state(row) == "active" {
        stops.push(runs(kind, row));
    }
    let mut open = 0;
    for state in ["ready", "leased", "waiting"] {
        let body = json!({"delivery": {format!("{}_id", kind.one()): row["id"], "state": state}, "windowing": {"limit": 1000}});
        open += list(&client.post("/triggers/deliveries/query", &body).await?, "deliveries").len();
    }
    if open > 0 {
        stops.push(format!("{open} of its deliveries have not ended; they end with 409"));
    }
    Ok(stops)
}

/// What a trigger does.
fn runs(kind: Kind, row: &Value) -> String {
    let next = row["next_fire_at"].as_str().map(|next| format!(", next at {}", print::time(next))).unwrap_or_default();
    format!("{} runs {}{next}", what(kind, row), target(row))
}

async fn run_now(config: &Config, args: &Named) -> anyhow::Result<()> {
    let client = Client::new(config, &args.remote)?;
    let (kind, row) = named(&client, &args.who).await?;
    if kind == Kind::Subscription {
        bail!("`{}` is a subscription; only a schedule can be run by hand", args.who);
    }
    let reply = client.post(&format!("{}/run", kind.path(&text(&row, "id"))), &json!({})).await?;
    print::done(&reply, args.json, &format!("running {}, delivery {}", called(&row), text(&reply["delivery"], "id")));
    Ok(())
}
