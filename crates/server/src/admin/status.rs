//! `/admin/status`: how the deployment stands, for its operator.

use axum::extract::State;
use document::ToSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::edge::{ApiResult, Json, Operator};
use crate::{App, Setting};

/// How the deployment stands.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeploymentStatus {
    pub version: &'static str,
    /// When the server started that answers.
    pub started_at: String,
    /// `sqlite` or `postgres`.
    pub database: &'static str,
    /// The servers that are there, the one that answers first.
    pub nodes: Vec<NodeBody>,
    pub queues: QueuesBody,
    pub settings: Vec<SettingBody>,
}

/// A running server.
#[derive(Debug, Serialize, ToSchema)]
pub struct NodeBody {
    pub id: Uuid,
    /// When it last said that it is there.
    pub seen_at: String,
}

/// What waits and what is under way, in all projects.
#[derive(Debug, Serialize, ToSchema)]
pub struct QueuesBody {
    /// Deliveries that are to be run, now or later.
    pub deliveries_ready: u64,
    pub deliveries_running: u64,
    /// Deliveries that ended dead and are still kept.
    pub deliveries_dead: u64,
    /// Runs of workflows that are under way on the server that answers.
    pub runs_running: u64,
    pub approvals_pending: u64,
}

/// A setting of the server that answers. Of a secret one it says only whether it is `set` or `not set`.
#[derive(Debug, Serialize, ToSchema)]
pub struct SettingBody {
    pub name: &'static str,
    pub value: String,
    /// `default`, `flag`, `env` or `file`.
    pub source: &'static str,
}

impl From<&Setting> for SettingBody {
    fn from(setting: &Setting) -> Self {
        Self { name: setting.name, value: setting.value.clone(), source: setting.source }
    }
}

async fn queues(app: &App) -> ApiResult<QueuesBody> {
    let deliveries = app.triggers.stats().await?;
    Ok(QueuesBody {
        deliveries_ready: deliveries.due + deliveries.later,
        deliveries_running: deliveries.leased,
        deliveries_dead: app.triggers.dead().await?,
        runs_running: app.workflows.running(),
        approvals_pending: app.calls.waiting_approvals().await?,
    })
}

/// See how the deployment stands
#[document::path(get, path = "/admin/status", operation_id = "fetch_status", tag = "Admin", security(("operator" = [])),
    responses((status = 200, body = DeploymentStatus)))]
pub(crate) async fn fetch(_: Operator, State(app): State<App>) -> ApiResult<Json<DeploymentStatus>> {
    let nodes = app.calls.nodes().await?;
    Ok(Json(DeploymentStatus {
        version: env!("CARGO_PKG_VERSION"),
        started_at: app.started_at.to_string(),
        database: app.db.kind(),
        nodes: nodes.into_iter().map(|node| NodeBody { id: node.id, seen_at: node.seen_at.to_string() }).collect(),
        queues: queues(&app).await?,
        settings: app.options.settings.iter().map(SettingBody::from).collect(),
    }))
}
