//! APIs that a project imports by their OpenAPI documents. A document becomes actions of `operations`, which runs them; nothing of a
//! document is ever evaluated. It must never know a manifest, who calls, or a row.

mod body;
mod convert;
mod document;
mod fetch;
mod keywords;
mod name;
mod params;
mod schema;
mod security;
mod server;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use calls::{Invocation, RunError, Runner, ToolResult};
use catalog::auth::AuthScheme;
use catalog::{Draft, Integration, Provider};
use connections::{Connector, Identity, Probe, ProbeError};
use egress::Egress;
use futures_util::future::BoxFuture;
use imports::{ImportError, Importer, Order, Origin, Plan, Stored, convert};
use operations::{ActionSpec, OperationRunner, Service, ServiceSpec, TimeLimits, missing};
use serde::Deserialize;
use serde_json::Value;
use work::Workers;

use crate::convert::{Conversion, Settings};
use crate::document::{Bundle, check_version, fits, parse};

/// The provider's key on the wire.
pub const KEY: &str = "openapi";

/// How long a document may take to be converted.
const CONVERTING: Duration = Duration::from_secs(25);

/// The openapi provider.
#[derive(Clone, Debug)]
pub struct OpenApi {
    runner: OperationRunner,
}

impl OpenApi {
    pub fn new(egress: Egress) -> Self {
        Self { runner: OperationRunner::new(egress) }
    }

    /// Reads large answers with these workers.
    #[must_use]
    pub fn with_workers(self, workers: Workers) -> Self {
        Self { runner: self.runner.with_workers(workers) }
    }

    /// Gives services another time to answer.
    #[must_use]
    pub fn within(self, limits: TimeLimits) -> Self {
        Self { runner: self.runner.within(limits) }
    }

    pub fn about() -> Provider {
        Provider { key: KEY, name: "OpenAPI", description: "APIs that the project imported by their OpenAPI documents" }
    }

    async fn read(&self, order: &Order, workers: &Workers) -> Result<Plan, ImportError> {
        let settings = settings(order)?;
        let (url, document) = match &order.from {
            Origin::Url(url) => {
                let (from, text) = fetch::document(self.runner.egress(), url, fetch::MAX_DOCUMENT).await?;
                (Some(from), convert(workers, order.project, move || parse(&text)).await?)
            }
            Origin::Text(text) if text.len() > fetch::MAX_DOCUMENT => {
                return Err(ImportError::Invalid(format!("the document is larger than {} MiB", fetch::MAX_DOCUMENT >> 20)));
            }
            Origin::Text(text) => {
                let text = text.clone();
                (None, convert(workers, order.project, move || parse(&text)).await?)
            }
            Origin::Settings => return Err(ImportError::Invalid("give either `url` or `document`".to_owned())),
            Origin::Json(document) => (None, fits(document.clone()).map_err(ImportError::Invalid)?),
        };
        check_version(&document).map_err(ImportError::Invalid)?;
        let mut bundle = Bundle::new(url, document);
        let warnings = fetch::others(self.runner.egress(), &mut bundle).await;
        let schemes = settings.security_schemes.as_ref().unwrap_or(&bundle.root().value["components"]["securitySchemes"]);
        let discovered = fetch::discoveries(self.runner.egress(), schemes).await;
        let egress = self.runner.egress().clone();
        let converting = convert(workers, order.project, move || {
            let allowed = |url: &url::Url| egress.check_url(url).map_err(|error| error.to_string());
            let deadline = Instant::now() + CONVERTING;
            Conversion { bundle: &bundle, settings: &settings, discovered: &discovered, allowed: &allowed, deadline }.run()
        });
        let mut plan = converting.await?;
        plan.warnings.splice(0..0, warnings);
        Ok(plan)
    }
}

/// What whoever imports decides, as it was stored.
fn settings(order: &Order) -> Result<Settings, ImportError> {
    let text = |name: &str| match order.settings.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(ImportError::Invalid(format!("`{name}` is not text"))),
    };
    let schemes = order.settings.get("security_schemes").filter(|schemes| !schemes.is_null()).cloned();
    Ok(Settings { server_url: text("server_url")?, security_schemes: schemes })
}

/// What is stored of a document.
#[derive(Deserialize)]
struct Definition {
    description: String,
    #[serde(default)]
    url: Option<String>,
    base_url: String,
    auth: Vec<AuthScheme>,
    actions: Vec<ActionSpec>,
}

impl Definition {
    /// What is listed and what is called.
    fn compile(self, key: String, name: String) -> Result<(Integration, Service), String> {
        let (service, actions) = Service::compile(ServiceSpec {
            base_url: &self.base_url,
            headers: &BTreeMap::new(),
            account: None,
            failure: None,
            idempotency: None,
            actions: &self.actions,
        })
        .map_err(|message| format!("{key}: {message}"))?;
        let draft = Draft {
            key,
            name,
            description: self.description,
            url: self.url,
            logo: None,
            categories: Vec::new(),
            aliases: Vec::new(),
            auth: self.auth,
            rate_limit: None,
            actions,
            events: Vec::new(),
        };
        Ok((Integration::new(KEY, draft), service))
    }
}

impl Importer for OpenApi {
    fn provider(&self) -> Provider {
        Self::about()
    }

    fn plan<'a>(&'a self, order: &'a Order, workers: &'a Workers) -> BoxFuture<'a, Result<Plan, ImportError>> {
        Box::pin(self.read(order, workers))
    }

    fn load(&self, stored: &Stored) -> Result<Integration, String> {
        let definition: Definition = serde_json::from_str(&stored.definition).map_err(|error| error.to_string())?;
        let (integration, service) = definition.compile(stored.import.key.clone(), stored.import.name.clone())?;
        Ok(integration.served_by(service))
    }
}

impl Runner for OpenApi {
    fn run<'a>(&'a self, invocation: Invocation<'a>) -> BoxFuture<'a, Result<ToolResult, RunError>> {
        Box::pin(async move {
            let service = invocation.integration.service::<Service>().ok_or_else(|| missing(invocation))?;
            self.runner.run(service, invocation).await
        })
    }
}

impl Connector for OpenApi {
    fn prove<'a>(&'a self, probe: Probe<'a>) -> BoxFuture<'a, Result<Identity, ProbeError>> {
        Box::pin(async move {
            match probe.integration.service::<Service>() {
                Some(service) => self.runner.prove(service, probe).await,
                None => Ok(Identity::default()),
            }
        })
    }
}
