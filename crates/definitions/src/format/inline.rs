//! Schemas that stand alone: references inlined, depth and size bounded, every draft written as JSON Schema 2020-12.

use serde_json::{Value, json};

use super::schema::{Schema, add_new, merge};

/// How many schemas may be nested in each other.
const MAX_DEPTH: usize = 8;
const MIN_DEPTH: usize = 3;
/// How many schemas one tool may hold; inlining can multiply them.
const MAX_SCHEMAS: usize = 2_000;
/// How many references may lead to one another.
const MAX_HOPS: usize = 32;

pub(super) const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// The schema with every reference replaced by what it stands for, as deep as the size allows.
pub(super) fn inline(root: &Value) -> Schema {
    let mut depth = MAX_DEPTH;
    loop {
        let mut inliner = Inliner { root, depth, left: MAX_SCHEMAS, trail: Vec::new() };
        let schema = inliner.schema(root, 0);
        if inliner.left > 0 || depth == MIN_DEPTH {
            return schema;
        }
        depth -= 1;
    }
}

struct Inliner<'a> {
    root: &'a Value,
    depth: usize,
    left: usize,
    /// The references being followed, to notice a cycle.
    trail: Vec<String>,
}

impl Inliner<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Schema {
        self.left = self.left.saturating_sub(1);
        let map = match schema {
            Value::Object(map) => map,
            Value::Bool(false) => return object(json!({"not": {}})),
            _ => return Schema::new(),
        };
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            return self.reference(reference, map, depth);
        }
        if depth >= self.depth || self.left == 0 {
            return free_form(map);
        }
        // A condition that lost a part would refuse more than before, so one that could be cut goes altogether.
        let bounded = depth + 3 > self.depth;
        let kept = understood(map).filter(|(keyword, value)| !is_condition(keyword) || !(bounded || holds_reference(value)));
        tidy(kept.map(|(keyword, value)| (keyword.clone(), self.nested(keyword, value, depth + 1))).collect())
    }

    fn nested(&mut self, keyword: &str, value: &Value, depth: usize) -> Value {
        let mut inline = |schema: &Value| Value::Object(self.schema(schema, depth));
        match (nesting(keyword), value) {
            (Nesting::Named, Value::Object(named)) => named.iter().map(|(name, schema)| (name.clone(), inline(schema))).collect(),
            (Nesting::List | Nesting::One, Value::Array(list)) => list.iter().map(inline).collect(),
            (Nesting::One, Value::Object(_)) => inline(value),
            _ => value.clone(),
        }
    }

    fn reference(&mut self, reference: &str, map: &Schema, depth: usize) -> Schema {
        let beside = understood(map).filter(|(keyword, _)| *keyword != "$ref").map(|(keyword, value)| (keyword.clone(), value.clone()));
        let beside = self.schema(&Value::Object(beside.collect()), depth);
        let root = self.root;
        let Some(target) = reference.strip_prefix('#').and_then(|pointer| root.pointer(&pointer.replace("%7B", "{").replace("%7D", "}")))
        else {
            return merge(beside, object(json!({"description": format!("Any value as `{reference}` defines it.")})));
        };
        let is_spent = self.left == 0 || self.trail.len() >= MAX_HOPS;
        if reference == "#" || is_spent || self.trail.iter().any(|followed| followed == reference) {
            let cut = target.as_object().map_or_else(Schema::new, free_form);
            return merge(beside, cut);
        }
        self.trail.push(reference.to_owned());
        let target = self.schema(target, depth);
        self.trail.pop();
        merge(beside, target)
    }
}

/// How a keyword holds other schemas.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nesting {
    None,
    One,
    List,
    Named,
}

#[rustfmt::skip]
fn nesting(keyword: &str) -> Nesting {
    match keyword {
        "properties" | "patternProperties" | "dependentSchemas" => Nesting::Named,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Nesting::List,
        "items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains" | "propertyNames"
        | "unevaluatedProperties" | "unevaluatedItems" => Nesting::One,
        _ => Nesting::None,
    }
}

fn is_condition(keyword: &str) -> bool {
    matches!(keyword, "not" | "if")
}

fn holds_reference(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.contains_key("$ref") || map.values().any(holds_reference),
        Value::Array(list) => list.iter().any(holds_reference),
        _ => false,
    }
}

/// Whether a keyword names or holds other schemas, or is known to OpenAPI only.
#[rustfmt::skip]
fn is_foreign(keyword: &str) -> bool {
    matches!(keyword, "$schema" | "$id" | "id" | "$anchor" | "$dynamicAnchor" | "$dynamicRef" | "$recursiveRef" | "$recursiveAnchor"
        | "$vocabulary" | "$comment" | "$defs" | "definitions" | "components" | "dependencies" | "additionalItems" | "discriminator"
        | "xml" | "externalDocs") || keyword.starts_with("x-")
}

pub(super) fn object(value: Value) -> Schema {
    match value {
        Value::Object(map) => map,
        _ => Schema::new(),
    }
}

