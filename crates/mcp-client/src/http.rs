//! A server on the web: Streamable HTTP, every request through the guard.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use calls::Progress;
use egress::{Egress, EgressError, Events, Opened, Request};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use http::{Method, StatusCode};
use mcp_wire::Version;
use mcp_wire::header::{LAST_EVENT_ID, METHOD, PROTOCOL_VERSION, SESSION_ID};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;
use url::Url;

use crate::OnChange;
use crate::fault::ServerError;
use crate::reader::Reader;
use crate::session::Ground;
use crate::wire::{self, Heard, MAX_MESSAGE};

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
pub(crate) struct Http {
    egress: Egress,
    url: Url,
    /// The headers of the import.
    fixed: HeaderMap,
    /// The credential of the account, as it was used last.
    account: Mutex<HeaderMap>,
    session: Mutex<Option<HeaderValue>>,
    version: OnceLock<Version>,
    on_change: OnChange,
    tasks: TaskTracker,
    answers: Arc<Semaphore>,
    reader: Reader,
}

/// A request as it is sent.
#[derive(Debug)]
pub(crate) struct OutgoingRequest<'a> {
    pub(crate) id: u64,
    pub(crate) method: &'a str,
    pub(crate) message: &'a Value,
    /// What the stateless revision repeats of the body.
    pub(crate) mirrored: HeaderMap,
    pub(crate) limit: Duration,
}

impl Http {
    pub(crate) fn new(ground: &Ground, reader: Reader, url: Url, fixed: HeaderMap, on_change: OnChange) -> Self {
        let answers = Arc::new(Semaphore::new(ANSWERS_AT_ONCE));
        let (account, session) = (Mutex::default(), Mutex::default());
        let (egress, tasks) = (ground.egress.clone(), ground.tasks.clone());
        Self { egress, url, fixed, account, session, version: OnceLock::new(), on_change, tasks, answers, reader }
    }

    /// Takes the credential that the next requests are made with.
    pub(crate) fn act_as(&self, account: HeaderMap) {
        *lock(&self.account) = account;
    }

    /// Keeps the revision that was agreed on.
    pub(crate) fn speak(&self, version: Version) {
        let _ = self.version.set(version);
    }

    fn is_stateless(&self) -> bool {
        self.version.get().is_some_and(|version| version.is_stateless())
    }

