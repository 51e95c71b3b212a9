//! From a message to its answer.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use http::header::ACCEPT;
use mcp_wire::{Message, header, meta};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use uuid::Uuid;

use crate::answer::{Answer, Running};
use crate::client::session_id;
use crate::listen::Listeners;
use crate::live::Live;
use crate::outbox::Outbox;
use crate::version::{SERVED, UNNAMED, served};
use crate::{Call, CallOutcome, Client, Progress, Request, RequestId, RpcError, Surface, Version, listen, mirror};

/// How long a list may be taken for fresh by a client that does not listen for changes.
const LIST_TTL_MS: u64 = 30_000;
const DISCOVER_TTL_MS: u64 = 300_000;
const MAX_BATCH: usize = 50;
/// A call asks a person at most this often.
const MAX_ROUNDS: usize = 10;
/// How long a person may think.
const ANSWER_WITHIN: Duration = Duration::from_mins(10);

/// The protocol, for every surface of a process.
#[derive(Clone, Debug, Default)]
pub struct Mcp {
    live: Live,
    listeners: Listeners,
    stopping: CancellationToken,
}

/// Who asks, and for what.
#[derive(Clone)]
pub(crate) struct RequestContext {
    pub(crate) caller: Uuid,
    pub(crate) client: Client,
    pub(crate) surface: Arc<dyn Surface>,
    /// Whether the client reads an answer that comes as events.
    pub(crate) reads_events: bool,
}

impl Mcp {
    /// Ends every stream that only waits for changes.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Answers what a client posts, or says why that is no JSON. `caller` is the key behind the request: what one key has under way, no other reaches.
    #[kernel::boxed]
    pub async fn post(&self, caller: Uuid, headers: &HeaderMap, surface: Arc<dyn Surface>, message: Result<Value, String>) -> Answer {
        match message {
            Ok(Value::Array(messages)) => self.batch(caller, headers, surface, messages).await,
            Ok(message) => self.one(caller, headers, surface, message, reads_events(headers)).await,
            Err(error) => Answer::fault(&RpcError::Parse(error), None, UNNAMED),
        }
    }

    /// A stream of changes, as clients before 2026-07-28 open it.
    #[kernel::boxed]
    pub async fn changes(&self, caller: Uuid, headers: &HeaderMap, surface: Arc<dyn Surface>) -> Answer {
        let version = headers.get(header::PROTOCOL_VERSION).map_or(Some(UNNAMED), |name| served(name.to_str().ok()?.trim()));
        match version {
            Some(version) if !version.is_stateless() && reads_events(headers) => self.stream(caller, surface, None, true).await,
            Some(version) if !version.is_stateless() => Answer::status(406, "Accept must name text/event-stream."),
            _ => Answer::status(405, "Post `subscriptions/listen` to hear of changes."),
        }
    }

    /// 2025-03-26 knows batches; the revisions after it do not.
    async fn batch(&self, caller: Uuid, headers: &HeaderMap, surface: Arc<dyn Surface>, messages: Vec<Value>) -> Answer {
        let version = headers.get(header::PROTOCOL_VERSION).map(http::HeaderValue::as_bytes);
        if version.is_some_and(|name| name != Version::V20250326.name().as_bytes()) || !(1..=MAX_BATCH).contains(&messages.len()) {
            let fault = RpcError::Request(format!("post one message; up to {MAX_BATCH} in 2025-03-26"));
            return Answer::fault(&fault, None, UNNAMED);
        }
        let answers = messages.into_iter().map(|message| self.one(caller, headers, surface.clone(), message, false));
        let answers = futures_util::future::join_all(answers).await;
        let bodies: Vec<Value> = answers.into_iter().filter_map(Answer::into_body).collect();
        if bodies.is_empty() { Answer::Accepted } else { Answer::json(200, Value::Array(bodies)) }
    }

    async fn one(&self, caller: Uuid, headers: &HeaderMap, surface: Arc<dyn Surface>, message: Value, reads_events: bool) -> Answer {
        match Message::read(message) {
            Err(unreadable) => Answer::fault(&unreadable.why.into(), unreadable.id.as_ref(), UNNAMED),
            Ok(Message::Answer { id, result }) => {
                self.live.answer(caller, &id, result.ok());
                Answer::Accepted
            }
            Ok(Message::Notification { method, params }) => {
                if let Some(session) = headers.get(header::SESSION_ID).and_then(|session| session.to_str().ok())
                    && method == "notifications/cancelled"
                    && let Some(id) = params.get("requestId")
                {
                    self.live.cancel(&(caller, session.to_owned(), id.to_string()));
                }
                Answer::Accepted
            }
            Ok(Message::Request(request)) => match Client::of(headers, &request) {
                Ok(client) => self.request(RequestContext { caller, client, surface, reads_events }, headers, request).await,
                Err(fault) => Answer::fault(&fault, Some(&request.id), Version::V20260728),
            },
        }
    }

