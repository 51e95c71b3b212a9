//! Applies operations in order, all or nothing.

use serde_json::{Map, Value};

use super::parse::{MAX_TEXT, within};
use super::target::{Entry, fields_mut, find_mut, items, key_of, kind, make, missing, not_list, position, shown};
use super::{ChangeError, ChangeProblem, Operation, Operations, Segment, TextEdit};

/// What is nested deeper could be stored but not read back.
const MAX_DEPTH: usize = 100;
/// Where counting occurrences ends.
const MAX_COUNTED: usize = 100;

impl Operations {
    /// The data with every operation applied.
    pub fn apply(&self, mut data: Value) -> Result<Value, ChangeError> {
        for (index, operation) in self.0.iter().enumerate() {
            operation.apply(&mut data).map_err(|fault| fault.at(index))?;
        }
        within("The configuration", depth(&data), MAX_DEPTH, "levels").map_err(|fault| ChangeError { index: None, fault })?;
        Ok(data)
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

impl Operation {
    fn apply(&self, data: &mut Value) -> Result<(), ChangeProblem> {
        match self {
            Self::Set { target, value } => {
                *make(data, target)? = value.clone();
                Ok(())
            }
            Self::Merge { target, value } => {
                merge(fields_mut(make(data, target)?, target, true)?, value);
                Ok(())
            }
            Self::Remove { target } => remove(data, target),
            Self::EditText { target, edits } => edit(data, target, edits),
            Self::AddItem { target, value } => add_item(data, target, value),
            Self::ReplaceItem { target, value } => replace_item(data, target, value),
            Self::RemoveItem { target } => {
                let (items, at) = entry(data, target)?;
                items.remove(at);
                Ok(())
            }
        }
    }
}

fn merge(fields: &mut Map<String, Value>, change: &Map<String, Value>) {
    for (name, value) in change {
        match (fields.get_mut(name), value) {
            (Some(Value::Object(inner)), Value::Object(change)) => merge(inner, change),
            _ => {
                fields.insert(name.clone(), value.clone());
            }
        }
    }
}

fn remove(data: &mut Value, target: &[Segment]) -> Result<(), ChangeProblem> {
    let Some((Segment::Field(name), parent)) = target.split_last() else { return Err(misplaced(target)) };
    let fields = fields_mut(find_mut(data, parent)?, parent, false)?;
    match fields.shift_remove(name) {
        Some(_) => Ok(()),
        None => Err(missing(target, fields)),
    }
}

fn edit(data: &mut Value, target: &[Segment], edits: &[TextEdit]) -> Result<(), ChangeProblem> {
    let text = match find_mut(data, target)? {
        Value::String(text) => text,
        other => return Err(ChangeProblem::NotText { place: shown(target), found: kind(other) }),
    };
    let before = text.len();
    for (edit, TextEdit { old_text, new_text }) in edits.iter().enumerate() {
        match occurrences(text, old_text) {
            0 => return Err(ChangeProblem::TextNotFound { place: shown(target), edit }),
            1 => *text = text.replacen(old_text, new_text, 1),
            count => return Err(ChangeProblem::TextAmbiguous { place: shown(target), edit, count }),
        }
    }
    if text.len() <= before { Ok(()) } else { within(&format!("`{}`", shown(target)), text.chars().count(), MAX_TEXT, "characters") }
}

/// Counts overlapping ones too: `aa` is in `aaa` twice, so it does not say which is meant. A long part that overlaps itself is not counted
/// to its last occurrence.
fn occurrences(text: &str, part: &str) -> usize {
    let step = part.chars().next().map_or(1, char::len_utf8);
    let (mut count, mut from) = (0, 0);
    while count < MAX_COUNTED
        && let Some(at) = text[from..].find(part)
    {
        count += 1;
        from += at + step;
    }
    count
}

fn add_item(data: &mut Value, target: &[Segment], item: &Value) -> Result<(), ChangeProblem> {
    let Some((Segment::Field(list), parent)) = target.split_last() else { return Err(misplaced(target)) };
    let value = make(data, target)?;
    if value.is_null() {
        *value = Value::Array(Vec::new());
    }
    let Value::Array(items) = value else { return Err(not_list(target, value)) };
    refuse_duplicate(items.iter(), list, parent, item)?;
    items.push(item.clone());
    Ok(())
}

fn replace_item(data: &mut Value, target: &[Segment], item: &Value) -> Result<(), ChangeProblem> {
    let Some((Segment::Entry(Entry { list, .. }), parent)) = target.split_last() else { return Err(misplaced(target)) };
    let (items, at) = entry(data, target)?;
    let others = items.iter().enumerate().filter(|(index, _)| *index != at).map(|(_, other)| other);
    refuse_duplicate(others, list, parent, item)?;
    items[at] = item.clone();
    Ok(())
}

fn refuse_duplicate<'a>(
    mut others: impl Iterator<Item = &'a Value>,
    list: &str,
    parent: &[Segment],
    item: &Value,
) -> Result<(), ChangeProblem> {
    let Some(key) = key_of(list, item) else { return Ok(()) };
    if !others.any(|other| key_of(list, other).as_ref() == Some(&key)) {
        return Ok(());
    }
    let taken = Segment::Entry(Entry { list: list.to_owned(), key });
    Err(ChangeProblem::Duplicate { place: shown(&[parent, &[taken]].concat()) })
}

/// The list that holds the entry, and where in it.
fn entry<'a>(data: &'a mut Value, target: &[Segment]) -> Result<(&'a mut Vec<Value>, usize), ChangeProblem> {
    let Some((Segment::Entry(Entry { list, key }), parent)) = target.split_last() else { return Err(misplaced(target)) };
    let fields = fields_mut(find_mut(data, parent)?, parent, false)?;
    let at = position(items(fields, list, target)?, list, key, target)?;
    match &mut fields[list] {
        Value::Array(items) => Ok((items, at)),
        other => Err(not_list(target, other)),
    }
}

