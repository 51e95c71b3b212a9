//! `/v3.1/connected_accounts`

use axum::extract::{Request, State};
use composio_api::Refusal;
use composio_api::connected_accounts::{
    AccountBody, AccountsFilter, ChangeAccount, ChangedBody, CreateAccount, CreateLink, EnableAccount, InitiatedBody, LinkBody,
    RefreshedBody, RevokedBody, SuccessBody,
};
use composio_api::page::Page;
use document::{IntoParams, ToSchema};
use http::StatusCode;
use serde::Deserialize;

use super::{ApiAnswer, Asked, ByKey};
use crate::App;
use crate::edge::auth::{EditTools, ViewTools};
use crate::edge::extract::read_body;
use crate::edge::{Json, PathOf, Payload};

/// Which accounts to list. Lists have commas; what is left out does not matter.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ComposioAccountsQuery {
    user_ids: Option<String>,
    toolkit_slugs: Option<String>,
    statuses: Option<String>,
    auth_config_ids: Option<String>,
    connected_account_ids: Option<String>,
    /// Every account is `PRIVATE`.
    account_type: Option<String>,
    /// `created_at` or `updated_at`.
    order_by: Option<String>,
    /// `asc` or `desc`.
    order_direction: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

/// Get a link with which a user connects an account
#[document::path(post, path = "/v3.1/connected_accounts/link", operation_id = "composio_create_link", tag = "Composio's API",
    security(("key" = ["edit_tools"]), ("composio_key" = [])), request_body = CreateLink,
    responses((status = 201, body = LinkBody), (status = 400, description = "Not with this auth config, alias or address"), (status = 404, description = "No such auth config")))]
pub(crate) async fn link(
    ByKey(scope, _): ByKey<EditTools>,
    State(app): State<App>,
    Payload(body): Payload<CreateLink>,
) -> ApiAnswer<(StatusCode, Json<LinkBody>)> {
    Ok((StatusCode::CREATED, Json(app.composio_api.create_link(scope, body).await?)))
}

/// Connect an account
///
/// At once where the credential is there; else a person does so at the address that is answered.
#[document::path(post, path = "/v3.1/connected_accounts", operation_id = "composio_create_account", tag = "Composio's API",
    security(("key" = ["edit_tools"]), ("composio_key" = [])), request_body = CreateAccount,
    responses((status = 201, body = InitiatedBody), (status = 400, description = "Not with this auth config or these values"), (status = 404, description = "No such auth config")))]
pub(crate) async fn create(
    ByKey(scope, _): ByKey<EditTools>,
    State(app): State<App>,
    Payload(body): Payload<CreateAccount>,
) -> ApiAnswer<(StatusCode, Json<InitiatedBody>)> {
    Ok((StatusCode::CREATED, Json(app.composio_api.create_account(scope, body).await?)))
}

/// List accounts
#[document::path(get, path = "/v3.1/connected_accounts", operation_id = "composio_list_accounts", tag = "Composio's API",
    security(("key" = ["view_tools"]), ("composio_key" = [])), params(ComposioAccountsQuery), responses((status = 200, body = inline(Page<AccountBody>))))]
pub(crate) async fn list(
    ByKey(scope, _): ByKey<ViewTools>,
    State(app): State<App>,
    Asked(query): Asked<ComposioAccountsQuery>,
) -> ApiAnswer<Json<Page<AccountBody>>> {
    let filter = AccountsFilter {
        user_ids: query.user_ids,
        toolkit_slugs: query.toolkit_slugs,
        statuses: query.statuses,
        auth_config_ids: query.auth_config_ids,
        connected_account_ids: query.connected_account_ids,
        account_type: query.account_type,
        order_by: query.order_by,
        order_direction: query.order_direction,
    };
    Ok(Json(app.composio_api.list_accounts(scope, &filter, query.limit.as_deref(), query.cursor.as_deref()).await?))
}

/// Read an account
#[document::path(get, path = "/v3.1/connected_accounts/{account_id}", operation_id = "composio_fetch_account", tag = "Composio's API",
    security(("key" = ["view_tools"]), ("composio_key" = [])), params(("account_id" = String, Path)),
    responses((status = 200, body = AccountBody), (status = 404, description = "No such account")))]
pub(crate) async fn fetch(
    ByKey(scope, _): ByKey<ViewTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
) -> ApiAnswer<Json<AccountBody>> {
    Ok(Json(app.composio_api.show_account(scope, &id).await?))
}

