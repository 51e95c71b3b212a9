//! `POST /tools/call`

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use calls::{CallError, CallReply, CallRequest, GatewayContext, ToolResult, UsedAccount};
use definitions::Verdict;
use definitions::ops;
use document::ToSchema;
use http::{HeaderMap, StatusCode};
use kernel::json::size;
use kernel::{CallName, CallRef, Scope, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;
use work::{LARGE, in_place};

use super::approvals::{ApprovalBody, Names};
use crate::edge::auth::RunTools;
use crate::edge::watch::within;
use crate::edge::{ApiError, ApiResult, Code, Json, Payload, Scoped, end_user};
use crate::{App, addresses, run_limit};

/// Says what kind of run the caller is.
pub(crate) const RUN_KIND: &str = "x-agenta-run-kind";

const MAX_KEY: usize = 255;
/// What an op has on top of its own time, to say how it ended.
const GRACE: Duration = Duration::from_secs(10);

/// A request to call a tool.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallTool {
    pub data: CallData,
    /// For `gateway.search` and `gateway.run`: what the runner knows and its model does not choose.
    pub context: Option<CallContext>,
    /// The end user whom the call is for. It goes through an account of theirs, and never through another's.
    #[schema(value_type = Option<crate::shapes::EndUserText>)]
    pub end_user: Option<String>,
}

/// Which connection a call of `gateway.run` goes through, and which integrations one of `gateway.search` is about.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallContext {
    pub provider: Option<String>,
    pub integration: Option<String>,
    /// The slug of the connection; it may be left out where there is one only.
    pub connection: Option<String>,
    pub tool: Option<String>,
    /// As `/tools/resolve` answered it; a call is refused when the integration's tools changed since.
    pub toolkit_version: Option<String>,
    /// The same by integration, for a search.
    #[serde(default)]
    pub toolkit_versions: BTreeMap<String, String>,
}

impl From<CallContext> for GatewayContext {
    fn from(said: CallContext) -> Self {
        let CallContext { provider, integration, connection, tool, toolkit_version, toolkit_versions } = said;
        Self { provider, integration, connection, tool, toolkit_version, toolkit_versions }
    }
}

/// The call, as model APIs write it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallData {
    /// Comes back as `tool_call_id`.
    pub id: String,
    #[serde(rename = "type")]
    #[schema(value_type = Option<crate::shapes::FunctionWord>)]
    pub kind: Option<String>,
    pub function: CallFunction,
    /// The caller's own word, `ask` or `deny`, where it wants more care than the project does.
    #[schema(value_type = Option<crate::shapes::PermissionWord>)]
    pub permission: Option<String>,
    /// The place of the call among those of one message, as some model APIs write it; not used.
    pub index: Option<u32>,
}

/// What to call and with what.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallFunction {
    #[schema(example = "tools.native.github.CREATE_AN_ISSUE.github-main")]
    pub name: String,
    /// An object, or a string that holds one.
    #[schema(value_type = crate::shapes::ObjectOrText)]
    pub arguments: Value,
}

/// A call that came to a result.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallAnswer {
    pub call: CallBody,
}

/// The result, as model APIs read it.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallBody {
    pub id: Uuid,
    pub status: CallStatus,
    pub data: CallMessage,
    /// The account that the call went through, where it was made for an end user or the ref does not name the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<UsedAccountBody>,
}

/// The account that a call went through.
#[derive(Debug, Serialize, ToSchema)]
pub struct UsedAccountBody {
    pub connection_id: Uuid,
    pub slug: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
}

impl From<UsedAccount> for UsedAccountBody {
    fn from(used: UsedAccount) -> Self {
        Self { connection_id: used.id.uuid(), slug: used.slug, alias: used.alias }
    }
}

/// Whether the tool succeeded.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallStatus {
    pub timestamp: String,
    /// `STATUS_CODE_OK` or `STATUS_CODE_ERROR`.
    pub code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The message for the model.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallMessage {
    pub role: &'static str,
    pub tool_call_id: String,
    /// JSON as text. An integration's result is `{data, error, successful}`; a workflow's is its outputs, or `{error}` when it failed
    /// without any; a reserved tool's is its answer, or `{code, message, retryable, next_step, details}` when it said no.
    pub content: String,
}

/// What a call came to: a result, or an approval that it waits for.
#[derive(Debug)]
pub(crate) enum CallOutcome {
    Done(Box<CallAnswer>),
    Waiting(Box<WaitingAnswer>),
}

/// A call that waits for a person: the approval, and a message that says so to the model in place of a result.
#[derive(Debug, Serialize, ToSchema)]
pub struct WaitingAnswer {
    pub count: usize,
    pub approval: ApprovalBody,
    /// As if the tool had said no; `id` is that of the approval, and `content` is `{code, message, retryable, next_step, details}`.
    pub call: CallBody,
}

