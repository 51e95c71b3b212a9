//! `POST /workflows/invoke`

use std::time::Duration;

use ::workflows::{InvokeReply, InvokeRequest, References};
use agent_runs::stream::plain_messages;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use calls::CallError;
use document::ToSchema;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use kernel::{Permission, Scope};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::runs::RunStatus;
use super::stream::{Wire, accepts_events, follow};
use crate::App;
use crate::edge::auth::RunWorkflows;
use crate::edge::{ApiError, ApiResult, Code, Json, Payload, Scoped};
use crate::tools::approvals::{ApprovalAnswer, Names};
use crate::tools::call::idempotency_key;

/// The version of the envelope.
const VERSION: &str = "2025.07.14";
const SESSION: &str = "x-ag-session-id";

/// What to run and with what. Unknown keys are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub struct InvokeWorkflow {
    #[schema(example = "2025.07.14")]
    pub version: Option<String>,
    /// `workflow`, `workflow_variant`, `workflow_revision` (or the same with `application` or `evaluator`), `environment`,
    /// `environment_variant`, `environment_revision`: each is `{id?, slug?, version?}`.
    #[schema(value_type = Option<Object>)]
    pub references: Option<Map<String, Value>>,
    pub selector: Option<InvokeSelector>,
    pub data: Option<InvokeData>,
    pub flags: Option<InvokeFlags>,
    /// 1 to 128 letters, digits and `._:-`; the header `X-Ag-Session-Id` is the same.
    #[schema(value_type = Option<crate::shapes::SessionText>)]
    pub session_id: Option<String>,
}

/// Which deployment of an environment.
#[derive(Debug, Deserialize, ToSchema)]
pub struct InvokeSelector {
    /// `{workflow slug}.revision` if it is left out.
    pub key: Option<String>,
    /// Not supported.
    #[schema(required = false, value_type = crate::shapes::Nothing)]
    pub path: Option<String>,
}

/// What a workflow is given.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct InvokeData {
    #[schema(value_type = Option<Object>)]
    pub inputs: Option<Map<String, Value>>,
    /// Runs `revision.data` in place of the revision's own; needs `edit_workflows`.
    pub revision: Option<InvokeRevision>,
    /// Beside `revision`: its parameters.
    #[schema(value_type = Option<Object>)]
    pub parameters: Option<Map<String, Value>>,
}

/// A revision that is only run, not kept.
#[derive(Debug, Deserialize, ToSchema)]
pub struct InvokeRevision {
    #[schema(value_type = Object)]
    pub data: Map<String, Value>,
}

/// How to run.
#[derive(Debug, Deserialize, ToSchema)]
pub struct InvokeFlags {
    /// The same as `Accept: text/event-stream`: the run of an agent is told as it happens.
    pub stream: Option<bool>,
}

/// How a run ended; the HTTP status follows `status.code`.
#[derive(Debug, Serialize, ToSchema)]
pub struct InvokeAnswer {
    pub version: &'static str,
    pub status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    pub data: InvokeOutputs,
    pub meta: InvokeMeta,
    /// Exact references to what ran.
    #[schema(value_type = Object)]
    pub references: Value,
}

/// Why there is no result: how the run ended, or why there was none.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum RunFailure {
    Run(InvokeAnswer),
    Refused(crate::edge::error::Error),
}

/// Why there is no result yet: somebody has to allow the run, or the run of an agent goes on or waits for a person.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum RunAccepted {
    Approval(Box<ApprovalAnswer>),
    Run(Box<InvokeAnswer>),
}

/// What a workflow gave.
#[derive(Debug, Serialize, ToSchema)]
pub struct InvokeOutputs {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub outputs: Option<Value>,
}

/// Where the run is recorded.
#[derive(Debug, Serialize, ToSchema)]
pub struct InvokeMeta {
    pub run_id: Uuid,
}

