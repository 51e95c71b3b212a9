//! What changes when one definition takes the place of another. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The actions that come, go and change, by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub changed: Vec<String>,
    pub unchanged: usize,
}

impl Difference {
    pub(crate) fn between(old: Option<&Map<String, Value>>, new: &Map<String, Value>) -> Self {
        let (old, new) = (old.map(actions).unwrap_or_default(), actions(new));
        let mut difference = Self::default();
        for (key, action) in &new {
            match old.get(key) {
                None => difference.added.push((*key).to_owned()),
                Some(known) if known == action => difference.unchanged += 1,
                Some(_) => difference.changed.push((*key).to_owned()),
            }
        }
        difference.removed = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (*key).to_owned()).collect();
        difference
    }
}

fn actions(definition: &Map<String, Value>) -> BTreeMap<&str, &Value> {
    let actions = definition.get("actions").and_then(Value::as_array).into_iter().flatten();
    actions.filter_map(|action| Some((action["key"].as_str()?, action))).collect()
}

pub(crate) fn count(definition: &Map<String, Value>) -> usize {
    definition.get("actions").and_then(Value::as_array).map_or(0, Vec::len)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn actions_come_go_and_change() {
        let definition = |actions: Value| json!({"actions": actions}).as_object().unwrap().clone();
        let old = definition(json!([{"key": "a"}, {"key": "b", "path": "/b"}, {"key": "c"}]));
        let new = definition(json!([{"key": "c"}, {"key": "b", "path": "/v2/b"}, {"key": "d"}]));
        let list = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        let expected = Difference { added: list(&["d"]), removed: list(&["a"]), changed: list(&["b"]), unchanged: 1 };
        assert_eq!(Difference::between(Some(&old), &new), expected);
        assert_eq!(Difference::between(None, &old).added, ["a", "b", "c"]);
    }
}
