//! `POST /oauth/register`: clients that register themselves (RFC 7591).

use ::grants::{NewClient, Refusal};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use document::ToSchema;
use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::{OauthError, OauthErrorBody, OauthResult, private};
use crate::App;
use crate::edge::Json;
use crate::edge::extract::read_body;
use crate::edge::session::visitor;

/// Descriptions are short.
const LIMIT: usize = 32 << 10;

/// What a client says of itself. What else it says is not used here.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ClientBody {
    /// `https` addresses, addresses of this very machine (any port fits), or addresses of an application such as `cursor://…`.
    #[serde(default)]
    pub redirect_uris: Vec<String>,
    pub client_name: Option<String>,
    pub client_uri: Option<String>,
    /// `none`, `client_secret_basic` (the default) or `client_secret_post`.
    pub token_endpoint_auth_method: Option<String>,
    pub grant_types: Option<Vec<String>>,
    pub response_types: Option<Vec<String>>,
    pub scope: Option<String>,
}

impl From<ClientBody> for NewClient {
    fn from(body: ClientBody) -> Self {
        Self {
            redirect_uris: body.redirect_uris,
            client_name: body.client_name,
            client_uri: body.client_uri,
            token_endpoint_auth_method: body.token_endpoint_auth_method,
            grant_types: body.grant_types,
            response_types: body.response_types,
            scope: body.scope,
        }
    }
}

/// The client as it is known from now on.
#[derive(Debug, Serialize, ToSchema)]
pub struct RegisteredBody {
    pub client_id: String,
    /// Shown once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    pub client_id_issued_at: i64,
    /// 0: the secret does not expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_expires_at: Option<i64>,
    pub client_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_uri: Option<String>,
    pub redirect_uris: Vec<String>,
    pub token_endpoint_auth_method: &'static str,
    pub grant_types: Vec<&'static str>,
    pub response_types: [&'static str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// Register a client
///
/// Anybody may. A client that no person lets in within a day is forgotten.
#[document::path(post, path = "/oauth/register", operation_id = "register_oauth_client", tag = "OAuth", request_body = ClientBody,
    responses((status = 201, body = RegisteredBody), (status = 400, body = OauthErrorBody, description = "What the client says of itself cannot be taken"),
        (status = 429, body = OauthErrorBody, description = "Too many clients were registered from here, or wait for somebody")))]
pub(crate) async fn register(State(app): State<App>, request: Request) -> OauthResult<Response> {
    let (parts, body) = request.into_parts();
    let address = visitor(&app, &parts).address.map(|address| address.to_string()).unwrap_or_default();
    let body = read_body(Request::from_parts(parts, body), LIMIT).await?;
    let wrong = |error: serde_json::Error| {
        OauthError::new(Refusal::InvalidClientMetadata, format!("The body is not a client's description: {error}."))
    };
    let new: ClientBody = serde_json::from_slice(&body).map_err(wrong)?;
    let made = app.grants.register(&new.into(), &address).await?;
    let body = RegisteredBody {
        client_id: made.client.id,
        client_secret_expires_at: made.secret.is_some().then_some(0),
        client_secret: made.secret.map(|secret| secret.expose().to_owned()),
        client_id_issued_at: made.created_at.seconds(),
        client_name: made.client.name,
        client_uri: made.client.uri,
        redirect_uris: made.client.redirect_uris,
        token_endpoint_auth_method: made.method,
        grant_types: made.grant_types,
        response_types: ["code"],
        scope: made.scope,
    };
    Ok(private((StatusCode::CREATED, Json(body)).into_response()))
}
