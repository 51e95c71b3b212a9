//! What a revision holds: a closed document that says what runs, or what is deployed.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use kernel::CallRef;
use kernel::json::{MAX_DEPTH, depth_exceeds};
use kernel::schema::Schema;
use serde_json::{Map, Value};

use crate::embed::contains_embed;
use crate::steps::Steps;
use crate::{Family, References, WorkflowError};

const KEYS: [&str; 17] = [
    "uri",
    "url",
    "headers",
    "runtime",
    "script",
    "schemas",
    "parameters",
    "kind",
    "steps",
    "result",
    "timeout_ms",
    "on_uncertain",
    "agent",
    "model",
    "instructions",
    "tools",
    "limits",
];
const RUNTIMES: [&str; 3] = ["python", "typescript", "javascript"];

/// How a revision runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RevisionKind {
    /// Gives its inputs back.
    Echo,
    /// An ordered list of tool calls.
    Steps,
    /// Posts to exactly its URL.
    Http,
    /// Posts to `/invoke` below its URL, where services of the reference system listen.
    Service,
    /// Asks a model and calls tools until it has an answer.
    Agent,
}

/// What runs, if anything does.
pub(crate) fn kind(data: &Value) -> Option<RevisionKind> {
    match data.get("kind").and_then(Value::as_str) {
        Some("echo") => Some(RevisionKind::Echo),
        Some("steps") => Some(RevisionKind::Steps),
        Some("http") => Some(RevisionKind::Http),
        Some("agent") => Some(RevisionKind::Agent),
        _ if data.get("steps").is_some_and(|steps| !steps.is_null()) => Some(RevisionKind::Steps),
        _ if data.get("url").is_some_and(Value::is_string) => Some(RevisionKind::Service),
        _ if is_echo(data) => Some(RevisionKind::Echo),
        _ if names_agent(data) => Some(RevisionKind::Agent),
        _ => None,
    }
}

/// Whether an author says that it is an agent of ours. One that only a `uri` names may as well be run elsewhere.
pub(crate) fn is_own_agent(data: &Value) -> bool {
    data.get("kind").and_then(Value::as_str) == Some("agent")
}

/// The key of a `uri` is its third part.
fn names_agent(data: &Value) -> bool {
    data.get("uri").and_then(Value::as_str).is_some_and(|uri| uri.split(':').nth(2) == Some("agent"))
}

/// `provider:kind:key:version` with any part left out.
fn is_echo(data: &Value) -> bool {
    data.get("uri").and_then(Value::as_str).is_some_and(|uri| uri.split(':').any(|part| part == "echo"))
}

/// How long a run may take by its author's word.
pub(crate) fn time_limit(data: &Value) -> Option<Duration> {
    data.get("timeout_ms").and_then(Value::as_u64).map(Duration::from_millis)
}

/// The JSON Schema of a workflow's inputs, where it has one.
pub(crate) fn input_schema(data: &Value) -> Option<&Value> {
    data.pointer("/schemas/inputs").filter(|schema| schema.is_object())
}

/// What the steps of a workflow call, in their order. What is embedded is known only when it runs.
pub(crate) fn calls(data: &Value) -> Vec<CallRef> {
    if kind(data) != Some(RevisionKind::Steps) || embeds_steps(data) {
        return Vec::new();
    }
    Steps::parse(data).map(|steps| steps.calls().cloned().collect()).unwrap_or_default()
}

fn embeds_steps(data: &Value) -> bool {
    ["steps", "result", "schemas"].iter().filter_map(|part| data.get(part)).any(contains_embed)
}

/// Checks data before it is committed.
pub(crate) fn check(family: Family, data: &Value) -> Result<(), WorkflowError> {
    let Value::Object(fields) = data else { return Err(WorkflowError::Invalid("`data` must be an object".to_owned())) };
    if depth_exceeds(data, MAX_DEPTH) {
        return Err(WorkflowError::Invalid(format!("`data` is nested more than {MAX_DEPTH} deep")));
    }
    match family {
        Family::Environment => check_environment(fields),
        Family::Workflow | Family::Application | Family::Evaluator => check_workflow(data, fields),
    }
    .map_err(WorkflowError::Invalid)
}

