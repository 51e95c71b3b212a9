//! The revisions of the protocol that are served.

use mcp_wire::Version;

/// Every revision that is served, the newest first.
pub(crate) const SERVED: [Version; 4] = [Version::V20260728, Version::V20251125, Version::V20250618, Version::V20250326];
/// What a client speaks that names no revision.
pub(crate) const UNNAMED: Version = Version::V20250326;

/// The revision of this name, if it is served.
pub(crate) fn served(name: &str) -> Option<Version> {
    Version::named(name).filter(|version| SERVED.contains(version))
}
