//! Flags: what a workflow is used as, which people say, and what a revision is, which its data says. They are kept as bits, so that both
//! databases filter by them in the same words.

use kernel::suggest;
use serde_json::{Map, Value};

use crate::data::is_own_agent;
use crate::{Family, WorkflowError};

/// What a workflow is used as.
const ROLES: [&str; 3] = ["is_application", "is_evaluator", "is_snippet"];

/// What a revision is and has.
const TRAITS: [&str; 14] = [
    "is_managed",
    "is_custom",
    "is_llm",
    "is_hook",
    "is_code",
    "is_match",
    "is_feedback",
    "is_agent",
    "is_skill",
    "is_chat",
    "has_url",
    "has_script",
    "has_handler",
    "is_static",
];

/// Traits that a uri has by its key alone.
const KEYS: [&str; 7] = ["llm", "hook", "code", "match", "feedback", "agent", "skill"];

const IS_GUARDED: &str = "is_guarded";
/// Clients send it with every filter, and no row here is static.
const IS_STATIC: &str = "is_static";

/// Some bits, and what each of them is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bits {
    pub(crate) mask: i64,
    pub(crate) value: i64,
}

impl Bits {
    fn set(&mut self, place: usize, is: bool) {
        self.mask |= 1 << place;
        self.value = (self.value & !(1 << place)) | (i64::from(is) << place);
    }

    /// As a query takes them: nothing where nothing is said.
    pub(crate) fn asked(self) -> (Option<i64>, i64) {
        ((self.mask != 0).then_some(self.mask), self.value)
    }
}

/// The role that a family's own routes give to what they write, and look for.
fn role(family: Family) -> Option<usize> {
    match family {
        Family::Application => Some(0),
        Family::Evaluator => Some(1),
        Family::Workflow | Family::Environment => None,
    }
}

/// The roles that somebody gives to a workflow; other flags of it mean nothing and are left out.
pub(crate) fn roles(family: Family, given: Option<&Map<String, Value>>) -> Result<Bits, WorkflowError> {
    let mut roles = Bits::default();
    if family == Family::Environment {
        return Ok(roles);
    }
    for (place, name) in ROLES.into_iter().enumerate() {
        if let Some(is) = given.and_then(|given| given.get(name)).filter(|is| !is.is_null()) {
            roles.set(place, truth(name, is)?);
        }
    }
    if let Some(place) = role(family) {
        roles.set(place, true);
    }
    Ok(roles)
}

fn truth(name: &str, value: &Value) -> Result<bool, WorkflowError> {
    value.as_bool().ok_or_else(|| WorkflowError::Invalid(format!("`flags.{name}` must be true or false")))
}

/// What a workflow's data says that its revision is.
pub(crate) fn traits(data: &Value) -> i64 {
    let mut uri = data.get("uri").and_then(Value::as_str).unwrap_or_default().split(':');
    let (provider, kind, key) = (uri.next().unwrap_or_default(), uri.next().unwrap_or_default(), uri.next().unwrap_or_default());
    let there = |name: &str| data.get(name).is_some_and(|value| !value.is_null());
    let is_managed = provider == "agenta";
    let mut traits = Bits::default();
    for (place, name) in TRAITS.into_iter().enumerate() {
        let is = match name {
            "is_managed" => is_managed,
            "is_custom" => kind == "custom",
            "is_agent" => key == "agent" || is_own_agent(data),
            "is_chat" => key == "chat" || takes_messages(data),
            "has_url" => there("url") || (is_managed && key != "skill"),
            "has_script" => there("script"),
            name => name.strip_prefix("is_").is_some_and(|word| word == key && KEYS.contains(&word)),
        };
        traits.set(place, is);
    }
    traits.value
}

fn takes_messages(data: &Value) -> bool {
    let properties = data.pointer("/schemas/inputs/properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flat_map(Map::values)
        .any(|property| matches!(property.get("x-ag-type-ref").and_then(Value::as_str), Some("message" | "messages")))
}

/// The flags of a row as they are shown: an artifact's roles, and with a revision what it is.
pub(crate) fn shown(roles: Option<i64>, traits: Option<i64>) -> Option<Value> {
    let roles = roles.or(traits.map(|_| 0));
    let named = |names: &'static [&'static str], bits: Option<i64>| {
        bits.into_iter().flat_map(move |bits| {
            names.iter().enumerate().map(move |(place, name)| ((*name).to_owned(), Value::from(bits >> place & 1 == 1)))
        })
    };
    let flags: Map<String, Value> = named(&ROLES, roles).chain(named(&TRAITS, traits)).collect();
    (!flags.is_empty()).then_some(Value::Object(flags))
}

