//! The one place that turns a failure into a response.

use axum::response::{IntoResponse, Response};
use document::ToSchema;
use http::{HeaderValue, StatusCode};
use kernel::{Permission, Role};
use serde::Serialize;
use serde_json::{Value, json};
use store::StoreError;
use uuid::Uuid;

use super::Code;
use super::Json;

const FORBIDDEN: &str = "You do not have access to perform this action. Please contact your organization admin.";
const DATABASE_AWAY: &str = "The database does not answer. Try again in a moment.";
const INTERNAL: &str = "An unexpected error occurred. Please try again later or contact support.";

pub type ApiResult<T> = Result<T, ApiError>;

/// Why a request failed.
#[derive(Debug, Serialize, ToSchema)]
pub struct Error {
    /// A sentence; an object with a `message`; or, for a request of the wrong shape, a list of `{type, loc, msg}`.
    pub detail: Value,
    /// What went wrong, for programs; it stays the same across releases. `docs/errors.md` lists the codes.
    #[schema(example = "connection_not_found")]
    pub code: &'static str,
}

/// A failure on its way out: a code, which has a status, and the `detail` of the body.
#[derive(Debug)]
pub struct ApiError {
    code: Code,
    detail: Value,
    support: Option<Uuid>,
}

impl ApiError {
    pub fn new(code: Code, detail: impl Into<Value>) -> Self {
        Self { code, detail: detail.into(), support: None }
    }

    /// A request for something that is not possible.
    pub fn bad_request(detail: impl Into<Value>) -> Self {
        Self::new(Code::RequestInvalid, detail)
    }

    /// A value that cannot be taken.
    pub fn unprocessable(detail: impl Into<Value>) -> Self {
        Self::new(Code::ValueInvalid, detail)
    }

    pub fn conflict(code: Code, message: impl Into<String>, conflict: Value) -> Self {
        let detail = json!({"message": message.into(), "conflict": conflict});
        Self { code, detail, support: Some(Uuid::now_v7()) }
    }

    /// The project has as much of something as it may.
    fn full(full: &store::Full) -> Self {
        Self::conflict(Code::ProjectFull, full.to_string(), json!({"setting": full.setting, "limit": full.limit}))
    }

    /// A key without a permission: which, and who has it. `needed` is all that the request needs.
    pub fn forbidden(missing: Permission, needed: &[Permission]) -> Self {
        let has = |role: &Role| role.permissions().has(missing);
        let roles: Vec<String> = Role::ALL.into_iter().filter(has).map(|role| format!("`{role}`")).collect();
        let held = match roles.as_slice() {
            [] => "no role has: name it when you make the key".to_owned(),
            roles => format!("the roles {} have", roles.join(", ")),
        };
        let all: Vec<String> = needed.iter().map(|permission| format!("`{permission}`")).collect();
        let together = if all.len() > 1 { format!(" This needs {} together.", all.join(" and ")) } else { String::new() };
        let detail = format!("{FORBIDDEN} This key lacks `{missing}`, which {held}.{together}");
        Self::new(Code::MissingPermission, detail)
    }

    pub fn unauthorized(code: Code, hint: &str) -> Self {
        Self::new(code, json!({"message": "Unauthorized", "reason": code.name(), "hint": hint}))
    }

    /// A request that does not have the documented shape; `place` leads to what is wrong.
    pub fn invalid(kind: &str, place: Vec<Value>, message: impl Into<String>) -> Self {
        let code = match kind {
            "json_invalid" => Code::JsonInvalid,
            "query_invalid" => Code::QueryInvalid,
            "path_invalid" => Code::PathInvalid,
            _ => Code::BodyInvalid,
        };
        Self::new(code, json!([{"type": kind, "loc": place, "msg": message.into()}]))
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
        Self { code: Code::Internal, detail, support: Some(support) }
    }

    /// The database does not answer now; the same request may succeed in a moment.
    pub fn database_away(cause: &dyn std::fmt::Display) -> Self {
        tracing::warn!(%cause, "the database is away");
        Self::new(Code::DatabaseUnavailable, DATABASE_AWAY)
    }

    pub fn code(&self) -> Code {
        self.code
    }

    pub fn status(&self) -> StatusCode {
        self.code.status()
    }

