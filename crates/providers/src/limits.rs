//! How long a service may take to answer: one time for all, and others by integration.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use catalog::Integration;

use crate::{native, openapi};

/// Shorter than the callers' own limit, so that they hear why.
const USUAL: u64 = 25;
const LONGEST: u64 = 3600;

/// The time that services have, retries included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeLimits {
    usual: Duration,
    /// By provider and integration.
    others: Arc<HashMap<(String, String), Duration>>,
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self { usual: Duration::from_secs(USUAL), others: Arc::default() }
    }
}

impl TimeLimits {
    /// What an integration's service has.
    pub fn of(&self, integration: &Integration) -> Duration {
        let named = self.others.get(&(integration.provider.to_owned(), integration.key.clone()));
        named.copied().unwrap_or(self.usual)
    }

    /// The native integrations that have a time of their own.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        self.others.keys().filter(|(provider, _)| provider == native::KEY).map(|(_, key)| key.as_str())
    }
}

/// Seconds for all, and `integration=seconds` for others, separated by commas.
impl FromStr for TimeLimits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut usual, mut others) = (Duration::from_secs(USUAL), HashMap::new());
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, given) = part.split_once('=').map_or((None, part), |(name, given)| (Some(name.trim()), given.trim()));
            let seconds = given.parse().ok().filter(|seconds| (1..=LONGEST).contains(seconds));
            let seconds = seconds.ok_or_else(|| format!("`{part}`: `{given}` must be seconds, 1 to {LONGEST}"))?;
            let Some(name) = name else {
                usual = Duration::from_secs(seconds);
                continue;
            };
            let (provider, key) = name.split_once('/').unwrap_or((native::KEY, name));
            if key.is_empty() || ![native::KEY, openapi::KEY].contains(&provider) {
                return Err(format!("`{part}`: name a native integration, such as `github`, or an import, such as `openapi/orders`"));
            }
            others.insert((provider.to_owned(), key.to_owned()), Duration::from_secs(seconds));
        }
        Ok(Self { usual, others: Arc::new(others) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_time_for_all_and_others_by_name() {
        assert_eq!("".parse(), Ok(TimeLimits::default()));
        let limits: TimeLimits = "10, github=60,openapi/orders=120".parse().unwrap();
        assert_eq!(limits.usual, Duration::from_secs(10));
        assert_eq!(limits.named().collect::<Vec<_>>(), ["github"]);
        assert_eq!(limits.others[&("openapi".to_owned(), "orders".to_owned())], Duration::from_mins(2));
        for wrong in ["x", "0", "3601", "github=", "github=x", "=5", "mcp/files=5", "openapi/=5"] {
            assert!(wrong.parse::<TimeLimits>().is_err(), "{wrong}");
        }
    }
}
