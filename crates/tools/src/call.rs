//! The walk of a tool call: ref, target, arguments, credential, runner, record.

use std::sync::Arc;
use std::time::{Duration, Instant};

use catalog::{Action, CatalogError, Integration, Reach};
use connections::{Connection, Usable};
use egress::EgressError;
use kernel::call_ref::CallRefError;
use kernel::json::{MAX_DEPTH, depth_exceeds};
use kernel::schema::Violation;
use kernel::{ApprovalId, CallId, CallRef, ConnectionId, Origin, Scope, Timestamp, suggest};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use workflows::{InvokeRequest, References};

use crate::discover::ActionName;
use crate::error::named;
use crate::idempotency::{Seen, upstream_key};
use crate::ops;
use crate::permission::{Permission, ToolFacts};
use crate::policy::{Asked, Unsaid};
use crate::reserved::AgentError;
use crate::runs::{Run, workflow_name};
use crate::{Audit, CallError, CallRecord, Invocation, Outcome, Progress, RunError, ToolResult, Tools};

/// As much of a name as is recorded.
const MAX_NAME: usize = 300;

/// A call as it comes in.
#[derive(Clone, Debug, Default)]
pub struct CallRequest {
    /// The call ref.
    pub name: String,
    /// An object, or a string that holds one.
    pub arguments: Value,
    pub idempotency_key: Option<String>,
    /// The caller's own word on this tool; it can only be stricter than the project's.
    pub permission: Option<Permission>,
    /// How many workflows called each other to get here.
    pub depth: u32,
    /// Whether the caller is itself a test run.
    pub in_test: bool,
    /// An earlier try under the same key has certainly ended: if nobody knows how, the call is made again.
    pub resumes: bool,
    /// How long a workflow may take; a minute if nothing is said.
    pub limit: Option<Duration>,
    /// Who wants to hear how far the call is.
    pub progress: Progress,
    /// Ends a call of an integration that nobody wants any more.
    pub stop: CancellationToken,
    /// What led to it, for the record.
    pub origin: Origin,
}

/// A call that came to a result.
#[derive(Clone, Debug)]
pub struct CallReply {
    pub id: CallId,
    pub at: Timestamp,
    pub result: ToolResult,
    /// Whether an integration answered; its results travel in an envelope.
    pub is_gateway: bool,
    /// The approval that a step waits for, where it is a run that stopped there.
    pub waits_for: Option<ApprovalId>,
}

/// A call on its way: parsed, and bound to who makes it.
pub(crate) struct Call {
    pub(crate) scope: Scope,
    pub(crate) target: CallRef,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) permission: Option<Permission>,
    pub(crate) depth: u32,
    pub(crate) in_test: bool,
    pub(crate) resumes: bool,
    pub(crate) limit: Option<Duration>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) progress: Progress,
    pub(crate) stop: CancellationToken,
    pub(crate) origin: Origin,
}

/// An action with the connection it is called through.
pub(crate) struct Target {
    integration: Arc<Integration>,
    pub(crate) action: Arc<Action>,
    connection: Connection,
}

/// What a call left behind on its way.
#[derive(Debug, Default)]
struct Traces {
    connection: Option<ConnectionId>,
    waits_for: Option<ApprovalId>,
}

/// The row of a call under way; it is written also when the caller goes away in the middle.
pub(crate) struct Recording {
    id: CallId,
    audit: Audit,
    record: Option<CallRecord>,
    started: Instant,
}

impl Recording {
    pub(crate) fn id(&self) -> CallId {
        self.id
    }

    pub(crate) async fn finish(mut self, reply: &Result<CallReply, CallError>, connection: Option<ConnectionId>) {
        let (outcome, message) = match reply {
            Ok(CallReply { result: ToolResult { error: None, .. }, id: first, .. }) => {
                (Outcome::Ok, (*first != self.id).then(|| format!("repeats {first}")))
            }
            Ok(CallReply { result: ToolResult { error, .. }, .. }) => (Outcome::Error, error.clone()),
            Err(error) => (Outcome::Failed, Some(error.to_string())),
        };
        if let Some(record) = &mut self.record {
            *record = CallRecord { outcome, message, connection, duration: self.started.elapsed(), ..record.clone() };
        }
        // Whoever drops this while the writer is busy leaves the row to the drop.
        let place = self.audit.place().await;
        if let (Some(record), Some(place)) = (self.record.take(), place) {
            place.record(record);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            self.audit.record_now(CallRecord { duration: self.started.elapsed(), ..record });
        }
    }
}