    /// The failure in words alone, for pages and for surfaces whose errors have another body.
    pub fn message(&self) -> String {
        match &self.detail {
            Value::String(text) => text.clone(),
            Value::Array(places) => {
                let place = places.first().and_then(|first| first["loc"].as_array()).into_iter().flatten();
                let place: Vec<String> = place.map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned)).collect();
                let said = places.first().and_then(|first| first["msg"].as_str()).unwrap_or_default();
                format!("{}: {said}", place.join("."))
            }
            other => {
                let said = ["message", "hint"].into_iter().filter_map(|name| other[name].as_str());
                said.collect::<Vec<_>>().join(". ")
            }
        }
    }
}

/// What went wrong, for those whose errors have another body.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.status();
        let said = Said { code: self.code, message: self.message() };
        let mut response = (status, Json(Error { detail: self.detail, code: self.code.name() })).into_response();
        response.extensions_mut().insert(said);
        if status == StatusCode::UNAUTHORIZED {
            let challenge = match self.code {
                Code::InvalidToken | Code::TokenForAnotherSurface => "Bearer realm=\"toolyard\", error=\"invalid_token\"",
                _ => "Bearer realm=\"toolyard\"",
            };
            response.headers_mut().insert(http::header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
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
            StoreError::Nul => Self::new(Code::NulInText, error.to_string()),
            StoreError::Conflict => Self::conflict(Code::RowConflict, error.to_string(), json!({})),
            StoreError::Away(_) | StoreError::Closed => Self::database_away(&error),
            StoreError::NotWritable { why, .. } => {
                tracing::error!(%error, "the database cannot be written");
                Self::new(Code::DatabaseNotWritable, format!("The database cannot be written: {why}. Try again later."))
            }
            other => Self::internal(&other),
        }
    }
}

impl From<work::WorkError> for ApiError {
    fn from(error: work::WorkError) -> Self {
        use work::WorkError as E;
        let text = error.to_string();
        match error {
            E::Busy => Self::new(Code::ProjectBusy, text),
            E::Exceeded(exceeded) => exceeded.into(),
            E::Broken => Self::internal(&text),
        }
    }
}

impl From<kernel::Exceeded> for ApiError {
    fn from(error: kernel::Exceeded) -> Self {
        Self::new(Code::TooMuchWork, format!("The request cannot be worked on: {error}"))
    }
}

impl From<accounts::AccountError> for ApiError {
    fn from(error: accounts::AccountError) -> Self {
        use accounts::AccountError as E;
        let text = error.to_string();
        match error {
            E::ProjectNotFound => Self::new(Code::ProjectNotFound, text),
            E::KeyNotFound => Self::new(Code::KeyNotFound, text),
            E::UserNotFound => Self::new(Code::UserNotFound, text),
            E::MemberNotFound => Self::new(Code::MemberNotFound, text),
            E::MoreThanHeld(_) => Self::new(Code::RoleTooHigh, text),
            E::TooManyKeys => Self::conflict(Code::ProjectFull, text, json!({"limit": accounts::MOST_KEYS})),
            E::LastOwner => Self::conflict(Code::LastOwner, text, json!({"role": "owner"})),
            E::Invalid(..) => Self::new(Code::AccountInvalid, text),
            E::Setting(_) => Self::new(Code::ValueInvalid, text),
            E::EmailTaken(email) => Self::conflict(Code::EmailTaken, text, json!({"email": email})),
            E::SlugTaken(slug) => Self::conflict(Code::SlugTaken, text, json!({"slug": slug})),
            E::Store(error) => error.into(),
        }
    }
}

impl From<people::PeopleError> for ApiError {
    fn from(error: people::PeopleError) -> Self {
        use people::PeopleError as E;
        let text = error.to_string();
        match error {
            E::TooMany { .. } => Self::new(Code::TooManySignIns, text),
            E::SessionNotFound => Self::new(Code::SessionNotFound, text),
            E::InvitationNotFound => Self::new(Code::InvitationNotFound, text),
            E::RoleTooHigh { .. } => Self::new(Code::RoleTooHigh, text),
            E::PasswordWeak(_) => Self::new(Code::ValueInvalid, text),
            E::Account(error) => error.into(),
            E::Store(error) => error.into(),
            E::Sealed(_) | E::Broken(_) => Self::internal(&text),
            _ => Self::new(Code::SignInRefused, text),
        }
    }
}

