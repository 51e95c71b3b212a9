//! Parameters of an operation: where each goes, how it is written, and what it is called.

use operations::key_length;
use serde_json::{Map, Value, json};

use crate::document::{At, Bundle};
use crate::keywords::{object, types};
use crate::name::Arguments;
use crate::schema::{Schemas, Side};
use crate::security::{is_header, is_token};
use crate::text::brief;

const MAX_PARAMS: usize = 200;
const SIZE: usize = 4 << 10;

/// The arguments of an action, as its `params`.
#[derive(Debug, Default)]
pub(crate) struct Params {
    pub(crate) list: Map<String, Value>,
    pub(crate) names: Arguments,
    /// Names in the path, and the arguments they are filled from.
    paths: Vec<(String, String)>,
}

impl Params {
    /// Reads the parameters of an operation, and its path with the arguments' names in it; parameters of the path item count too unless
    /// the operation has its own.
    pub(crate) fn read<'a>(
        bundle: &'a Bundle,
        schemas: &Schemas<'a>,
        credentials: &[(String, String)],
        path: &str,
        path_item: At<'a>,
        operation: At<'a>,
    ) -> Result<(Self, String), String> {
        let mut found: Vec<(&str, &str, At<'a>)> = Vec::new();
        for owner in [path_item, operation] {
            for parameter in owner.value["parameters"].as_array().into_iter().flatten() {
                let at = bundle.resolve(owner.inner(parameter)).map_err(|why| format!("a parameter cannot be read: {why}"))?;
                let (name, place) = (at.value["name"].as_str(), at.value["in"].as_str());
                let (Some(name), Some(place)) = (name, place) else { return Err("a parameter has no `name` or `in`".to_owned()) };
                match found.iter_mut().find(|(known, at, _)| (*known, *at) == (name, place)) {
                    Some(known) => known.2 = at,
                    None => found.push((name, place, at)),
                }
                if found.len() > MAX_PARAMS {
                    return Err(format!("it has more than {MAX_PARAMS} parameters"));
                }
            }
        }
        // Those in the path come first, so that they keep their own names.
        let (in_path, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, place, _)| *place == "path");
        let mut params = Self::default();
        for (name, place, at) in in_path {
            params.add(schemas, name, place, at)?;
        }
        let target = params.target(path)?;
        for (name, place, at) in others {
            if credentials.iter().any(|(at, key)| at == place && *key == name.to_lowercase()) {
                continue;
            }
            params.add(schemas, name, place, at)?;
        }
        Ok((params, target))
    }

    fn add<'a>(&mut self, schemas: &Schemas<'a>, wire: &str, place: &str, at: At<'a>) -> Result<(), String> {
        let shown = brief(wire, 60);
        let required = place == "path" || at.value["required"] == true;
        let fits = match place {
            "header" if ["accept", "authorization", "content-type"].contains(&wire.to_ascii_lowercase().as_str()) => return Ok(()),
            "header" => is_header(wire),
            "cookie" => is_token(wire),
            "path" | "query" => !wire.is_empty(),
            _ => return Err(format!("parameter `{shown}` is in `{}`", brief(place, 20))),
        };
        if !fits {
            return if required { Err(format!("parameter `{shown}` cannot be sent in a {place}")) } else { Ok(()) };
        }
        let (schema_at, as_json) = match at.value.get("content").and_then(Value::as_object).and_then(|content| content.iter().next()) {
            Some((_, media)) => (at.inner(media).field("schema"), true),
            None => (at.field("schema"), false),
        };
        let mut schema = schemas.plain(schema_at, Side::Sent, SIZE);
        if let Some(text) = at.value["description"].as_str().map(|text| brief(text, 300)).filter(|text| !text.is_empty()) {
            schema.insert("description".to_owned(), text.into());
        }
        let style =
            if as_json { Some("json") } else { style(place, at.value, &schema).map_err(|why| format!("parameter `{shown}`: {why}"))? };
        let mut spec = object(json!({"in": place}));
        if required {
            spec.insert("required".to_owned(), true.into());
        }
        spec.extend(style.map(|style| ("style".to_owned(), style.into())));
        if place == "path" && (at.value["x-multi-segment"] == true || at.value["allowReserved"] == true) {
            spec.insert("slashes".to_owned(), true.into());
        }
        let name = self.put(wire, place, spec, schema);
        if place == "path" {
            self.paths.push((wire.to_owned(), name));
        }
        Ok(())
    }

    /// Adds an argument under a name of its own.
    pub(crate) fn put(&mut self, wire: &str, place: &str, mut spec: Map<String, Value>, schema: Map<String, Value>) -> String {
        let name = self.names.take(wire, place);
        if name != wire {
            spec.insert("as".to_owned(), wire.into());
        }
        spec.insert("schema".to_owned(), schema.into());
        self.list.insert(name.clone(), spec.into());
        name
    }

    /// The argument that is sent as `Idempotency-Key`, if one of our keys fits it. Nobody has to give it then.
    pub(crate) fn fill_key(&mut self) -> Option<String> {
        let (name, spec) = self.list.iter_mut().find(|(name, spec)| {
            let wire = spec["as"].as_str().unwrap_or(name);
            spec["in"] == "header" && wire.eq_ignore_ascii_case("idempotency-key")
        })?;
        key_length(spec["schema"].as_object().cloned().unwrap_or_default())?;
        spec.as_object_mut()?.shift_remove("required");
        Some(name.clone())
    }

    /// The path with the arguments' names in it; a name that no parameter describes becomes one. Braces are only ever ours.
    fn target(&mut self, path: &str) -> Result<String, String> {
        if !path.starts_with('/') || path.contains(char::is_control) {
            return Err("its path does not begin with `/`".to_owned());
        }
        let path = path.split('#').next().unwrap_or_default().replace(' ', "%20");
        let mut target = String::with_capacity(path.len());
        let mut used = Vec::new();
        let mut rest = path.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let (wire, after) = after.split_once('}').ok_or("its path has braces that do not match")?;
            if wire.contains('{') || before.contains('}') {
                return Err("its path has braces that do not match".to_owned());
            }
            target.push_str(before);
            let known = self.paths.iter().find(|(known, _)| known == wire).map(|(_, name)| name.clone());
            let name = known.unwrap_or_else(|| {
                let name = self.put(wire, "path", object(json!({"in": "path", "required": true})), object(json!({"type": "string"})));
                self.paths.push((wire.to_owned(), name.clone()));
                name
            });
            target.push_str(&format!("{{{name}}}"));
            used.push(name);
            rest = after;
        }
        if rest.contains('}') || target.contains(char::is_whitespace) {
            return Err("its path has braces that do not match".to_owned());
        }
        target.push_str(rest);
        for (_, name) in &self.paths {
            if !used.contains(name) {
                self.list.shift_remove(name);
            }
        }
        Ok(target)
    }
}

