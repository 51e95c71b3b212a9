//! A stand-in for Composio, for tests and demos. It owns a made-up catalog and the life of accounts, triggers and webhooks as
//! Composio's API v3.1 shows it, and goes wrong on request. Nothing of ours uses it but tests, and it knows nothing of ours.

mod accounts;
mod answer;
mod auth;
mod catalog;
mod control;
mod cut;
mod deliver;
mod edge;
mod execute;
mod faults;
mod many;
mod page;
mod refusal;
mod request;
mod search;
mod sessions;
mod state;
mod toolkits;
mod tools;
mod triggers;
mod webhooks;
mod world;

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Map, Value};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub use deliver::{Delivery, Version};
pub use edge::Recorded;
pub use faults::{Fault, Kind, On};

use cut::{ConnectionSwitch, CuttableListener};
use deliver::Message;
use state::Shared;
use world::Status;

/// A Composio of one's own, on a port of this machine. It serves until it is dropped.
#[derive(Debug)]
pub struct Fake {
    shared: Arc<Shared>,
    _stop: oneshot::Sender<()>,
}

impl Fake {
    /// Starts on a free port.
    pub async fn start() -> Self {
        Self::start_on(0).await.expect("there is a free port")
    }

    pub async fn start_on(port: u16) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let shared = Arc::new(Shared::new(format!("http://{}", listener.local_addr()?)));
        let app = state::router(&shared).into_make_service_with_connect_info::<ConnectionSwitch>();
        let (stop, stopped) = oneshot::channel::<()>();
        let server = axum::serve(CuttableListener(listener), app).with_graceful_shutdown(async { drop(stopped.await) });
        tokio::spawn(async { server.await });
        Ok(Self { shared, _stop: stop })
    }

    /// The base URL of API v3.1.
    pub fn url(&self) -> String {
        format!("{}/api/v3.1", self.shared.origin)
    }

    /// The one API key that is taken.
    pub fn key(&self) -> &'static str {
        edge::KEY
    }

    /// Makes requests that fit go wrong.
    pub fn fault(&self, fault: Fault) {
        self.shared.faults().push(fault.into());
    }

    pub fn clear_faults(&self) {
        self.shared.faults().clear();
    }

    /// The requests to the API, in the order in which they arrived.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.requests().clone()
    }

    pub fn forget_requests(&self) {
        self.shared.requests().clear();
    }

    /// The connected accounts, as the API shows them.
    pub fn accounts(&self) -> Vec<Value> {
        let world = self.shared.world();
        world.accounts.iter().map(|account| account.wire(&world)).collect()
    }

    pub fn auth_configs(&self) -> Vec<Value> {
        let world = self.shared.world();
        world.auth_configs.iter().map(|config| config.wire(&world)).collect()
    }

    /// The triggers, those that are switched off too.
    pub fn triggers(&self) -> Vec<Value> {
        let world = self.shared.world();
        world.triggers.iter().map(|trigger| trigger.wire(&world)).collect()
    }

    pub fn webhooks(&self) -> Vec<Value> {
        self.shared.world().webhooks.iter().map(world::Webhook::wire).collect()
    }

    /// The person completes the page: the account becomes ACTIVE. Says whether there is such an account.
    pub fn finish(&self, account: &str) -> bool {
        page::finish(&mut self.shared.world(), account, Map::new(), false)
    }

    /// The account becomes FAILED, as when the service refuses the person.
    pub fn fail(&self, account: &str) -> bool {
        self.shared.world().turn(account, Status::Failed, Some("The service refused to give out a token"))
    }

    /// The account becomes EXPIRED at once, and the webhook hears of it in the background; await the handle for the statuses.
    pub fn expire(&self, account: &str) -> JoinHandle<Vec<u16>> {
        let mut world = self.shared.world();
        world.turn(account, Status::Expired, Some(control::EXPIRED_BECAUSE));
        let message = Message::of_expired(&world, account);
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move { control::sent(&shared, message).await })
    }

    /// A trigger fires: sends the webhook in the subscription's version and gives back the statuses it was answered with.
    /// None if the trigger is off or unknown, or nobody is subscribed.
    pub async fn emit(&self, trigger: &str, payload: Value) -> Vec<u16> {
        let message = Message::of_trigger(&self.shared.world(), trigger, &payload, None);
        control::sent(&self.shared, message).await
    }

    /// The same, delivered as `delivery` says.
    pub async fn emit_with(&self, trigger: &str, payload: Value, delivery: Delivery) -> Vec<u16> {
        let message = Message::of_trigger(&self.shared.world(), trigger, &payload, Some(delivery));
        control::sent(&self.shared, message).await
    }

    /// The trigger is switched off from above, and the webhook hears of it.
    pub async fn disable_trigger(&self, trigger: &str) -> Vec<u16> {
        let message = {
            let mut world = self.shared.world();
            let now = world.now();
            if let Some(trigger) = world.triggers.iter_mut().find(|known| known.id == trigger) {
                trigger.disabled_at = Some(now);
            }
            Message::of_disabled(&world, trigger)
        };
        control::sent(&self.shared, message).await
    }

    /// Adds made-up toolkits, each with so many tools, and every other one with a trigger type.
    pub fn add_toolkits(&self, toolkits: usize, tools_each: usize) {
        let mut world = self.shared.world();
        let first = world.made_up;
        world.made_up += toolkits;
        for toolkit in many::toolkits(first..first + toolkits, tools_each) {
            world.catalog.add(toolkit);
        }
    }

    /// Takes an account away without anybody having asked for it.
    pub fn remove_account(&self, account: &str) -> bool {
        self.shared.world().remove_account(account)
    }

    pub fn remove_tool(&self, slug: &str) -> bool {
        self.shared.world().catalog.remove_tool(slug)
    }

    /// Puts out a new version of the tool's toolkit, in which the tool has other words and one more argument.
    pub fn touch_tool(&self, slug: &str) -> bool {
        self.shared.world().catalog.touch_tool(slug)
    }

    /// Whether webhooks may go to plain http addresses. Unless it is told, only to those of this machine.
    pub fn allow_http(&self, allow: bool) {
        self.shared.world().allow_http = Some(allow);
    }

    /// Moves the clock forward: links lapse after ten minutes.
    pub fn advance(&self, by: Duration) {
        self.shared.world().ahead += SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    }
}