impl From<::grants::GrantError> for ApiError {
    fn from(error: ::grants::GrantError) -> Self {
        use ::grants::GrantError as E;
        let text = error.to_string();
        match error {
            E::Refused(refusal, _) => Self::new(crate::oauth::code(refusal), text),
            E::NotFound => Self::new(Code::GrantNotFound, text),
            E::Full(full) => Self::full(&full),
            E::Store(error) => error.into(),
        }
    }
}

impl From<catalog::CatalogError> for ApiError {
    fn from(error: catalog::CatalogError) -> Self {
        use catalog::CatalogError as E;
        let text = error.to_string();
        match error {
            E::UnknownProvider(_) => Self::new(Code::ProviderNotFound, text),
            E::UnknownIntegration(_) => Self::new(Code::IntegrationNotFound, text),
            E::UnknownAction(_) => Self::new(Code::ActionNotFound, text),
            E::UnknownEvent(_) => Self::new(Code::EventNotFound, text),
            E::NotConfigured { .. } => Self::new(Code::ProviderNotConfigured, text),
            E::Upstream(_) => Self::new(Code::UpstreamRefused, text),
            E::UpstreamServer(_) => Self::new(Code::UpstreamFailed, text),
            E::BadCursor => Self::new(Code::CursorInvalid, text),
            E::BadLimit => Self::new(Code::LimitInvalid, text),
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
            E::NotFound => Self::new(Code::ConnectionNotFound, text),
            E::UnknownIntegration(_) => Self::new(Code::IntegrationNotFound, text),
            E::Slug(kernel::slug::SlugError::NotUrlSafe) => {
                let place = ["body", "connection", "slug"];
                Self::new(Code::SlugInvalid, json!([{"type": "value_error", "loc": place, "msg": "'slug' must be URL-safe."}]))
            }
            E::Slug(_) => Self::new(Code::SlugInvalid, text),
            E::UnknownScheme { .. } => Self::new(Code::AuthSchemeNotFound, text),
            E::NoApp(_) => Self::new(Code::OauthAppMissing, text),
            E::Field(_) => Self::new(Code::CredentialFieldInvalid, text),
            E::Words(_) => Self::new(Code::ValueInvalid, text),
            E::Refused { .. } => Self::new(Code::CredentialRefused, text),
            E::Taken { provider, integration, slug } => {
                let conflict = json!({"provider_key": provider, "integration_key": integration, "slug": slug});
                Self::conflict(Code::ConnectionTaken, text, conflict)
            }
            E::Full(full) => Self::full(&full),
            E::HookNotFound => Self::new(Code::HookNotFound, text),
            E::TooManyHooks(most) | E::TooManyOfUser(most) => Self::conflict(Code::ProjectFull, text, json!({"limit": most})),
            E::AliasTaken(alias) => Self::conflict(Code::ConnectionTaken, text, json!({"alias": alias})),
            E::Several(several) => Self::conflict(Code::SeveralAccounts, text, json!({"accounts": several.names})),
            E::Inactive(_) => Self::new(Code::ConnectionInactive, text),
            E::NotValid { .. } => Self::new(Code::ConnectionNotValid, text),
            E::BadAttempt => Self::new(Code::LinkInvalid, text),
            E::Denied(_) => Self::new(Code::ConsentDenied, text),
            E::Upstream { .. } => Self::new(Code::UpstreamRefused, text),
            E::Unreachable { .. } => Self::new(Code::UpstreamUnreachable, text),
            E::UpstreamServer { .. } => Self::new(Code::UpstreamFailed, text),
            E::Catalog(error) => error.into(),
            E::Store(error) => error.into(),
            E::Sealed(_) | E::Interrupted(_) => Self::internal(&text),
        }
    }
}

impl From<user_sessions::UserSessionError> for ApiError {
    fn from(error: user_sessions::UserSessionError) -> Self {
        use user_sessions::UserSessionError as E;
        let text = error.to_string();
        match error {
            E::NotFound => Self::new(Code::UserSessionNotFound, text),
            E::Lifetime | E::Settings(_) => Self::new(Code::ValueInvalid, text),
            E::TooMany(most) => Self::conflict(Code::ProjectFull, text, json!({"limit": most})),
            E::Changed(version) => Self::conflict(Code::RowConflict, text, json!({"config_version": version})),
            E::Store(error) => error.into(),
        }
    }
}

