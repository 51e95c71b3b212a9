//! The published rules of each API, as a check of finished definitions. It shares nothing with the code that writes them but the rule
//! for names.

use serde_json::{Map, Value};

use super::Format;
use super::name::is_function_name;

/// The deepest nesting that OpenAI documents; the others document none.
const MAX_DEPTH: usize = 10;
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// Checks a definition against the rules of its API and lists every rule it breaks.
pub fn validate(format: Format, definition: &Value) -> Result<(), Vec<String>> {
    let mut check = Check { format, problems: Vec::new() };
    check.definition(definition);
    if check.problems.is_empty() { Ok(()) } else { Err(check.problems) }
}

struct Check {
    format: Format,
    problems: Vec<String>,
}

impl Check {
    fn require(&mut self, holds: bool, path: &str, rule: &str) {
        if !holds {
            self.problems.push(format!("{path}: {rule}"));
        }
    }

    fn definition(&mut self, definition: &Value) {
        let (function, schema) = match self.format {
            Format::OpenAi => {
                self.require(definition["type"] == "function", "type", "must be `function`");
                (&definition["function"], "parameters")
            }
            Format::Anthropic => (definition, "input_schema"),
            Format::Gemini => (definition, "parameters"),
            Format::Mcp => (definition, "inputSchema"),
        };
        let known: &[&str] = match self.format {
            Format::Mcp => &["name", "title", "description", "inputSchema", "outputSchema", "annotations"],
            _ => &["name", "description", schema],
        };
        self.known_keys(function, known);
        self.require(function["name"].as_str().is_some_and(is_function_name), "name", "must match `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`");
        self.description(&function["description"]);
        match &function[schema] {
            Value::Null if self.format == Format::Gemini => {}
            parameters => self.root(parameters, schema),
        }
        self.mcp_extras(definition);
    }

    fn known_keys(&mut self, value: &Value, known: &[&str]) {
        for key in value.as_object().into_iter().flat_map(Map::keys) {
            self.require(known.contains(&key.as_str()), key, "is not a field of a definition");
        }
    }

    fn description(&mut self, description: &Value) {
        let length = description.as_str().map_or(0, |text| text.chars().count());
        self.require(length > 0, "description", "must be text");
        self.require(self.format != Format::OpenAi || length <= 1024, "description", "must have at most 1024 characters");
    }

    fn mcp_extras(&mut self, definition: &Value) {
        if let Some(output) = definition.get("outputSchema") {
            self.require(output["type"] == "object", "outputSchema", "must have type `object`");
            self.json_schema(output, "outputSchema", 0);
        }
        for (hint, value) in definition.get("annotations").and_then(Value::as_object).into_iter().flatten() {
            let known = matches!(hint.as_str(), "readOnlyHint" | "destructiveHint" | "idempotentHint" | "openWorldHint");
            self.require(known && value.is_boolean(), hint, "must be a known hint that is true or false");
        }
    }

    fn root(&mut self, schema: &Value, path: &str) {
        self.require(schema["type"] == "object", path, "must have type `object`");
        self.require(schema["properties"].is_object(), path, "must have `properties`");
        for keyword in ["oneOf", "anyOf", "allOf", "enum", "const", "not"] {
            self.require(schema.get(keyword).is_none(), path, &format!("must not have `{keyword}` at the top level"));
        }
        match self.format {
            Format::Gemini => self.gemini(schema, path, 0),
            _ => self.json_schema(schema, path, 0),
        }
    }

    fn json_schema(&mut self, schema: &Value, path: &str, depth: usize) {
        if schema.is_boolean() {
            return;
        }
        let Some(map) = schema.as_object() else {
            return self.require(false, path, "must be a schema");
        };
        self.require(depth <= MAX_DEPTH, path, "must not be nested deeper than 10 schemas");
        let types = types(schema);
        self.require(types.iter().all(|name| TYPES.contains(name)), path, "must name types of JSON Schema");
        self.require(!types.contains(&"array") || map.contains_key("items"), path, "must have `items`, being an array");
        for (keyword, value) in map {
            let here = format!("{path}/{keyword}");
            self.require(fits_draft_2020_12(keyword, value), &here, "is not what JSON Schema 2020-12 allows");
            match keyword.as_str() {
                "properties" => self.named(value, &here, depth, Self::json_schema),
                "patternProperties" | "dependentSchemas" => {
                    for (name, nested) in value.as_object().into_iter().flatten() {
                        self.json_schema(nested, &format!("{here}/{name}"), depth + 1);
                    }
                }
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => self.listed(value, &here, depth, Self::json_schema),
                "items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains" | "propertyNames" => {
                    self.json_schema(value, &here, depth + 1);
                }
                _ => {}
            }
        }
    }

