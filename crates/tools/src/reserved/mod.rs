//! Our own tools at `/tools/call`: `tools.agenta.*`. Each names the permission it needs on top of `run_tools`, checked before anything else.

mod config;
mod test_run;

use catalog::CatalogError;
use connections::ConnectionError;
use kernel::{Permission, Scope, VariantId, schema};
use serde::Serialize;
use serde_json::{Map, Value, json};
use workflows::WorkflowError;

use crate::call::Call;
use crate::ops::{self, Handler, Op, Target};
use crate::permission::ToolFacts;
use crate::policy::{Asked, Unsaid};
use crate::{CallError, Discover, Discovered, ToolResult, Tools};

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
            WorkflowError::Scope(error) => AgentError::new(error.code(), error.to_string()).details(json!({"place": error.place()})),
            other => AgentError::new("commit_payload_invalid", other.to_string()),
        };
        refusal.into()
    }
}

type Answer = Result<Value, Refusal>;

impl Tools {
    pub(crate) async fn reserved(&self, call: &Call, name: &str) -> Result<ToolResult, CallError> {
        self.answer(call, name, false).await
    }

    /// The same for a call that was permitted already.
    pub(crate) async fn reserved_permitted(&self, call: &Call, name: &str) -> Result<ToolResult, CallError> {
        self.answer(call, name, true).await
    }

    async fn answer(&self, call: &Call, name: &str, permitted: bool) -> Result<ToolResult, CallError> {
        let op = ops::find(name).ok_or_else(|| CallError::UnknownReserved(call.target.to_string()))?;
        let work = Work::of(op).ok_or_else(|| CallError::NotHere { call_ref: call.target.to_string(), op: &op.op })?;
        require_key(call.scope, op, &call.arguments)?;
        let arguments = bind(op, &work, call)?;
        if let Err(error) = check(op, &arguments) {
            return Ok(error.into());
        }
        if !permitted {
            let name = ops::call_ref(&op.op);
            let also = Box::pin(self.names_of(call.scope, op, &arguments)).await;
            let facts = ToolFacts { name: &name, also: &also, read_only: Some(op.read_only), ..ToolFacts::default() };
            self.permit(call.scope, &facts, Asked::one(&call.arguments), call.permission, Unsaid::Run).await?;
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
        if let Some(Work::TestRun) = Work::of(op) {
            names.extend(self.tested_workflow(scope, arguments).await);
        }
        names
    }

    async fn work(&self, call: &Call, work: Work, arguments: &Map<String, Value>) -> Answer {
        let scope = call.scope;
        match work {
            Work::Discover => found(self.discover(scope, &Discover::from_arguments(arguments)).await),
            Work::DiscoverEvents => found(self.discover_events(scope, &Discover::from_arguments(arguments)).await),
            Work::ReadConfig => self.read_config(scope, arguments).await,
            Work::CommitRevision => self.commit_revision(scope, arguments).await,
            Work::TestRun => self.test_run(call, arguments).await,
        }
    }
}

/// Whether `/tools/call` and steps can call an op by its name.
pub(crate) fn is_callable(name: &str) -> bool {
    ops::find(name).is_some_and(|op| Work::of(op).is_some())
}

/// What a search came to, in words for a model where it is the one who can do something about it.
fn found(found: Result<Discovered, CallError>) -> Answer {
    found.map(|found| json!(found)).map_err(|error| match error {
        CallError::BadFilter(why) => AgentError::invalid_arguments(why).into(),
        CallError::Connection(ConnectionError::Catalog(error @ CatalogError::NotConfigured { .. })) => {
            AgentError::new("provider_not_configured", error.to_string()).next("Leave `provider` out and call again.").into()
        }
        CallError::Upstream { message, .. } => AgentError::new("search_failed", message).next("Call again in a moment.").retryable().into(),
        other => Refusal::Call(other),
    })
}

/// Whether the key may do what the op does; nobody is asked about a call that the key could not make.
pub(crate) fn require_key(scope: Scope, op: &Op, arguments: &Map<String, Value>) -> Result<(), CallError> {
    let needs = Work::of(op).map_or_else(|| op.permission.into_iter().collect(), |work| work.needs(arguments));
    match needs.into_iter().find(|permission| !scope.may(*permission)) {
        Some(permission) => Err(CallError::Forbidden(permission)),
        None => Ok(()),
    }
}

/// What a reserved tool does.
enum Work {
    Discover,
    DiscoverEvents,
    ReadConfig,
    CommitRevision,
    TestRun,
}

impl Work {
    fn of(op: &Op) -> Option<Self> {
        match (&op.target, op.op.as_str()) {
            (Target::Handler { handler: Handler::ReadConfig }, _) => Some(Self::ReadConfig),
            (Target::Handler { handler: Handler::CommitRevision }, _) => Some(Self::CommitRevision),
            (Target::Handler { handler: Handler::TestRun }, _) => Some(Self::TestRun),
            (Target::Endpoint { .. }, "discover_tools") => Some(Self::Discover),
            (Target::Endpoint { .. }, "discover_triggers") => Some(Self::DiscoverEvents),
            (Target::Endpoint { .. }, _) => None,
        }
    }

    fn needs(&self, arguments: &Map<String, Value>) -> Vec<Permission> {
        match self {
            Self::Discover => vec![Permission::ViewTools],
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
fn bind(op: &Op, work: &Work, call: &Call) -> Result<Map<String, Value>, CallError> {
    let mut arguments = ops::strip_ephemeral(call.arguments.clone(), op.ephemeral_args(), &op.input_schema).arguments;
    match work {
        Work::Discover | Work::DiscoverEvents => {
            // The reserved tool alone turns a bare string into one use case.
            if let Some(Value::String(one)) = arguments.get("use_cases") {
                let one = json!([one]);
                arguments.insert("use_cases".to_owned(), one);
            }
        }
        Work::TestRun if call.in_test => return Err(CallError::Arguments("A test run may not start another test run.".to_owned())),
        Work::TestRun => require(&arguments, "target")?,
        Work::ReadConfig => {
            require(&arguments, "target")?;
            if let Some(Value::Object(target)) = arguments.get_mut("target") {
                target.entry("run_is_draft").or_insert(json!(false));
            }
        }
        Work::CommitRevision => require(&arguments, "workflow_revision")?,
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
