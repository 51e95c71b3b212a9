//! The schema of an answer as an API can hold a model to it. What is asked for may be wider than the schema, where an API knows less, or
//! narrower in that it names no properties of its own; whoever asks checks the answer against the schema itself.

use serde_json::{Map, Value, json};

/// The deepest nesting and the most schemas that are looked at.
const MAX_DEPTH: usize = 10;
const MAX_SCHEMAS: usize = 1_000;

type Schema = Map<String, Value>;

/// The `json_schema` of OpenAI's APIs: strict where the schema fits, else as advice. `None` where the root is no object, which is refused.
pub(crate) fn openai(schema: &Value) -> Option<Schema> {
    let root = schema.as_object().filter(|root| root.get("type").is_some_and(|kind| kind == "object") && !root.contains_key("anyOf"))?;
    let strict = Fit { rules: Rules::OpenAi, root, left: MAX_SCHEMAS, optional: 0, unions: 0 }.schema(schema, 0);
    let (schema, strict) = strict.map_or_else(|| (schema.clone(), false), |strict| (strict, true));
    Some(Map::from_iter([("name".to_owned(), json!("answer")), ("schema".to_owned(), schema), ("strict".to_owned(), strict.into())]))
}

/// The schema of Anthropic's `output_config.format`, or `None` where it cannot be said there.
pub(crate) fn anthropic(schema: &Value) -> Option<Value> {
    let root = schema.as_object().filter(|root| root.get("type").is_some_and(|kind| kind == "object"))?;
    let mut fit = Fit { rules: Rules::Anthropic, root, left: MAX_SCHEMAS, optional: 0, unions: 0 };
    let fitting = fit.schema(schema, 0)?;
    (fit.optional <= 24 && fit.unions <= 16).then_some(fitting)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rules {
    OpenAi,
    Anthropic,
}

struct Fit<'a> {
    rules: Rules,
    root: &'a Schema,
    left: usize,
    optional: usize,
    unions: usize,
}

impl<'a> Fit<'a> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        let schema = schema.as_object().filter(|_| depth <= MAX_DEPTH)?;
        let says_something = ["type", "anyOf", "oneOf", "enum", "const", "$ref"].iter().any(|keyword| schema.contains_key(*keyword));
        let mut fitting = Schema::new();
        let mut dropped = Vec::new();
        for (keyword, value) in schema.iter().filter(|_| says_something) {
            match keyword.as_str() {
                "$schema" | "$id" | "$comment" | "examples" => {}
                "default" if self.rules == Rules::OpenAi => {}
                "properties" => drop(fitting.insert(keyword.clone(), self.properties(value, depth)?)),
                // Definitions are looked at where they are used, which also finds those that lead back to themselves.
                "$defs" | "definitions" if depth == 0 => drop(fitting.insert(keyword.clone(), self.properties(value, depth)?)),
                "items" => drop(fitting.insert(keyword.clone(), self.schema(value, depth + 1)?)),
                "anyOf" | "oneOf" if self.may_unite(keyword) => {
                    self.unions += 1;
                    let branches = value.as_array()?.iter().map(|branch| self.schema(branch, depth + 1));
                    fitting.insert("anyOf".to_owned(), branches.collect::<Option<Vec<Value>>>()?.into());
                }
                "$ref" => {
                    let definition = self.definition(value.as_str()?)?;
                    self.schema(definition, depth + 1)?;
                    fitting.insert(keyword.clone(), value.clone());
                }
                "additionalProperties" => (*value == Value::Bool(false)).then_some(())?,
                _ if self.knows(keyword, value) => drop(fitting.insert(keyword.clone(), value.clone())),
                _ if self.rules == Rules::Anthropic && is_bound(keyword) => dropped.push(format!("{keyword}: {value}")),
                _ => return None,
            }
        }
        if schema.get("type").is_some_and(Value::is_array) {
            self.unions += 1;
        }
        if names_type(schema, "object") {
            self.close(schema, &mut fitting)?;
        }
        if names_type(schema, "array") {
            fitting.get("items")?;
        }
        if !dropped.is_empty() {
            let described = fitting.get("description").and_then(Value::as_str).unwrap_or_default();
            fitting.insert("description".to_owned(), format!("{described} ({})", dropped.join(", ")).trim().into());
        }
        says_something.then_some(Value::Object(fitting))
    }

    fn definition(&self, reference: &str) -> Option<&'a Value> {
        let (group, name) = reference.strip_prefix("#/")?.split_once('/')?;
        self.root.get(group).filter(|_| matches!(group, "$defs" | "definitions"))?.get(name)
    }

    fn properties(&mut self, properties: &Value, depth: usize) -> Option<Value> {
        let fitted = properties.as_object()?.iter().map(|(name, schema)| Some((name.clone(), self.schema(schema, depth + 1)?)));
        fitted.collect::<Option<Schema>>().map(Value::Object)
    }

    /// An object lists every property it may have; OpenAI also wants each of them to be there.
    fn close(&mut self, schema: &Schema, fitting: &mut Schema) -> Option<()> {
        let properties = schema.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty())?;
        let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let optional = properties.keys().filter(|name| !required.iter().any(|required| required == *name)).count();
        self.optional += optional;
        fitting.insert("additionalProperties".to_owned(), false.into());
        (self.rules == Rules::Anthropic || optional == 0).then_some(())
    }

    fn may_unite(&self, keyword: &str) -> bool {
        keyword == "anyOf" || self.rules == Rules::Anthropic
    }

    fn knows(&self, keyword: &str, value: &Value) -> bool {
        match (keyword, self.rules) {
            ("type" | "title" | "description" | "enum" | "const" | "required" | "default", _) => true,
            ("format", Rules::OpenAi) => {
                let known = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
                known.iter().any(|known| value == known)
            }
            ("format", Rules::Anthropic) => {
                let known = ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];
                known.iter().any(|known| value == known)
            }
            (_, Rules::OpenAi) => is_number_bound(keyword) || matches!(keyword, "pattern" | "minItems" | "maxItems"),
            ("minItems", Rules::Anthropic) => value.as_u64().is_some_and(|least| least <= 1),
            (_, Rules::Anthropic) => false,
        }
    }
}

