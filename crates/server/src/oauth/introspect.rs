//! `POST /oauth/introspect`: what a token is good for (RFC 7662).

use ::grants::{Granter, write_scope};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use document::ToSchema;
use serde::Serialize;

use super::form::ClientForm;
use super::revoke::TokenOfClient;
use super::{OauthErrorBody, OauthResult, private, resource_url};
use crate::App;
use crate::edge::Json;
use crate::edge::bearer::granter_scope;

/// What a token is good for at this moment. Of one that is good for nothing, nothing else is said.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct TokenState {
    pub active: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// `access_token` or `refresh_token`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_type: Option<&'static str>,
    /// Who let the client in: the id of a user or of a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub: Option<String>,
    /// The address of the surface that it opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aud: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iss: Option<String>,
    /// Seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iat: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exp: Option<i64>,
}

/// Ask what a token is good for
///
/// A client may ask about its own tokens. Any other is not active.
#[document::path(post, path = "/oauth/introspect", operation_id = "oauth_introspect", tag = "OAuth",
    request_body(content = TokenOfClient, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, body = TokenState), (status = 400, body = OauthErrorBody, description = "The request has no token"),
        (status = 401, body = OauthErrorBody, description = "The client is unknown, or its secret is wrong")))]
pub(crate) async fn introspect(State(app): State<App>, form: ClientForm) -> OauthResult<Response> {
    let client = form.client(&app).await?;
    let state = match app.grants.introspect(&client, form.fields.need("token")?).await? {
        None => TokenState::default(),
        Some(found) => match granter_scope(&app, found.grant.project, found.grant.granter).await? {
            // Whoever let the client in may do nothing there now.
            None => TokenState::default(),
            Some(scope) => TokenState {
                active: true,
                scope: Some(write_scope(found.permissions.and(scope.permissions))),
                client_id: Some(client.id),
                token_type: Some(if found.is_refresh { "refresh_token" } else { "access_token" }),
                sub: Some(match found.grant.granter {
                    Granter::User(user) => user.to_string(),
                    Granter::Key(key) => key.to_string(),
                }),
                aud: Some(resource_url(&app, &found.grant.surface)),
                iss: Some(app.options.public_url().to_owned()),
                iat: Some(found.issued_at.seconds()),
                exp: Some(found.expires_at.seconds()),
            },
        },
    };
    Ok(private(Json(state).into_response()))
}