fn check_environment(fields: &Map<String, Value>) -> Result<(), String> {
    known(fields, &["references"])?;
    let Some(Value::Object(deployments)) = fields.get("references") else { return Err("`data.references` must be an object".to_owned()) };
    for (key, group) in deployments {
        let group = group.as_object().ok_or_else(|| format!("`data.references.{key}` must be an object of references"))?;
        let references = References::read(group).map_err(|error| format!("`data.references.{key}`: {error}"))?;
        // An empty group is a place where nothing is deployed.
        if (references.is_empty() && !group.is_empty()) || references.names_environment() {
            return Err(format!("`data.references.{key}` must name a workflow, a variant or a revision"));
        }
    }
    Ok(())
}

fn check_workflow(data: &Value, fields: &Map<String, Value>) -> Result<(), String> {
    known(fields, &KEYS)?;
    let word = |name: &str, allowed: &[&str]| match fields.get(name) {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(text)) if allowed.contains(&text.as_str()) => Ok(()),
        Some(_) => Err(format!("`data.{name}` must be one of: {}", allowed.join(", "))),
    };
    word("kind", &["echo", "steps", "http", "agent"])?;
    word("runtime", &RUNTIMES)?;
    word("on_uncertain", if is_own_agent(data) { &["tell", "stop"] } else { &["repeat", "stop"] })?;
    check_agent_keys(data, fields)?;
    check_shapes(fields)?;
    if let Some(url) = fields.get("url").filter(|url| !url.is_null()) {
        let fine = |url: &url::Url| {
            matches!(url.scheme(), "http" | "https") && url.has_host() && url.username().is_empty() && url.password().is_none()
        };
        if !url.as_str().and_then(|url| url.parse().ok()).is_some_and(|url| fine(&url)) {
            return Err("`data.url` must be an http or https address without credentials".to_owned());
        }
    }
    check_schemas(fields)?;
    match kind(data) {
        // What is embedded is known only when it runs.
        Some(RevisionKind::Steps) if embeds_steps(data) => Ok(()),
        Some(RevisionKind::Steps) => Steps::parse(data)?.check_names(input_schema(data)),
        Some(RevisionKind::Http) if !contains_embed(data) && !fields.get("url").is_some_and(Value::is_string) => {
            Err("a workflow of kind http needs `data.url`".to_owned())
        }
        _ => Ok(()),
    }
}

/// What belongs to agents alone, and what agents have no use for.
fn check_agent_keys(data: &Value, fields: &Map<String, Value>) -> Result<(), String> {
    let is_agent = is_own_agent(data);
    let (foreign, why): (&[&str], _) = if is_agent {
        (&["url", "headers", "runtime", "script", "parameters", "steps", "result"], "has no place in a workflow of kind agent")
    } else {
        (&["agent", "model", "instructions", "tools", "limits"], "belongs to workflows of kind agent; say `\"kind\": \"agent\"`")
    };
    match foreign.iter().find(|name| fields.get(**name).is_some_and(|value| !value.is_null())) {
        Some(name) => Err(format!("`data.{name}` {why}")),
        None => Ok(()),
    }
}

fn check_shapes(fields: &Map<String, Value>) -> Result<(), String> {
    let absent = |name: &str| fields.get(name).is_none_or(Value::is_null);
    for name in ["uri", "script"] {
        if !absent(name) && !fields[name].is_string() {
            return Err(format!("`data.{name}` must be text"));
        }
    }
    for name in ["schemas", "parameters", "headers"] {
        if !absent(name) && !fields[name].is_object() {
            return Err(format!("`data.{name}` must be an object"));
        }
    }
    for (name, value) in fields.get("headers").and_then(Value::as_object).into_iter().flatten().filter(|(_, value)| !contains_embed(value))
    {
        let text = value.as_str().ok_or("`data.headers` must hold texts")?;
        if name.parse::<HeaderName>().is_err() || HeaderValue::from_str(text).is_err() {
            return Err(format!("`data.headers.{name}` cannot be sent as a header"));
        }
    }
    if !absent("timeout_ms") && fields["timeout_ms"].as_u64().is_none_or(|limit| limit == 0) {
        return Err("`data.timeout_ms` must be a positive number of milliseconds".to_owned());
    }
    Ok(())
}

