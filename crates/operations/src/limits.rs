//! How long a service may take to answer: one time for all, and others by integration.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use catalog::Integration;

/// Shorter than the callers' own limit, so that they hear why.
const USUAL: Duration = Duration::from_secs(25);

/// The time that services have, retries included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeLimits {
    usual: Duration,
    /// By provider and integration.
    others: Arc<HashMap<(String, String), Duration>>,
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self { usual: USUAL, others: Arc::default() }
    }
}

impl TimeLimits {
    /// The same time for all, if it is given, and others by provider and integration.
    pub fn new(usual: Option<Duration>, others: HashMap<(String, String), Duration>) -> Self {
        Self { usual: usual.unwrap_or(USUAL), others: Arc::new(others) }
    }

    /// What an integration's service has.
    pub fn of(&self, integration: &Integration) -> Duration {
        let named = self.others.get(&(integration.provider.to_owned(), integration.key.clone()));
        named.copied().unwrap_or(self.usual)
    }

    /// The integrations of a provider that have a time of their own.
    pub fn named(&self, provider: &str) -> impl Iterator<Item = &str> {
        self.others.keys().filter(move |(named, _)| named == provider).map(|(_, key)| key.as_str())
    }
}