impl From<end_users::EndUserError> for ApiError {
    fn from(error: end_users::EndUserError) -> Self {
        use end_users::EndUserError as E;
        let text = error.to_string();
        match error {
            E::NotFound => Self::new(Code::EndUserNotFound, text),
            E::TooMany(most) => Self::conflict(Code::ProjectFull, text, json!({"limit": most})),
            E::Personal(end_users::PersonalError::Store(error)) | E::Store(error) => error.into(),
            E::Personal(end_users::PersonalError::Failed(_)) => Self::internal(&text),
        }
    }
}

impl From<imports::ImportError> for ApiError {
    fn from(error: imports::ImportError) -> Self {
        use imports::ImportError as E;
        let text = error.to_string();
        match error {
            E::NotFound => Self::new(Code::ImportNotFound, text),
            E::UnknownProvider(_) => Self::new(Code::ImporterNotFound, text),
            E::Key(_) => Self::new(Code::ImportKeyInvalid, text),
            E::Invalid(_) => Self::new(Code::ImportInvalid, text),
            E::Full(full) => Self::full(&full),
            E::Taken { key } => Self::conflict(Code::ImportKeyTaken, text, json!({"integration_key": key})),
            E::InUse { names, .. } => Self::conflict(Code::ImportInUse, text, json!({"in_use": names})),
            E::Moved => Self::conflict(Code::ImportChanged, text, json!({})),
            E::NothingToFetch => Self::conflict(Code::NothingToFetch, text, json!({})),
            E::Upstream(_) => Self::new(Code::UpstreamRefused, text),
            E::UpstreamServer(_) => Self::new(Code::UpstreamFailed, text),
            E::Connection(error) => error.into(),
            E::Work(error) => error.into(),
            E::Store(error) => error.into(),
            E::Sealed(_) | E::Interrupted(_) => Self::internal(&text),
        }
    }
}

impl From<agent_runs::RunError> for ApiError {
    fn from(error: agent_runs::RunError) -> Self {
        use agent_runs::RunError as E;
        let text = error.to_string();
        match error {
            E::NotFound => Self::new(Code::RunNotFound, text),
            E::Ended(state) => Self::conflict(Code::RunEnded, text, json!({"state": state})),
            E::Invalid(_) => Self::unprocessable(text),
            E::TooMany(most) => Self::conflict(Code::ProjectFull, text, json!({"limit": most})),
            E::KeyReused => Self::new(Code::IdempotencyKeyReused, text),
            E::Agent(error) => error.into(),
            E::Call(error) => error.into(),
            E::Work(error) => error.into(),
            E::Store(error) => error.into(),
            E::Sealed(_) | E::Broken(_) => Self::internal(&text),
        }
    }
}

impl From<workflows::RowKind> for Code {
    fn from(kind: workflows::RowKind) -> Self {
        match kind {
            workflows::RowKind::Workflow => Self::WorkflowNotFound,
            workflows::RowKind::Environment => Self::EnvironmentNotFound,
            workflows::RowKind::Version => Self::VersionNotFound,
            workflows::RowKind::Run => Self::RunNotFound,
        }
    }
}

impl From<workflows::WorkflowError> for ApiError {
    fn from(error: workflows::WorkflowError) -> Self {
        use workflows::WorkflowError as E;
        let text = error.to_string();
        match error {
            E::NotFound(missing) => Self::new(missing.kind.into(), text),
            E::NotDeployed { .. } => Self::new(Code::NotDeployed, text),
            E::Slug(_) => Self::new(Code::SlugInvalid, text),
            E::Invalid(_) => Self::new(Code::RevisionInvalid, text),
            E::Change(error) => Self::new(Code::ChangeInvalid, json!({"code": error.code(), "message": text, "index": error.index})),
            E::Refused(error) => Self::new(Code::ChangeRefused, json!({"code": error.code, "message": text, "place": error.place})),
            E::BadRequest(_) => Self::new(Code::ReferencesInvalid, text),
            E::Reserved(_) => Self::new(Code::SlugReserved, text),
            E::Embed(_) => Self::new(Code::EmbedInvalid, text),
            E::Taken { slug, .. } => Self::conflict(Code::SlugTaken, text, json!({"slug": slug})),
            E::HasRevisions(slug) => Self::conflict(Code::VariantHasRevisions, text, json!({"slug": slug})),
            E::Moved { head } => {
                let code = Code::RevisionConflict;
                Self::conflict(code, text, json!({"code": code.name(), "revision_id": head}))
            }
            E::Full(_) => Self::new(Code::TooManyKept, text),
            E::Guarded(slug) => {
                let code = Code::EnvironmentGuarded;
                Self::conflict(code, text, json!({"code": code.name(), "slug": slug}))
            }
            E::Sealed(_) => Self::internal(&text),
            E::Work(error) => error.into(),
            E::Store(error) => error.into(),
        }
    }
}

