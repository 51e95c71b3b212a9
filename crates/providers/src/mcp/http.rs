//! A server on the web: Streamable HTTP, every request through the guard.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use egress::{Egress, EgressError, Events, Opened, Request};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use http::{Method, StatusCode};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;
use tools::Progress;
use url::Url;

use super::OnChange;
use super::fault::Fault;
use super::wire::{self, Heard, MAX_MESSAGE, STATELESS};

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

const MAX_REFUSAL: usize = 64 << 10;
/// How long a message that wants no result may take.
const ASIDE: Duration = Duration::from_secs(5);
/// How many of a server's own questions are answered at once; one that asks faster gets no answer.
const ANSWERS_AT_ONCE: usize = 4;
/// How often a broken stream of one answer is taken up again.
const RESUMES: usize = 5;
const BEFORE_RESUME: Duration = Duration::from_millis(500);
/// How long to wait before a stream of changes is opened again: at first, and at most.
const REOPEN: Duration = Duration::from_secs(1);
const REOPEN_AT_MOST: Duration = Duration::from_mins(2);

/// A server behind an address.
#[derive(Debug)]
pub(super) struct Http {
    egress: Egress,
    url: Url,
    /// The headers of the import.
    fixed: HeaderMap,
    /// The credential of the account, as it was used last.
    account: Mutex<HeaderMap>,
    session: Mutex<Option<HeaderValue>>,
    version: OnceLock<&'static str>,
    on_change: OnChange,
    tasks: TaskTracker,
    answers: Arc<Semaphore>,
}

/// A request as it is sent.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) id: u64,
    pub(super) method: &'a str,
    pub(super) message: &'a Value,
    /// What the stateless revision repeats of the body.
    pub(super) mirrored: HeaderMap,
    pub(super) limit: Duration,
}

impl Http {
    pub(super) fn new(egress: Egress, url: Url, fixed: HeaderMap, tasks: TaskTracker, on_change: OnChange) -> Self {
        let answers = Arc::new(Semaphore::new(ANSWERS_AT_ONCE));
        let (account, session) = (Mutex::default(), Mutex::default());
        Self { egress, url, fixed, account, session, version: OnceLock::new(), on_change, tasks, answers }
    }

    /// Takes the credential that the next requests are made with.
    pub(super) fn act_as(&self, account: HeaderMap) {
        *lock(&self.account) = account;
    }

    /// Keeps the revision that was agreed on.
    pub(super) fn speak(&self, version: &'static str) {
        let _ = self.version.set(version);
    }

    fn is_stateless(&self) -> bool {
        self.version.get() == Some(&STATELESS)
    }

    fn request_to(&self, method: Method, accept: HeaderValue, limit: Duration) -> Request {
        let mut request = Request::new(method, self.url.clone()).timeout(limit);
        request.headers = self.fixed.clone();
        request.headers.extend(lock(&self.account).clone());
        request.headers.insert(ACCEPT, accept);
        if let Some(version) = self.version.get() {
            request.headers.insert(VERSION, HeaderValue::from_static(version));
        }
        if let Some(session) = lock(&self.session).clone() {
            request.headers.insert(SESSION, session);
        }
        request
    }

    fn post(&self, message: &Value, limit: Duration) -> Request {
        let request = self.request_to(Method::POST, BOTH, limit).body(message.to_string());
        request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
    }

    /// Sends a request and reads until its answer.
    pub(super) async fn request(&self, asked: Asked<'_>, progress: &Progress) -> Result<Value, Fault> {
        let mut request = self.post(asked.message, asked.limit);
        if self.is_stateless() || asked.method == "server/discover" {
            request.headers.insert(VERSION, HeaderValue::from_static(STATELESS));
            request.headers.insert(METHOD, HeaderValue::from_str(asked.method).map_err(|error| Fault::Unreadable(error.to_string()))?);
            request.headers.extend(asked.mirrored);
        }
        let mut unheard = Unheard { http: self, id: self.hears_of(asked.method).then_some(asked.id) };
        let answer = self.answer(request, asked.id, progress).await;
        unheard.id = None;
        answer
    }

