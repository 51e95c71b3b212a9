//! What Composio offers, in memory: a list that is replaced as a whole, so that whoever looks at it sees one edition.

use std::collections::HashMap;
use std::sync::Arc;

use catalog::Integration;
use kernel::Timestamp;

use crate::convert::{ToolkitListing, ToolsRead};

/// One edition of the catalog.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    pub(crate) edition: u64,
    pub(crate) integrations: Vec<Arc<Integration>>,
    places: HashMap<String, usize>,
    /// When all of it was read; none while it is still coming in.
    pub(crate) read_at: Option<Timestamp>,
}

impl Listing {
    pub(crate) fn new(edition: u64, wholes: Vec<ToolkitListing>, read_at: Option<Timestamp>) -> Self {
        let mut listing = Self { edition, read_at, ..Self::default() };
        for whole in wholes {
            listing.put(whole.into());
        }
        listing
    }

    /// The same with one integration more, or another edition of it.
    pub(crate) fn with(&self, integration: Integration) -> Self {
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

    pub(crate) fn get(&self, key: &str) -> Option<&Arc<Integration>> {
        self.places.get(key).map(|place| &self.integrations[*place])
    }

    /// Whether the integration is here with its tools.
    pub(crate) fn is_filled(&self, key: &str) -> bool {
        self.get(key).is_some_and(|integration| integration.service::<ToolsRead>().is_some_and(|filled| filled.0))
    }

    pub(crate) fn tools(&self) -> usize {
        self.integrations.iter().map(|integration| integration.actions.len()).sum()
    }

    pub(crate) fn events(&self) -> usize {
        self.integrations.iter().map(|integration| integration.events.len()).sum()
    }
}
