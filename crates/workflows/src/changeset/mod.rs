//! Changes to a configuration as ordered operations: `Operations` are parsed once and applied all or nothing; `read` answers which part
//! of a configuration there is to change.

mod apply;
mod describe;
mod error;
mod parse;
mod read;
mod target;

use kernel::json::{size, size_of_members};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use describe::describe;
pub use error::{ChangeError, ChangeProblem, Nearby};
pub use read::{Child, Read, ReadError, read};
pub use target::{Entry, Segment, key_of, text};

/// One change, with exactly what it needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case", deny_unknown_fields)]
pub enum Operation {
    /// Puts a value into a field; parents that are missing are made.
    Set { target: Vec<Segment>, value: Value },
    /// Lays an object over the one that is there: objects merge, everything else replaces.
    Merge { target: Vec<Segment>, value: Map<String, Value> },
    /// Takes a field away.
    Remove { target: Vec<Segment> },
    /// Replaces parts of a text.
    EditText { target: Vec<Segment>, edits: Vec<TextEdit> },
    /// Appends an entry to a keyed list.
    AddItem { target: Vec<Segment>, value: Value },
    /// Puts another entry in the place of one.
    ReplaceItem { target: Vec<Segment>, value: Value },
    /// Takes an entry away.
    RemoveItem { target: Vec<Segment> },
}

/// One replacement in a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextEdit {
    /// Occurs exactly once in the text.
    pub old_text: String,
    pub new_text: String,
}

/// Operations within the limits, each well formed.
#[derive(Clone, Debug, PartialEq)]
pub struct Operations(Vec<Operation>);

impl Operations {
    /// In the order in which they apply.
    pub fn as_slice(&self) -> &[Operation] {
        &self.0
    }

    /// About how many bytes they bring; what is more than `most` is not counted to its end.
    pub(crate) fn size(&self, most: usize) -> usize {
        let size = |operation: &Operation| match operation {
            Operation::Set { value, .. } | Operation::AddItem { value, .. } | Operation::ReplaceItem { value, .. } => size(value, most),
            Operation::Merge { value, .. } => size_of_members(value, most),
            Operation::EditText { edits, .. } => edits.iter().map(|edit| edit.old_text.len() + edit.new_text.len()).sum(),
            Operation::Remove { .. } | Operation::RemoveItem { .. } => 0,
        };
        self.0.iter().map(size).fold(0, usize::saturating_add)
    }
}

impl Operation {
    /// Where it happens, from the root of the configuration.
    pub fn target(&self) -> &[Segment] {
        match self {
            Self::Set { target, .. }
            | Self::Merge { target, .. }
            | Self::Remove { target }
            | Self::EditText { target, .. }
            | Self::AddItem { target, .. }
            | Self::ReplaceItem { target, .. }
            | Self::RemoveItem { target } => target,
        }
    }
}
