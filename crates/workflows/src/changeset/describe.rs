//! Operations in a few words, for the message of their commit.

use super::target::{Entry, key_of, short, shown};
use super::{Operation, Operations, Segment};

const MAX: usize = 200;

/// What the operations do, in at most 200 characters.
pub fn describe(operations: &Operations) -> String {
    let parts: Vec<String> = operations.as_slice().iter().map(part).collect();
    (0..=parts.len()).rev().map(|count| joined(&parts, count)).find(|text| text.chars().count() <= MAX).unwrap_or_default()
}

/// The first parts, and how many there are besides.
fn joined(parts: &[String], count: usize) -> String {
    let more = parts.len() - count;
    let text = parts[..count].join("; ");
    match (count, more) {
        (_, 0) => text,
        (0, 1) => parts[0].chars().take(MAX - 1).chain(['…']).collect(),
        (0, _) => format!("{more} changes"),
        _ => format!("{text}; and {more} more"),
    }
}

fn part(operation: &Operation) -> String {
    let place = shown(operation.target());
    match operation {
        Operation::Set { .. } => format!("set {place}"),
        Operation::Merge { .. } => format!("merge into {place}"),
        Operation::Remove { .. } => format!("remove {place}"),
        Operation::EditText { .. } => format!("edit {place}"),
        Operation::AddItem { target, value } => match target.last() {
            Some(Segment::Field(list)) => format!("add {list} `{}`", short(&key_of(list, value).unwrap_or_default())),
            _ => format!("add {place}"),
        },
        Operation::ReplaceItem { target, .. } => entry("replace", target, place),
        Operation::RemoveItem { target } => entry("remove", target, place),
    }
}

fn entry(verb: &str, target: &[Segment], place: String) -> String {
    match target.last() {
        Some(Segment::Entry(Entry { list, key })) => format!("{verb} {list} `{}`", short(key)),
        _ => format!("{verb} {place}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn described(operations: Value) -> String {
        describe(&Operations::parse(&operations).unwrap())
    }

    #[test]
    fn each_operation_is_named() {
        let sum = json!(["parameters", "agent", {"list": "tools", "key": "sum"}]);
        let text = described(json!([
            {"operation": "set", "target": ["parameters", "agent", "llm", "model"], "value": "m"},
            {"operation": "add_item", "target": ["parameters", "agent", "tools"], "value": {"type": "reference", "slug": "x"}},
            {"operation": "replace_item", "target": sum, "value": "sum"},
            {"operation": "remove_item", "target": sum},
            {"operation": "merge", "target": sum, "value": {}},
            {"operation": "remove", "target": ["uri"]},
            {"operation": "edit_text", "target": ["uri"], "edits": [{"old_text": "a", "new_text": "b"}]},
        ]));
        let expected = "set parameters.agent.llm.model; add tools `x`; replace tools `sum`; remove tools `sum`; \
                        merge into parameters.agent.tools[sum]; remove uri; edit uri";
        assert_eq!(text, expected);
    }

    #[test]
    fn long_lists_end_in_a_count() {
        let set = |name: &str| json!({"operation": "set", "target": [name], "value": 1});
        let many: Vec<Value> = (0..64).map(|_| set("abcdefghij")).collect();
        let text = described(json!(many));
        assert!(text.ends_with("; set abcdefghij; and 53 more"), "{text}");
        assert!(text.chars().count() <= 200 && text.chars().count() > 180);
        let deep = json!({"operation": "remove", "target": vec!["ä".repeat(90); 12]});
        assert_eq!(described(json!([deep])).chars().count(), 200);
        assert_eq!(described(json!([deep, deep])), "2 changes");
    }
}
