//! One live conversation with a server: how it begins, and what is asked in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use calls::Progress;
use egress::Egress;
use http::HeaderMap;
use kernel::ProjectId;
use kernel::json::{Document, size};
use mcp_wire::{Version, meta};
use serde_json::{Map, Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use work::{LARGE, Workers};

use crate::fault::ServerError;
use crate::http::{Http, OutgoingRequest};
use crate::listing::Listing;
use crate::reader::Reader;
use crate::stdio::Process;
use crate::wire;
use crate::{OnChange, ServerTarget, mirrored};

/// How long a server may think about whether it knows the stateless revision; one that never heard of it may not answer at all.
const PROBE: Duration = Duration::from_secs(8);
/// How long one page of a list may take.
const LIST: Duration = Duration::from_secs(30);
const MAX_PAGES: usize = 100;

/// What sessions are made with.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    pub(crate) egress: Egress,
    pub(crate) workers: Workers,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

#[derive(Debug)]
enum Transport {
    Process(Process),
    Http(Arc<Http>),
}

/// What a server says of itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerInfo {
    pub(crate) name: Option<String>,
    pub(crate) instructions: Option<String>,
    lists_changes: bool,
}

/// A conversation. The server is let go when it is dropped.
#[derive(Debug)]
pub(crate) struct Session {
    wire: Transport,
    next: AtomicU64,
    is_stateless: bool,
    pub(crate) about: ServerInfo,
    pub(crate) reader: Reader,
    /// The stream of changes ends with this.
    listening: Option<DropGuard>,
}

/// A tool as it is called.
#[derive(Debug)]
pub(crate) struct ToolCall<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) schema: &'a Document,
    pub(crate) progress: &'a Progress,
}

impl Session {
    /// Reaches the server and agrees on a revision.
    pub(crate) async fn open(
        project: ProjectId,
        target: &ServerTarget,
        account: HeaderMap,
        ground: &Ground,
        on_change: OnChange,
    ) -> Result<Self, ServerError> {
        let reader = Reader::new(ground.workers.clone(), project);
        let wire = begin(target, account.clone(), ground, reader.clone(), on_change.clone())?;
        let (next, about) = (AtomicU64::new(1), ServerInfo::default());
        let mut session = Self { wire, next, is_stateless: false, about, reader, listening: None };
        match session.discover().await {
            Ok(true) => {}
            Ok(false) => session.initialize().await?,
            // A server that ends at a word it does not know is asked again in words that it does.
            Err(ServerError::Gone(_)) => {
                session.wire = begin(target, account, ground, session.reader.clone(), on_change)?;
                session.initialize().await?;
            }
            Err(fault) => return Err(fault),
        }
        session.listen(ground);
        Ok(session)
    }

