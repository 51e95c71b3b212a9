//! A policy as rows of a form, and the form as a policy. What is not known here stays as it is.

use serde_json::{Map, Value, json};

use crate::form::Form;
use crate::ui::{Markup, Tone, badge};

/// What can be said of what no rule fits.
pub(super) const DEFAULTS: [(&str, &str); 5] = [
    ("", "not set: calls run, and tools of Toolyard itself ask before they change something"),
    ("allow", "allow: calls run"),
    ("allow_reads", "allow_reads: what only reads runs, everything else asks"),
    ("ask", "ask: every call waits for a person"),
    ("deny", "deny: no call runs"),
];
const PERMISSIONS: [&str; 3] = ["allow", "ask", "deny"];

/// A rule in the table.
#[derive(Debug)]
pub(super) struct Row {
    /// Its place, counted as the API counts.
    pub(super) index: usize,
    pub(super) pattern: String,
    pub(super) permission: String,
    pub(super) error: Option<String>,
    pub(super) is_first: bool,
    pub(super) is_last: bool,
}

impl Row {
    /// What it can say, with what it says already even if that is not known here.
    pub(super) fn permissions(&self) -> Vec<&str> {
        let mut all = PERMISSIONS.to_vec();
        if !all.contains(&self.permission.as_str()) {
            all.push(&self.permission);
        }
        all
    }

    pub(super) fn badge(&self) -> Markup {
        permission_badge(&self.permission)
    }
}

pub(super) fn permission_badge(permission: &str) -> Markup {
    let tone = match permission {
        "allow" => Tone::Good,
        "ask" => Tone::Wait,
        "deny" => Tone::Bad,
        _ => Tone::Plain,
    };
    badge(tone, permission)
}

/// The rules in order, with what the API said of one of them.
pub(super) fn rows(policy: &Value, error: Option<&str>) -> Vec<Row> {
    let rules = policy["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |rule: &Value, name: &str| rule[name].as_str().unwrap_or_default().to_owned();
    let rows = rules.iter().enumerate().map(|(index, rule)| Row {
        index,
        pattern: text(rule, "pattern"),
        permission: text(rule, "permission"),
        error: error.and_then(|words| words_on(words, index)),
        is_first: index == 0,
        is_last: index + 1 == rules.len(),
    });
    rows.collect()
}

/// What an error says of one rule; it names it as `rules.3`.
fn words_on(words: &str, index: usize) -> Option<String> {
    let name = format!("`rules.{index}`");
    let line = words.lines().find(|line| line.contains(&name))?;
    Some(line.replacen(&name, "", 1).trim_start_matches([':', ' ']).to_owned())
}

/// The policy that a form asks for: everything that was typed, and then what its button says.
pub(super) fn edited(shown: &Value, form: &Form) -> Value {
    let mut policy = shown.as_object().cloned().unwrap_or_default();
    let mut rules = typed_rules(shown, form);
    press(&mut rules, form.text("do"));
    match form.some("default") {
        Some(word) => policy.insert("default".to_owned(), word.into()),
        None => policy.shift_remove("default"),
    };
    policy.insert("rules".to_owned(), rules.into());
    Value::Object(policy)
}

fn typed_rules(shown: &Value, form: &Form) -> Vec<Value> {
    let before = |index: usize| shown["rules"][index].as_object().cloned().unwrap_or_default();
    let typed = (0..).take_while(|index| form.has(&format!("pattern.{index}")));
    let mut rules: Vec<Value> = typed.map(|index| rule(before(index), form, &index.to_string())).collect();
    if form.some("pattern.new").is_some() {
        rules.push(rule(Map::new(), form, "new"));
    }
    rules
}

fn rule(mut rule: Map<String, Value>, form: &Form, row: &str) -> Value {
    for name in ["pattern", "permission"] {
        rule.insert(name.to_owned(), json!(form.text(&format!("{name}.{row}"))));
    }
    Value::Object(rule)
}

/// What a button does to the rules, such as `up.2`. One that only saves does nothing more.
fn press(rules: &mut Vec<Value>, button: &str) {
    let Some((word, index)) = button.split_once('.') else { return };
    let Some(index) = index.parse::<usize>().ok().filter(|index| *index < rules.len()) else { return };
    match word {
        "up" if index > 0 => rules.swap(index - 1, index),
        "down" if index + 1 < rules.len() => rules.swap(index, index + 1),
        "remove" => drop(rules.remove(index)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(fields: &[(&str, &str)]) -> Form {
        Form(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    fn two() -> Value {
        json!({"rules": [{"pattern": "a", "permission": "ask", "note": "why"}, {"pattern": "b", "permission": "deny"}], "other": 1})
    }

    fn typed(button: &str) -> Form {
        form(&[
            ("pattern.0", " a "),
            ("permission.0", "allow"),
            ("pattern.1", "b"),
            ("permission.1", "deny"),
            ("pattern.new", ""),
            ("permission.new", "ask"),
            ("do", button),
        ])
    }

    #[test]
    fn what_is_not_known_stays() {
        let saved = edited(&two(), &typed("save"));
        assert_eq!(
            saved,
            json!({"rules": [{"pattern": "a", "permission": "allow", "note": "why"}, {"pattern": "b", "permission": "deny"}], "other": 1})
        );
    }

    #[test]
    fn buttons_move_and_remove() {
        let patterns =
            |button: &str| -> Vec<String> { rows(&edited(&two(), &typed(button)), None).into_iter().map(|row| row.pattern).collect() };
        assert_eq!(patterns("up.1"), ["b", "a"]);
        assert_eq!(patterns("down.0"), ["b", "a"]);
        assert_eq!(patterns("remove.0"), ["b"]);
        for nothing in ["up.0", "down.1", "remove.7", "up.x", "odd.1", ""] {
            assert_eq!(patterns(nothing), ["a", "b"], "{nothing}");
        }
    }

    #[test]
    fn a_rule_is_added_and_the_default_set_and_unset() {
        let first = edited(&json!({}), &form(&[("pattern.new", "tools.*"), ("permission.new", "ask"), ("default", "allow_reads")]));
        assert_eq!(first, json!({"default": "allow_reads", "rules": [{"pattern": "tools.*", "permission": "ask"}]}));
        assert_eq!(edited(&json!({"default": "deny"}), &form(&[])), json!({"rules": []}));
    }

    #[test]
    fn an_error_stands_beside_its_rule() {
        let rows = rows(&two(), Some("`rules.1`: no ref fits `b`. Did you mean `c`?"));
        assert_eq!(rows[0].error, None);
        assert_eq!(rows[1].error.as_deref(), Some("no ref fits `b`. Did you mean `c`?"));
    }
}