    fn request_to(&self, method: Method, accept: HeaderValue, limit: Duration) -> Request {
        let mut request = Request::new(method, self.url.clone()).timeout(limit);
        request.headers = self.fixed.clone();
        request.headers.extend(lock(&self.account).clone());
        request.headers.insert(ACCEPT, accept);
        if let Some(version) = self.version.get() {
            request.headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(version.name()));
        }
        if let Some(session) = lock(&self.session).clone() {
            request.headers.insert(SESSION_ID, session);
        }
        request
    }

    fn post(&self, message: &Value, limit: Duration) -> Request {
        let request = self.request_to(Method::POST, BOTH, limit).body(message.to_string());
        request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
    }

    /// Sends a request and reads until its answer.
    pub(crate) async fn request(&self, asked: OutgoingRequest<'_>, progress: &Progress) -> Result<Value, ServerError> {
        let mut request = self.post(asked.message, asked.limit);
        if self.is_stateless() || asked.method == "server/discover" {
            request.headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(Version::STATELESS.name()));
            request
                .headers
                .insert(METHOD, HeaderValue::from_str(asked.method).map_err(|error| ServerError::Unreadable(error.to_string()))?);
            request.headers.extend(asked.mirrored);
        }
        let mut unheard = Unheard { http: self, id: self.hears_of(asked.method).then_some(asked.id) };
        let answer = self.answer(request, asked.id, progress).await;
        unheard.id = None;
        answer
    }

    async fn answer(&self, request: Request, id: u64, progress: &Progress) -> Result<Value, ServerError> {
        let opened = self.egress.open(request).await?;
        if !opened.status.is_success() {
            return Err(self.refused(opened).await);
        }
        if let Some(session) = opened.headers.get(SESSION_ID) {
            lock(&self.session).get_or_insert_with(|| session.clone());
        }
        if is_events(&opened) {
            return self.follow(opened, id, progress).await;
        }
        let body = read(opened, MAX_MESSAGE).await?.ok_or(ServerError::TooLarge(MAX_MESSAGE))?;
        let message = self.reader.parse(body).await?;
        let messages = if let Value::Array(messages) = message { messages } else { vec![message] };
        let answer = messages.into_iter().find_map(|message| self.hear(message, id, progress));
        answer.unwrap_or_else(|| Err(ServerError::Unreadable("the answer is to another question".to_owned())))
    }

    /// Reads events until the answer; a stream that breaks off is taken up again where the server can do that.
    async fn follow(&self, mut opened: Opened, id: u64, progress: &Progress) -> Result<Value, ServerError> {
        let mut events = Events::new(MAX_MESSAGE);
        for _ in 0..RESUMES {
            let broken = loop {
                match opened.chunk().await {
                    Ok(Some(chunk)) => {
                        for data in events.push(&chunk)? {
                            if let Some(answer) = self.hear(self.reader.parse(data).await?, id, progress) {
                                return answer;
                            }
                        }
                    }
                    Ok(None) => break ServerError::Gone("the stream ended without an answer".to_owned()),
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
        Err(ServerError::Gone("the stream broke off again and again".to_owned()))
    }

    async fn resume(&self, last: &str) -> Option<Opened> {
        let request = self.request_to(Method::GET, EVENTS, ASIDE).header(LAST_EVENT_ID, HeaderValue::from_str(last).ok()?);
        self.egress.open(request).await.ok().filter(|opened| opened.status.is_success() && is_events(opened))
    }

    fn hear(&self, message: Value, waits_for: u64, progress: &Progress) -> Option<Result<Value, ServerError>> {
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

    pub(crate) async fn notify(&self, message: &Value) -> Result<(), ServerError> {
        let response = self.egress.send(self.post(message, ASIDE).max_response(MAX_REFUSAL)).await?;
        if response.status.is_success() { Ok(()) } else { Err(ServerError::Status(response.status)) }
    }

    async fn refused(&self, opened: Opened) -> ServerError {
        let status = opened.status;
        if status == StatusCode::UNAUTHORIZED {
            let challenge = opened.headers.get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok()).map(str::to_owned);
            return ServerError::Unauthorized { challenge };
        }
        let body = read(opened, MAX_REFUSAL).await.ok().flatten().unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let words = body["error"]["message"].as_str().unwrap_or_default().to_lowercase();
        let is_forgotten = status == StatusCode::NOT_FOUND || (status == StatusCode::BAD_REQUEST && words.contains("session"));
        if is_forgotten && lock(&self.session).is_some() {
            return ServerError::Forgotten;
        }
        if body["error"]["code"].is_i64() && !status.is_server_error() {
            wire::refusal(&body["error"])
        } else {
            ServerError::Status(status)
        }
    }

    /// Tells of changes for as long as it is let.
    pub(crate) async fn listen(&self, subscription: Value) {
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
                let Ok(message) = self.reader.parse(data).await else { return };
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
        if body.len() > work::SMALL {
            work::go_large().await;
        }
    }
    Ok(Some(body.freeze()))
}

#[cfg(test)]
mod tests {
    use kernel::ProjectId;
    use serde_json::json;
    use tokio_util::sync::CancellationToken;
    use work::Workers;

    use super::*;

    #[tokio::test]
    async fn a_server_that_asks_all_the_time_is_answered_a_few_at_once() {
        let (egress, workers) = (Egress::new(egress::Config::default()).unwrap(), Workers::default());
        let tasks = TaskTracker::new();
        let ground = Ground { egress, workers: workers.clone(), tasks: tasks.clone(), stop: CancellationToken::new() };
        let reader = Reader::new(workers, ProjectId::new());
        let http = Http::new(&ground, reader, "https://192.0.2.1/mcp".parse().unwrap(), HeaderMap::new(), OnChange::nothing());
        let ask = |id: usize| http.hear(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}), u64::MAX, &Progress::default());
        assert!((0..1000).all(|id| ask(id).is_none()));
        assert_eq!(tasks.len(), ANSWERS_AT_ONCE);
        tasks.close();
        tasks.wait().await;
        assert!(ask(1000).is_none());
        assert_eq!(tasks.len(), 1, "those after are answered again");
    }
}
