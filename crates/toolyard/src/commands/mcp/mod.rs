//! `toolyard mcp`: for clients that start a program and speak with it over stdin and stdout. Every message goes on to a running server, and
//! what the server says comes back, one message a line. Nothing but messages is written to stdout.

mod headers;

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::{Args, ValueEnum};
use egress::{Events, Opened};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::{AbortHandle, JoinSet};

use super::client::{Client, Remote, words};
use super::integrations::encode;
use super::{agent, print};
use crate::config::Config;

/// How long to wait before changes are listened for again.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// How long calls under way may go on once nobody asks any more.
const LAST_CALLS: Duration = Duration::from_mins(1);
const LONGEST_BODY: usize = 32 << 20;

#[derive(Debug, Args)]
pub(super) struct McpArgs {
    /// The tools of this agent, by its number or name [default: those of the project]
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// `search` shows three tools in place of all: find, call, connect
    #[arg(long, value_enum, default_value = "all")]
    mode: Mode,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    All,
    Search,
}

/// Passes messages on until there are no more.
pub(super) async fn run(config: Config, args: McpArgs) -> anyhow::Result<()> {
    let client = Client::new(&config, &args.remote)?;
    let tools = match &args.agent {
        Some(agent) => format!("mcp/agents/{}", encode(&agent::id_of(&client, agent).await?)),
        None => "mcp".to_owned(),
    };
    let path = match args.mode {
        Mode::All => tools,
        Mode::Search => format!("{tools}?mode=search"),
    };
    let pipe = Pipe { client: Arc::new(client), path, session: Arc::default(), running: Arc::default() };
    pipe.run(lines()).await;
    Ok(())
}

/// The lines of stdin. They are read by a thread of their own, which ends with the program.
fn lines() -> UnboundedReceiver<String> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if !line.trim().is_empty() && sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// What a client of an older revision agreed upon when it began.
#[derive(Debug, Default)]
struct Session {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

#[derive(Clone, Debug)]
struct Pipe {
    client: Arc<Client>,
    path: String,
    session: Arc<Mutex<Session>>,
    /// Requests under way, by their id.
    running: Arc<Mutex<HashMap<String, AbortHandle>>>,
}

impl Pipe {
    async fn run(self, mut lines: UnboundedReceiver<String>) {
        let (mut requests, mut listening) = (JoinSet::new(), JoinSet::new());
        while let Some(line) = lines.recv().await {
            let Ok(message) = serde_json::from_str::<Value>(&line) else {
                say(&failure(&Value::Null, -32700, "Parse error"));
                continue;
            };
            let method = message["method"].as_str().unwrap_or_default().to_owned();
            match (method.as_str(), message.get("id")) {
                ("subscriptions/listen", Some(id)) => {
                    locked(&self.running).insert(id.to_string(), listening.spawn(self.clone().pass(message.clone())));
                }
                (_, Some(id)) if !method.is_empty() => {
                    locked(&self.running).insert(id.to_string(), requests.spawn(self.clone().pass(message.clone())));
                }
                ("notifications/initialized", None) => {
                    self.clone().pass(message).await;
                    listening.spawn(self.clone().hear_changes());
                }
                ("notifications/cancelled", None) => {
                    let ended = locked(&self.running).remove(&message["params"]["requestId"].to_string());
                    self.clone().pass(message).await;
                    if let Some(ended) = ended {
                        ended.abort();
                    }
                }
                _ => self.clone().pass(message).await,
            }
            while requests.try_join_next().is_some() {}
        }
        let _ = tokio::time::timeout(LAST_CALLS, async { while requests.join_next().await.is_some() {} }).await;
    }

    /// Sends one message and says what comes back.
    async fn pass(self, message: Value) {
        let id = message.get("id").filter(|_| message["method"].is_string()).cloned();
        if let Err(error) = self.exchange(&message).await {
            match &id {
                Some(id) => say(&failure(id, -32603, &format!("{error:#}"))),
                None => eprintln!("{error:#}"),
            }
        }
        if let Some(id) = id {
            locked(&self.running).remove(&id.to_string());
        }
    }

    async fn exchange(&self, message: &Value) -> anyhow::Result<()> {
        let headers = self.headers(message);
        let mut answer = self.client.open(Method::POST, &self.path, headers, Some(message.to_string())).await?;
        if message["method"] == "initialize" {
            self.session().id = answer.headers.get("mcp-session-id").cloned();
        }
        if is_events(&answer) {
            return hear(answer).await;
        }
        let body = whole(&mut answer).await?;
        if answer.status == StatusCode::ACCEPTED || message["method"].is_null() {
            return Ok(());
        }
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if body["jsonrpc"] != "2.0" {
            anyhow::bail!("{}", words(&body, answer.status));
        }
        if message["method"] == "initialize" {
            let version = body.pointer("/result/protocolVersion").and_then(Value::as_str);
            self.session().version = version.and_then(|version| HeaderValue::from_str(version).ok());
        }
        // Only requests are answered.
        if message.get("id").is_some() {
            say(&body);
        }
        Ok(())
    }

    /// Listens for changes as long as the server lets us; the newest revision asks for it with a message instead.
    async fn hear_changes(self) {
        loop {
            match self.client.open(Method::GET, &self.path, self.headers(&Value::Null), None).await {
                Ok(answer) if is_events(&answer) => {
                    let _ = hear(answer).await;
                }
                Ok(answer) if answer.status.is_client_error() => return,
                Ok(_) | Err(_) => {}
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    fn headers(&self, message: &Value) -> HeaderMap {
        let mut headers = headers::mirrored(message);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if headers.get(headers::VERSION).is_none() && message["method"] != "initialize" {
            let session = self.session();
            headers.extend(session.version.clone().map(|version| (headers::VERSION, version)));
            headers.extend(session.id.clone().map(|id| (headers::SESSION, id)));
        }
        headers
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        locked(&self.session)
    }
}

fn is_events(answer: &Opened) -> bool {
    let kind = answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    answer.status.is_success() && kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

/// Says every message of a stream.
async fn hear(mut answer: Opened) -> anyhow::Result<()> {
    let mut events = Events::new(LONGEST_BODY);
    while let Some(chunk) = answer.chunk().await? {
        for data in events.push(&chunk)? {
            if let Ok(message) = serde_json::from_str(&data) {
                say(&message);
            }
        }
    }
    Ok(())
}

async fn whole(answer: &mut Opened) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        body.extend_from_slice(&chunk);
        anyhow::ensure!(body.len() <= LONGEST_BODY, "the answer is larger than {LONGEST_BODY} bytes");
    }
    Ok(body)
}

/// Writes one message. Without a reader there is nothing left to do.
fn say(message: &Value) {
    if !print::reaches(&format!("{message}\n")) {
        std::process::exit(0);
    }
}

fn failure(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
