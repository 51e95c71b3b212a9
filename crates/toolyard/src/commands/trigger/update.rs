//! `toolyard trigger update`.

use anyhow::bail;
use clap::Args;
use serde_json::{Map, Value, json};

use super::super::client::{Client, Remote};
use super::super::connect::pair;
use super::super::integrations::text;
use super::super::names::reference;
use super::super::{print, typed};
use super::make::{connection, event_schema, mapping, misfire, read};
use super::{Kind, called, named};
use crate::config::Config;

/// What is not said stays as it is; an empty text takes a setting away.
#[derive(Debug, Args)]
pub(super) struct UpdateArgs {
    /// Id or name of a subscription or schedule
    #[arg(value_name = "TRIGGER")]
    who: String,
    /// Another name
    #[arg(long)]
    name: Option<String>,
    /// Slug or id of another workflow to run
    #[arg(long, value_name = "SLUG")]
    workflow: Option<String>,
    /// Run what is deployed there
    #[arg(long, value_name = "SLUG", conflicts_with = "version")]
    environment: Option<String>,
    /// Run this version; `latest` runs the newest
    #[arg(long, value_name = "N")]
    version: Option<String>,
    /// Inputs of the run as JSON, with selectors and templates over the event
    #[arg(long, value_name = "JSON")]
    inputs: Option<String>,
    /// Whether it starts nothing until it is resumed
    #[arg(long, value_name = "BOOL")]
    paused: Option<bool>,
    #[command(flatten)]
    watch: WatchChanges,
    #[command(flatten)]
    clock: ClockChanges,
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// What only a subscription has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Of a subscription")]
struct WatchChanges {
    /// Slug or id of another connection to watch with
    #[arg(long, value_name = "SLUG|ID")]
    connection: Option<String>,
    /// A field of what to watch; `NAME=` takes it away
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = pair)]
    fields: Vec<(String, String)>,
    /// All fields as one JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "fields")]
    trigger_config: Option<String>,
    /// What the sender signs or proves itself with from now on
    #[arg(long)]
    secret: Option<String>,
    /// Whether events run one after the other, in the order in which they came
    #[arg(long, value_name = "BOOL")]
    ordered: Option<bool>,
}

/// What only a schedule has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Of a schedule")]
struct ClockChanges {
    /// Five cron fields, such as "0 9 * * mon-fri"
    #[arg(long)]
    cron: Option<String>,
    /// IANA name of the time zone whose clock counts
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// What becomes of times that were missed: skip, fire_once, catch_up or catch_up:N
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
}

impl WatchChanges {
    /// The first flag that was given.
    fn given(&self) -> Option<&'static str> {
        [
            ("connection", self.connection.is_some()),
            ("set", !self.fields.is_empty()),
            ("trigger-config", self.trigger_config.is_some()),
            ("secret", self.secret.is_some()),
            ("ordered", self.ordered.is_some()),
        ]
        .into_iter()
        .find_map(|(flag, given)| given.then_some(flag))
    }

    async fn apply(&self, client: &Client, row: &mut Value) -> anyhow::Result<()> {
        let event = text(&row["data"], "event_key");
        if let Some(name) = &self.connection {
            let connection = connection(client, name, &event).await?;
            for (field, of) in [("connection_id", "id"), ("provider_key", "provider_key"), ("integration_key", "integration_key")] {
                row[field] = connection[of].clone();
            }
        }
        let schema = if self.fields.is_empty() { None } else { event_schema(client, row, &event).await? };
        let data = &mut row["data"];
        if let Some(config) = read("trigger-config", self.trigger_config.as_deref())? {
            data["trigger_config"] = config;
        }
        let mut fields = data["trigger_config"].as_object().cloned().unwrap_or_default();
        let (gone, set): (Vec<_>, Vec<_>) = self.fields.iter().cloned().partition(|(_, value)| value.is_empty());
        fields.retain(|name, _| !gone.iter().any(|(gone, _)| gone == name));
        fields.extend(typed::fields("--set", set, schema.as_ref())?);
        if !self.fields.is_empty() {
            data["trigger_config"] = Value::Object(fields);
        }
        for (name, value) in [("secret", json!(self.secret)), ("ordered", json!(self.ordered))] {
            if !value.is_null() {
                data[name] = value;
            }
        }
        Ok(())
    }
}

impl ClockChanges {
    fn fields(&self) -> [(&'static str, &'static str, Value); 6] {
        [
            ("cron", "schedule", json!(self.cron)),
            ("timezone", "timezone", json!(self.timezone)),
            ("misfire", "misfire", json!(self.misfire)),
            ("jitter", "jitter_seconds", json!(self.jitter)),
            ("from", "start_time", json!(self.from)),
            ("until", "end_time", json!(self.until)),
        ]
    }

