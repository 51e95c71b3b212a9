//! Keys, access tokens and sessions to scopes, and the operator. A handler that does not ask for a scope cannot name a project, so it cannot reach a row.

use std::marker::PhantomData;

use ::grants::Grants;
use axum::extract::FromRequestParts;
use futures_util::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::request::Parts;
use kernel::key::KeyHash;
use kernel::{Permission, Scope};
use people::Via;
use user_sessions::UserSessions;

use super::session::Signed;
use super::{ApiError, Code, bearer, end_user, session};
use crate::App;

const NO_KEY: &str =
    "Send `Authorization: ApiKey <key>`. The first key is in `owner.key` of the data directory; `toolyard key create` makes more.";
const BAD_KEY: &str = "This key is unknown or revoked. `toolyard key list` shows the keys there are.";
const NO_OPERATOR: &str = "Send `Authorization: Access <operator key>`. It is in `operator.key` of the data directory.";
const NOT_OPERATOR: &str = "Only the operator may do this, and somebody else is signed in. Sign in at `/sign-in` with the operator key.";

const FOR_AGENTS: &str =
    "This key acts for its agents only: it opens `/agents` and `/mcp/agents/{agent_id}` of these. Use a key that is not bound to agents.";

const SESSION_ONLY: &str = "This is the token of a session, which opens that session at `/sessions/{session_id}` and `/mcp/sessions/{session_id}` and nothing else.";

/// Marks a request that we make ourselves, for a tool that the caller may use, with what the caller may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnBehalf(pub(crate) Scope);

/// Marks a request whose sender must show a key, whoever is signed in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyOnly;

/// Marks a request of a client that somebody let act for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByClient;

/// A scope that holds at least the permission `P`.
#[derive(Debug)]
pub struct Scoped<P>(pub Scope, pub(crate) PhantomData<P>);

/// Permissions as a type.
pub trait Requires: Send {
    const PERMISSIONS: &'static [Permission];
}

macro_rules! permissions {
    ($($name:ident),*) => {$(
        #[derive(Debug)]
        pub struct $name;
        impl Requires for $name {
            const PERMISSIONS: &'static [Permission] = &[Permission::$name];
        }
    )*};
}

permissions!(
    ViewTools,
    RunTools,
    EditTools,
    ViewTriggers,
    RunTriggers,
    EditTriggers,
    ViewWorkflows,
    RunWorkflows,
    EditWorkflows,
    ViewAgents,
    RunAgents,
    EditAgents,
    ViewSecrets,
    EditSecrets,
    ViewMembers,
    EditMembers
);

/// A key, whatever it may do.
#[derive(Debug)]
pub struct AnyKey;

impl Requires for AnyKey {
    const PERMISSIONS: &'static [Permission] = &[];
}

/// Calling as an agent: an agent narrows what its caller may do, and opens nothing.
#[derive(Debug)]
pub struct RunAgentTools;

impl Requires for RunAgentTools {
    const PERMISSIONS: &'static [Permission] = &[Permission::RunAgents, Permission::RunTools];
}

impl<P: Requires> FromRequestParts<App> for Scoped<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        Ok(Self(scoped(parts, app, P::PERMISSIONS).await?, PhantomData))
    }
}

/// The scope of a request whose sender has these permissions. Boxed, so that it is compiled once and not into every handler.
fn scoped<'a>(parts: &'a mut Parts, app: &'a App, needed: &'static [Permission]) -> BoxFuture<'a, Result<Scope, ApiError>> {
    Box::pin(async move {
        let scope = acting(parts, app).await?;
        if let Some(missing) = needed.iter().find(|permission| !scope.may(**permission)) {
            return Err(ApiError::forbidden(*missing, needed));
        }
        // What an agent's own tools ask of us comes from inside.
        let for_agents = matches!(needed.first(), Some(Permission::ViewAgents | Permission::RunAgents));
        if scope.is_for_agents && !for_agents && parts.extensions.get::<OnBehalf>().is_none() {
            return Err(ApiError::new(Code::KeyForAgentsOnly, FOR_AGENTS));
        }
        let scope = end_user::by_header(parts, app, scope, needed).await?;
        app.catalog.ready(scope.project).await?;
        // The body is read after this, on the project's account.
        parts.extensions.insert(scope.project);
        Ok(scope)
    })
}