/// Run a workflow
///
/// A run that failed has the same body, with the status of its failure: of the workflow's service, or of the step that ended it. A caller that
/// goes away cancels the run, unless it is an agent's: that goes on, is found by the same `Idempotency-Key`, and answers 202 when it takes longer
/// than a request may. With `Accept: text/event-stream` the run of an agent is told as it happens: in events of AG-UI, or with
/// `x-ag-messages-format: vercel` in chunks of the AI SDK's UI message stream.
#[document::path(post, path = "/workflows/invoke", operation_id = "invoke_workflow", tag = "Workflows", security(("key" = ["run_workflows"])), request_body = InvokeWorkflow,
    params(("Idempotency-Key" = inline(Option<crate::shapes::IdempotencyKeyText>), Header, description = "Passed on to the workflow's service and to the calls of its steps"),
        ("X-Ag-Session-Id" = inline(Option<crate::shapes::SessionText>), Header, description = "The session, if the body names none"),
        ("X-Ag-Messages-Format" = Option<String>, Header, description = "How a run is streamed: `ag-ui` (the default) or `vercel`")),
    responses((status = 200, body = InvokeAnswer), (status = 202, body = RunAccepted, description = "Waits for a person, or is the run of an agent that goes on"), (status = 400, body = RunFailure, description = "The references or inputs do not fit, or there is nothing to run"),
        (status = 404, body = RunFailure, description = "No such workflow, not deployed, or a step found nothing"), (status = 406, body = RunFailure, description = "Only runs of agents are streamed, and nothing but JSON and streams is answered"),
        (status = 429, description = "The project keeps as many runs or approvals as it may"),
        (status = 409, body = RunFailure, description = "A call has an unknown outcome and must not be repeated"), (status = 499, body = RunFailure, description = "The run of an agent was cancelled"),
        (status = 424, body = RunFailure, description = "A step, the workflow's service or a model failed"), (status = 502, body = RunFailure, description = "The workflow's service failed"),
        (status = 422, body = RunFailure, description = "A step or the workflow's service found the inputs wrong"),
        (status = 501, body = RunFailure, description = "The workflow's service does not do this"),
        (status = 503, body = RunFailure, description = "The workflow's service, the database or a provider is not there now"),
        (status = 504, body = RunFailure, description = "It took too long")))]
