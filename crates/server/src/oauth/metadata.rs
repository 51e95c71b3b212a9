//! `/.well-known/oauth-authorization-server`: what clients have to know to be let in (RFC 8414).

use axum::extract::State;
use document::ToSchema;
use kernel::Permission;
use serde::Serialize;

use crate::App;
use crate::edge::Json;

const METHODS: [&str; 3] = ["none", "client_secret_basic", "client_secret_post"];

/// The device's way to tokens (RFC 8628).
pub(crate) const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// Where everything is, and what is offered.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServerMetadata {
    pub issuer: String,
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    pub registration_endpoint: String,
    pub revocation_endpoint: String,
    pub introspection_endpoint: String,
    pub device_authorization_endpoint: String,
    pub scopes_supported: Vec<&'static str>,
    pub response_types_supported: [&'static str; 1],
    pub response_modes_supported: [&'static str; 1],
    pub grant_types_supported: [&'static str; 3],
    pub token_endpoint_auth_methods_supported: [&'static str; 3],
    pub revocation_endpoint_auth_methods_supported: [&'static str; 3],
    pub introspection_endpoint_auth_methods_supported: [&'static str; 3],
    pub code_challenge_methods_supported: [&'static str; 1],
    /// The answer of the authorization endpoint says who answers (RFC 9207).
    pub authorization_response_iss_parameter_supported: bool,
    /// A client id may be the address of a document about the client.
    pub client_id_metadata_document_supported: bool,
    pub service_documentation: String,
}

fn describe(app: &App) -> Json<ServerMetadata> {
    let public = app.options.public_url();
    let at = |path: &str| format!("{public}{path}");
    Json(ServerMetadata {
        issuer: public.to_owned(),
        authorization_endpoint: at("/oauth/authorize"),
        token_endpoint: at("/oauth/token"),
        registration_endpoint: at("/oauth/register"),
        revocation_endpoint: at("/oauth/revoke"),
        introspection_endpoint: at("/oauth/introspect"),
        device_authorization_endpoint: at("/oauth/device"),
        scopes_supported: Permission::ALL.iter().map(|permission| permission.name()).collect(),
        response_types_supported: ["code"],
        response_modes_supported: ["query"],
        grant_types_supported: ["authorization_code", "refresh_token", DEVICE_CODE],
        token_endpoint_auth_methods_supported: METHODS,
        revocation_endpoint_auth_methods_supported: METHODS,
        introspection_endpoint_auth_methods_supported: METHODS,
        code_challenge_methods_supported: ["S256"],
        authorization_response_iss_parameter_supported: true,
        client_id_metadata_document_supported: true,
        service_documentation: at("/docs"),
    })
}

/// How clients get tokens
///
/// It is the same behind any path, where clients look that know the path of the server or of what they call.
#[document::path(get, path = "/.well-known/oauth-authorization-server", operation_id = "oauth_server_metadata", tag = "OAuth",
    responses((status = 200, body = ServerMetadata)))]
pub(crate) async fn root(State(app): State<App>) -> Json<ServerMetadata> {
    describe(&app)
}

/// The same, where clients look that know OpenID Connect
#[document::path(get, path = "/.well-known/openid-configuration", operation_id = "openid_configuration", tag = "OAuth",
    responses((status = 200, body = ServerMetadata)))]
pub(crate) async fn openid(State(app): State<App>) -> Json<ServerMetadata> {
    describe(&app)
}