/// Who acts: the caller that we act for, the holder of a key or of a token, or whoever is signed in in this browser.
async fn acting(parts: &mut Parts, app: &App) -> Result<Scope, ApiError> {
    if let Some(OnBehalf(scope)) = parts.extensions.get() {
        return Ok(*scope);
    }
    match credential(parts) {
        Some((Scheme::Key, token)) if Grants::is_token(token) => {
            let scope = bearer::scope(app, token, parts.uri.path()).await?;
            parts.extensions.insert(ByClient);
            Ok(scope)
        }
        Some((Scheme::Key, token)) if UserSessions::is_token(token) => Err(ApiError::unauthorized(Code::UserSessionEnded, SESSION_ONLY)),
        Some((Scheme::Key, key)) => {
            let scope = app.accounts.authenticator().authenticate(key).await?;
            scope.ok_or_else(|| ApiError::unauthorized(Code::InvalidKey, BAD_KEY))
        }
        Some((Scheme::Access, _)) => Err(ApiError::unauthorized(Code::WrongScheme, NO_KEY)),
        // A header that makes no sense is not forgiven because of a cookie.
        None if parts.headers.contains_key(AUTHORIZATION) || parts.extensions.get::<KeyOnly>().is_some() => {
            Err(ApiError::unauthorized(Code::MissingKey, NO_KEY))
        }
        None if session::session_token(app, &parts.headers).is_some() => session::scope(parts, app).await,
        None => Err(ApiError::unauthorized(Code::MissingKey, NO_KEY)),
    }
}

/// Ends work that waits for something when the key behind it is revoked or its project is gone.
pub(crate) async fn while_good<T>(app: &App, scope: Scope, work: impl Future<Output = T>) -> Result<T, ApiError> {
    tokio::select! {
        done = work => Ok(done),
        () = app.accounts.authenticator().ended(scope.key) => Err(ApiError::unauthorized(Code::InvalidKey, BAD_KEY)),
    }
}

/// The operator of the deployment: whoever sends the operator key, or signed in with it in this browser.
#[derive(Debug)]
pub struct Operator;

impl FromRequestParts<App> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        match credential(parts) {
            Some((Scheme::Access, key)) if app.operator_key.matches(&KeyHash::of(key)) => Ok(Self),
            Some((Scheme::Access, _)) => Err(ApiError::unauthorized(Code::InvalidKey, NO_OPERATOR)),
            // A header decides alone, whoever is signed in besides.
            None if !parts.headers.contains_key(AUTHORIZATION) && session::session_token(app, &parts.headers).is_some() => {
                let Signed(signed_in) = Signed::from_request_parts(parts, app).await?;
                if signed_in.via == Via::Operator { Ok(Self) } else { Err(ApiError::new(Code::OperatorOnly, NOT_OPERATOR)) }
            }
            _ => Err(ApiError::unauthorized(Code::MissingKey, NO_OPERATOR)),
        }
    }
}

enum Scheme {
    Key,
    Access,
}

/// What a request shows in place of a key.
pub(crate) fn token_of(parts: &Parts) -> Option<&str> {
    credential(parts).and_then(|(scheme, token)| matches!(scheme, Scheme::Key).then_some(token))
}

/// The credential of a request. A value without a scheme is a key, as older clients send it.
fn credential(parts: &Parts) -> Option<(Scheme, &str)> {
    let value = parts.headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let (scheme, key) = value.split_once(' ').unwrap_or(("", value));
    let key = key.trim();
    if key.is_empty() {
        return None;
    }
    match scheme.to_ascii_lowercase().as_str() {
        "access" => Some((Scheme::Access, key)),
        "apikey" | "bearer" | "" => Some((Scheme::Key, key)),
        _ => None,
    }
}
