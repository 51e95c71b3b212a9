//! The direct call: from a tool and its arguments to the one request they stand for, and from its answer to what the model reads.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::bind::{BindError, FieldPath, apply_bindings, clear_bound, is_plain_key, strip_ephemeral, visible_schema};
use super::catalog::{Method, Op, OpTarget};

type Body = Map<String, Value>;

const COMPONENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'!').remove(b'~').remove(b'*').remove(b'\'').remove(b'(').remove(b')');
const MAX_DETAIL: usize = 2000;

/// How much of an answer the model reads, if nothing else is configured.
pub const RESULT_MAX_BYTES: usize = 100_000;

/// A request that a runner makes itself, as a resolved spec carries it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    pub method: Method,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_into: Option<String>,
}

impl ToolCall {
    pub(super) fn new(op: &Op, method: Method, path: String) -> Self {
        let context = Some(op.context_bindings.clone()).filter(|bindings| !bindings.is_empty());
        Self { method, path, body: None, context, args_into: op.args_into.clone() }
    }
}

/// A tool that is called directly.
#[derive(Clone, Debug)]
pub struct DirectTool {
    pub name: String,
    pub call: ToolCall,
    /// What the model saw; null if that is not known.
    pub input_schema: Value,
    pub ephemeral_args: Vec<String>,
}

impl DirectTool {
    /// None for an op that is a handler.
    pub fn of(op: &Op, mount: &Mount) -> Option<Self> {
        let OpTarget::Endpoint { method, path } = &op.target else { return None };
        Some(Self {
            name: op.op.clone(),
            call: ToolCall::new(op, *method, mount.join(path)),
            input_schema: visible_schema(op),
            ephemeral_args: op.ephemeral_args().iter().map(ToString::to_string).collect(),
        })
    }
}

/// A request, ready to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembled {
    pub method: Method,
    pub path_and_query: String,
    pub body: Option<Value>,
}

/// Why a call was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DirectError {
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error("args_into `{path}` of tool `{tool}` has a segment that is empty or reserved")]
    ArgsInto { tool: String, path: String },
    #[error("path parameter `{param}` of tool `{tool}` {problem}")]
    Param { tool: String, param: String, problem: &'static str },
    #[error("argument `{name}` of tool `{tool}` cannot be a query parameter: only text, numbers and booleans can")]
    Query { tool: String, name: String },
    #[error("path `{path}` {problem}")]
    Path { path: String, problem: &'static str },
}

/// Makes the request. Later layers win: arguments, then the fixed body, then the run's values.
pub fn assemble(tool: &DirectTool, arguments: Body, context: &Value) -> Result<Assembled, DirectError> {
    let mut body = lay_out(tool, arguments, context)?;
    let mut path = fill_path(tool, &body)?;
    if let Some(problem) = path_problem(&path) {
        return Err(DirectError::Path { path, problem });
    }
    for param in path_params(&tool.call.path).unwrap_or_default() {
        FieldPath::parse(param).inspect(|param| param.remove(&mut body));
    }
    let method = tool.call.method;
    if method.has_body() {
        return Ok(Assembled { method, path_and_query: path, body: Some(Value::Object(body)) });
    }
    // The reference drops these arguments, so that its lists cannot be paged. Here they are the query.
    append_query(&tool.name, &mut path, &body)?;
    Ok(Assembled { method, path_and_query: path, body: None })
}

fn lay_out(tool: &DirectTool, arguments: Body, context: &Value) -> Result<Body, DirectError> {
    let call = &tool.call;
    let none = BTreeMap::new();
    let bindings = call.context.as_ref().unwrap_or(&none);
    let mut arguments = strip_ephemeral(arguments, &tool.ephemeral_args, &tool.input_schema).arguments;
    clear_bound(&mut arguments, bindings, call.args_into.as_deref(), &tool.input_schema);
    let mut body = place(tool, arguments)?;
    merge(&mut body, call.body.as_ref());
    Ok(apply_bindings(&tool.name, body, bindings, context)?)
}

fn place(tool: &DirectTool, arguments: Body) -> Result<Body, DirectError> {
    let Some(into) = &tool.call.args_into else { return Ok(arguments) };
    let path = FieldPath::parse(into).ok_or_else(|| DirectError::ArgsInto { tool: tool.name.clone(), path: into.clone() })?;
    let mut body = Map::new();
    path.set(&mut body, Value::Object(arguments));
    Ok(body)
}

fn merge(body: &mut Body, fixed: Option<&Body>) {
    for (key, value) in fixed.into_iter().flatten().filter(|(key, _)| is_plain_key(key)) {
        match (body.get_mut(key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => merge(below, Some(above)),
            (_, Value::Object(above)) => {
                let mut fresh = Map::new();
                merge(&mut fresh, Some(above));
                body.insert(key.clone(), Value::Object(fresh));
            }
            (_, value) => {
                body.insert(key.clone(), value.clone());
            }
        }
    }
}

/// A path template as literals, each but the last followed by the name of a parameter. None if a brace is out of place.
fn split_template(path: &str) -> Option<(Vec<(&str, &str)>, &str)> {
    let mut pairs = Vec::new();
    let mut rest = path;
    while let Some((literal, tail)) = rest.split_once('{') {
        let (name, after) = tail.split_once('}')?;
        if literal.contains('}') || !is_param_name(name) {
            return None;
        }
        pairs.push((literal, name));
        rest = after;
    }
    (!rest.contains('}')).then_some((pairs, rest))
}

fn is_param_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|char| char.is_ascii_alphanumeric() || "_.-".contains(char))
}

