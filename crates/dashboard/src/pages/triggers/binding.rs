//! The part of a form that all triggers have: their words, what they run, and with which inputs.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::mapping::{mapping_of, mapping_text};
use super::model::{Labels, text};
use crate::form::Form;
use crate::visit::Visit;

/// More workflows than this do not help in a list.
const CHOICES: usize = 500;

/// What was typed, or what a trigger says now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Binding {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) workflow: String,
    pub(crate) version: String,
    pub(crate) environment: String,
    /// References that are more than these three.
    pub(crate) references: String,
    pub(crate) mapping: String,
    /// Workflows to choose from; none where the visitor may not see them.
    pub(crate) workflows: Vec<String>,
    /// Whether the project has none, as far as the visitor may know.
    pub(crate) has_no_workflows: bool,
}

#[derive(Debug, Deserialize)]
struct WorkflowsAnswer {
    #[serde(default)]
    workflows: Vec<Workflow>,
}

#[derive(Debug, Deserialize)]
struct Workflow {
    slug: String,
}

impl Binding {
    pub(crate) fn typed(form: &Form) -> Self {
        let typed = |name: &str| form.text(name).to_owned();
        Self {
            name: typed("name"),
            description: typed("description"),
            workflow: typed("workflow"),
            version: typed("version"),
            environment: typed("environment"),
            references: typed("references"),
            mapping: form.raw("mapping").to_owned(),
            ..Self::default()
        }
    }

    /// A binding to one workflow, with a place in the mapping for each of its inputs.
    pub(crate) async fn to(visit: &Visit, workflow: &str, source: Source) -> Self {
        let asked = json!({"workflow": {"slug": workflow}});
        let found: Option<Value> = visit.post("/simple/workflows/query", asked).await.ok();
        let Some(found) = found.filter(|found| found["workflows"][0]["slug"] == workflow) else { return Self::default() };
        let inputs = &found["workflows"][0]["data"]["schemas"]["inputs"]["properties"];
        Self { workflow: workflow.to_owned(), mapping: proposed(inputs, source), ..Self::default() }
    }

    pub(crate) fn saved(labels: &Labels, data: &Map<String, Value>) -> Self {
        let mut binding = Self {
            name: labels.name.clone().unwrap_or_default(),
            description: labels.description.clone().unwrap_or_default(),
            mapping: mapping_text(data.get("inputs_fields")),
            ..Self::default()
        };
        match data.get("references") {
            None | Some(Value::Null) => {}
            Some(references) => match plain(references) {
                Some([workflow, version, environment]) => {
                    (binding.workflow, binding.version, binding.environment) = (workflow, version, environment);
                }
                None => binding.references = serde_json::to_string_pretty(references).unwrap_or_default(),
            },
        }
        binding
    }

    /// The workflows to choose from. A form is of use without them too.
    pub(crate) async fn find_workflows(&mut self, visit: &Visit) {
        let found: Option<WorkflowsAnswer> = visit.post("/workflows/query", json!({"windowing": {"limit": CHOICES}})).await.ok();
        self.has_no_workflows = found.as_ref().is_some_and(|found| found.workflows.is_empty());
        self.workflows = found.into_iter().flat_map(|found| found.workflows).map(|workflow| workflow.slug).collect();
        if !self.workflows.is_empty() && !self.workflow.is_empty() && !self.workflows.contains(&self.workflow) {
            self.workflows.push(self.workflow.clone());
        }
    }

    /// Writes target and mapping into a trigger's data.
    pub(crate) fn write(&self, data: &mut Map<String, Value>) -> Result<(), String> {
        set(data, "references", self.target()?);
        set(data, "inputs_fields", mapping_of(&self.mapping)?);
        Ok(())
    }

    fn target(&self) -> Result<Option<Value>, String> {
        if !self.references.is_empty() {
            let references = serde_json::from_str(&self.references).map_err(|error| format!("The references are not JSON: {error}."))?;
            return Ok(Some(references));
        }
        let mut references = Map::new();
        for (part, field, value) in [
            ("workflow", "slug", &self.workflow),
            ("workflow_revision", "version", &self.version),
            ("environment", "slug", &self.environment),
        ] {
            if !value.is_empty() {
                references.insert(part.to_owned(), json!({field: value}));
            }
        }
        Ok((!references.is_empty()).then_some(Value::Object(references)))
    }

