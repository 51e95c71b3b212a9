//! From an OpenAPI document to the definition of an integration. Pure: what has to be fetched is here already.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use catalog::auth::AuthScheme;
use imports::{Plan, Skipped};
use kernel::schema::Schema;
use operations::{ActionSpec, input_schema};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

use crate::body::{self, is_media_type};
use crate::document::{At, Bundle};
use crate::keywords::object;
use crate::name::{Named, keys, name};
use crate::params::Params;
use crate::schema::{Schemas, Side};
use crate::security::SecurityReader;
use crate::server::{Allowed, choose, usable};
use crate::text::brief;

const METHODS: [&str; 6] = ["get", "head", "post", "put", "patch", "delete"];
const OTHER_METHODS: [&str; 3] = ["options", "trace", "query"];
const MAX_OPERATIONS: usize = 3000;
const MAX_DESCRIPTION: usize = 700;
const OUTPUT_SIZE: usize = 4 << 10;

/// What a document is converted with.
pub(crate) struct Conversion<'a> {
    pub(crate) bundle: &'a Bundle,
    pub(crate) settings: &'a Settings,
    /// OpenID Connect discovery documents by their address.
    pub(crate) discovered: &'a BTreeMap<String, Value>,
    pub(crate) allowed: Allowed<'a>,
    pub(crate) deadline: Instant,
}

/// What whoever imports decides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) server_url: Option<String>,
    /// A bundle of one document, whose `schemes` stand in place of the document's.
    pub(crate) security_schemes: Option<Value>,
}

/// What all actions of a document share.
struct OperationParts<'a> {
    schemas: Schemas<'a>,
    /// Where keys stand in a request.
    credentials: Vec<(String, String)>,
    server: Url,
}

/// One operation of the document.
struct Found<'a> {
    method: &'static str,
    path: &'a str,
    path_item: At<'a>,
    operation: At<'a>,
}

impl Found<'_> {
    fn line(&self) -> String {
        format!("{} {}", self.method.to_uppercase(), brief(self.path, 200))
    }
}

impl<'a> Conversion<'a> {
    pub(crate) fn run(&self) -> Result<Plan, String> {
        let root = self.bundle.root();
        let title = root.value["info"]["title"].as_str().map(|title| brief(title, 120)).filter(|title| !title.is_empty());
        let title = title.unwrap_or_else(|| "API".to_owned());
        let server = self.server()?;
        let mut skipped = Vec::new();
        let found = self.operations(&mut skipped)?;
        let own = self.settings.security_schemes.clone().map(|schemes| Bundle::new(None, schemes));
        let own = own.as_ref();
        let reading = SecurityReader {
            bundle: own.unwrap_or(self.bundle),
            own: own.map(Bundle::root),
            discovered: self.discovered,
            allowed: self.allowed,
        };
        let security = reading.read(&requirements(root.value, &found));
        let parts = OperationParts { schemas: Schemas::new(self.bundle), credentials: reading.places(), server };
        let mut origins = security.endpoints;
        origins.insert(parts.server.origin().ascii_serialization());
        let named: Vec<Named<'_>> = found
            .iter()
            .map(|found| Named { method: found.method, path: found.path, id: found.operation.value["operationId"].as_str() })
            .collect();
        let mut actions = Vec::with_capacity(found.len());
        for (found, key) in found.iter().zip(keys(&named)) {
            if Instant::now() > self.deadline {
                return Err("the document takes too long to read; import a part of it".to_owned());
            }
            match self.action(&parts, found, key, &mut origins) {
                Ok(action) => actions.push(action),
                Err(why) => skipped.push(Skipped { what: found.line(), why }),
            }
        }
        if actions.is_empty() {
            let why = skipped.first().map(|first| format!("; {}: {}", first.what, first.why)).unwrap_or_default();
            return Err(format!("nothing in the document can be called{why}"));
        }
        let description = root.value["info"]["description"].as_str().map(|text| brief(text, 300)).filter(|text| !text.is_empty());
        let mut definition = object(json!({
            "description": description.unwrap_or_else(|| format!("{title}, imported from its OpenAPI document.")),
            "base_url": parts.server.as_str(),
            "auth": security.auth,
        }));
        definition.extend(self.home().map(|url| ("url".to_owned(), url.into())));
        definition.insert("actions".to_owned(), actions.into());
        check_auth(&definition)?;
        Ok(Plan { name: title, definition, origins, skipped, warnings: security.warnings })
    }

