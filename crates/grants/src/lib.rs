//! What people let clients do for them: clients, authorization codes, devices, grants and their tokens. It decides who may have a token
//! and what one is still good for. It must never know HTTP as a server, pages, or what a person may do: the edge asks for that and hands
//! it in.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should"))]

mod authenticate;
mod client;
mod code;
mod device;
mod document;
mod error;
mod grant;
mod limits;
mod pkce;
mod redirect;
mod registration;
mod scope;
mod surface;
mod token;
mod upkeep;

use std::sync::Arc;

use egress::Egress;
use kernel::key::KeyHash;
use kernel::{Clock, Shared};
use store::{Db, Remembered};
use tokio::sync::RwLock;

pub use authenticate::{Bearer, Introspection};
pub use client::{COMMAND_LINE, Client, ClientSecret};
pub use code::{Approval, Exchange};
pub use device::{DeviceCode, DeviceDecision, PendingDevice};
pub use error::{GrantError, Refusal};
pub use grant::{EndedWhy, Grant, GrantFilter, Granter};
pub use limits::Limits;
pub use pkce::Challenge;
pub use registration::{NewClient, Registered};
pub use scope::{read_scope, write_scope};
pub use surface::Surface;
pub use token::{ACCESS_PREFIX, TokenState, Tokens};

/// Clients and what they were granted.
#[derive(Clone, Debug)]
pub struct Grants(Shared<Inner>);

#[derive(Debug)]
struct Inner {
    db: Db,
    clock: Clock,
    documents: document::Documents,
    limits: Limits,
    known: Remembered<KeyHash, Bearer>,
    /// Shared by the notes on their way into the database.
    notes: Arc<RwLock<()>>,
}

impl Grants {
    pub fn new(db: Db, clock: Clock, egress: Egress, limits: Limits) -> Self {
        // Not by their tables, which are written whenever the use of a grant is noted.
        let known = Remembered::new(&db, &[], authenticate::MAX_REMEMBERED);
        let documents = document::Documents::new(egress, clock.clone());
        Self(Shared::new(Inner { db, clock, documents, limits, known, notes: Arc::default() }))
    }
}