/// Change what an account is called, or its credential
#[document::path(patch, path = "/v3.1/connected_accounts/{account_id}", operation_id = "composio_change_account", tag = "Composio's API",
    security(("key" = ["edit_tools"]), ("composio_key" = [])), params(("account_id" = String, Path)), request_body = ChangeAccount,
    responses((status = 200, body = ChangedBody), (status = 400, description = "Something that it cannot be"), (status = 404, description = "No such account")))]
pub(crate) async fn change(
    ByKey(scope, _): ByKey<EditTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    Payload(body): Payload<ChangeAccount>,
) -> ApiAnswer<Json<ChangedBody>> {
    Ok(Json(app.composio_api.change_account(scope, &id, body).await?))
}

/// Delete an account
#[document::path(delete, path = "/v3.1/connected_accounts/{account_id}", operation_id = "composio_delete_account", tag = "Composio's API",
    security(("key" = ["edit_tools"]), ("composio_key" = [])), params(("account_id" = String, Path)),
    responses((status = 200, body = SuccessBody), (status = 404, description = "No such account")))]
pub(crate) async fn delete(
    ByKey(scope, _): ByKey<EditTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
) -> ApiAnswer<Json<SuccessBody>> {
    Ok(Json(app.composio_api.delete_account(scope, &id).await?))
}

/// Switch an account on or off
#[document::path(patch, path = "/v3.1/connected_accounts/{account_id}/status", operation_id = "composio_enable_account", tag = "Composio's API",
    security(("key" = ["edit_tools"]), ("composio_key" = [])), params(("account_id" = String, Path)), request_body = EnableAccount,
    responses((status = 200, body = SuccessBody), (status = 404, description = "No such account")))]
pub(crate) async fn enable(
    ByKey(scope, _): ByKey<EditTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    Payload(body): Payload<EnableAccount>,
) -> ApiAnswer<Json<SuccessBody>> {
    Ok(Json(app.composio_api.enable_account(scope, &id, body.enabled).await?))
}

/// Where a person goes in the end, if one is needed. It may stand in the body too.
#[derive(Debug, Default, Deserialize, IntoParams, ToSchema)]
#[schema(as = composio::RefreshAccount)]
#[into_params(parameter_in = Query)]
pub struct RefreshAccount {
    redirect_url: Option<String>,
}

/// Renew an account's credential, or begin anew where a person is needed
#[document::path(post, path = "/v3.1/connected_accounts/{account_id}/refresh", operation_id = "composio_refresh_account", tag = "Composio's API",
    security(("key" = ["edit_tools"]), ("composio_key" = [])), params(("account_id" = String, Path), RefreshAccount), request_body = Option<RefreshAccount>,
    responses((status = 200, body = RefreshedBody), (status = 404, description = "No such account"), (status = 422, description = "The account is disabled")))]
pub(crate) async fn refresh(
    ByKey(scope, _): ByKey<EditTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    Asked(query): Asked<RefreshAccount>,
    request: Request,
) -> ApiAnswer<Json<RefreshedBody>> {
    // SDKs send an empty object, or nothing at all.
    let body = read_body(request, app.options.body_limit).await?;
    let sent: Option<RefreshAccount> = if body.is_empty() {
        None
    } else {
        serde_json::from_slice(&body).map_err(|error| Refusal::bad_request(format!("The body is no JSON that is understood: {error}")))?
    };
    let return_to = sent.and_then(|sent| sent.redirect_url).or(query.redirect_url);
    Ok(Json(app.composio_api.refresh_account(scope, &id, return_to.as_deref()).await?))
}

/// Take an account out of use for good, and tell its provider
#[document::path(post, path = "/v3.1/connected_accounts/{account_id}/revoke", operation_id = "composio_revoke_account", tag = "Composio's API",
    security(("key" = ["edit_tools"]), ("composio_key" = [])), params(("account_id" = String, Path)),
    responses((status = 200, body = RevokedBody), (status = 404, description = "No such account"), (status = 409, description = "It is not connected")))]
pub(crate) async fn revoke(
    ByKey(scope, _): ByKey<EditTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
) -> ApiAnswer<Json<RevokedBody>> {
    Ok(Json(app.composio_api.revoke_account(scope, &id).await?))
}
