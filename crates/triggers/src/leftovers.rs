//! What projects have at providers, which stays there when they go.

use kernel::ProjectId;

use crate::model::Subscription;
use crate::{TriggerError, Triggers};

/// Accounts and triggers at providers; to be read before the projects go, and removed after.
#[derive(Debug, Default)]
pub struct Leftovers {
    accounts: Vec<(&'static str, String)>,
    subscriptions: Vec<Subscription>,
}

impl Triggers {
    #[kernel::boxed]
    pub async fn leftovers(&self, projects: &[ProjectId]) -> Result<Leftovers, TriggerError> {
        let mut left = Leftovers::default();
        for project in projects {
            left.accounts.extend(self.0.connections.elsewhere(*project).await?);
            left.subscriptions.extend(self.at_hubs(*project).await?);
        }
        Ok(left)
    }

    pub fn remove_leftovers(&self, left: Leftovers) {
        self.remove_later(left.subscriptions);
        self.0.connections.forget(left.accounts);
    }
}
