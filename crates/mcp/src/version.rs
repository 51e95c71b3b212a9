//! The revisions of the protocol that are spoken here.

/// A revision of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    V20250326,
    V20250618,
    V20251125,
    V20260728,
}

impl Version {
    /// Every revision, the newest first.
    pub const ALL: [Self; 4] = [Self::V20260728, Self::V20251125, Self::V20250618, Self::V20250326];
    /// The newest that begins with `initialize`.
    pub const NEWEST_SESSION: Self = Self::V20251125;
    /// What a client speaks that names no revision.
    pub const UNNAMED: Self = Self::V20250326;

    pub fn name(self) -> &'static str {
        match self {
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
        self >= Self::V20260728
    }

    pub fn names() -> [&'static str; 4] {
        Self::ALL.map(Self::name)
    }
}
