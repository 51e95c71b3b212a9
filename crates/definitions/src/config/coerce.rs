//! Old spellings of tool configurations, and what a list of them must agree on.

use std::collections::HashSet;
use std::fmt;

use kernel::slug::SlugError;
use kernel::suggest;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{APPROVAL, EMBED, KINDS, PERMISSION, ToolConfig};
use crate::BUILT_INS;

/// Why a list of tools is not usable.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// One entry cannot be read. The message leaves the value out: a script may hold anything.
    #[error("{}{problem}", place(*index))]
    Invalid { index: Option<usize>, value: Box<Value>, problem: Problem },
    #[error("Tool name `{0}` is reserved for a built-in tool; choose another name")]
    Reserved(String),
    #[error("{0} is configured twice; keep one")]
    Duplicate(Identity),
}

fn place(index: Option<usize>) -> String {
    index.map(|index| format!("tools[{index}]: ")).unwrap_or_default()
}

/// Why a value is not a tool configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("Tool configuration cannot be null")]
    Null,
    #[error("Tool configuration must be a string or mapping")]
    NotAMapping,
    #[error("Unsupported tool configuration shape")]
    Unsupported,
    #[error("Unsupported tool configuration shape: there is no type `{given}`.{nearest}")]
    Type { given: String, nearest: String },
    #[error("A `trigger` is an event, not a tool; subscribe to it instead")]
    Event,
    #[error("`{key}` is required in a `{kind}` tool")]
    Missing { kind: &'static str, key: &'static str },
    #[error("`{key}` is not a field of a `{kind}` tool.{nearest}")]
    Unknown { kind: &'static str, key: String, nearest: String },
    #[error(
        "An embed stands for another tool, and is put in place at `/tools/specs` and `/tools/resolve` only; write the tool itself here"
    )]
    Embed,
    #[error("`{0}` beside `@ag.embed` would be lost: the embed takes the place of the whole entry. Say it in what is embedded")]
    BesideEmbed(&'static str),
    #[error("`{first}` and `{second}` contradict each other; keep one")]
    Contradiction { first: &'static str, second: &'static str },
    #[error("`{key}` must be {expected}")]
    Wrong { key: &'static str, expected: &'static str },
    #[error("`{key}` {source}")]
    Slug { key: &'static str, source: SlugError },
    #[error("`environment` is required when `ref_by` is `environment`")]
    NoEnvironment,
    #[error("`version` is not allowed when `ref_by` is `environment`: what is deployed there runs")]
    PinnedEnvironment,
    #[error("`environment` is not allowed when `ref_by` is `variant`")]
    StrayEnvironment,
}

impl Problem {
    pub(super) fn unknown(kind: &'static str, key: String, known: &[&str]) -> Self {
        let nearest = suggest::did_you_mean(&key, known.iter().copied());
        Self::Unknown { kind, key, nearest }
    }
}

/// What may occur only once among the tools of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    Name(String),
    PlatformOp(String),
    Workflow(String),
    Gateway(String),
    Connection(String),
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "Tool name `{name}`"),
            Self::PlatformOp(op) => write!(f, "Platform op `{op}`"),
            Self::Workflow(reference) => write!(f, "Workflow `{reference}`"),
            Self::Gateway(reference) => write!(f, "Gateway tool `{reference}`"),
            Self::Connection(integration) => write!(f, "The whole integration `{integration}`"),
        }
    }
}

/// What a bad entry does to its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// The first bad entry fails the list.
    Raise,
    /// Bad entries are left out and reported.
    Collect,
}

/// A list that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Coerced {
    pub configs: Vec<ToolConfig>,
    /// Empty unless errors were collected.
    pub diagnostics: Vec<Diagnostic>,
}

/// An entry that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    pub index: usize,
    pub message: String,
}

/// Reads one tool in its canonical or any older shape.
pub fn coerce(value: &Value) -> Result<ToolConfig, ConfigError> {
    read(value).map_err(|problem| ConfigError::Invalid { index: None, value: Box::new(value.clone()), problem })
}

