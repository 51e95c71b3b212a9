//! `/people/sessions`: where somebody is signed in.

use ::people::Session;
use axum::extract::State;
use document::ToSchema;
use http::StatusCode;
use kernel::SessionId;
use serde::Serialize;
use uuid::Uuid;

use crate::App;
use crate::edge::{ApiResult, Json, NoFilters, PathOf, QueryOf, Signed};

/// A session.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionBody {
    pub id: Uuid,
    /// Whether it is the one that asks.
    pub is_current: bool,
    /// How it began: `password`, `link`, `invitation`, `provider:NAME`, `key` or `operator`.
    pub method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// How the browser calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    pub created_at: String,
    /// To the minute.
    pub used_at: String,
}

impl SessionBody {
    pub(crate) fn new(session: Session, current: SessionId) -> Self {
        Self {
            id: session.id.uuid(),
            is_current: session.id == current,
            method: session.method,
            address: session.address,
            client: session.client,
            created_at: session.created_at.to_string(),
            used_at: session.used_at.to_string(),
        }
    }
}

/// Sessions in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionsAnswer {
    pub count: usize,
    pub sessions: Vec<SessionBody>,
}

/// How many sessions were ended.
#[derive(Debug, Serialize, ToSchema)]
pub struct EndedAnswer {
    pub count: u64,
}

/// List where you are signed in
#[document::path(get, path = "/people/sessions", operation_id = "list_sessions", tag = "People", security(("session" = [])),
    responses((status = 200, body = SessionsAnswer)))]
pub(crate) async fn list(Signed(signed_in): Signed, State(app): State<App>, _: QueryOf<NoFilters>) -> ApiResult<Json<SessionsAnswer>> {
    let sessions = app.people.sessions(&signed_in).await?;
    let sessions: Vec<SessionBody> = sessions.into_iter().map(|session| SessionBody::new(session, signed_in.session)).collect();
    Ok(Json(SessionsAnswer { count: sessions.len(), sessions }))
}

/// End all your other sessions
#[document::path(delete, path = "/people/sessions", operation_id = "end_other_sessions", tag = "People", security(("session" = [])),
    responses((status = 200, body = EndedAnswer)))]
pub(crate) async fn end_others(Signed(signed_in): Signed, State(app): State<App>, _: QueryOf<NoFilters>) -> ApiResult<Json<EndedAnswer>> {
    Ok(Json(EndedAnswer { count: app.people.end_others(&signed_in).await? }))
}

/// End one of your sessions
#[document::path(delete, path = "/people/sessions/{session_id}", operation_id = "end_session", tag = "People", security(("session" = [])),
    params(("session_id" = Uuid, Path)), responses((status = 204, description = "It is ended")))]
pub(crate) async fn end(Signed(signed_in): Signed, State(app): State<App>, PathOf(id): PathOf<Uuid>) -> ApiResult<StatusCode> {
    app.people.end_session(&signed_in, SessionId::from(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}
