//! What the run decides and the model does not: bound fields, and words that are only for the reader.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::catalog::Op;

type Arguments = Map<String, Value>;

const RESERVED: [&str; 3] = ["__proto__", "constructor", "prototype"];
const EPHEMERAL: &str = "x-ag-ephemeral";

/// Whether a key may be written into a body. Runners in JavaScript would read the others as something else.
pub(super) fn is_plain_key(key: &str) -> bool {
    !key.is_empty() && !RESERVED.contains(&key)
}

/// A field of a body, `a.b.c`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath(Vec<String>);

impl FieldPath {
    /// None if a segment is empty or reserved.
    pub fn parse(path: &str) -> Option<Self> {
        path.split('.').map(|segment| is_plain_key(segment).then(|| segment.to_owned())).collect::<Option<_>>().map(Self)
    }

    pub(super) fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// The same field seen from inside `parent`; None if it is elsewhere.
    pub(super) fn within(&self, parent: Option<&str>) -> Option<Self> {
        let Some(parent) = parent else { return Some(self.clone()) };
        let parent = Self::parse(parent)?;
        self.0.strip_prefix(parent.0.as_slice()).filter(|rest| !rest.is_empty()).map(|rest| Self(rest.to_vec()))
    }

    pub(super) fn get<'a>(&self, body: &'a Arguments) -> Option<&'a Value> {
        let (first, rest) = self.0.split_first()?;
        rest.iter().try_fold(body.get(first)?, |node, segment| node.as_object()?.get(segment))
    }

    /// Sets the field; whatever stands in the way and is no object is replaced.
    pub(super) fn set(&self, body: &mut Arguments, value: Value) {
        set_at(body, &self.0, value);
    }

    pub(super) fn remove(&self, body: &mut Arguments) {
        let Some((last, parents)) = self.0.split_last() else { return };
        let parent = parents.iter().try_fold(body, |node, segment| node.get_mut(segment)?.as_object_mut());
        parent.and_then(|parent| parent.shift_remove(last));
    }

    /// The part of the path that the schema does not show, up to and with its first segment.
    fn hidden_root(&self, schema: &Value) -> Self {
        let shown = self.0.iter().scan(schema, |node, segment| {
            *node = node["properties"].get(segment)?;
            Some(())
        });
        let length = (shown.count() + 1).min(self.0.len());
        Self(self.0[..length].to_vec())
    }
}

fn set_at(body: &mut Arguments, path: &[String], value: Value) {
    match path {
        [] => {}
        [last] => {
            body.insert(last.clone(), value);
        }
        [first, rest @ ..] => match body.entry(first.as_str()).or_insert(Value::Null) {
            Value::Object(child) => set_at(child, rest, value),
            other => {
                let mut child = Map::new();
                set_at(&mut child, rest, value);
                *other = Value::Object(child);
            }
        },
    }
}

/// A value of the run, `$ctx.a.b`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token(FieldPath);

impl Token {
    pub(super) fn parse(token: &str) -> Option<Self> {
        FieldPath::parse(token.strip_prefix("$ctx.")?).map(Self)
    }

    fn read<'a>(&self, context: &'a Value) -> Option<&'a Value> {
        self.0.get(context.as_object()?).filter(|value| !value.is_null())
    }
}

/// Why a binding could not be filled. Nothing is sent then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    #[error("missing run-context value for binding `{binding}` (`{token}`) for tool `{tool}`")]
    Missing { tool: String, binding: String, token: String },
    #[error("malformed run-context token `{token}` for binding `{binding}` for tool `{tool}`")]
    Token { tool: String, binding: String, token: String },
    #[error("binding `{binding}` for tool `{tool}` has a path segment that is empty or reserved")]
    Path { tool: String, binding: String },
}

/// Puts the run's values in place of whatever stands at the bound paths.
pub fn apply_bindings(
    tool: &str,
    mut body: Arguments,
    bindings: &BTreeMap<String, String>,
    context: &Value,
) -> Result<Arguments, BindError> {
    for (binding, token) in bindings {
        let (tool, binding, token) = (tool.to_owned(), binding.to_owned(), token.to_owned());
        let Some(path) = FieldPath::parse(&binding) else { return Err(BindError::Path { tool, binding }) };
        let Some(source) = Token::parse(&token) else { return Err(BindError::Token { tool, binding, token }) };
        let Some(value) = source.read(context) else { return Err(BindError::Missing { tool, binding, token }) };
        path.remove(&mut body);
        path.set(&mut body, value.clone());
    }
    Ok(body)
}

/// The values of the run that an op is bound to, by their tokens.
pub fn bound_values(op: &Op, context: &Value) -> Arguments {
    let read = |token: &String| Some((token.clone(), Token::parse(token)?.read(context)?.clone()));
    op.context_bindings.values().filter_map(read).collect()
}

