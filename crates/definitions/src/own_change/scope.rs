//! What an agent may change about itself: its own section, without what decides how freely it acts.

use serde_json::{Map, Value};

use super::grants;

const AGENT: &str = "/parameters/agent";
/// An object with this member takes the rest of its members from elsewhere.
const EMBED: &str = "@ag.embed";

/// The parts of an agent that are only partly its own, and what in them is not.
const PROTECTED: [(&str, &[&str]); 3] =
    [("harness", &["kind", "permissions", EMBED]), ("runner", &["permissions", EMBED]), ("sandbox", &["kind", "permissions", EMBED])];

/// Members of `parameters` that a section for the agent would take the place of: an embed, or the layout without such a section.
const REPLACED_BY_AGENT: [&str; 7] = [EMBED, "tools", "mcps", "harness", "runner", "sandbox", "prompt"];

/// Members that come from elsewhere in an agent that is an embed, unless they are written beside it.
const GUARDED: [&str; 5] = ["harness", "runner", "sandbox", "tools", "mcps"];

/// A change that needs a person; `place` is the JSON Pointer of what would change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ScopeError {
    #[error(
        "`{place}` is not yours to change: an agent's commit may touch only `parameters.agent`, without harness.kind, \
         harness.permissions, runner.permissions, sandbox.kind and sandbox.permissions. Leave it as it is and ask a person to change it."
    )]
    Outside { place: String },
    #[error("`{place}` would take the place of settings that come from elsewhere. Leave it as it is and ask a person to change it.")]
    Replaces { place: String },
    #[error("`{place}` must be {expected}. Read it again and change only what is inside it.")]
    Shape { place: String, expected: &'static str },
    #[error("`{place}` is or holds an embed, which could bring anything. Write it out without `@ag.embed` or `@{{{{...}}}}`.")]
    Embed { place: String },
    #[error("`{place}` is a platform tool. An agent may remove one, but only a person can add or change it.")]
    PlatformTool { place: String },
    #[error("{reason}")]
    Permission { place: String, reason: String },
}

impl ScopeError {
    /// A name for the failure that stays the same across releases.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Outside { .. } | Self::Replaces { .. } => "outside_scope",
            Self::Shape { .. } => "invalid_shape",
            Self::Embed { .. } => "embed_not_committable",
            Self::PlatformTool { .. } => "platform_tool_not_committable",
            Self::Permission { .. } => "permission_not_committable",
        }
    }

    /// The JSON Pointer of what would change.
    pub(super) fn place(&self) -> &str {
        match self {
            Self::Outside { place }
            | Self::Replaces { place }
            | Self::Shape { place, .. }
            | Self::Embed { place }
            | Self::PlatformTool { place }
            | Self::Permission { place, .. } => place,
        }
    }
}

/// Refuses what an agent may not do to itself, whichever way the change was written.
pub(super) fn check(before: &Value, after: &Value) -> Result<(), ScopeError> {
    if let Some(place) = difference(&without_agent(before), &without_agent(after), "") {
        return Err(ScopeError::Outside { place });
    }
    check_section(before, after)?;
    let nothing = Value::Null;
    let (before, after) = (before.pointer(AGENT).unwrap_or(&nothing), after.pointer(AGENT).unwrap_or(&nothing));
    check_embedding(before, after)?;
    PROTECTED.into_iter().try_for_each(|(part, members)| check_part(before, after, part, members))?;
    grants::check(before, after, AGENT)
}

/// The data without what the agent owns; empty and missing parameters are the same.
fn without_agent(data: &Value) -> Value {
    let mut rest = data.as_object().cloned().unwrap_or_default();
    if let Some(Value::Object(parameters)) = rest.get_mut("parameters") {
        parameters.shift_remove("agent");
    }
    let empty = |parameters: &Value| parameters.is_null() || parameters.as_object().is_some_and(Map::is_empty);
    if rest.get("parameters").is_some_and(empty) {
        rest.shift_remove("parameters");
    }
    Value::Object(rest)
}

