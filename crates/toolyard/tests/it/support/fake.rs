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
    hooks: AtomicU32,
    hook_status: AtomicU32,
    things: Mutex<Vec<Value>>,
    files: Mutex<BTreeMap<String, String>>,
    /// What the target answers with, one status per run; 200 when there is none left.
    target: Mutex<Vec<u16>>,
    /// What is answered in place of an echo.
    answer: Mutex<Option<String>>,
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
            .route("/hooks", post(hook))
            .route("/hooks/{id}", axum::routing::delete(unhook))
            .route("/things", get(things))
            .route("/files/{*name}", get(file))
            .route("/target", post(target))
            .route("/token", post(token))
            .route("/seen", get(seen))
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

    /// What making a hook answers with.
    pub fn answer_hooks(&self, status: u16) {
        self.state.hook_status.store(status.into(), Ordering::SeqCst);
    }

    pub fn add_thing(&self, id: &str) {
        self.state.things.lock().unwrap().push(json!({"id": id}));
    }

    /// What the next runs of the target answer with.
    pub fn answer_target(&self, statuses: &[u16]) {
        *self.state.target.lock().unwrap() = statuses.iter().rev().copied().collect();
    }

    /// Puts a file at an address, or another in its place.
    pub fn put_file(&self, name: &str, text: &str) -> String {
        self.state.files.lock().unwrap().insert(name.to_owned(), text.to_owned());
        format!("{}/files/{name}", self.url)
    }

    /// Requests to one path.
    pub fn seen_at(&self, path: &str) -> Vec<Value> {
        self.seen().into_iter().filter(|seen| seen["path"].as_str().unwrap().starts_with(path)).collect()
    }

    /// Answers every echo with this text of JSON.
    pub fn answer_echo(&self, text: String) {
        *self.state.answer.lock().unwrap() = Some(text);
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

/// What was sent last, for scripts.
async fn seen(State(state): State<Arc<Shared>>) -> Json<Value> {
    Json(state.seen.lock().unwrap().last().cloned().unwrap_or_default())
}

async fn echo(State(state): State<Arc<Shared>>, request: Request) -> Response {
    let seen = record(&state, request).await;
    let answer = state.answer.lock().unwrap().clone();
    answer.map_or_else(|| Json(seen).into_response(), IntoResponse::into_response)
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
    let (id, login) = if key.contains("other") { (8, "bob") } else { (7, "ann") };
    (code, Json(json!({"id": id, "login": login, "message": format!("answer {code} to {key}")}))).into_response()
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

async fn hook(State(state): State<Arc<Shared>>, request: Request) -> Response {
    record(&state, request).await;
    let number = state.hooks.fetch_add(1, Ordering::SeqCst) + 1;
    match state.hook_status.load(Ordering::SeqCst) {
        0 => Json(json!({"id": format!("hook-{number}")})).into_response(),
        code => (StatusCode::from_u16(u16::try_from(code).unwrap()).unwrap(), Json(json!({"message": "no hooks today"}))).into_response(),
    }
}

async fn unhook(State(state): State<Arc<Shared>>, request: Request) -> StatusCode {
    record(&state, request).await;
    StatusCode::NO_CONTENT
}

async fn things(State(state): State<Arc<Shared>>, request: Request) -> Json<Value> {
    record(&state, request).await;
    Json(json!({"items": *state.things.lock().unwrap()}))
}

async fn file(State(state): State<Arc<Shared>>, Path(name): Path<String>) -> Response {
    match state.files.lock().unwrap().get(&name) {
        Some(text) => text.clone().into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn target(State(state): State<Arc<Shared>>, request: Request) -> Response {
    let seen = record(&state, request).await;
    let code = state.target.lock().unwrap().pop().unwrap_or(200);
    (StatusCode::from_u16(code).unwrap(), Json(json!({"status": {"code": code}, "data": {"outputs": seen["body"]["data"]["inputs"]}})))
        .into_response()
}