/// The names of the parameters of a path template; None if a brace is out of place.
pub(super) fn path_params(path: &str) -> Option<Vec<&str>> {
    split_template(path).map(|(pairs, _)| pairs.into_iter().map(|(_, name)| name).collect())
}

fn fill_path(tool: &DirectTool, body: &Body) -> Result<String, DirectError> {
    let template = &tool.call.path;
    let broken = || DirectError::Path { path: template.clone(), problem: "has a broken parameter" };
    let (pairs, rest) = split_template(template).ok_or_else(broken)?;
    let mut path = String::new();
    for (literal, param) in pairs {
        let value =
            param_text(body, param).map_err(|problem| DirectError::Param { tool: tool.name.clone(), param: param.to_owned(), problem })?;
        path.push_str(literal);
        path.extend(utf8_percent_encode(&value, COMPONENT));
    }
    path.push_str(rest);
    Ok(path)
}

/// A dot or nothing would make the URL name the parent, and with it another route.
fn param_text(body: &Body, param: &str) -> Result<String, &'static str> {
    let value = FieldPath::parse(param).and_then(|path| path.get(body).cloned()).unwrap_or(Value::Null);
    if value.is_null() {
        return Err("is missing");
    }
    let text = scalar_text(&value).ok_or("must be text, a number or a boolean")?;
    match text.as_str() {
        "" => Err("is empty"),
        "." | ".." => Err("may not be `.` or `..`"),
        _ => Ok(text),
    }
}

fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn append_query(tool: &str, path: &mut String, body: &Body) -> Result<(), DirectError> {
    for (name, value) in body.iter().filter(|(_, value)| !is_nothing(value)) {
        let text = scalar_text(value).ok_or_else(|| DirectError::Query { tool: tool.to_owned(), name: name.clone() })?;
        path.push(if path.contains('?') { '&' } else { '?' });
        path.extend(utf8_percent_encode(name, COMPONENT));
        path.push('=');
        path.extend(utf8_percent_encode(&text, COMPONENT));
    }
    Ok(())
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

/// What is wrong with a path that is about to be sent.
pub(super) fn path_problem(path: &str) -> Option<&'static str> {
    let route = path.split_once('?').map_or(path, |(route, _)| route);
    if !path.starts_with('/') || path.starts_with("//") {
        Some("does not start with exactly one `/`")
    } else if path.contains(|char: char| char == '\\' || char == '#' || char.is_whitespace() || char.is_control()) {
        Some("holds a backslash, a `#`, white space or a control character")
    } else if route.contains("..") || route.split('/').any(is_dot_segment) {
        Some("holds a `.` or `..` segment")
    } else {
        None
    }
}

/// URL parsers read `%2e` as a dot.
fn is_dot_segment(segment: &str) -> bool {
    let decoded: Vec<u8> = percent_decode_str(segment).collect();
    decoded == b"." || decoded == b".."
}

/// Where the API is on its host: empty, or for example `/api`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount(String);