    fn named(&mut self, properties: &Value, path: &str, depth: usize, check: fn(&mut Self, &Value, &str, usize)) {
        for (name, nested) in properties.as_object().into_iter().flatten() {
            let here = format!("{path}/{name}");
            self.require(fits_key(self.format, name), &here, "has a name that the API refuses");
            check(self, nested, &here, depth + 1);
        }
    }

    fn listed(&mut self, schemas: &Value, path: &str, depth: usize, check: fn(&mut Self, &Value, &str, usize)) {
        for (index, nested) in schemas.as_array().into_iter().flatten().enumerate() {
            check(self, nested, &format!("{path}/{index}"), depth + 1);
        }
    }

    fn gemini(&mut self, schema: &Value, path: &str, depth: usize) {
        let Some(map) = schema.as_object() else {
            return self.require(false, path, "must be a schema");
        };
        self.require(depth <= MAX_DEPTH, path, "must not be nested deeper than 10 schemas");
        if let Some(branches) = map.get("anyOf") {
            self.require(map.len() == 1, path, "must have nothing beside `anyOf`");
            self.require(branches.as_array().is_some_and(|branches| branches.len() > 1), path, "must have alternatives");
            return self.listed(branches, &format!("{path}/anyOf"), depth, Self::gemini);
        }
        let kind = map.get("type").and_then(Value::as_str).unwrap_or_default();
        self.require(TYPES[..6].contains(&kind), path, "must have one type");
        for (keyword, value) in map {
            self.require(gemini_allows(kind, keyword, value), &format!("{path}/{keyword}"), &format!("is not allowed for type `{kind}`"));
        }
        if kind == "array" {
            self.gemini(&schema["items"], &format!("{path}/items"), depth + 1);
        }
        self.named(&schema["properties"], &format!("{path}/properties"), depth, Self::gemini);
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            self.require(schema["properties"].get(name).is_some(), path, &format!("must define `{name}`, being required"));
        }
    }
}

fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::Null => Vec::new(),
        Value::Array(types) => types.iter().map(|name| name.as_str().unwrap_or_default()).collect(),
        one => vec![one.as_str().unwrap_or_default()],
    }
}

fn fits_key(format: Format, key: &str) -> bool {
    let short = (1..=64).contains(&key.chars().count());
    match format {
        Format::OpenAi | Format::Mcp => true,
        Format::Anthropic => short && key.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)),
        Format::Gemini => {
            short && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !key.starts_with(|c: char| c.is_ascii_digit())
        }
    }
}

fn fits_draft_2020_12(keyword: &str, value: &Value) -> bool {
    match keyword {
        "$ref" | "$dynamicRef" | "$recursiveRef" | "$defs" | "definitions" | "components" | "nullable" => false,
        "type" => value.is_string() || value.as_array().is_some_and(|types| !types.is_empty() && distinct(types)),
        "properties" | "patternProperties" | "dependentSchemas" => value.is_object(),
        "allOf" | "anyOf" | "oneOf" | "prefixItems" | "enum" => value.as_array().is_some_and(|list| !list.is_empty()),
        "required" => value.as_array().is_some_and(|names| names.iter().all(Value::is_string) && distinct(names)),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => value.is_number(),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => is_count(value),
        "title" | "description" | "format" | "pattern" => value.is_string(),
        "uniqueItems" | "readOnly" | "writeOnly" | "deprecated" => value.is_boolean(),
        "examples" => value.is_array(),
        _ => true,
    }
}

fn gemini_allows(kind: &str, keyword: &str, value: &Value) -> bool {
    match (kind, keyword) {
        (_, "type" | "title" | "description") | ("string", "pattern") => value.is_string(),
        (_, "nullable") => value.is_boolean(),
        (_, "default" | "example") => true,
        ("string", "enum") => {
            value.as_array().is_some_and(|list| distinct(list) && list.iter().all(|v| v.as_str().is_some_and(|v| !v.is_empty())))
        }
        ("string", "format") => value == "date-time" || value == "enum",
        ("string", "minLength" | "maxLength") | ("array", "minItems" | "maxItems") | ("object", "minProperties" | "maxProperties") => {
            is_count(value)
        }
        ("integer", "format") => value == "int32" || value == "int64",
        ("number", "format") => value == "float" || value == "double",
        ("integer" | "number", "minimum" | "maximum") => value.is_number(),
        ("array", "items") => value.is_object(),
        ("object", "properties") => value.as_object().is_some_and(|properties| !properties.is_empty()),
        ("object", "required" | "propertyOrdering") => value.as_array().is_some_and(|names| !names.is_empty() && distinct(names)),
        _ => false,
    }
}

fn is_count(value: &Value) -> bool {
    value.is_u64()
}

fn distinct(values: &[Value]) -> bool {
    values.iter().enumerate().all(|(index, value)| !values[..index].contains(value))
}
