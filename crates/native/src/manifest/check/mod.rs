//! The rules that every manifest keeps, and the dry run that builds each request from an example.

mod events;

use std::collections::BTreeSet;
use std::fmt;

use catalog::auth::{AuthScheme, Fields};
use kernel::schema::Schema;
use operations::{ActionSpec, Idempotency, KeyLocation, Operation, ParamLocation, RequestParts, input_schema, output_schema, placeholders};
use serde_json::{Map, Value};

use super::Manifest;

const CATEGORIES: [&str; 22] = [
    "ai",
    "analytics",
    "calendar",
    "commerce",
    "communication",
    "crm",
    "data",
    "design",
    "developer-tools",
    "email",
    "files",
    "finance",
    "forms",
    "hr",
    "infrastructure",
    "knowledge",
    "marketing",
    "monitoring",
    "project-management",
    "social",
    "support",
    "weather",
];

/// JSON Schema keywords that parameters use; anything else is most likely a typing mistake.
const KEYWORDS: [&str; 28] = [
    "type",
    "description",
    "enum",
    "items",
    "properties",
    "default",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "pattern",
    "additionalProperties",
    "anyOf",
    "oneOf",
    "allOf",
    "const",
    "title",
    "examples",
    "minProperties",
    "maxProperties",
    "deprecated",
];

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about: `actions.CREATE_AN_ISSUE`, `auth`, …
    pub place: String,
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Checks a manifest and builds each of its requests once.
pub fn check(manifest: &Manifest) -> Vec<Finding> {
    let mut findings = Findings { list: Vec::new(), place: String::new() };
    findings.at("manifest", |out| head(manifest, out));
    findings.at("auth", |out| auth(manifest, out));
    let mut seen = Seen::default();
    for action in &manifest.actions {
        findings.at(&format!("actions.{}", action.key), |out| check_action(manifest, action, &mut seen, out));
    }
    findings.at("webhooks", |out| events::webhooks(manifest, out));
    let mut seen = Seen::default();
    for event in &manifest.events {
        findings.at(&format!("events.{}", event.key), |out| events::event(manifest, event, &mut seen, out));
    }
    findings.list
}

struct Findings {
    list: Vec<Finding>,
    place: String,
}

impl Findings {
    fn at(&mut self, place: &str, inner: impl FnOnce(&mut Self)) {
        place.clone_into(&mut self.place);
        inner(self);
    }

    fn push(&mut self, message: impl Into<String>) {
        self.list.push(Finding { place: self.place.clone(), message: message.into() });
    }

    fn require(&mut self, holds: bool, message: impl FnOnce() -> String) {
        if !holds {
            self.push(message());
        }
    }
}

/// What no two entries of a file may share.
#[derive(Default)]
struct Seen {
    keys: BTreeSet<String>,
    names: BTreeSet<String>,
    descriptions: BTreeSet<String>,
    use_cases: BTreeSet<String>,
    requests: BTreeSet<String>,
}

fn head(manifest: &Manifest, out: &mut Findings) {
    let key_ok = manifest.key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && manifest.key.starts_with(|first: char| first.is_ascii_lowercase());
    out.require(key_ok, || format!("key `{}` may hold only lower-case letters, digits and hyphens", manifest.key));
    out.require(!manifest.name.trim().is_empty(), || "name is empty".to_owned());
    sentence(&manifest.description, out);
    out.require(!manifest.categories.is_empty(), || "categories are missing".to_owned());
    for category in &manifest.categories {
        out.require(CATEGORIES.contains(&category.as_str()), || format!("unknown category `{category}`"));
    }
    for address in [&manifest.url, &manifest.docs, &manifest.logo].into_iter().flatten() {
        out.require(is_https(address), || format!("`{address}` is not an https address"));
    }
    let base_ok = is_https(&manifest.base_url) || manifest.base_url.starts_with("{connection.");
    out.require(base_ok, || format!("base_url `{}` is not an https address", manifest.base_url));
    out.require(!manifest.actions.is_empty() || !manifest.events.is_empty(), || "there are neither actions nor events".to_owned());
    if let Some(account) = &manifest.account {
        let parts = RequestParts { request: &account.request, body: account.body.as_ref(), ..RequestParts::default() };
        dry_run(manifest, Operation::compile(&parts), &Map::new(), "account", out);
        for pointer in [&account.id, &account.label].into_iter().flatten() {
            require_pointer(pointer, out);
        }
    }
    if let Some(failure) = &manifest.failure {
        for pointer in [Some(&failure.when), failure.message.as_ref()].into_iter().flatten() {
            require_pointer(pointer, out);
        }
    }
    if let Some(Idempotency::Param(name)) = &manifest.idempotency {
        out.push(format!("idempotency: `{name}` is a parameter, which only an action has"));
    }
    if let Some(limit) = manifest.rate_limit {
        out.require(limit.requests > 0 && limit.seconds > 0, || "rate_limit must be positive".to_owned());
    }
}

