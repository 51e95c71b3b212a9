//! `/tools/calls`: the audit trail.

use std::collections::HashMap;

use ::agents::AgentRef;
use accounts::Holder;
use axum::extract::State;
use calls::{CallError, CallFilter, CallRecord, KeptCall, Timings};
use document::{IntoParams, ToSchema};
use kernel::{CallId, ConnectionId, DeliveryId, EndUserId, Id, KeyId, Permission, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::App;
use crate::agents::agent_ref;
use crate::edge::auth::{EditTools, ViewTools};
use crate::edge::extract::moment;
use crate::edge::{ApiResult, Json, PathOf, Payload, QueryOf, Scoped, end_user};

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
    /// `key`, `person` (somebody who is signed in), `client` (which somebody let act for them), `operator`, `session` (of an end user), or nothing where the project has no record of it.
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
    /// The end user whom it was made for; their id alone once they are forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_user_id: Option<Uuid>,
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
    /// The approval that it waits for, or that it was made with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<Uuid>,
    /// `ok`, `error` (the tool said no), `failed` (it did not run to its end), `waiting` (it was not made, because a person is asked first),
    /// `running` (it has not ended) or `unknown` (the server that made it went away before the end; it may have taken effect).
    pub outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub duration_ms: f64,
    pub created_at: String,
}

impl RecordBody {
    fn new(record: CallRecord, holder: Option<&Holder>, end_users: &HashMap<EndUserId, String>) -> Self {
        Self {
            end_user: record.end_user.and_then(|end_user| end_users.get(&end_user).cloned()),
            end_user_id: record.end_user.map(Id::uuid),
            id: record.id.uuid(),
            call_ref: record.call_ref,
            tool: record.tool,
            connection_id: record.connection.map(Id::uuid),
            via: via(record.key, holder).or(record.end_user.map(|_| "session")),
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
            approval_id: record.approval.map(Id::uuid),
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
    /// Whose calls: a key, a membership or a grant.
    pub key_id: Option<Uuid>,
    /// The steps of a run.
    pub run_id: Option<Uuid>,
    /// The calls that a delivery of a trigger led to.
    pub delivery_id: Option<Uuid>,
    /// The calls that were made for one end user.
    #[param(inline, required = false, value_type = crate::shapes::EndUserText)]
    pub end_user: Option<String>,
    /// ISO 8601, `today`, `yesterday`, or how long ago, such as `2h`.
    #[param(inline, required = false, value_type = crate::shapes::TimeText)]
    pub since: Option<String>,
    /// Before this time, written in the same ways.
    #[param(inline, required = false, value_type = crate::shapes::TimeText)]
    pub until: Option<String>,
    /// 50 by default, 500 at most.
    pub limit: Option<i64>,
    pub cursor: Option<String>,
}

/// List calls, newest first
#[document::path(get, path = "/tools/calls", operation_id = "list_tool_calls", tag = "Tools", security(("key" = ["view_tools"])), params(ListCalls),
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
        key: list.key_id.map(KeyId::from),
        run: list.run_id.map(RunId::from),
        delivery: list.delivery_id.map(DeliveryId::from),
        end_user: end_user::wanted(&app, scope, list.end_user.as_deref()).await?,
        since: moment(&app, "since", list.since.as_deref())?,
        until: moment(&app, "until", list.until.as_deref())?,
        limit: list.limit,
        cursor: list.cursor,
    };
    let page = app.calls.records(scope.project, &filter).await?;
    let holders = app.accounts.holders(scope.project).await?;
    let end_users = app.end_users.names(scope.project, page.calls.iter().filter_map(|record| record.end_user).collect()).await?;
    let body = |record: CallRecord| {
        let holder = holders.get(&record.key);
        RecordBody::new(record, holder, &end_users)
    };
    Ok(Json(RecordsAnswer { count: page.calls.len(), cursor: page.cursor, calls: page.calls.into_iter().map(body).collect() }))
}

