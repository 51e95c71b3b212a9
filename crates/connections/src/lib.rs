//! Connection rows and their life: OAuth2 and key flows, sealed credentials, refresh, revoke, usage. Shared by everything that acts for
//! an account; it must never know what an account is used for.

mod apps;
mod attempt;
mod consumers;
mod create;
mod error;
mod failing;
mod finish;
mod fresh;
mod grant;
mod hosted;
mod implicit;
mod life;
mod model;
mod oauth;
mod port;
mod reseal;
mod store;

use std::collections::HashMap;
use std::sync::Arc;

use ::store::Db;
use catalog::Catalog;
use egress::Egress;
use kernel::Clock;
use kernel::seal::Sealer;
use kernel::signed::Signer;
use tokio_util::task::TaskTracker;

pub use apps::{App, NewApp, Owner};
pub use create::NewConnection;
pub use error::ConnectionError;
pub use failing::Broken;
pub use finish::{Finished, HostedForm, Returned};
pub use fresh::Usable;
pub use hosted::{ACCOUNT, Tidied};
pub use life::{Refreshed, Usage};
pub use model::Connection;
pub use port::{Begun, Connector, Consumer, Host, HostError, Identity, OwnApp, Probe, ProbeError, RemoteAccount, Standing, Start};
pub use reseal::reseal;

/// The path under the public address to which providers send people back.
pub const CALLBACK_PATH: &str = "/tools/connections/callback";
/// The path under the public address of the page where people type a key.
pub const HOSTED_PATH: &str = "/connect";

/// The connections of a deployment.
#[derive(Clone, Debug)]
pub struct Connections(Arc<Inner>);

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
    pub public_url: String,
}

#[derive(Debug)]
struct Inner {
    parts: Parts,
    consumers: consumers::Consumers,
    /// Whose consumers are being told something, one thing at a time.
    telling: fresh::Turns<()>,
    flights: fresh::Turns<fresh::LastFailure>,
    tasks: TaskTracker,
}

impl Connections {
    pub fn new(parts: Parts) -> Self {
        let (consumers, telling, flights) = (consumers::Consumers::default(), fresh::Turns::default(), fresh::Turns::default());
        Self(Arc::new(Inner { parts, consumers, telling, flights, tasks: TaskTracker::new() }))
    }

    /// The address to register at a provider as the redirect URL.
    pub fn callback_url(&self) -> String {
        format!("{}{CALLBACK_PATH}", self.public_url)
    }

    /// Waits for grants on their way in, because a refresh that is cut off could lose its new token.
    pub async fn drain(&self) {
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

impl std::ops::Deref for Connections {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0.parts
    }
}