fn auth(manifest: &Manifest, out: &mut Findings) {
    out.require(!manifest.auth.is_empty(), || "at least one scheme is needed".to_owned());
    let mut names = BTreeSet::new();
    for scheme in &manifest.auth {
        out.require(names.insert(scheme.name()), || format!("scheme `{}` appears twice", scheme.name()));
        let urls: Vec<&String> = match scheme {
            AuthScheme::OAuth2(oauth) => {
                [Some(&oauth.authorize_url), Some(&oauth.token_url), oauth.refresh_url.as_ref(), oauth.revoke_url.as_ref()]
                    .into_iter()
                    .flatten()
                    .collect()
            }
            AuthScheme::ClientCredentials(client) => vec![&client.token_url],
            _ => Vec::new(),
        };
        for url in urls {
            out.require(is_https(url) || url.starts_with("{connection."), || format!("`{url}` is not an https address"));
            known_fields(url, scheme, "an OAuth URL", out);
        }
        if let AuthScheme::ApiKey(_) = scheme {
            let base = scheme.base_url().unwrap_or(&manifest.base_url);
            let send = scheme.send();
            let sent = !send.headers.is_empty() || !send.query.is_empty() || send.basic.is_some() || base.contains("{connection.");
            out.require(sent, || "`api_key` needs `send`".to_owned());
            out.require(!scheme.fields().is_empty(), || "`api_key` needs `fields`".to_owned());
        }
        let send = scheme.send();
        let basic = send.basic.iter().flat_map(|pair| [&pair.username, &pair.password]);
        for text in send.headers.values().chain(send.query.values()).chain(basic) {
            known_fields(text, scheme, "`send`", out);
        }
        let base = scheme.base_url().unwrap_or(&manifest.base_url);
        known_fields(base, scheme, "base_url", out);
        let host_end =
            base.find("://").map_or(base.len(), |start| start + 3 + base[start + 3..].find('/').unwrap_or(base.len() - start - 3));
        let in_host: Vec<&str> = placeholders(&base[..host_end]).into_iter().filter_map(|name| name.strip_prefix("connection.")).collect();
        for (name, field) in scheme.fields() {
            out.require(field.label.is_some(), || format!("field `{name}` has no label"));
            out.require(!in_host.contains(&name.as_str()) || field.pattern.is_some(), || {
                format!("field `{name}` is used in a host and needs a `pattern`")
            });
            if let Some(pattern) = &field.pattern {
                let schema = serde_json::json!({"type": "string", "pattern": pattern});
                out.require(Schema::compile(&schema).is_ok(), || format!("field `{name}`: `{pattern}` is not a regular expression"));
            }
        }
    }
}

fn known_fields(text: &str, scheme: &AuthScheme, place: &str, out: &mut Findings) {
    let names = scheme.field_names();
    for placeholder in placeholders(text) {
        match placeholder.strip_prefix("connection.") {
            Some(field) => out.require(names.iter().any(|name| name == field), || {
                format!("{place} names `{{{placeholder}}}`, which scheme `{}` does not have", scheme.name())
            }),
            None => out.push(format!("{place} names `{{{placeholder}}}`; connection fields are written `{{connection.name}}`")),
        }
    }
}