/// Calls `change` for every schema directly inside this one. A boolean stands where both kinds may.
pub(super) fn each_nested(schema: &mut Schema, change: &mut dyn FnMut(&mut Value)) {
    for (keyword, value) in schema.iter_mut() {
        match (nesting(keyword), value) {
            (Nesting::Named, Value::Object(map)) => map.values_mut().for_each(&mut *change),
            (Nesting::List, Value::Array(list)) => list.iter_mut().for_each(&mut *change),
            (Nesting::One, value @ Value::Object(_)) => change(value),
            _ => {}
        }
    }
}

/// The keywords of a schema that are worth keeping.
fn understood(schema: &Schema) -> impl Iterator<Item = (&String, &Value)> {
    schema.iter().filter(|(keyword, value)| !is_foreign(keyword) && has_its_shape(keyword, value))
}

/// The schema without what is nested in it.
fn free_form(schema: &Schema) -> Schema {
    let flat = |keyword: &str| nesting(keyword) == Nesting::None && !matches!(keyword, "required" | "dependentRequired" | "$ref");
    let kept = understood(schema).filter(|(keyword, _)| flat(keyword));
    let mut free: Schema = kept.map(|(keyword, value)| (keyword.clone(), value.clone())).collect();
    if let Some(implied) = implied_type(schema) {
        free.entry("type").or_insert_with(|| implied.into());
    }
    tidy(free)
}

/// One schema in the words of JSON Schema 2020-12, whatever draft or OpenAPI version it was written for.
fn tidy(mut schema: Schema) -> Schema {
    tidy_type(&mut schema);
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if schema.get(exclusive).is_some_and(Value::is_boolean)
            && schema.shift_remove(exclusive) == Some(Value::Bool(true))
            && let Some(limit) = schema.shift_remove(bound)
        {
            schema.insert(exclusive.to_owned(), limit);
        }
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        let names = std::mem::take(required);
        add_new(required, names);
    }
    // Alternatives that were cut may overlap where the original ones did not.
    if !schema.contains_key("anyOf")
        && let Some(alternatives) = schema.shift_remove("oneOf")
    {
        schema.insert("anyOf".to_owned(), alternatives);
    }
    if schema.get("items").is_some_and(Value::is_array)
        && let Some(tuple) = schema.insert("items".to_owned(), json!({}))
    {
        schema.insert("prefixItems".to_owned(), tuple);
    }
    if types_of(&schema).iter().any(|name| name == "array") {
        schema.entry("items").or_insert_with(|| json!({}));
    }
    schema
}

fn has_its_shape(keyword: &str, value: &Value) -> bool {
    match keyword {
        "enum" => value.as_array().is_some_and(|list| !list.is_empty()),
        "required" => value.as_array().is_some_and(|names| names.iter().all(Value::is_string)),
        "items" => value.is_object() || value.is_boolean() || value.as_array().is_some_and(|list| !list.is_empty()),
        "title" | "description" | "format" | "pattern" => value.is_string(),
        "nullable" | "uniqueItems" | "readOnly" | "writeOnly" | "deprecated" => value.is_boolean(),
        "minimum" | "maximum" | "multipleOf" => value.is_number(),
        "exclusiveMinimum" | "exclusiveMaximum" => value.is_number() || value.is_boolean(),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => value.is_u64(),
        "examples" => value.is_array(),
        _ => match nesting(keyword) {
            Nesting::None => true,
            Nesting::One => value.is_object() || value.is_boolean(),
            Nesting::List => value.as_array().is_some_and(|list| !list.is_empty()),
            Nesting::Named => value.is_object(),
        },
    }
}

/// `type` as JSON Schema knows it: OpenAPI's `nullable` becomes `null`, Swagger's `file` a string.
fn tidy_type(schema: &mut Schema) {
    let nullable = schema.shift_remove("nullable") == Some(Value::Bool(true));
    let mut types: Vec<&str> = Vec::new();
    for name in types_of(schema) {
        let name = if name == "file" { "string" } else { name.as_str() };
        types.extend(TYPES.into_iter().find(|known| *known == name && !types.contains(known)));
    }
    if nullable && !types.is_empty() && !types.contains(&"null") {
        types.push("null");
    }
    match types[..] {
        [] => schema.shift_remove("type"),
        [one] => schema.insert("type".to_owned(), one.into()),
        _ => schema.insert("type".to_owned(), json!(types)),
    };
}

pub(super) fn types_of(schema: &Schema) -> Vec<String> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// The only type besides `null`, or the one that the keywords speak of.
pub(super) fn implied_type(schema: &Schema) -> Option<&'static str> {
    let named = types_of(schema);
    let mut besides_null = TYPES.into_iter().filter(|known| *known != "null" && named.iter().any(|name| name == known));
    if let Some(first) = besides_null.next() {
        return besides_null.next().is_none().then_some(first);
    }
    let speaks = |keywords: &[&str]| keywords.iter().any(|keyword| schema.contains_key(*keyword));
    if speaks(&["properties", "patternProperties", "additionalProperties", "minProperties", "maxProperties"]) {
        Some("object")
    } else if speaks(&["items", "prefixItems", "minItems", "maxItems"]) {
        Some("array")
    } else if speaks(&["pattern", "minLength", "maxLength", "format"]) {
        Some("string")
    } else {
        speaks(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]).then_some("number")
    }
}
