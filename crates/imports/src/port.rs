//! The port: what a provider does to turn something of a project's into an integration.

use std::collections::BTreeSet;
use std::fmt;

use catalog::{Integration, Provider};
use connections::Usable;
use futures_util::future::BoxFuture;
use kernel::{ImportId, ProjectId};
use secrecy::SecretString;
use serde_json::{Map, Value};
use url::Url;
use work::Workers;

use crate::{ImportError, Source, Stored};

/// What to import.
#[derive(Clone, Debug)]
pub struct Order {
    pub project: ProjectId,
    /// The key of the integration; made from its name if nothing is said.
    pub key: Option<String>,
    pub name: Option<String>,
    pub from: Origin,
    /// What else the provider was told, in its own words. It is kept and shown, so it holds no secrets.
    pub settings: Map<String, Value>,
    /// What only the provider may know, such as the headers of a server; sealed with the row.
    pub secret: Option<SecretString>,
    /// The credential of a connected account, where there is one: some sources show nothing without.
    pub account: Option<Usable>,
    /// The import that is read again, as it was imported before.
    pub again: Option<ImportId>,
}

/// Where it comes from.
#[derive(Clone)]
pub enum Origin {
    Url(Url),
    /// As text, JSON or YAML.
    Text(String),
    /// As it came in with the request.
    Json(Value),
    /// Where the settings say.
    Settings,
}

impl Origin {
    pub fn url(&self) -> Option<&Url> {
        match self {
            Self::Url(url) => Some(url),
            Self::Text(_) | Self::Json(_) | Self::Settings => None,
        }
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.debug_tuple("Url").field(&url.host_str()).finish(),
            Self::Text(_) | Self::Json(_) => f.write_str("Document"),
            Self::Settings => f.write_str("Settings"),
        }
    }
}

/// What an import would make.
#[derive(Debug)]
pub struct Plan {
    /// What the source calls itself.
    pub name: String,
    /// What `Importer::load` reads later. Its `actions` is a list of objects with a `key`; two that are equal are the same action.
    pub definition: Map<String, Value>,
    /// The origins that credentials are sent to.
    pub origins: BTreeSet<String>,
    pub skipped: Vec<Skipped>,
    pub warnings: Vec<String>,
}

/// Something of the source that does not become an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    pub what: String,
    pub why: String,
}

/// An OAuth app that the source's authorization server registered.
#[derive(Clone, Debug)]
pub struct Registered {
    pub client_id: String,
    pub client_secret: SecretString,
}

/// What a provider does for imports.
pub trait Importer: Send + Sync + fmt::Debug {
    fn provider(&self) -> Provider;

    /// Reads the source and says what it would make. Nothing is written, and nothing but the source is asked. What takes this machine's time
    /// is done by `convert`.
    fn plan<'a>(&'a self, order: &'a Order, workers: &'a Workers) -> BoxFuture<'a, Result<Plan, ImportError>>;

    /// Makes the integration of a stored import, with what runs it attached. The error is for the log.
    fn load(&self, stored: &Stored) -> Result<Integration, String>;

    /// Where to read the source again; nothing when it cannot be.
    fn again(&self, source: &Source) -> Option<Origin> {
        source.url.clone().map(Origin::Url)
    }

    /// Whether the source is read with the credential of a connected account, where there is one.
    fn reads_as_account(&self) -> bool {
        false
    }

    /// Takes out of a plan that no person asked for what a person would have to agree to; `known` is the definition so far.
    fn hold_back(&self, _known: &Map<String, Value>, _plan: &mut Plan) -> Result<(), ImportError> {
        Ok(())
    }

    /// Registers an OAuth app for accounts of a new integration, where its authorization server takes registrations. `callback` is where
    /// people are sent back to; the error is for people.
    fn register<'a>(&'a self, _definition: &'a str, _callback: &'a str) -> BoxFuture<'a, Result<Option<Registered>, String>> {
        Box::pin(async { Ok(None) })
    }

    /// An import is gone; what runs for it can end.
    fn dropped(&self, _: ProjectId, _: ImportId) {}
}