/// Flags that rows must show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlagFilter {
    pub(crate) roles: Bits,
    pub(crate) traits: Bits,
    pub(crate) is_guarded: Option<bool>,
}

impl FlagFilter {
    /// Reads a filter, to which a family with a role adds its own.
    pub(crate) fn read(family: Family, asked: Option<&Map<String, Value>>) -> Result<Self, WorkflowError> {
        let mut filter = Self::default();
        for (name, is) in asked.into_iter().flatten().filter(|(name, is)| !is.is_null() && *name != IS_STATIC) {
            let place = |names: &[&str]| names.iter().position(|known| known == name);
            if family == Family::Environment && name == IS_GUARDED {
                filter.is_guarded = Some(truth(name, is)?);
            } else if let Some(place) = place(&ROLES) {
                filter.roles.set(place, truth(name, is)?);
            } else if let Some(place) = place(&TRAITS) {
                filter.traits.set(place, truth(name, is)?);
            } else {
                let nearest = suggest::did_you_mean(name, ROLES.into_iter().chain(TRAITS).chain([IS_GUARDED]));
                return Err(WorkflowError::Invalid(format!("`flags.{name}` is not a flag.{nearest}")));
            }
        }
        if let Some(place) = role(family) {
            filter.roles.set(place, true);
        }
        Ok(filter)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(data: &Value) -> Vec<String> {
        let flags = shown(None, Some(traits(data))).unwrap();
        flags.as_object().unwrap().iter().filter(|(_, is)| **is == true).map(|(name, _)| name.clone()).collect()
    }

    #[test]
    fn a_revision_is_what_its_data_says() {
        for (data, expected) in [
            (json!({}), vec![]),
            (json!({"uri": "agenta:custom:feedback:v0"}), vec!["is_managed", "is_custom", "is_feedback", "has_url"]),
            (json!({"uri": "agenta:builtin:chat:v0"}), vec!["is_managed", "is_chat", "has_url"]),
            (json!({"uri": "agenta:builtin:skill:v0"}), vec!["is_managed", "is_skill"]),
            (json!({"uri": "user:custom:managed:v0", "script": "x"}), vec!["is_custom", "has_script"]),
            (json!({"uri": "user:custom:static:v0"}), vec!["is_custom"]),
            (
                json!({"url": "https://x", "schemas": {"inputs": {"properties": {"m": {"x-ag-type-ref": "messages"}}}}}),
                vec!["is_chat", "has_url"],
            ),
        ] {
            assert_eq!(seen(&data), expected, "{data}");
        }
    }

    #[test]
    fn flags_are_shown_once_there_are_some() {
        let given = json!({"is_snippet": true, "is_evaluator": null, "is_blue": true});
        let given = given.as_object();
        assert_eq!(roles(Family::Workflow, given).unwrap(), Bits { mask: 4, value: 4 });
        assert_eq!(roles(Family::Application, given).unwrap(), Bits { mask: 5, value: 5 });
        assert_eq!(roles(Family::Environment, given).unwrap(), Bits::default());
        assert!(roles(Family::Workflow, json!({"is_snippet": "yes"}).as_object()).is_err());
        assert_eq!(shown(None, None), None);
        assert_eq!(shown(Some(4), None).unwrap(), json!({"is_application": false, "is_evaluator": false, "is_snippet": true}));
        assert_eq!(shown(None, Some(0)).unwrap().as_object().unwrap().len(), 17);
    }

    #[test]
    fn a_filter_names_flags_that_there_are() {
        let asked = json!({"is_custom": true, "is_application": false, "is_static": true, "is_llm": null});
        let filter = FlagFilter::read(Family::Workflow, asked.as_object()).unwrap();
        assert_eq!((filter.roles.asked(), filter.traits.asked()), ((Some(1), 0), (Some(2), 2)));
        assert_eq!(FlagFilter::read(Family::Evaluator, None).unwrap().roles, Bits { mask: 2, value: 2 });
        let error = FlagFilter::read(Family::Workflow, json!({"is_custm": true}).as_object()).unwrap_err().to_string();
        assert!(error.contains("`is_custom`"), "{error}");
    }
}
