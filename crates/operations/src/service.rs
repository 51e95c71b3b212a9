//! A service: the operations of one API, compiled, and what they share.

use std::collections::{BTreeMap, HashMap};

use catalog::Action;
use kernel::json::Document;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::idempotency::KeyLocation;
use crate::{ActionSpec, Idempotency, Operation, Pagination, RequestParts, input_schema, output_schema};

/// A cheap call that proves a credential and tells whose it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountSpec {
    pub request: String,
    #[serde(default)]
    pub body: Option<Value>,
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub label: Option<String>,
}

/// When a reply with a good status is a failure all the same.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub when: String,
    #[serde(default)]
    pub equals: Option<Value>,
    #[serde(default)]
    pub message: Option<String>,
}

/// A service as data.
#[derive(Clone, Copy, Debug)]
pub struct ServiceSpec<'a> {
    pub base_url: &'a str,
    /// The headers of every request.
    pub headers: &'a BTreeMap<String, String>,
    pub account: Option<&'a AccountSpec>,
    pub failure: Option<&'a Failure>,
    /// Where actions take a key that do not say it themselves.
    pub idempotency: Option<&'a Idempotency>,
    pub actions: &'a [ActionSpec],
}

/// What is needed to call a service.
#[derive(Debug)]
pub struct Service {
    pub(crate) base_url: String,
    pub(crate) account: Option<AccountCall>,
    pub(crate) failure: Option<Failure>,
    pub(crate) calls: HashMap<String, ActionCall>,
}

/// One action's request and what to hand back of its reply.
#[derive(Debug)]
pub(crate) struct ActionCall {
    pub(crate) operation: Operation,
    pub(crate) result: Option<String>,
    pub(crate) key: Option<KeyLocation>,
}

/// The call that proves a credential.
#[derive(Debug)]
pub(crate) struct AccountCall {
    pub(crate) operation: Operation,
    pub(crate) id: Option<String>,
    pub(crate) label: Option<String>,
}

impl Service {
    /// Compiles every operation; with the service come its actions as the catalog lists them. The error is for the author.
    pub fn compile(spec: ServiceSpec<'_>) -> Result<(Self, Vec<Action>), String> {
        let mut calls = HashMap::with_capacity(spec.actions.len());
        let mut actions = Vec::with_capacity(spec.actions.len());
        for action in spec.actions {
            let fail = |message: String| format!("{}: {message}", action.key);
            let mut operation = action.operation(spec.headers).map_err(fail)?;
            actions.push(listed(action, &operation));
            let key = action.idempotency(spec.idempotency).map(|place| KeyLocation::read(place, &operation)).transpose().map_err(fail)?;
            operation.slim();
            calls.insert(action.key.clone(), ActionCall { operation, result: action.result.clone(), key });
        }
        let account = spec.account.map(|account| AccountCall::compile(account, spec.headers)).transpose()?;
        let (base_url, failure) = (spec.base_url.to_owned(), spec.failure.cloned());
        Ok((Self { base_url, account, failure, calls }, actions))
    }

    /// When a reply with a good status is a failure all the same.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }
}

impl AccountCall {
    fn compile(spec: &AccountSpec, headers: &BTreeMap<String, String>) -> Result<Self, String> {
        let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let parts = RequestParts { request: &spec.request, body: spec.body.as_ref(), headers, ..RequestParts::default() };
        let operation = Operation::compile(&parts).map_err(|message| format!("account: {message}"))?;
        Ok(Self { operation, id: spec.id.clone(), label: spec.label.clone() })
    }
}

/// An action as the catalog lists it.
fn listed(spec: &ActionSpec, operation: &Operation) -> Action {
    let input = input_schema(operation.params());
    let mut action = Action::new(spec.key.clone(), spec.name.clone(), spec.description.clone(), &input);
    action.use_cases.clone_from(&spec.use_cases);
    let short = || spec.output.as_ref().map(|output| Document::from(&output_schema(output)));
    action.output_schema = spec.output_schema.as_ref().map(Document::from).or_else(short);
    action.scopes.clone_from(&spec.scopes);
    action.read_only = spec.is_read_only();
    action.destructive = spec.is_destructive();
    action.pitfalls.clone_from(&spec.pitfalls);
    action.usage = spec.usage();
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
