//! The name of an app: the key of its integration, whatever the case and whoever provides it.

use std::fmt;

use crate::StableToolId;

/// An app's name: trimmed and in upper case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppName(String);

impl AppName {
    pub fn of(text: &str) -> Self {
        Self(text.trim().to_uppercase())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn stable_id(&self) -> StableToolId {
        StableToolId::of(&self.0)
    }
}

impl fmt::Display for AppName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
