//! What a trigger runs and with what, read from what its owner wrote.

use std::sync::Arc;

use kernel::{Scope, Timestamp, suggest};
use serde_json::{Map, Value};
use workflows::References;

use crate::mapping::Mapping;
use crate::schedule::{CronExpr, Misfire, Timing, Window, Zone};
use crate::{TriggerError, Triggers};

const MAX_JITTER: u64 = 3600;

/// What a trigger runs: a mapping of the event to inputs, and references to a workflow.
#[derive(Debug)]
pub(crate) struct RunTarget {
    pub(crate) mapping: Arc<Mapping>,
    pub(crate) references: References,
    pub(crate) key: Option<String>,
}

impl RunTarget {
    pub(crate) fn read(data: &Value) -> Result<Self, TriggerError> {
        let mapping = match data.get("inputs_fields").filter(|fields| !fields.is_null()) {
            None => Mapping::default(),
            Some(fields) => Mapping::compile(fields).map_err(|error| TriggerError::Invalid(error.to_string()))?,
        };
        let references = match data.get("references") {
            None | Some(Value::Null) => References::default(),
            Some(Value::Object(fields)) => References::read(fields)?,
            Some(_) => return Err(TriggerError::Invalid("`references` must be an object".to_owned())),
        };
        let key = match data.get("selector") {
            None | Some(Value::Null) => None,
            Some(Value::Object(selector)) => {
                if selector.get("path").is_some_and(|path| !path.is_null()) {
                    return Err(TriggerError::Invalid("`selector.path` has no meaning for a run; leave it out".to_owned()));
                }
                selector.get("key").and_then(Value::as_str).map(str::to_owned)
            }
            Some(_) => return Err(TriggerError::Invalid("`selector` must be an object".to_owned())),
        };
        Ok(Self { mapping: Arc::new(mapping), references, key })
    }
}

impl Triggers {
    /// Sees that what a trigger shall run is there.
    #[kernel::boxed]
    pub async fn check_workflow(&self, scope: Scope, data: &Value) -> Result<(), TriggerError> {
        if RunTarget::read(data)?.references.is_empty() {
            return Err(TriggerError::Invalid("`references` must name a workflow".to_owned()));
        }
        self.check_target(scope, data, &crate::context::known()).await
    }

    /// Reads what a trigger runs and sees that it leads somewhere, and that what it maps is there and is what the workflow takes. One that is
    /// bound to nothing may be saved.
    pub(crate) async fn check_target(&self, scope: Scope, data: &Value, known: &Value) -> Result<(), TriggerError> {
        let target = RunTarget::read(data)?;
        target.mapping.check(known).map_err(|error| TriggerError::Invalid(error.to_string()))?;
        if target.references.is_empty() {
            return Ok(());
        }
        let found = self.0.workflows.retrieve(scope, &target.references, target.key.as_deref()).await?;
        match (found.input_schema(), target.mapping.names()) {
            (Some(schema), Some(given)) => fills(schema, &given, &found.artifact.slug),
            _ => Ok(()),
        }
    }
}

