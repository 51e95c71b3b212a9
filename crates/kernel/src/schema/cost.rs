//! How much work a check would be, counted before it is done. A schema that refers to itself from two branches makes a validator look at
//! a value twice as often with every level of nesting: a few bytes of schema and of value take all time and memory there is.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::unfold::Known;

/// How often schemas may be applied in one check.
const MAX_APPLICATIONS: u64 = 500_000;

/// Which schemas a schema applies to the parts of its value, and how often.
#[derive(Debug)]
pub(super) struct Cost(Vec<Node>);

#[derive(Debug, Default)]
struct Node {
    /// How many schemas are applied to the value itself.
    applied: u64,
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    of: Which,
    schema: usize,
    times: u64,
}

/// The parts of a value that a schema speaks of. Where it leaves some out, it is taken to speak of all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Which {
    Property(String),
    Properties,
    Item(usize),
    Items,
}

impl Cost {
    /// Follows a schema whose references were found to be within bounds.
    pub(super) fn of<'a>(root: &'a Value, known: &Known<'a>) -> Result<Self, String> {
        let mut nodes = Vec::new();
        let mut numbers: HashMap<*const Value, usize> = HashMap::from([(std::ptr::from_ref(root), 0)]);
        let mut open = vec![root];
        while let Some(&schema) = open.get(nodes.len()) {
            let seen = known.unfold(schema)?;
            let mut times: HashMap<(Which, usize), u64> = HashMap::new();
            for part in seen.iter().flat_map(|schema| parts(schema)) {
                let number = *numbers.entry(std::ptr::from_ref(part.1)).or_insert_with(|| {
                    open.push(part.1);
                    open.len() - 1
                });
                *times.entry((part.0, number)).or_default() += 1;
            }
            let parts = times.into_iter().map(|((of, schema), times)| Part { of, schema, times }).collect();
            nodes.push(Node { applied: seen.len() as u64, parts });
        }
        Ok(Self(nodes))
    }

    /// How often schemas are applied to check a value; nothing where that is more than one check may be.
    pub(super) fn of_check(&self, value: &Value) -> Option<u64> {
        let mut left = MAX_APPLICATIONS;
        self.count(value, &BTreeMap::from([(0, 1)]), &mut left)?;
        Some(MAX_APPLICATIONS - left)
    }

    /// Takes the applications of `schemas`, each so many times, from what is left; nothing when that is not enough.
    fn count(&self, value: &Value, schemas: &BTreeMap<usize, u64>, left: &mut u64) -> Option<()> {
        for (schema, times) in schemas {
            *left = left.checked_sub(self.0[*schema].applied.saturating_mul(*times))?;
        }
        match value {
            Value::Object(fields) => fields.iter().try_for_each(|(name, field)| {
                let speaks_of = |which: &Which| matches!(which, Which::Properties) || matches!(which, Which::Property(own) if own == name);
                self.count_part(field, schemas, speaks_of, left)
            }),
            Value::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
                let speaks_of = |which: &Which| matches!(which, Which::Items) || *which == Which::Item(index);
                self.count_part(item, schemas, speaks_of, left)
            }),
            _ => Some(()),
        }
    }

    fn count_part(&self, value: &Value, schemas: &BTreeMap<usize, u64>, speaks_of: impl Fn(&Which) -> bool, left: &mut u64) -> Option<()> {
        let mut applied = BTreeMap::new();
        for (schema, times) in schemas {
            for part in self.0[*schema].parts.iter().filter(|part| speaks_of(&part.of)) {
                let count: &mut u64 = applied.entry(part.schema).or_default();
                *count = count.saturating_add(times.saturating_mul(part.times));
            }
        }
        if applied.is_empty() { Some(()) } else { self.count(value, &applied, left) }
    }
}