    async fn request(&self, asked: RequestContext, headers: &HeaderMap, request: Request) -> Answer {
        let (version, surface) = (asked.client.version, &asked.surface);
        let id = request.id.clone();
        let result = match (request.method.as_str(), version.is_stateless()) {
            ("initialize", false) => return initialize(&**surface, request),
            ("ping", false) => Ok(Map::new()),
            ("server/discover", true) => Ok(discover(&**surface)),
            ("subscriptions/listen", true) => return self.listen(asked, request).await,
            ("tools/list", _) => list(&**surface, &request).await,
            ("tools/call", _) => return self.call(asked, headers, request).await,
            ("initialize" | "ping" | "server/discover" | "subscriptions/listen", _) => Err(RpcError::Method(request.method)),
            _ => return self.other(asked, request).await,
        };
        match result {
            Ok(fields) => Answer::json(200, mcp_wire::result(&id, complete(version, fields))),
            Err(fault) => Answer::fault(&fault, Some(&id), version),
        }
    }

    async fn listen(&self, asked: RequestContext, request: Request) -> Answer {
        if !asked.reads_events {
            return Answer::status(406, "Accept must name text/event-stream.");
        }
        let wanted = request.params.get("notifications").and_then(|filter| filter.get("toolsListChanged")) == Some(&Value::Bool(true));
        self.stream(asked.caller, asked.surface, Some(request.id), wanted).await
    }

    async fn stream(&self, caller: Uuid, surface: Arc<dyn Surface>, subscription: Option<RequestId>, wanted: bool) -> Answer {
        let Some(place) = self.listeners.join(caller) else {
            return Answer::status(429, "This key listens on as many streams as it may; close one first.");
        };
        Answer::Events(listen::changes(surface, subscription, wanted, self.stopping.clone(), place).await)
    }

    async fn call(&self, asked: RequestContext, headers: &HeaderMap, request: Request) -> Answer {
        let version = asked.client.version;
        let messages = Outbox::default();
        let outbox = asked.reads_events.then(|| messages.clone());
        let call = match read_call(&asked, &request, outbox.clone()) {
            Ok(call) if !call.name.is_empty() => call,
            Ok(_) => return Answer::fault(&RpcError::Params("`params.name` must name a tool".to_owned()), Some(&request.id), version),
            Err(fault) => return Answer::fault(&fault, Some(&request.id), version),
        };
        if version.is_stateless()
            && let Some(schema) = asked.surface.mirrored_schema(&call.name)
            && let Err(fault) = mirror::check_arguments(headers, &schema, &call.arguments)
        {
            return Answer::fault(&fault, Some(&request.id), version);
        }
        let token = call.progress.token.clone();
        let work = self.clone().rounds(asked.clone(), request.method, call, outbox);
        let work = self.cancellable(&asked, &request.id, work.in_current_span().boxed());
        Running::new(work, messages, request.id, version, token).answer(asked.reads_events).await
    }

    async fn other(&self, asked: RequestContext, request: Request) -> Answer {
        let version = asked.client.version;
        let result = match read_call(&asked, &request, None) {
            Ok(call) => self.clone().rounds(asked, request.method, call, None).await,
            Err(fault) => Err(fault),
        };
        match result {
            Ok(result) => Answer::json(200, mcp_wire::result(&request.id, result)),
            Err(fault) => Answer::fault(&fault, Some(&request.id), version),
        }
    }

    /// Calls, and calls again with what the client answered, until there is a result. A client of the newest revision makes the next
    /// round itself.
    async fn rounds(self, asked: RequestContext, method: String, mut call: Call, outbox: Option<Outbox>) -> Result<Value, RpcError> {
        for _ in 0..MAX_ROUNDS {
            let outcome = match method.as_str() {
                "tools/call" => asked.surface.call(call.clone()).await?,
                other => asked.surface.other(other, call.clone()).await?,
            };
            let (requests, state) = match outcome {
                CallOutcome::Done(fields) => return Ok(complete(asked.client.version, fields)),
                CallOutcome::NeedsInput { requests, state } => (requests, state),
            };
            require_capabilities(&asked.client, &requests)?;
            if asked.client.version.is_stateless() {
                return Ok(needs_input(requests, state));
            }
            let Some(outbox) = &outbox else { return Err(RpcError::Capability(json!({"elicitation": {}}))) };
            call.inputs = self.ask(asked.caller, requests, outbox).await;
            call.state = state;
        }
        Err(RpcError::Params("The call was asked for input too often.".to_owned()))
    }

    /// Asks an older client, on the stream of the call that needs to know.
    async fn ask(&self, caller: Uuid, requests: Map<String, Value>, outbox: &Outbox) -> Map<String, Value> {
        let mut answers = Map::new();
        for (name, request) in requests {
            let mut question = self.live.question(caller);
            let method = request["method"].as_str().unwrap_or_default();
            outbox.ask(mcp_wire::request(question.id.as_str(), method, fields(request["params"].clone())));
            let answer = tokio::time::timeout(ANSWER_WITHIN, &mut question.answer).await;
            let answer = answer.ok().and_then(Result::ok).flatten();
            answers.insert(name, answer.unwrap_or_else(|| json!({"action": "cancel"})));
        }
        answers
    }

