//! Reads operations strictly: what is accepted here has everything it needs and nothing else.

use serde_json::Value;

use super::target::{Entry, is_keyed, key_of, keyed_lists};
use super::{ChangeError, ChangeProblem, Operation, Operations, Segment, TextEdit};

pub(super) const MAX_TEXT: usize = 200_000;
const MAX_OPERATIONS: usize = 64;
const MAX_SEGMENTS: usize = 12;
const MAX_EDITS: usize = 32;
const MAX_OLD_TEXT: usize = 20_000;
const NAMES: [&str; 7] = ["set", "merge", "remove", "edit_text", "add_item", "replace_item", "remove_item"];

impl Operations {
    /// Reads a list of operations.
    pub fn parse(value: &Value) -> Result<Self, ChangeError> {
        let whole = |fault| ChangeError { index: None, fault };
        let items = value.as_array().filter(|items| !items.is_empty());
        let items =
            items.ok_or_else(|| whole(ChangeProblem::Invalid("`operations` must be a list with at least one operation.".to_owned())))?;
        within("`operations`", items.len(), MAX_OPERATIONS, "operations").map_err(whole)?;
        let read = items.iter().enumerate().map(|(index, item)| read(item).map_err(|fault| fault.at(index)));
        read.collect::<Result<_, _>>().map(Self)
    }
}

fn read(item: &Value) -> Result<Operation, ChangeProblem> {
    let name = item.get("operation").and_then(Value::as_str).filter(|name| NAMES.contains(name));
    let name = name.ok_or_else(|| ChangeProblem::Invalid(format!("`operation` must be one of: {}.", NAMES.join(", "))))?;
    let read: Result<Operation, _> = serde_json::from_value(item.clone());
    let operation = read.map_err(|error| ChangeProblem::Invalid(format!("{name} cannot be read: {error}. {}", needs(name))))?;
    check_target(operation.target())?;
    check_last(&operation)?;
    check_content(&operation)?;
    Ok(operation)
}

fn needs(name: &str) -> &'static str {
    match name {
        "merge" => "It takes `target` and an object as `value`, nothing else.",
        "edit_text" => "It takes `target` and `edits`, a list of {old_text, new_text}, nothing else.",
        "remove" | "remove_item" => "It takes `target`, nothing else.",
        _ => "It takes `target` and `value`, nothing else.",
    }
}

pub(super) fn check_target(target: &[Segment]) -> Result<(), ChangeProblem> {
    within("A path", target.len(), MAX_SEGMENTS, "segments")?;
    if target.is_empty() || target.iter().any(Segment::is_blank) {
        return Err(ChangeProblem::Invalid("A path needs at least one segment, and no segment may be empty.".to_owned()));
    }
    target.iter().try_for_each(check_segment)
}

pub(super) fn check_segment(segment: &Segment) -> Result<(), ChangeProblem> {
    match segment {
        Segment::Entry(Entry { list, .. }) if !is_keyed(list) => Err(unkeyed(list)),
        _ => Ok(()),
    }
}

fn unkeyed(list: &str) -> ChangeProblem {
    ChangeProblem::Invalid(format!("`{list}` is not a list with keys; those are: {}. Set any other list as a whole.", keyed_lists()))
}

/// Each operation ends in the kind of segment that it can work on.
fn check_last(operation: &Operation) -> Result<(), ChangeProblem> {
    let Some(last) = operation.target().last() else { return Ok(()) };
    let instead = match (operation, last) {
        (Operation::AddItem { .. }, Segment::Field(list)) if !is_keyed(list) => return Err(unkeyed(list)),
        (Operation::AddItem { .. }, Segment::Entry(_)) => {
            "The target of add_item ends with the name of the list; the entry's key is in `value`."
        }
        (Operation::ReplaceItem { .. }, Segment::Field(_)) => "The target of replace_item ends with {list, key}. Use set for a field.",
        (Operation::RemoveItem { .. }, Segment::Field(_)) => "The target of remove_item ends with {list, key}. Use remove for a field.",
        (Operation::Set { .. }, Segment::Entry(_)) => "The target of set ends with a field. Use replace_item for an entry.",
        (Operation::Remove { .. }, Segment::Entry(_)) => "The target of remove ends with a field. Use remove_item for an entry.",
        _ => return Ok(()),
    };
    Err(ChangeProblem::Invalid(instead.to_owned()))
}

