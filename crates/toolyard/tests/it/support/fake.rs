//! A made-up service on a real socket that shows what it was sent.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::Notify;

#[derive(Clone)]
pub struct Fake {
    pub url: String,
    state: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Vec<Value>>,
    tokens: AtomicU32,
    hang_tokens: AtomicU32,
    hanging: Notify,
    me_status: AtomicU32,
}

impl Fake {
    pub async fn start() -> Self {
        let state = Arc::new(Shared::default());
        state.me_status.store(200, Ordering::SeqCst);
        let router = Router::new()
            .route("/echo/{*rest}", any(echo))
            .route("/graphql", post(graphql))
            .route("/status/{code}", any(status))
            .route("/slow", post(slow))
            .route("/me", get(me))
            .route("/token", post(token))
            .with_state(state.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, state }
    }

    /// Requests that arrived, in order.
    pub fn seen(&self) -> Vec<Value> {
        self.state.seen.lock().unwrap().clone()
    }

    pub fn token_requests(&self) -> u32 {
        self.state.tokens.load(Ordering::SeqCst)
    }

    /// The next token requests never get an answer.
    pub fn hang_tokens(&self, times: u32) {
        self.state.hang_tokens.store(times, Ordering::SeqCst);
    }

    /// Ready once a token request hangs.
    pub async fn token_hangs(&self) {
        self.state.hanging.notified().await;
    }

    /// What the account call answers with.
    pub fn answer_me(&self, status: u16) {
        self.state.me_status.store(status.into(), Ordering::SeqCst);
    }
}

async fn record(state: &Shared, request: Request) -> Value {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let headers: BTreeMap<String, String> =
        parts.headers.iter().map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())).collect();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
    let seen =
        json!({"method": parts.method.as_str(), "path": parts.uri.path(), "query": parts.uri.query(), "headers": headers, "body": body});
    state.seen.lock().unwrap().push(seen.clone());
    seen
}

async fn echo(State(state): State<Arc<Shared>>, request: Request) -> Json<Value> {
    Json(record(&state, request).await)
}

async fn graphql(State(state): State<Arc<Shared>>, request: Request) -> Json<Value> {
    let seen = record(&state, request).await;
    if seen["body"]["variables"]["first"] == 0 {
        return Json(json!({"data": null, "errors": [{"message": "first must be positive"}]}));
    }
    Json(json!({"data": {"things": [seen["body"]]}}))
}

async fn status(State(state): State<Arc<Shared>>, Path(code): Path<u16>, request: Request) -> Response {
    record(&state, request).await;
    match code {
        299 => Json(json!({"ok": false, "error": "not_today"})).into_response(),
        298 => "not json at all".into_response(),
        297 => vec![b'x'; 9 << 20].into_response(),
        code => (StatusCode::from_u16(code).unwrap(), Json(json!({"message": format!("status {code} as asked")}))).into_response(),
    }
}

async fn slow(State(state): State<Arc<Shared>>, request: Request) -> Json<Value> {
    let seen = record(&state, request).await;
    let asked = [&seen["body"]["ms"], &seen["body"]["data"]["inputs"]["ms"]].into_iter().find_map(Value::as_u64);
    tokio::time::sleep(Duration::from_millis(asked.unwrap_or(0))).await;
    Json(json!({"waited": asked}))
}

async fn me(State(state): State<Arc<Shared>>, request: Request) -> Response {
    record(&state, request).await;
    let code = StatusCode::from_u16(u16::try_from(state.me_status.load(Ordering::SeqCst)).unwrap()).unwrap();
    if code == StatusCode::ACCEPTED {
        return Json(json!({"ok": false, "error": "invalid_auth"})).into_response();
    }
    let key =
        state.seen.lock().unwrap().last().and_then(|seen| seen["headers"]["x-api-key"].as_str().map(str::to_owned)).unwrap_or_default();
    (code, Json(json!({"id": 7, "login": "ann", "message": format!("answer {code} to {key}")}))).into_response()
}

async fn token(State(state): State<Arc<Shared>>, request: Request) -> Json<Value> {
    let number = state.tokens.fetch_add(1, Ordering::SeqCst) + 1;
    record(&state, request).await;
    if state.hang_tokens.load(Ordering::SeqCst) > 0 {
        state.hang_tokens.fetch_sub(1, Ordering::SeqCst);
        state.hanging.notify_one();
        std::future::pending::<()>().await;
    }
    Json(json!({"access_token": format!("token-{number}-abcdef"), "token_type": "bearer", "expires_in": 100}))
}
