//! Which ops there are. The entries are data; `check` says what makes one sound.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use kernel::call_ref::RESERVED_PROVIDER;
use kernel::suggest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bind::{FieldPath, Token};
use super::direct::{path_params, path_problem};
use crate::Verdict;

/// One op.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Op {
    pub op: String,
    /// Names that older configurations use.
    #[serde(default)]
    pub aliases: Vec<String>,
    pub description: String,
    pub target: OpTarget,
    /// What the route asks of a key; it is looked at before a person is.
    #[serde(default, deserialize_with = "named")]
    pub permission: Option<kernel::Permission>,
    #[serde(default)]
    pub read_only: bool,
    /// Body path to `$ctx.` token: what the run decides and the model never does.
    #[serde(default)]
    pub context_bindings: BTreeMap<String, String>,
    /// Where in the body the model's arguments go; at the root if left out.
    #[serde(default)]
    pub args_into: Option<String>,
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Whether the model may say what it is doing, for the person who approves the call.
    #[serde(default)]
    pub accepts_description: bool,
    /// The arguments with the bound fields still in.
    pub input_schema: Value,
}

fn named<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<kernel::Permission>, D::Error> {
    let name = String::deserialize(deserializer)?;
    name.parse().map(Some).map_err(|_| serde::de::Error::custom(format!("`{name}` is not a permission")))
}

/// Where an op goes.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum OpTarget {
    /// A route of the API, named without a mount.
    Endpoint { method: Method, path: String },
    /// A function behind `/tools/call`.
    Handler { handler: Handler },
}

/// A method a call may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    Get,
    Post,
    Put,
    Delete,
}

impl Method {
    /// Whether the arguments travel as a JSON body.
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put)
    }
}

/// The ops that are functions rather than routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handler {
    ReadConfig,
    CommitRevision,
    TestRun,
    QueryConnectedTools,
}

/// The name of an op at `/tools/call`.
pub fn call_ref(op: &str) -> String {
    format!("tools.{RESERVED_PROVIDER}.{op}")
}

/// The same under the op's older names.
pub fn other_refs(op: &Op) -> Vec<String> {
    op.aliases.iter().map(|alias| call_ref(alias)).collect()
}

impl Handler {
    /// Its name at `/tools/call`.
    pub fn call_ref(self) -> String {
        let op = match self {
            Self::ReadConfig => "read_config",
            Self::CommitRevision => "commit_revision",
            Self::TestRun => "test_run",
            Self::QueryConnectedTools => "query_connected_tools",
        };
        call_ref(op)
    }
}

/// An op of the reference that has nothing to act on here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent {
    pub op: &'static str,
    pub reason: &'static str,
}

/// The ops that Toolyard does not have.
pub const ABSENT: [Absent; 3] = [
    Absent { op: "query_spans", reason: "Toolyard keeps no spans" },
    Absent { op: "annotate_trace", reason: "Toolyard keeps no traces" },
    Absent { op: "rename_session", reason: "Toolyard keeps no sessions" },
];

/// Why a name is not an op.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownOp {
    #[error("Platform op `{op}` is not offered here: {reason}.")]
    NotOffered { op: &'static str, reason: &'static str },
    #[error("Unknown platform op `{op}`.{} Known: {}.", suggest::did_you_mean(op, available.iter().copied()), available.join(", "))]
    Unknown { op: String, available: Vec<&'static str> },
}

impl Op {
    /// What happens if nobody decided: reads run, everything else asks.
    pub fn default_permission(&self) -> Verdict {
        if self.read_only { Verdict::Allow } else { Verdict::Ask }
    }

    /// Whether a run has to fill in values that the model never chooses.
    pub fn needs_context(&self) -> bool {
        !self.context_bindings.is_empty()
    }

    /// How long the op may take, where it says so itself.
    pub fn time_limit(&self) -> Option<Duration> {
        self.timeout_ms.map(Duration::from_millis)
    }

    /// Arguments that are for the reader of the call and never sent.
    pub fn ephemeral_args(&self) -> &'static [&'static str] {
        if self.accepts_description { &["description"] } else { &[] }
    }
}

static OPS: LazyLock<Vec<Op>> = LazyLock::new(|| serde_json::from_str(include_str!("ops.json")).expect("ops.json is read in every test"));

/// Every op.
pub fn all() -> &'static [Op] {
    &OPS
}

/// The op of this name, old names included.
pub fn find(name: &str) -> Option<&'static Op> {
    all().iter().find(|op| op.op == name || op.aliases.iter().any(|alias| alias == name))
}