fn check_content(operation: &Operation) -> Result<(), ChangeProblem> {
    match operation {
        Operation::Set { value, .. } => check_texts(value),
        Operation::Merge { value, .. } => value.values().try_for_each(check_texts),
        Operation::AddItem { target, value } | Operation::ReplaceItem { target, value } => {
            check_key(target, value)?;
            check_texts(value)
        }
        Operation::EditText { edits, .. } => check_edits(edits),
        Operation::Remove { .. } | Operation::RemoveItem { .. } => Ok(()),
    }
}

fn check_key(target: &[Segment], item: &Value) -> Result<(), ChangeProblem> {
    let Some(Segment::Field(list) | Segment::Entry(Entry { list, .. })) = target.last() else { return Ok(()) };
    if key_of(list, item).is_some() {
        return Ok(());
    }
    let field = if list == "files" { "path" } else { "name" };
    Err(ChangeProblem::Invalid(format!("`value` has no key in `{list}`. Give it a `{field}` that is a text.")))
}

fn check_texts(value: &Value) -> Result<(), ChangeProblem> {
    match value {
        Value::String(text) => within("A text in `value`", text.chars().count(), MAX_TEXT, "characters"),
        Value::Array(items) => items.iter().try_for_each(check_texts),
        Value::Object(fields) => fields.values().try_for_each(check_texts),
        _ => Ok(()),
    }
}

fn check_edits(edits: &[TextEdit]) -> Result<(), ChangeProblem> {
    within("`edits`", edits.len(), MAX_EDITS, "edits")?;
    if edits.is_empty() {
        return Err(ChangeProblem::Invalid("`edits` needs at least one edit.".to_owned()));
    }
    edits.iter().enumerate().try_for_each(|(at, edit)| {
        if edit.old_text.is_empty() {
            return Err(ChangeProblem::Invalid(format!("edits[{at}].old_text must not be empty. Use set to fill an empty text.")));
        }
        within(&format!("edits[{at}].old_text"), edit.old_text.chars().count(), MAX_OLD_TEXT, "characters")?;
        within(&format!("edits[{at}].new_text"), edit.new_text.chars().count(), MAX_TEXT, "characters")
    })
}

