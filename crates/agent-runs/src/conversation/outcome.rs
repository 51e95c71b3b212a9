//! What became of a call, as the journal keeps it and the model is told.

use serde::{Deserialize, Serialize};

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CallOutcome {
    pub(crate) kind: OutcomeKind,
    /// What the model is told.
    pub(crate) content: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutcomeKind {
    Done,
    Failed,
    /// A person, or a rule, said no.
    Denied,
    /// It may have taken effect or not, and is not made again.
    Unknown,
    /// The run may make no more calls.
    NotMade,
}

impl CallOutcome {
    pub(crate) fn new(kind: OutcomeKind, content: impl Into<String>) -> Self {
        Self { kind, content: content.into() }
    }

    pub(crate) fn failed(content: impl Into<String>) -> Self {
        Self::new(OutcomeKind::Failed, content)
    }

    pub(crate) fn is_error(&self) -> bool {
        self.kind != OutcomeKind::Done
    }
}