fn check_action(manifest: &Manifest, action: &ActionSpec, seen: &mut Seen, out: &mut Findings) {
    common(&action.key, &action.name, &action.description, &action.use_cases, seen, out);
    let shape = format!(
        "{} {:?} {:?} {:?} {:?}",
        action.request,
        action.body,
        action.graphql,
        action.query,
        action.params.keys().collect::<Vec<_>>()
    );
    out.require(seen.requests.insert(shape), || "has the same request and body as another action".to_owned());
    let Some(operation) = dry_run(manifest, action.operation(&manifest.headers), &action.params, "request", out) else { return };
    params(&operation, out);
    for param in operation.params() {
        if let Some(lookup) = &param.lookup {
            out.require(manifest.actions.iter().any(|other| other.key == *lookup), || {
                format!("`{}`: lookup `{lookup}` is not an action of this file", param.name)
            });
        }
    }
    if let Some(place) = action.idempotency(manifest.idempotency.as_ref()) {
        KeyLocation::read(place, &operation).err().into_iter().for_each(|message| out.push(message));
        out.require(!action.is_read_only(), || "idempotency: an action that only reads needs no key".to_owned());
    }
    if let Some(graphql) = &action.graphql {
        for param in operation.params() {
            out.require(graphql.contains(&format!("${}", param.name)), || {
                format!("parameter `{}` is not a variable of the GraphQL document", param.name)
            });
        }
    }
    if let Some(pointer) = &action.result {
        require_pointer(pointer, out);
    }
    if let Some(output) = &action.output {
        require_schema(&output_schema(output), "output", out);
    }
    if let Some(schema) = &action.output_schema {
        require_schema(schema, "output_schema", out);
    }
    scopes(manifest, &action.scopes, out);
    for pitfall in &action.pitfalls {
        sentence(pitfall, out);
    }
    out.require(action.weight.is_none() || action.usage().is_some(), || "weight must be 1, 2 or 3".to_owned());
}

fn common(key: &str, name: &str, description: &str, use_cases: &[String], seen: &mut Seen, out: &mut Findings) {
    let key_ok = key.split('_').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()));
    out.require(key_ok, || "key must be upper-case words joined by single underscores".to_owned());
    out.require(seen.keys.insert(key.to_owned()), || "key is used twice".to_owned());
    out.require(seen.names.insert(name.to_lowercase()), || format!("name `{name}` is used twice"));
    out.require(seen.descriptions.insert(description.to_lowercase()), || "description is used twice".to_owned());
    sentence(description, out);
    out.require((3..=5).contains(&use_cases.len()), || format!("has {} use cases, not three to five", use_cases.len()));
    for use_case in use_cases {
        out.require(seen.use_cases.insert(use_case.to_lowercase()), || format!("use case `{use_case}` is used twice"));
        out.require((8..=120).contains(&use_case.len()), || format!("use case `{use_case}` is too short or too long"));
    }
}

/// A scope that a connection lacks unless it was named must be known as such.
fn scopes(manifest: &Manifest, needed: &[String], out: &mut Findings) {
    out.require(needed.iter().all(|scope| !scope.trim().is_empty()), || "a scope is empty".to_owned());
    for scheme in &manifest.auth {
        let AuthScheme::OAuth2(oauth) = scheme else { continue };
        let missing = needed.iter().filter(|scope| !oauth.scopes.contains(scope) && !oauth.optional_scopes.contains(scope));
        for scope in missing.filter(|_| !oauth.scopes.is_empty()) {
            out.push(format!("scope `{scope}` is neither in `scopes` nor in `optional_scopes` of `oauth2`"));
        }
    }
}