/// The first place where two values differ.
fn difference(before: &Value, after: &Value, place: &str) -> Option<String> {
    match (before, after) {
        _ if before == after => None,
        (Value::Object(old), Value::Object(new)) => old.keys().chain(new.keys()).find_map(|name| {
            let place = format!("{place}/{}", escaped(name));
            match (old.get(name), new.get(name)) {
                (Some(old), Some(new)) => difference(old, new, &place),
                _ => Some(place),
            }
        }),
        _ => Some(place.to_owned()),
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The agent's section stays an object, and is made only where nothing else plays its part.
fn check_section(before: &Value, after: &Value) -> Result<(), ScopeError> {
    let (old, new) = (before.pointer(AGENT), after.pointer(AGENT));
    if old == new {
        return Ok(());
    }
    if !new.is_some_and(Value::is_object) {
        return Err(ScopeError::Shape { place: AGENT.to_owned(), expected: "an object" });
    }
    let replaced = |name: &str| before.get("parameters").and_then(|parameters| set(parameters, name)).is_some();
    let is_new = old.is_none_or(|old| !old.is_object());
    if is_new && REPLACED_BY_AGENT.into_iter().any(replaced) {
        return Err(ScopeError::Replaces { place: AGENT.to_owned() });
    }
    Ok(())
}

fn check_embedding(before: &Value, after: &Value) -> Result<(), ScopeError> {
    let embed = before.get(EMBED);
    if embed != after.get(EMBED) {
        return Err(ScopeError::Embed { place: format!("{AGENT}/{EMBED}") });
    }
    let moved = |name: &&str| before.get(*name).is_some() != after.get(*name).is_some();
    match GUARDED.iter().find(|name| embed.is_some() && moved(name)) {
        Some(name) => Err(ScopeError::Replaces { place: format!("{AGENT}/{name}") }),
        None => Ok(()),
    }
}

fn check_part(before: &Value, after: &Value, part: &str, members: &[&str]) -> Result<(), ScopeError> {
    let (old, new) = (set(before, part), set(after, part));
    if old == new {
        return Ok(());
    }
    let place = format!("{AGENT}/{part}");
    if old.is_some_and(|old| !old.is_object()) {
        return Err(ScopeError::Outside { place });
    }
    if new.is_some_and(|new| !new.is_object()) {
        return Err(ScopeError::Shape { place, expected: "an object" });
    }
    let member = |part: Option<&Value>, name: &str| part.and_then(|part| set(part, name)).cloned();
    match members.iter().find(|name| member(old, name) != member(new, name)) {
        Some(&EMBED) => Err(ScopeError::Embed { place: format!("{place}/{EMBED}") }),
        Some(name) => Err(ScopeError::Outside { place: format!("{place}/{name}") }),
        None => Ok(()),
    }
}

/// A member that says something: null says as little as nothing.
fn set<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    value.get(name).filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn data() -> Value {
        json!({
            "uri": "agenta:agent:v0",
            "parameters": {"other": {"a/b": 1}, "agent": {
                "instructions": {"agents_md": "Be kind."},
                "llm": {"model": "a"},
                "harness": {"kind": "pi", "permissions": {"deny": ["Bash"]}, "extras": {"x": 1}},
                "runner": {"kind": "local", "permissions": {"default": "ask"}},
                "sandbox": {"kind": "local"},
            }},
        })
    }

    fn with(pointer: &str, value: Value) -> Value {
        let mut data = data();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        data.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(name.replace("~1", "/"), value);
        data
    }

    fn without(pointer: &str) -> Value {
        let mut data = data();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        data.pointer_mut(parent).unwrap().as_object_mut().unwrap().shift_remove(name).unwrap();
        data
    }

    #[test]
    fn an_agent_owns_its_section() {
        for after in [
            data(),
            with("/parameters/agent/instructions/agents_md", json!("Be brief.")),
            with("/parameters/agent/llm", json!({"model": "b", "provider": "p"})),
            with("/parameters/agent/anything", json!([1])),
            with("/parameters/agent/harness/extras", json!(null)),
            with("/parameters/agent/runner/kind", json!("remote")),
            with("/parameters/agent/skills", json!([{"@ag.embed": {"@ag.references": {"workflow": {"slug": "skill"}}}}])),
            with("/parameters/agent/sandbox/permissions", json!(null)),
            without("/parameters/agent/llm"),
        ] {
            assert_eq!(check(&data(), &after), Ok(()), "{after}");
        }
        assert_eq!(check(&json!({"uri": "x"}), &json!({"uri": "x", "parameters": {"agent": {"llm": {}}}})), Ok(()));
        assert_eq!(check(&json!({"parameters": {"agent": {}}}), &json!({"parameters": {"agent": {"harness": {"extras": {}}}}})), Ok(()));
    }

    #[test]
    fn everything_else_needs_a_person() {
        let embed = json!({"@ag.references": {"workflow": {"slug": "w"}}});
        for (after, code, place) in [
            (with("/uri", json!("other")), "outside_scope", "/uri"),
            (with("/url", json!("https://a")), "outside_scope", "/url"),
            (with("/parameters/other/a~1b", json!(2)), "outside_scope", "/parameters/other/a~1b"),
            (with("/parameters/tools", json!([])), "outside_scope", "/parameters/tools"),
            (with("/parameters/@ag.embed", embed.clone()), "outside_scope", "/parameters/@ag.embed"),
            (without("/parameters"), "outside_scope", "/parameters"),
            (without("/parameters/agent"), "invalid_shape", "/parameters/agent"),
            (with("/parameters/agent", json!("@{{workflow.slug=w}}")), "invalid_shape", "/parameters/agent"),
            (with("/parameters/agent/@ag.embed", embed.clone()), "embed_not_committable", "/parameters/agent/@ag.embed"),
            (with("/parameters/agent/harness/kind", json!("claude")), "outside_scope", "/parameters/agent/harness/kind"),
            (with("/parameters/agent/harness/permissions", json!({})), "outside_scope", "/parameters/agent/harness/permissions"),
            (with("/parameters/agent/harness/@ag.embed", embed), "embed_not_committable", "/parameters/agent/harness/@ag.embed"),
            (with("/parameters/agent/harness", json!("claude")), "invalid_shape", "/parameters/agent/harness"),
            (without("/parameters/agent/harness"), "outside_scope", "/parameters/agent/harness/kind"),
            (
                with("/parameters/agent/runner/permissions", json!({"default": "allow"})),
                "outside_scope",
                "/parameters/agent/runner/permissions",
            ),
            (without("/parameters/agent/runner/permissions"), "outside_scope", "/parameters/agent/runner/permissions"),
            (with("/parameters/agent/sandbox/kind", json!("remote")), "outside_scope", "/parameters/agent/sandbox/kind"),
            (with("/parameters/agent/sandbox/permissions", json!({})), "outside_scope", "/parameters/agent/sandbox/permissions"),
        ] {
            let error = check(&data(), &after).unwrap_err();
            assert_eq!((error.code(), error.place()), (code, place), "{error}");
        }
    }

    #[test]
    fn what_comes_from_elsewhere_is_not_replaced() {
        let embed = json!({"@ag.references": {"workflow": {"slug": "w"}}});
        let agent = |agent: Value| json!({"parameters": {"agent": agent}});
        for (before, after, place) in [
            (json!({"parameters": {"@ag.embed": embed}}), json!({"parameters": {"@ag.embed": embed, "agent": {}}}), "/parameters/agent"),
            (json!({"parameters": {"tools": []}}), json!({"parameters": {"tools": [], "agent": {}}}), "/parameters/agent"),
            (agent(json!({"@ag.embed": embed})), agent(json!({"@ag.embed": embed, "runner": {}})), "/parameters/agent/runner"),
            (agent(json!({"@ag.embed": embed, "tools": []})), agent(json!({"@ag.embed": embed})), "/parameters/agent/tools"),
            (agent(json!({"sandbox": "local"})), agent(json!({"sandbox": {}})), "/parameters/agent/sandbox"),
        ] {
            let error = check(&before, &after).unwrap_err();
            assert_eq!((error.code(), error.place()), ("outside_scope", place), "{error}");
        }
        assert_eq!(check(&agent(json!({"@ag.embed": embed})), &agent(json!({"@ag.embed": embed, "llm": {}}))), Ok(()));
    }
}
