//! Our own tools at `/tools/call`: `tools.agenta.*`. Each names the permission it needs on top of `run_tools`, checked before anything else.

mod config;
mod test_run;

use catalog::CatalogError;
use connections::ConnectionError;
use definitions::ops::{self, Handler, Op, OpTarget};
use discovery::{Discover, DiscoveryError};
use kernel::{Permission, Scope, VariantId, schema};
use serde::Serialize;
use serde_json::{Map, Value, json};
use workflows::WorkflowError;

use crate::call::{Call, Recording};
use crate::permission::ToolFacts;
use crate::policy::DefaultVerdict;
use crate::{CallError, Calls, ToolResult};

/// A failure that the model caused and can mend.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AgentError {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_step: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<Box<Value>>,
}

impl AgentError {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: false, next_step: None, details: None }
    }

    /// Arguments that the model can correct.
    pub(crate) fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::new("invalid_arguments", message).next("Correct the arguments as the tool's schema says and call again.")
    }

    pub(crate) fn next(self, step: &str) -> Self {
        Self { next_step: Some(step.to_owned()), ..self }
    }

    pub(crate) fn details(self, details: Value) -> Self {
        Self { details: Some(Box::new(details)), ..self }
    }

    pub(crate) fn retryable(self) -> Self {
        Self { retryable: true, ..self }
    }
}

impl From<AgentError> for ToolResult {
    fn from(error: AgentError) -> Self {
        let status = if error.retryable { None } else { Some(422) };
        Self::refused(json!(error), error.message.clone(), status)
    }
}

/// What a reserved tool comes to: a payload, a word to the model, or a failure that is not the model's.
pub(crate) enum Refusal {
    Agent(AgentError),
    Call(CallError),
}

impl From<AgentError> for Refusal {
    fn from(error: AgentError) -> Self {
        Self::Agent(error)
    }
}

impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<WorkflowError> for Refusal {
    fn from(error: WorkflowError) -> Self {
        let refusal = match error {
            WorkflowError::Store(error) => return Self::Call(error.into()),
            WorkflowError::NotFound(_) => AgentError::new("workflow_variant_not_found", error.to_string()),
            WorkflowError::Moved { head } => {
                AgentError::new("revision_conflict", format!("The configuration changed meanwhile; its newest revision is {head}."))
                    .next("Call read_config, apply your change to what it returns, and commit with its base_revision_id.")
                    .details(json!({"head_revision_id": head}))
                    .retryable()
            }
            WorkflowError::Change(error) => AgentError::new(error.code(), error.to_string()).details(json!({"index": error.index})),
            WorkflowError::Refused(error) => AgentError::new(error.code, error.message).details(json!({"place": error.place})),
            other => AgentError::new("commit_payload_invalid", other.to_string()),
        };
        refusal.into()
    }
}

type Answer = Result<Value, Refusal>;

impl Calls {
    pub(crate) async fn reserved(&self, call: &Call, name: &str, recording: &Recording) -> Result<ToolResult, CallError> {
        self.answer(call, name, Some(recording)).await
    }

    /// The same for a call that was permitted and written down already.
    pub(crate) async fn reserved_permitted(&self, call: &Call, name: &str) -> Result<ToolResult, CallError> {
        self.answer(call, name, None).await
    }

    async fn answer(&self, call: &Call, name: &str, recording: Option<&Recording>) -> Result<ToolResult, CallError> {
        let op = ops::find(name).ok_or_else(|| CallError::UnknownReserved(call.target.to_string()))?;
        let not_here = || CallError::NotHere { call_ref: call.target.to_string(), address: (self.0.op_address)(&op.op) };
        let work = ReservedTool::of(op).ok_or_else(not_here)?;
        require_key(call.scope, op, &call.arguments)?;
        let arguments = bind(op, &work, call)?;
        if let Err(error) = check(op, &arguments) {
            return Ok(error.into());
        }
        if let Some(recording) = recording {
            let name = ops::call_ref(&op.op);
            let also = Box::pin(self.names_of(call.scope, op, &arguments)).await;
            let facts = ToolFacts { name: &name, also: &also, read_only: Some(op.read_only), ..ToolFacts::default() };
            let permit = self.permit(call.scope, &facts, call.asked(), call.permission, DefaultVerdict::Run).await?;
            recording.note_permit(permit);
            self.intend(call.scope, recording, !op.read_only, permit).await?;
        }
        match self.work(call, work, &arguments).await {
            Ok(data) => Ok(ToolResult::ok(data)),
            Err(Refusal::Agent(error)) => Ok(error.into()),
            Err(Refusal::Call(error)) => Err(error),
        }
    }

    /// Other names by which rules may mean a call of an op: a test is also a run of the workflow that it tests.
    pub(crate) async fn names_of(&self, scope: Scope, op: &Op, arguments: &Map<String, Value>) -> Vec<String> {
        let mut names = ops::other_refs(op);
        if let Some(ReservedTool::TestRun) = ReservedTool::of(op) {
            names.extend(self.tested_workflow(scope, arguments).await);
        }
        names
    }

    async fn work(&self, call: &Call, work: ReservedTool, arguments: &Map<String, Value>) -> Answer {
        let scope = call.scope;
        match work {
            ReservedTool::Discover => found(self.0.discovery.discover(scope, &Discover::from_arguments(arguments)).await),
            ReservedTool::DiscoverEvents => found(self.0.discovery.discover_events(scope, &Discover::from_arguments(arguments)).await),
            ReservedTool::ReadConfig => self.read_config(scope, arguments).await,
            ReservedTool::CommitRevision => self.commit_revision(scope, arguments).await,
            ReservedTool::TestRun => self.test_run(call, arguments).await,
            ReservedTool::QueryConnected => self.query_connected(scope, &call.gateway, arguments).await,
        }
    }
}