/// Deletes from the arguments every subtree that a binding owns, so that nothing beside a bound leaf is the model's either.
pub(super) fn clear_bound(arguments: &mut Arguments, bindings: &BTreeMap<String, String>, args_into: Option<&str>, schema: &Value) {
    for path in bindings.keys().filter_map(|binding| FieldPath::parse(binding)?.within(args_into)) {
        let root = if schema.is_object() { path.hidden_root(schema) } else { path };
        root.remove(arguments);
    }
}

/// The arguments of a handler op as its function sees them, when the run is on this side.
pub fn bind_arguments(op: &Op, arguments: Arguments, context: &Value) -> Result<Arguments, BindError> {
    let schema = visible_schema(op);
    let mut arguments = strip_ephemeral(arguments, op.ephemeral_args(), &schema).arguments;
    clear_bound(&mut arguments, &op.context_bindings, op.args_into.as_deref(), &schema);
    apply_bindings(&op.op, arguments, &op.context_bindings, context)
}

/// Arguments without what was only for the reader, and that.
#[derive(Clone, Debug, PartialEq)]
pub struct Stripped {
    pub arguments: Arguments,
    pub ephemeral: Arguments,
}

/// Takes the ephemeral arguments out: at the top, or one level down where the schema shows that the field is not the payload's own.
pub fn strip_ephemeral<S: AsRef<str>>(mut arguments: Arguments, names: &[S], schema: &Value) -> Stripped {
    let mut ephemeral = Map::new();
    for name in names.iter().map(AsRef::as_ref) {
        if let Some(value) = arguments.shift_remove(name) {
            ephemeral.insert(name.to_owned(), value);
        }
        for (payload, value) in &mut arguments {
            let Some(fields) = schema["properties"][payload.as_str()]["properties"].as_object() else { continue };
            let is_flagged = fields.get(name).is_some_and(|field| field[EPHEMERAL] == true);
            let is_stray = !fields.contains_key(name) && !ephemeral.contains_key(name);
            if !is_flagged && !is_stray {
                continue;
            }
            if let Some(lifted) = value.as_object_mut().and_then(|fields| fields.shift_remove(name)) {
                ephemeral.entry(name).or_insert(lifted);
            }
        }
    }
    Stripped { arguments, ephemeral }
}

/// The schema that the model sees: without bound fields, with the ephemeral description of ops that take one.
pub fn visible_schema(op: &Op) -> Value {
    let mut schema = op.input_schema.clone();
    for path in op.context_bindings.keys().filter_map(|binding| FieldPath::parse(binding)?.within(op.args_into.as_deref())) {
        hide(&mut schema, &path.0);
    }
    if op.accepts_description {
        allow_description(&mut schema);
    }
    schema
}

fn hide(schema: &mut Value, path: &[String]) {
    let Some((name, rest)) = path.split_first() else { return };
    let Some(fields) = fields_mut(schema) else { return };
    if let Some(child) = fields.get_mut(name).filter(|_| !rest.is_empty()) {
        hide(child, rest);
        if child["properties"].as_object().is_none_or(|left| !left.is_empty()) {
            return;
        }
    }
    fields.shift_remove(name);
    drop_required(schema, name);
}

fn fields_mut(schema: &mut Value) -> Option<&mut Map<String, Value>> {
    schema.get_mut("properties")?.as_object_mut()
}

fn drop_required(schema: &mut Value, name: &str) {
    let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) else { return };
    required.retain(|one| one != name);
    if required.is_empty() {
        schema.as_object_mut().map(|schema| schema.shift_remove("required"));
    }
}

/// Models put the description next to the payload or inside it, so both places are open to it.
fn allow_description(schema: &mut Value) {
    let Some(fields) = fields_mut(schema) else { return };
    for payload in fields.values_mut().filter(|payload| payload["additionalProperties"] == false) {
        if let Some(inner) = fields_mut(payload) {
            inner.entry("description").or_insert_with(description);
        }
    }
    fields.entry("description").or_insert_with(description);
}

