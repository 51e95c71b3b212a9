//! Connection rows and their life: OAuth2 and key flows, sealed credentials, refresh, revoke, usage. Shared by everything that acts for
//! an account; it must never know what an account is used for.

mod acceptance;
mod apps;
mod attempt;
mod choice;
mod consumers;
mod create;
mod edit;
mod error;
mod failing;
mod finish;
mod fresh;
mod grant;
mod hooks;
mod hosted;
mod implicit;
mod life;
mod link;
mod list;
mod model;
mod oauth;
mod personal;
mod port;
mod renewing;
mod replace;
mod reseal;
mod state;
mod store;
mod switch;
mod used;

use std::collections::HashMap;
use std::sync::Arc;

use ::store::{Db, Quota, Remembered, StoreError};
use catalog::Catalog;
use egress::Egress;
use end_users::EndUsers;
use kernel::seal::Sealer;
use kernel::signed::Signer;
use kernel::{Clock, ConnectionId, KeyedLock, ProjectId, Shared};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use acceptance::Acceptance;
pub use apps::{NewOAuthApp, OAuthApp, Owner};
pub use choice::{AccountsOf, NEWEST, ONLY, SeveralAccounts};
pub use create::NewConnection;
pub use edit::{ConnectionEdit, TextEdit};
pub use error::ConnectionError;
pub use failing::Broken;
pub use finish::{Ended, Finished, HostedForm, Returned, Visitor};
pub use fresh::Usable;
pub use hooks::{Hook, HookEvent, HookMessage, Listener};
pub use hosted::{ACCOUNT, Tidied};
pub use life::{ConnectResult, Usage};
pub use link::LinkOptions;
pub use list::{AccountFilter, AccountOrder, AccountPage, MadeWith};
pub use model::Connection;
pub use port::{
    Begun, ConnectionUser, Connector, Consumer, Host, HostError, Identity, OwnApp, Probe, ProbeError, RemoteAccount, Standing, Start,
};
pub use renewing::renewing;
pub use reseal::reseal;
pub use state::ConnectionState;

/// How many connections are remembered.
const MAX_REMEMBERED: usize = 4096;

/// How many connections a project may have where nothing else is said. They are listed all at once, so it bounds that list too.
pub const QUOTA: Quota = Quota {
    what: "connections",
    rows: 20_000,
    bytes: 32 << 20,
    rows_setting: "connections_per_project",
    bytes_setting: "connection_bytes_per_project",
    remedy: "Delete some that you do not need",
};

/// How many connections an end user may have, and how many bytes of them: each is looked at when one is chosen.
const MAX_OF_END_USER: (i64, i64) = (100, 1 << 20);

/// The connections of a deployment.
#[derive(Clone, Debug)]
pub struct Connections(Shared<Inner>);

/// Where people come to connect an account, and where it is said how. The edge knows these addresses.
#[derive(Clone, Debug)]
pub struct ConnectPages {
    /// Where providers send people back to.
    pub callback: String,
    /// The page where people type a key; a ticket follows.
    pub key_form: String,
    /// How an OAuth app is saved.
    pub save_app: String,
}

/// What connections are made of.
#[derive(Debug)]
pub struct Parts {
    pub db: Db,
    pub clock: Clock,
    pub sealer: Sealer,
    pub signer: Signer,
    pub catalog: Catalog,
    pub egress: Egress,
    /// By provider.
    pub connectors: HashMap<&'static str, Arc<dyn Connector>>,
    /// Providers that connect accounts themselves.
    pub hosts: HashMap<&'static str, Arc<dyn Host>>,
    pub pages: ConnectPages,
    /// How many connections a project may have.
    pub quota: Quota,
    /// Who knows what the owners of accounts are called.
    pub end_users: EndUsers,
}

#[derive(Debug)]
struct Inner {
    db: Db,
    clock: Clock,
    sealer: Sealer,
    signer: Signer,
    catalog: Catalog,
    egress: Egress,
    /// By provider.
    connectors: HashMap<&'static str, Arc<dyn Connector>>,
    /// Providers that connect accounts themselves.
    hosts: HashMap<&'static str, Arc<dyn Host>>,
    pages: ConnectPages,
    quota: Quota,
    consumers: consumers::Consumers,
    listening: hooks::Listening,
    /// Whose consumers are being told something, one thing at a time.
    telling: KeyedLock<ConnectionId>,
    refreshes: KeyedLock<ConnectionId, fresh::LastFailure>,
    /// Rows that calls are made through, by owner, provider, integration and name. Their credentials are sealed.
    called: Remembered<(ProjectId, String), Connection>,
    end_users: EndUsers,
    /// Rung when there is something to tell a hook.
    told: Notify,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Connections {
    pub fn new(parts: Parts) -> Self {
        let consumers = consumers::Consumers::default();
        let (telling, refreshes) = (KeyedLock::default(), KeyedLock::default());
        let Parts { db, clock, sealer, signer, catalog, egress, connectors, hosts, pages, quota, end_users } = parts;
        let called = Remembered::new(&db, &["gateway_connections"], MAX_REMEMBERED);
        Self(Shared::new(Inner {
            db,
            clock,
            sealer,
            signer,
            catalog,
            egress,
            connectors,
            hosts,
            pages,
            quota,
            consumers,
            listening: hooks::Listening::default(),
            telling,
            refreshes,
            called,
            end_users,
            told: Notify::new(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }))
    }

    /// The address that apps from before they had one each, and providers that connect accounts themselves, send people back to.
    pub fn callback_url(&self) -> String {
        self.0.pages.callback.clone()
    }

    /// Begins to serve. On SQLite this is the only process, so refreshes that were cut off by a kill are nobody's any more.
    #[kernel::boxed]
    pub async fn start(&self) -> Result<(), StoreError> {
        if let Db::Sqlite(_) = self.0.db {
            store::drop_all_leases(&self.0.db).await?;
        }
        Ok(())
    }

    /// Waits for grants on their way in, because a refresh that is cut off could lose its new token.
    #[kernel::boxed]
    pub async fn drain(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Runs to its end even if the caller goes away.
    async fn undisturbed<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, ConnectionError>> + Send + 'static,
    ) -> Result<T, ConnectionError> {
        self.0.tasks.spawn(work).await.unwrap_or_else(|error| Err(ConnectionError::Interrupted(error.to_string())))
    }
}
