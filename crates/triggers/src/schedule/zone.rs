//! Time zones by their IANA names.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde::{Deserialize, Serialize};

/// Only the built-in database counts, so that a schedule means the same on every machine.
static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone of the IANA database, UTC unless said otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Zone(TimeZone);

/// The text names no time zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time zone; hint: use an IANA name such as `UTC` or `Europe/Berlin`")]
pub struct ZoneError(String);

impl Zone {
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    pub(super) fn rules(&self) -> &TimeZone {
        &self.0
    }
}

impl Default for Zone {
    fn default() -> Self {
        Self(TimeZone::UTC)
    }
}

impl FromStr for Zone {
    type Err = ZoneError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match DATABASE.get(text.trim()) {
            Ok(zone) if zone.iana_name().is_some() => Ok(Self(zone)),
            _ => Err(ZoneError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Zone {
    type Error = ZoneError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Zone> for String {
    fn from(zone: Zone) -> Self {
        zone.name().to_owned()
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case() {
        for (text, name) in
            [("UTC", "UTC"), (" utc ", "UTC"), ("europe/berlin", "Europe/Berlin"), ("Australia/Lord_Howe", "Australia/Lord_Howe")]
        {
            assert_eq!(text.parse::<Zone>().unwrap().name(), name);
        }
        assert_eq!(Zone::default(), "UTC".parse().unwrap());
    }

    #[test]
    fn anything_else_is_named_in_the_error() {
        for text in ["", "PST", "+02:00", "Europe/Atlantis", "Etc/Unknown", "CET-1CEST,M3.5.0,M10.5.0/3", "../etc/passwd"] {
            let error = text.parse::<Zone>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` is not a time zone")), "{error}");
        }
    }

    #[test]
    fn reads_and_writes_as_text() {
        let zone: Zone = serde_json::from_value(serde_json::json!("america/new_york")).unwrap();
        assert_eq!(serde_json::to_value(zone).unwrap(), "America/New_York");
    }
}