fn params(operation: &Operation, out: &mut Findings) {
    let target = operation.line().target.clone();
    let in_path = placeholders(&target);
    for name in in_path.iter().filter(|name| !name.starts_with("connection.")) {
        match operation.params().iter().find(|param| param.name == **name) {
            Some(param) => out.require(param.required || param.default.is_some(), || format!("path parameter `{name}` must be required")),
            None => out.push(format!("path parameter `{name}` is not declared")),
        }
    }
    let variables = operation.template_variables();
    for param in operation.params() {
        let schema = param.schema();
        for keyword in schema.keys() {
            out.require(KEYWORDS.contains(&keyword.as_str()), || format!("parameter `{}`: unknown key `{keyword}`", param.name));
        }
        out.require(schema.contains_key("description"), || format!("parameter `{}` has no description", param.name));
        let used = match param.place {
            ParamLocation::Path => in_path.contains(&param.name.as_str()),
            ParamLocation::Body => variables.as_ref().is_none_or(|names| names.contains(&param.name)),
            ParamLocation::Query | ParamLocation::Header | ParamLocation::Cookie | ParamLocation::Content | ParamLocation::Named => true,
        };
        out.require(used, || format!("parameter `{}` is not used", param.name));
    }
    for name in variables.iter().flatten() {
        out.require(operation.params().iter().any(|param| param.name == *name), || {
            format!("the body names `{name}`, which is not a parameter")
        });
    }
}

/// Compiles and builds a request with sample values, once for every scheme.
fn dry_run(
    manifest: &Manifest,
    compiled: Result<Operation, String>,
    declared: &Map<String, Value>,
    what: &str,
    out: &mut Findings,
) -> Option<Operation> {
    let operation = match compiled {
        Ok(operation) => operation,
        Err(message) => {
            out.push(format!("{what}: {message}"));
            return None;
        }
    };
    let schema = input_schema(operation.params());
    let sample: Map<String, Value> = operation.params().iter().map(|param| (param.name.clone(), param.sample())).collect();
    match Schema::compile(&schema) {
        Err(error) => out.push(format!("{what}: {error}")),
        Ok(compiled) => {
            for violation in compiled.check(&Value::Object(sample.clone())).err().into_iter().flatten() {
                out.push(format!("{what}: the sample value breaks the schema at {violation}; give an `example`"));
            }
        }
    }
    let required =
        sample.iter().filter(|(name, _)| declared.get(*name).and_then(|param| param.get("required")) == Some(&Value::Bool(true)));
    let required: Map<String, Value> = required.map(|(name, value)| (name.clone(), value.clone())).collect();
    build(manifest, &operation, &[sample, required], what, out);
    Some(operation)
}

/// Builds a request from each of the arguments, with every scheme.
fn build(manifest: &Manifest, operation: &Operation, arguments: &[Map<String, Value>], what: &str, out: &mut Findings) {
    for scheme in &manifest.auth {
        let base = scheme.base_url().unwrap_or(&manifest.base_url);
        let fields: Fields = scheme
            .field_names()
            .into_iter()
            .map(|name| {
                let whole = base.starts_with(&format!("{{connection.{name}}}"));
                (name, if whole { "https://sample.example.com".to_owned() } else { "sample".to_owned() })
            })
            .collect();
        for arguments in arguments {
            if let Err(error) = operation.build(base, scheme.send(), arguments, &fields) {
                out.push(format!("{what}: cannot be built with scheme `{}`: {error}", scheme.name()));
                return;
            }
        }
    }
}

fn sentence(text: &str, out: &mut Findings) {
    let fits = (20..=300).contains(&text.chars().count());
    out.require(fits && text.ends_with('.'), || format!("`{text}` is not a full sentence of 20 to 300 characters"));
}

fn require_pointer(pointer: &str, out: &mut Findings) {
    out.require(pointer.is_empty() || pointer.starts_with('/'), || format!("`{pointer}` is not a JSON Pointer"));
}

fn require_schema(schema: &Value, what: &str, out: &mut Findings) {
    if let Err(error) = Schema::compile(schema) {
        out.push(format!("{what}: {error}"));
    }
}

fn is_https(address: &str) -> bool {
    address.starts_with("https://") && !address.contains(char::is_whitespace)
}