    /// Lets the client end a call that it made in a session.
    fn cancellable(
        &self,
        asked: &RequestContext,
        id: &RequestId,
        work: BoxFuture<'static, Result<Value, RpcError>>,
    ) -> BoxFuture<'static, Result<Value, RpcError>> {
        let Some(session) = &asked.client.session else { return work };
        let cancellable = self.live.call((asked.caller, session.clone(), id.to_string()));
        Box::pin(async move {
            tokio::select! {
                () = cancellable.token.cancelled() => Err(RpcError::Cancelled),
                result = work => result,
            }
        })
    }
}

fn reads_events(headers: &HeaderMap) -> bool {
    let accepts = |value: &http::HeaderValue| value.to_str().is_ok_and(|value| value.contains("text/event-stream"));
    headers.get_all(ACCEPT).iter().any(accepts)
}

fn initialize(surface: &dyn Surface, request: Request) -> Answer {
    let wanted = request.params.get("protocolVersion").and_then(Value::as_str).and_then(served);
    let version = wanted.filter(|version| !version.is_stateless()).unwrap_or(Version::NEWEST_SESSION);
    let result = json!({
        "protocolVersion": version.name(),
        "capabilities": surface.capabilities(),
        "serverInfo": implementation(),
        "instructions": surface.instructions(),
    });
    let session = session_id(request.params.get("capabilities").unwrap_or(&Value::Null));
    Answer::Json { status: 200, body: mcp_wire::result(&request.id, result), session: Some(session) }
}

fn discover(surface: &dyn Surface) -> Map<String, Value> {
    fields(json!({
        "supportedVersions": SERVED.map(Version::name),
        "capabilities": surface.capabilities(),
        "instructions": surface.instructions(),
        "ttlMs": DISCOVER_TTL_MS,
        "cacheScope": "private",
    }))
}

async fn list(surface: &dyn Surface, request: &Request) -> Result<Map<String, Value>, RpcError> {
    let cursor = match request.params.get("cursor") {
        None | Some(Value::Null) => None,
        Some(Value::String(cursor)) => Some(cursor.as_str()),
        Some(_) => return Err(RpcError::Params("`params.cursor` must be a string".to_owned())),
    };
    let page = surface.list(cursor).await?;
    let mut result = fields(json!({"tools": page.tools, "ttlMs": LIST_TTL_MS, "cacheScope": "private"}));
    result.extend(page.next.map(|next| ("nextCursor".to_owned(), next.into())));
    Ok(result)
}

/// What a call is made of; the name is empty where the request has none.
fn read_call(asked: &RequestContext, request: &Request, outbox: Option<Outbox>) -> Result<Call, RpcError> {
    let object = |name: &str| match request.params.get(name) {
        None => Ok(Map::new()),
        Some(Value::Object(fields)) => Ok(fields.clone()),
        Some(Value::Null) if name == "arguments" => Ok(Map::new()),
        Some(_) => Err(RpcError::Params(format!("`params.{name}` must be an object"))),
    };
    let inputs = object("inputResponses")?;
    if let Some(name) = inputs.iter().find_map(|(name, input)| (!input.is_object()).then_some(name)) {
        return Err(RpcError::Params(format!("`params.inputResponses.{name}` must be an object")));
    }
    let state = match request.params.get("requestState") {
        None => None,
        Some(Value::String(state)) => Some(state.clone()),
        Some(_) => return Err(RpcError::Params("`params.requestState` must be a string".to_owned())),
    };
    let name = request.params.get("name").or_else(|| request.params.get("uri")).and_then(Value::as_str).unwrap_or_default();
    let token = request.meta("progressToken").filter(|token| token.is_string() || token.is_number()).cloned();
    Ok(Call {
        name: name.to_owned(),
        arguments: object("arguments")?,
        inputs,
        state,
        client: asked.client.clone(),
        progress: Progress { token, outbox },
    })
}

/// A client is asked nothing that it did not say it can answer.
fn require_capabilities(client: &Client, requests: &Map<String, Value>) -> Result<(), RpcError> {
    for request in requests.values() {
        let method = request["method"].as_str().unwrap_or_default();
        let capability = method.split('/').next().unwrap_or_default();
        if !client.can(capability) {
            return Err(RpcError::Capability(json!({capability: {}})));
        }
    }
    Ok(())
}

fn needs_input(requests: Map<String, Value>, state: Option<String>) -> Value {
    let mut result = json!({"resultType": "input_required", "inputRequests": requests, "_meta": result_meta()});
    if let Some(state) = state {
        result["requestState"] = state.into();
    }
    result
}

/// A result with what its revision wants on every result.
fn complete(version: Version, mut fields: Map<String, Value>) -> Value {
    if version.is_stateless() {
        fields.insert("resultType".to_owned(), "complete".into());
        fields.insert("_meta".to_owned(), result_meta());
    } else {
        fields.remove("ttlMs");
        fields.remove("cacheScope");
    }
    Value::Object(fields)
}

fn result_meta() -> Value {
    json!({meta::SERVER_INFO: implementation()})
}

fn implementation() -> Value {
    json!({"name": "toolyard", "title": "Toolyard", "version": env!("CARGO_PKG_VERSION")})
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
