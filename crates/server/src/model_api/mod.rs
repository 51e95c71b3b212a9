//! `/v1`: an agent is a model to whoever speaks OpenAI's API. Errors have the body that these clients read.

mod begin;
pub mod completions;
pub mod error;
#[cfg(feature = "describe")]
mod failures;
mod follow;
mod input;
pub mod responses;

use axum::extract::State;
use document::ToSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::App;
use crate::edge::auth::ViewWorkflows;
use crate::edge::{ApiError, Json, Scoped};

use begin::{AGENT, agents};
use error::{ModelApiError, ModelFailure};

/// The agents of a project, as models.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelList {
    pub object: &'static str,
    pub data: Vec<ModelBody>,
}

/// An agent as a model.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelBody {
    pub id: String,
    pub object: &'static str,
    pub created: i64,
    pub owned_by: &'static str,
}

/// Agents as models
#[document::path(get, path = "/v1/models", operation_id = "list_agent_models", tag = "Agents as models", security(("key" = ["view_workflows"])),
    responses((status = 200, body = ModelList), failures::ModelFailures,
        (status = 503, body = ModelFailure, description = "The database is not there now")))]
pub(crate) async fn models(
    scoped: Result<Scoped<ViewWorkflows>, ApiError>,
    State(app): State<App>,
) -> Result<Json<ModelList>, ModelApiError> {
    let Scoped(scope, _) = scoped?;
    let found = agents(&app, scope).await?;
    let model = |(slug, created): (String, i64)| ModelBody { id: format!("{AGENT}{slug}"), object: "model", created, owned_by: "toolyard" };
    Ok(Json(ModelList { object: "list", data: found.into_iter().map(model).collect() }))
}

/// A function of the client's, as runs take it.
fn function(name: &str, description: Option<String>, parameters: Option<Value>) -> Value {
    let parameters = parameters.filter(|parameters| !parameters.is_null()).unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    json!({"name": name, "description": description.unwrap_or_default(), "parameters": parameters})
}