    async fn answer(&self, request: Request, id: u64, progress: &Progress) -> Result<Value, Fault> {
        let opened = self.egress.open(request).await?;
        if !opened.status.is_success() {
            return Err(self.refused(opened).await);
        }
        if let Some(session) = opened.headers.get(SESSION) {
            lock(&self.session).get_or_insert_with(|| session.clone());
        }
        if is_events(&opened) {
            return self.follow(opened, id, progress).await;
        }
        let body = read(opened, MAX_MESSAGE).await?.ok_or(Fault::TooLarge(MAX_MESSAGE))?;
        let message: Value = serde_json::from_slice(&body).map_err(|error| Fault::Unreadable(error.to_string()))?;
        let messages = if let Value::Array(messages) = message { messages } else { vec![message] };
        let answer = messages.into_iter().find_map(|message| self.hear(message, id, progress));
        answer.unwrap_or_else(|| Err(Fault::Unreadable("the answer is to another question".to_owned())))
    }

    /// Reads events until the answer; a stream that breaks off is taken up again where the server can do that.
    async fn follow(&self, mut opened: Opened, id: u64, progress: &Progress) -> Result<Value, Fault> {
        let mut events = Events::new(MAX_MESSAGE);
        for _ in 0..RESUMES {
            let broken = loop {
                match opened.chunk().await {
                    Ok(Some(chunk)) => {
                        for data in events.push(&chunk)? {
                            if let Some(answer) = self.hear(read_event(&data)?, id, progress) {
                                return answer;
                            }
                        }
                    }
                    Ok(None) => break Fault::Gone("the stream ended without an answer".to_owned()),
                    Err(error) => break error.into(),
                }
            };
            let Some(last) = events.last_id() else { return Err(broken) };
            tokio::time::sleep(BEFORE_RESUME).await;
            match self.resume(last).await {
                Some(again) => opened = again,
                None => return Err(broken),
            }
            events = events.resumed();
        }
        Err(Fault::Gone("the stream broke off again and again".to_owned()))
    }

    async fn resume(&self, last: &str) -> Option<Opened> {
        let request = self.request_to(Method::GET, EVENTS, ASIDE).header(LAST_EVENT, HeaderValue::from_str(last).ok()?);
        self.egress.open(request).await.ok().filter(|opened| opened.status.is_success() && is_events(opened))
    }

    fn hear(&self, message: Value, waits_for: u64, progress: &Progress) -> Option<Result<Value, Fault>> {
        match wire::read(message) {
            Heard::Answer { id, result } if id == waits_for => return Some(result),
            Heard::Progress { token, step } if token == waits_for => progress.tell(step),
            Heard::ToolsChanged => self.on_change.tell(),
            Heard::Question { id, method } => {
                if let Ok(place) = self.answers.clone().try_acquire_owned() {
                    self.aside(self.post(&wire::answer(id, &method), ASIDE), Some(place));
                }
            }
            Heard::Answer { .. } | Heard::Progress { .. } | Heard::Other => {}
        }
        None
    }

