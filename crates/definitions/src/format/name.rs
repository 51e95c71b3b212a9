//! Function names: call refs written so that every model API accepts them, and the way back.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use kernel::hex;
use sha2::{Digest, Sha256};

/// The most characters that OpenAI and Gemini accept; Anthropic and MCP accept more.
pub(super) const MAX_NAME: usize = 64;
const HASH_DIGITS: usize = 16;

/// Two call refs that would have one function name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{first}` and `{second}` would both be called `{name}`")]
pub struct NameCollision {
    pub name: String,
    pub first: String,
    pub second: String,
}

/// The function name of a call ref, within the rules of every API.
///
/// Dots become `__`. A ref that is too long, or that could not be read back that way, ends in a hash of itself instead; only a
/// [`NameTable`] reads those back. A function name stays as it is.
pub fn function_name(call_ref: &str) -> String {
    let plain = call_ref.replace('.', "__");
    let readable = !call_ref.contains('.') || plain.replace("__", ".") == call_ref;
    if readable && is_function_name(&plain) { plain } else { hashed(&plain, call_ref) }
}

/// Whether the name may end in a hash, which cannot be read back.
pub fn is_hashed(name: &str) -> bool {
    let end = name.rsplit('_').next().unwrap_or_default();
    end.len() == HASH_DIGITS && end.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether every API accepts the name: `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`.
pub(super) fn is_function_name(name: &str) -> bool {
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts_well && name.len() <= MAX_NAME && name.chars().all(is_name_character)
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

fn hashed(plain: &str, call_ref: &str) -> String {
    let hash = hex::encode(&Sha256::digest(call_ref)[..HASH_DIGITS / 2]);
    let clean = plain.chars().map(|character| if is_name_character(character) { character } else { '_' });
    let mut name: String = clean.take(MAX_NAME - HASH_DIGITS - 2).collect();
    if !is_function_name(&name) {
        name.insert(0, '_');
    }
    format!("{name}_{hash}")
}

/// Reads the function names that a model uses back into call refs.
#[derive(Clone, Debug, Default)]
pub struct NameTable(HashMap<String, String>);

impl NameTable {
    /// Builds the table for the tools that a model is given.
    pub fn new<R: Into<String>>(call_refs: impl IntoIterator<Item = R>) -> Result<Self, NameCollision> {
        let mut table = HashMap::new();
        for call_ref in call_refs {
            let call_ref = call_ref.into();
            match table.entry(function_name(&call_ref)) {
                Entry::Vacant(free) => {
                    free.insert(call_ref);
                }
                Entry::Occupied(taken) if *taken.get() == call_ref => {}
                Entry::Occupied(taken) => {
                    return Err(NameCollision { name: taken.key().clone(), first: taken.get().clone(), second: call_ref });
                }
            }
        }
        Ok(Self(table))
    }

    /// The call ref behind a function name.
    pub fn call_ref(&self, function_name: &str) -> Option<&str> {
        self.0.get(function_name).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_readable_when_they_can_be() {
        for (call_ref, name) in [
            ("tools.native.github.CREATE_AN_ISSUE.main", "tools__native__github__CREATE_AN_ISSUE__main"),
            ("tools.agenta.search", "tools__agenta__search"),
            ("workflow.variant.my-flow.v2", "workflow__variant__my-flow__v2"),
            ("get_weather", "get_weather"),
        ] {
            assert_eq!(function_name(call_ref), name);
            assert_eq!(function_name(name), name, "a function name stays as it is");
        }
    }

    #[test]
    fn names_that_cannot_be_read_back_carry_a_hash() {
        let long = format!("tools.native.github.{}.main", "A_".repeat(40));
        for call_ref in ["tools.a.b_.c", "tools.a.b__c", "1.a", "", "-.a", "tools.ä.b", "a b", &long] {
            let name = function_name(call_ref);
            assert!(is_function_name(&name), "{call_ref:?}: {name}");
            assert!(name.rsplit('_').next().unwrap().len() == HASH_DIGITS, "{call_ref:?}: {name}");
            assert_eq!(function_name(&name), name);
        }
    }

    #[test]
    fn a_shortened_name_never_changes() {
        let call_ref = "tools.native.github.A_VERY_LONG_ACTION_NAME_THAT_GOES_ON_AND_ON.main";
        assert_eq!(function_name(call_ref), "tools__native__github__A_VERY_LONG_ACTION_NAME_0b504a08c53acad8");
    }

    #[test]
    fn two_spellings_of_one_ref_are_refused() {
        let error = NameTable::new(["a.b", "a__b"]).unwrap_err();
        assert_eq!(error.to_string(), "`a.b` and `a__b` would both be called `a__b`");
        assert!(NameTable::new(["a.b", "a.b"]).is_ok());
    }

    /// A small deterministic generator: refs over an alphabet that provokes collisions.
    fn odd_refs() -> impl Iterator<Item = String> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        (0..20_000).map(move |_| {
            let length = if next(4) == 0 { 50 + next(60) } else { next(7) };
            let body: String = (0..length).map(|_| ["_", "a", "B", "-", ".", "7"][usize::try_from(next(6)).unwrap()]).collect();
            format!("tools.{body}")
        })
    }

    #[test]
    fn every_ref_comes_back_from_its_name() {
        let refs: Vec<String> = odd_refs().collect();
        let table = NameTable::new(refs.iter().cloned()).unwrap();
        for call_ref in &refs {
            let name = function_name(call_ref);
            assert!(is_function_name(&name), "{name}");
            assert_eq!(table.call_ref(&name), Some(call_ref.as_str()));
        }
        assert_eq!(table.call_ref("nothing"), None);
    }
}