    /// Asks whether the server speaks the stateless revision.
    async fn discover(&mut self) -> Result<bool, ServerError> {
        let mut params = Map::new();
        wire::envelope(&mut params);
        match self.ask("server/discover", params, HeaderMap::new(), &Progress::default(), PROBE).await {
            Ok(found) => {
                let known = found["supportedVersions"]
                    .as_array()
                    .is_some_and(|versions| versions.iter().any(|version| version == Version::STATELESS.name()));
                if known {
                    self.is_stateless = true;
                    self.about = about(&found, &found["_meta"][meta::SERVER_INFO]);
                    if let Transport::Http(http) = &self.wire {
                        http.speak(Version::STATELESS);
                    }
                }
                Ok(known)
            }
            Err(ServerError::Status(status)) if status.is_server_error() && status != http::StatusCode::NOT_IMPLEMENTED => {
                Err(ServerError::Status(status))
            }
            Err(
                ServerError::Rpc { .. }
                | ServerError::Status(_)
                | ServerError::Late(_)
                | ServerError::Unreadable(_)
                | ServerError::Forgotten,
            ) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    async fn initialize(&mut self) -> Result<(), ServerError> {
        let params = json!({"protocolVersion": Version::NEWEST_SESSION.name(), "capabilities": {}, "clientInfo": wire::client_info()});
        let params = params.as_object().cloned().unwrap_or_default();
        let found = self.ask("initialize", params, HeaderMap::new(), &Progress::default(), LIST).await?;
        let named = found["protocolVersion"].as_str().unwrap_or_default();
        let version = Version::named(named).filter(|version| !version.is_stateless());
        let version = version.ok_or_else(|| ServerError::Unreadable(format!("it speaks revision `{}`", wire::bounded(named, 40))))?;
        self.about = about(&found, &found["serverInfo"]);
        if let Transport::Http(http) = &self.wire {
            http.speak(version);
        }
        self.notify(&mcp_wire::notification("notifications/initialized", Value::Null)).await
    }

    /// Opens the stream of changes, where the server has one. A process tells them on its only stream.
    fn listen(&mut self, ground: &Ground) {
        let Transport::Http(http) = &self.wire else { return };
        if !self.about.lists_changes {
            return;
        }
        let mut params = Map::from_iter([("notifications".to_owned(), json!({"toolsListChanged": true}))]);
        wire::envelope(&mut params);
        let subscription = mcp_wire::request(self.id(), "subscriptions/listen", params);
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

    async fn notify(&self, message: &Value) -> Result<(), ServerError> {
        match &self.wire {
            Transport::Process(process) => process.send(message).await,
            Transport::Http(http) => http.notify(message).await,
        }
    }

    async fn ask(
        &self,
        method: &str,
        mut params: Map<String, Value>,
        mirrored: HeaderMap,
        progress: &Progress,
        limit: Duration,
    ) -> Result<Value, ServerError> {
        let id = self.id();
        if progress.is_wanted() {
            params.entry("_meta").or_insert_with(|| json!({}))["progressToken"] = id.into();
        }
        if self.is_stateless {
            wire::envelope(&mut params);
        }
        let message = mcp_wire::request(id, method, params);
        let answer = async {
            match &self.wire {
                Transport::Process(process) => process.request(id, &message, progress.clone()).await,
                Transport::Http(http) => http.request(OutgoingRequest { id, method, message: &message, mirrored, limit }, progress).await,
            }
        };
        tokio::time::timeout(limit, answer).await.unwrap_or(Err(ServerError::Late(limit)))
    }

    /// Everything that the server offers.
    pub(crate) async fn tools(&self) -> Result<Vec<Value>, ServerError> {
        let mut listing = Listing::default();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = cursor.map(|cursor: String| ("cursor".to_owned(), cursor.into())).into_iter().collect();
            let page = self.ask("tools/list", params, HeaderMap::new(), &Progress::default(), LIST).await?;
            (listing, cursor) = self.reader.work(size(&page, LARGE), move |_| listing.with(page)).await?;
            if cursor.is_none() {
                break;
            }
        }
        Ok(listing.tools)
    }

    pub(crate) async fn call(&self, call: ToolCall<'_>, limit: Duration) -> Result<Value, ServerError> {
        let params =
            Map::from_iter([("name".to_owned(), call.tool.into()), ("arguments".to_owned(), Value::Object(call.arguments.clone()))]);
        let mirrored = match &self.wire {
            Transport::Http(_) if self.is_stateless => mirrored::headers(call.tool, &call.schema.value(), call.arguments),
            _ => HeaderMap::new(),
        };
        self.ask("tools/call", params, mirrored, call.progress, limit).await
    }

    /// Takes the credential for what is asked next.
    pub(crate) fn act_as(&self, account: HeaderMap) {
        if let Transport::Http(http) = &self.wire {
            http.act_as(account);
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(&self.wire, Transport::Process(process) if process.has_ended())
    }
}

fn begin(
    target: &ServerTarget,
    account: HeaderMap,
    ground: &Ground,
    reader: Reader,
    on_change: OnChange,
) -> Result<Transport, ServerError> {
    Ok(match target {
        ServerTarget::Program(program) => Transport::Process(Process::start(program, ground, reader, on_change)?),
        ServerTarget::Address { url, headers } => {
            let http = Http::new(ground, reader, url.clone(), headers.clone(), on_change);
            http.act_as(account);
            Transport::Http(Arc::new(http))
        }
    })
}

fn about(found: &Value, info: &Value) -> ServerInfo {
    let text = |value: &Value| value.as_str().map(str::to_owned).filter(|text| !text.trim().is_empty());
    ServerInfo {
        name: text(&info["title"]).or_else(|| text(&info["name"])),
        instructions: text(&found["instructions"]),
        lists_changes: found["capabilities"]["tools"]["listChanged"] == true,
    }
}
