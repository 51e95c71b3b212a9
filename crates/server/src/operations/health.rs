//! Is the process there, and can it work.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::App;
use crate::edge::ApiError;

/// The state of the process.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    pub status: &'static str,
    pub version: &'static str,
}

/// Whether the process runs
#[utoipa::path(get, path = "/health", operation_id = "health", tag = "Operations", responses((status = 200, body = Health)))]
pub(crate) async fn health() -> Json<Health> {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// Whether the database answers
#[utoipa::path(get, path = "/ready", operation_id = "ready", tag = "Operations",
    responses((status = 200, body = Health), (status = 503, description = "The database does not answer")))]
pub(crate) async fn ready(State(app): State<App>) -> Result<Json<Health>, ApiError> {
    app.db.ping().await.map_err(|error| {
        tracing::warn!(%error, "the database does not answer");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "The database does not answer.")
    })?;
    Ok(health().await)
}