impl From<calls::CallError> for ApiError {
    fn from(error: calls::CallError) -> Self {
        use calls::CallError as E;
        let text = error.to_string();
        match error {
            E::Ref(_) => Self::new(Code::CallRefInvalid, text),
            E::Arguments(_) => Self::new(Code::ArgumentsInvalid, text),
            E::Unusable(_) => Self::new(Code::ConnectionUnusable, text),
            E::UnknownReserved(_) | E::NotHere { .. } | E::UnknownOp(_) => Self::new(Code::ToolNotFound, text),
            E::ConnectionNotFound(_) => Self::new(Code::ConnectionNotFound, text),
            E::ActionNotFound(_) => Self::new(Code::ActionNotFound, text),
            E::NotFound => Self::new(Code::CallNotFound, text),
            E::NoticeNotFound => Self::new(Code::NoticeNotFound, text),
            E::NoticeInvalid(_) => Self::new(Code::NoticeInvalid, text),
            E::TooManyNotices(most) => Self::conflict(Code::ProjectFull, text, json!({"most": most})),
            E::ApprovalNotFound => Self::new(Code::ApprovalNotFound, text),
            E::Workflow(error) => error.into(),
            E::Forbidden(_) => Self::new(Code::MissingPermission, text),
            E::Denied(_) => Self::new(Code::CallDenied, text),
            E::Waiting(approval) => Self::new(Code::ApprovalRequired, json!({"message": text, "approval_id": approval.id})),
            E::Decided(status) => Self::conflict(Code::ApprovalDecided, text, json!({"status": status})),
            E::Connection(error) => error.into(),
            E::Upstream { .. } => Self::new(Code::UpstreamRefused, text),
            E::UpstreamServer { .. } => Self::new(Code::UpstreamFailed, text),
            E::Full(_) => Self::new(Code::TooManyKept, text),
            E::UserLimit(_) => Self::new(Code::EndUserLimit, text),
            E::KeyReused(_) => Self::new(Code::IdempotencyKeyReused, text),
            E::BadCursor => Self::new(Code::CursorInvalid, text),
            E::BadFilter(_) => Self::new(Code::FilterInvalid, text),
            E::InProgress(_) => Self::conflict(Code::CallInProgress, text, json!({})),
            E::Interrupted(_) | E::Sealed(_) => Self::internal(&text),
            E::NotRecorded(_) => Self::new(Code::CallNotRecorded, text),
            E::Work(error) => error.into(),
            E::Store(error) => error.into(),
        }
    }
}

impl From<discovery::DiscoveryError> for ApiError {
    fn from(error: discovery::DiscoveryError) -> Self {
        use discovery::DiscoveryError as E;
        let text = error.to_string();
        match error {
            E::Invalid(_) => Self::unprocessable(text),
            E::Search(_) => Self::new(Code::UpstreamRefused, text),
            E::UseCaseNotFound => Self::new(Code::UseCaseNotFound, text),
            E::Connection(error) => error.into(),
            E::Work(error) => error.into(),
            E::Store(error) => error.into(),
        }
    }
}

impl From<agents::AgentError> for ApiError {
    fn from(error: agents::AgentError) -> Self {
        use agents::AgentError as E;
        let text = error.to_string();
        match error {
            E::NotFound | E::Unknown(_) => Self::new(Code::AgentNotFound, text),
            E::UnknownApp(_) => Self::new(Code::AppNotFound, text),
            E::NotAssigned(_) => Self::new(Code::AppNotAssigned, text),
            E::Skills(_) => Self::new(Code::SkillNotFound, text),
            E::NameTaken(name) => Self::conflict(Code::AgentNameTaken, text, json!({"name": name})),
            E::Invalid(_) => Self::new(Code::AgentInvalid, text),
            E::Rejected(rejected) => {
                let rejected: Vec<Value> = rejected
                    .into_iter()
                    .map(|problem| json!({"id": problem.tool, "reason": problem.code, "message": problem.message}))
                    .collect();
                Self::new(Code::AssignmentRejected, json!({"message": text, "rejected": rejected}))
            }
            E::MayNotGive(_) => Self::new(Code::MissingPermission, text),
            E::Stale(version) => Self::new(Code::AgentChanged, json!({"message": text, "version": version})),
            E::Refused(reason) => {
                let code = if reason.is_unknown() { Code::AgentToolNotFound } else { Code::AgentToolRefused };
                Self::new(code, json!({"message": text, "reason": reason.code()}))
            }
            E::Call(error) => error.into(),
            E::Catalog(error) => error.into(),
            E::Connection(error) => error.into(),
            E::Work(error) => error.into(),
            E::Store(error) => error.into(),
        }
    }
}

