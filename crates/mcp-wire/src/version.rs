//! The revisions of the protocol.

/// A revision of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    V20241105,
    V20250326,
    V20250618,
    V20251125,
    V20260728,
}

impl Version {
    /// Every revision, the newest first.
    pub const ALL: [Self; 5] = [Self::V20260728, Self::V20251125, Self::V20250618, Self::V20250326, Self::V20241105];
    /// The newest that begins with `initialize`.
    pub const NEWEST_SESSION: Self = Self::V20251125;
    /// The newest, whose requests say everything themselves.
    pub const STATELESS: Self = Self::V20260728;

    pub fn name(self) -> &'static str {
        match self {
            Self::V20241105 => "2024-11-05",
            Self::V20250326 => "2025-03-26",
            Self::V20250618 => "2025-06-18",
            Self::V20251125 => "2025-11-25",
            Self::V20260728 => "2026-07-28",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }

    /// Whether every request says by itself who asks and in which revision; older ones begin with `initialize`.
    pub fn is_stateless(self) -> bool {
        self >= Self::STATELESS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_known_by_their_names() {
        assert!(Version::ALL.into_iter().all(|version| Version::named(version.name()) == Some(version)));
        assert!(Version::ALL.is_sorted_by(|newer, older| newer > older));
        assert_eq!(Version::named("2027-01-01"), None);
        assert!(Version::STATELESS.is_stateless() && !Version::NEWEST_SESSION.is_stateless());
    }
}
