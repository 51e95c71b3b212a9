//! Why operations cannot be read or applied.

use std::fmt;

/// A list of operations that was refused as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{fault}", place(*index))]
pub struct ChangeError {
    /// Which operation failed; none when it is the list or its outcome.
    pub index: Option<usize>,
    pub fault: ChangeProblem,
}

fn place(index: Option<usize>) -> String {
    index.map(|index| format!("operations[{index}]: ")).unwrap_or_default()
}

impl ChangeError {
    /// A name for the failure that stays the same across releases.
    pub fn code(&self) -> &'static str {
        self.fault.code()
    }
}

/// What is wrong, in words that say what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeProblem {
    #[error("{0}")]
    Invalid(String),
    #[error("{what} may hold at most {limit} {unit}, not {given}. {hint}", hint = hint(unit))]
    Limit { what: String, limit: usize, given: usize, unit: &'static str },
    #[error("`{place}` is not there. {nearby}")]
    NotFound { place: String, nearby: Nearby },
    #[error("`{place}` is {found}, not an object, so nothing is inside it. Name `{place}` itself or another target.")]
    NotObject { place: String, found: &'static str },
    #[error("`{place}` is {found}, not a list. Name a target that is a list, or use set.")]
    NotList { place: String, found: &'static str },
    #[error("`{place}` is {found}, not a text. Use set to replace it.")]
    NotText { place: String, found: &'static str },
    #[error("`{place}` fits {count} entries. Set the whole list so that each key occurs once.")]
    Ambiguous { place: String, count: usize },
    #[error("`{place}` is there already. Use replace_item, or give the new entry another key.")]
    Duplicate { place: String },
    #[error("edits[{edit}].old_text is not in `{place}`. Read the text again and copy the part to replace exactly, whitespace included.")]
    TextNotFound { place: String, edit: usize },
    #[error("edits[{edit}].old_text occurs {count} times in `{place}`. Take in more of the surrounding text so that it occurs once.")]
    TextAmbiguous { place: String, edit: usize, count: usize },
}

impl ChangeProblem {
    /// A name for the failure that stays the same across releases.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid_operation",
            Self::Limit { .. } => "limit_exceeded",
            Self::NotFound { .. } => "target_not_found",
            Self::NotObject { .. } => "target_not_object",
            Self::NotList { .. } => "target_not_list",
            Self::NotText { .. } => "target_not_text",
            Self::Ambiguous { .. } => "target_ambiguous",
            Self::Duplicate { .. } => "duplicate_item",
            Self::TextNotFound { .. } => "text_not_found",
            Self::TextAmbiguous { .. } => "text_ambiguous",
        }
    }

    pub(super) fn at(self, index: usize) -> ChangeError {
        ChangeError { index: Some(index), fault: self }
    }
}

fn hint(unit: &str) -> &'static str {
    match unit {
        "characters" => "Shorten the text.",
        "levels" => "Flatten the value.",
        "segments" => "Set a larger part of the configuration instead.",
        _ => "Send fewer at a time.",
    }
}

/// The names that are there instead of the one that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearby(Vec<String>);

impl Nearby {
    const SHOWN: usize = 20;

    pub(super) fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().collect())
    }
}

impl fmt::Display for Nearby {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("That part is still empty.");
        }
        let names: Vec<String> = self.0.iter().take(Self::SHOWN).map(|name| format!("`{}`", super::target::short(name))).collect();
        write!(f, "There is: {}", names.join(", "))?;
        let more = self.0.len().saturating_sub(Self::SHOWN);
        if more == 0 { f.write_str(".") } else { write!(f, " and {more} more.") }
    }
}
