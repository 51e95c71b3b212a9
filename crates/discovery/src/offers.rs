//! What was offered lately, so that a call can be traced back to the use case that led to it. It is in memory and forgets.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use catalog::{Found, Item};
use kernel::{KeyId, Scope};

/// Between finding a tool and calling it.
const LIFETIME: Duration = Duration::from_mins(30);
const MOST_PER_KEY: usize = 32;
const MOST_KEYS: usize = 2_000;
/// A longer text is a story, not something that will be asked again.
const MAX_USE_CASE: usize = 300;

/// An action as a provider names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionName {
    pub provider: String,
    pub integration: String,
    pub action: String,
}

#[derive(Debug)]
struct Offer {
    at: Instant,
    use_case: String,
    /// The best first.
    actions: Vec<ActionName>,
}

/// The newest offers of each key.
#[derive(Debug, Default)]
pub(crate) struct RecentOffers(Mutex<HashMap<KeyId, VecDeque<Offer>>>);

impl RecentOffers {
    pub(crate) fn add<'a>(&self, scope: Scope, use_case: &str, found: impl Iterator<Item = &'a Found>) {
        let actions: Vec<ActionName> = found.filter_map(name).collect();
        if actions.is_empty() || use_case.chars().count() > MAX_USE_CASE {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST_KEYS && !all.contains_key(&scope.key) {
            all.retain(|_, offers| offers.back().is_some_and(|newest| newest.at.elapsed() < LIFETIME));
            if all.len() >= MOST_KEYS {
                return;
            }
        }
        let offers = all.entry(scope.key).or_default();
        offers.retain(|offer| offer.use_case != use_case);
        if offers.len() >= MOST_PER_KEY {
            offers.pop_front();
        }
        offers.push_back(Offer { at: Instant::now(), use_case: use_case.to_owned(), actions });
    }

    /// The use case that the call answers: one that it was the best for before one that it was another choice for, the newest first. It is
    /// answered with that.
    pub(crate) fn take(&self, scope: Scope, called: &ActionName) -> Option<String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let offers = all.get_mut(&scope.key)?;
        offers.retain(|offer| offer.at.elapsed() < LIFETIME);
        let ranked = offers.iter().enumerate().filter_map(|(at, offer)| {
            let rank = offer.actions.iter().position(|action| action == called)?;
            Some((rank, std::cmp::Reverse(at)))
        });
        let (_, std::cmp::Reverse(at)) = ranked.min()?;
        offers.remove(at).map(|offer| offer.use_case)
    }
}

fn name(found: &Found) -> Option<ActionName> {
    let Item::Action(action) = &found.item else { return None };
    let integration = &found.integration;
    Some(ActionName { provider: integration.provider.to_owned(), integration: integration.key.clone(), action: action.key.clone() })
}
