//! From manifests to integrations that can be listed and services that can be called.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use catalog::{Draft, Event, Integration, RateLimit};
use http::Method;
use kernel::json::Document;
use operations::{Operation, Param, RequestLine, RequestParts, Service, ServiceSpec, input_schema, output_schema};
use serde_json::{Map, Value, json};

use crate::KEY;
use crate::manifest::{EventSpec, Manifest, Poll, Registration, Webhook, Webhooks, check};
use crate::poll::PollReader;

/// The manifests of `integrations/`, by name, as the build script wrote them.
static BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/manifests.rs"));

/// A manifest that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {message}")]
pub struct LoadError {
    pub file: String,
    pub message: String,
}

/// What is needed to call one integration and to hear of its events.
#[derive(Debug)]
pub(crate) struct NativeService {
    pub(crate) service: Service,
    pub(crate) hooks: Option<Hooks>,
    pub(crate) events: BTreeMap<String, EventTransport>,
}

/// How an integration is told to send its events, and how they are known.
#[derive(Debug)]
pub(crate) struct Hooks {
    pub(crate) register: Option<Hook>,
    pub(crate) unregister: Option<Hook>,
    /// The rest of what the manifest says.
    pub(crate) spec: Webhooks,
}

/// A request that makes or removes a webhook.
#[derive(Debug)]
pub(crate) struct Hook {
    pub(crate) operation: Operation,
    pub(crate) id: Option<String>,
    pub(crate) graphql: bool,
}

/// How one kind of event is noticed.
#[derive(Debug)]
pub(crate) enum EventTransport {
    /// It is sent; the defaults of its configuration are what a registration is made with.
    Sent {
        webhook: Webhook,
        defaults: Map<String, Value>,
        scopes: Vec<String>,
    },
    Polled(Box<PollCall>),
}

/// The request that looks for new items.
#[derive(Debug)]
pub(crate) struct PollCall {
    pub(crate) operation: Operation,
    pub(crate) reading: PollReader,
    pub(crate) every: Duration,
    pub(crate) graphql: bool,
}

/// The manifests that are part of the binary, by name.
pub fn built_in() -> Result<Vec<Manifest>, LoadError> {
    each_built_in().collect()
}

/// The same one by one: all of them together take megabytes.
pub fn each_built_in() -> impl Iterator<Item = Result<Manifest, LoadError>> {
    BUILT_IN.iter().map(|(name, json)| {
        serde_json::from_str(json).map_err(|error| LoadError { file: format!("{name}.yaml"), message: error.to_string() })
    })
}

/// The manifests of a directory, checked: what an operator adds without rebuilding.
pub fn read_dir(dir: &Path) -> Result<Vec<Manifest>, LoadError> {
    let fail = |error: std::io::Error| LoadError { file: dir.display().to_string(), message: error.to_string() };
    let mut paths: Vec<_> = std::fs::read_dir(dir).map_err(fail)?.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.retain(|path| is_manifest(path));
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let file = path.display().to_string();
            let bytes = std::fs::read(&path).map_err(|error| LoadError { file: file.clone(), message: error.to_string() })?;
            let manifest = read(&file, &bytes)?;
            match check(&manifest).first() {
                Some(finding) => Err(LoadError { file, message: finding.to_string() }),
                None => Ok(manifest),
            }
        })
        .collect()
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

fn read(file: &str, bytes: &[u8]) -> Result<Manifest, LoadError> {
    let fail = |message: String| LoadError { file: file.to_owned(), message };
    let text = std::str::from_utf8(bytes).map_err(|error| fail(error.to_string()))?;
    Manifest::parse(text).map_err(|error| fail(error.to_string()))
}

/// Turns a manifest into what is listed and what is called.
pub(crate) fn compile(manifest: Manifest) -> Result<(Integration, NativeService), LoadError> {
    let fail = |message: String| LoadError { file: manifest.key.clone(), message };
    let (service, actions) = Service::compile(ServiceSpec {
        base_url: &manifest.base_url,
        headers: &manifest.headers,
        account: manifest.account.as_ref(),
        failure: manifest.failure.as_ref(),
        idempotency: manifest.idempotency.as_ref(),
        actions: &manifest.actions,
    })
    .map_err(fail)?;
    let mut watched = BTreeMap::new();
    let mut events = Vec::with_capacity(manifest.events.len());
    for spec in &manifest.events {
        let fail = |message: String| fail(format!("{}: {message}", spec.key));
        events.push(event(spec).map_err(fail)?);
        watched.insert(spec.key.clone(), watch(&manifest, spec).map_err(fail)?);
    }
    let hooks = hooks(&manifest).map_err(|message| fail(format!("webhooks: {message}")))?;
    let draft = Draft {
        key: manifest.key,
        name: manifest.name,
        description: manifest.description,
        url: manifest.url,
        logo: manifest.logo,
        categories: manifest.categories,
        aliases: manifest.aliases,
        auth: manifest.auth,
        rate_limit: manifest.rate_limit.map(|limit| RateLimit { requests: limit.requests, seconds: limit.seconds }),
        actions,
        events,
    };
    Ok((Integration::new(KEY, draft), NativeService { service, hooks, events: watched }))
}

