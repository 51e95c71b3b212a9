//! An OpenAPI document with the documents it refers to, read within limits.

use std::collections::HashMap;

use kernel::json::{MAX_DEPTH, depth_exceeds};
use percent_encoding::percent_decode_str;
use serde_json::Value;
use url::Url;

/// How many references may lead to one another before they are taken for a circle.
const MAX_HOPS: usize = 32;
const MAX_NODES: usize = 3_000_000;
const STACK: usize = 32 << 20;

/// Reads JSON or YAML. Nothing in it may be nested too deeply or stand for much more than it is.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('{') {
        return fits(serde_json::from_str(text).map_err(|error| format!("the document is not JSON: {error}"))?);
    }
    // The YAML reader takes much of a stack for each level, and a stack that overflows ends the process.
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || yaml(text));
        let read = reader.map_err(|error| error.to_string())?.join();
        read.unwrap_or_else(|_| Err("the document cannot be read".to_owned()))
    })
    .and_then(fits)
}

fn yaml(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_events: MAX_NODES, max_nodes: MAX_NODES, max_depth: MAX_DEPTH, max_documents: 1 },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_NODES / 10, max_replay_stack_depth: 16 },
        strict_booleans: true,
    };
    let read: Result<Value, _> = serde_saphyr::from_str_with_options(text, options);
    read.map_err(|error| {
        let error = error.to_string();
        format!("the document is not YAML: {}", error.lines().next().unwrap_or_default().chars().take(300).collect::<String>())
    })
}

/// Refuses what is nested too deeply.
pub(crate) fn fits(value: Value) -> Result<Value, String> {
    if depth_exceeds(&value, MAX_DEPTH) {
        return Err(format!("the document is nested more than {MAX_DEPTH} deep"));
    }
    Ok(value)
}

/// Refuses what is not OpenAPI 3.
pub(crate) fn check_version(document: &Value) -> Result<(), String> {
    match document["openapi"].as_str() {
        Some(version) if version.starts_with("3.0") || version.starts_with("3.1") => Ok(()),
        Some(version) => Err(format!("OpenAPI `{}` is not known here; use 3.0 or 3.1", version.chars().take(20).collect::<String>())),
        None if document.get("swagger").is_some() => Err("this is Swagger 2.0; convert it to OpenAPI 3.0 or 3.1 first".to_owned()),
        None => Err("this is not an OpenAPI document: it has no `openapi`".to_owned()),
    }
}

/// The documents of one import: the first is the one that was asked for.
#[derive(Debug)]
pub(crate) struct Bundle {
    documents: Vec<(Option<Url>, Value)>,
    places: HashMap<String, usize>,
}

/// A place in one of the documents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    document: usize,
    pub(crate) value: &'a Value,
}

impl<'a> At<'a> {
    /// Something inside of it.
    pub(crate) fn inner(self, value: &'a Value) -> Self {
        Self { value, ..self }
    }

    /// Its field, or null.
    pub(crate) fn field(self, name: &str) -> Self {
        Self { value: &self.value[name], ..self }
    }

    /// The same for as long as the documents live: what references lead to is one place, however it is named.
    pub(crate) fn place(self) -> *const Value {
        std::ptr::from_ref(self.value)
    }
}

impl Bundle {
    pub(crate) fn new(url: Option<Url>, document: Value) -> Self {
        let mut bundle = Self { documents: Vec::new(), places: HashMap::new() };
        bundle.add(url, document);
        bundle
    }

    pub(crate) fn add(&mut self, url: Option<Url>, document: Value) {
        if let Some(url) = &url {
            self.places.insert(without_fragment(url), self.documents.len());
        }
        self.documents.push((url, document));
    }

    /// Another address that leads to the document added last, as after a redirect.
    pub(crate) fn also(&mut self, url: &Url) {
        self.places.insert(without_fragment(url), self.documents.len() - 1);
    }

    pub(crate) fn holds(&self, url: &Url) -> bool {
        self.places.contains_key(&without_fragment(url))
    }

