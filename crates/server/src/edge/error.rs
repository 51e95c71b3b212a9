//! The one place that turns a failure into a response.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode};
use kernel::{Permission, Role};
use serde_json::{Value, json};
use store::StoreError;
use uuid::Uuid;

const FORBIDDEN: &str = "You do not have access to perform this action. Please contact your organization admin.";
const DATABASE_AWAY: &str = "The database does not answer. Try again in a moment.";
const INTERNAL: &str = "An unexpected error occurred. Please try again later or contact support.";

pub type ApiResult<T> = Result<T, ApiError>;

/// A failure on its way out: a status and the `detail` of the body.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    detail: Value,
    support: Option<Uuid>,
}

impl ApiError {
    pub fn new(status: StatusCode, detail: impl Into<Value>) -> Self {
        Self { status, detail: detail.into(), support: None }
    }

    pub fn bad_request(detail: impl Into<Value>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub fn not_found(detail: impl Into<Value>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub fn unprocessable(detail: impl Into<Value>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    pub fn conflict(message: impl Into<String>, conflict: Value) -> Self {
        let detail = json!({"message": message.into(), "conflict": conflict});
        Self { status: StatusCode::CONFLICT, detail, support: Some(Uuid::now_v7()) }
    }

    /// A key without a permission: which, and who has it.
    pub fn forbidden(missing: Permission) -> Self {
        let role = missing.least_role();
        let roles: Vec<String> = Role::ALL.into_iter().filter(|other| *other >= role).map(|role| format!("`{role}`")).collect();
        let detail = format!("{FORBIDDEN} This key lacks `{missing}`, which the roles {} have.", roles.join(", "));
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    pub fn unauthorized(reason: &str, hint: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, json!({"message": "Unauthorized", "reason": reason, "hint": hint}))
    }

    /// A request that does not have the documented shape; `place` leads to what is wrong.
    pub fn invalid(kind: &str, place: Vec<Value>, message: impl Into<String>) -> Self {
        Self::unprocessable(json!([{"type": kind, "loc": place, "msg": message.into()}]))
    }

    /// A value of a query that is none of the known ones.
    pub fn unknown_value(name: &str, value: &str, known: &[&str]) -> Self {
        let nearest = kernel::suggest::did_you_mean(value, known.iter().copied());
        let known: Vec<String> = known.iter().map(|known| format!("`{known}`")).collect();
        let message = format!("`{value}` is not known here, expected one of {}.{nearest}", known.join(", "));
        Self::invalid("query_invalid", vec![json!("query"), json!(name)], message)
    }

    /// Our own failure: logged with its cause, answered with an id that leads to the log.
    pub fn internal(cause: &dyn std::fmt::Display) -> Self {
        let support = Uuid::now_v7();
        tracing::error!(%support, %cause, "internal failure");
        let detail = json!({"message": INTERNAL, "support_id": support});
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, detail, support: Some(support) }
    }

    /// The database does not answer now; the same request may succeed in a moment.
    pub fn database_away(cause: &dyn std::fmt::Display) -> Self {
        tracing::warn!(%cause, "the database is away");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, DATABASE_AWAY)
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({"detail": self.detail}))).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(http::header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"toolyard\""));
        }
        if let Some(id) = self.support
            && let Ok(value) = HeaderValue::from_str(&id.to_string())
        {
            response.headers_mut().insert("x-ag-support-id", value);
            let (seconds, _) = id.get_timestamp().map(|time| time.to_unix()).unwrap_or_default();
            response.headers_mut().insert("x-ag-support-ts", HeaderValue::from(seconds));
        }
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Nul => Self::unprocessable(error.to_string()),
            StoreError::Conflict => Self::conflict(error.to_string(), json!({})),
            StoreError::Away(_) | StoreError::Closed => Self::database_away(&error),
            other => Self::internal(&other),
        }
    }
}

impl From<accounts::AccountError> for ApiError {
    fn from(error: accounts::AccountError) -> Self {
        use accounts::AccountError as E;
        let text = error.to_string();
        match error {
            E::ProjectNotFound | E::KeyNotFound | E::UserNotFound => Self::not_found(text),
            E::Invalid(..) => Self::unprocessable(text),
            E::EmailTaken(email) => Self::conflict(text, json!({"email": email})),
            E::SlugTaken(slug) => Self::conflict(text, json!({"slug": slug})),
            E::Store(error) => error.into(),
        }
    }
}

