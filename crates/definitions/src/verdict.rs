//! What may become of a call, and the names that no tool may take.

use serde::Serialize;

/// The built-in tools of a harness. They are always active, so no other tool may take their names.
pub const BUILT_INS: [&str; 7] = ["read", "bash", "edit", "write", "grep", "find", "ls"];

/// What somebody said about a tool. The order is strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Allow,
    Ask,
    Deny,
}

impl Verdict {
    pub(crate) const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// The verdict with this name on the wire.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.name() == name)
    }
}