/// How lists and objects are written; nothing where the usual way is meant.
fn style(place: &str, parameter: &Value, schema: &Map<String, Value>) -> Result<Option<&'static str>, String> {
    let named = parameter["style"].as_str();
    let explode = parameter["explode"].as_bool();
    let kinds = types(schema);
    let structured = kinds.is_empty() || kinds.iter().any(|kind| matches!(*kind, "object" | "array"));
    match (place, named) {
        ("path" | "header", None | Some("simple")) | ("cookie", None | Some("form")) => Ok(None),
        ("path", Some(other)) if structured => Err(format!("paths of style `{}` cannot be written", brief(other, 20))),
        ("path", Some("label" | "matrix")) => Err("paths of style `label` or `matrix` cannot be written".to_owned()),
        ("query", None | Some("form")) if explode == Some(false) => Ok(Some("comma")),
        ("query", None | Some("form")) => Ok((kinds.is_empty() || kinds.contains(&"object")).then_some("spread")),
        ("query", Some("spaceDelimited")) if explode != Some(true) => Ok(Some("space")),
        ("query", Some("pipeDelimited")) if explode != Some(true) => Ok(Some("pipe")),
        _ => Ok(None),
    }
}

/// How a field of a form is written.
pub(crate) fn form_style(encoding: &Value) -> Option<&'static str> {
    match (encoding["style"].as_str(), encoding["explode"].as_bool(), encoding["contentType"].as_str()) {
        (_, _, Some(kind)) if kind.contains("json") => Some("json"),
        (Some("spaceDelimited"), Some(false) | None, _) => Some("space"),
        (Some("pipeDelimited"), Some(false) | None, _) => Some("pipe"),
        (None | Some("form"), Some(false), _) => Some("comma"),
        _ => None,
    }
}