impl Tools {
    /// Calls a tool; every call is recorded. What an integration or the platform has begun runs to its end, even if the caller goes away.
    /// A workflow ends with its caller: dropping the future cancels it.
    pub async fn call(&self, scope: Scope, request: CallRequest) -> Result<CallReply, CallError> {
        let target = request.name.parse::<CallRef>();
        let tools = self.clone();
        if target.as_ref().is_ok_and(runs_a_workflow) {
            return Box::pin(tools.recorded(scope, target, request)).await;
        }
        let work = async move { tools.recorded(scope, target, request).await };
        self.tasks.spawn(work.in_current_span()).await.unwrap_or_else(|error| Err(CallError::Interrupted(error.to_string())))
    }

    /// Records a call that was refused before it came here.
    pub async fn record_refusal(&self, scope: Scope, name: &str, why: &str, origin: Origin) {
        self.recording(scope, name, origin).finish(&Err(CallError::Denied(why.to_owned())), None).await;
    }

    async fn recorded(&self, scope: Scope, target: Result<CallRef, CallRefError>, request: CallRequest) -> Result<CallReply, CallError> {
        let recording = self.recording(scope, &request.name, request.origin.clone());
        let mut traces = Traces::default();
        let is_own_tool = matches!(&target, Ok(CallRef::Reserved { op }) if ops::find(op).is_some());
        let reply = match read(scope, target, request) {
            Ok(call) => self.once(&call, recording.id, &mut traces).await,
            // Whoever calls our own tools is a model, which reads a result and not a status.
            Err(CallError::Arguments(why)) if is_own_tool => {
                let result = AgentError::invalid_arguments(why).into();
                Ok(CallReply { id: recording.id, at: self.clock.now(), result, is_gateway: false, waits_for: None })
            }
            Err(error) => Err(error),
        };
        recording.finish(&reply, traces.connection).await;
        reply
    }

    pub(crate) fn recording(&self, scope: Scope, name: &str, origin: Origin) -> Recording {
        let id = CallId::new();
        let record = CallRecord {
            id,
            project: scope.project,
            key: scope.key,
            user: scope.user,
            call_ref: name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect(),
            tool: name.parse().ok().map(|target| tool_name(&target).chars().take(MAX_NAME).collect()),
            origin,
            connection: None,
            outcome: Outcome::Failed,
            message: Some("the caller went away".to_owned()),
            duration: Duration::ZERO,
            created_at: self.clock.now(),
        };
        Recording { id, audit: self.audit.clone(), record: Some(record), started: Instant::now() }
    }

    /// Runs the call, or hands back what the first call under the same key came to.
    async fn once(&self, call: &Call, id: CallId, traces: &mut Traces) -> Result<CallReply, CallError> {
        let reservation = match &call.idempotency_key {
            None => None,
            Some(key) => match self.reserve(call, key, id).await? {
                Seen::Done(reply) => return Ok(reply),
                Seen::First(reservation) => Some(reservation),
            },
        };
        let result = self.dispatch(call, traces).await;
        let result = result.map(readable);
        let reply =
            result.map(|result| CallReply { id, at: self.clock.now(), result, is_gateway: call.is_gateway(), waits_for: traces.waits_for });
        // A run that waits is made again under the same key once it may go on, and a step that failed may be tried again with its run.
        let is_final = |reply: &&CallReply| traces.waits_for.is_none() && (call.depth == 0 || reply.result.error.is_none());
        let kept = reply.as_ref().ok().filter(is_final);
        if let Some(reservation) = reservation
            && !reply.as_ref().is_err_and(CallError::is_uncertain)
            && let Err(error) = self.settle(reservation, kept).await
        {
            tracing::error!(call = %id, %error, "the reply could not be kept for its Idempotency-Key");
        }
        reply
    }

    async fn dispatch(&self, call: &Call, traces: &mut Traces) -> Result<ToolResult, CallError> {
        match &call.target {
            CallRef::Reserved { op } => self.reserved(call, op).await,
            CallRef::Variant { slug, version } => self.run_workflow(call, References::workflow(slug, version.as_deref()), traces).await,
            CallRef::Environment { environment, slug } => self.run_workflow(call, References::deployed(environment, slug), traces).await,
            CallRef::Gateway { provider, integration, action, connection } => {
                let target = self.target(call.scope, provider, integration, action, connection).await?;
                traces.connection = target.connection.row_id();
                let target = Target { connection: self.connections.look_again(target.connection).await?, ..target };
                target.connection.require_usable()?;
                check(&target.action, &call.arguments)?;
                let name = call.target.to_string();
                let facts = ToolFacts { name: &name, read_only: Some(target.action.read_only), ..ToolFacts::default() };
                let permit = self.permit(call.scope, &facts, Asked::one(&call.arguments), call.permission, Unsaid::Run).await?;
                let result = tokio::select! {
                    result = self.run(&target, call) => result,
                    () = call.stop.cancelled() => {
                        return Err(CallError::Upstream { message: "the caller cancelled the call".to_owned(), uncertain: true });
                    }
                };
                if result.as_ref().is_err_and(CallError::is_unsent) {
                    self.give_back(call.scope, permit).await?;
                }
                let result = result?;
                if result.error.is_none() {
                    let (provider, integration, action) = (provider.clone(), integration.clone(), action.clone());
                    self.learn(call.scope, ActionName { provider, integration, action });
                }
                Ok(result)
            }
        }
    }