fn description() -> Value {
    json!({
        "type": "string",
        "maxLength": 500,
        "description": "What this call does and why, in a sentence, for the person who may have to approve it. It is not stored.",
        EPHEMERAL: true,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{all, find};
    use super::*;

    fn map(value: Value) -> Arguments {
        value.as_object().unwrap().clone()
    }

    fn fields(schema: &Value, pointer: &str) -> Vec<String> {
        schema.pointer(&format!("{pointer}/properties")).unwrap().as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn bound_fields_are_not_shown() {
        let cases = [
            ("create_schedule", "", vec!["name", "description", "data"]),
            ("create_schedule", "/properties/data", vec!["event_key", "schedule", "start_time", "end_time", "inputs_fields"]),
            ("rename_agent", "", vec!["name", "description"]),
            ("test_run", "", vec!["inputs", "delta", "expectations", "description"]),
            ("test_run", "/properties/delta", vec!["set", "remove", "description"]),
            ("read_config", "/properties/target", vec!["path", "description"]),
            ("commit_revision", "/properties/workflow_revision", vec!["base_revision_id", "message", "delta", "description"]),
            ("list_connections", "", vec![]),
        ];
        for (name, pointer, expected) in cases {
            assert_eq!(fields(&visible_schema(find(name).unwrap()), pointer), expected, "{name} {pointer}");
        }
    }

    #[test]
    fn required_names_only_what_is_shown() {
        for (name, pointer, expected) in [
            ("create_schedule", "/properties/data/required", Some(json!(["event_key", "schedule"]))),
            ("test_run", "/required", Some(json!(["inputs"]))),
            ("read_config", "/properties/target/required", None),
        ] {
            assert_eq!(visible_schema(find(name).unwrap()).pointer(pointer), expected.as_ref(), "{name}");
        }
        for op in all().iter().filter(|op| op.accepts_description) {
            let shown = visible_schema(op);
            assert_eq!(shown["properties"]["description"]["maxLength"], 500);
            assert_eq!(shown["properties"]["description"][EPHEMERAL], true);
        }
    }

    #[test]
    fn bindings_replace_what_the_model_said() {
        let context = json!({"workflow": {"variant": {"id": "v1"}, "is_draft": false, "nothing": null}});
        let ok = [
            (json!({}), "a.b", "$ctx.workflow.variant.id", json!({"a": {"b": "v1"}})),
            (json!({"a": {"b": {"x": 1}, "c": 2}}), "a.b", "$ctx.workflow.variant.id", json!({"a": {"c": 2, "b": "v1"}})),
            (json!({"a": "text"}), "a.b", "$ctx.workflow.is_draft", json!({"a": {"b": false}})),
        ];
        for (body, path, token, expected) in ok {
            let bindings = BTreeMap::from([(path.to_owned(), token.to_owned())]);
            assert_eq!(Value::Object(apply_bindings("t", map(body), &bindings, &context).unwrap()), expected, "{path}");
        }
        let refused = [
            ("a", "$ctx.workflow.nothing", "missing run-context value for binding `a` (`$ctx.workflow.nothing`) for tool `t`"),
            ("a", "$ctx.session.id", "missing run-context value for binding `a` (`$ctx.session.id`) for tool `t`"),
            ("a", "$ctx.", "malformed run-context token `$ctx.` for binding `a` for tool `t`"),
            ("a", "workflow.variant.id", "malformed run-context token `workflow.variant.id` for binding `a` for tool `t`"),
            ("a", "$ctx.workflow.constructor", "malformed run-context token `$ctx.workflow.constructor` for binding `a` for tool `t`"),
            ("a..b", "$ctx.workflow.is_draft", "binding `a..b` for tool `t` has a path segment that is empty or reserved"),
            ("__proto__.b", "$ctx.workflow.is_draft", "binding `__proto__.b` for tool `t` has a path segment that is empty or reserved"),
        ];
        for (path, token, expected) in refused {
            let bindings = BTreeMap::from([(path.to_owned(), token.to_owned())]);
            assert_eq!(apply_bindings("t", Map::new(), &bindings, &context).unwrap_err().to_string(), expected);
            assert!(apply_bindings("t", Map::new(), &bindings, &Value::Null).is_err());
        }
    }

    #[test]
    fn nothing_beside_a_bound_leaf_survives() {
        let context = json!({"workflow": {"variant": {"id": "v1"}}});
        let said = map(json!({"inputs": {"messages": []}, "target": {"workflow_variant_id": "other", "extra": 1}, "description": "why"}));
        let bound = bind_arguments(find("test_run").unwrap(), said, &context).unwrap();
        assert_eq!(Value::Object(bound), json!({"inputs": {"messages": []}, "target": {"workflow_variant_id": "v1"}}));
    }

    #[test]
    fn ephemeral_words_are_lifted_where_they_are_not_data() {
        let schema = json!({"properties": {
            "own": {"properties": {"description": {"type": "string"}}},
            "flagged": {"properties": {"description": {EPHEMERAL: true}}},
            "silent": {"properties": {"a": {}}},
            "free": {"type": "object"},
        }});
        let cases = [
            (json!({"description": "d", "own": {"description": "o"}}), json!({"own": {"description": "o"}}), json!({"description": "d"})),
            (json!({"flagged": {"description": "d", "a": 1}}), json!({"flagged": {"a": 1}}), json!({"description": "d"})),
            (json!({"silent": {"description": "d"}}), json!({"silent": {}}), json!({"description": "d"})),
            (json!({"free": {"description": "d"}}), json!({"free": {"description": "d"}}), json!({})),
            (json!({"unknown": {"description": "d"}}), json!({"unknown": {"description": "d"}}), json!({})),
            (json!({"description": "d", "flagged": {"description": "e"}}), json!({"flagged": {}}), json!({"description": "d"})),
            (
                json!({"description": "d", "silent": {"description": "e"}}),
                json!({"silent": {"description": "e"}}),
                json!({"description": "d"}),
            ),
        ];
        for (arguments, kept, lifted) in cases {
            let expected = Stripped { arguments: map(kept), ephemeral: map(lifted) };
            assert_eq!(strip_ephemeral(map(arguments.clone()), &["description"], &schema), expected, "{arguments}");
        }
    }
}
