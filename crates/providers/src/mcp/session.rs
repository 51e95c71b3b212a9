//! One live conversation with a server: how it begins, and what is asked in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use egress::Egress;
use http::HeaderMap;
use kernel::json::Document;
use serde_json::{Map, Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tools::Progress;

use super::fault::Fault;
use super::http::{Asked, Http};
use super::listing::Listing;
use super::stdio::Process;
use super::wire::{self, SESSIONS, STATELESS};
use super::{OnChange, Target, mirrored};

/// How long a server may think about whether it knows the stateless revision; one that never heard of it may not answer at all.
const PROBE: Duration = Duration::from_secs(8);
/// How long one page of a list may take.
const LIST: Duration = Duration::from_secs(30);
const MAX_PAGES: usize = 100;

/// What sessions are made with.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    pub(super) egress: Egress,
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
}

#[derive(Debug)]
enum Wire {
    Process(Process),
    Http(Arc<Http>),
}

/// What a server says of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct About {
    pub(super) name: Option<String>,
    pub(super) instructions: Option<String>,
    lists_changes: bool,
}

/// A conversation. The server is let go when it is dropped.
#[derive(Debug)]
pub(super) struct Session {
    wire: Wire,
    next: AtomicU64,
    is_stateless: bool,
    pub(super) about: About,
    /// The stream of changes ends with this.
    listening: Option<DropGuard>,
}

/// A tool as it is called.
#[derive(Debug)]
pub(super) struct ToolCall<'a> {
    pub(super) tool: &'a str,
    pub(super) arguments: &'a Map<String, Value>,
    pub(super) schema: &'a Document,
    pub(super) progress: &'a Progress,
}

impl Session {
    /// Reaches the server and agrees on a revision.
    pub(super) async fn open(target: &Target, account: HeaderMap, ground: &Ground, on_change: OnChange) -> Result<Self, Fault> {
        let wire = begin(target, account.clone(), ground, on_change.clone())?;
        let mut session = Self { wire, next: AtomicU64::new(1), is_stateless: false, about: About::default(), listening: None };
        match session.discover().await {
            Ok(true) => {}
            Ok(false) => session.initialize().await?,
            // A server that ends at a word it does not know is asked again in words that it does.
            Err(Fault::Gone(_)) => {
                session.wire = begin(target, account, ground, on_change)?;
                session.initialize().await?;
            }
            Err(fault) => return Err(fault),
        }
        session.listen(ground);
        Ok(session)
    }

