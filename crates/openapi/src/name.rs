//! Keys and names of actions and arguments: readable, unique, and the same at every import.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use crate::text::{brief, title, words};

const MAX_KEY: usize = 80;
const MAX_NAME: usize = 80;
const MAX_ARGUMENT: usize = 60;

/// What an operation can be named by.
#[derive(Debug)]
pub(crate) struct Named<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) id: Option<&'a str>,
}

impl Named<'_> {
    /// From the operation id where that says something, else from method and path.
    fn key(&self) -> String {
        self.id.and_then(readable).unwrap_or_else(|| self.path_key())
    }

    fn path_key(&self) -> String {
        let mut all = vec![self.method.to_ascii_lowercase()];
        all.extend(words(self.path));
        shorten(&all)
    }

    /// Where nothing else tells two apart.
    fn digest(&self) -> String {
        digest(&format!("{} {}", self.method, self.path))
    }
}

fn readable(id: &str) -> Option<String> {
    let words = words(id);
    let letters = words.iter().flat_map(|word| word.chars()).filter(char::is_ascii_alphabetic).count();
    let is_hash = id.len() >= 16 && id.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    (letters >= 3 && !is_hash).then(|| shorten(&words))
}

/// As many words as fit; what was cut off is told apart by a digest.
fn shorten(words: &[String]) -> String {
    let whole = words.join("_");
    if whole.len() <= MAX_KEY {
        return whole;
    }
    format!("{}_{}", whole[..MAX_KEY - 9].trim_end_matches('_'), digest(&whole))
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// One key for each operation. Those that would share one are named by method and path, all of them, so that none takes another's place
/// when one goes.
pub(crate) fn keys(operations: &[Named<'_>]) -> Vec<String> {
    let first: Vec<String> = operations.iter().map(Named::key).collect();
    let second = unshared(&first, |index| operations[index].path_key());
    unshared(&second, |index| format!("{}_{}", second[index], operations[index].digest()))
}

fn unshared(keys: &[String], otherwise: impl Fn(usize) -> String) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
    keys.iter().enumerate().map(|(index, key)| if counts[key.as_str()] > 1 { otherwise(index) } else { key.clone() }).collect()
}

/// The name of an action: its summary where that is short, else the words of its key.
pub(crate) fn name(summary: Option<&str>, key: &str) -> String {
    let summary = summary.map(|summary| brief(summary, MAX_NAME * 2)).filter(|summary| !summary.is_empty());
    match summary {
        Some(summary) if summary.chars().count() <= MAX_NAME => summary.trim_end_matches('.').to_owned(),
        _ => title(&words(key)),
    }
}

/// The names that arguments of one action have.
#[derive(Debug, Default)]
pub(crate) struct Arguments(BTreeSet<String>);

impl Arguments {
    /// A free name that every model API takes, as close to the wire's as can be.
    pub(crate) fn take(&mut self, wire: &str, place: &str) -> String {
        let plain = argument(wire);
        let mut name = plain.clone();
        if self.0.contains(&name) {
            name = format!("{place}_{plain}");
        }
        let taken = name.clone();
        let mut number = 2;
        while self.0.contains(&name) {
            name = format!("{taken}_{number}");
            number += 1;
        }
        self.0.insert(name.clone());
        name
    }
}

fn argument(wire: &str) -> String {
    let mut name = String::with_capacity(wire.len());
    for letter in wire.chars().take(MAX_ARGUMENT) {
        match letter {
            letter if letter.is_ascii_alphanumeric() || letter == '_' => name.push(letter),
            _ if name.ends_with('_') || name.is_empty() => {}
            _ => name.push('_'),
        }
    }
    let name = name.trim_end_matches('_');
    match name.chars().next() {
        None => "value".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("_{name}"),
        Some(_) => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<'a>(method: &'a str, path: &'a str, id: Option<&'a str>) -> Named<'a> {
        Named { method, path, id }
    }

    #[test]
    fn keys_are_readable_unique_and_stable() {
        let all = [
            named("post", "/repos/{owner}/issues", Some("issues/create")),
            named("get", "/pets/{petId}", None),
            named("get", "/a", Some("list")),
            named("get", "/b", Some("list")),
            named("get", "/c", Some("6f9619ff-8b86-4d01-b42d-00cf4fc964ff")),
            named("get", "/d-e", None),
            named("get", "/d/e", None),
        ];
        let keys = keys(&all);
        assert_eq!(keys[..5], ["issues_create", "get_pets_pet_id", "get_a", "get_b", "get_c"]);
        assert!(keys[5].starts_with("get_d_e_") && keys[6].starts_with("get_d_e_") && keys[5] != keys[6]);
        let fewer = super::keys(&all[3..4]);
        assert_eq!(fewer, ["list"], "alone it has its own name");
        let long = "word".repeat(60);
        let key = &super::keys(&[named("get", "/x", Some(&long))])[0];
        assert!(key.len() <= MAX_KEY, "{key}");
    }

    #[test]
    fn arguments_never_collide() {
        let mut arguments = Arguments::default();
        let taken: Vec<String> =
            [("id", "path"), ("id", "query"), ("id", "body"), ("id", "body"), ("filter[name]", "query"), ("2fa", "query"), ("@", "body")]
                .into_iter()
                .map(|(wire, place)| arguments.take(wire, place))
                .collect();
        assert_eq!(taken, ["id", "query_id", "body_id", "body_id_2", "filter_name", "_2fa", "value"]);
        assert_eq!(argument("connection.token"), "connection_token");
    }

    #[test]
    fn names_are_words() {
        assert_eq!(name(Some("Create an issue."), "x"), "Create an issue");
        assert_eq!(name(None, "issues_create"), "Issues create");
        assert_eq!(name(Some(&"long ".repeat(40)), "issues_create"), "Issues create");
    }
}
