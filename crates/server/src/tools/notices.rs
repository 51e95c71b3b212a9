//! `/tools/approvals/notices`: who is told that a call waits for a person.

use axum::extract::State;
use calls::{Notice, NoticeWay};
use document::ToSchema;
use http::StatusCode;
use kernel::NoticeId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::App;
use crate::edge::auth::{EditTools, ViewTools};
use crate::edge::{ApiResult, Json, PathOf, Payload, Scoped};

/// Somebody who is told that a call waits.
#[derive(Debug, Serialize, ToSchema)]
pub struct NoticeBody {
    pub id: Uuid,
    /// `webhook` or `tool`.
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_ref: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Value>,
    /// With which posts are signed; it is shown when the notice is made, and never again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// What went wrong the last time, if something did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// When somebody was told, or should have been.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_at: Option<String>,
}

impl NoticeBody {
    fn new(notice: Notice, secret: Option<String>) -> Self {
        let (kind, url, call_ref, arguments) = match notice.way {
            NoticeWay::Webhook { url } => ("webhook", Some(url), None, None),
            NoticeWay::Tool { call_ref, arguments } => ("tool", None, Some(call_ref), Some(Value::Object(arguments))),
        };
        let (last_error, last_at) = (notice.last_error, notice.last_at.map(|at| at.to_string()));
        Self { id: notice.id.uuid(), kind, url, call_ref, arguments, secret, last_error, last_at }
    }
}

/// The notices of a project, the oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct NoticesAnswer {
    pub notices: Vec<NoticeBody>,
}

/// One notice in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct NoticeAnswer {
    pub count: usize,
    pub notice: NoticeBody,
}

/// A request to make a notice.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateNotice {
    pub notice: NewNotice,
}

/// A notice to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum NewNotice {
    /// A post to an address, signed as Standard Webhooks say.
    Webhook {
        #[schema(example = "https://example.com/approvals")]
        url: String,
    },
    /// A call of an action, made with the permissions of whoever saves the notice.
    Tool {
        #[schema(example = "tools.native.slack.SEND_A_MESSAGE.main")]
        call_ref: String,
        /// Texts may hold `{{ approval.id }}`, `{{ approval.call_ref }}`, `{{ approval.url }}` and `{{ approval.expires_at }}`.
        #[serde(default)]
        #[schema(value_type = Object)]
        arguments: Map<String, Value>,
    },
}

impl From<NewNotice> for NoticeWay {
    fn from(new: NewNotice) -> Self {
        match new {
            NewNotice::Webhook { url } => Self::Webhook { url },
            NewNotice::Tool { call_ref, arguments } => Self::Tool { call_ref, arguments },
        }
    }
}

/// How a test went.
#[derive(Debug, Serialize, ToSchema)]
pub struct NoticeTested {
    pub ok: bool,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// List who is told that a call waits
#[document::path(get, path = "/tools/approvals/notices", operation_id = "list_approval_notices", tag = "Tools", security(("key" = ["view_tools"])),
    responses((status = 200, body = NoticesAnswer)))]
pub(crate) async fn list(Scoped(scope, _): Scoped<ViewTools>, State(app): State<App>) -> ApiResult<Json<NoticesAnswer>> {
    let notices = app.calls.notices(scope.project).await?;
    Ok(Json(NoticesAnswer { notices: notices.into_iter().map(|notice| NoticeBody::new(notice, None)).collect() }))
}

/// Have somebody told that a call waits
///
/// A project may have ten of these. What is told is which call waits and where a person decides, never its arguments.
#[document::path(post, path = "/tools/approvals/notices", operation_id = "create_approval_notice", tag = "Tools", security(("key" = ["edit_tools"])),
    request_body = CreateNotice,
    responses((status = 200, body = NoticeAnswer), (status = 400, description = "Not a ref, or arguments that do not fit"), (status = 404, description = "No such connection or action"),
        (status = 409, description = "The project has as many as it may"), (status = 422, description = "An address, tool or text that cannot be taken")))]
pub(crate) async fn create(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    Payload(body): Payload<CreateNotice>,
) -> ApiResult<Json<NoticeAnswer>> {
    let (notice, secret) = app.calls.create_notice(scope, body.notice.into()).await?;
    Ok(Json(NoticeAnswer { count: 1, notice: NoticeBody::new(notice, secret) }))
}

/// Tell somebody no more
#[document::path(delete, path = "/tools/approvals/notices/{notice_id}", operation_id = "delete_approval_notice", tag = "Tools", security(("key" = ["edit_tools"])),
    params(("notice_id" = Uuid, Path)), responses((status = 204), (status = 404, description = "No such notice")))]
pub(crate) async fn delete(Scoped(scope, _): Scoped<EditTools>, State(app): State<App>, PathOf(id): PathOf<Uuid>) -> ApiResult<StatusCode> {
    app.calls.delete_notice(scope, NoticeId::from(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Send a notice once, about no call
///
/// The post says `test` in its `data`; a tool is really called.
#[document::path(post, path = "/tools/approvals/notices/{notice_id}/test", operation_id = "test_approval_notice", tag = "Tools", security(("key" = ["edit_tools"])),
    params(("notice_id" = Uuid, Path)), responses((status = 200, body = NoticeTested), (status = 404, description = "No such notice")))]
pub(crate) async fn test(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
) -> ApiResult<Json<NoticeTested>> {
    let message = app.calls.test_notice(scope, NoticeId::from(id)).await?;
    Ok(Json(NoticeTested { ok: message.is_none(), message }))
}
