//! `toolyard trigger create`, `schedule` and `test`.

use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Map, Value, json};

use super::super::client::{Client, Remote};
use super::super::connect::pair;
use super::super::integrations::{encode, list, text};
use super::super::names::{self, Integration};
use super::super::{print, typed};
use super::{Kind, rows};
use crate::config::Config;

const WEBHOOK: &str = "WEBHOOK_RECEIVED";
/// The longest that the server waits for a test.
const LONGEST: u64 = 300;
/// How long a test may take to begin and to clean up, besides its wait.
const AROUND: Duration = Duration::from_mins(1);
/// How long a test gets to exist before its address is looked up.
const SETTLE: Duration = Duration::from_millis(300);

/// What is watched.
#[derive(Debug, Args)]
struct Watch {
    /// Key of the event, such as `ISSUE_OPENED`; `WEBHOOK_RECEIVED` takes events from anybody
    event: String,
    /// Slug or id of the connection to watch with
    #[arg(long, value_name = "SLUG|ID")]
    connection: Option<String>,
    /// A field of what to watch, in the type that the event's schema names. `toolyard trigger events INTEGRATION EVENT` lists them
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = pair)]
    fields: Vec<(String, String)>,
    /// All fields as one JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "fields")]
    trigger_config: Option<String>,
    /// What the sender signs or proves itself with, where it was chosen elsewhere
    #[arg(long, env = "TOOLYARD_WEBHOOK_SECRET", hide_env_values = true)]
    secret: Option<String>,
}