/// Reads a list of tools.
pub fn coerce_list(values: &[Value], on_error: OnError) -> Result<Coerced, ConfigError> {
    let mut coerced = Coerced { configs: Vec::new(), diagnostics: Vec::new() };
    for (index, value) in values.iter().enumerate() {
        match (read(value), on_error) {
            (Ok(config), _) => coerced.configs.push(config),
            (Err(problem), OnError::Collect) => coerced.diagnostics.push(Diagnostic { index, message: problem.to_string() }),
            (Err(problem), OnError::Raise) => {
                return Err(ConfigError::Invalid { index: Some(index), value: Box::new(value.clone()), problem });
            }
        }
    }
    Ok(coerced)
}

/// Refuses reserved and repeated names before any secret or connection is touched.
pub fn check_names(configs: &[ToolConfig]) -> Result<(), ConfigError> {
    let mut seen = HashSet::new();
    for config in configs {
        let name = config.declared_name();
        if let Some(reserved) = name.filter(|name| BUILT_INS.contains(&name.trim().to_lowercase().as_str())) {
            return Err(ConfigError::Reserved(reserved.to_owned()));
        }
        // The target comes first: a repeated op or workflow repeats its name too, and the target says more.
        for identity in target(config).into_iter().chain(name.map(|name| Identity::Name(name.to_owned()))) {
            if !seen.insert(identity.clone()) {
                return Err(ConfigError::Duplicate(identity));
            }
        }
    }
    Ok(())
}

fn target(config: &ToolConfig) -> Option<Identity> {
    match config {
        ToolConfig::Gateway(tool) => Some(Identity::Gateway(tool.reference())),
        ToolConfig::Reference(tool) => Some(Identity::Workflow(tool.call_ref().to_string())),
        ToolConfig::Platform(tool) => Some(Identity::PlatformOp(tool.op.clone())),
        ToolConfig::Connection(tool) => Some(Identity::Connection(format!("{}/{}", tool.connection.provider, tool.connection.integration))),
        ToolConfig::Builtin(_) | ToolConfig::Code(_) | ToolConfig::Client(_) => None,
    }
}

/// An embed takes the place of its whole entry, so a restriction beside it would be lost.
pub(crate) fn check_embeds(values: &[Value]) -> Result<(), ConfigError> {
    for (index, value) in values.iter().enumerate() {
        let Some(fields) = value.as_object().filter(|fields| fields.contains_key(EMBED)) else { continue };
        let lost = PERMISSION.into_iter().chain(APPROVAL).find(|key| fields.contains_key(*key));
        if let Some(key) = lost {
            let problem = Problem::BesideEmbed(key);
            return Err(ConfigError::Invalid { index: Some(index), value: Box::new(value.clone()), problem });
        }
    }
    Ok(())
}

fn read(value: &Value) -> Result<ToolConfig, Problem> {
    match value {
        Value::Null => Err(Problem::Null),
        Value::String(name) => builtin(name, &Map::new()),
        Value::Object(fields) => read_object(fields),
        _ => Err(Problem::NotAMapping),
    }
}

fn read_object(fields: &Map<String, Value>) -> Result<ToolConfig, Problem> {
    if fields.contains_key(EMBED) {
        return Err(Problem::Embed);
    }
    typed(fields).or_else(|| function_shaped(fields)).unwrap_or_else(|| match fields.get("name") {
        Some(Value::String(name)) if !fields.contains_key("type") => builtin(name, fields),
        _ => Err(unsupported(fields)),
    })
}

/// A misspelt type is named with the one that was meant.
fn unsupported(fields: &Map<String, Value>) -> Problem {
    let given = fields.get("type").and_then(Value::as_str).unwrap_or_default();
    match suggest::did_you_mean(given, KINDS) {
        nearest if nearest.is_empty() || KINDS.contains(&given) => Problem::Unsupported,
        nearest => Problem::Type { given: given.to_owned(), nearest },
    }
}

fn builtin(name: &str, fields: &Map<String, Value>) -> Result<ToolConfig, Problem> {
    let mut builtin = hints("builtin", fields)?;
    builtin.insert("name".to_owned(), name.into());
    ToolConfig::read("builtin", builtin).unwrap_or(Err(Problem::Unsupported))
}

