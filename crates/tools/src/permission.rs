//! What somebody said about whether a tool may run.

use serde::Serialize;

/// The built-in tools of a harness. They are always active, so no other tool may take their names.
pub const BUILT_INS: [&str; 7] = ["read", "bash", "edit", "write", "grep", "find", "ls"];

/// What somebody said about a tool. The order is strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    Allow,
    Ask,
    Deny,
}

impl Permission {
    /// The permission with this name on the wire.
    pub fn named(text: &str) -> Option<Self> {
        match text {
            "allow" => Some(Self::Allow),
            "ask" => Some(Self::Ask),
            "deny" => Some(Self::Deny),
            _ => None,
        }
    }
}