    async fn run_workflow(&self, call: &Call, references: References, traces: &mut Traces) -> Result<ToolResult, CallError> {
        // An unknown workflow is a 404 before anybody is asked.
        let found =
            self.workflows.retrieve(call.scope, &references, None).await.map_err(|error| CallError::of_workflow(&call.target, error))?;
        let name = call.target.to_string();
        let also = [workflow_name(&found)];
        let facts = ToolFacts { name: &name, also: &also, ..ToolFacts::default() };
        let request = InvokeRequest {
            references,
            inputs: Value::Object(call.arguments.clone()),
            depth: call.depth,
            is_test: call.in_test,
            resumes: call.resumes,
            limit: call.limit,
            idempotency_key: call.idempotency_key.clone(),
            origin: call.origin.clone(),
            ..InvokeRequest::default()
        };
        let run = Run { found: &found, facts, asked: Asked::one(&call.arguments), caller: call.permission };
        let reply = self.run_permitted(call.scope, run, request).await?;
        traces.waits_for = reply.waits_for;
        let (is_success, outputs) = (reply.is_success(), reply.outputs.unwrap_or(Value::Null));
        if is_success {
            Ok(ToolResult::ok(outputs))
        } else {
            Ok(ToolResult::refused(outputs, reply.message, u16::try_from(reply.code).ok()))
        }
    }

    pub(crate) async fn target(
        &self,
        scope: Scope,
        provider: &str,
        integration: &str,
        action: &str,
        slug: &str,
    ) -> Result<Target, CallError> {
        self.catalog.ready(scope.project).await.map_err(|error| CallError::Connection(error.into()))?;
        // Before the connection: a credential that is read now was not yet revoked when this integration took the place of another.
        let reached = self.catalog.reach(provider, Reach::Action(integration, action)).await;
        if let Err(error @ CatalogError::NotConfigured { .. }) = reached {
            return Err(CallError::Connection(error.into()));
        }
        let found = reached.and_then(|()| self.catalog.integration(scope.project, provider, integration));
        let Some(connection) = self.connections.find(scope.project, provider, integration, slug).await? else {
            return Err(self.no_connection(scope, provider, integration, slug).await);
        };
        let integration = found.map_err(|error| match error {
            error @ (CatalogError::Upstream(_) | CatalogError::UpstreamServer(_)) => CallError::Connection(error.into()),
            _ => CallError::ActionNotFound(format!("{provider}/{integration}/{action}")),
        })?;
        let action = integration.action(action).cloned().ok_or_else(|| CallError::no_action(&integration, action))?;
        Ok(Target { integration, action, connection })
    }

    /// A connection that there is not, with the connection or the integration that was meant, if one is near.
    async fn no_connection(&self, scope: Scope, provider: &str, integration: &str, slug: &str) -> CallError {
        let others = self.connections.query(scope.project, Some(provider), Some(integration)).await.unwrap_or_default();
        let mut hint = suggest::did_you_mean(slug, others.iter().map(|other| other.slug.as_str()));
        if let (true, Ok(source)) = (others.is_empty(), self.catalog.source(provider)) {
            let listed = source.integrations(scope.project);
            if !listed.iter().any(|listed| listed.key == integration) {
                hint = suggest::did_you_mean(integration, listed.iter().map(|listed| listed.key.as_str()));
            }
        }
        CallError::ConnectionNotFound(named(&[provider, integration, slug], &hint))
    }

    async fn run(&self, target: &Target, call: &Call) -> Result<ToolResult, CallError> {
        let Target { integration, connection, .. } = target;
        let mut usable = self.connections.usable(connection, integration).await?;
        let key = upstream_key(call);
        let mut outcome = self.attempt(target, call, &usable, &key).await;
        if let Err(RunError::Unauthorized(_)) = &outcome
            && let Some(fresh) = self.connections.after_refusal(connection, integration, &usable).await?
        {
            usable = fresh;
            outcome = self.attempt(target, call, &usable, &key).await;
        }
        match &outcome {
            Ok(ToolResult { error: None, .. }) => self.connections.worked(connection).await,
            Err(RunError::Unauthorized(reason)) => {
                self.connections.refused(connection, integration, &usable, reason).await;
                return Err(certain(format!("{} refused the credential of `{}`: {reason}", integration.name, connection.slug)));
            }
            _ => {}
        }
        outcome.map_err(|error| explain(integration, error))
    }

