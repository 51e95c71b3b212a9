//! Parameters: a JSON Schema each, with a few extra keys that say where the value goes.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{RequestLine, placeholders};

/// Keys of a parameter that are ours and not JSON Schema's.
const OURS: [&str; 8] = ["required", "in", "as", "style", "lookup", "slashes", "example", "schema"];

/// Where a value stands in the request.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ParamLocation {
    Path,
    Query,
    Header,
    Cookie,
    Body,
    /// It is the whole body.
    Content,
    /// Only where a fixed query value or header names it.
    #[serde(skip)]
    Named,
}

/// How a list or an object is written in a query string or a form.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// `a=1&a=2`, `a[x]=1`
    #[default]
    Repeat,
    /// `a=1,2`, `a=x,1`
    Comma,
    /// `a[]=1&a[]=2`
    Brackets,
    /// `a=1 2`
    Space,
    /// `a=1|2`
    Pipe,
    /// The fields of an object, each under its own name.
    Spread,
    /// As JSON.
    Json,
}

/// One parameter, read.
#[derive(Clone, Debug)]
pub struct Param {
    pub name: String,
    pub wire: String,
    pub place: ParamLocation,
    pub style: Style,
    pub required: bool,
    pub slashes: bool,
    pub lookup: Option<String>,
    pub default: Option<Box<Value>>,
    /// What only checks and schemas need; an operation lets go of it once it is compiled.
    pub about: Option<Box<ParamText>>,
}

/// The words and rules of a parameter.
#[derive(Clone, Debug)]
pub struct ParamText {
    pub schema: Map<String, Value>,
    pub example: Option<Value>,
}

#[derive(Deserialize)]
struct Extra {
    #[serde(default)]
    required: bool,
    #[serde(default, rename = "in")]
    place: Option<ParamLocation>,
    #[serde(default, rename = "as")]
    wire: Option<String>,
    #[serde(default)]
    style: Style,
    #[serde(default)]
    lookup: Option<String>,
    #[serde(default)]
    slashes: bool,
    #[serde(default)]
    example: Option<Value>,
    /// The whole schema, in place of keys beside ours. Its default is the service's own, and is not sent.
    #[serde(default)]
    schema: Option<Map<String, Value>>,
}

impl Param {
    /// Reads the parameters of a request. `fixed` are the texts that name parameters themselves.
    pub fn read_all(params: &Map<String, Value>, line: &RequestLine, fixed: &[&str]) -> Result<Vec<Self>, String> {
        params.iter().map(|(name, value)| Self::read(name, value, line, fixed)).collect()
    }

    fn read(name: &str, value: &Value, line: &RequestLine, fixed: &[&str]) -> Result<Self, String> {
        let Value::Object(keys) = value else { return Err(format!("parameter `{name}` is not a mapping")) };
        let own: Map<String, Value> =
            keys.iter().filter(|(key, _)| OURS.contains(&key.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect();
        let extra: Extra = serde_json::from_value(Value::Object(own)).map_err(|error| format!("parameter `{name}`: {error}"))?;
        let in_path = placeholders(&line.target).contains(&name);
        let place = extra.place.unwrap_or(match () {
            () if in_path => ParamLocation::Path,
            () if fixed.iter().any(|text| placeholders(text).contains(&name)) => ParamLocation::Named,
            () if line.is_bodiless() => ParamLocation::Query,
            () => ParamLocation::Body,
        });
        let default = keys.get("default").filter(|_| extra.schema.is_none()).cloned();
        let beside = || -> Map<String, Value> {
            keys.iter().filter(|(key, _)| !OURS.contains(&key.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect()
        };
        let mut schema = extra.schema.unwrap_or_else(beside);
        if let Some(example) = &extra.example {
            schema.insert("examples".to_owned(), json!([example]));
        }
        Ok(Self {
            name: name.to_owned(),
            wire: extra.wire.unwrap_or_else(|| name.to_owned()),
            place,
            style: extra.style,
            required: extra.required,
            slashes: extra.slashes,
            lookup: extra.lookup,
            default: default.map(Box::new),
            about: Some(Box::new(ParamText { example: extra.example, schema })),
        })
    }

    /// A value that fits the parameter, for trying a request.
    pub fn sample(&self) -> Value {
        self.about.as_ref().map_or(Value::Null, |about| about.example.clone().unwrap_or_else(|| sample(&about.schema)))
    }

    pub fn schema(&self) -> Map<String, Value> {
        self.about.as_ref().map(|about| about.schema.clone()).unwrap_or_default()
    }
}

fn sample(schema: &Map<String, Value>) -> Value {
    if let Some(value) = schema.get("default").or_else(|| schema.get("const")) {
        return value.clone();
    }
    if let Some(first) = schema.get("enum").or_else(|| schema.get("examples")).and_then(|values| values.get(0)) {
        return first.clone();
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        kind => kind.and_then(Value::as_str),
    };
    match kind {
        Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("number") => schema.get("minimum").cloned().unwrap_or(json!(1.5)),
        Some("boolean") => json!(true),
        Some("array") => schema.get("items").and_then(Value::as_object).map_or(json!(["sample"]), |items| json!([sample(items)])),
        Some("object") => {
            let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            let properties = schema.get("properties").and_then(Value::as_object);
            let fields = properties.into_iter().flatten().filter(|(name, _)| required.iter().any(|r| r == name.as_str()));
            Value::Object(fields.filter_map(|(name, field)| Some((name.clone(), sample(field.as_object()?)))).collect())
        }
        Some("null") => Value::Null,
        _ => match schema.get("format").and_then(Value::as_str) {
            Some("date-time") => json!("2026-01-02T03:04:05Z"),
            Some("date") => json!("2026-01-02"),
            Some("uri") => json!("https://example.com/"),
            Some("email") => json!("person@example.com"),
            Some("uuid") => json!("6f9619ff-8b86-4d01-b42d-00cf4fc964ff"),
            _ => json!("sample"),
        },
    }
}

/// The closed JSON Schema of a set of parameters.
pub fn input_schema(params: &[Param]) -> Value {
    let properties: Map<String, Value> = params.iter().map(|param| (param.name.clone(), Value::Object(param.schema()))).collect();
    let required: Vec<&str> = params.iter().filter(|param| param.required).map(|param| param.name.as_str()).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = json!(false);
    schema
}
