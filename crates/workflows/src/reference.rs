//! Names for things with a history.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::WorkflowError;

/// The names under which a workflow may be referred to; older clients say application or evaluator.
const FAMILIES: [&str; 3] = ["workflow", "application", "evaluator"];

/// A name for one artifact, variant or revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reference {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "version")]
    pub version: Option<String>,
}

impl Reference {
    pub fn slug(slug: &str) -> Self {
        Self { slug: Some(slug.to_owned()), ..Self::default() }
    }

    pub fn id(id: Uuid) -> Self {
        Self { id: Some(id), ..Self::default() }
    }

    pub fn version(version: &str) -> Self {
        Self { version: Some(version.to_owned()), ..Self::default() }
    }

    /// Whether it says which one, and not only which version.
    pub(crate) fn is_named(&self) -> bool {
        self.id.is_some() || self.slug.is_some()
    }
}

/// A version is text on the wire, but people write numbers.
fn version<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match Option::<Value>::deserialize(deserializer)? {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Number(number)) if !number.is_f64() => Ok(Some(number.to_string())),
        Some(other) => Err(serde::de::Error::custom(format!("invalid version `{other}`, expected a string"))),
    }
}

/// References to the levels of one history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Levels {
    pub(crate) artifact: Option<Reference>,
    pub(crate) variant: Option<Reference>,
    pub(crate) revision: Option<Reference>,
}

impl Levels {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn read(fields: &Map<String, Value>, family: &str) -> Result<Self, WorkflowError> {
        let read = |level: &str| -> Result<Option<Reference>, WorkflowError> {
            let name = format!("{family}{level}");
            let Some(value) = fields.get(&name).or_else(|| fields.get(&format!("{name}_ref"))).filter(|value| !value.is_null()) else {
                return Ok(None);
            };
            serde_json::from_value(value.clone()).map(Some).map_err(|error| WorkflowError::Invalid(format!("`{name}`: {error}")))
        };
        Ok(Self { artifact: read("")?, variant: read("_variant")?, revision: read("_revision")? })
    }
}

/// What a caller names: a workflow at some level, or an environment and what is deployed there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct References {
    pub(crate) workflow: Levels,
    pub(crate) environment: Levels,
}

impl References {
    /// Reads a document of references, as `{"workflow": {"slug": "x"}, "environment": {…}}` or with names that end in `_ref`.
    /// Other names are left alone; two families of workflows are one too many.
    pub fn read(fields: &Map<String, Value>) -> Result<Self, WorkflowError> {
        let mut found = Self { workflow: Levels::default(), environment: Levels::read(fields, "environment")? };
        for family in FAMILIES {
            let levels = Levels::read(fields, family)?;
            if levels.is_empty() {
                continue;
            }
            if !found.workflow.is_empty() {
                return Err(WorkflowError::BadRequest("Name one of workflow, application and evaluator, not several.".to_owned()));
            }
            found.workflow = levels;
        }
        Ok(found)
    }

    /// The newest revision of a workflow, or one version of it.
    pub fn workflow(slug: &str, version: Option<&str>) -> Self {
        let workflow = Levels { artifact: Some(Reference::slug(slug)), revision: version.map(Reference::version), ..Levels::default() };
        Self { workflow, environment: Levels::default() }
    }

    /// The newest revision of a workflow, by its id.
    pub fn artifact(id: Uuid) -> Self {
        Self { workflow: Levels { artifact: Some(Reference::id(id)), ..Levels::default() }, environment: Levels::default() }
    }

    /// The newest revision of a variant.
    pub fn variant(id: Uuid) -> Self {
        Self { workflow: Levels { variant: Some(Reference::id(id)), ..Levels::default() }, environment: Levels::default() }
    }

    /// What is deployed of a workflow.
    pub fn deployed(environment: &str, slug: &str) -> Self {
        let environment = Levels { artifact: Some(Reference::slug(environment)), ..Levels::default() };
        Self { environment, ..Self::workflow(slug, None) }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn names_environment(&self) -> bool {
        !self.environment.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<References, WorkflowError> {
        References::read(value.as_object().unwrap())
    }

    #[test]
    fn every_way_to_name_a_workflow_reads_the_same() {
        let expected = References::workflow("x", None);
        for value in [
            json!({"workflow": {"slug": "x"}}),
            json!({"workflow_ref": {"slug": "x"}, "other": 1}),
            json!({"application": {"slug": "x"}, "workflow": null}),
            json!({"evaluator": {"slug": "x"}}),
        ] {
            assert_eq!(read(value.clone()).unwrap(), expected, "{value}");
        }
        let pinned = read(json!({"workflow": {"slug": "x"}, "workflow_revision": {"version": 3}})).unwrap();
        assert_eq!(pinned, References::workflow("x", Some("3")));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (value, part) in [
            (json!({"workflow": {"slug": "x"}, "application": {"slug": "x"}}), "not several"),
            (json!({"workflow": "x"}), "`workflow`"),
            (json!({"workflow": {"id": "nope"}}), "`workflow`"),
            (json!({"workflow_revision": {"version": {}}}), "`workflow_revision`"),
            (json!({"workflow_revision": {"version": 1.5}}), "`workflow_revision`"),
        ] {
            let error = read(value.clone()).unwrap_err().to_string();
            assert!(error.contains(part), "{value}: {error}");
        }
    }
}
