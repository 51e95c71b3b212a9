//! Routes for demos: what tests do through [`crate::Fake`].

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::deliver::Message;
use crate::edge::Recorded;
use crate::faults::{Kind, Rule};
use crate::refusal::Refusal;
use crate::request::JsonBody;
use crate::state::{Shared, SharedState};
use crate::world::Status;

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/faults", post(fault).delete(clear))
        .route("/emit/{trigger_id}", post(emit))
        .route("/expire/{account_id}", post(expire))
        .route("/requests", get(requests))
}

#[derive(Debug, Deserialize)]
struct NewFault {
    method: Option<String>,
    path: String,
    #[serde(default = "once")]
    times: u32,
    #[serde(flatten)]
    kind: RequestedFault,
}

fn once() -> u32 {
    1
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum RequestedFault {
    Delay { seconds: f64 },
    Status { status: u16 },
    RateLimited { retry_after: u64 },
    MalformedJson,
    TooManyValues,
    WrongTypes,
    LoseAnswer,
    Refuse,
}

impl From<RequestedFault> for Kind {
    fn from(told: RequestedFault) -> Self {
        match told {
            RequestedFault::Delay { seconds } => Self::Delay(Duration::try_from_secs_f64(seconds).unwrap_or_default()),
            RequestedFault::Status { status } => Self::Status(status),
            RequestedFault::RateLimited { retry_after } => Self::RateLimited { retry_after },
            RequestedFault::MalformedJson => Self::MalformedJson,
            RequestedFault::TooManyValues => Self::TooManyValues,
            RequestedFault::WrongTypes => Self::WrongTypes,
            RequestedFault::LoseAnswer => Self::LoseAnswer,
            RequestedFault::Refuse => Self::Refuse,
        }
    }
}

async fn fault(State(shared): SharedState, order: Result<JsonBody<NewFault>, Refusal>) -> Response {
    match order {
        Ok(JsonBody(fault)) => {
            shared.faults().push(Rule { method: fault.method, path: fault.path, left: fault.times, kind: fault.kind.into() });
            StatusCode::NO_CONTENT.into_response()
        }
        Err(refusal) => (refusal.status(), Json(refusal.envelope("", true))).into_response(),
    }
}

async fn clear(State(shared): SharedState) -> StatusCode {
    shared.faults().clear();
    StatusCode::NO_CONTENT
}

/// The body is the payload of the event.
async fn emit(State(shared): SharedState, Path(trigger): Path<String>, body: Option<Json<Value>>) -> Json<Value> {
    let payload = body.map_or_else(|| json!({}), |Json(payload)| payload);
    let message = Message::of_trigger(&shared.world(), &trigger, &payload, None);
    Json(json!({"statuses": sent(&shared, message).await}))
}

async fn expire(State(shared): SharedState, Path(account): Path<String>) -> Response {
    if !shared.world().turn(&account, Status::Expired, Some(EXPIRED_BECAUSE)) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let message = Message::of_expired(&shared.world(), &account);
    Json(json!({"statuses": sent(&shared, message).await})).into_response()
}

pub(crate) const EXPIRED_BECAUSE: &str = "The service refused to renew the access for good";

/// Sends a message, if there is one.
pub(crate) async fn sent(shared: &Shared, message: Option<Message>) -> Vec<u16> {
    match message {
        Some(message) => message.send(shared).await,
        None => vec![],
    }
}

async fn requests(State(shared): SharedState) -> Json<Value> {
    let write = |recorded: &Recorded| {
        json!({
            "method": recorded.method,
            "path": recorded.path,
            "query": recorded.query,
            "body": recorded.body,
            "status": recorded.status,
        })
    };
    Json(shared.requests().iter().map(write).collect())
}
