//! One import, as the rest of the house sees it.

use std::collections::BTreeSet;

use kernel::{ImportId, ProjectId, Timestamp};
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use url::Url;
use uuid::Uuid;

use crate::{ImportError, Order};

const MAX_KEY: usize = 64;
const MAX_NAME: usize = 120;

/// An integration that a project made from something of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    pub id: ImportId,
    pub project: ProjectId,
    pub provider: String,
    /// The key of the integration.
    pub key: String,
    pub name: String,
    pub source: Source,
    /// Where credentials are sent.
    pub origins: BTreeSet<String>,
    pub actions_count: i64,
    /// Counts from one; every change of the definition is a version.
    pub version: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub created_by: Option<Uuid>,
    pub updated_by: Option<Uuid>,
}

/// Where an import comes from: an address, or a document that came with the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub url: Option<Url>,
    pub settings: Map<String, Value>,
}

impl Source {
    pub(crate) fn of(order: &Order) -> Self {
        Self { url: order.from.url().cloned(), settings: order.settings.clone() }
    }

    pub fn json(&self) -> Value {
        json!({"url": self.url.as_ref().map(Url::as_str), "settings": self.settings})
    }

    pub(crate) fn read(value: &Value) -> Self {
        Self {
            url: value["url"].as_str().and_then(|url| url.parse().ok()),
            settings: value["settings"].as_object().cloned().unwrap_or_default(),
        }
    }
}

/// An import with what its provider made of it.
#[derive(Clone, Debug)]
pub struct Stored {
    pub import: Import,
    /// JSON, as `Plan::definition` had it.
    pub definition: String,
    pub secret: Option<SecretString>,
}

/// Refuses what cannot be the key of an integration.
pub(crate) fn check_key(key: &str) -> Result<(), ImportError> {
    let word = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let fits = key.len() <= MAX_KEY && key.starts_with(|first: char| first.is_ascii_lowercase()) && key.split('-').all(word);
    if fits { Ok(()) } else { Err(ImportError::Key(key.chars().take(80).collect())) }
}

/// A key from a name: its words, as many as fit.
pub(crate) fn key_of(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_ascii_lowercase);
    let mut key = String::new();
    for word in words.skip_while(|word| word.starts_with(|first: char| first.is_ascii_digit())) {
        let gap = usize::from(!key.is_empty());
        if key.len() + gap + word.len() > MAX_KEY {
            break;
        }
        key.extend(std::iter::repeat_n('-', gap));
        key.push_str(&word);
    }
    if key.is_empty() { "import".to_owned() } else { key }
}

/// A name as lists show it: one line, not too long.
pub(crate) fn name_of(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_NAME).collect();
    let name = name.trim();
    if name.is_empty() { "Import".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_the_rules_of_integrations() {
        for good in ["github", "my-api", "a1-2"] {
            assert!(check_key(good).is_ok(), "{good}");
        }
        for bad in ["", "GitHub", "1a", "-a", "a-", "a--b", "a_b", "a.b", "ä", &"a".repeat(65)] {
            assert!(check_key(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_name_makes_a_key() {
        for (name, key) in [
            ("GitHub's official spec", "github-s-official-spec"),
            ("  Pet Store (v1) ", "pet-store-v1"),
            ("3D printing", "printing"),
            ("日本語", "import"),
            ("", "import"),
        ] {
            assert_eq!(key_of(name), key);
            assert!(check_key(&key_of(name)).is_ok(), "{name}");
        }
        assert!(check_key(&key_of(&"long name ".repeat(40))).is_ok());
        assert!(check_key(&key_of(&"x".repeat(400))).is_ok());
    }
}
