//! The secrets that a code tool runs with.

use std::collections::BTreeMap;
use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde::{Serialize, Serializer};

/// Values by the names of their secrets. It cannot be printed, only sent.
#[derive(Clone, Default)]
pub struct Env(BTreeMap<String, SecretString>);

impl Env {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, SecretString)> for Env {
    fn from_iter<I: IntoIterator<Item = (String, SecretString)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl PartialEq for Env {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self
                .0
                .iter()
                .zip(&other.0)
                .all(|((name, value), (other, held))| name == other && value.expose_secret() == held.expose_secret())
    }
}

impl Serialize for Env {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value.expose_secret())))
    }
}
