//! Forgetting an end user, and handing out what is kept about one.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use kernel::{EndUserId, EndUserName, Scope};
use serde_json::Value;
use store::StoreError;

use crate::{EndUser, EndUserError, EndUsers};

/// How long another node may still know the name: what it writes until then is removed too.
const KNOWN_ELSEWHERE: Duration = Duration::from_secs(3);

/// How many rows of each kind were removed.
pub type Forgotten = BTreeMap<&'static str, u64>;

/// What is kept about an end user, by kind.
pub type Export = BTreeMap<&'static str, Value>;

/// Whoever keeps rows about end users.
pub trait PersonalRows: Send + Sync + Debug {
    /// Removes what is kept about an end user, or takes out of it what it says about them; how many rows of which kind. It can be repeated.
    fn forget(&self, scope: Scope, end_user: EndUserId) -> BoxFuture<'_, Result<Forgotten, PersonalError>>;

    /// What is kept about an end user, without secrets.
    fn export(&self, scope: Scope, end_user: EndUserId) -> BoxFuture<'_, Result<Export, PersonalError>>;
}

/// A keeper could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum PersonalError {
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl EndUsers {
    fn keepers(&self) -> Vec<Arc<dyn PersonalRows>> {
        self.0.keepers.read().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect()
    }

    /// Removes everything that is kept about an end user, last their name. A caller who hangs up does not stop it, and where something could
    /// not be removed the name stays, so that it can be done again.
    #[kernel::boxed]
    pub async fn forget(&self, scope: Scope, name: &EndUserName) -> Result<Forgotten, EndUserError> {
        let EndUser { id, .. } = self.get(scope.project, name).await?;
        let this = self.clone();
        let work = self.0.tasks.spawn(async move {
            let forgotten = this.forget_rows(scope, id).await?;
            this.drop_name(scope.project, id).await?;
            let later = this.clone();
            this.0.tasks.spawn(async move {
                tokio::time::sleep(KNOWN_ELSEWHERE).await;
                if let Err(error) = later.forget_rows(scope, id).await {
                    tracing::error!(end_user = %id, %error, "what came while an end user was forgotten could not be removed");
                }
            });
            Ok(forgotten)
        });
        work.await.unwrap_or_else(|error| Err(PersonalError::Failed(error.to_string()).into()))
    }

    async fn forget_rows(&self, scope: Scope, id: EndUserId) -> Result<Forgotten, EndUserError> {
        let mut all = Forgotten::new();
        for keeper in self.keepers() {
            for (kind, count) in keeper.forget(scope, id).await? {
                *all.entry(kind).or_default() += count;
            }
        }
        Ok(all)
    }

    /// What is kept about an end user, without secrets.
    #[kernel::boxed]
    pub async fn export(&self, scope: Scope, name: &EndUserName) -> Result<(EndUser, Export), EndUserError> {
        let end_user = self.get(scope.project, name).await?;
        let mut all = Export::new();
        for keeper in self.keepers() {
            all.extend(keeper.export(scope, end_user.id).await?);
        }
        Ok((end_user, all))
    }
}
