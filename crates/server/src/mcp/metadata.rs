//! `/.well-known/oauth-protected-resource`: how to get in, for clients that look for it there (RFC 9728).

use axum::Extension;
use axum::extract::State;
use document::ToSchema;
use serde::Serialize;

use crate::App;
use crate::agents::agent_ref;
use crate::edge::mount::{AskedPath, RESOURCE};
use crate::edge::{ApiResult, Json, PathOf};

/// What a client has to know to be let in.
#[derive(Debug, Serialize, ToSchema)]
pub struct ResourceMetadata {
    pub resource: String,
    pub resource_name: &'static str,
    /// Who gives out access tokens: this server, unless the operator named another. A project key is a token in any case.
    pub authorization_servers: [String; 1],
    pub bearer_methods_supported: [&'static str; 1],
    pub scopes_supported: Vec<&'static str>,
    pub resource_documentation: String,
}

/// Where the metadata of a path is.
pub(super) fn metadata_url(app: &App, path: &str) -> String {
    format!("{}{RESOURCE}{path}", public_url(app))
}

fn public_url(app: &App) -> &str {
    app.options.public_url()
}

/// The path of a resource as the client knows it, under whichever mount.
fn known_as(asked: Option<Extension<AskedPath>>, path: &str) -> String {
    let asked = asked.as_ref().and_then(|Extension(AskedPath(asked))| asked.split_once(RESOURCE));
    asked.map(|(_, rest)| rest).filter(|rest| rest.ends_with(path)).unwrap_or(path).to_owned()
}

fn describe(app: &App, path: &str, scopes: &[&'static str]) -> Json<ResourceMetadata> {
    let public = public_url(app);
    Json(ResourceMetadata {
        resource: format!("{public}{path}"),
        resource_name: "Toolyard",
        authorization_servers: [app.options.authorization_server.clone().unwrap_or_else(|| public.to_owned())],
        bearer_methods_supported: ["header"],
        scopes_supported: scopes.to_vec(),
        resource_documentation: format!("{public}/docs"),
    })
}

/// How to get in
#[document::path(get, path = "/.well-known/oauth-protected-resource", operation_id = "mcp_resource_metadata_root", tag = "MCP",
    responses((status = 200, body = ResourceMetadata)))]
pub(crate) async fn root(State(app): State<App>) -> Json<ResourceMetadata> {
    describe(&app, "/mcp", &["run_tools"])
}

/// How to get into `/mcp`
#[document::path(get, path = "/.well-known/oauth-protected-resource/mcp", operation_id = "mcp_resource_metadata", tag = "MCP",
    responses((status = 200, body = ResourceMetadata)))]
pub(crate) async fn project(State(app): State<App>, asked: Option<Extension<AskedPath>>) -> Json<ResourceMetadata> {
    describe(&app, &known_as(asked, "/mcp"), &["run_tools"])
}

/// How to get into `/mcp/agents/{agent_id}`
#[document::path(get, path = "/.well-known/oauth-protected-resource/mcp/agents/{agent_id}", operation_id = "mcp_agent_resource_metadata", tag = "MCP",
    params(("agent_id" = inline(crate::shapes::AgentIdText), Path)), responses((status = 200, body = ResourceMetadata)))]
pub(crate) async fn agent(
    State(app): State<App>,
    asked: Option<Extension<AskedPath>>,
    PathOf(id): PathOf<String>,
) -> ApiResult<Json<ResourceMetadata>> {
    agent_ref(&id)?;
    Ok(describe(&app, &known_as(asked, &format!("/mcp/agents/{id}")), &["run_agents", "run_tools"]))
}
