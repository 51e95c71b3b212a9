//! For whom a request is made. A request for an end user acts with the accounts of that user and with no others.

use http::request::Parts;
use kernel::{EndUserId, EndUserName, Permission, Scope};

use super::auth::OnBehalf;
use super::{ApiError, ApiResult};
use crate::App;

/// Names the end user that a request is for.
pub(crate) const END_USER: &str = "toolyard-end-user";

/// Where a request can be for an end user. Elsewhere the header is refused, because it would change nothing.
const FOR_END_USERS: [&str; 14] = [
    "/tools/connections",
    "/tools/call",
    "/tools/calls",
    "/tools/approvals",
    "/tools/discover",
    "/tools/resolve",
    "/tools/specs",
    "/triggers/connections",
    "/triggers/subscriptions",
    "/triggers/schedules",
    "/workflows/invoke",
    "/workflows/runs",
    "/mcp",
    "/v1",
];

/// What is the project's alone, although it stands below one of those.
const OF_THE_PROJECT: [&str; 4] =
    ["/tools/connections/hooks", "/tools/approvals/notices", "/tools/calls/keeping", "/tools/discover/learned"];

/// Whether a request to this path can be for an end user.
pub fn is_for_end_users(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let is_below = |known: &&str| path.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    FOR_END_USERS.iter().any(is_below) && !OF_THE_PROJECT.iter().any(is_below)
}

/// The scope for the end user that the header names. Whoever may only look makes nobody known.
pub(super) async fn by_header(parts: &Parts, app: &App, scope: Scope, needed: &[Permission]) -> ApiResult<Scope> {
    let Some(value) = parts.headers.get(END_USER).filter(|_| parts.extensions.get::<OnBehalf>().is_none()) else { return Ok(scope) };
    if !is_for_end_users(parts.uri.path()) {
        return Err(ApiError::unprocessable(format!("This route does not act for an end user; leave the header `{END_USER}` out.")));
    }
    let name = std::str::from_utf8(value.as_bytes()).ok().and_then(|text| text.parse::<EndUserName>().ok());
    let name = name.ok_or_else(|| ApiError::unprocessable(format!("`{END_USER}` {}.", kernel::BadEndUserName)))?;
    let only_looks = needed.iter().all(|permission| permission.name().starts_with("view_"));
    let end_user = if only_looks {
        app.end_users.find(scope.project, &name).await?.unwrap_or(EndUserId::nil())
    } else {
        app.end_users.ensure(scope.project, &name).await?
    };
    Ok(scope.for_end_user(end_user))
}

/// The scope for the end user that a body names, who is known from now on.
pub(crate) async fn acting_for(app: &App, scope: Scope, name: Option<&str>) -> ApiResult<Scope> {
    let Some(name) = name else { return Ok(scope) };
    let end_user = app.end_users.ensure(scope.project, &read(name)?).await?;
    if !scope.sees(kernel::AccountOwner::EndUser(end_user)) {
        return Err(ApiError::unprocessable(format!("`end_user` and the header `{END_USER}` name different end users.")));
    }
    Ok(scope.for_end_user(end_user))
}

/// The end user that a list is about: whom the request is for, or whom it names. A name that nobody has leaves nothing.
pub(crate) async fn wanted(app: &App, scope: Scope, name: Option<&str>) -> ApiResult<Option<EndUserId>> {
    let named = match name {
        Some(name) => Some(app.end_users.find(scope.project, &read(name)?).await?.unwrap_or(EndUserId::nil())),
        None => None,
    };
    match (scope.end_user(), named) {
        (Some(own), Some(other)) if own != other => Ok(Some(EndUserId::nil())),
        (own, named) => Ok(own.or(named)),
    }
}

pub(crate) fn read(name: &str) -> ApiResult<EndUserName> {
    name.parse().map_err(|error| ApiError::unprocessable(format!("`end_user` {error}.")))
}
