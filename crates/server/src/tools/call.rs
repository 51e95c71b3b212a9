//! `POST /tools/call`

use axum::Json;
use axum::extract::State;
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tools::{CallReply, CallRequest};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::App;
use crate::edge::auth::RunTools;
use crate::edge::{ApiError, ApiResult, Payload, Scoped};

/// A request to call a tool.
#[derive(Debug, Deserialize, ToSchema)]
pub struct CallTool {
    pub data: CallData,
}

/// The call, as model APIs write it.
#[derive(Debug, Deserialize, ToSchema)]
pub struct CallData {
    /// Comes back as `tool_call_id`.
    pub id: String,
    #[serde(rename = "type")]
    #[schema(example = "function")]
    pub kind: Option<String>,
    pub function: CallFunction,
}

/// What to call and with what.
#[derive(Debug, Deserialize, ToSchema)]
pub struct CallFunction {
    #[schema(example = "tools.native.github.CREATE_AN_ISSUE.github-main")]
    pub name: String,
    /// An object, or a string that holds one.
    #[schema(value_type = Object)]
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
    /// JSON as text: `{data, error, successful}`.
    pub content: String,
}

/// Call a tool
///
/// With an `Idempotency-Key` header, a repeated call returns the first result and runs nothing.
#[utoipa::path(post, path = "/tools/call", operation_id = "call_tool", tag = "Tools", security(("key" = ["run_tools"])), request_body = CallTool,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated call return the first result")),
    responses((status = 200, body = CallAnswer), (status = 400, description = "Bad ref, arguments or connection"), (status = 404, description = "No such connection or action"),
        (status = 424, description = "The service refused or could not be reached"), (status = 502, description = "The service failed")))]
pub(crate) async fn call(
    Scoped(scope, _): Scoped<RunTools>,
    State(app): State<App>,
    headers: HeaderMap,
    Payload(body): Payload<CallTool>,
) -> ApiResult<Json<CallAnswer>> {
    if body.data.kind.as_deref().is_some_and(|kind| kind != "function") {
        return Err(ApiError::invalid("literal_error", vec![json!("body"), json!("data"), json!("type")], "Input should be 'function'"));
    }
    let idempotency_key = match headers.get("idempotency-key") {
        None => None,
        Some(value) => Some(value.to_str().map_err(|_| ApiError::bad_request("Idempotency-Key must be plain ASCII."))?.to_owned()),
    };
    let request = CallRequest { name: body.data.function.name, arguments: body.data.function.arguments, idempotency_key };
    let reply = app.tools.call(scope, request).await?;
    Ok(Json(answer(reply, body.data.id)))
}

fn answer(reply: CallReply, tool_call_id: String) -> CallAnswer {
    let CallReply { id, at, result } = reply;
    let code = if result.error.is_none() { "STATUS_CODE_OK" } else { "STATUS_CODE_ERROR" };
    let content = json!({"data": result.data, "error": result.error, "successful": result.error.is_none()}).to_string();
    CallAnswer {
        call: CallBody {
            id: id.uuid(),
            status: CallStatus { timestamp: at.to_string(), code, message: result.error },
            data: CallMessage { role: "tool", tool_call_id, content },
        },
    }
}
