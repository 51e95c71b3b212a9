//! Access tokens to scopes: whoever let the client in, held to what they allowed and to the surface that they allowed it for.

use ::grants::{Bearer, EndedWhy, GrantError, Granter, Surface};
use kernel::{KeyId, ProjectId, Scope};
use store::StoreError;

use super::{ApiError, Code};
use crate::App;

const BAD_TOKEN: &str = "This access token is unknown, expired or revoked. Refresh it, or sign in again.";

/// What somebody who let a client in may do in a project at this moment.
pub(crate) async fn granter_scope(app: &App, project: ProjectId, granter: Granter) -> Result<Option<Scope>, StoreError> {
    match granter {
        Granter::User(user) => app.accounts.member_scope(project, user).await,
        Granter::Key(key) => {
            Ok(app.accounts.authenticator().key_scope(key).await?.filter(|scope| scope.project == project && !scope.is_for_agents))
        }
    }
}

/// What a client with this token may do at this path.
pub(super) async fn scope(app: &App, token: &str, path: &str) -> Result<Scope, ApiError> {
    let bad = || ApiError::unauthorized(Code::InvalidToken, BAD_TOKEN);
    let bearer = app.grants.authenticate(token).await?.ok_or_else(bad)?;
    if !bearer.surface.opens(&Surface::reached(path)) {
        let hint = format!("This access token is for `{}` and opens nothing else. Sign in for what you want to reach.", bearer.surface);
        return Err(ApiError::unauthorized(Code::TokenForAnotherSurface, &hint));
    }
    match granter_scope(app, bearer.project, bearer.granter).await? {
        Some(granter) => Ok(narrowed(granter, &bearer)),
        None => {
            // Somebody who comes back later decides anew.
            match app.grants.end(bearer.project, bearer.grant, EndedWhy::GranterGone).await {
                Ok(_) | Err(GrantError::NotFound) => Err(bad()),
                Err(error) => Err(error.into()),
            }
        }
    }
}

/// A client never has more than whoever let it in has at this moment. The record names it by its grant.
fn narrowed(granter: Scope, bearer: &Bearer) -> Scope {
    Scope { key: KeyId::from(bearer.grant.uuid()), permissions: granter.permissions.and(bearer.permissions), ..granter }
}
