//! The integrations that Toolyard ships: manifests turned into requests.

pub(crate) mod connect;
mod events;
mod filters;
pub(crate) mod idempotency;
pub(crate) mod load;
pub mod manifest;
pub mod operation;
mod pairs;
mod poll;
mod reply;
pub(crate) mod run;
mod values;
mod webhook;

use std::collections::HashMap;
use std::sync::Arc;

use catalog::{Integration, Provider, Source};
use egress::Egress;
use kernel::{ProjectId, suggest};

use crate::TimeLimits;

pub use load::{LoadError, built_in, each_built_in, read_dir};

/// The provider's key on the wire.
pub const KEY: &str = "native";

/// The native provider: every manifest, ready to be called.
#[derive(Debug)]
pub struct Native {
    egress: Egress,
    limits: TimeLimits,
    integrations: Vec<Arc<Integration>>,
    services: HashMap<String, load::Service>,
}

impl Native {
    /// Compiles manifests. A later one replaces an earlier one with the same key.
    pub fn new(manifests: impl IntoIterator<Item = Result<manifest::Manifest, LoadError>>, egress: Egress) -> Result<Self, LoadError> {
        let mut native = Self { egress, limits: TimeLimits::default(), integrations: Vec::new(), services: HashMap::new() };
        for manifest in manifests {
            let (integration, service) = load::compile(KEY, manifest?)?;
            let integration = Arc::new(integration);
            match native.integrations.iter_mut().find(|known| known.key == integration.key) {
                Some(known) => *known = integration.clone(),
                None => native.integrations.push(integration.clone()),
            }
            native.services.insert(integration.key.clone(), service);
        }
        Ok(native)
    }

    /// Gives services another time to answer; the error names an integration that there is not.
    pub fn within(mut self, limits: TimeLimits) -> Result<Self, String> {
        if let Some(unknown) = limits.named().find(|key| !self.services.contains_key(*key)) {
            let hint = suggest::did_you_mean(unknown, self.services.keys().map(String::as_str));
            return Err(format!("there is no integration `{unknown}`; an import is written `openapi/{unknown}`.{hint}"));
        }
        self.limits = limits;
        Ok(self)
    }
}

impl Source for Native {
    fn provider(&self) -> Provider {
        Provider { key: KEY, name: "Native", description: "Integrations that ship with Toolyard and talk to each service directly" }
    }

    fn integrations(&self, _: ProjectId) -> Vec<Arc<Integration>> {
        self.integrations.clone()
    }

    fn integration(&self, _: ProjectId, key: &str) -> Option<Arc<Integration>> {
        self.services.contains_key(key).then(|| self.integrations.iter().find(|integration| integration.key == key).cloned()).flatten()
    }

    /// Everybody sees every manifest, and manifests are read once.
    fn edition(&self, _: ProjectId) -> u64 {
        0
    }

    fn is_shared(&self) -> bool {
        true
    }
}
