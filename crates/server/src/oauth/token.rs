//! `POST /oauth/token`: tokens for codes, refresh tokens and devices.

use ::grants::{Exchange, Refusal, Tokens, read_scope, write_scope};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use document::ToSchema;
use serde::Serialize;

use super::form::ClientForm;
use super::metadata::DEVICE_CODE;
use super::{OauthError, OauthErrorBody, OauthResult, private, surface_of};
use crate::App;
use crate::edge::Json;

/// What a client asks for tokens with.
#[derive(Debug, ToSchema)]
pub struct TokenForm {
    /// `authorization_code`, `refresh_token` or `urn:ietf:params:oauth:grant-type:device_code`.
    pub grant_type: String,
    /// Unless the client names itself as `Authorization: Basic`.
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    pub code: Option<String>,
    pub code_verifier: Option<String>,
    pub redirect_uri: Option<String>,
    pub refresh_token: Option<String>,
    pub device_code: Option<String>,
    /// At a refresh: fewer permissions than the person gave.
    pub scope: Option<String>,
    /// The surface that the token is for; it must be the one that the person was asked about.
    pub resource: Option<String>,
}

/// Tokens, shown once.
#[derive(Serialize, ToSchema)]
pub struct TokenAnswer {
    pub access_token: String,
    pub token_type: &'static str,
    /// Seconds.
    pub expires_in: u64,
    /// Good once: the answer to a refresh has the next one.
    pub refresh_token: String,
    /// What the person allowed.
    pub scope: String,
}

impl std::fmt::Debug for TokenAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenAnswer")
    }
}

/// Get tokens
///
/// A refresh token is good once; one that comes a second time ends the grant with all its tokens.
#[document::path(post, path = "/oauth/token", operation_id = "oauth_token", tag = "OAuth",
    request_body(content = TokenForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, body = TokenAnswer), (status = 400, body = OauthErrorBody, description = "No tokens, and why"),
        (status = 401, body = OauthErrorBody, description = "The client is unknown, or its secret is wrong")))]
pub(crate) async fn token(State(app): State<App>, form: ClientForm) -> OauthResult<Response> {
    let client = form.client(&app).await?;
    let fields = &form.fields;
    let surface = surface_of(&app, fields.get("resource"))?;
    let tokens = match fields.need("grant_type")? {
        "authorization_code" => {
            let exchange = Exchange {
                code: fields.need("code")?,
                verifier: fields.get("code_verifier"),
                redirect_uri: fields.get("redirect_uri"),
                surface: surface.as_ref(),
            };
            app.grants.exchange(&client, exchange).await?
        }
        "refresh_token" => {
            let asked = read_scope(fields.get("scope"))?;
            app.grants.refresh(&client, fields.need("refresh_token")?, asked, surface.as_ref()).await?
        }
        DEVICE_CODE => app.grants.poll_device(&client, fields.need("device_code")?).await?,
        _ => {
            let known = format!("`grant_type` must be `authorization_code`, `refresh_token` or `{DEVICE_CODE}`.");
            return Err(OauthError::new(Refusal::UnsupportedGrantType, known));
        }
    };
    Ok(private(Json(answer(&tokens)).into_response()))
}

fn answer(tokens: &Tokens) -> TokenAnswer {
    TokenAnswer {
        access_token: tokens.access.expose().to_owned(),
        token_type: "Bearer",
        expires_in: tokens.access_for.as_secs(),
        refresh_token: tokens.refresh.expose().to_owned(),
        scope: write_scope(tokens.permissions),
    }
}