impl Mount {
    /// The top of the host.
    pub const fn root() -> Self {
        Self(String::new())
    }

    pub fn new(path: &str) -> Self {
        Self(path.to_owned())
    }

    pub(super) fn join(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

/// The text in at most `max_bytes`, with a word on what was left out.
pub fn cap_text(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    // The longest note that can be needed, so that the real one always fits.
    let Some(budget) = max_bytes.checked_sub(omitted(text.len()).len()) else {
        return text[..text.floor_char_boundary(max_bytes)].to_owned();
    };
    let kept = text.floor_char_boundary(budget);
    format!("{}{}", &text[..kept], omitted(text.len() - kept))
}

fn omitted(bytes: usize) -> String {
    format!(" [... {bytes} bytes omitted]")
}

/// What the model reads when the answer was not a success.
pub fn failure_text(status: u16, body: &str) -> String {
    let detail = serde_json::from_str::<Value>(body).ok().and_then(|body| match body.get("detail")? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    });
    let Some(detail) = detail else { return format!("direct tool call failed: HTTP {status}") };
    match detail.char_indices().nth(MAX_DETAIL) {
        Some((end, _)) => format!("direct tool call failed: HTTP {status}: {} (truncated)", &detail[..end]),
        None => format!("direct tool call failed: HTTP {status}: {detail}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::find;
    use super::*;

    fn map(value: Value) -> Body {
        value.as_object().unwrap().clone()
    }

    fn tool(call: Value) -> DirectTool {
        DirectTool { name: "t".to_owned(), call: serde_json::from_value(call).unwrap(), input_schema: Value::Null, ephemeral_args: vec![] }
    }

    fn context() -> Value {
        json!({"workflow": {"artifact": {"id": "w1"}, "variant": {"id": "v1"}}})
    }

    #[test]
    fn ops_become_requests() {
        let cases = [
            ("discover_tools", json!({"use_cases": ["x"]}), "/tools/discover", Some(json!({"use_cases": ["x"]}))),
            ("rename_agent", json!({"name": "n", "id": "x"}), "/workflows/w1", Some(json!({"workflow": {"name": "n", "id": "w1"}}))),
            ("list_deliveries", json!({"limit": 5, "cursor": "a b&c"}), "/triggers/deliveries?limit=5&cursor=a%20b%26c", None),
            ("remove_schedule", json!({"id": "s1"}), "/triggers/schedules/s1", None),
            ("pause_subscription", json!({"id": "a/b"}), "/triggers/subscriptions/a%2Fb/stop", Some(json!({}))),
            (
                "create_schedule",
                json!({"name": "n", "data": {"event_key": "e", "references": {"workflow": {"id": "x"}, "workflow_variant": {"slug": "y"}}}}),
                "/triggers/schedules/",
                Some(json!({"schedule": {"name": "n", "data": {"event_key": "e", "references": {"workflow_variant": {"id": "v1"}}}}})),
            ),
        ];
        for (name, arguments, path, body) in cases {
            let tool = DirectTool::of(find(name).unwrap(), &Mount::root()).unwrap();
            let assembled = assemble(&tool, map(arguments), &context()).unwrap();
            assert_eq!((assembled.path_and_query.as_str(), assembled.body), (path, body), "{name}");
        }
        assert!(DirectTool::of(find("test_run").unwrap(), &Mount::root()).is_none());
    }

    #[test]
    fn later_layers_win() {
        let call = json!({
            "method": "POST",
            "path": "/x/{in.deep.id}?again={in.flag}",
            "args_into": "in.deep",
            "body": {"in": {"deep": {"a": "fixed", "b": {"c": 1, "__proto__": 2}}, "flag": true}, "constructor": {}},
            "context": {"in.deep.who": "$ctx.workflow.variant.id", "in.deep.b.c": "$ctx.workflow.artifact.id"},
        });
        let arguments = json!({"id": 7, "a": "said", "b": {"c": 0, "d": 2}, "who": {"x": 1}, "why": "because"});
        let tool = DirectTool { ephemeral_args: vec!["why".to_owned()], ..tool(call) };
        let assembled = assemble(&tool, map(arguments), &context()).unwrap();
        assert_eq!(assembled.path_and_query, "/x/7?again=true");
        assert_eq!(assembled.body, Some(json!({"in": {"deep": {"a": "fixed", "b": {"d": 2, "c": "w1"}, "who": "v1"}}})));
    }

    #[test]
    fn a_bad_call_is_not_made() {
        let cases = [
            ("DELETE", "/x/{id}", json!({"id": ""}), "path parameter `id` of tool `t` is empty"),
            ("DELETE", "/x/{id}", json!({"id": "."}), "path parameter `id` of tool `t` may not be `.` or `..`"),
            ("POST", "/x/{id}/stop", json!({"id": ".."}), "path parameter `id` of tool `t` may not be `.` or `..`"),
            ("GET", "/x/{id}", json!({"id": null}), "path parameter `id` of tool `t` is missing"),
            ("GET", "/x/{a.b}", json!({"a": {}}), "path parameter `a.b` of tool `t` is missing"),
            ("GET", "/x/{id}", json!({"id": ["a"]}), "path parameter `id` of tool `t` must be text, a number or a boolean"),
            ("GET", "/x/{i d}", json!({}), "path `/x/{i d}` has a broken parameter"),
            ("GET", "/x}", json!({}), "path `/x}` has a broken parameter"),
            ("GET", "/x/.{id}", json!({"id": ".a"}), "path `/x/..a` holds a `.` or `..` segment"),
            (
                "GET",
                "/x",
                json!({"deep": {"a": 1}}),
                "argument `deep` of tool `t` cannot be a query parameter: only text, numbers and booleans can",
            ),
        ];
        for (method, path, arguments, expected) in cases {
            let error = assemble(&tool(json!({"method": method, "path": path})), map(arguments), &context()).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        let unbound = json!({"method": "POST", "path": "/x", "context": {"a": "$ctx.session.id"}});
        assert!(matches!(assemble(&tool(unbound), Map::new(), &context()), Err(DirectError::Bind(BindError::Missing { .. }))));
        let nowhere = json!({"method": "POST", "path": "/x", "args_into": "a..b"});
        assert!(matches!(assemble(&tool(nowhere), Map::new(), &context()), Err(DirectError::ArgsInto { .. })));
        assert!(serde_json::from_value::<ToolCall>(json!({"method": "PATCH", "path": "/x"})).is_err());
    }

    #[test]
    fn a_path_stays_what_it_says() {
        for path in ["/api/x?a=..", "/api", "/x/a%2Fb"] {
            assert_eq!(path_problem(path), None, "{path}");
        }
        for (path, expected) in [
            ("//evil/x", "does not start with exactly one `/`"),
            ("https://evil/", "does not start with exactly one `/`"),
            ("/api/%2E%2e/x", "holds a `.` or `..` segment"),
            ("/api/./x", "holds a `.` or `..` segment"),
            ("/\\evil", "holds a backslash, a `#`, white space or a control character"),
            ("/a b", "holds a backslash, a `#`, white space or a control character"),
        ] {
            assert_eq!(path_problem(path), Some(expected), "{path}");
        }
    }

    #[test]
    fn a_long_answer_is_cut_inside_the_budget() {
        assert_eq!(cap_text("short", 5), "short");
        assert_eq!(cap_text(&"a".repeat(100), 40), format!("{} [... 84 bytes omitted]", "a".repeat(16)));
        assert_eq!(cap_text(&"é".repeat(50), 40), format!("{} [... 84 bytes omitted]", "é".repeat(8)));
        assert_eq!(cap_text("éé and more", 3), "é");
        for max in 0..200 {
            assert!(cap_text(&"日本".repeat(40), max).len() <= max, "{max}");
        }
    }

    #[test]
    fn a_failure_says_what_the_server_said() {
        let cases = [
            ("", ""),
            ("<html>", ""),
            ("[1]", ""),
            (r#"{"detail": null}"#, ""),
            (r#"{"message": "m"}"#, ""),
            (r#"{"detail": "no such id"}"#, ": no such id"),
            (r#"{"detail": {"a": 1}}"#, r#": {"a":1}"#),
        ];
        for (body, rest) in cases {
            assert_eq!(failure_text(404, body), format!("direct tool call failed: HTTP 404{rest}"));
        }
        let long = json!({"detail": "é".repeat(2001)}).to_string();
        assert_eq!(failure_text(500, &long), format!("direct tool call failed: HTTP 500: {} (truncated)", "é".repeat(2000)));
    }
}
