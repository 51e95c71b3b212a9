//! Slugs: names that stand in call refs, so they can hold neither `.` nor `__`.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

const MAX: usize = 128;

/// A checked slug.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Slug(String);

/// Why a text is not a slug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlugError {
    #[error("must be URL-safe: letters, digits, `-` and `_`, at most 128 characters")]
    NotUrlSafe,
    #[error("must not contain dots or consecutive underscores. Use single hyphens or underscores as separators.")]
    Ambiguous,
}

impl FromStr for Slug {
    type Err = SlugError;

    fn from_str(text: &str) -> Result<Self, SlugError> {
        let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let dotted_safe = text.bytes().all(|byte| safe(byte) || byte == b'.');
        if text.is_empty() || text.len() > MAX || !dotted_safe || text.starts_with('.') {
            return Err(SlugError::NotUrlSafe);
        }
        // A ref writes `.` as `__`, so an underscore at an edge would run together with the separator.
        if text.contains('.') || text.contains("__") || text.starts_with('_') || text.ends_with('_') {
            return Err(SlugError::Ambiguous);
        }
        Ok(Self(text.to_owned()))
    }
}

impl Slug {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_never_ambiguous() {
        for good in ["main", "github-main", "a_b", "A1"] {
            assert!(good.parse::<Slug>().is_ok(), "{good}");
        }
        for (bad, error) in [
            ("", SlugError::NotUrlSafe),
            ("a b", SlugError::NotUrlSafe),
            ("a\n", SlugError::NotUrlSafe),
            (".a", SlugError::NotUrlSafe),
            ("a.b", SlugError::Ambiguous),
            ("a__b", SlugError::Ambiguous),
            ("a_", SlugError::Ambiguous),
            ("_a", SlugError::Ambiguous),
        ] {
            assert_eq!(bad.parse::<Slug>(), Err(error), "{bad:?}");
        }
    }
}