impl From<triggers::RowKind> for Code {
    fn from(kind: triggers::RowKind) -> Self {
        match kind {
            triggers::RowKind::Provider => Self::ProviderNotFound,
            triggers::RowKind::Subscription => Self::SubscriptionNotFound,
            triggers::RowKind::Schedule => Self::ScheduleNotFound,
            triggers::RowKind::Delivery => Self::DeliveryNotFound,
            triggers::RowKind::Event => Self::EventNotFound,
        }
    }
}

impl From<triggers::TriggerError> for ApiError {
    fn from(error: triggers::TriggerError) -> Self {
        use triggers::TriggerError as E;
        let text = error.to_string();
        match error {
            E::NotFound(kind) => Self::new(kind.into(), text),
            E::Invalid(_) => Self::new(Code::TriggerInvalid, text),
            E::Reference(_) => Self::new(Code::TriggerTargetInvalid, text),
            E::BadRequest(_) => Self::new(Code::RequestInvalid, text),
            E::Filter(_) => Self::new(Code::FilterInvalid, text),
            E::Taken { subscription, trigger } => {
                let conflict = json!({"subscription_id": subscription, "trigger_id": trigger});
                Self::conflict(Code::SubscriptionTaken, text, conflict)
            }
            E::State(_) => Self::conflict(Code::TriggerState, text, json!({})),
            E::Full(full) => Self::full(&full),
            E::Upstream(_) => Self::new(Code::UpstreamRefused, text),
            E::UpstreamServer(_) => Self::new(Code::UpstreamFailed, text),
            E::Connection(error) => error.into(),
            E::Busy => Self::new(Code::EventsBusy, text),
            E::Work(error) => error.into(),
            E::Store(error) => error.into(),
            E::Sealed(_) => Self::internal(&text),
        }
    }
}

impl From<secrets::SecretError> for ApiError {
    fn from(error: secrets::SecretError) -> Self {
        use secrets::SecretError as E;
        let text = error.to_string();
        match error {
            E::NotFound { .. } => Self::new(Code::SecretNotFound, text),
            E::Taken(slug) => Self::conflict(Code::SlugTaken, text, json!({"slug": slug})),
            E::Invalid(_) => Self::new(Code::SecretInvalid, text),
            E::TooMany => Self::conflict(Code::ProjectFull, text, json!({"limit": secrets::MOST})),
            E::OtherHost { .. } => Self::new(Code::SecretHostNotAllowed, text),
            E::Store(error) => error.into(),
            E::Sealed(_) => Self::internal(&text),
        }
    }
}

impl From<definitions::ResolveError> for ApiError {
    fn from(error: definitions::ResolveError) -> Self {
        use definitions::ResolveError as E;
        let text = error.to_string();
        match error {
            E::Config(_) => Self::new(Code::ToolConfigInvalid, text),
            E::Kind(_) => Self::new(Code::ToolKindNotResolvable, text),
            E::Names(_) => Self::new(Code::ToolNameCollision, text),
            E::Op(_) => Self::new(Code::ToolOpInvalid, text),
            E::Secret { error: secrets::SecretError::NotFound { .. }, .. } => Self::new(Code::ToolSecretsMissing, text),
            E::Secret { error, .. } => error.into(),
            E::TwoCallbacks(..) => Self::new(Code::ToolCallbacksDiffer, text),
            E::Segment { .. } => Self::new(Code::ToolReferenceInvalid, text),
            E::Provider(_) => Self::new(Code::ProviderNotFound, text),
            E::IntegrationNotFound(_) => Self::new(Code::IntegrationNotFound, text),
            E::ConnectionNotFound(_) => Self::new(Code::ConnectionNotFound, text),
            E::ActionNotFound(_) => Self::new(Code::ActionNotFound, text),
            E::Forbidden(_) => Self::new(Code::MissingPermission, text),
            E::Connection(error) => error.into(),
            E::Workflow(error) => error.into(),
        }
    }
}