/// The op of this name, or why there is none.
pub fn lookup(name: &str) -> Result<&'static Op, UnknownOp> {
    find(name).ok_or_else(|| match ABSENT.iter().find(|absent| absent.op == name) {
        Some(Absent { op, reason }) => UnknownOp::NotOffered { op, reason },
        None => UnknownOp::Unknown { op: name.to_owned(), available: all().iter().map(|op| op.op.as_str()).collect() },
    })
}

/// Whether every op is sound; the error names those that are not.
pub fn check_all() -> Result<(), String> {
    let problems: Vec<String> =
        all().iter().flat_map(|op| check(op).into_iter().map(|problem| format!("op `{}`: {problem}", op.op))).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

/// What is wrong with an op; nothing for a sound one.
pub fn check(op: &Op) -> Vec<String> {
    let mut problems = Vec::new();
    if op.input_schema["type"] != "object" || !op.input_schema["properties"].is_object() {
        problems.push("the schema is not an object with properties".to_owned());
    }
    check_closed(&op.input_schema, "arguments", &mut problems);
    check_args_into(op, &mut problems);
    check_bindings(op, &mut problems);
    check_path(op, &mut problems);
    if op.accepts_description && declared(&op.input_schema, &["description"]) {
        problems.push("the op has a `description` of its own, so it cannot take an ephemeral one".to_owned());
    }
    problems
}

/// An object either names its fields and allows no others, or says that it is free.
fn check_closed(schema: &Value, at: &str, problems: &mut Vec<String>) {
    let open = &schema["additionalProperties"];
    let is_object = schema["type"] == "object" || schema["type"].as_array().is_some_and(|types| types.iter().any(|one| one == "object"));
    match schema.get("properties").and_then(Value::as_object) {
        Some(_) if open != false => problems.push(format!("`{at}` is not closed")),
        None if is_object && open != true => problems.push(format!("`{at}` neither names its fields nor says that it is free")),
        _ => {}
    }
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        check_closed(child, &format!("{at}.{name}"), problems);
    }
    check_closed_parts(schema, at, problems);
}

fn check_closed_parts(schema: &Value, at: &str, problems: &mut Vec<String>) {
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for child in schema[keyword].as_array().into_iter().flatten() {
            check_closed(child, at, problems);
        }
    }
    if let Some(items) = schema.get("items") {
        check_closed(items, &format!("{at}[]"), problems);
    }
}

fn check_args_into(op: &Op, problems: &mut Vec<String>) {
    let Some(into) = &op.args_into else { return };
    if FieldPath::parse(into).is_none() {
        problems.push(format!("args_into `{into}` is not a field path"));
    }
    if matches!(op.target, OpTarget::Handler { .. }) {
        problems.push("a handler takes its arguments as they are, without args_into".to_owned());
    }
}

fn check_bindings(op: &Op, problems: &mut Vec<String>) {
    for (name, token) in &op.context_bindings {
        if Token::parse(token).is_none() {
            problems.push(format!("binding `{name}` has the token `{token}`, which is not `$ctx.` and a path"));
        }
        match FieldPath::parse(name) {
            None => problems.push(format!("binding `{name}` is not a field path")),
            Some(path) if !creatable(op, &path) => problems.push(format!("binding `{name}` has no place in the schema")),
            Some(_) => {}
        }
        if op.context_bindings.keys().any(|other| other.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.'))) {
            problems.push(format!("binding `{name}` holds another binding"));
        }
    }
}

/// A binding beside the arguments makes its own place. One inside them may only pass through objects.
fn creatable(op: &Op, path: &FieldPath) -> bool {
    let Some(inside) = path.within(op.args_into.as_deref()) else { return op.args_into.is_some() };
    let mut schema = &op.input_schema;
    for segment in inside.segments() {
        if schema["type"] != "object" {
            return false;
        }
        match schema["properties"].get(segment) {
            Some(child) => schema = child,
            None => return true,
        }
    }
    true
}

fn check_path(op: &Op, problems: &mut Vec<String>) {
    let OpTarget::Endpoint { path, .. } = &op.target else { return };
    if op.permission.is_none() {
        problems.push("the route's permission is not named".to_owned());
    }
    if path.starts_with("/api/") {
        problems.push(format!("path `{path}` names a mount"));
    }
    if let Some(problem) = path_problem(&path.replace(['{', '}'], "")) {
        problems.push(format!("path `{path}` {problem}"));
    }
    let Some(params) = path_params(path) else {
        problems.push(format!("path `{path}` has a broken parameter"));
        return;
    };
    for param in params {
        if !op.context_bindings.contains_key(param) && !is_required_argument(op, param) {
            problems.push(format!("path parameter `{param}` is neither bound nor a required argument"));
        }
    }
}