/// What a schema says about the parts of its value.
fn parts(schema: &Map<String, Value>) -> Vec<(Which, &Value)> {
    let mut parts = Vec::new();
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(fields)) => {
                parts.extend(fields.iter().map(|(name, field)| (Which::Property(name.clone()), field)));
            }
            ("patternProperties", Value::Object(fields)) => parts.extend(fields.values().map(|field| (Which::Properties, field))),
            ("additionalProperties" | "unevaluatedProperties", part @ Value::Object(_)) => parts.push((Which::Properties, part)),
            ("items" | "prefixItems", Value::Array(items)) => {
                parts.extend(items.iter().enumerate().map(|(index, item)| (Which::Item(index), item)));
            }
            ("items" | "additionalItems" | "unevaluatedItems" | "contains", part @ Value::Object(_)) => parts.push((Which::Items, part)),
            _ => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::super::Schema;
    use super::*;

    fn nested(depth: usize, inside: Value, wrap: impl Fn(Value) -> Value) -> Value {
        (0..depth).fold(inside, |inner, _| wrap(inner))
    }

    /// Values that would take hours are refused within a moment, and say why.
    fn refused(schema: Value, value: Value) {
        let started = Instant::now();
        let violations = Schema::compile(&schema).unwrap().check(&value).unwrap_err();
        assert!(violations[0].message.contains("too much work"), "{violations:?}");
        assert!(started.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn a_schema_that_doubles_with_every_level_is_stopped() {
        let item = json!({"items": {"$ref": "#/$defs/a"}});
        let schema =
            json!({"$defs": {"a": {"type": "array", "allOf": [item, item]}}, "type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}});
        refused(schema.clone(), json!({"x": nested(40, json!([]), |inner| json!([inner]))}));
        refused(schema.clone(), json!({"x": nested(40, json!(7), |inner| json!([inner]))}));
        assert!(Schema::compile(&schema).unwrap().check(&json!({"x": [[[]], []]})).is_ok());

        let field = json!({"type": "object", "properties": {"a": {"$ref": "#"}}});
        refused(json!({"anyOf": [field, field]}), nested(40, json!(7), |inner| json!({"a": inner})));
        let other = json!({"additionalProperties": {"$ref": "#"}});
        refused(json!({"oneOf": [other, other]}), nested(40, json!(7), |inner| json!({"z": inner})));
    }

    #[test]
    fn a_chain_that_doubles_without_coming_round_is_stopped_too() {
        let next = |at: usize| {
            let item = json!({"items": {"$ref": format!("#/$defs/d{}", at + 1)}});
            (format!("d{at}"), json!({"allOf": [item, item]}))
        };
        let mut definitions: Map<String, Value> = (0..50).map(next).collect();
        definitions.insert("d50".to_owned(), json!({"type": "string"}));
        refused(json!({"$ref": "#/$defs/d0", "$defs": definitions}), nested(50, json!(7), |inner| json!([inner])));
    }

    #[test]
    fn filters_and_long_lists_are_checked() {
        let both = json!({"type": "object", "properties": {"and": {"type": "array", "items": {"$ref": "#/$defs/f"}}}, "required": ["and"]});
        let any = json!({"type": "object", "properties": {"or": {"type": "array", "items": {"$ref": "#/$defs/f"}}}, "required": ["or"]});
        let one = json!({"type": "object", "properties": {"field": {"type": "string"}}, "required": ["field"]});
        let schema = json!({"$ref": "#/$defs/f", "$defs": {"f": {"oneOf": [both, any, one]}}});
        let filter = nested(5, json!({"field": "x"}), |inner| json!({"and": [inner, {"or": [{"field": "y"}]}]}));
        assert!(Schema::compile(&schema).unwrap().check(&filter).is_ok());
        let rows = json!({"type": "array", "items": {"$ref": "#/$defs/row"}, "$defs": {"row": {"type": "object", "properties": {"n": {"type": "integer"}}}}});
        let many: Vec<Value> = (0..100_000).map(|n| json!({"n": n})).collect();
        assert!(Schema::compile(&rows).unwrap().check(&json!(many)).is_ok());
    }
}