fn headers(manifest: &Manifest) -> Vec<(&str, &str)> {
    manifest.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

fn event(spec: &EventSpec) -> Result<Event, String> {
    let line = match &spec.poll {
        Some(poll) => RequestLine::parse(&poll.request).ok_or_else(|| format!("`{}` is not a request", poll.request))?,
        None => RequestLine { method: Method::GET, target: "/".to_owned() },
    };
    let params = Param::read_all(&spec.config, &line, &[])?;
    Ok(Event {
        key: spec.key.clone(),
        name: spec.name.clone(),
        description: spec.description.clone(),
        use_cases: spec.use_cases.clone(),
        config_schema: Document::from(&input_schema(&params)),
        payload_schema: spec.payload.as_ref().map(|payload| Document::from(&output_schema(payload))),
    })
}

/// The values that an event's configuration has when nobody says otherwise.
pub(crate) fn defaults(spec: &EventSpec) -> Map<String, Value> {
    spec.config.iter().filter_map(|(name, param)| Some((name.clone(), param.get("default")?.clone()))).collect()
}

fn watch(manifest: &Manifest, spec: &EventSpec) -> Result<EventTransport, String> {
    let Some(poll) = &spec.poll else {
        let webhook = spec.webhook.clone().ok_or("needs either `webhook` or `poll`")?;
        return Ok(EventTransport::Sent { webhook, defaults: defaults(spec), scopes: spec.scopes.clone() });
    };
    let mut operation = poll_operation(manifest, spec, poll)?;
    operation.slim();
    let every = Duration::from_secs(poll.seconds.into());
    Ok(EventTransport::Polled(Box::new(PollCall { operation, reading: PollReader::new(poll), every, graphql: poll.graphql.is_some() })))
}

/// The request that looks for new items; what it asks from and the page are further parameters.
pub(crate) fn poll_operation(manifest: &Manifest, spec: &EventSpec, poll: &Poll) -> Result<Operation, String> {
    let mut params = spec.config.clone();
    if let Some(since) = &poll.since {
        params.entry(since.param.clone()).or_insert_with(|| json!({}));
    }
    if let Some(pages) = &poll.pages {
        params.entry(pages.param()).or_insert_with(|| json!({}));
    }
    Operation::compile(&RequestParts {
        request: &poll.request,
        params: Some(&params),
        query: poll.query.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        headers: headers(manifest),
        body: poll.body.as_ref(),
        graphql: poll.graphql.as_deref(),
        ..RequestParts::default()
    })
}

fn hooks(manifest: &Manifest) -> Result<Option<Hooks>, String> {
    let Some(webhooks) = &manifest.webhooks else { return Ok(None) };
    let hook = |registration: &Option<Registration>| {
        registration.as_ref().map(|registration| {
            let operation = hook_operation(manifest, registration)?;
            Ok::<_, String>(Hook { operation, id: registration.id.clone(), graphql: registration.graphql.is_some() })
        })
    };
    let (register, unregister) = (hook(&webhooks.register).transpose()?, hook(&webhooks.unregister).transpose()?);
    Ok(Some(Hooks { register, unregister, spec: Webhooks { register: None, unregister: None, ..webhooks.clone() } }))
}

/// The request that makes or removes a webhook.
pub(crate) fn hook_operation(manifest: &Manifest, registration: &Registration) -> Result<Operation, String> {
    Operation::compile(&RequestParts {
        request: &registration.request,
        query: registration.query.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        headers: headers(manifest),
        encoding: registration.encoding,
        body: registration.body.as_ref(),
        graphql: registration.graphql.as_deref(),
        variables: registration.variables.as_ref(),
        ..RequestParts::default()
    })
}