    fn server(&self) -> Result<Url, String> {
        let url = match &self.settings.server_url {
            Some(own) => usable(own, None, self.allowed).map_err(|why| format!("`server_url`: {why}")),
            None => choose(&self.bundle.root().value["servers"], self.bundle.url(), self.allowed)
                .map_err(|why| format!("no server of the document can be used ({why}); give `server_url`")),
        };
        url.map_err(|why| brief(&why, 600))
    }

    fn home(&self) -> Option<String> {
        let root = self.bundle.root().value;
        let url = root["externalDocs"]["url"].as_str().or_else(|| root["info"]["contact"]["url"].as_str())?;
        let url: Url = url.parse().ok()?;
        (url.scheme() == "https" && url.as_str().len() <= 300).then(|| url.into())
    }

    fn operations(&self, skipped: &mut Vec<Skipped>) -> Result<Vec<Found<'a>>, String> {
        let paths_at = self.bundle.root().field("paths");
        let paths = paths_at.value.as_object().ok_or("the document has no `paths`")?;
        let mut found = Vec::new();
        for (path, item) in paths {
            if path.starts_with("x-") {
                continue;
            }
            let path_item = match self.bundle.resolve(paths_at.inner(item)) {
                Ok(path_item) => path_item,
                Err(why) => {
                    skipped.push(Skipped { what: brief(path, 200), why });
                    continue;
                }
            };
            for (method, operation) in path_item.value.as_object().into_iter().flatten() {
                let line = || format!("{} {}", method.to_uppercase(), brief(path, 200));
                if OTHER_METHODS.contains(&method.as_str()) {
                    skipped.push(Skipped { what: line(), why: "the method is not one that actions have".to_owned() });
                }
                let Some(method) = METHODS.into_iter().find(|known| known == method) else { continue };
                if !operation.is_object() {
                    skipped.push(Skipped { what: line(), why: "it is not described".to_owned() });
                } else if found.len() >= MAX_OPERATIONS {
                    skipped.push(Skipped { what: line(), why: format!("there are more than {MAX_OPERATIONS} operations") });
                } else {
                    found.push(Found { method, path, path_item, operation: path_item.inner(operation) });
                }
            }
        }
        Ok(found)
    }

    fn action(&self, parts: &OperationParts<'a>, found: &Found<'a>, key: String, origins: &mut BTreeSet<String>) -> Result<Value, String> {
        let schemas = &parts.schemas;
        let operation = found.operation;
        let (mut params, target) = Params::read(self.bundle, schemas, &parts.credentials, found.path, found.path_item, operation)?;
        let body = body::read(self.bundle, schemas, operation, &mut params)?;
        let idempotency = params.fill_key();
        let elsewhere = self.elsewhere(found, &parts.server)?;
        let (accept, output) = self.output(schemas, operation);
        let mut headers = Map::new();
        headers.extend(accept.map(|kind| ("Accept".to_owned(), kind.into())));
        headers.extend(body.content_type.map(|kind| ("Content-Type".to_owned(), kind.into())));
        let summary = operation.value["summary"].as_str().or_else(|| found.path_item.value["summary"].as_str());
        let mut action = object(json!({
            "name": name(summary, &key),
            "key": key,
            "description": describe(summary, operation.value["description"].as_str(), found),
            "use_cases": [],
            "request": format!("{} {}{target}", found.method.to_uppercase(), elsewhere.as_deref().unwrap_or_default()),
            "params": params.list,
        }));
        let mut put = |name: &str, value: Option<Value>| action.extend(value.map(|value| (name.to_owned(), value)));
        put("headers", (!headers.is_empty()).then(|| headers.into()));
        put("encoding", body.encoding.map(Value::from));
        put("optional_body", body.is_optional.then(|| true.into()));
        put("output_schema", output.map(Value::Object));
        put("idempotency", idempotency.map(|param| json!({"param": param})));
        put("scopes", scopes(&self.bundle.root().value["security"], operation.value));
        put("pitfalls", (operation.value["deprecated"] == true).then(|| json!(["The service marks this operation as deprecated."])));
        let action = Value::Object(action);
        let spec = ActionSpec::deserialize(&action).map_err(|error| error.to_string())?;
        let input = input_schema(spec.operation(&BTreeMap::new())?.params());
        Schema::compile(&input).map_err(|error| format!("its schema cannot be used: {}", brief(&error.to_string(), 200)))?;
        if let Some(elsewhere) = elsewhere.and_then(|url| url.parse::<Url>().ok()) {
            origins.insert(elsewhere.origin().ascii_serialization());
        }
        Ok(action)
    }

    /// The server of an operation that has one of its own.
    fn elsewhere(&self, found: &Found<'_>, server: &Url) -> Result<Option<String>, String> {
        let own =
            [found.operation.value, found.path_item.value].into_iter().map(|owner| &owner["servers"]).find(|servers| !servers.is_null());
        let Some(own) = own.filter(|_| self.settings.server_url.is_none()) else { return Ok(None) };
        let url = choose(own, self.bundle.url(), self.allowed).map_err(|why| format!("its server cannot be used: {why}"))?;
        if url == *server {
            return Ok(None);
        }
        if url.scheme() != "https" {
            return Err("its own server is not an `https` address".to_owned());
        }
        Ok(Some(url.as_str().trim_end_matches('/').to_owned()))
    }

    /// What the service answers with: the kind of JSON, and its schema.
    fn output(&self, schemas: &Schemas<'a>, operation: At<'a>) -> (Option<String>, Option<Map<String, Value>>) {
        let responses_at = operation.field("responses");
        let Some(responses) = responses_at.value.as_object() else { return (None, None) };
        let good = responses.iter().filter(|(status, _)| status.starts_with('2')).filter_map(|(_, response)| {
            let response = self.bundle.resolve(responses_at.inner(response)).ok()?;
            let (kind, media) = response.value["content"].as_object()?.iter().find(|(kind, _)| kind.contains("json"))?;
            Some((kind, response.inner(media)))
        });
        let Some((kind, media)) = good.into_iter().next() else { return (None, None) };
        let accept = is_media_type(kind).then(|| kind.clone());
        let schema = media.field("schema");
        if schema.value.is_null() {
            return (accept, None);
        }
        let plain = schemas.plain(schema, Side::Received, OUTPUT_SIZE);
        (accept, (!plain.is_empty()).then_some(plain))
    }
}

