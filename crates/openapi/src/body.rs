//! The body of a request: an object becomes arguments of its own, anything else one argument.

use serde_json::{Map, Value, json};

use crate::document::{At, Bundle};
use crate::keywords::{object, types};
use crate::params::{Params, form_style};
use crate::schema::{Schemas, Side};
use crate::security::is_token;
use crate::text::brief;

const SIZE: usize = 32 << 10;
const MAX_FIELDS: usize = 300;

/// How a body is sent, as an action says it.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) encoding: Option<&'static str>,
    pub(crate) content_type: Option<String>,
    pub(crate) is_optional: bool,
}

/// Reads the body of an operation and adds its arguments.
pub(crate) fn read<'a>(bundle: &'a Bundle, schemas: &Schemas<'a>, operation: At<'a>, params: &mut Params) -> Result<Body, String> {
    let at = operation.field("requestBody");
    if at.value.is_null() {
        return Ok(Body::default());
    }
    let at = bundle.resolve(at).map_err(|why| format!("its body cannot be read: {why}"))?;
    let Some(content) = at.value["content"].as_object().filter(|content| !content.is_empty()) else { return Ok(Body::default()) };
    let (media, kind, encoding) = choose(content)?;
    let required = at.value["required"] == true;
    let media_at = at.inner(media);
    let schema = schemas.plain(media_at.field("schema"), Side::Sent, SIZE);
    match fields(&schema).filter(|_| encoding != "text") {
        Some(properties) => {
            let needed: Vec<&str> =
                schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
            for (name, property) in properties {
                let mut spec = object(json!({"in": "body"}));
                if needed.contains(&name.as_str()) && required {
                    spec.insert("required".to_owned(), true.into());
                }
                let style = (encoding == "form").then(|| form_style(&media["encoding"][name])).flatten();
                spec.extend(style.map(|style| ("style".to_owned(), style.into())));
                params.put(name, "body", spec, object(property.clone()));
            }
        }
        None if encoding == "form" && !types(&schema).contains(&"object") => return Err("its form has no fields".to_owned()),
        None => {
            let mut spec = object(json!({"in": "content"}));
            if required {
                spec.insert("required".to_owned(), true.into());
            }
            let mut schema = schema;
            if encoding == "text" {
                schema = object(json!({"type": "string"}));
            }
            if let Some(text) = at.value["description"].as_str().map(|text| brief(text, 300)).filter(|text| !text.is_empty()) {
                schema.entry("description").or_insert_with(|| text.into());
            }
            params.put("body", "request", spec, schema);
        }
    }
    let usual = matches!(kind, "application/json" | "application/x-www-form-urlencoded" | "*/*");
    Ok(Body {
        encoding: (encoding != "json").then_some(encoding),
        content_type: (!usual && is_media_type(kind)).then(|| kind.to_owned()),
        is_optional: !required,
    })
}

/// The kind of body that we can write, the plainest first.
fn choose(content: &Map<String, Value>) -> Result<(&Value, &str, &'static str), String> {
    let found = content.iter().filter_map(|(kind, media)| {
        let (rank, encoding) = way(kind)?;
        Some((rank, (media, kind.as_str(), encoding)))
    });
    if let Some((_, best)) = found.min_by_key(|(rank, _)| *rank) {
        return Ok(best);
    }
    let kinds: Vec<String> = content.keys().take(3).map(|kind| brief(kind, 60)).collect();
    Err(format!("a body of type `{}` cannot be written", kinds.join("`, `")))
}

/// How a body of some type is written, and how gladly.
fn way(kind: &str) -> Option<(u8, &'static str)> {
    match kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "application/json" => Some((0, "json")),
        kind if kind.contains("json") => Some((1, "json")),
        "application/x-www-form-urlencoded" => Some((2, "form")),
        "*/*" | "application/*" => Some((3, "json")),
        kind if kind.starts_with("text/") && !kind.contains("xml") => Some((4, "text")),
        _ => None,
    }
}

/// The properties of a body that is an object with known fields.
fn fields(schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let properties = schema.get("properties")?.as_object()?;
    let alternatives = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    // Alternatives that only ask for one field or another: the service says so itself when none is given.
    let only_required = alternatives.clone().all(|branch| {
        branch.as_object().is_some_and(|branch| {
            let known = |name: &String| properties.contains_key(name);
            branch.keys().all(|keyword| matches!(keyword.as_str(), "required" | "type" | "description" | "properties"))
                && branch.get("properties").and_then(Value::as_object).is_none_or(|inner| inner.keys().all(known))
        })
    });
    let open = schema.get("additionalProperties").is_some_and(|others| *others != Value::Bool(false));
    let whole = !only_required || open || schema.contains_key("allOf") || types(schema) != ["object"];
    (!whole && !properties.is_empty() && properties.len() <= MAX_FIELDS).then_some(properties)
}

/// `type/subtype`, with parameters that hold nothing odd.
pub(crate) fn is_media_type(text: &str) -> bool {
    let mut parts = text.split(';');
    let kind = parts.next().and_then(|kind| kind.trim().split_once('/'));
    text.len() <= 120
        && kind.is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
        && parts.all(|part| part.trim().split_once('=').is_some_and(|(name, value)| is_token(name) && is_token(value.trim_matches('"'))))
}