    /// Sends something whose answer does not matter; its place, if it needs one, is taken until then.
    fn aside(&self, request: Request, place: Option<OwnedSemaphorePermit>) {
        let egress = self.egress.clone();
        // Outside of the runtime the process is ending, and nobody is left to tell.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let sending = async move {
                let _place = place;
                drop(egress.send(request.max_response(MAX_REFUSAL)).await);
            };
            self.tasks.spawn_on(sending, &runtime);
        }
    }

    pub(super) async fn notify(&self, message: &Value) -> Result<(), Fault> {
        let response = self.egress.send(self.post(message, ASIDE).max_response(MAX_REFUSAL)).await?;
        if response.status.is_success() { Ok(()) } else { Err(Fault::Status(response.status)) }
    }

    async fn refused(&self, opened: Opened) -> Fault {
        let status = opened.status;
        if status == StatusCode::UNAUTHORIZED {
            let challenge = opened.headers.get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok()).map(str::to_owned);
            return Fault::Unauthorized { challenge };
        }
        let body = read(opened, MAX_REFUSAL).await.ok().flatten().unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let words = body["error"]["message"].as_str().unwrap_or_default().to_lowercase();
        let is_forgotten = status == StatusCode::NOT_FOUND || (status == StatusCode::BAD_REQUEST && words.contains("session"));
        if is_forgotten && lock(&self.session).is_some() {
            return Fault::Forgotten;
        }
        if body["error"]["code"].is_i64() && !status.is_server_error() { wire::refusal(&body["error"]) } else { Fault::Status(status) }
    }

    /// Tells of changes for as long as it is let.
    pub(super) async fn listen(&self, subscription: Value) {
        let (mut wait, mut is_first) = (REOPEN, true);
        loop {
            let request = if self.is_stateless() {
                let request = self.post(&subscription, ASIDE);
                request.header(METHOD, HeaderValue::from_static("subscriptions/listen"))
            } else {
                self.request_to(Method::GET, EVENTS, ASIDE)
            };
            match self.egress.open(request).await {
                Ok(opened) if opened.status.is_success() && is_events(&opened) => {
                    // What changed while nobody listened was not told.
                    if !std::mem::take(&mut is_first) {
                        self.on_change.tell();
                    }
                    wait = REOPEN;
                    self.listen_to(opened).await;
                }
                // It offers no such stream.
                Ok(opened) if opened.status.is_client_error() || opened.status.is_success() => return,
                Ok(_) | Err(_) => {}
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(REOPEN_AT_MOST);
        }
    }

    async fn listen_to(&self, mut opened: Opened) {
        let mut events = Events::new(MAX_MESSAGE);
        while let Ok(Some(chunk)) = opened.chunk().await {
            let Ok(messages) = events.push(&chunk) else { return };
            for data in messages {
                let Ok(message) = read_event(&data) else { return };
                self.hear(message, u64::MAX, &Progress::default());
            }
        }
    }

    /// Whether the server is told that a request is not waited for any more; in the stateless revision the closed stream says so.
    fn hears_of(&self, method: &str) -> bool {
        !self.is_stateless() && !matches!(method, "initialize" | "server/discover")
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        if lock(&self.session).is_some() {
            self.aside(self.request_to(Method::DELETE, BOTH, ASIDE), None);
        }
    }
}

/// A request that nobody may wait for any more.
struct Unheard<'a> {
    http: &'a Http,
    id: Option<u64>,
}

impl Drop for Unheard<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.http.aside(self.http.post(&wire::cancelled(id), ASIDE), None);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_event(data: &str) -> Result<Value, Fault> {
    serde_json::from_str(data).map_err(|error| Fault::Unreadable(error.to_string()))
}

fn is_events(opened: &Opened) -> bool {
    let kind = opened.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}

/// The whole body, unless it is longer than `most`.
async fn read(mut opened: Opened, most: usize) -> Result<Option<Bytes>, EgressError> {
    let mut body = BytesMut::new();
    while let Some(chunk) = opened.chunk().await? {
        if body.len() + chunk.len() > most {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body.freeze()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_server_that_asks_all_the_time_is_answered_a_few_at_once() {
        let egress = Egress::new(egress::Config::default()).unwrap();
        let tasks = TaskTracker::new();
        let http = Http::new(egress, "https://192.0.2.1/mcp".parse().unwrap(), HeaderMap::new(), tasks.clone(), OnChange::nothing());
        let ask = |id: usize| http.hear(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}), u64::MAX, &Progress::default());
        assert!((0..1000).all(|id| ask(id).is_none()));
        assert_eq!(tasks.len(), ANSWERS_AT_ONCE);
        tasks.close();
        tasks.wait().await;
        assert!(ask(1000).is_none());
        assert_eq!(tasks.len(), 1, "those after are answered again");
    }
}