pub(crate) async fn invoke(
    Scoped(scope, _): Scoped<RunWorkflows>,
    State(app): State<App>,
    headers: HeaderMap,
    Payload(body): Payload<InvokeWorkflow>,
) -> ApiResult<Response> {
    let takes_json = accepts_json(&headers);
    let streams = body.flags.as_ref().is_some_and(|flags| flags.stream == Some(true)) || (accepts_events(&headers) && !takes_json);
    if !streams && !takes_json {
        return Err(ApiError::new(
            Code::NotAcceptable,
            "Runs are answered as `application/json`, those of agents also as `text/event-stream`.",
        ));
    }
    let wire = Wire::asked(&headers)?;
    let session_id = session(body.session_id, &headers)?;
    let selector = body.selector.unwrap_or(InvokeSelector { key: None, path: None });
    if selector.path.is_some() {
        return Err(ApiError::bad_request("`selector.path` is not supported: a run gives all of its outputs."));
    }
    let data = body.data.unwrap_or_default();
    let mut inputs = data.inputs.unwrap_or_default();
    if wire == Wire::Vercel {
        plain_messages(&mut inputs);
    }
    let request = InvokeRequest {
        references: References::read(&body.references.unwrap_or_default())?,
        key: selector.key,
        data: inline(scope, data.revision, data.parameters)?,
        inputs: Value::Object(inputs),
        session_id: session_id.clone(),
        idempotency_key: idempotency_key(&headers)?,
        // A stream is followed from its first event on, so nobody waits for the end before.
        limit: Some(if streams { Duration::ZERO } else { app.options.run_limit() }),
        agents_only: streams,
        ..InvokeRequest::default()
    };
    match app.calls.invoke(scope, request).await {
        // What did not even begin is answered as JSON, also where a stream was asked for.
        Ok(reply) => {
            if streams && let Ok(run) = app.agent_runs.get(scope, reply.run).await {
                return follow(&app, scope, run.id, wire, 0).await;
            }
            if streams && reply.code == i64::from(StatusCode::NOT_ACCEPTABLE.as_u16()) {
                return Err(ApiError::new(Code::NotAcceptable, reply.message));
            }
            Ok(answer(reply, session_id))
        }
        Err(CallError::Waiting(approval)) => {
            let names = Names::of(&app, scope.project).await?;
            Ok((StatusCode::ACCEPTED, Json(names.answer(*approval))).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

fn answer(reply: InvokeReply, session_id: Option<String>) -> Response {
    let session = session_id.as_deref().and_then(|id| HeaderValue::from_str(id).ok());
    let body = InvokeAnswer {
        version: VERSION,
        status: RunStatus { code: reply.code, message: Some(reply.message) },
        session_id,
        data: InvokeOutputs { outputs: reply.outputs },
        meta: InvokeMeta { run_id: reply.run.uuid() },
        references: reply.references,
    };
    let mut response = (http_status(reply.code), Json(body)).into_response();
    response.headers_mut().insert("x-ag-version", HeaderValue::from_static(VERSION));
    if let Some(session) = session {
        response.headers_mut().insert(SESSION, session);
    }
    response
}

/// The status of the answer. What a workflow or its service did is never our own failure, nothing about the caller's key or connection, and
/// an answer always has a body.
fn http_status(code: i64) -> StatusCode {
    match code {
        204 | 205 => StatusCode::OK,
        200..=299 | 501..=504 => u16::try_from(code).ok().and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(StatusCode::OK),
        401 | 403 | 407 | 408 | 421 | 429 => StatusCode::FAILED_DEPENDENCY,
        400..=499 => u16::try_from(code).ok().and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(StatusCode::FAILED_DEPENDENCY),
        _ => StatusCode::BAD_GATEWAY,
    }
}

/// What runs in place of the revision's data.
fn inline(scope: Scope, revision: Option<InvokeRevision>, parameters: Option<Map<String, Value>>) -> ApiResult<Option<Value>> {
    let Some(revision) = revision else {
        return match parameters {
            None => Ok(None),
            Some(_) => Err(ApiError::bad_request("`data.parameters` go with `data.revision`; else commit them as part of a revision.")),
        };
    };
    if !scope.may(Permission::EditWorkflows) {
        return Err(ApiError::new(
            Code::MissingPermission,
            "`data.revision` is for keys that may edit workflows; leave it out to run what is committed.",
        ));
    }
    let mut data = revision.data;
    if let Some(parameters) = parameters {
        data.insert("parameters".to_owned(), Value::Object(parameters));
    }
    Ok(Some(Value::Object(data)))
}

/// The session of the body, else of the header.
fn session(given: Option<String>, headers: &HeaderMap) -> ApiResult<Option<String>> {
    let header = || headers.get(SESSION).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let Some(id) = given.or_else(header) else { return Ok(None) };
    let sane = (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte));
    if sane {
        Ok(Some(id))
    } else {
        Err(ApiError::invalid(
            "value_error",
            vec![json!("body"), json!("session_id")],
            "must be 1 to 128 letters, digits, `.`, `_`, `:` and `-`",
        ))
    }
}

/// Whether one of the media ranges takes JSON; no header takes everything.
fn accepts_json(headers: &HeaderMap) -> bool {
    let mut ranges = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    if ranges.peek().is_none() {
        return true;
    }
    ranges.flat_map(|value| value.split(',')).any(|range| {
        let kind = range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        matches!(kind.as_str(), "" | "*/*" | "application/*" | "application/json") || kind.ends_with("+json")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_never_looks_like_our_own_failure() {
        for (code, status) in [(200, 200), (201, 201), (204, 200), (400, 400), (404, 404), (422, 422), (401, 424), (429, 424), (424, 424)] {
            assert_eq!(http_status(code).as_u16(), status, "{code}");
        }
        for (code, status) in [(500, 502), (501, 501), (503, 503), (504, 504), (599, 502), (700, 502)] {
            assert_eq!(http_status(code).as_u16(), status, "{code}");
        }
    }

    #[test]
    fn json_is_accepted_unless_something_else_is_asked_for() {
        for (accept, fine) in [
            ("application/json", true),
            ("text/event-stream, */*;q=0.1", true),
            ("application/problem+json", true),
            ("text/event-stream", false),
            ("application/x-ndjson", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(accepts_json(&headers), fine, "{accept}");
        }
        assert!(accepts_json(&HeaderMap::new()));
    }
}
