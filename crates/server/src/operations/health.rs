//! Is the process there, and can it work.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::App;
use crate::edge::ApiError;

const PAUSED: &str = "paused";

/// The state of the process.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    pub status: &'static str,
    pub version: &'static str,
    /// `paused`, where this server was started without running triggers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggers: Option<&'static str>,
}

/// Whether the process runs
#[utoipa::path(get, path = "/health", operation_id = "health", tag = "Operations", responses((status = 200, body = Health)))]
pub(crate) async fn health(State(app): State<App>) -> Json<Health> {
    let triggers = app.triggers.settings.paused.then_some(PAUSED);
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION"), triggers })
}

/// Whether the process can work, part by part.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReadyAnswer {
    pub status: &'static str,
    pub version: &'static str,
    /// `ok` for each part that is ready; `triggers` are named only where they are `paused`.
    #[schema(example = json!({"database": "ok"}))]
    pub parts: BTreeMap<&'static str, String>,
}

/// Whether the process can work
///
/// Answers within a second. When a part is not ready the answer is 503, with the same body under `detail`.
#[utoipa::path(get, path = "/ready", operation_id = "ready", tag = "Operations",
    responses((status = 200, body = ReadyAnswer), (status = 503, description = "A part is not ready; `detail.parts` says which and why")))]
pub(crate) async fn ready(State(app): State<App>) -> Result<Json<ReadyAnswer>, ApiError> {
    let database = app.db.ping().await;
    if let Err(error) = &database {
        tracing::warn!(%error, "not ready");
    }
    let is_ready = database.is_ok();
    // What went wrong inside is for the log; whoever asks needs no key.
    let word = |fine: bool| if fine { "ok" } else { "does not answer" }.to_owned();
    let status = if is_ready { "ok" } else { "not ready" };
    let mut parts = BTreeMap::from([("database", word(is_ready))]);
    if app.triggers.settings.paused {
        parts.insert("triggers", PAUSED.to_owned());
    }
    let readiness = ReadyAnswer { status, version: env!("CARGO_PKG_VERSION"), parts };
    if is_ready { Ok(Json(readiness)) } else { Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, json!(readiness))) }
}
