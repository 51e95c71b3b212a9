//! Composio's `user_id`: our end user. `default`, or nobody at all, is the project itself with its own accounts.
//!
//! `acting_for` turns a `user_id` into a scope that reaches that user's accounts and no others; `looking_for` does so without making the
//! name known; `user_of` is the way back.

use std::collections::HashMap;

use kernel::{AccountOwner, EndUserId, EndUserName, ProjectId, Scope};

use crate::{ApiError, ComposioApi, Refusal};

/// What Composio's SDKs call a user who has no name.
pub const DEFAULT_USER: &str = "default";

fn name(user: &str) -> Result<EndUserName, Refusal> {
    user.parse().map_err(|error| Refusal::bad_request(format!("`user_id` {error}.")))
}

impl ComposioApi {
    /// The scope for a user, who is known from now on.
    #[kernel::boxed]
    pub async fn acting_for(&self, scope: Scope, user: &str) -> Result<Scope, ApiError> {
        if user == DEFAULT_USER {
            return Ok(scope);
        }
        let end_user = self.parts().end_users.ensure(scope.project, &name(user)?).await?;
        Ok(scope.for_end_user(end_user))
    }

    /// The scope for a user whom nobody has to know. One who was never heard of has nothing.
    #[kernel::boxed]
    pub async fn looking_for(&self, scope: Scope, user: &str) -> Result<Scope, ApiError> {
        if user == DEFAULT_USER {
            return Ok(scope);
        }
        let end_user = self.parts().end_users.find(scope.project, &name(user)?).await?;
        Ok(scope.for_end_user(end_user.unwrap_or(EndUserId::nil())))
    }

    /// What Composio would call an owner of accounts.
    #[kernel::boxed]
    pub async fn user_of(&self, project: ProjectId, owner: AccountOwner) -> Result<String, ApiError> {
        let Some(end_user) = owner.end_user() else { return Ok(DEFAULT_USER.to_owned()) };
        let mut names = self.users_of(project, vec![end_user]).await?;
        Ok(names.remove(&end_user).unwrap_or_default())
    }

    /// The same for several end users.
    #[kernel::boxed]
    pub async fn users_of(&self, project: ProjectId, end_users: Vec<EndUserId>) -> Result<HashMap<EndUserId, String>, ApiError> {
        Ok(self.parts().end_users.names(project, end_users).await?)
    }
}