/// Holds the names of inputs against those that a workflow requires and, where it takes no others, knows.
fn fills(schema: &Value, given: &[&str], slug: &str) -> Result<(), TriggerError> {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let missing: Vec<String> = required.filter(|name| !given.contains(name)).map(|name| format!("`{name}`")).collect();
    if !missing.is_empty() {
        let given = if given.is_empty() { "nothing".to_owned() } else { given.join(", ") };
        return Err(TriggerError::Invalid(format!(
            "`data.inputs_fields`: the workflow `{slug}` requires {}, and the mapping gives {given}.",
            missing.join(", ")
        )));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    if schema.get("additionalProperties") == Some(&Value::Bool(false))
        && schema.get("patternProperties").is_none()
        && let Some(unknown) = given.iter().find(|name| properties.is_none_or(|known| !known.contains_key(**name)))
    {
        let hint = suggest::did_you_mean(unknown, properties.into_iter().flat_map(|known| known.keys().map(String::as_str)));
        return Err(TriggerError::Invalid(format!("`data.inputs_fields`: the workflow `{slug}` takes no `{unknown}`.{hint}")));
    }
    Ok(())
}

/// The keys of a subscription's `data`.
pub(crate) const SUBSCRIPTION: &[&str] = &["event_key", "trigger_config", "inputs_fields", "references", "selector", "ordered", "secret"];
/// The keys of a schedule's `data`.
pub(crate) const SCHEDULE: &[&str] = &[
    "event_key",
    "schedule",
    "timezone",
    "start_time",
    "end_time",
    "misfire",
    "jitter_seconds",
    "inputs_fields",
    "references",
    "selector",
];

/// Refuses a key that is nearly one of ours. Others are left alone: clients send what they know.
pub(crate) fn check_spelling(data: &Value, known: &[&str]) -> Result<(), TriggerError> {
    for key in data.as_object().into_iter().flat_map(Map::keys).filter(|key| !known.contains(&key.as_str())) {
        if let Some(meant) = suggest::nearest(key, known.iter().copied()) {
            return Err(TriggerError::Invalid(format!("`data.{key}` is not known. Did you mean `{meant}`?")));
        }
    }
    Ok(())
}

/// The event and its configuration, as a subscription's owner wrote them.
pub(crate) fn read_event(data: &Value) -> Result<(String, Map<String, Value>), TriggerError> {
    let Some(event_key) = data.get("event_key").and_then(Value::as_str).filter(|key| !key.is_empty()) else {
        return Err(TriggerError::Invalid("`data.event_key` is required".to_owned()));
    };
    match data.get("trigger_config") {
        None | Some(Value::Null) => Ok((event_key.to_owned(), Map::new())),
        Some(Value::Object(config)) => Ok((event_key.to_owned(), config.clone())),
        Some(_) => Err(TriggerError::Invalid("`data.trigger_config` must be an object".to_owned())),
    }
}

/// The plan of a schedule and what becomes of missed slots.
pub(crate) fn read_plan(data: &Value) -> Result<(Timing, Misfire), TriggerError> {
    let invalid = |name: &str, error: &dyn std::fmt::Display| TriggerError::Invalid(format!("`data.{name}`: {error}"));
    let text = |name: &str| match data.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(invalid(name, &"must be text")),
    };
    let cron: CronExpr = text("schedule")?
        .ok_or_else(|| invalid("schedule", &"is required: five fields, such as `0 9 * * mon-fri`"))?
        .parse()
        .map_err(|error| invalid("schedule", &error))?;
    let zone: Zone = text("timezone")?.unwrap_or("UTC").parse().map_err(|error| invalid("timezone", &error))?;
    let moment = |name: &'static str| match text(name)? {
        None => Ok(None),
        Some(text) => Timestamp::read_iso(text).map(Some).ok_or_else(|| invalid(name, &"is not an ISO 8601 time")),
    };
    let window = Window::new(moment("start_time")?, moment("end_time")?).map_err(|error| invalid("end_time", &error))?;
    let jitter_seconds = match data.get("jitter_seconds") {
        None | Some(Value::Null) => 0,
        Some(value) => value
            .as_u64()
            .filter(|seconds| *seconds <= MAX_JITTER)
            .and_then(|seconds| u32::try_from(seconds).ok())
            .ok_or_else(|| invalid("jitter_seconds", &format!("must be 0 to {MAX_JITTER}")))?,
    };
    let misfire = match data.get("misfire") {
        None | Some(Value::Null) => Misfire::default(),
        Some(value) => serde_json::from_value(value.clone()).map_err(|error| invalid("misfire", &error))?,
    };
    Ok((Timing { cron, zone, window, jitter_seconds }, misfire))
}