impl From<catalog::CatalogError> for ApiError {
    fn from(error: catalog::CatalogError) -> Self {
        use catalog::CatalogError as E;
        let text = error.to_string();
        match error {
            E::UnknownProvider(_) | E::UnknownIntegration(_) | E::UnknownAction(_) | E::UnknownEvent(_) => Self::not_found(text),
            E::NotConfigured { .. } => Self::new(StatusCode::SERVICE_UNAVAILABLE, text),
            E::Upstream(_) => Self::new(StatusCode::FAILED_DEPENDENCY, text),
            E::UpstreamServer(_) => Self::new(StatusCode::BAD_GATEWAY, text),
            E::BadCursor | E::BadLimit => Self::unprocessable(text),
            E::NotRead(_) => Self::internal(&text),
            E::Away(_) => Self::database_away(&text),
        }
    }
}

impl From<connections::ConnectionError> for ApiError {
    fn from(error: connections::ConnectionError) -> Self {
        use connections::ConnectionError as E;
        let text = error.to_string();
        match error {
            E::NotFound | E::UnknownIntegration(_) => Self::not_found(text),
            E::Slug(kernel::slug::SlugError::NotUrlSafe) => {
                Self::invalid("value_error", vec![json!("body"), json!("connection"), json!("slug")], "'slug' must be URL-safe.")
            }
            E::Slug(_) | E::UnknownScheme { .. } | E::NoApp(_) | E::Field(_) | E::Refused { .. } => Self::unprocessable(text),
            E::Taken { provider, integration, slug } => {
                Self::conflict(text, json!({"provider_key": provider, "integration_key": integration, "slug": slug}))
            }
            E::Inactive(_) | E::NotValid { .. } | E::BadAttempt | E::Denied(_) => Self::bad_request(text),
            E::Upstream { .. } | E::Unreachable { .. } => Self::new(StatusCode::FAILED_DEPENDENCY, text),
            E::UpstreamServer { .. } => Self::new(StatusCode::BAD_GATEWAY, text),
            E::Catalog(error) => error.into(),
            E::Store(error) => error.into(),
            E::Sealed(_) | E::Interrupted(_) => Self::internal(&text),
        }
    }
}

impl From<imports::ImportError> for ApiError {
    fn from(error: imports::ImportError) -> Self {
        use imports::ImportError as E;
        let text = error.to_string();
        match error {
            E::NotFound | E::UnknownProvider(_) => Self::not_found(text),
            E::Key(_) | E::Invalid(_) | E::TooMany(_) => Self::unprocessable(text),
            E::Taken { key } => Self::conflict(text, json!({"integration_key": key})),
            E::InUse { names, .. } => Self::conflict(text, json!({"in_use": names})),
            E::Moved | E::NothingToFetch => Self::conflict(text, json!({})),
            E::Upstream(_) => Self::new(StatusCode::FAILED_DEPENDENCY, text),
            E::UpstreamServer(_) => Self::new(StatusCode::BAD_GATEWAY, text),
            E::Connection(error) => error.into(),
            E::Store(error) => error.into(),
            E::Sealed(_) | E::Interrupted(_) => Self::internal(&text),
        }
    }
}

impl From<workflows::WorkflowError> for ApiError {
    fn from(error: workflows::WorkflowError) -> Self {
        use workflows::WorkflowError as E;
        let text = error.to_string();
        match error {
            E::NotFound(_) | E::NotDeployed { .. } => Self::not_found(text),
            E::Slug(_) | E::Invalid(_) => Self::unprocessable(text),
            E::Change(error) => Self::unprocessable(json!({"code": error.code(), "message": text, "index": error.index})),
            E::Scope(error) => Self::unprocessable(json!({"code": error.code(), "message": text, "place": error.place()})),
            E::BadRequest(_) | E::Reserved(_) | E::Embed(_) => Self::bad_request(text),
            E::Taken { slug, .. } => Self::conflict(text, json!({"slug": slug})),
            E::Moved { head } => Self::conflict(text, json!({"code": "revision_conflict", "revision_id": head})),
            E::Guarded(slug) => Self::conflict(text, json!({"code": "environment_guarded", "slug": slug})),
            E::Sealed(_) => Self::internal(&text),
            E::Store(error) => error.into(),
        }
    }
}