fn check_schemas(fields: &Map<String, Value>) -> Result<(), String> {
    let Some(schemas) = fields.get("schemas").and_then(Value::as_object) else { return Ok(()) };
    known(schemas, &["parameters", "inputs", "outputs"]).map_err(|error| error.replace("`data.", "`data.schemas."))?;
    for (name, schema) in schemas.iter().filter(|(_, schema)| !schema.is_null() && !contains_embed(schema)) {
        Schema::compile(schema).map_err(|error| format!("`data.schemas.{name}`: {error}"))?;
    }
    Ok(())
}

fn known(fields: &Map<String, Value>, names: &[&str]) -> Result<(), String> {
    match fields.keys().find(|key| !names.contains(&key.as_str())) {
        Some(unknown) => Err(format!("`data.{unknown}` is not known; there are: {}", names.join(", "))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!({}), |inner, _| json!({"a": inner}))
    }

    #[test]
    fn data_is_closed_and_checked() {
        for (data, part) in [
            (json!([]), "must be an object"),
            (json!({"nope": 1}), "`data.nope` is not known"),
            (json!({"kind": "magic"}), "`data.kind`"),
            (json!({"runtime": "cobol"}), "`data.runtime`"),
            (json!({"url": "ftp://x"}), "`data.url`"),
            (json!({"url": "https://u:p@x/"}), "`data.url`"),
            (json!({"kind": "http"}), "needs `data.url`"),
            (json!({"schemas": {"inputs": {"type": 7}}}), "`data.schemas.inputs`"),
            (json!({"schemas": {"other": {}}}), "`data.schemas.other`"),
            (json!({"steps": []}), "1 to 50 steps"),
            (json!({"kind": "steps"}), "1 to 50 steps"),
            (json!({"headers": {"a": 1}}), "`data.headers`"),
            (json!({"headers": {"a b": "1"}}), "`data.headers.a b`"),
            (json!({"headers": {"a": "1\n"}}), "`data.headers.a`"),
            (json!({"parameters": nested(100)}), "100 deep"),
            (json!({"timeout_ms": 0}), "`data.timeout_ms`"),
            (json!({"on_uncertain": "hope"}), "`data.on_uncertain` must be one of: repeat, stop"),
            (json!({"script": {}}), "`data.script`"),
            (json!({"@ag.embed": {"@ag.references": {"workflow": {"slug": "x"}}}}), "`data.@ag.embed` is not known"),
        ] {
            let error = check(Family::Workflow, &data).unwrap_err().to_string();
            assert!(error.contains(part), "{data}: {error}");
        }
        for data in [
            json!({}),
            json!({"kind": "echo", "schemas": {"inputs": {"type": "object"}, "outputs": null}}),
            json!({"uri": "agenta:builtin:chat:v0", "parameters": {"agent": {"tools": []}}}),
            json!({"steps": {"@ag.embed": {"@ag.references": {"workflow": {"slug": "x"}}}}}),
        ] {
            check(Family::Workflow, &data).unwrap_or_else(|error| panic!("{data}: {error}"));
        }
    }

    #[test]
    fn an_environment_holds_references_only() {
        for data in [
            json!({}),
            json!({"references": []}),
            json!({"references": {"a": 1}}),
            json!({"references": {"a": {"b": {}}}}),
            json!({"x": 1}),
        ] {
            assert!(check(Family::Environment, &data).is_err(), "{data}");
        }
        check(Family::Environment, &json!({"references": {"a.revision": {}}})).unwrap();
        check(Family::Environment, &json!({"references": {"a.revision": {"workflow": {"slug": "a"}}}})).unwrap();
    }

    #[test]
    fn the_kind_is_named_or_seen() {
        for (data, expected) in [
            (json!({"kind": "http", "url": "https://x"}), Some(RevisionKind::Http)),
            (json!({"url": "https://x"}), Some(RevisionKind::Service)),
            (json!({"uri": "agenta:builtin:echo:v0"}), Some(RevisionKind::Echo)),
            (json!({"uri": "agenta:builtin:chat:v0"}), None),
            (json!({"steps": [1]}), Some(RevisionKind::Steps)),
            (json!({}), None),
        ] {
            assert_eq!(kind(&data), expected, "{data}");
        }
    }
}