impl CallOutcome {
    pub(crate) async fn of(app: &App, scope: Scope, reply: Result<CallReply, CallError>, tool_call_id: String) -> ApiResult<Self> {
        match reply {
            Ok(CallReply { id, at, result, is_gateway, account, .. }) => {
                let account = account.map(UsedAccountBody::from);
                let call = CallBody { account, ..body(id.uuid(), at, result, is_gateway, tool_call_id) };
                Ok(Self::Done(Box::new(CallAnswer { call })))
            }
            Err(CallError::Waiting(approval)) => {
                let told = approval.told(&addresses::approvals(app.options.public_url()));
                let call = body(approval.id.uuid(), app.clock.now(), told, false, tool_call_id);
                let approval = Names::of(app, scope.project).await?.approval(*approval);
                Ok(Self::Waiting(Box::new(WaitingAnswer { count: 1, approval, call })))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl IntoResponse for CallOutcome {
    fn into_response(self) -> Response {
        match self {
            Self::Done(answer) => Json(answer).into_response(),
            Self::Waiting(answer) => (StatusCode::ACCEPTED, Json(answer)).into_response(),
        }
    }
}

/// Call a tool
///
/// With an `Idempotency-Key` header, a repeated call returns the first result and runs nothing. A call that must ask answers 202 with an
/// approval; made again once that is approved, it goes through.
#[document::path(post, path = "/tools/call", operation_id = "call_tool", tag = "Tools", security(("key" = ["run_tools"])), request_body = CallTool,
    params(("Idempotency-Key" = inline(Option<crate::shapes::IdempotencyKeyText>), Header, description = "Makes a repeated call return the first result")),
    responses((status = 200, body = CallAnswer), (status = 202, body = WaitingAnswer, description = "Waits for a person"),
        (status = 400, description = "Bad ref, arguments or connection"), (status = 403, description = "Denied, or the key lacks what the tool needs"),
        (status = 404, description = "No such connection, action or workflow"), (status = 424, description = "The service refused or could not be reached"), (status = 429, description = "The project keeps as many runs or approvals as it may"),
        (status = 502, description = "The service failed")))]
pub(crate) async fn call(
    Scoped(scope, _): Scoped<RunTools>,
    State(app): State<App>,
    headers: HeaderMap,
    Payload(body): Payload<CallTool>,
) -> ApiResult<CallOutcome> {
    let (mut request, tool_call_id) = request(&app, &headers, body.data)?;
    request.gateway = body.context.unwrap_or_default().into();
    let scope = end_user::acting_for(&app, scope, body.end_user.as_deref()).await?;
    let limit = time_limit(&app, &request.name);
    let reply = within(limit, app.calls.call(scope, request)).await?;
    CallOutcome::of(&app, scope, reply, tool_call_id).await
}

/// The call as the domain takes it, and the id under which the caller knows it.
pub(crate) fn request(app: &App, headers: &HeaderMap, data: CallData) -> ApiResult<(CallRequest, String)> {
    if data.kind.as_deref().is_some_and(|kind| kind != "function") {
        return Err(ApiError::invalid("literal_error", vec![json!("body"), json!("data"), json!("type")], "Input should be 'function'"));
    }
    let name = CallName::from(data.function.name);
    let limit = time_limit(app, &name);
    let request = CallRequest {
        name,
        arguments: data.function.arguments,
        idempotency_key: idempotency_key(headers)?,
        permission: read_permission(data.permission.as_deref())?,
        depth: 0,
        in_test: is_test(headers),
        limit: Some(run_limit(limit)),
        ..CallRequest::default()
    };
    Ok((request, data.id))
}

/// How long a call may take: as long as any request, or as a platform op says that it takes. A tool goes by its ref or by its own name.
pub(crate) fn time_limit(app: &App, name: &CallName) -> Duration {
    let op = match name.target() {
        Ok(CallRef::Reserved { op }) => ops::find(op),
        Ok(_) => None,
        Err(_) => ops::find(name.text()),
    };
    let own = op.and_then(ops::Op::time_limit).map(|limit| limit + GRACE);
    app.options.request_timeout.max(own.unwrap_or_default())
}

/// The key under which a repeated request returns the first result.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> ApiResult<Option<String>> {
    match headers.get("idempotency-key") {
        None => Ok(None),
        Some(value) => match value.to_str() {
            Ok(key) if (1..=MAX_KEY).contains(&key.len()) => Ok(Some(key.to_owned())),
            _ => Err(ApiError::new(Code::IdempotencyKeyInvalid, "Idempotency-Key must be 1 to 255 ASCII characters.")),
        },
    }
}

/// Whether the caller is itself a test run.
pub(crate) fn is_test(headers: &HeaderMap) -> bool {
    headers.get(RUN_KIND).is_some_and(|kind| kind == "test")
}

pub(crate) fn read_permission(word: Option<&str>) -> ApiResult<Option<Verdict>> {
    match word {
        None => Ok(None),
        Some(word) => match Verdict::named(word) {
            Some(permission) => Ok(Some(permission)),
            None => Err(ApiError::unprocessable("`permission` must be `allow`, `ask` or `deny`.")),
        },
    }
}

fn body(id: Uuid, at: Timestamp, result: ToolResult, is_gateway: bool, tool_call_id: String) -> CallBody {
    in_place(size(&result.data, LARGE), move || written(id, at, result, is_gateway, tool_call_id))
}

/// What an integration answered, as the text that a model reads.
#[derive(Serialize)]
struct Envelope<'a> {
    data: &'a Value,
    error: Option<&'a str>,
    successful: bool,
}

fn written(id: Uuid, at: Timestamp, result: ToolResult, is_gateway: bool, tool_call_id: String) -> CallBody {
    let code = if result.error.is_none() { "STATUS_CODE_OK" } else { "STATUS_CODE_ERROR" };
    let content = match &result.error {
        error if is_gateway => {
            let envelope = Envelope { data: &result.data, error: error.as_deref(), successful: error.is_none() };
            serde_json::to_string(&envelope).unwrap_or_default()
        }
        // A model reads the content only, so a failure must say there what it was.
        Some(error) if result.data.is_null() => json!({"error": error}).to_string(),
        _ => result.data.to_string(),
    };
    CallBody {
        id,
        status: CallStatus { timestamp: at.to_string(), code, message: result.error },
        data: CallMessage { role: "tool", tool_call_id, content },
        account: None,
    }
}
