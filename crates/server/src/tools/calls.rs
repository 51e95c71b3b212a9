//! `GET /tools/calls`: the audit trail.

use ::agents::AgentRef;
use accounts::Holder;
use axum::extract::State;
use calls::{CallFilter, CallRecord};
use kernel::{ConnectionId, Id, KeyId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::App;
use crate::agents::agent_ref;
use crate::edge::auth::ViewTools;
use crate::edge::extract::moment;
use crate::edge::{ApiResult, Json, QueryOf, Scoped};

/// A call for the record; no arguments, no results.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecordBody {
    pub id: Uuid,
    /// As it was called.
    pub call_ref: String,
    /// The one name of the tool, whichever of its names and versions was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_id: Option<Uuid>,
    /// `key`, `person` (somebody who is signed in), `client` (which somebody let act for them), `operator`, or nothing where the project has no record of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<&'static str>,
    /// The key, the membership of the person who was signed in, or the grant of the client.
    pub key_id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_name: Option<String>,
    /// The grant that a client acted through for somebody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant_id: Option<Uuid>,
    /// The name of that client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<Uuid>,
    /// The name of that person, or the email.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_name: Option<String>,
    /// The agent that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Uuid>,
    /// The run of a workflow that it was a step of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The delivery of a trigger that started that run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<Uuid>,
    /// `ok`, `error` (the tool said no), `failed` (it did not run to its end), `running` (it has not ended) or `unknown` (the server that made
    /// it went away before the end; it may have taken effect).
    pub outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub duration_ms: f64,
    pub created_at: String,
}

impl RecordBody {
    fn new(record: CallRecord, holder: Option<&Holder>) -> Self {
        Self {
            id: record.id.uuid(),
            call_ref: record.call_ref,
            tool: record.tool,
            connection_id: record.connection.map(Id::uuid),
            via: via(record.key, holder),
            key_id: record.key.uuid(),
            key_name: holder.and_then(|holder| holder.key.clone()),
            grant_id: holder.and_then(|holder| holder.client.as_ref()).map(|_| record.key.uuid()),
            client_name: holder.and_then(|holder| holder.client.clone()),
            user_id: record.user.map(Id::uuid),
            user_name: holder.and_then(|holder| holder.person.clone()),
            agent_id: record.origin.agent.map(Id::uuid),
            run_id: record.origin.run.map(Id::uuid),
            step: record.origin.step,
            delivery_id: record.origin.delivery.map(Id::uuid),
            outcome: record.outcome.name(),
            message: record.message,
            duration_ms: record.duration.as_secs_f64() * 1000.0,
            created_at: record.created_at.to_string(),
        }
    }
}

/// What was acted through.
fn via(key: KeyId, holder: Option<&Holder>) -> Option<&'static str> {
    match holder {
        _ if key == KeyId::nil() => Some("operator"),
        Some(Holder { client: Some(_), .. }) => Some("client"),
        Some(Holder { key: Some(_), .. }) => Some("key"),
        Some(Holder { key: None, .. }) => Some("person"),
        None => None,
    }
}

/// A page of calls, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecordsAnswer {
    pub count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    pub calls: Vec<RecordBody>,
}

/// Which calls to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListCalls {
    pub connection_id: Option<Uuid>,
    #[param(inline, required = false, value_type = crate::shapes::OutcomeWord)]
    pub outcome: Option<String>,
    /// A ref in any of its forms, or a pattern such as `tools.native.github.*`.
    pub tool: Option<String>,
    /// An agent, by its id or number.
    #[param(inline, required = false, value_type = crate::shapes::AgentIdText)]
    pub agent_id: Option<String>,
    /// ISO 8601, `today`, `yesterday`, or how long ago, such as `2h`.
    #[param(inline, required = false, value_type = crate::shapes::TimeText)]
    pub since: Option<String>,
    /// 50 by default, 500 at most.
    pub limit: Option<i64>,
    pub cursor: Option<String>,
}

/// List calls, newest first
#[utoipa::path(get, path = "/tools/calls", operation_id = "list_tool_calls", tag = "Tools", security(("key" = ["view_tools"])), params(ListCalls),
    responses((status = 200, body = RecordsAnswer)))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    QueryOf(list): QueryOf<ListCalls>,
) -> ApiResult<Json<RecordsAnswer>> {
    let filter = CallFilter {
        connection: list.connection_id.map(ConnectionId::from),
        outcome: list.outcome,
        tool: list.tool,
        agent: match list.agent_id.as_deref().map(agent_ref).transpose()? {
            Some(AgentRef::Number(number)) => Some(app.agents.read(scope, AgentRef::Number(number)).await?.id),
            Some(AgentRef::Id(id)) => Some(id),
            None => None,
        },
        since: moment(&app, "since", list.since.as_deref())?,
        limit: list.limit,
        cursor: list.cursor,
    };
    let page = app.calls.records(scope.project, &filter).await?;
    let holders = app.accounts.holders(scope.project).await?;
    let body = |record: CallRecord| {
        let holder = holders.get(&record.key);
        RecordBody::new(record, holder)
    };
    Ok(Json(RecordsAnswer { count: page.calls.len(), cursor: page.cursor, calls: page.calls.into_iter().map(body).collect() }))
}