/// What is run.
#[derive(Debug, Args)]
struct Target {
    /// Slug of the workflow to run
    #[arg(long, value_name = "SLUG")]
    workflow: String,
    /// Run what is deployed there [default: the newest version]
    #[arg(long, value_name = "SLUG", conflicts_with = "version")]
    environment: Option<String>,
    /// Run this version
    #[arg(long, value_name = "N")]
    version: Option<String>,
    /// Inputs of the run as JSON, with selectors and templates over the event [default: the whole event]
    #[arg(long, value_name = "JSON")]
    inputs: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    target: Target,
    #[arg(long)]
    name: Option<String>,
    /// Run events one after the other, in the order in which they came
    #[arg(long)]
    ordered: bool,
    /// Begin paused
    #[arg(long)]
    paused: bool,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(super) struct ScheduleArgs {
    /// Five cron fields, such as "0 9 * * mon-fri"
    cron: String,
    /// IANA name of the time zone whose clock counts [default: UTC]
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    #[command(flatten)]
    target: Target,
    #[arg(long)]
    name: Option<String>,
    /// What runs are told that happened
    #[arg(long, value_name = "KEY", default_value = "SCHEDULE")]
    event: String,
    /// What becomes of times that were missed: skip, fire_once or catch_up, or catch_up:N for at most N of them [default: fire_once]
    #[arg(long, value_name = "POLICY", value_parser = misfire)]
    misfire: Option<Value>,
    /// Hold each run back by up to this many seconds
    #[arg(long, value_name = "SECONDS")]
    jitter: Option<u32>,
    /// Nothing runs before this time
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Nothing runs at or after this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Begin paused
    #[arg(long)]
    paused: bool,
    /// Only show the next times; keep nothing
    #[arg(long)]
    preview: bool,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(super) struct TestArgs {
    #[command(flatten)]
    watch: Watch,
    /// Try this mapping on the event; see `create`
    #[arg(long, value_name = "JSON")]
    inputs: Option<String>,
    /// How long to wait for an event, at most 300
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

pub(super) fn misfire(text: &str) -> Result<Value, String> {
    match text.split_once(':') {
        Some((policy, limit)) => {
            let limit: u64 = limit.parse().map_err(|_| format!("`{limit}` is not a number; write it as catch_up:10"))?;
            Ok(json!({"policy": policy, "limit": limit}))
        }
        None => Ok(json!(text)),
    }
}

/// A flag's value as JSON.
pub(super) fn read(flag: &str, text: Option<&str>) -> anyhow::Result<Option<Value>> {
    text.map(|text| serde_json::from_str(text).with_context(|| format!("--{flag} is not JSON"))).transpose()
}

/// What a mapping is: an object, or one selector as it stands.
pub(super) fn mapping(text: Option<&str>) -> anyhow::Result<Option<Value>> {
    match text {
        Some(selector) if selector.starts_with(['$', '/']) => Ok(Some(json!(selector))),
        other => read("inputs", other),
    }
}

/// Leaves out what was not said.
fn said(fields: Value) -> Value {
    match fields {
        Value::Object(fields) => Value::Object(fields.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>()),
        other => other,
    }
}

impl Target {
    fn references(&self) -> Value {
        let slug = |slug: &Option<String>| slug.as_ref().map(|slug| json!({"slug": slug}));
        let version = self.version.as_ref().map(|version| json!({"version": version}));
        said(json!({"workflow": {"slug": self.workflow}, "workflow_revision": version, "environment": slug(&self.environment)}))
    }
}

impl Watch {
    /// The start of a subscription to it.
    async fn subscription(&self, client: &Client, inputs: Option<&str>) -> anyhow::Result<Value> {
        let connection = match &self.connection {
            Some(name) => Some(connection(client, name, &self.event).await?),
            None if self.event == WEBHOOK => None,
            None => bail!(
                "`{}` needs --connection, the account to watch with; `toolyard connections` lists them, `toolyard connect` makes one",
                self.event
            ),
        };
        let schema = match &connection {
            Some(row) if !self.fields.is_empty() => event_schema(client, row, &self.event).await?,
            _ => None,
        };
        let fields = typed::fields("--set", self.fields.clone(), schema.as_ref())?;
        let data = json!({
            "event_key": self.event,
            "trigger_config": read("trigger-config", self.trigger_config.as_deref())?.or((!fields.is_empty()).then(|| json!(fields))),
            "secret": self.secret,
            "inputs_fields": mapping(inputs)?,
        });
        let connection = connection.map(|row| row["id"].clone());
        Ok(said(json!({"connection_id": connection, "data": said(data)})))
    }
}

/// A connection; a slug that several integrations have means the one with this event.
pub(super) async fn connection(client: &Client, name: &str, event: &str) -> anyhow::Result<Value> {
    let reply = client.post("/triggers/connections/query", &json!({})).await?;
    let all = list(&reply, "connections");
    let called: Vec<&Value> = all.iter().filter(|row| row["slug"] == name).collect();
    if called.len() > 1 {
        let mut fitting = Vec::new();
        for row in called {
            if event_of(client, row, event).await?.is_some() {
                fitting.push(row.clone());
            }
        }
        return names::connection(&fitting, name).cloned();
    }
    names::connection(all, name).cloned()
}

async fn event_of(client: &Client, connection: &Value, event: &str) -> anyhow::Result<Option<Value>> {
    client.find(&format!("{}/events/{}", Integration::of(connection).path("triggers"), encode(event))).await
}

/// The schema of what an event is told to watch.
pub(super) async fn event_schema(client: &Client, connection: &Value, event: &str) -> anyhow::Result<Option<Value>> {
    let found = event_of(client, connection, event).await?;
    Ok(found.map(|reply| reply["event"]["trigger_config"].clone()))
}

pub(super) async fn create(config: &Config, args: CreateArgs) -> anyhow::Result<()> {
    let client = Client::new(config, &args.remote)?;
    let mut subscription = args.watch.subscription(&client, args.target.inputs.as_deref()).await?;
    subscription["data"]["references"] = args.target.references();
    subscription["flags"] = json!({"is_active": !args.paused});
    if args.ordered {
        subscription["data"]["ordered"] = json!(true);
    }
    if let Some(name) = &args.name {
        subscription["name"] = json!(name);
    }
    let reply = client.post("/triggers/subscriptions", &json!({"subscription": subscription})).await?;
    if args.json {
        print::json(&reply);
        return Ok(());
    }
    let made = &reply["subscription"];
    print::out(&format!("{} runs {}: {}\n", args.watch.event, args.target.workflow, text(made, "id")));
    if args.watch.event == WEBHOOK || reply["setup"].is_string() {
        print::out(&format!("  address  {}\n", text(made, "url")));
    }
    if let Some(secret) = reply["secret"].as_str() {
        print::out(&format!("  secret   {secret} (shown this once)\n"));
    }
    if let Some(setup) = reply["setup"].as_str() {
        print::out(&format!("  to do    {setup}\n"));
    }
    Ok(())
}

pub(super) async fn schedule(config: &Config, args: ScheduleArgs) -> anyhow::Result<()> {
    let client = Client::new(config, &args.remote)?;
    let data = said(json!({
        "event_key": args.event,
        "schedule": args.cron,
        "timezone": args.timezone,
        "start_time": args.from,
        "end_time": args.until,
        "misfire": args.misfire,
        "jitter_seconds": args.jitter,
        "inputs_fields": mapping(args.target.inputs.as_deref())?,
        "references": args.target.references(),
    }));
    let body = json!({"schedule": said(json!({"name": args.name, "data": data, "flags": {"is_active": !args.paused}}))});
    let times = client.post("/triggers/schedules/preview", &body).await?;
    let made = if args.preview { None } else { Some(client.post("/triggers/schedules", &body).await?) };
    if args.json {
        print::json(made.as_ref().unwrap_or(&times));
        return Ok(());
    }
    if let Some(made) = &made {
        let state = if args.paused { ", paused" } else { "" };
        print::out(&format!("`{}` runs {}: {}{state}\n", args.cron, args.target.workflow, text(&made["schedule"], "id")));
    }
    let zone = args.timezone.as_deref().unwrap_or("UTC");
    let times: Vec<Vec<String>> = list(&times, "times").iter().filter_map(Value::as_str).map(|time| both(time, zone)).collect();
    if times.is_empty() {
        print::out("it never fires: no such time lies within its window and the next 50 years\n");
    }
    print::table(&["NEXT (UTC)", zone], &times);
    Ok(())
}

/// A time in UTC and on the schedule's own clock.
fn both(time: &str, zone: &str) -> Vec<String> {
    let local = time.parse::<jiff::Timestamp>().ok().and_then(|moment| moment.in_tz(zone).ok());
    vec![time.to_owned(), local.map(|local| local.strftime("%a %Y-%m-%d %H:%M %:z").to_string()).unwrap_or_default()]
}

pub(super) async fn test(config: &Config, args: TestArgs) -> anyhow::Result<()> {
    let client = Client::new(config, &args.remote)?;
    if args.wait > LONGEST {
        bail!("--wait is at most {LONGEST} seconds");
    }
    let subscription = args.watch.subscription(&client, args.inputs.as_deref()).await?;
    let body = json!({"subscription": subscription});
    let path = format!("/triggers/subscriptions/test?wait={}", args.wait);
    let waiting = client.post_within(&path, &body, Duration::from_secs(args.wait) + AROUND);
    tokio::pin!(waiting);
    let reply = tokio::select! {
        reply = &mut waiting => reply?,
        () = address(&client, &args.watch.event) => waiting.await?,
    };
    if args.json {
        print::json(&reply);
    } else if reply["delivery"].is_object() {
        print::json(&reply["delivery"]["data"]["inputs"]);
        for miss in list(&reply["delivery"]["data"], "missed") {
            eprintln!("nothing found for `{}` at {}", text(miss, "selector"), text(miss, "place"));
        }
    }
    if reply["count"] == 0 {
        bail!("no event came within {} seconds", args.wait);
    }
    Ok(())
}

/// Tells where the event is expected: a test has an address of its own while it lasts.
async fn address(client: &Client, event: &str) {
    tokio::time::sleep(SETTLE).await;
    let found = rows(client, Kind::Subscription, None).await.unwrap_or_default();
    let url = found.iter().find(|row| row["flags"]["is_test"] == true && row["data"]["event_key"] == event).map(|row| text(row, "url"));
    match url {
        Some(url) => eprintln!("waiting for {event} at {url} (Ctrl-C to stop waiting)"),
        None => eprintln!("waiting for {event} (Ctrl-C to stop waiting)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_may_have_a_limit() {
        assert_eq!(misfire("skip"), Ok(json!("skip")));
        assert_eq!(misfire("catch_up:5"), Ok(json!({"policy": "catch_up", "limit": 5})));
        assert!(misfire("catch_up:many").is_err());
    }

    #[test]
    fn a_mapping_is_json_or_one_selector() {
        assert_eq!(mapping(Some("$.event.attributes")).unwrap(), Some(json!("$.event.attributes")));
        assert_eq!(mapping(Some("{\"a\": \"/event\"}")).unwrap(), Some(json!({"a": "/event"})));
        assert!(mapping(Some("{a}")).unwrap_err().to_string().contains("--inputs is not JSON"));
    }

    #[test]
    fn times_are_shown_on_both_clocks() {
        assert_eq!(both("2026-11-16T08:00:00Z", "Europe/Berlin")[1], "Mon 2026-11-16 09:00 +01:00");
    }
}
