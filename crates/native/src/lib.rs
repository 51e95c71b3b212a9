//! The integrations that Toolyard ships: manifests turned into operations, webhooks that are verified, and polls. The files in
//! `integrations/` at the root are embedded here. It must never know who calls, whether they may, or a row; how an operation becomes a
//! request is `operations`' business.

mod events;
mod load;
pub mod manifest;
mod poll;
mod webhook;

use std::collections::HashMap;
use std::sync::Arc;

use calls::{Invocation, RunError, Runner, ToolResult};
use catalog::{Integration, Provider, Source};
use connections::{Connector, Identity, Probe, ProbeError};
use egress::Egress;
use futures_util::future::BoxFuture;
use kernel::{ProjectId, suggest};
use operations::{OperationRunner, TimeLimits, missing};
use work::Workers;

use load::NativeService;
pub use load::{LoadError, built_in, each_built_in, read_dir};

/// The provider's key on the wire.
pub const KEY: &str = "native";

/// The native provider: every manifest, ready to be called.
#[derive(Debug)]
pub struct Native {
    runner: OperationRunner,
    integrations: Vec<Arc<Integration>>,
    services: HashMap<String, NativeService>,
}

impl Native {
    /// Compiles manifests. A later one replaces an earlier one with the same key.
    pub fn new(manifests: impl IntoIterator<Item = Result<manifest::Manifest, LoadError>>, egress: Egress) -> Result<Self, LoadError> {
        let mut native = Self { runner: OperationRunner::new(egress), integrations: Vec::new(), services: HashMap::new() };
        for manifest in manifests {
            let (integration, service) = load::compile(manifest?)?;
            let integration = Arc::new(integration);
            match native.integrations.iter_mut().find(|known| known.key == integration.key) {
                Some(known) => *known = integration.clone(),
                None => native.integrations.push(integration.clone()),
            }
            native.services.insert(integration.key.clone(), service);
        }
        Ok(native)
    }

    /// Reads large answers with these workers.
    #[must_use]
    pub fn with_workers(self, workers: Workers) -> Self {
        Self { runner: self.runner.with_workers(workers), ..self }
    }

    /// Gives services another time to answer; the error names an integration that there is not.
    pub fn within(self, limits: TimeLimits) -> Result<Self, String> {
        if let Some(unknown) = limits.named(KEY).find(|key| !self.services.contains_key(*key)) {
            let hint = suggest::did_you_mean(unknown, self.services.keys().map(String::as_str));
            return Err(format!("there is no integration `{unknown}`; an import is written `openapi/{unknown}`.{hint}"));
        }
        Ok(Self { runner: self.runner.within(limits), ..self })
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

impl Runner for Native {
    fn run<'a>(&'a self, invocation: Invocation<'a>) -> BoxFuture<'a, Result<ToolResult, RunError>> {
        Box::pin(async move {
            let known = self.services.get(&invocation.integration.key).ok_or_else(|| missing(invocation))?;
            self.runner.run(&known.service, invocation).await
        })
    }
}

impl Connector for Native {
    fn prove<'a>(&'a self, probe: Probe<'a>) -> BoxFuture<'a, Result<Identity, ProbeError>> {
        Box::pin(async move {
            match self.services.get(&probe.integration.key) {
                Some(known) => self.runner.prove(&known.service, probe).await,
                None => Ok(Identity::default()),
            }
        })
    }
}