impl From<tools::CallError> for ApiError {
    fn from(error: tools::CallError) -> Self {
        use tools::CallError as E;
        let text = error.to_string();
        match error {
            E::Ref(_) | E::Arguments(_) | E::Unusable(_) => Self::bad_request(text),
            E::UnknownReserved(_)
            | E::NotHere { .. }
            | E::UnknownOp(_)
            | E::ConnectionNotFound(_)
            | E::ActionNotFound(_)
            | E::ApprovalNotFound
            | E::UseCaseNotFound => Self::not_found(text),
            E::Workflow(error) => error.into(),
            E::Forbidden(_) | E::Denied(_) => Self::new(StatusCode::FORBIDDEN, text),
            E::Waiting(approval) => Self::new(StatusCode::ACCEPTED, json!({"message": text, "approval_id": approval.id})),
            E::Decided(status) => Self::conflict(text, json!({"status": status})),
            E::Connection(error) => error.into(),
            E::Upstream { .. } => Self::new(StatusCode::FAILED_DEPENDENCY, text),
            E::UpstreamServer { .. } => Self::new(StatusCode::BAD_GATEWAY, text),
            E::KeyReused(_) | E::BadCursor | E::BadFilter(_) => Self::unprocessable(text),
            E::InProgress(_) => Self::conflict(text, json!({})),
            E::Interrupted(_) => Self::internal(&text),
            E::Store(error) => error.into(),
        }
    }
}

impl From<agents::AgentError> for ApiError {
    fn from(error: agents::AgentError) -> Self {
        use agents::AgentError as E;
        let text = error.to_string();
        match error {
            E::NotFound | E::Unknown(_) | E::UnknownApp(_) | E::NotAssigned(_) | E::Skills(_) => Self::not_found(text),
            E::NameTaken(name) => Self::conflict(text, json!({"name": name})),
            E::Invalid(_) => Self::unprocessable(text),
            E::Rejected(rejected) => {
                let rejected: Vec<Value> = rejected
                    .into_iter()
                    .map(|problem| json!({"id": problem.tool, "reason": problem.code, "message": problem.message}))
                    .collect();
                Self::unprocessable(json!({"message": text, "rejected": rejected}))
            }
            E::Stale(version) => Self::new(StatusCode::PRECONDITION_FAILED, json!({"message": text, "version": version})),
            E::Refused(reason) => {
                let status = if reason.is_unknown() { StatusCode::NOT_FOUND } else { StatusCode::FORBIDDEN };
                Self::new(status, json!({"message": text, "reason": reason.code()}))
            }
            E::Call(error) => error.into(),
            E::Catalog(error) => error.into(),
            E::Connection(error) => error.into(),
            E::Store(error) => error.into(),
        }
    }
}

impl From<triggers::TriggerError> for ApiError {
    fn from(error: triggers::TriggerError) -> Self {
        use triggers::TriggerError as E;
        let text = error.to_string();
        match error {
            E::NotFound(_) => Self::not_found(text),
            E::Invalid(_) | E::Reference(_) => Self::unprocessable(text),
            E::BadRequest(_) => Self::bad_request(text),
            E::Taken { subscription, trigger } => Self::conflict(text, json!({"subscription_id": subscription, "trigger_id": trigger})),
            E::State(_) => Self::conflict(text, json!({})),
            E::Upstream(_) => Self::new(StatusCode::FAILED_DEPENDENCY, text),
            E::UpstreamServer(_) => Self::new(StatusCode::BAD_GATEWAY, text),
            E::Connection(error) => error.into(),
            E::Busy => Self::new(StatusCode::SERVICE_UNAVAILABLE, text),
            E::Store(error) => error.into(),
            E::Sealed(_) => Self::internal(&text),
        }
    }
}

impl From<tools::ResolveError> for ApiError {
    fn from(error: tools::ResolveError) -> Self {
        use tools::ResolveError as E;
        let text = error.to_string();
        match error {
            E::Config(_) | E::Kind(_) | E::Names(_) | E::Op(_) | E::Secrets { .. } | E::TwoCallbacks(..) => Self::unprocessable(text),
            E::Callback(_) | E::Segment { .. } => Self::bad_request(text),
            E::Provider(_) => Self::not_found(text),
            E::Call(error) => error.into(),
        }
    }
}