fn is_required_argument(op: &Op, param: &str) -> bool {
    let Some(inside) = FieldPath::parse(param).and_then(|path| path.within(op.args_into.as_deref())) else { return false };
    let segments: Vec<&str> = inside.segments().collect();
    let (Some(first), true) = (segments.first(), declared(&op.input_schema, &segments)) else { return false };
    op.input_schema["required"].as_array().is_some_and(|required| required.iter().any(|name| name == first))
}

fn declared(schema: &Value, segments: &[&str]) -> bool {
    segments.iter().try_fold(schema, |node, segment| node["properties"].get(segment)).is_some()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn every_op_is_sound_and_has_its_own_names() {
        let mut names = HashSet::new();
        for op in all() {
            assert_eq!(check(op), [] as [String; 0], "{}", op.op);
            for name in op.aliases.iter().chain([&op.op]) {
                assert!(names.insert(name.as_str()), "{name} twice");
            }
            if let OpTarget::Handler { handler } = op.target {
                assert_eq!(handler.call_ref(), format!("tools.agenta.{}", op.op));
            }
        }
    }

    #[test]
    fn names_of_both_generations_are_found() {
        for (old, new) in [
            ("find_capabilities", "discover_tools"),
            ("find_triggers", "discover_triggers"),
            ("create_trigger", "create_subscription"),
            ("list_triggers", "list_subscriptions"),
            ("delete_trigger", "remove_subscription"),
            ("create_cron", "create_schedule"),
            ("list_crons", "list_schedules"),
            ("delete_cron", "remove_schedule"),
            ("test_run", "test_run"),
            ("gateway.search", "query_connected_tools"),
        ] {
            assert_eq!(find(old).unwrap().op, new);
        }
        let absent = lookup("query_spans").unwrap_err().to_string();
        assert_eq!(absent, "Platform op `query_spans` is not offered here: Toolyard keeps no spans.");
        let unknown = lookup("create_shedule").unwrap_err().to_string();
        assert!(
            unknown.starts_with("Unknown platform op `create_shedule`. Did you mean `create_schedule`? Known: discover_tools, "),
            "{unknown}"
        );
    }

    #[test]
    fn reads_run_and_mutations_ask() {
        for op in all() {
            let reads = ["discover_", "query_", "list_", "read_"].iter().any(|start| op.op.starts_with(start));
            assert_eq!(op.default_permission(), if reads { Verdict::Allow } else { Verdict::Ask }, "{}", op.op);
        }
    }

    #[test]
    fn an_unsound_op_is_told_why() {
        let sound = json!({"op": "x", "description": "", "target": {"method": "POST", "path": "/x/{id}"},
            "input_schema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"], "additionalProperties": false}});
        let cases = [
            ("/target/path", json!("x/{id}"), "path `x/{id}` does not start with exactly one `/`"),
            ("/target/path", json!("//x/{id}"), "path `//x/{id}` does not start with exactly one `/`"),
            ("/target/path", json!("/api/x/{id}"), "path `/api/x/{id}` names a mount"),
            ("/target/path", json!("/x/{id"), "path `/x/{id` has a broken parameter"),
            ("/target/path", json!("/x/{other}"), "path parameter `other` is neither bound nor a required argument"),
            ("/input_schema/required", json!([]), "path parameter `id` is neither bound nor a required argument"),
            ("/input_schema/additionalProperties", json!(true), "`arguments` is not closed"),
            ("/input_schema/properties/m", json!({"type": "object"}), "`arguments.m` neither names its fields nor says that it is free"),
            ("/context_bindings", json!({"a..b": "$ctx.run.kind"}), "binding `a..b` is not a field path"),
            ("/context_bindings", json!({"id.x": "$ctx.run.kind"}), "binding `id.x` has no place in the schema"),
            ("/context_bindings", json!({"a": "run.kind"}), "binding `a` has the token `run.kind`, which is not `$ctx.` and a path"),
            ("/context_bindings", json!({"a": "$ctx.b", "a.c": "$ctx.d"}), "binding `a` holds another binding"),
            ("/read_only", json!(true), "the route's permission is not named"),
            ("/args_into", json!("a."), "args_into `a.` is not a field path"),
        ];
        for (pointer, value, expected) in cases {
            let mut op = sound.clone();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            op.pointer_mut(parent).unwrap()[key] = value;
            let problems = check(&serde_json::from_value(op).unwrap());
            assert!(problems.iter().any(|problem| problem == expected), "{pointer}: {problems:?}");
        }
    }

    #[test]
    fn an_op_is_a_route_or_a_handler_and_not_both() {
        for target in [json!({"method": "POST", "path": "/x", "handler": "test_run"}), json!({"handler": "other"}), json!({"path": "/x"})] {
            assert!(serde_json::from_value::<OpTarget>(target.clone()).is_err(), "{target}");
        }
    }
}
