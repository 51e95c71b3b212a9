//! Is the process there, and can it work.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use axum::extract::State;
use document::ToSchema;
use serde::Serialize;
use serde_json::json;
use store::{Db, StoreError};

use crate::App;
use crate::edge::{ApiError, Code, Json};

const PAUSED: &str = "paused";
const PATIENCE: Duration = Duration::from_millis(950);
const TRIED_EVERY: Duration = Duration::from_secs(1);
const SLOW: &str = "takes too long to answer";

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
#[document::path(get, path = "/health", operation_id = "health", tag = "Operations", responses((status = 200, body = Health)))]
pub(crate) async fn health(State(app): State<App>) -> Json<Health> {
    let triggers = app.triggers.is_paused().then_some(PAUSED);
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION"), triggers })
}

/// Whether the database answers and takes writes.
#[derive(Debug, Default)]
pub struct DatabaseProbe(tokio::sync::Mutex<Option<(Instant, Option<String>)>>);

impl DatabaseProbe {
    /// What is wrong with the database, in words for whoever asks without a key; the rest is for the log.
    async fn trouble(&self, db: &Db) -> Option<String> {
        let looking = async {
            if let Err(error) = db.ping().await {
                return Some(said(&error));
            }
            // Writes are tried once a second at most, however many ask.
            let mut tried = self.0.lock().await;
            if let Some((_, trouble)) = tried.as_ref().filter(|(at, _)| at.elapsed() < TRIED_EVERY) {
                return trouble.clone();
            }
            let trouble = db.try_write().await.err().map(|error| said(&error));
            *tried = Some((Instant::now(), trouble.clone()));
            trouble
        };
        tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| Some(SLOW.to_owned()))
    }
}

fn said(error: &StoreError) -> String {
    tracing::warn!(%error, "not ready");
    error.trouble().unwrap_or_else(|| "fails".to_owned())
}

/// Whether the process can work, part by part.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReadyAnswer {
    pub status: &'static str,
    pub version: &'static str,
    /// `ok` for each part that is ready; `audit` is named only where calls wait to be recorded, `triggers` only where they are `paused`.
    #[schema(example = json!({"database": "ok"}))]
    pub parts: BTreeMap<&'static str, String>,
}

/// Whether the process can work
///
/// Answers within a second, from a write that is tried once a second at most and leaves nothing behind. When a part is not ready the answer is
/// 503, with the same body under `detail`.
#[document::path(get, path = "/ready", operation_id = "ready", tag = "Operations",
    responses((status = 200, body = ReadyAnswer), (status = 503, description = "A part is not ready; `detail.parts` says which and why")))]
pub(crate) async fn ready(State(app): State<App>) -> Result<Json<ReadyAnswer>, ApiError> {
    let trouble = app.readiness.trouble(&app.db).await;
    let unwritten = app.calls.unwritten_calls();
    let is_ready = trouble.is_none() && unwritten == 0;
    let status = if is_ready { "ok" } else { "not ready" };
    let mut parts = BTreeMap::from([("database", trouble.unwrap_or_else(|| "ok".to_owned()))]);
    if unwritten > 0 {
        parts.insert("audit", format!("{unwritten} calls could not be recorded yet"));
    }
    if app.triggers.is_paused() {
        parts.insert("triggers", PAUSED.to_owned());
    }
    let readiness = ReadyAnswer { status, version: env!("CARGO_PKG_VERSION"), parts };
    if is_ready { Ok(Json(readiness)) } else { Err(ApiError::new(Code::NotReady, json!(readiness))) }
}
