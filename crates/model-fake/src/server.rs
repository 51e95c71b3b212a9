//! The server itself.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::script::{Fault, Script, Turn};
use crate::stream::{Played, error, error_event};
use crate::{Api, Conversation};

/// A model of one's own, on a port of this machine. It serves until it is dropped.
#[derive(Debug)]
pub struct ModelServer {
    shared: Arc<Shared>,
    _stop: oneshot::Sender<()>,
}

/// One question that the server got.
#[derive(Clone, Debug)]
pub struct Asked {
    pub conversation: Conversation,
    pub headers: HeaderMap,
    pub body: Value,
}

#[derive(Debug)]
struct Shared {
    origin: String,
    script: Mutex<Script>,
    asked: Mutex<Vec<Asked>>,
    keeps: bool,
    /// How often each conversation failed already.
    failures: Mutex<HashMap<u64, usize>>,
    next_id: AtomicU64,
}

impl ModelServer {
    /// Starts on a free port, and keeps every question.
    pub async fn start(script: Script) -> Self {
        Self::start_on(0, script, true).await.expect("there is a free port")
    }

    /// Starts on a port; `keeps` says whether questions are kept, which a bench cannot afford.
    pub async fn start_on(port: u16, script: Script, keeps: bool) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let shared = Arc::new(Shared {
            origin: format!("http://{}", listener.local_addr()?),
            script: Mutex::new(script),
            asked: Mutex::default(),
            keeps,
            failures: Mutex::default(),
            next_id: AtomicU64::new(1),
        });
        let app = Router::new()
            .route("/v1/chat/completions", post(chat))
            .route("/v1/responses", post(responses))
            .route("/v1/messages", post(messages))
            .route("/v1/models", get(async || axum::Json(json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]}))))
            .layer(DefaultBodyLimit::max(64 << 20))
            .with_state(Arc::clone(&shared));
        let (stop, stopped) = oneshot::channel::<()>();
        let server = axum::serve(listener, app).with_graceful_shutdown(async { drop(stopped.await) });
        tokio::spawn(async { server.await });
        Ok(Self { shared, _stop: stop })
    }

    /// The base URL, for all three APIs.
    pub fn url(&self) -> String {
        format!("{}/v1", self.shared.origin)
    }

    /// Plays another script from now on.
    pub fn play(&self, script: Script) {
        *lock(&self.shared.script) = script;
        lock(&self.shared.failures).clear();
    }

    /// What was asked, in the order in which it arrived.
    pub fn asked(&self) -> Vec<Asked> {
        lock(&self.shared.asked).clone()
    }

    pub fn forget(&self) {
        lock(&self.shared.asked).clear();
    }
}

async fn chat(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    shared.answer(Api::Chat, headers, &body).await
}

async fn responses(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    shared.answer(Api::Responses, headers, &body).await
}

async fn messages(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    if !headers.contains_key("anthropic-version") {
        return refused(Api::Anthropic, 400, "anthropic-version: header is required", None);
    }
    shared.answer(Api::Anthropic, headers, &body).await
}

impl Shared {
    async fn answer(&self, api: Api, headers: HeaderMap, body: &[u8]) -> Response {
        let Ok(body) = serde_json::from_slice::<Value>(body) else {
            return refused(api, 400, "the body is no JSON", None);
        };
        let conversation = match Conversation::read(api, &body) {
            Ok(conversation) => conversation,
            Err(problem) => return refused(api, 400, &problem, None),
        };
        if self.keeps {
            lock(&self.asked).push(Asked { conversation: conversation.clone(), headers, body });
        }
        let turn = lock(&self.script).clone().turn(&conversation);
        tokio::time::sleep(Duration::from_millis(turn.wait_ms)).await;
        let fault = self.fault(&conversation, &turn);
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        write(&conversation, &Played::new(id, &conversation, turn), fault).await
    }

    fn fault(&self, conversation: &Conversation, turn: &Turn) -> Option<Fault> {
        if turn.faults.is_empty() {
            return None;
        }
        let mut failures = lock(&self.failures);
        let failed = failures.entry(conversation.fingerprint()).or_default();
        *failed += 1;
        turn.faults.get(*failed - 1).cloned()
    }
}

async fn write(conversation: &Conversation, played: &Played, fault: Option<Fault>) -> Response {
    let api = conversation.api;
    match fault {
        Some(Fault::Status { status, retry_after }) => return refused(api, status, "as the script says", retry_after),
        Some(Fault::MidStream) if !conversation.stream => return refused(api, 529, "Overloaded", None),
        Some(Fault::NotJson) => {
            return ([(header::CONTENT_TYPE, "text/html")], "<html><body>Come back later</body></html>").into_response();
        }
        Some(Fault::Silence) => std::future::pending().await,
        Some(Fault::MidStream | Fault::Cut) | None => {}
    }
    let cut = fault == Some(Fault::Cut);
    if !conversation.stream {
        let body = played.whole(api).to_string();
        let json = [(header::CONTENT_TYPE, "application/json")];
        return if cut {
            (json, broken(vec![body[..body.len() / 2].to_owned()], Duration::ZERO)).into_response()
        } else {
            (json, body).into_response()
        };
    }
    let mut events = played.events(api);
    if fault.is_some() {
        events.truncate(events.len() / 2);
    }
    if fault == Some(Fault::MidStream) {
        events.push(error_event(api));
    }
    let body = if cut { broken(events, played.pace) } else { Body::from_stream(paced(events, played.pace)) };
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn refused(api: Api, status: u16, message: &str, retry_after: Option<String>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, axum::Json(error(api, status.as_u16(), message))).into_response();
    if let Some(value) = retry_after.and_then(|text| text.parse().ok()) {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    response
}

fn paced(pieces: Vec<String>, pace: Duration) -> impl futures_util::Stream<Item = io::Result<String>> {
    stream::iter(pieces).then(move |piece| async move {
        if !pace.is_zero() {
            tokio::time::sleep(pace).await;
        }
        Ok(piece)
    })
}

/// A body whose connection breaks before it is whole.
fn broken(pieces: Vec<String>, pace: Duration) -> Body {
    Body::from_stream(paced(pieces, pace).chain(stream::once(async {
        // What was written leaves first; a break in the same moment would take it along.
        tokio::time::sleep(Duration::from_millis(20)).await;
        Err(io::ErrorKind::ConnectionReset.into())
    })))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
