//! What Composio offers, in memory: a list that is replaced as a whole, so that whoever looks at it sees one edition.

use std::collections::HashMap;
use std::sync::Arc;

use catalog::Integration;
use kernel::Timestamp;

use super::convert::{Filled, Whole};

/// One edition of the catalog.
#[derive(Clone, Debug, Default)]
pub(super) struct Listing {
    pub(super) edition: u64,
    pub(super) integrations: Vec<Arc<Integration>>,
    places: HashMap<String, usize>,
    /// When all of it was read; none while it is still coming in.
    pub(super) read_at: Option<Timestamp>,
}

impl Listing {
    pub(super) fn new(edition: u64, wholes: Vec<Whole>, read_at: Option<Timestamp>) -> Self {
        let mut listing = Self { edition, read_at, ..Self::default() };
        for whole in wholes {
            listing.put(whole.into());
        }
        listing
    }

    /// The same with one integration more, or another edition of it.
    pub(super) fn with(&self, integration: Integration) -> Self {
        let mut next = Self { edition: self.edition + 1, ..self.clone() };
        next.put(integration);
        next
    }

    fn put(&mut self, integration: Integration) {
        if let Some(place) = self.places.get(&integration.key) {
            self.integrations[*place] = Arc::new(integration);
        } else {
            self.places.insert(integration.key.clone(), self.integrations.len());
            self.integrations.push(Arc::new(integration));
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Arc<Integration>> {
        self.places.get(key).map(|place| &self.integrations[*place])
    }

    /// Whether the integration is here with its tools.
    pub(super) fn is_filled(&self, key: &str) -> bool {
        self.get(key).is_some_and(|integration| integration.service::<Filled>().is_some_and(|filled| filled.0))
    }

    pub(super) fn tools(&self) -> usize {
        self.integrations.iter().map(|integration| integration.actions.len()).sum()
    }

    pub(super) fn events(&self) -> usize {
        self.integrations.iter().map(|integration| integration.events.len()).sum()
    }
}