/// What an older entry says besides its name. Its other fields belong to a model's API and mean nothing here, unless one of them is a
/// misspelt restriction.
fn hints(kind: &'static str, fields: &Map<String, Value>) -> Result<Map<String, Value>, Problem> {
    let mut hints = Map::new();
    let restricts: Vec<&str> = PERMISSION.into_iter().chain(APPROVAL).collect();
    for (key, value) in fields {
        if restricts.contains(&key.as_str()) || (key == "render" && value.is_object()) {
            hints.insert(key.clone(), value.clone());
        } else if suggest::nearest(key, restricts.iter().copied()).is_some() {
            return Err(Problem::unknown(kind, key.clone(), &restricts));
        }
    }
    Ok(hints)
}

/// An entry that says which kind it is. `composio` is how gateway tools were called once.
fn typed(fields: &Map<String, Value>) -> Option<Result<ToolConfig, Problem>> {
    let mut fields = fields.clone();
    let kind = fields.remove("type")?;
    match kind.as_str()? {
        "composio" => ToolConfig::read("gateway", fields),
        "trigger" => Some(Err(Problem::Event)),
        kind => ToolConfig::read(kind, fields),
    }
}

/// An entry as a model provider writes functions, or a bare name, when that name spells a gateway reference.
fn function_shaped(fields: &Map<String, Value>) -> Option<Result<ToolConfig, Problem>> {
    let own = fields.get("name").and_then(Value::as_str);
    let function = fields.get("function").and_then(|function| function.get("name")).and_then(Value::as_str);
    let [provider, integration, action, connection] = segments(function.filter(|name| !name.is_empty()).or(own)?)?;

    let mut gateway = match hints("gateway", fields) {
        Ok(hints) => hints,
        Err(problem) => return Some(Err(problem)),
    };
    for (key, segment) in [("provider", provider), ("integration", integration), ("action", action), ("connection", connection)] {
        gateway.insert(key.to_owned(), segment.into());
    }
    if let Some(name) = own.filter(|name| segments(name).is_none()) {
        gateway.insert("name".to_owned(), name.into());
    }
    ToolConfig::read("gateway", gateway)
}

