//! What the templates of steps name, held against what there is when they are saved.

use std::sync::LazyLock;

use kernel::suggest::did_you_mean;
use kernel::template::{Reference, Template};
use serde_json::{Map, Value};

use super::Steps;

const ROOTS: [&str; 2] = ["inputs", "steps"];
/// What a step is to those after it.
const FIELDS: [&str; 4] = ["ok", "skipped", "result", "error"];
/// Keywords of a schema whose properties are not all in its `properties`.
const SHAPES: [&str; 8] = ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"];

impl Steps {
    /// Refuses a template that names an input or step that cannot be there; the error is for the author.
    pub(crate) fn check_names(&self, inputs: Option<&Value>) -> Result<(), String> {
        let all: Vec<&str> = self.steps.iter().map(|step| step.name.as_str()).collect();
        for (index, step) in self.steps.iter().enumerate() {
            let scope = Names { inputs, all: &all, before: &all[..index] };
            scope.check(&format!("data.steps.{index}.arguments"), &step.arguments)?;
            if let Some(when) = &step.when {
                scope.check(&format!("data.steps.{index}.when"), when)?;
            }
        }
        let scope = Names { inputs, all: &all, before: &all };
        self.result.as_ref().map_or(Ok(()), |result| scope.check("data.result", result))
    }
}

/// What a template may name.
struct Names<'a> {
    inputs: Option<&'a Value>,
    all: &'a [&'a str],
    /// The steps that have run by then.
    before: &'a [&'a str],
}

impl Names<'_> {
    fn check(&self, part: &str, template: &Template) -> Result<(), String> {
        template.references().iter().try_for_each(|reference| {
            let Reference { place, path } = reference;
            self.find(path).map_err(|error| format!("`{part}{}`: `{}`: {error}", place.trim_end_matches('/'), path.join(".")))
        })
    }

    fn find(&self, path: &[String]) -> Result<(), String> {
        let (root, parts) = path.split_first().map_or(("", path), |(root, parts)| (root.as_str(), parts));
        match (root, parts) {
            ("inputs", parts) => self.inputs.map_or(Ok(()), |schema| property(schema, parts)),
            ("steps", [step, field @ ..]) => {
                if !self.before.contains(&step.as_str()) {
                    return Err(self.no_step(step));
                }
                match field.first() {
                    Some(field) if !FIELDS.contains(&field.as_str()) => {
                        Err(format!("a step has {}.{}", FIELDS.join(", "), did_you_mean(field, FIELDS)))
                    }
                    _ => Ok(()),
                }
            }
            ("steps", []) => Ok(()),
            (other, _) => Err(format!("there is no `{other}` here; templates see `inputs` and `steps`.{}", did_you_mean(other, ROOTS))),
        }
    }

    fn no_step(&self, step: &str) -> String {
        if self.all.contains(&step) {
            return format!("step `{step}` has not run by then; name one that comes before");
        }
        format!("there is no step `{step}`.{}", did_you_mean(step, self.before.iter().copied()))
    }
}

/// Whether a schema lets a part be there. Where it does not list its properties, nothing is known.
fn property(schema: &Value, parts: &[String]) -> Result<(), String> {
    let (Some(listed), Some((part, rest))) = (listed(schema), parts.split_first()) else { return Ok(()) };
    if let Some(inner) = listed.get(part) {
        return property(inner, rest);
    }
    let near = did_you_mean(part, listed.keys().map(String::as_str));
    Err(format!("`{part}` is not among the properties in `data.schemas.inputs`; add it there, or correct the name.{near}"))
}

/// The properties of a schema, if they are all that its author thought of.
fn listed(schema: &Value) -> Option<&Map<String, Value>> {
    static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    let schema = schema.as_object().filter(|schema| !SHAPES.iter().any(|shape| schema.contains_key(*shape)))?;
    let properties = schema.get("properties").and_then(Value::as_object);
    match schema.get("additionalProperties") {
        None => properties.filter(|properties| !properties.is_empty()),
        Some(Value::Bool(false)) => Some(properties.unwrap_or(&NONE)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(inputs: Option<&Value>, template: &str) -> Result<(), String> {
        let call = "workflow.variant.x";
        let steps = json!([{"name": "find", "call": call}, {"name": "tell", "call": call, "arguments": {"q": template}}, {"name": "last", "call": call}]);
        Steps::parse(&json!({"steps": steps})).unwrap().check_names(inputs)
    }

    #[test]
    fn what_cannot_be_there_is_refused_with_the_nearest() {
        let inner = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let listed = json!({"type": "object", "properties": {"customer": inner, "tags": {"type": "array"}}});
        for (template, words) in [
            (
                "{{ inputs.custmer }}",
                "`data.steps.1.arguments/q`: `inputs.custmer`: `custmer` is not among the properties in `data.schemas.inputs`; add it there, or correct the name. Did you mean `customer`?",
            ),
            ("for {{ inputs['custmer'] | default('x') }}", "Did you mean `customer`?"),
            ("{{ inputs.customer.nam }}", "Did you mean `name`?"),
            ("{{ input.customer }}", "there is no `input` here; templates see `inputs` and `steps`. Did you mean `inputs`?"),
            ("{{ range(3) }}", "there is no `range` here"),
            ("{{ steps.fnd.result }}", "there is no step `fnd`. Did you mean `find`?"),
            ("{{ steps.last.result }}", "step `last` has not run by then"),
            ("{{ steps.tell.ok }}", "step `tell` has not run by then"),
            ("{{ steps.find.reslt.x }}", "a step has ok, skipped, result, error. Did you mean `result`?"),
        ] {
            let error = checked(Some(&listed), template).unwrap_err();
            assert!(error.contains(words), "{template}: {error}");
        }
        for template in [
            "{{ inputs.customer.name }}",
            "{{ inputs.tags.0.x }}",
            "{{ inputs }}",
            "{{ steps.find.result.anything.at.all }}",
            "{{ steps['find'] }}",
        ] {
            checked(Some(&listed), template).unwrap_or_else(|error| panic!("{template}: {error}"));
        }
    }

    #[test]
    fn where_inputs_are_not_listed_the_run_decides() {
        for open in [
            None,
            Some(json!({})),
            Some(json!({"type": "object"})),
            Some(json!({"properties": {"a": {}}, "additionalProperties": true})),
            Some(json!({"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}]})),
        ] {
            checked(open.as_ref(), "{{ inputs.b }}").unwrap_or_else(|error| panic!("{open:?}: {error}"));
        }
        for closed in [
            json!({"properties": {"a": {}}}),
            json!({"additionalProperties": false}),
            json!({"properties": {}, "additionalProperties": false}),
        ] {
            assert!(checked(Some(&closed), "{{ inputs.b }}").is_err(), "{closed}");
        }
    }

    #[test]
    fn conditions_and_results_are_held_to_the_same() {
        let step = json!({"name": "a", "call": "workflow.variant.x", "when": "inputs.b > 1"});
        let schema = json!({"properties": {"bb": {}}});
        let error = Steps::parse(&json!({"steps": [step]})).unwrap().check_names(Some(&schema)).unwrap_err();
        assert!(error.starts_with("`data.steps.0.when`: `inputs.b`"), "{error}");
        let step = json!({"name": "a", "call": "workflow.variant.x"});
        let error =
            Steps::parse(&json!({"steps": [step], "result": {"x": "{{ steps.b.result }}"}})).unwrap().check_names(None).unwrap_err();
        assert!(error.starts_with("`data.result/x`: `steps.b.result`"), "{error}");
    }
}
