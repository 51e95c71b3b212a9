//! Who may act in a session: whoever holds its token, and the project's own keys. A token opens its own session and nothing else.

use ::user_sessions::{UserSession, UserSessions};
use axum::extract::{FromRequestParts, Path};
use http::request::Parts;
use kernel::{Scope, UserSessionId};

use crate::App;
use crate::edge::auth::{KeyOnly, RunTools, token_of};
use crate::edge::{ApiError, Code, Scoped};

const ENDED: &str = "The session ended, or this is not its token. Make another at `/sessions`.";

const ROUTED: &str = "This is a session of the tool router: it is used at `/v3.1/tool_router/session/{session_id}`.";

/// A session that holds, with what may be done in it.
#[derive(Debug)]
pub(crate) struct InSession(pub(crate) UserSession, pub(crate) Scope);

impl FromRequestParts<App> for InSession {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        // A client of the protocol shows a key or a token; a browser's cookie is not meant for it.
        if parts.uri.path().starts_with("/mcp/") {
            parts.extensions.insert(KeyOnly);
        }
        let id = session_id(parts).await?;
        let token = token_of(parts).filter(|token| UserSessions::is_token(token)).map(str::to_owned);
        let ended = || ApiError::unauthorized(Code::UserSessionEnded, ENDED);
        let (session, scope) = if let Some(token) = token {
            app.user_sessions.authenticate(&token).await?.filter(|(session, _)| session.id == id).ok_or_else(ended)?
        } else {
            let Scoped(scope, _) = Scoped::<RunTools>::from_request_parts(parts, app).await?;
            let session = app.user_sessions.find(scope.project, id).await?;
            // A request for one end user does not see another's session.
            if !scope.sees(session.owner) {
                return Err(::user_sessions::UserSessionError::NotFound.into());
            }
            // Its config is a fence that only the tool router knows.
            if session.is_routed() {
                return Err(ApiError::new(Code::UserSessionNotFound, ROUTED));
            }
            let within = app.user_sessions.scope(&session).await?.ok_or_else(ended)?;
            let permissions = within.permissions.and(scope.permissions);
            (session, Scope { permissions, ..within })
        };
        app.catalog.ready(scope.project).await?;
        parts.extensions.insert(scope.project);
        Ok(Self(session, scope))
    }
}

/// The session that the path names.
async fn session_id(parts: &mut Parts) -> Result<UserSessionId, ApiError> {
    let missing = || ApiError::new(Code::UserSessionNotFound, "There is no such session.");
    let Path(named) = Path::<std::collections::HashMap<String, String>>::from_request_parts(parts, &()).await.map_err(|_| missing())?;
    named.get("session_id").and_then(|id| id.parse().ok()).ok_or_else(missing)
}
