//! `/.well-known/oauth-protected-resource`: how to get in, for clients that look for it there (RFC 9728).

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::App;
use crate::edge::PathOf;

/// What a client has to know to be let in.
#[derive(Debug, Serialize, ToSchema)]
pub struct ResourceMetadata {
    pub resource: String,
    pub resource_name: &'static str,
    /// Who gives out access tokens, where the operator named someone. A project key is a token in any case.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub authorization_servers: Vec<String>,
    pub bearer_methods_supported: [&'static str; 1],
    pub scopes_supported: [&'static str; 1],
    pub resource_documentation: String,
}

/// Where the metadata of a path is.
pub(super) fn metadata_url(app: &App, path: &str) -> String {
    format!("{}/.well-known/oauth-protected-resource{path}", public_url(app))
}

fn public_url(app: &App) -> &str {
    app.connections.public_url.trim_end_matches('/')
}

fn describe(app: &App, path: &str, scope: &'static str) -> Json<ResourceMetadata> {
    let public = public_url(app);
    Json(ResourceMetadata {
        resource: format!("{public}{path}"),
        resource_name: "Toolyard",
        authorization_servers: app.options.authorization_server.iter().cloned().collect(),
        bearer_methods_supported: ["header"],
        scopes_supported: [scope],
        resource_documentation: format!("{public}/docs"),
    })
}

/// How to get in
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource", operation_id = "mcp_resource_metadata_root", tag = "MCP",
    responses((status = 200, body = ResourceMetadata)))]
pub(crate) async fn root(State(app): State<App>) -> Json<ResourceMetadata> {
    describe(&app, "/mcp", "run_tools")
}

/// How to get into `/mcp`
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource/mcp", operation_id = "mcp_resource_metadata", tag = "MCP",
    responses((status = 200, body = ResourceMetadata)))]
pub(crate) async fn project(State(app): State<App>) -> Json<ResourceMetadata> {
    describe(&app, "/mcp", "run_tools")
}

/// How to get into `/mcp/agents/{agent_id}`
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource/mcp/agents/{agent_id}", operation_id = "mcp_agent_resource_metadata", tag = "MCP",
    params(("agent_id" = String, Path)), responses((status = 200, body = ResourceMetadata)))]
pub(crate) async fn agent(State(app): State<App>, PathOf(id): PathOf<String>) -> Json<ResourceMetadata> {
    describe(&app, &format!("/mcp/agents/{id}"), "run_agents")
}