    /// Asks whether the server speaks the stateless revision.
    async fn discover(&mut self) -> Result<bool, Fault> {
        let mut params = Map::new();
        wire::envelope(&mut params);
        match self.ask("server/discover", params, HeaderMap::new(), &Progress::default(), PROBE).await {
            Ok(found) => {
                let known =
                    found["supportedVersions"].as_array().is_some_and(|versions| versions.iter().any(|version| version == STATELESS));
                if known {
                    self.is_stateless = true;
                    self.about = about(&found, &found["_meta"]["io.modelcontextprotocol/serverInfo"]);
                    if let Wire::Http(http) = &self.wire {
                        http.speak(STATELESS);
                    }
                }
                Ok(known)
            }
            Err(Fault::Status(status)) if status.is_server_error() && status != http::StatusCode::NOT_IMPLEMENTED => {
                Err(Fault::Status(status))
            }
            Err(Fault::Rpc { .. } | Fault::Status(_) | Fault::Late(_) | Fault::Unreadable(_) | Fault::Forgotten) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    async fn initialize(&mut self) -> Result<(), Fault> {
        let params = json!({"protocolVersion": SESSIONS[0], "capabilities": {}, "clientInfo": wire::client_info()});
        let params = params.as_object().cloned().unwrap_or_default();
        let found = self.ask("initialize", params, HeaderMap::new(), &Progress::default(), LIST).await?;
        let named = found["protocolVersion"].as_str().unwrap_or_default();
        let version = SESSIONS.into_iter().find(|version| *version == named);
        let version = version.ok_or_else(|| Fault::Unreadable(format!("it speaks revision `{}`", wire::bounded(named, 40))))?;
        self.about = about(&found, &found["serverInfo"]);
        if let Wire::Http(http) = &self.wire {
            http.speak(version);
        }
        self.notify(&wire::notification("notifications/initialized", Value::Null)).await
    }

    /// Opens the stream of changes, where the server has one. A process tells them on its only stream.
    fn listen(&mut self, ground: &Ground) {
        let Wire::Http(http) = &self.wire else { return };
        if !self.about.lists_changes {
            return;
        }
        let mut params = Map::from_iter([("notifications".to_owned(), json!({"toolsListChanged": true}))]);
        wire::envelope(&mut params);
        let subscription = wire::request(self.id(), "subscriptions/listen", params);
        let (http, stop) = (http.clone(), ground.stop.child_token());
        let guard = stop.clone().drop_guard();
        ground.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = http.listen(subscription) => {}
            }
        });
        self.listening = Some(guard);
    }

    fn id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    async fn notify(&self, message: &Value) -> Result<(), Fault> {
        match &self.wire {
            Wire::Process(process) => process.send(message).await,
            Wire::Http(http) => http.notify(message).await,
        }
    }

    async fn ask(
        &self,
        method: &str,
        mut params: Map<String, Value>,
        mirrored: HeaderMap,
        progress: &Progress,
        limit: Duration,
    ) -> Result<Value, Fault> {
        let id = self.id();
        if progress.is_wanted() {
            params.entry("_meta").or_insert_with(|| json!({}))["progressToken"] = id.into();
        }
        if self.is_stateless {
            wire::envelope(&mut params);
        }
        let message = wire::request(id, method, params);
        let answer = async {
            match &self.wire {
                Wire::Process(process) => process.request(id, &message, progress.clone()).await,
                Wire::Http(http) => http.request(Asked { id, method, message: &message, mirrored, limit }, progress).await,
            }
        };
        tokio::time::timeout(limit, answer).await.unwrap_or(Err(Fault::Late(limit)))
    }

    /// Everything that the server offers.
    pub(super) async fn tools(&self) -> Result<Vec<Value>, Fault> {
        let mut listing = Listing::default();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = cursor.map(|cursor: String| ("cursor".to_owned(), cursor.into())).into_iter().collect();
            let page = self.ask("tools/list", params, HeaderMap::new(), &Progress::default(), LIST).await?;
            cursor = listing.take(page)?;
            if cursor.is_none() {
                break;
            }
        }
        Ok(listing.tools)
    }

    pub(super) async fn call(&self, call: ToolCall<'_>, limit: Duration) -> Result<Value, Fault> {
        let params =
            Map::from_iter([("name".to_owned(), call.tool.into()), ("arguments".to_owned(), Value::Object(call.arguments.clone()))]);
        let mirrored = match &self.wire {
            Wire::Http(_) if self.is_stateless => mirrored::headers(call.tool, &call.schema.value(), call.arguments),
            _ => HeaderMap::new(),
        };
        self.ask("tools/call", params, mirrored, call.progress, limit).await
    }

    /// Takes the credential for what is asked next.
    pub(super) fn act_as(&self, account: HeaderMap) {
        if let Wire::Http(http) = &self.wire {
            http.act_as(account);
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(&self.wire, Wire::Process(process) if process.has_ended())
    }
}

fn begin(target: &Target, account: HeaderMap, ground: &Ground, on_change: OnChange) -> Result<Wire, Fault> {
    Ok(match target {
        Target::Program(program) => Wire::Process(Process::start(program, &ground.tasks, &ground.stop, on_change)?),
        Target::Address { url, headers } => {
            let http = Http::new(ground.egress.clone(), url.clone(), headers.clone(), ground.tasks.clone(), on_change);
            http.act_as(account);
            Wire::Http(Arc::new(http))
        }
    })
}

fn about(found: &Value, info: &Value) -> About {
    let text = |value: &Value| value.as_str().map(str::to_owned).filter(|text| !text.trim().is_empty());
    About {
        name: text(&info["title"]).or_else(|| text(&info["name"])),
        instructions: text(&found["instructions"]),
        lists_changes: found["capabilities"]["tools"]["listChanged"] == true,
    }
}