/// Where the time of a call went; what is not known is left out.
#[derive(Debug, Serialize, ToSchema)]
pub struct TimingsBody {
    /// From the question to a person's yes, before the call was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_wait_ms: Option<f64>,
    /// Waiting for the connection's rate limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_ms: Option<f64>,
    /// Waiting for a new credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewal_ms: Option<f64>,
    /// The service, or whoever reaches it for us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_ms: Option<f64>,
}

impl From<Timings> for TimingsBody {
    fn from(timings: Timings) -> Self {
        let millis = |part: std::time::Duration| part.as_secs_f64() * 1000.0;
        Self {
            approval_wait_ms: timings.approval.map(millis),
            queue_ms: timings.queue.map(millis),
            renewal_ms: timings.renewal.map(millis),
            upstream_ms: timings.upstream.map(millis),
        }
    }
}

/// A call with all that the record knows of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallDetail {
    #[serde(flatten)]
    pub record: RecordBody,
    pub timings: TimingsBody,
    /// The call whose kept answer this one got, because it had the same `Idempotency-Key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats_id: Option<Uuid>,
    /// Where the project keeps it, for keys with `edit_tools`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptBody>,
}

/// What a call was made with and what it came to.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeptBody {
    /// As they were sent; `{note}` where they were too large.
    #[schema(value_type = Object)]
    pub arguments: Value,
    /// Null where the call came to no result; `{note}` where it was too large.
    pub result: Value,
    /// When it is dropped.
    pub until: String,
}

impl From<KeptCall> for KeptBody {
    fn from(kept: KeptCall) -> Self {
        Self { arguments: kept.arguments, result: kept.result, until: kept.until.to_string() }
    }
}

/// One call in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallDetailAnswer {
    pub count: usize,
    pub call: CallDetail,
}

/// Read a call of the record
#[document::path(get, path = "/tools/calls/{call_id}", operation_id = "fetch_tool_call", tag = "Tools", security(("key" = ["view_tools"])),
    params(("call_id" = Uuid, Path)), responses((status = 200, body = CallDetailAnswer), (status = 404, description = "No such call")))]
pub(crate) async fn fetch(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
) -> ApiResult<Json<CallDetailAnswer>> {
    let record = app.calls.record(scope.project, CallId::from(id)).await?;
    if !scope.sees(record.end_user.into()) {
        return Err(CallError::NotFound.into());
    }
    let end_users = app.end_users.names(scope.project, record.end_user.into_iter().collect()).await?;
    let holders = app.accounts.holders(scope.project).await?;
    let holder = holders.get(&record.key);
    let (timings, repeats_id) = (record.timings.into(), record.repeats.map(Id::uuid));
    let kept = if scope.may(Permission::EditTools) { app.calls.kept_call(&record).await?.map(Into::into) } else { None };
    let call = CallDetail { record: RecordBody::new(record, holder, &end_users), timings, repeats_id, kept };
    Ok(Json(CallDetailAnswer { count: 1, call }))
}

/// For how many days arguments and results are kept.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Keeping {
    /// 0 keeps nothing; 90 at most.
    #[schema(minimum = 0, maximum = 90)]
    pub days: i64,
}

/// Read for how long the project keeps arguments and results of calls
#[document::path(get, path = "/tools/calls/keeping", operation_id = "fetch_call_keeping", tag = "Tools", security(("key" = ["view_tools"])),
    responses((status = 200, body = Keeping)))]
pub(crate) async fn keeping(Scoped(scope, _): Scoped<ViewTools>, State(app): State<App>) -> ApiResult<Json<Keeping>> {
    Ok(Json(Keeping { days: app.calls.keeping(scope.project).await? }))
}

/// Say for how long the project keeps arguments and results of calls
///
/// What is kept is sealed, and shown to keys with `edit_tools`. With 0, what was kept is dropped.
#[document::path(put, path = "/tools/calls/keeping", operation_id = "set_call_keeping", tag = "Tools", security(("key" = ["edit_tools"])),
    request_body = Keeping, responses((status = 200, body = Keeping), (status = 422, description = "Not so many days")))]
pub(crate) async fn set_keeping(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    Payload(body): Payload<Keeping>,
) -> ApiResult<Json<Keeping>> {
    Ok(Json(Keeping { days: app.calls.set_keeping(scope, body.days).await? }))
}
