//! Keys to scopes. A handler that does not ask for a scope cannot name a project, so it cannot reach a row.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use http::StatusCode;
use http::header::AUTHORIZATION;
use http::request::Parts;
use kernel::key::KeyHash;
use kernel::{Permission, Scope};

use super::ApiError;
use crate::App;

const NO_KEY: &str =
    "Send `Authorization: ApiKey <key>`. The first key is in `owner.key` of the data directory; `toolyard key create` makes more.";
const BAD_KEY: &str = "This key is unknown or revoked. `toolyard key list` shows the keys there are.";
const NO_OPERATOR: &str = "Send `Authorization: Access <operator key>`. It is in `operator.key` of the data directory.";

const FOR_AGENTS: &str =
    "This key acts for its agents only: it opens `/agents` and `/mcp/agents/{agent_id}` of these. Use a key that is not bound to agents.";

/// Marks a request that we make ourselves, for a tool that the caller may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnBehalf;

/// A scope that holds at least the permission `P`.
#[derive(Debug)]
pub struct Scoped<P>(pub Scope, pub(crate) PhantomData<P>);

/// A permission as a type.
pub trait Requires: Send {
    const PERMISSION: Permission;
}

macro_rules! permissions {
    ($($name:ident),*) => {$(
        #[derive(Debug)]
        pub struct $name;
        impl Requires for $name {
            const PERMISSION: Permission = Permission::$name;
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
    EditAgents
);

impl<P: Requires> FromRequestParts<App> for Scoped<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let key = match credential(parts) {
            None => return Err(ApiError::unauthorized("missing_key", NO_KEY)),
            Some((Scheme::Key, key)) => key,
            Some((Scheme::Access, _)) => return Err(ApiError::unauthorized("wrong_scheme", NO_KEY)),
        };
        let scope = app.accounts.authenticator().authenticate(key).await?;
        let scope = scope.ok_or_else(|| ApiError::unauthorized("invalid_key", BAD_KEY))?;
        if !scope.may(P::PERMISSION) {
            return Err(ApiError::forbidden(P::PERMISSION));
        }
        // What an agent's own tools ask of us comes from inside.
        let for_agents = matches!(P::PERMISSION, Permission::ViewAgents | Permission::RunAgents);
        if scope.is_for_agents && !for_agents && parts.extensions.get::<OnBehalf>().is_none() {
            return Err(ApiError::new(StatusCode::FORBIDDEN, FOR_AGENTS));
        }
        app.catalog.ready(scope.project).await?;
        Ok(Self(scope, PhantomData))
    }
}

/// The operator of the deployment.
#[derive(Debug)]
pub struct Operator;

impl FromRequestParts<App> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        match credential(parts) {
            Some((Scheme::Access, key)) if app.operator_key.matches(&KeyHash::of(key)) => Ok(Self),
            Some((Scheme::Access, _)) => Err(ApiError::unauthorized("invalid_key", NO_OPERATOR)),
            _ => Err(ApiError::unauthorized("missing_key", NO_OPERATOR)),
        }
    }
}

enum Scheme {
    Key,
    Access,
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
