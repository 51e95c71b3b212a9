//! The languages that pages for people are written in.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::suggest;

/// A language of our pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    #[default]
    En,
    De,
    Fr,
    Es,
}

/// A text that names none of the languages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no language of the pages; there are `en`, `de`, `fr` and `es`.{hint}", hint = suggest::did_you_mean(.0, Language::ALL.map(Language::code)))]
pub struct UnknownLanguage(pub String);

impl Language {
    pub const ALL: [Self; 4] = [Self::En, Self::De, Self::Fr, Self::Es];

    /// The code of ISO 639-1.
    pub const fn code(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::De => "de",
            Self::Fr => "fr",
            Self::Es => "es",
        }
    }

    /// The language of a code.
    pub fn of_code(code: &str) -> Result<Self, UnknownLanguage> {
        let shown = || code.chars().filter(|c| !c.is_control()).take(40).collect();
        Self::ALL.into_iter().find(|language| language.code() == code).ok_or_else(|| UnknownLanguage(shown()))
    }

    /// The one that a browser likes best of those that there are (RFC 9110, section 12.5.4); of equals the first.
    pub fn preferred(accepted: &str) -> Option<Self> {
        let mut best: Option<(Self, f32)> = None;
        for range in accepted.split(',').take(64) {
            let (tag, rest) = range.split_once(';').unwrap_or((range, ""));
            let weight = match rest.trim().strip_prefix("q=").map(|weight| weight.trim().parse::<f32>()) {
                None => 1.0,
                Some(Ok(weight)) => weight,
                Some(Err(_)) => continue,
            };
            let language = if tag.trim() == "*" { Some(Self::En) } else { Self::of_tag(tag) };
            let Some(language) = language else { continue };
            if weight > 0.0 && best.is_none_or(|(_, other)| weight > other) {
                best = Some((language, weight));
            }
        }
        best.map(|(language, _)| language)
    }

    /// The language of a tag: `de` and `de-AT` are the same here.
    fn of_tag(tag: &str) -> Option<Self> {
        Self::of_code(&tag.trim().split('-').next().unwrap_or_default().to_ascii_lowercase()).ok()
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_one_of_ours() {
        for language in Language::ALL {
            assert_eq!(Language::of_code(language.code()), Ok(language));
        }
        for wrong in ["", "x", "DE", "de-AT", "deutsch", "zh"] {
            assert!(Language::of_code(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_browser_gets_what_it_likes_best() {
        for (accepted, language) in [
            ("de-DE,de;q=0.9,en;q=0.8", Some(Language::De)),
            ("FR-ca", Some(Language::Fr)),
            ("zh,fr;q=0.5,es;q=0.7", Some(Language::Es)),
            ("en;q=0, de;q=0.1", Some(Language::De)),
            ("fr;q=x, es", Some(Language::Es)),
            ("*", Some(Language::En)),
            ("zh", None),
            ("", None),
        ] {
            assert_eq!(Language::preferred(accepted), language, "{accepted}");
        }
    }
}