    pub(crate) fn root(&self) -> At<'_> {
        At { document: 0, value: &self.documents[0].1 }
    }

    /// Where the document is from.
    pub(crate) fn url(&self) -> Option<&Url> {
        self.documents[0].0.as_ref()
    }

    /// What is meant: references are followed until there is something.
    pub(crate) fn resolve<'a>(&'a self, mut at: At<'a>) -> Result<At<'a>, String> {
        for _ in 0..MAX_HOPS {
            let Some(reference) = at.value.get("$ref") else { return Ok(at) };
            let Some(reference) = reference.as_str() else { return Err("a `$ref` is not text".to_owned()) };
            at = self.follow(at.document, reference)?;
        }
        Err("references lead in a circle".to_owned())
    }

    fn follow(&self, document: usize, reference: &str) -> Result<At<'_>, String> {
        let shown = || reference.chars().take(200).collect::<String>();
        let (file, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let document = if file.is_empty() {
            document
        } else {
            let url = join(self.documents[document].0.as_ref(), file).map_err(|why| format!("`{}` {why}", shown()))?;
            *self.places.get(&without_fragment(&url)).ok_or_else(|| format!("`{}` could not be fetched", shown()))?
        };
        let pointer = percent_decode_str(fragment).decode_utf8_lossy();
        let found = self.documents[document].1.pointer(&pointer);
        found.map(|value| At { document, value }).ok_or_else(|| format!("`{}` leads nowhere", shown()))
    }

    /// The addresses of other documents that the last document refers to.
    pub(crate) fn foreign(&self) -> Vec<Result<Url, String>> {
        let (base, document) = &self.documents[self.documents.len() - 1];
        let mut files = Vec::new();
        collect(document, &mut files);
        files.sort_unstable();
        files.dedup();
        let join = |file: &&str| join(base.as_ref(), file).map_err(|why| format!("`{}` {why}", file.chars().take(200).collect::<String>()));
        files.iter().map(join).collect()
    }
}

fn collect<'a>(value: &'a Value, files: &mut Vec<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, files)),
        Value::Object(fields) => {
            if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                let file = reference.split('#').next().unwrap_or_default();
                files.extend((!file.is_empty()).then_some(file));
            }
            fields.values().for_each(|field| collect(field, files));
        }
        _ => {}
    }
}

fn join(base: Option<&Url>, file: &str) -> Result<Url, &'static str> {
    let url = match base {
        Some(base) => base.join(file),
        None => file.parse(),
    };
    match url {
        Ok(url) if matches!(url.scheme(), "https" | "http") => Ok(url),
        Ok(_) => Err("is not an `https` address"),
        Err(_) if base.is_none() => Err("is relative, and the document came without an address"),
        Err(_) => Err("is not an address"),
    }
}

fn without_fragment(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_followed_and_circles_end() {
        let bundle =
            Bundle::new(None, json!({"a": {"$ref": "#/b~1c/d%20e"}, "b/c": {"d e": 1}, "x": {"$ref": "#/y"}, "y": {"$ref": "#/x"}}));
        let at = |name: &str| bundle.resolve(bundle.root().field(name)).map(|found| found.value.clone());
        assert_eq!(at("a"), Ok(json!(1)));
        assert_eq!(at("x"), Err("references lead in a circle".to_owned()));
        for bad in ["#/nowhere", "other.yaml#/a", "file:///etc/passwd", "https://example.com/a.json", "#anchor"] {
            let root = json!({"a": {"$ref": bad}});
            let bundle = Bundle::new(None, root);
            assert!(bundle.resolve(bundle.root().field("a")).is_err(), "{bad}");
        }
    }

    #[test]
    fn other_documents_are_found_by_their_address() {
        let url: Url = "https://example.com/api/openapi.yaml".parse().unwrap();
        let mut bundle = Bundle::new(Some(url), json!({"a": {"$ref": "../schemas/pet.json#/Pet"}, "b": [{"$ref": "file:///x"}]}));
        let foreign = bundle.foreign();
        assert_eq!(foreign.iter().flatten().map(Url::as_str).collect::<Vec<_>>(), ["https://example.com/schemas/pet.json"]);
        assert_eq!(foreign.iter().filter(|found| found.is_err()).count(), 1);
        bundle.add("https://example.com/schemas/pet.json".parse().ok(), json!({"Pet": {"$ref": "#/Dog"}, "Dog": {"type": "object"}}));
        assert_eq!(bundle.resolve(bundle.root().field("a")).unwrap().value, &json!({"type": "object"}));
    }

    #[test]
    fn bombs_are_refused() {
        let mut yaml = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (name, last) in ('b'..='i').zip('a'..) {
            yaml += &format!("{name}: &{name} [{}]\n", vec![format!("*{last}"); 10].join(", "));
        }
        assert!(parse(&yaml).is_err());
        assert!(parse(&("[".repeat(200_000))).is_err());
        assert!(parse(&("{\"a\":".repeat(200) + "1" + &"}".repeat(200))).is_err());
        assert!(parse(&(0..150).map(|depth| " ".repeat(depth) + "a:\n").collect::<String>()).is_err());
        assert_eq!(parse("openapi: 3.1.0\nx: {200: no}").unwrap(), json!({"openapi": "3.1.0", "x": {"200": "no"}}));
    }
}