pub(super) fn within(what: &str, given: usize, limit: usize, unit: &'static str) -> Result<(), ChangeProblem> {
    if given <= limit { Ok(()) } else { Err(ChangeProblem::Limit { what: what.to_owned(), limit, given, unit }) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(operations: Value) -> (&'static str, Option<usize>, String) {
        let error = Operations::parse(&operations).unwrap_err();
        (error.code(), error.index, error.to_string())
    }

    #[test]
    fn operations_are_written_back_as_read() {
        let entry = json!(["parameters", "agent", {"list": "tools", "key": "a"}]);
        let operations = json!([
            {"operation": "set", "target": ["uri"], "value": null},
            {"operation": "merge", "target": entry, "value": {"a": {"b": 1.5}}},
            {"operation": "remove", "target": ["uri"]},
            {"operation": "edit_text", "target": ["uri"], "edits": [{"old_text": "a", "new_text": ""}]},
            {"operation": "add_item", "target": ["tools"], "value": {"name": "a"}},
            {"operation": "replace_item", "target": entry, "value": "read"},
            {"operation": "remove_item", "target": entry},
        ]);
        let parsed = Operations::parse(&operations).unwrap();
        assert_eq!(serde_json::to_value(parsed.as_slice()).unwrap(), operations);
    }

    #[test]
    fn each_operation_has_exactly_what_it_needs() {
        let entry = json!([{"list": "tools", "key": "a"}]);
        for (operation, message) in [
            (json!("set"), "`operation` must be one of: set, merge,"),
            (json!({"target": ["a"], "value": 1}), "`operation` must be one of"),
            (json!({"operation": "replace", "target": ["a"], "value": 1}), "`operation` must be one of"),
            (json!({"operation": "set", "target": ["a"]}), "missing field `value`"),
            (json!({"operation": "set", "value": 1}), "missing field `target`"),
            (json!({"operation": "set", "target": ["a"], "value": 1, "edits": []}), "unknown field `edits`"),
            (json!({"operation": "set", "target": "a", "value": 1}), "set cannot be read"),
            (json!({"operation": "set", "target": [1], "value": 1}), "each segment must be a field name"),
            (json!({"operation": "set", "target": [], "value": 1}), "at least one segment"),
            (json!({"operation": "set", "target": ["a", ""], "value": 1}), "no segment may be empty"),
            (json!({"operation": "set", "target": [{"list": "tools", "key": ""}, "a"], "value": 1}), "no segment may be empty"),
            (json!({"operation": "set", "target": [{"list": "names", "key": "x"}, "a"], "value": 1}), "tools, mcps, skills, files"),
            (json!({"operation": "set", "target": entry, "value": 1}), "Use replace_item"),
            (json!({"operation": "merge", "target": ["a"], "value": [1]}), "an object as `value`"),
            (json!({"operation": "remove", "target": ["a"], "value": 1}), "It takes `target`, nothing else."),
            (json!({"operation": "remove", "target": entry}), "Use remove_item"),
            (json!({"operation": "edit_text", "target": ["a"]}), "missing field `edits`"),
            (json!({"operation": "edit_text", "target": ["a"], "edits": []}), "at least one edit"),
            (json!({"operation": "edit_text", "target": ["a"], "edits": [{"old_text": "", "new_text": "b"}]}), "must not be empty"),
            (json!({"operation": "edit_text", "target": ["a"], "edits": [{"old_text": "a"}]}), "missing field `new_text`"),
            (json!({"operation": "add_item", "target": entry, "value": {"name": "a"}}), "ends with the name of the list"),
            (json!({"operation": "add_item", "target": ["names"], "value": "a"}), "not a list with keys"),
            (json!({"operation": "add_item", "target": ["tools"], "value": {}}), "Give it a `name`"),
            (json!({"operation": "add_item", "target": ["files"], "value": {"name": "a"}}), "Give it a `path`"),
            (json!({"operation": "replace_item", "target": ["tools"], "value": {"name": "a"}}), "ends with {list, key}"),
            (json!({"operation": "replace_item", "target": entry, "value": null}), "Give it a `name`"),
            (json!({"operation": "remove_item", "target": ["tools"]}), "ends with {list, key}"),
        ] {
            let (code, index, text) = refused(json!([{"operation": "remove", "target": ["x"]}, operation]));
            assert_eq!((code, index), ("invalid_operation", Some(1)), "{operation}");
            assert!(text.starts_with("operations[1]: ") && text.contains(message), "{text}");
        }
        for list in [json!([]), json!({}), json!(null)] {
            assert_eq!((refused(list.clone()).0, refused(list).1), ("invalid_operation", None));
        }
    }

    #[test]
    fn limits_hold_at_their_edge() {
        let set = |value: Value| json!({"operation": "set", "target": ["a"], "value": value});
        let target = |count: usize| json!({"operation": "remove", "target": vec!["a"; count]});
        let edit_text = |edits: Vec<Value>| json!({"operation": "edit_text", "target": ["a"], "edits": edits});
        let edits = |count: usize| edit_text(vec![json!({"old_text": "a", "new_text": "b"}); count]);
        let edit = |old: usize, new: usize| edit_text(vec![json!({"old_text": "ä".repeat(old), "new_text": "ä".repeat(new)})]);
        let text = |count: usize| set(json!({"deep": ["ä".repeat(count)]}));
        for (fits, exceeds) in [
            (json!(vec![target(1); 64]), json!(vec![target(1); 65])),
            (json!([target(12)]), json!([target(13)])),
            (json!([edits(32)]), json!([edits(33)])),
            (json!([edit(20_000, 200_000)]), json!([edit(20_001, 0)])),
            (json!([text(200_000)]), json!([text(200_001)])),
            (json!([edit(1, 0)]), json!([edit(1, 200_001)])),
        ] {
            assert!(Operations::parse(&fits).is_ok());
            assert_eq!(refused(exceeds).0, "limit_exceeded");
        }
    }
}