/// Whether `/tools/call` and steps can call an op by its name.
pub(crate) fn is_callable(name: &str) -> bool {
    ops::find(name).is_some_and(|op| ReservedTool::of(op).is_some())
}

/// What a search came to, in words for a model where it is the one who can do something about it.
fn found(found: Result<impl Serialize, DiscoveryError>) -> Answer {
    found.map(|found| json!(found)).map_err(|error| match error {
        DiscoveryError::Connection(ConnectionError::Catalog(error @ CatalogError::NotConfigured { .. })) => {
            AgentError::new("provider_not_configured", error.to_string()).next("Leave `provider` out and call again.").into()
        }
        DiscoveryError::Search(message) => AgentError::new("search_failed", message).next("Call again in a moment.").retryable().into(),
        DiscoveryError::Invalid(_) | DiscoveryError::UseCaseNotFound => AgentError::invalid_arguments(error.to_string()).into(),
        DiscoveryError::Connection(error) => Refusal::Call(error.into()),
        DiscoveryError::Work(error) => Refusal::Call(error.into()),
        DiscoveryError::Store(error) => Refusal::Call(error.into()),
    })
}

/// Whether the key may do what the op does; nobody is asked about a call that the key could not make.
pub(crate) fn require_key(scope: Scope, op: &Op, arguments: &Map<String, Value>) -> Result<(), CallError> {
    let needs = ReservedTool::of(op).map_or_else(|| op.permission.into_iter().collect(), |work| work.needs(arguments));
    match needs.into_iter().find(|permission| !scope.may(*permission)) {
        Some(permission) => Err(CallError::Forbidden(permission)),
        None => Ok(()),
    }
}

/// What a reserved tool does.
enum ReservedTool {
    Discover,
    DiscoverEvents,
    ReadConfig,
    CommitRevision,
    TestRun,
    QueryConnected,
}

impl ReservedTool {
    fn of(op: &Op) -> Option<Self> {
        match (&op.target, op.op.as_str()) {
            (OpTarget::Handler { handler: Handler::ReadConfig }, _) => Some(Self::ReadConfig),
            (OpTarget::Handler { handler: Handler::CommitRevision }, _) => Some(Self::CommitRevision),
            (OpTarget::Handler { handler: Handler::TestRun }, _) => Some(Self::TestRun),
            (OpTarget::Handler { handler: Handler::QueryConnectedTools }, _) => Some(Self::QueryConnected),
            (OpTarget::Endpoint { .. }, "discover_tools") => Some(Self::Discover),
            (OpTarget::Endpoint { .. }, "discover_triggers") => Some(Self::DiscoverEvents),
            (OpTarget::Endpoint { .. }, _) => None,
        }
    }

    fn needs(&self, arguments: &Map<String, Value>) -> Vec<Permission> {
        match self {
            Self::Discover | Self::QueryConnected => vec![Permission::ViewTools],
            Self::DiscoverEvents => vec![Permission::ViewTriggers],
            Self::ReadConfig => vec![Permission::ViewWorkflows],
            Self::CommitRevision => vec![Permission::EditWorkflows],
            Self::TestRun if arguments.get("delta").is_some_and(|delta| !delta.is_null()) => {
                vec![Permission::RunWorkflows, Permission::EditWorkflows]
            }
            Self::TestRun => vec![Permission::RunWorkflows],
        }
    }
}

/// The arguments without what was only for the reader. What the runner binds must be there: a model cannot mend that.
fn bind(op: &Op, work: &ReservedTool, call: &Call) -> Result<Map<String, Value>, CallError> {
    let mut arguments = ops::strip_ephemeral(call.arguments.clone(), op.ephemeral_args(), &op.input_schema).arguments;
    match work {
        ReservedTool::Discover | ReservedTool::DiscoverEvents => {
            // The reserved tool alone turns a bare string into one use case.
            if let Some(Value::String(one)) = arguments.get("use_cases") {
                let one = json!([one]);
                arguments.insert("use_cases".to_owned(), one);
            }
        }
        ReservedTool::QueryConnected => {}
        ReservedTool::TestRun if call.in_test => return Err(CallError::Arguments("A test run may not start another test run.".to_owned())),
        ReservedTool::TestRun => require(&arguments, "target")?,
        ReservedTool::ReadConfig => {
            require(&arguments, "target")?;
            if let Some(Value::Object(target)) = arguments.get_mut("target") {
                target.entry("run_is_draft").or_insert(json!(false));
            }
        }
        ReservedTool::CommitRevision => require(&arguments, "workflow_revision")?,
    }
    Ok(arguments)
}

fn require(arguments: &Map<String, Value>, parent: &str) -> Result<(), CallError> {
    match arguments.get(parent).and_then(|parent| parent.get("workflow_variant_id")) {
        Some(Value::String(_)) => Ok(()),
        _ => Err(CallError::invalid(&format_args!("`{parent}.workflow_variant_id` is bound by the runner and is missing."))),
    }
}

fn check(op: &Op, arguments: &Map<String, Value>) -> Result<(), AgentError> {
    schema::check(&op.input_schema, &Value::Object(arguments.clone()))
        .map_err(|error| AgentError::invalid_arguments(format!("Invalid arguments: {error}")))
}

/// The variant that the runner bound.
fn variant(arguments: &Map<String, Value>, parent: &str) -> Result<VariantId, AgentError> {
    let id = arguments[parent]["workflow_variant_id"].as_str().unwrap_or_default();
    id.parse().map_err(|_| AgentError::new("invalid_arguments", format!("`{id}` is not the id of a variant.")))
}