    async fn attempt(&self, target: &Target, call: &Call, usable: &Usable, idempotency_key: &str) -> Result<ToolResult, RunError> {
        let Target { integration, action, connection } = target;
        let Some(runner) = self.runners.get(integration.provider) else {
            return Err(RunError::Upstream(format!("provider `{}` cannot run actions", integration.provider)));
        };
        let Call { arguments, progress, .. } = call;
        let (project, connection) = (call.scope.project, connection.id);
        runner.run(Invocation { integration, action, arguments, project, connection, usable, progress, idempotency_key }).await
    }
}

impl Call {
    pub(crate) fn is_gateway(&self) -> bool {
        matches!(self.target, CallRef::Gateway { .. })
    }
}

pub(crate) fn read(scope: Scope, target: Result<CallRef, CallRefError>, request: CallRequest) -> Result<Call, CallError> {
    let CallRequest { arguments, idempotency_key, permission, depth, in_test, resumes, limit, progress, stop, origin, .. } = request;
    let (target, arguments) = (target?, read_arguments(arguments)?);
    Ok(Call { scope, target, arguments, permission, depth, in_test, resumes, limit, idempotency_key, progress, stop, origin })
}

/// The one name of what a ref leads to, however it is written: ops by their first name, workflows without version and environment.
pub(crate) fn tool_name(target: &CallRef) -> String {
    match target {
        CallRef::Gateway { .. } => target.to_string(),
        CallRef::Reserved { op } => ops::call_ref(ops::find(op).map_or(op.as_str(), |found| found.op.as_str())),
        CallRef::Variant { slug, .. } | CallRef::Environment { slug, .. } => {
            CallRef::Variant { slug: slug.clone(), version: None }.to_string()
        }
    }
}

/// Whether the call is a run, which ends with its caller.
fn runs_a_workflow(target: &CallRef) -> bool {
    match target {
        CallRef::Variant { .. } | CallRef::Environment { .. } => true,
        CallRef::Reserved { op } => {
            ops::find(op).is_some_and(|op| matches!(op.target, ops::Target::Handler { handler: ops::Handler::TestRun }))
        }
        CallRef::Gateway { .. } => false,
    }
}

/// Arguments are an object, or a string that holds one. Nothing else runs.
pub fn read_arguments(arguments: Value) -> Result<Map<String, Value>, CallError> {
    if depth_exceeds(&arguments, MAX_DEPTH) {
        return Err(CallError::Arguments(format!("Invalid arguments: they are nested more than {MAX_DEPTH} deep.")));
    }
    match arguments {
        Value::Object(map) => Ok(map),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(value @ Value::Object(_)) => read_arguments(value),
            Ok(_) => Err(CallError::invalid(&"the string holds JSON, but not an object.")),
            Err(error) => Err(CallError::invalid(&format_args!("the string is not JSON ({error})."))),
        },
        _ => Err(CallError::invalid(&"give an object, or a string that holds one.")),
    }
}

fn check(action: &Action, arguments: &Map<String, Value>) -> Result<(), CallError> {
    // The checker takes a value; moving the map in and out would cost more than one clone of a small object.
    let checked = action.check(&Value::Object(arguments.clone()));
    checked.map_err(|violations| CallError::invalid(&Violation::join(&violations)))
}

/// A result that can be stored and read again.
fn readable(result: ToolResult) -> ToolResult {
    if !depth_exceeds(&result.data, MAX_DEPTH) {
        return result;
    }
    ToolResult::refused(Value::Null, format!("The result is nested more than {MAX_DEPTH} deep."), None)
}

fn explain(integration: &Integration, error: RunError) -> CallError {
    let name = &integration.name;
    match error {
        RunError::Arguments(reason) => CallError::invalid(&reason),
        RunError::Connection(reason) => CallError::Unusable(format!("{name}: {reason}")),
        RunError::Unauthorized(reason) => certain(format!("{name} refused the credential: {reason}")),
        RunError::Upstream(message) => certain(format!("{name}: {message}")),
        RunError::Server { status, message } => {
            CallError::UpstreamServer { message: format!("{name} failed with status {status}: {message}") }
        }
        RunError::Lost(message) => CallError::Upstream { message: format!("{name}: {message}"), uncertain: true },
        RunError::Unreachable(error) => {
            let uncertain = matches!(error, EgressError::Timeout { .. } | EgressError::Io { .. });
            CallError::Upstream { message: format!("{name} could not be reached: {error}"), uncertain }
        }
    }
}

fn certain(message: String) -> CallError {
    CallError::Upstream { message, uncertain: false }
}
