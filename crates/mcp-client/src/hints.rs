//! What a server says its tools do, over time. Permissions and approvals rest on it, so by itself a server can take a promise back but not
//! make one: that a tool only reads, or destroys nothing, is believed when a person imports or refreshes.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// How many tools that are gone are remembered.
const MAX_GONE: usize = 10_000;
/// Where a definition keeps what was said of them, so that one that comes back is none that is new.
const GONE: &str = "gone";

/// Whether a tool only reads, and whether it destroys.
type Hints = (bool, bool);

/// Keeps a list that no person asked for from promising more than the known one did.
pub(crate) fn hold_back(known: &Map<String, Value>, read: &mut Map<String, Value>) -> Result<(), String> {
    let mut known = said(known);
    for action in read.get_mut("actions").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some((read_only, destructive)) = action["key"].as_str().and_then(|key| known.remove(key)) else { continue };
        if !read_only {
            action["read_only"] = false.into();
        }
        if destructive {
            action["destructive"] = true.into();
        }
    }
    known.retain(|_, hints| *hints != (true, false));
    if known.len() > MAX_GONE {
        return Err("its tools change too much; refresh it by hand".to_owned());
    }
    if !known.is_empty() {
        read.insert(GONE.to_owned(), json!(known));
    }
    Ok(())
}

fn said(definition: &Map<String, Value>) -> BTreeMap<String, Hints> {
    let gone = definition.get(GONE).and_then(|gone| serde_json::from_value(gone.clone()).ok());
    let mut said: BTreeMap<String, Hints> = gone.unwrap_or_default();
    for action in definition.get("actions").and_then(Value::as_array).into_iter().flatten() {
        if let Some(key) = action["key"].as_str() {
            said.insert(key.to_owned(), (action["read_only"] == true, action["destructive"] == true));
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(tools: &[(&str, bool, bool)]) -> Map<String, Value> {
        let tool =
            |(key, read_only, destructive): &(&str, bool, bool)| json!({"key": key, "read_only": read_only, "destructive": destructive});
        Map::from_iter([("actions".to_owned(), tools.iter().map(tool).collect())])
    }

    fn held_back(known: &Map<String, Value>, tools: &[(&str, bool, bool)]) -> Map<String, Value> {
        let mut read = list(tools);
        hold_back(known, &mut read).unwrap();
        read
    }

    #[test]
    fn a_server_takes_promises_back_but_makes_none() {
        let known = list(&[("reads", true, false), ("adds", false, false), ("deletes", false, true)]);
        let more = held_back(&known, &[("reads", true, false), ("adds", true, false), ("deletes", true, false), ("new", true, false)]);
        let same = list(&[("reads", true, false), ("adds", false, false), ("deletes", false, true), ("new", true, false)]);
        assert_eq!(more, same);
        let less = [("reads", false, true), ("adds", false, true), ("deletes", false, true)];
        assert_eq!(held_back(&known, &less), list(&less));
        assert_eq!(held_back(&list(&[]), &[("new", true, false)]), list(&[("new", true, false)]));
    }

    #[test]
    fn a_tool_that_went_away_comes_back_as_it_was() {
        let known = list(&[("deletes", false, true), ("reads", true, false)]);
        let without = held_back(&known, &[("other", true, false)]);
        let still_without = held_back(&without, &[("other", true, false)]);
        assert_eq!(without, still_without, "nothing changed, so there is no new version");
        let again = held_back(&still_without, &[("deletes", true, false), ("reads", true, false)]);
        assert_eq!(again, list(&[("deletes", false, true), ("reads", true, false)]));
        let many: Vec<String> = (0..=MAX_GONE).map(|at| format!("t{at}")).collect();
        let many: Vec<(&str, bool, bool)> = many.iter().map(|key| (key.as_str(), false, true)).collect();
        assert!(hold_back(&list(&many), &mut list(&[])).is_err());
    }
}