/// Parsed operations never come here.
fn misplaced(target: &[Segment]) -> ChangeProblem {
    ChangeProblem::Invalid(format!("`{}` is not a target for this operation.", shown(target)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn data() -> Value {
        json!({"parameters": {"agent": {
            "instructions": {"agents_md": "Be kind. Be brief."},
            "llm": {"model": "a", "extras": {"x": 1}},
            "flat": "text",
            "nil": null,
            "tools": [
                "read",
                {"type": "gateway", "integration": "github", "action": "GET", "connection": "main"},
                {"type": "code", "name": "sum", "script": "a + b"},
                {"type": "client", "name": "twin"},
                {"type": "client", "name": "twin", "description": "again"}
            ],
            "skills": [{"name": "write", "files": [{"path": "a.md", "content": "old"}]}],
        }}})
    }

    fn run(operations: Value) -> Result<Value, (&'static str, String)> {
        let operations = Operations::parse(&operations).map_err(|error| (error.code(), error.to_string()))?;
        operations.apply(data()).map_err(|error| (error.code(), error.to_string()))
    }

    fn at(rest: Value) -> Value {
        let mut path = vec![json!("parameters"), json!("agent")];
        path.extend(rest.as_array().unwrap().iter().cloned());
        Value::Array(path)
    }

    fn edit_text(target: Value, old: &str, new: &str) -> Value {
        json!({"operation": "edit_text", "target": at(target), "edits": [{"old_text": old, "new_text": new}]})
    }

    fn sum() -> Value {
        json!({"list": "tools", "key": "sum"})
    }

    #[test]
    fn what_works() {
        let file = json!({"list": "files", "key": "a.md"});
        let skill = json!({"list": "skills", "key": "write"});
        for (operation, pointer, expected) in [
            (json!({"operation": "set", "target": at(json!(["llm", "model"])), "value": "b"}), "/llm/model", json!("b")),
            (json!({"operation": "set", "target": at(json!(["new", "deep", "x"])), "value": [1]}), "/new", json!({"deep": {"x": [1]}})),
            (json!({"operation": "set", "target": at(json!(["nil", "x"])), "value": null}), "/nil", json!({"x": null})),
            (json!({"operation": "set", "target": at(json!([sum(), "script"])), "value": "a"}), "/tools/2/script", json!("a")),
            (
                json!({"operation": "merge", "target": at(json!(["llm"])), "value": {"extras": {"y": null}, "model": {"b": 1}}}),
                "/llm",
                json!({"model": {"b": 1}, "extras": {"x": 1, "y": null}}),
            ),
            (json!({"operation": "merge", "target": at(json!(["runner"])), "value": {"kind": "x"}}), "/runner", json!({"kind": "x"})),
            (
                json!({"operation": "merge", "target": at(json!([sum()])), "value": {"runtime": "node"}}),
                "/tools/2",
                json!({"type": "code", "name": "sum", "script": "a + b", "runtime": "node"}),
            ),
            (json!({"operation": "remove", "target": at(json!(["llm", "extras"]))}), "/llm", json!({"model": "a"})),
            (json!({"operation": "remove", "target": at(json!(["nil"]))}), "/nil", Value::Null),
            (
                json!({"operation": "edit_text", "target": at(json!(["instructions", "agents_md"])),
                    "edits": [{"old_text": "brief.", "new_text": "kind."}, {"old_text": "Be kind. Be kind.", "new_text": "Kind."}]}),
                "/instructions/agents_md",
                json!("Kind."),
            ),
            (edit_text(json!([skill, file, "content"]), "old", "new"), "/skills/0/files/0/content", json!("new")),
            (json!({"operation": "add_item", "target": at(json!(["tools"])), "value": "write"}), "/tools/5", json!("write")),
            (json!({"operation": "add_item", "target": at(json!(["mcps"])), "value": {"name": "m"}}), "/mcps", json!([{"name": "m"}])),
            (
                json!({"operation": "add_item", "target": at(json!([skill, "files"])), "value": {"path": "b.md"}}),
                "/skills/0/files/1",
                json!({"path": "b.md"}),
            ),
            (json!({"operation": "replace_item", "target": at(json!([sum()])), "value": "sum"}), "/tools/2", json!("sum")),
            (json!({"operation": "replace_item", "target": at(json!([sum()])), "value": "ls"}), "/tools/2", json!("ls")),
            (
                json!({"operation": "remove_item", "target": at(json!([{"list": "tools", "key": "github__GET"}]))}),
                "/tools/1",
                json!({"type": "code", "name": "sum", "script": "a + b"}),
            ),
            (
                json!({"operation": "remove_item", "target": at(json!([{"list": "tools", "key": "read"}]))}),
                "/tools/3/description",
                json!("again"),
            ),
        ] {
            let after = run(json!([operation])).unwrap_or_else(|error| panic!("{operation}: {error:?}"));
            let found = after.pointer(&format!("/parameters/agent{pointer}")).cloned().unwrap_or_default();
            assert_eq!(found, expected, "{operation}");
        }
    }

    #[test]
    fn what_fails_says_why() {
        let ghost = json!({"list": "tools", "key": "ghost"});
        let edit = |old: &str| edit_text(json!(["instructions", "agents_md"]), old, "");
        for (operation, code, message) in [
            (
                json!({"operation": "set", "target": at(json!(["flat", "x"])), "value": 1}),
                "target_not_object",
                "`parameters.agent.flat` is a text",
            ),
            (
                json!({"operation": "set", "target": at(json!(["tools", "0"])), "value": 1}),
                "target_not_object",
                "`parameters.agent.tools` is a list",
            ),
            (
                json!({"operation": "set", "target": at(json!([ghost, "x"])), "value": 1}),
                "target_not_found",
                "`read`, `github__GET`, `sum`",
            ),
            (json!({"operation": "merge", "target": at(json!(["flat"])), "value": {}}), "target_not_object", "is a text"),
            (json!({"operation": "remove", "target": at(json!(["llm", "nope"]))}), "target_not_found", "There is: `model`, `extras`."),
            (json!({"operation": "remove", "target": at(json!(["no", "pe"]))}), "target_not_found", "`parameters.agent.no`"),
            (json!({"operation": "remove", "target": at(json!(["nil", "pe"]))}), "target_not_object", "is null"),
            (edit("Be rude"), "text_not_found", "Read the text again"),
            (edit("Be "), "text_ambiguous", "occurs 2 times"),
            (
                json!({"operation": "edit_text", "target": at(json!(["llm"])), "edits": [{"old_text": "a", "new_text": ""}]}),
                "target_not_text",
                "is an object",
            ),
            (json!({"operation": "add_item", "target": at(json!(["tools"])), "value": {"name": "sum"}}), "duplicate_item", "tools[sum]"),
            (
                json!({"operation": "add_item", "target": at(json!(["llm", "extras", "x", "tools"])), "value": "a"}),
                "target_not_object",
                "a number",
            ),
            (json!({"operation": "replace_item", "target": at(json!([sum()])), "value": "read"}), "duplicate_item", "tools[read]"),
            (json!({"operation": "replace_item", "target": at(json!([ghost])), "value": "ghost"}), "target_not_found", "tools[ghost]"),
            (
                json!({"operation": "remove_item", "target": at(json!([{"list": "tools", "key": "twin"}]))}),
                "target_ambiguous",
                "fits 2 entries",
            ),
            (json!({"operation": "remove_item", "target": at(json!([{"list": "mcps", "key": "m"}]))}), "target_not_found", "still empty"),
        ] {
            let (found, text) = run(json!([operation])).unwrap_err();
            assert_eq!(found, code, "{text}");
            assert!(text.contains(message), "{text}");
        }
    }

    #[test]
    fn a_field_that_should_be_a_list_is_not_made_one() {
        let data = json!({"mcps": [{"name": "m", "policy": {"tools": {"mode": "all"}}}]});
        let policy = json!([{"list": "mcps", "key": "m"}, "policy"]);
        let target = |last: Value| json!([policy[0], policy[1], last]);
        for operation in [
            json!({"operation": "add_item", "target": target(json!("tools")), "value": "a"}),
            json!({"operation": "remove_item", "target": target(json!({"list": "tools", "key": "a"}))}),
        ] {
            let error = Operations::parse(&json!([operation])).unwrap().apply(data.clone()).unwrap_err();
            assert_eq!(error.code(), "target_not_list");
            assert!(error.to_string().contains("`mcps[m].policy.tools` is an object"), "{error}");
        }
    }

    #[test]
    fn operations_see_those_before_them_and_the_index_tells_which_failed() {
        let add = json!({"operation": "add_item", "target": at(json!(["mcps"])), "value": {"name": "m"}});
        let rename = json!({"operation": "set", "target": at(json!([{"list": "mcps", "key": "m"}, "name"])), "value": "n"});
        let after = run(json!([add, rename, add])).unwrap();
        assert_eq!(after["parameters"]["agent"]["mcps"], json!([{"name": "n"}, {"name": "m"}]));
        let error = Operations::parse(&json!([add, rename, rename])).unwrap().apply(data()).unwrap_err();
        assert_eq!((error.code(), error.index), ("target_not_found", Some(2)));
    }

    #[test]
    fn overlapping_texts_are_ambiguous() {
        for (text, part, count) in [("aaa", "aa", 2), ("ääb", "ä", 2), ("abc", "d", 0), ("abab", "ab", 2), ("ab", "ab", 1)] {
            assert_eq!(occurrences(text, part), count, "{text} {part}");
        }
    }

    #[test]
    fn what_could_not_be_read_back_is_refused() {
        let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        let set = |levels: usize| run(json!([{"operation": "set", "target": ["x"], "value": nested(levels)}]));
        assert!(set(99).is_ok());
        assert_eq!(set(100).unwrap_err().0, "limit_exceeded");
        let grow = edit_text(json!(["flat"]), "ex", &"y".repeat(200_000));
        assert_eq!(run(json!([grow])).unwrap_err().0, "limit_exceeded");
    }
}
