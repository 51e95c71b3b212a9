//! APIs that a project imports by their OpenAPI documents. A document becomes the same requests that manifests do, and the native engine
//! runs them; nothing of a document is ever evaluated.

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

use catalog::auth::AuthScheme;
use catalog::{Integration, Provider};
use connections::{Connector, Identity, Probe, ProbeError};
use egress::Egress;
use futures_util::future::BoxFuture;
use imports::{ImportError, Importer, Order, Origin, Plan, Stored, Workbench};
use serde::Deserialize;
use serde_json::Value;
use tools::{Invocation, RunError, Runner, ToolResult};

use self::convert::{Job, Settings};
use self::document::{Bundle, check_version, fits, parse};
use crate::TimeLimits;
use crate::native::load::{Service, compile};
use crate::native::manifest::{ActionSpec, Manifest};
use crate::native::{connect, run};

/// The provider's key on the wire.
pub const KEY: &str = "openapi";

/// How long a document may take to be converted.
const CONVERTING: Duration = Duration::from_secs(25);

/// The openapi provider.
#[derive(Clone, Debug)]
pub struct OpenApi {
    egress: Egress,
    limits: TimeLimits,
}

impl OpenApi {
    pub fn new(egress: Egress) -> Self {
        Self { egress, limits: TimeLimits::default() }
    }

    /// Gives services another time to answer.
    #[must_use]
    pub fn within(self, limits: TimeLimits) -> Self {
        Self { limits, ..self }
    }

    pub fn about() -> Provider {
        Provider { key: KEY, name: "OpenAPI", description: "APIs that the project imported by their OpenAPI documents" }
    }

    async fn read(&self, order: &Order, bench: &Workbench) -> Result<Plan, ImportError> {
        let settings = settings(order)?;
        let (url, document) = match &order.from {
            Origin::Url(url) => {
                let (from, text) = fetch::document(&self.egress, url, fetch::MAX_DOCUMENT).await?;
                (Some(from), bench.run(move || parse(&text)).await?)
            }
            Origin::Text(text) if text.len() > fetch::MAX_DOCUMENT => {
                return Err(ImportError::Invalid(format!("the document is larger than {} MiB", fetch::MAX_DOCUMENT >> 20)));
            }
            Origin::Text(text) => {
                let text = text.clone();
                (None, bench.run(move || parse(&text)).await?)
            }
            Origin::Settings => return Err(ImportError::Invalid("give either `url` or `document`".to_owned())),
            Origin::Json(document) => (None, fits(document.clone()).map_err(ImportError::Invalid)?),
        };
        check_version(&document).map_err(ImportError::Invalid)?;
        let mut bundle = Bundle::new(url, document);
        let warnings = fetch::others(&self.egress, &mut bundle).await;
        let schemes = settings.security_schemes.as_ref().unwrap_or(&bundle.root().value["components"]["securitySchemes"]);
        let discovered = fetch::discoveries(&self.egress, schemes).await;
        let egress = self.egress.clone();
        let converting = bench.run(move || {
            let allowed = |url: &url::Url| egress.check_url(url).map_err(|error| error.to_string());
            let deadline = Instant::now() + CONVERTING;
            Job { bundle: &bundle, settings: &settings, discovered: &discovered, allowed: &allowed, deadline }.run()
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
    fn manifest(self, key: String, name: String) -> Manifest {
        Manifest {
            key,
            name,
            description: self.description,
            url: self.url,
            base_url: self.base_url,
            auth: self.auth,
            actions: self.actions,
            docs: None,
            logo: None,
            categories: Vec::new(),
            aliases: Vec::new(),
            headers: BTreeMap::new(),
            account: None,
            failure: None,
            rate_limit: None,
            idempotency: None,
            webhooks: None,
            events: Vec::new(),
        }
    }
}

impl Importer for OpenApi {
    fn provider(&self) -> Provider {
        Self::about()
    }

    fn plan<'a>(&'a self, order: &'a Order, bench: &'a Workbench) -> BoxFuture<'a, Result<Plan, ImportError>> {
        Box::pin(self.read(order, bench))
    }

    fn load(&self, stored: &Stored) -> Result<Integration, String> {
        let definition: Definition = serde_json::from_str(&stored.definition).map_err(|error| error.to_string())?;
        let manifest = definition.manifest(stored.import.key.clone(), stored.import.name.clone());
        let (integration, service) = compile(KEY, manifest).map_err(|error| error.to_string())?;
        Ok(integration.served_by(service))
    }
}

impl Runner for OpenApi {
    fn run<'a>(&'a self, invocation: Invocation<'a>) -> BoxFuture<'a, Result<ToolResult, RunError>> {
        Box::pin(async move {
            let service = invocation.integration.service::<Service>().ok_or_else(|| run::missing(invocation))?;
            run::run(&self.egress, &self.limits, service, invocation).await
        })
    }
}

impl Connector for OpenApi {
    fn prove<'a>(&'a self, probe: Probe<'a>) -> BoxFuture<'a, Result<Identity, ProbeError>> {
        Box::pin(async move {
            match probe.integration.service::<Service>() {
                Some(service) => connect::prove(&self.egress, &self.limits, service, probe).await,
                None => Ok(Identity::default()),
            }
        })
    }
}
