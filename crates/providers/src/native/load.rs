//! From manifests to integrations that can be listed and services that can be called.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use catalog::{Action, Draft, Event, Integration, RateLimit};
use http::Method;
use kernel::json::Document;
use rust_embed::RustEmbed;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::idempotency::KeyPlace;
use super::manifest::{
    ActionSpec, EventSpec, Failure, Line, Manifest, Pagination, Param, Poll, Registration, Webhook, Webhooks, check, input_schema,
    output_schema,
};
use super::operation::{Operation, Parts};
use super::poll::Reading;

#[derive(RustEmbed)]
#[folder = "../../integrations"]
struct Files;

/// A manifest that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {message}")]
pub struct LoadError {
    pub file: String,
    pub message: String,
}

/// What is needed to call one integration.
#[derive(Debug)]
pub(crate) struct Service {
    pub(super) base_url: String,
    pub(super) account: Option<AccountCall>,
    pub(super) failure: Option<Failure>,
    pub(super) calls: HashMap<String, Call>,
    pub(super) hooks: Option<Hooks>,
    pub(super) events: BTreeMap<String, Watched>,
}

/// How an integration is told to send its events, and how they are known.
#[derive(Debug)]
pub(super) struct Hooks {
    pub(super) register: Option<Hook>,
    pub(super) unregister: Option<Hook>,
    /// The rest of what the manifest says.
    pub(super) spec: Webhooks,
}

/// A request that makes or removes a webhook.
#[derive(Debug)]
pub(super) struct Hook {
    pub(super) operation: Operation,
    pub(super) id: Option<String>,
    pub(super) graphql: bool,
}

/// How one kind of event is noticed.
#[derive(Debug)]
pub(super) enum Watched {
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
pub(super) struct PollCall {
    pub(super) operation: Operation,
    pub(super) reading: Reading,
    pub(super) every: Duration,
    pub(super) graphql: bool,
}

/// One action's request and what to hand back of its reply.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) operation: Operation,
    pub(super) result: Option<String>,
    pub(super) key: Option<KeyPlace>,
}

/// The call that proves a credential.
#[derive(Debug)]
pub(super) struct AccountCall {
    pub(super) operation: Operation,
    pub(super) id: Option<String>,
    pub(super) label: Option<String>,
}

/// The manifests that are part of the binary, by name.
pub fn built_in() -> Result<Vec<Manifest>, LoadError> {
    each_built_in().collect()
}