    fn given(&self) -> Option<&'static str> {
        self.fields().into_iter().find_map(|(flag, _, value)| (!value.is_null()).then_some(flag))
    }

    fn apply(&self, data: &mut Value) {
        for (_, field, value) in self.fields().into_iter().filter(|(.., value)| !value.is_null()) {
            let value = if value == "" { Value::Null } else { value };
            *data = said(data.as_object().cloned().unwrap_or_default(), field, value);
        }
    }
}

impl UpdateArgs {
    fn changes_any(&self) -> bool {
        let texts = [&self.name, &self.workflow, &self.environment, &self.version, &self.inputs];
        texts.iter().any(|text| text.is_some()) || self.paused.is_some() || self.watch.given().is_some() || self.clock.given().is_some()
    }

    /// The references after the change: what is named beside a workflow is about that workflow.
    fn references(&self, old: &Value) -> Option<Value> {
        if self.workflow.is_none() && self.environment.is_none() && self.version.is_none() {
            return None;
        }
        let mut references = match (&self.workflow, old) {
            (None, Value::Object(old)) => old.clone(),
            _ => Map::new(),
        };
        references.retain(|name, _| !name.ends_with("_revision") && !name.starts_with("environment"));
        if let Some(slug) = &self.workflow {
            references.insert("workflow".to_owned(), reference(slug));
        }
        if let Some(slug) = self.environment.as_ref().filter(|slug| !slug.is_empty()) {
            references.insert("environment".to_owned(), reference(slug));
        }
        if let Some(version) = self.version.as_ref().filter(|version| *version != "latest") {
            references.insert("workflow_revision".to_owned(), json!({"version": version}));
        }
        Some(Value::Object(references))
    }
}

/// The fields with one of them set, or taken away.
fn said(mut fields: Map<String, Value>, name: &str, value: Value) -> Value {
    if value.is_null() {
        fields.shift_remove(name);
    } else {
        fields.insert(name.to_owned(), value);
    }
    Value::Object(fields)
}

pub(super) async fn update(config: &Config, args: &UpdateArgs) -> anyhow::Result<()> {
    let client = Client::new(config, &args.remote)?;
    if !args.changes_any() {
        bail!("there is nothing to change; `toolyard trigger update --help` lists what can be");
    }
    let (kind, mut row) = named(&client, &args.who).await?;
    let foreign = match kind {
        Kind::Subscription => args.clock.given(),
        Kind::Schedule => args.watch.given(),
    };
    if let Some(flag) = foreign {
        bail!("`{}` is a {}, which has no --{flag}", args.who, kind.one());
    }
    if let Some(name) = &args.name {
        row["name"] = if name.is_empty() { Value::Null } else { json!(name) };
    }
    if let Some(inputs) = &args.inputs {
        row["data"]["inputs_fields"] = mapping(Some(inputs.as_str()).filter(|inputs| !inputs.is_empty()))?.unwrap_or(Value::Null);
    }
    if let Some(references) = args.references(&row["data"]["references"]) {
        row["data"]["references"] = references;
    }
    if let Some(paused) = args.paused {
        row["flags"]["is_active"] = json!(!paused);
    }
    match kind {
        Kind::Subscription => args.watch.apply(&client, &mut row).await?,
        Kind::Schedule => args.clock.apply(&mut row["data"]),
    }
    let kept = ["id", "connection_id", "name", "description", "tags", "meta", "flags", "data"];
    let said = kept.iter().filter(|field| !row[**field].is_null());
    let body: Map<String, Value> = said.map(|field| ((*field).to_owned(), row[*field].clone())).collect();
    let reply = client.put(&kind.path(&text(&json!(body), "id")), &json!({kind.one(): body})).await?;
    let saved = &reply[kind.one()];
    let next = saved["next_fire_at"].as_str().map(|next| format!(", next at {}", print::time(next))).unwrap_or_default();
    print::done(&reply, args.json, &format!("updated {}{next}", called(saved)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: UpdateArgs,
    }

    fn references(line: &[&str], old: &Value) -> Option<Value> {
        Line::parse_from([&["update", "x"], line].concat()).args.references(old)
    }

    #[test]
    fn what_is_run_changes_as_far_as_it_is_said() {
        let old = json!({"workflow": {"slug": "a"}, "workflow_revision": {"version": "3"}});
        let deployed = json!({"workflow": {"slug": "a"}, "environment": {"slug": "live"}});
        assert_eq!(references(&["--name", "y"], &old), None);
        assert_eq!(references(&["--workflow", "b"], &deployed), Some(json!({"workflow": {"slug": "b"}})));
        assert_eq!(references(&["--environment", "live"], &old), Some(deployed.clone()));
        assert_eq!(references(&["--version", "latest"], &old), Some(json!({"workflow": {"slug": "a"}})));
        assert_eq!(references(&["--version", "3"], &deployed), Some(old));
    }
}