/// The four segments after `tools`. `__` stands for `.` only when the name holds no dot.
fn segments(name: &str) -> Option<[String; 4]> {
    let dotted = if name.contains('.') { name.to_owned() } else { name.replace("__", ".") };
    let rest: Vec<String> = dotted.strip_prefix("tools.")?.split('.').map(str::to_owned).collect();
    rest.try_into().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(value: &Value) -> Value {
        serde_json::to_value(coerce(value).unwrap()).unwrap()
    }

    fn problem(value: &Value) -> String {
        coerce(value).unwrap_err().to_string()
    }

    fn gateway(provider: &str) -> Value {
        json!({"type": "gateway", "provider": provider, "integration": "github", "action": "CREATE_AN_ISSUE", "connection": "main"})
    }

    fn with(mut value: Value, key: &str, more: Value) -> Value {
        value[key] = more;
        value
    }

    #[test]
    fn full_configurations_are_written_back_as_read() {
        let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
        for value in [
            json!({"type": "builtin", "name": "read", "permission": "deny"}),
            with(gateway("native"), "name", json!("open_issue")),
            with(gateway("mcp"), "render", json!({"kind": "component", "component": "Card", "z": 1, "a": [null]})),
            json!({"type": "code", "name": "sum", "description": "Adds.", "runtime": "node", "script": "1", "input_schema": schema, "secrets": ["s"]}),
            json!({"type": "client", "name": "pick", "input_schema": schema, "permission": "allow", "render": {"kind": "connect"}}),
            json!({"type": "reference", "ref_by": "variant", "slug": "triage", "version": "3", "name": "t", "description": "", "input_schema": schema}),
            json!({"type": "reference", "ref_by": "environment", "slug": "triage", "environment": "production", "input_schema": {}}),
            json!({"type": "platform", "op": "discover_tools", "permission": "ask"}),
            json!({"type": "gateway_connection", "connection": {"provider": "native", "integration": "github", "slug": "main"},
                "policy": {"permissions": {"default": "allow_reads", "tools": {"CREATE_AN_ISSUE": "deny", "GET_A_REPOSITORY": "inherit"}}}}),
        ] {
            assert_eq!(written(&value), value);
        }
    }

    #[test]
    fn defaults_are_filled_in_and_nulls_left_out() {
        let empty = json!({"type": "object", "properties": {}});
        for (value, expected) in [
            (
                json!({"type": "gateway", "integration": "github", "action": "CREATE_AN_ISSUE", "connection": "main", "name": null}),
                gateway("composio"),
            ),
            (
                json!({"type": "code", "name": "n", "script": "s", "description": null, "render": null}),
                json!({"type": "code", "name": "n", "runtime": "python", "script": "s", "input_schema": empty, "secrets": []}),
            ),
            (json!({"type": "client", "name": "n"}), json!({"type": "client", "name": "n", "input_schema": empty})),
            (
                json!({"type": "gateway_connection", "connection": {"integration": "github"}, "policy": null}),
                json!({"type": "gateway_connection", "connection": {"provider": "composio", "integration": "github", "slug": "github-main"},
                    "policy": {"permissions": {"default": "inherit", "tools": {}}}}),
            ),
            (
                json!({"type": "reference", "slug": "a", "environment": null, "version": null}),
                json!({"type": "reference", "ref_by": "variant", "slug": "a", "input_schema": empty}),
            ),
        ] {
            assert_eq!(written(&value), expected);
        }
    }

    #[test]
    fn a_restriction_holds_under_all_of_its_names() {
        let with = |extra: Value| {
            let mut tool = json!({"type": "platform", "op": "x"});
            tool.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            tool
        };
        for (extra, expected) in [
            (json!({"needs_approval": true}), Some("ask")),
            (json!({"needsApproval": true}), Some("ask")),
            (json!({"permission_mode": "deny"}), Some("deny")),
            (json!({"permissionMode": "ask", "permission": "ask"}), Some("ask")),
            (json!({"needs_approval": true, "permission": "deny"}), Some("deny")),
            (json!({"needs_approval": false, "permission": "ask"}), Some("ask")),
            (json!({"needs_approval": false, "permission_mode": null}), None),
        ] {
            assert_eq!(written(&with(extra.clone())).get("permission").and_then(Value::as_str), expected, "{extra}");
        }
        let slug = "tools__composio__github__CREATE_AN_ISSUE__main";
        assert_eq!(written(&json!({"function": {"name": slug}, "needs_approval": true}))["permission"], "ask");
        assert_eq!(written(&json!({"name": "bash", "permissionMode": "deny"}))["permission"], "deny");
        for (value, message) in [
            (with(json!({"needs_approval": "yes"})), "`needs_approval` must be `true` or `false`"),
            (with(json!({"permission_mode": "plan"})), "`permission_mode` must be `allow`, `ask` or `deny`"),
            (with(json!({"permission": "allow", "needs_approval": true})), "`permission` and `needs_approval` contradict each other"),
            (with(json!({"permission": "ask", "permissionMode": "deny"})), "`permission` and `permissionMode` contradict each other"),
            (with(json!({"permision": "deny"})), "`permision` is not a field of a `platform` tool. Did you mean `permission`?"),
            (json!({"function": {"name": slug}, "permision": "deny"}), "Did you mean `permission`?"),
            (json!({"name": "bash", "need_approval": true}), "Did you mean `needs_approval`?"),
        ] {
            assert!(problem(&value).contains(message), "{value}: {}", problem(&value));
        }
    }

    #[test]
    fn a_tool_from_discovery_fits_as_it_is() {
        let found = json!({"type": "gateway", "provider": "native", "integration": "github", "action": "CREATE_AN_ISSUE", "connection": "main",
            "input_schema": {"type": "object"}, "description": "Opens an issue.", "provider_action": "CREATE_AN_ISSUE"});
        assert_eq!(written(&found), gateway("native"));
        let mut unconnected = found;
        unconnected.as_object_mut().unwrap().remove("connection");
        assert_eq!(written(&unconnected), with(gateway("native"), "connection", json!("github-main")));
    }

    #[test]
    fn older_shapes_become_canonical() {
        let slug = "tools__composio__github__CREATE_AN_ISSUE__main";
        let dotted = slug.replace("__", ".");
        for (value, expected) in [
            (json!("read"), json!({"type": "builtin", "name": "read"})),
            (json!({"name": "read", "anything": 1}), json!({"type": "builtin", "name": "read"})),
            (with(gateway("composio"), "type", json!("composio")), gateway("composio")),
            (with(gateway("native"), "type", json!("composio")), gateway("native")),
            (json!({"name": slug}), gateway("composio")),
            (json!({"name": dotted}), gateway("composio")),
            (json!({"type": "function", "function": {"name": slug, "parameters": {}}}), gateway("composio")),
            (json!({"type": "function", "function": {}, "name": slug}), gateway("composio")),
            (json!({"function": {"name": slug}, "name": "open_issue"}), with(gateway("composio"), "name", json!("open_issue"))),
            (json!({"function": {"name": slug}, "name": dotted, "render": "x"}), gateway("composio")),
            (json!({"function": {"name": slug}, "permission": "ask", "extra": 1}), with(gateway("composio"), "permission", json!("ask"))),
            (json!({"name": slug, "render": {"kind": "connect"}}), with(gateway("composio"), "render", json!({"kind": "connect"}))),
            (
                json!({"name": "tools.mcp.linear.A__B.main"}),
                json!({"type": "gateway", "provider": "mcp", "integration": "linear", "action": "A__B", "connection": "main"}),
            ),
        ] {
            assert_eq!(written(&value), expected, "{value}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let reference = json!({"type": "reference", "slug": "a"});
        for (value, message) in [
            (json!(null), "cannot be null"),
            (json!(7), "must be a string or mapping"),
            (json!([]), "must be a string or mapping"),
            (json!(""), "`name` must be a non-empty string"),
            (json!({}), "Unsupported tool configuration shape"),
            (json!({"type": null, "name": "a"}), "Unsupported tool configuration shape"),
            (json!({"type": "function", "function": {"name": "lookup"}}), "Unsupported tool configuration shape"),
            (json!({"type": "function", "function": {"name": "tools.a.b.c"}}), "Unsupported tool configuration shape"),
            (json!({"name": "tools.composio..X.main"}), "`integration` must be a non-empty string"),
            (json!({"function": {"name": "tools.a.b.c.d"}, "permission": "maybe"}), "`permission` must be `allow`, `ask` or `deny`"),
            (with(gateway("native"), "colour", json!(1)), "`colour` is not a field of a `gateway` tool"),
            (with(gateway("native"), "provider", json!(null)), "`provider` must be a non-empty string"),
            (with(gateway("native"), "name", json!("")), "`name` must be a non-empty string"),
            (json!({"type": "gateway"}), "`integration` is required in a `gateway` tool"),
            (json!({"type": "gateway", "integration": "github"}), "`action` is required in a `gateway` tool"),
            (json!({"type": "trigger", "provider": "native", "event_key": "ISSUE_OPENED"}), "is an event, not a tool"),
            (json!({"type": "code", "name": "n"}), "`script` is required in a `code` tool"),
            (json!({"type": "code", "name": "n", "script": "s", "runtime": "ruby"}), "`runtime` must be `python` or `node`"),
            (json!({"type": "code", "name": "n", "script": "s", "secrets": [1]}), "`secrets` must be a list"),
            (json!({"type": "client", "name": "n", "input_schema": null}), "`input_schema` must be an object"),
            (json!({"type": "client", "name": "n", "description": 1}), "`description` must be a string"),
            (json!({"type": "client", "name": "n", "render": []}), "`render` must be an object"),
            (with(reference.clone(), "ref_by", json!("environment")), "`environment` is required"),
            (with(reference.clone(), "environment", json!("prod")), "`environment` is not allowed"),
            (with(reference.clone(), "version", json!("")), "`version` must be a non-empty string"),
            (with(reference.clone(), "slug", json!("a.b")), "`slug` must not contain dots"),
            (with(reference.clone(), "slug", json!("a__b")), "`slug` must not contain dots"),
            (with(reference, "ref_by", json!("tag")), "`ref_by` must be `variant` or `environment`"),
            (
                json!({"type": "reference", "ref_by": "environment", "slug": "a", "environment": "p", "version": ""}),
                "`version` is not allowed",
            ),
            (json!({"type": "platform", "op": "x", "name": "y"}), "`name` is not a field of a `platform` tool"),
        ] {
            assert!(problem(&value).contains(message), "{value}: {}", problem(&value));
        }
    }

    #[test]
    fn a_list_fails_or_reports() {
        let values = [json!("read"), json!(null), json!({"type": "platform", "op": "x"}), json!(1)];
        let error = coerce_list(&values, OnError::Raise).unwrap_err();
        assert_eq!(error, ConfigError::Invalid { index: Some(1), value: Box::new(json!(null)), problem: Problem::Null });
        assert_eq!(error.to_string(), "tools[1]: Tool configuration cannot be null");

        let coerced = coerce_list(&values, OnError::Collect).unwrap();
        assert_eq!(coerced.configs.len(), 2);
        assert_eq!(
            serde_json::to_value(coerced.diagnostics).unwrap(),
            json!([{"index": 1, "message": "Tool configuration cannot be null"}, {"index": 3, "message": "Tool configuration must be a string or mapping"}])
        );
    }

    #[test]
    fn refs_and_names_are_known_up_front() {
        for (value, name, reference) in [
            (json!("read"), None, None),
            (gateway("native"), None, Some("tools.native.github.CREATE_AN_ISSUE.main")),
            (with(gateway("openapi"), "name", json!("n")), Some("n"), Some("tools.openapi.github.CREATE_AN_ISSUE.main")),
            (json!({"type": "client", "name": "pick"}), Some("pick"), None),
            (json!({"type": "reference", "slug": "a"}), Some("a"), Some("workflow.variant.a")),
            (json!({"type": "reference", "slug": "a", "version": "2", "name": "b"}), Some("b"), Some("workflow.variant.a.2")),
            (
                json!({"type": "reference", "ref_by": "environment", "slug": "a", "environment": "prod"}),
                Some("a"),
                Some("workflow.environment.prod.a"),
            ),
            (json!({"type": "platform", "op": "x"}), Some("x"), None),
        ] {
            let config = coerce(&value).unwrap();
            assert_eq!(config.declared_name(), name, "{value}");
            assert_eq!(config.call_ref().unwrap().map(|target| target.to_string()).as_deref(), reference, "{value}");
        }
        let odd = with(gateway("native"), "action", json!("not a segment"));
        assert!(coerce(&odd).unwrap().call_ref().is_err());
    }

    #[test]
    fn names_and_targets_occur_once() {
        let client = |name: &str| json!({"type": "client", "name": name});
        let workflow = |name: &str, version: Value| json!({"type": "reference", "slug": "a", "name": name, "version": version});
        let named = |name: &str| with(gateway("native"), "name", json!(name));
        for (values, message) in [
            (vec![client("a"), client("A"), client(" a"), gateway("native"), gateway("composio")], None),
            (vec![json!("read"), json!("read"), client("reader")], None),
            (vec![workflow("x", json!(null)), workflow("y", json!("1"))], None),
            (vec![client("read")], Some("`read` is reserved")),
            (vec![client(" BaSh ")], Some("reserved")),
            (vec![json!({"type": "platform", "op": "ls"})], Some("`ls` is reserved")),
            (vec![named("Grep")], Some("`Grep` is reserved")),
            (vec![client("a"), json!({"type": "platform", "op": "a"})], Some("Tool name `a` is configured twice")),
            (vec![json!({"type": "platform", "op": "x"}), json!({"type": "platform", "op": "x"})], Some("Platform op `x`")),
            (vec![workflow("x", json!(null)), workflow("y", json!(null))], Some("Workflow `workflow.variant.a`")),
            (vec![named("x"), named("y")], Some("Gateway tool `tools.native.github.CREATE_AN_ISSUE.main`")),
            (vec![gateway("native"), named("y")], Some("Gateway tool")),
        ] {
            let configs = coerce_list(&values, OnError::Raise).unwrap().configs;
            match (check_names(&configs), message) {
                (Ok(()), None) => {}
                (Err(error), Some(message)) => assert!(error.to_string().contains(message), "{error}"),
                (result, _) => panic!("{values:?}: {result:?}"),
            }
        }
    }
}