fn names_type(schema: &Schema, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    }
}

fn is_number_bound(keyword: &str) -> bool {
    matches!(keyword, "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf")
}

/// A keyword that only narrows: without it more answers fit, and the model is told of it in the description.
fn is_bound(keyword: &str) -> bool {
    is_number_bound(keyword)
        || matches!(
            keyword,
            "minLength" | "maxLength" | "pattern" | "format" | "minItems" | "maxItems" | "uniqueItems" | "minProperties" | "maxProperties"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict(schema: Value) -> Option<Value> {
        openai(&schema).filter(|format| format["strict"] == true).map(|format| format["schema"].clone())
    }

    #[test]
    fn objects_are_closed_so_that_they_can_be_strict() {
        let schema = json!({"$schema": "x", "type": "object", "required": ["label", "parts"], "properties": {
            "label": {"type": "string", "enum": ["bug", "feature"], "default": "bug"},
            "parts": {"type": "array", "maxItems": 3, "items": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]}},
        }});
        let expected = json!({"type": "object", "required": ["label", "parts"], "additionalProperties": false, "properties": {
            "label": {"type": "string", "enum": ["bug", "feature"]},
            "parts": {"type": "array", "maxItems": 3, "items": {
                "type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"], "additionalProperties": false}},
        }});
        assert_eq!(strict(schema), Some(expected));
    }

    #[test]
    fn what_cannot_be_strict_is_advice() {
        let refused = [
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}, "required": ["a"]}),
            json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
            json!({"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": true}),
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"], "$defs": {"a": {"$ref": "#/$defs/a"}}}),
        ];
        for schema in refused {
            assert_eq!(openai(&schema).unwrap()["strict"], false, "{schema}");
            assert_eq!(openai(&schema).unwrap()["schema"], schema);
        }
        for root in [json!({"type": "array", "items": {}}), json!(true), json!({"anyOf": []})] {
            assert_eq!(openai(&root), None, "{root}");
            assert_eq!(anthropic(&root), None, "{root}");
        }
    }

    #[test]
    fn anthropic_gets_bounds_as_words() {
        let schema = json!({"type": "object", "properties": {
            "n": {"type": "integer", "minimum": 1, "maximum": 10, "description": "How many."},
            "either": {"oneOf": [{"type": "string", "pattern": "^a"}, {"$ref": "#/$defs/one"}]},
        }, "$defs": {"one": {"type": "array", "items": {"type": "string", "format": "uri"}, "minItems": 1}}});
        let expected = json!({"type": "object", "properties": {
            "n": {"type": "integer", "description": "How many. (minimum: 1, maximum: 10)"},
            "either": {"anyOf": [{"type": "string", "description": "(pattern: \"^a\")"}, {"$ref": "#/$defs/one"}]},
        }, "$defs": {"one": {"type": "array", "items": {"type": "string", "format": "uri"}, "minItems": 1}}, "additionalProperties": false});
        assert_eq!(anthropic(&schema), Some(expected));
        let many: Schema = (0..25).map(|number| (format!("p{number}"), json!({"type": "string"}))).collect();
        assert_eq!(anthropic(&json!({"type": "object", "properties": many})), None);
        assert_eq!(anthropic(&json!({"type": "object", "properties": {"a": {"not": {}}}})), None);
    }
}