    pub(crate) fn name(&self) -> Option<&str> {
        Some(self.name.as_str()).filter(|name| !name.is_empty())
    }

    pub(crate) fn description(&self) -> Option<&str> {
        Some(self.description.as_str()).filter(|description| !description.is_empty())
    }
}

/// Where the inputs of a run can come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// An event, whose attributes may have the names of the inputs.
    Event,
    /// The clock, which knows nothing: the values are written down.
    Clock,
}

/// A mapping with a place for each input; nothing where there are none.
fn proposed(inputs: &Value, source: Source) -> String {
    let place = |(name, input): (&String, &Value)| {
        let value = match source {
            Source::Event if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => format!("$.event.attributes.{name}").into(),
            Source::Event => format!("$.event.attributes[\"{name}\"]").into(),
            Source::Clock => input.get("default").cloned().unwrap_or_else(|| "".into()),
        };
        (name.clone(), value)
    };
    let mapping: Map<String, Value> = inputs.as_object().into_iter().flatten().map(place).collect();
    if mapping.is_empty() { String::new() } else { mapping_text(Some(&mapping.into())) }
}

/// Sets a member, or takes it away.
pub(crate) fn set(data: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => {
            data.insert(name.to_owned(), value);
        }
        None => {
            data.shift_remove(name);
        }
    }
}

/// Workflow, version and environment, where references say nothing else.
fn plain(references: &Value) -> Option<[String; 3]> {
    let references = references.as_object()?;
    let mut found = [String::new(), String::new(), String::new()];
    for (part, reference) in references {
        let (at, field) = match part.as_str() {
            "workflow" => (0, "slug"),
            "workflow_revision" => (1, "version"),
            "environment" => (2, "slug"),
            _ => return None,
        };
        let reference = reference.as_object().filter(|reference| reference.len() == 1)?;
        found[at] = Some(text(reference, field)).filter(|text| !text.is_empty())?.to_owned();
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels() -> Labels {
        serde_json::from_value(json!({"name": "bugs", "created_at": "", "updated_at": ""})).unwrap()
    }

    #[test]
    fn what_is_shown_is_saved_again() {
        for references in [
            json!({"workflow": {"slug": "triage"}, "workflow_revision": {"version": "3"}, "environment": {"slug": "production"}}),
            json!({"workflow_variant": {"id": "1"}}),
            json!({"workflow": {"slug": "triage", "id": "1"}}),
        ] {
            let data = json!({"event_key": "PING", "references": references, "inputs_fields": "$.event", "selector": {"key": "a"}});
            let data = data.as_object().unwrap();
            let mut saved = data.clone();
            Binding::saved(&labels(), data).write(&mut saved).unwrap();
            assert_eq!(&saved, data);
        }
    }

    #[test]
    fn a_mapping_is_proposed_for_the_inputs_of_a_workflow() {
        let inputs = json!({"title": {"type": "string"}, "per-page": {"type": "integer", "default": 5}});
        let read = |source| serde_json::from_str::<Value>(&proposed(&inputs, source)).unwrap();
        assert_eq!(read(Source::Event), json!({"title": "$.event.attributes.title", "per-page": "$.event.attributes[\"per-page\"]"}));
        assert_eq!(read(Source::Clock), json!({"title": "", "per-page": 5}));
        assert_eq!(proposed(&Value::Null, Source::Event), "");
    }

    #[test]
    fn empty_fields_take_away() {
        let mut data =
            json!({"event_key": "PING", "references": {"workflow": {"slug": "a"}}, "inputs_fields": {}}).as_object().unwrap().clone();
        Binding::default().write(&mut data).unwrap();
        assert_eq!(Value::Object(data), json!({"event_key": "PING"}));
    }

    #[test]
    fn references_must_be_json() {
        let binding = Binding { references: "{".to_owned(), ..Binding::default() };
        assert!(binding.write(&mut Map::new()).unwrap_err().starts_with("The references are not JSON"));
    }
}
