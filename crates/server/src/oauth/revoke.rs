//! `POST /oauth/revoke`: clients hand tokens back (RFC 7009).

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use document::ToSchema;
use http::StatusCode;

use super::form::ClientForm;
use super::{OauthErrorBody, OauthResult, private};
use crate::App;

/// A token of the client's own.
#[derive(Debug, ToSchema)]
pub struct TokenOfClient {
    pub token: String,
    /// Not needed: tokens tell what they are.
    pub token_type_hint: Option<String>,
    /// Unless the client names itself as `Authorization: Basic`.
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
}

/// Hand a token back
///
/// A refresh token takes its grant with it, an access token only itself. A token that is unknown is as good as revoked.
#[document::path(post, path = "/oauth/revoke", operation_id = "oauth_revoke", tag = "OAuth",
    request_body(content = TokenOfClient, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "It is good no more"), (status = 400, body = OauthErrorBody, description = "The request has no token"),
        (status = 401, body = OauthErrorBody, description = "The client is unknown, or its secret is wrong")))]
pub(crate) async fn revoke(State(app): State<App>, form: ClientForm) -> OauthResult<Response> {
    let client = form.client(&app).await?;
    app.grants.revoke_token(&client, form.fields.need("token")?).await?;
    Ok(private(StatusCode::OK.into_response()))
}