/// The same one by one: all of them together take megabytes.
pub fn each_built_in() -> impl Iterator<Item = Result<Manifest, LoadError>> {
    let mut names: Vec<String> = Files::iter().map(std::borrow::Cow::into_owned).filter(|name| is_manifest(Path::new(name))).collect();
    names.sort();
    names.into_iter().map(|name| {
        let file = Files::get(&name).ok_or_else(|| LoadError { file: name.clone(), message: "is not there".to_owned() })?;
        read(&name, &file.data)
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
pub(crate) fn compile(provider: &'static str, manifest: Manifest) -> Result<(Integration, Service), LoadError> {
    let fail = |place: &str, message: String| LoadError { file: manifest.key.clone(), message: format!("{place}: {message}") };
    let mut calls = HashMap::with_capacity(manifest.actions.len());
    let mut actions = Vec::with_capacity(manifest.actions.len());
    for spec in &manifest.actions {
        let mut operation = action_operation(&manifest, spec).map_err(|message| fail(&spec.key, message))?;
        actions.push(action(spec, &operation));
        let key = spec.idempotency(manifest.idempotency.as_ref()).map(|place| KeyPlace::read(place, &operation)).transpose();
        let key = key.map_err(|message| fail(&spec.key, message))?;
        operation.slim();
        calls.insert(spec.key.clone(), Call { operation, result: spec.result.clone(), key });
    }
    let mut watched = BTreeMap::new();
    let mut events = Vec::with_capacity(manifest.events.len());
    for spec in &manifest.events {
        events.push(event(spec).map_err(|message| fail(&spec.key, message))?);
        watched.insert(spec.key.clone(), watch(&manifest, spec).map_err(|message| fail(&spec.key, message))?);
    }
    let hooks = hooks(&manifest).map_err(|message| fail("webhooks", message))?;
    let account = match &manifest.account {
        None => None,
        Some(account) => {
            let headers = headers(&manifest, None);
            let parts = Parts { request: &account.request, body: account.body.as_ref(), headers, ..Parts::default() };
            let operation = Operation::compile(&parts).map_err(|message| fail("account", message))?;
            Some(AccountCall { operation, id: account.id.clone(), label: account.label.clone() })
        }
    };
    let service = Service { base_url: manifest.base_url, account, failure: manifest.failure, calls, hooks, events: watched };
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
    Ok((Integration::new(provider, draft), service))
}

fn headers<'a>(manifest: &'a Manifest, spec: Option<&'a ActionSpec>) -> Vec<(&'a str, &'a str)> {
    let own = spec.into_iter().flat_map(|spec| &spec.headers);
    manifest.headers.iter().chain(own).map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// The input schema of an action that a provider made; the error says why it cannot be called.
pub(crate) fn input_of(action: &Value) -> Result<Value, String> {
    let spec = ActionSpec::deserialize(action).map_err(|error| error.to_string())?;
    let headers = spec.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    Ok(input_schema(operation_of(&spec, headers)?.params()))
}

/// The request of an action.
pub(super) fn action_operation(manifest: &Manifest, spec: &ActionSpec) -> Result<Operation, String> {
    operation_of(spec, headers(manifest, Some(spec)))
}

pub(crate) fn operation_of(spec: &ActionSpec, headers: Vec<(&str, &str)>) -> Result<Operation, String> {
    Operation::compile(&Parts {
        request: &spec.request,
        params: Some(&spec.params),
        query: spec.query.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        headers,
        encoding: spec.encoding,
        optional_body: spec.optional_body,
        body: spec.body.as_ref(),
        graphql: spec.graphql.as_deref(),
        variables: None,
    })
}

fn action(spec: &ActionSpec, operation: &Operation) -> Action {
    let input = input_schema(operation.params());
    let mut action = Action::new(spec.key.clone(), spec.name.clone(), spec.description.clone(), &input);
    action.use_cases.clone_from(&spec.use_cases);
    let short = || spec.output.as_ref().map(|output| Document::from(&output_schema(output)));
    action.output_schema = spec.output_schema.as_ref().map(Document::from).or_else(short);
    action.scopes.clone_from(&spec.scopes);
    action.read_only = spec.is_read_only();
    action.destructive = spec.is_destructive();
    action.pitfalls.clone_from(&spec.pitfalls);
    action.lookups = operation.params().iter().filter_map(|param| Some((param.name.clone(), param.lookup.clone()?))).collect();
    action.pagination = spec.pagination.as_ref().map(|pagination| {
        Document::from(&match pagination {
            Pagination::Page { param, size } => json!({"style": "page", "param": param, "size": size}),
            Pagination::Offset { param, size } => json!({"style": "offset", "param": param, "size": size}),
            Pagination::Cursor { param, next, size } => json!({"style": "cursor", "param": param, "next": next, "size": size}),
            Pagination::Link => json!({"style": "link"}),
        })
    });
    action
}

fn event(spec: &EventSpec) -> Result<Event, String> {
    let line = match &spec.poll {
        Some(poll) => Line::parse(&poll.request).ok_or_else(|| format!("`{}` is not a request", poll.request))?,
        None => Line { method: Method::GET, target: "/".to_owned() },
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
pub(super) fn defaults(spec: &EventSpec) -> Map<String, Value> {
    spec.config.iter().filter_map(|(name, param)| Some((name.clone(), param.get("default")?.clone()))).collect()
}

fn watch(manifest: &Manifest, spec: &EventSpec) -> Result<Watched, String> {
    let Some(poll) = &spec.poll else {
        let webhook = spec.webhook.clone().ok_or("needs either `webhook` or `poll`")?;
        return Ok(Watched::Sent { webhook, defaults: defaults(spec), scopes: spec.scopes.clone() });
    };
    let mut operation = poll_operation(manifest, spec, poll)?;
    operation.slim();
    let every = Duration::from_secs(poll.seconds.into());
    Ok(Watched::Polled(Box::new(PollCall { operation, reading: Reading::new(poll), every, graphql: poll.graphql.is_some() })))
}

/// The request that looks for new items; what it asks from and the page are further parameters.
pub(super) fn poll_operation(manifest: &Manifest, spec: &EventSpec, poll: &Poll) -> Result<Operation, String> {
    let mut params = spec.config.clone();
    if let Some(since) = &poll.since {
        params.entry(since.param.clone()).or_insert_with(|| json!({}));
    }
    if let Some(pages) = &poll.pages {
        params.entry(pages.param()).or_insert_with(|| json!({}));
    }
    Operation::compile(&Parts {
        request: &poll.request,
        params: Some(&params),
        query: poll.query.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        headers: headers(manifest, None),
        body: poll.body.as_ref(),
        graphql: poll.graphql.as_deref(),
        ..Parts::default()
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
pub(super) fn hook_operation(manifest: &Manifest, registration: &Registration) -> Result<Operation, String> {
    Operation::compile(&Parts {
        request: &registration.request,
        query: registration.query.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        headers: headers(manifest, None),
        encoding: registration.encoding,
        body: registration.body.as_ref(),
        graphql: registration.graphql.as_deref(),
        variables: registration.variables.as_ref(),
        ..Parts::default()
    })
}
