//! What a trigger runs and with what, read from what its owner wrote.

use kernel::{Scope, Timestamp};
use serde_json::{Map, Value};
use workflows::References;

use crate::mapping::Mapping;
use crate::schedule::{CronExpr, Misfire, Plan, Window, Zone};
use crate::{TriggerError, Triggers};

const MAX_JITTER: u64 = 3600;

/// What a trigger runs: a mapping of the event to inputs, and references to a workflow.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) mapping: Mapping,
    pub(crate) references: References,
    pub(crate) key: Option<String>,
}

impl Target {
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
        Ok(Self { mapping, references, key })
    }
}

impl Triggers {
    /// Reads what a trigger runs and sees that it leads somewhere. One that is bound to nothing may be saved.
    pub(crate) async fn check_target(&self, scope: Scope, data: &Value) -> Result<(), TriggerError> {
        let target = Target::read(data)?;
        if !target.references.is_empty() {
            self.workflows.retrieve(scope, &target.references, target.key.as_deref()).await?;
        }
        Ok(())
    }
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
pub(crate) fn read_plan(data: &Value) -> Result<(Plan, Misfire), TriggerError> {
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
    Ok((Plan { cron, zone, window, jitter_seconds }, misfire))
}
