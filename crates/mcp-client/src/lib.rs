//! MCP servers that a project imports: behind an address, or as a program that runs here. Their tools become actions. It must never know
//! who calls, whether they may, or a row, and nothing of the MCP that Toolyard serves itself.
//!
//! The client is our own: every request on the web has to go through `egress`, and one small client for both ways in is less than what
//! it would take to fit a library's to that.

mod connect;
mod fault;
mod hints;
mod http;
mod import;
mod listing;
mod mirrored;
mod oauth;
mod pending;
mod reader;
mod result;
mod run;
mod session;
mod sessions;
mod stdio;
mod target;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use catalog::Provider;
use egress::Egress;
use imports::Changed;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use work::Workers;

use self::session::Ground;
use self::sessions::Sessions;
use self::target::ServerTarget;
pub use target::Commands;

/// The provider's key on the wire.
pub const KEY: &str = "mcp";

/// How long servers have to end when we do.
const FAREWELL: Duration = Duration::from_secs(10);

/// The mcp provider.
#[derive(Clone, Debug)]
pub struct Mcp {
    commands: Commands,
    /// How long a call may take.
    limit: Duration,
    ground: Ground,
    sessions: Arc<Sessions>,
    changes: UnboundedSender<Changed>,
}

/// How the provider is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The programs that projects may run.
    pub commands: Commands,
    /// How long a call may take, all in all.
    pub limit: Duration,
    /// How long a server that nobody calls is kept.
    pub idle: Duration,
}

/// What happens when a server says that its tools changed.
#[derive(Clone)]
struct OnChange(Arc<dyn Fn() + Send + Sync>);

impl OnChange {
    fn nothing() -> Self {
        Self(Arc::new(|| {}))
    }

    fn tell(&self) {
        (self.0)();
    }
}

impl fmt::Debug for OnChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnChange")
    }
}

impl Mcp {
    /// Large answers are read with these workers; `changes` hears of servers whose tools are not what they were.
    pub fn new(egress: Egress, workers: Workers, settings: Settings, changes: UnboundedSender<Changed>) -> Self {
        let ground = Ground { egress, workers, tasks: TaskTracker::new(), stop: CancellationToken::new() };
        let sessions = Sessions::new(ground.clone(), settings.idle, changes.clone());
        Self { commands: settings.commands, limit: settings.limit, ground, sessions, changes }
    }

    pub fn about() -> Provider {
        Provider { key: KEY, name: "MCP", description: "MCP servers that the project imported" }
    }

    /// Ends every server that runs here, and waits until they are gone.
    pub async fn close(&self) {
        self.sessions.clear();
        self.ground.stop.cancel();
        self.ground.tasks.close();
        if tokio::time::timeout(FAREWELL, self.ground.tasks.wait()).await.is_err() {
            tracing::warn!("stopped with MCP servers still running");
        }
    }
}