/// What asks for credentials: the document, then its operations.
fn requirements<'v>(root: &'v Value, found: &[Found<'v>]) -> Vec<&'v Value> {
    let own = found.iter().map(|found| &found.operation.value["security"]);
    std::iter::once(&root["security"]).chain(own).filter(|list| list.is_array()).collect()
}

/// The OAuth scopes of an operation.
fn scopes(usual: &Value, operation: &Value) -> Option<Value> {
    let security = operation.get("security").unwrap_or(usual);
    let mut scopes: Vec<&str> = Vec::new();
    for scope in security.as_array()?.iter().filter_map(Value::as_object).flat_map(Map::values).filter_map(Value::as_array).flatten() {
        let scope = scope.as_str().filter(|scope| !scope.trim().is_empty() && scope.len() <= 200)?;
        if !scopes.contains(&scope) && scopes.len() < 50 {
            scopes.push(scope);
        }
    }
    (!scopes.is_empty()).then(|| json!(scopes))
}

fn describe(summary: Option<&str>, description: Option<&str>, found: &Found<'_>) -> String {
    let summary = summary.map(|text| brief(text, 200)).unwrap_or_default();
    let description = description.map(|text| brief(text, MAX_DESCRIPTION)).unwrap_or_default();
    let both = match (summary.as_str(), description.as_str()) {
        ("", "") => return found.line(),
        ("", text) | (text, "") => text.to_owned(),
        (summary, text) if text.to_lowercase().starts_with(&summary.to_lowercase()) => text.to_owned(),
        (summary, text) if summary.ends_with(['.', '!', '?']) => format!("{summary} {text}"),
        (summary, text) => format!("{summary}. {text}"),
    };
    brief(&both, MAX_DESCRIPTION)
}

/// What is stored must be readable again.
fn check_auth(definition: &Map<String, Value>) -> Result<(), String> {
    let schemes: Result<Vec<AuthScheme>, _> = serde_json::from_value(definition["auth"].clone());
    schemes.map(|_| ()).map_err(|error| format!("the security schemes cannot be used: {error}"))
}
