//! The walk of a tool call: ref, target, arguments, credential, runner, record.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use catalog::{Action, CatalogError, Integration, Reach};
use connections::{Acceptance, Connection, Usable};
use definitions::{Verdict, about_workflow, ops, unknown_action, with_hint, workflow_name};
use discovery::ActionName;
use egress::EgressError;
use futures_util::FutureExt;
use kernel::json::{MAX_DEPTH, depth_exceeds, size};
use kernel::schema::Violation;
use kernel::{AccountOwner, ApprovalId, Budget, CallId, CallName, CallRef, ConnectionId, Origin, ProjectId, Scope, Timestamp, suggest};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use work::{LARGE, in_place};
use workflows::{InvokeRequest, References};

use crate::approvals::Permit;
use crate::audit::REPEATS;
use crate::idempotency::{CallKey, KeyState, Resumes};
use crate::outlive::Outliving;
use crate::permission::ToolFacts;
use crate::policy::{DefaultVerdict, PermissionRequest};
use crate::reserved::{AgentError, Refusal};
use crate::runs::Run;
use crate::{Audit, CallError, CallRecord, Calls, GatewayContext, Invocation, Outcome, Progress, RunError, Timings, ToolResult, connected};

/// As much of a name as is recorded.
const MAX_NAME: usize = 300;

/// A call as it comes in.
#[derive(Clone, Debug, Default)]
pub struct CallRequest {
    /// The call ref.
    pub name: CallName,
    /// An object, or a string that holds one.
    pub arguments: Value,
    pub idempotency_key: Option<String>,
    /// The caller's own word on this tool; it can only be stricter than the project's.
    pub permission: Option<Verdict>,
    /// A call that would have to ask is refused, and asks nobody.
    pub never_asks: bool,
    /// How many workflows called each other to get here.
    pub depth: u32,
    /// Whether the caller is itself a test run.
    pub in_test: bool,
    /// What becomes of it where an earlier try under the same key has no known end.
    pub resumes: Resumes,
    /// How long a workflow may take; a minute if nothing is said.
    pub limit: Option<Duration>,
    /// Who wants to hear how far the call is.
    pub progress: Progress,
    /// Ends a call of an integration that nobody wants any more.
    pub stop: CancellationToken,
    /// What led to it, for the record.
    pub origin: Origin,
    /// What a runner says beside the arguments of `gateway.search` and `gateway.run`.
    pub gateway: GatewayContext,
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
    /// The account that was used, where the call did not name it or was made for an end user.
    pub account: Option<UsedAccount>,
}

/// The account that a call went through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedAccount {
    pub id: ConnectionId,
    pub slug: String,
    pub alias: Option<String>,
}

impl UsedAccount {
    /// What there is to say of the account, beyond what the ref says already.
    fn of(connection: &Connection, named: &str) -> Option<Self> {
        let is_said = connection.owner == AccountOwner::Project && connection.slug == named;
        let used = || Self { id: connection.id, slug: connection.slug.clone(), alias: connection.alias.clone() };
        (!is_said && !connection.is_implicit()).then(used)
    }
}

/// A call on its way: parsed, and bound to who makes it.
pub(crate) struct Call {
    pub(crate) scope: Scope,
    pub(crate) target: CallRef,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) permission: Option<Verdict>,
    pub(crate) never_asks: bool,
    pub(crate) depth: u32,
    pub(crate) in_test: bool,
    pub(crate) resumes: Resumes,
    pub(crate) limit: Option<Duration>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) progress: Progress,
    pub(crate) stop: CancellationToken,
    pub(crate) origin: Origin,
    pub(crate) gateway: GatewayContext,
}

/// An action with the connection it is called through.
pub(crate) struct ActionTarget {
    integration: Arc<Integration>,
    pub(crate) action: Arc<Action>,
    connection: Connection,
}

impl ActionTarget {
    /// The ref by the slug of the account that is used: a person's word is not for whichever account will be the newest.
    fn name(&self) -> String {
        CallRef::Gateway {
            provider: self.integration.provider.to_owned(),
            integration: self.integration.key.clone(),
            action: self.action.key.clone(),
            connection: self.connection.slug.clone(),
        }
        .to_string()
    }
}

/// What a call left behind on its way.
#[derive(Debug, Default)]
struct Traces {
    connection: Option<ConnectionId>,
    waits_for: Option<ApprovalId>,
    /// Whether it is a run that outlives the call.
    goes_on: bool,
    account: Option<UsedAccount>,
}

/// What is found out about a call on its way.
#[derive(Clone, Copy, Debug, Default)]
struct Noted {
    timings: Timings,
    /// The approval that was used up for it.
    approval: Option<ApprovalId>,
}

/// The row of a call under way; it is written also when the caller goes away in the middle.
pub(crate) struct Recording {
    id: CallId,
    audit: Audit,
    record: Option<CallRecord>,
    started: Instant,
    noted: Mutex<Noted>,
}

impl Recording {
    pub(crate) fn id(&self) -> CallId {
        self.id
    }

    /// Writes down what is about to go out. A read does so only where the operator wants it.
    pub(crate) async fn intend(&self, changes: bool, connection: Option<ConnectionId>) -> Result<(), CallError> {
        let (true, Some(record)) = (changes || self.audit.settings.reads_first, &self.record) else { return Ok(()) };
        let approval = self.noted.lock().unwrap_or_else(PoisonError::into_inner).approval;
        let record = CallRecord { outcome: Outcome::Running, message: None, connection, approval, ..record.clone() };
        self.audit.intend(record).await.map_err(CallError::NotRecorded)
    }

    /// Notes where a part of the time went.
    fn note(&self, part: impl FnOnce(&mut Timings)) {
        part(&mut self.noted.lock().unwrap_or_else(PoisonError::into_inner).timings);
    }

    /// Notes a person's yes and how long it took, where one was asked.
    pub(crate) fn note_permit(&self, permit: Permit) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.approval = permit.approval();
        noted.timings.approval = permit.waited();
    }

    /// The row with what is known at its end.
    fn ended(&mut self) -> Option<CallRecord> {
        let Noted { timings, approval } = *self.noted.get_mut().unwrap_or_else(PoisonError::into_inner);
        let record = self.record.take()?;
        Some(CallRecord { duration: self.started.elapsed(), timings, approval: record.approval.or(approval), ..record })
    }

    pub(crate) async fn finish(mut self, reply: &Result<CallReply, CallError>, connection: Option<ConnectionId>) {
        let repeats = reply.as_ref().ok().map(|reply| reply.id).filter(|first| *first != self.id);
        let (outcome, message) = match reply {
            // A run that stopped before a step that must ask goes on with the next try.
            Ok(CallReply { result: ToolResult { error, .. }, waits_for: Some(_), .. }) => (Outcome::Waiting, error.clone()),
            Ok(CallReply { result: ToolResult { error: None, .. }, .. }) => (Outcome::Ok, repeats.map(|first| format!("{REPEATS}{first}"))),
            Ok(CallReply { result: ToolResult { error, .. }, .. }) => (Outcome::Error, error.clone()),
            Err(error @ CallError::Waiting(_)) => (Outcome::Waiting, Some(error.to_string())),
            Err(error) => (Outcome::Failed, Some(error.to_string())),
        };
        let approval = match reply {
            Ok(reply) => reply.waits_for,
            Err(CallError::Waiting(approval)) => Some(approval.id),
            Err(_) => None,
        };
        self.record = self.ended().map(|record| {
            let approval = approval.or(record.approval);
            CallRecord { connection, outcome, message, repeats, approval, ..record }
        });
        // Whoever drops this while the writer is busy leaves the row to the drop.
        let slot = self.audit.slot().await;
        if let (Some(record), Some(slot)) = (self.record.take(), slot) {
            slot.record(record);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(record) = self.ended() {
            self.audit.record_now(record);
        }
    }
}

impl Calls {
    /// Calls a tool; every call is recorded. What an integration or the platform has begun runs to its end, even if the caller goes away.
    /// A workflow ends with its caller: dropping the future cancels it.
    #[kernel::boxed]
    pub async fn call(&self, scope: Scope, request: CallRequest) -> Result<CallReply, CallError> {
        let calls = self.clone();
        if request.name.target().is_ok_and(runs_a_workflow) {
            return Box::pin(calls.recorded(scope, request)).await;
        }
        let work = async move { Box::pin(calls.recorded(scope, request)).await };
        let work = AssertUnwindSafe(self.0.tasks.track_future(work.in_current_span())).catch_unwind();
        Outliving::new(work).await.unwrap_or_else(|_| Err(CallError::Interrupted("the call panicked".to_owned())))
    }

    /// Records a call that was refused before it came here.
    #[kernel::boxed]
    pub async fn record_refusal(&self, scope: Scope, name: &CallName, why: &str, origin: Origin) {
        self.recording(scope, name, origin).finish(&Err(CallError::Denied(why.to_owned())), None).await;
    }

    async fn recorded(&self, scope: Scope, mut request: CallRequest) -> Result<CallReply, CallError> {
        if connected::is_run(&request.name) {
            match self.named_action(scope, &request).await {
                Ok(named) => request = named,
                Err(refusal) => {
                    let recording = self.recording(scope, &request.name, request.origin);
                    let told = |error: AgentError| self.reply(&recording, error.into());
                    let reply = match refusal {
                        Refusal::Agent(error) => Ok(told(error)),
                        Refusal::Call(error) => Err(error),
                    };
                    recording.finish(&reply, None).await;
                    return reply;
                }
            }
        }
        let recording = self.recording(scope, &request.name, request.origin.clone());
        let _place = match self.user_place(scope, &request.origin).await {
            Ok(place) => place,
            Err(error) => {
                let reply = Err(error);
                recording.finish(&reply, None).await;
                return reply;
            }
        };
        let mut traces = Traces::default();
        let is_own_tool = matches!(request.name.target(), Ok(CallRef::Reserved { op }) if ops::find(op).is_some());
        let reply = match read(scope, request) {
            Ok(call) => {
                let reply = self.once(&call, &recording, &mut traces).await;
                self.keep(scope.project, recording.id, &call.arguments, &reply).await;
                reply
            }
            // Whoever calls our own tools is a model, which reads a result and not a status.
            Err(CallError::Arguments(why)) if is_own_tool => Ok(self.reply(&recording, AgentError::invalid_arguments(why).into())),
            Err(error) => Err(error),
        };
        recording.finish(&reply, traces.connection).await;
        reply
    }

    /// An answer of our own.
    fn reply(&self, recording: &Recording, result: ToolResult) -> CallReply {
        CallReply { id: recording.id, at: self.0.clock.now(), result, is_gateway: false, waits_for: None, account: None }
    }

    pub(crate) fn recording(&self, scope: Scope, name: &CallName, origin: Origin) -> Recording {
        let id = CallId::new();
        let record = CallRecord {
            id,
            project: scope.project,
            key: scope.key,
            user: scope.user,
            end_user: scope.end_user(),
            call_ref: recorded_name(name.text()),
            tool: name.target().ok().map(|target| recorded_name(&tool_name(target))),
            origin,
            connection: None,
            outcome: Outcome::Failed,
            message: Some("the caller went away".to_owned()),
            duration: Duration::ZERO,
            timings: Timings::default(),
            repeats: None,
            approval: None,
            created_at: self.0.clock.now(),
        };
        Recording { id, audit: self.0.audit.clone(), record: Some(record), started: Instant::now(), noted: Mutex::default() }
    }

    /// Writes down a permitted call before it is made. One that cannot be written down is not made, and gives its approval back.
    pub(crate) async fn intend(&self, scope: Scope, recording: &Recording, changes: bool, permit: Permit) -> Result<(), CallError> {
        let Err(error) = recording.intend(changes, None).await else { return Ok(()) };
        if let Err(error) = self.give_back(scope, permit).await {
            tracing::warn!(call = %recording.id, %error, "an approval could not be given back");
        }
        Err(error)
    }

    /// Runs the call, or hands back what the first call under the same key came to.
    async fn once(&self, call: &Call, recording: &Recording, traces: &mut Traces) -> Result<CallReply, CallError> {
        let id = recording.id;
        let reservation = match &call.idempotency_key {
            None => None,
            Some(key) => match self.reserve(call, key, id).await? {
                KeyState::Done(reply) => return Ok(reply),
                KeyState::First(reservation) => Some(reservation),
            },
        };
        let result = self.dispatch(call, recording, traces).await;
        let result = result.map(readable);
        let reply = result.map(|result| CallReply {
            id,
            at: self.0.clock.now(),
            result,
            is_gateway: call.is_gateway(),
            waits_for: traces.waits_for,
            account: traces.account.clone(),
        });
        // A run that waits is made again under the same key once it may go on, and a step that failed may be tried again with its run.
        // One that goes on is found again by its key.
        let is_over = traces.waits_for.is_none() && !traces.goes_on;
        let is_final = |reply: &&CallReply| is_over && (call.depth == 0 || reply.result.error.is_none());
        let kept = reply.as_ref().ok().filter(is_final);
        if let Some(reservation) = reservation
            && !reply.as_ref().is_err_and(CallError::is_uncertain)
            && let Err(error) = self.settle(reservation, kept).await
        {
            tracing::error!(call = %id, %error, "the reply could not be kept for its Idempotency-Key");
        }
        reply
    }

    async fn dispatch(&self, call: &Call, recording: &Recording, traces: &mut Traces) -> Result<ToolResult, CallError> {
        match &call.target {
            CallRef::Reserved { op } => self.reserved(call, op, recording).await,
            CallRef::Variant { slug, version } => {
                self.run_workflow(call, References::workflow(slug, version.as_deref()), recording, traces).await
            }
            CallRef::Environment { environment, slug } => {
                self.run_workflow(call, References::deployed(environment, slug), recording, traces).await
            }
            CallRef::Gateway { provider, integration, action, connection } => {
                let target = self.target(call.scope, provider, integration, action, connection).await?;
                traces.connection = target.connection.row_id();
                traces.account = UsedAccount::of(&target.connection, connection);
                let target = ActionTarget { connection: self.0.connections.look_again(target.connection).await?, ..target };
                target.connection.require_usable()?;
                self.check(call, &target.action).await?;
                let name = target.name();
                let facts = ToolFacts { name: &name, read_only: Some(target.action.read_only), ..ToolFacts::default() };
                let permit = self.permit(call.scope, &facts, call.asked(), call.permission, DefaultVerdict::Run).await?;
                recording.note_permit(permit);
                let result = tokio::select! {
                    result = self.run(&target, call, recording) => result,
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
                    self.0.discovery.learn(call.scope, ActionName { provider, integration, action });
                }
                Ok(result)
            }
        }
    }

    async fn run_workflow(
        &self,
        call: &Call,
        references: References,
        recording: &Recording,
        traces: &mut Traces,
    ) -> Result<ToolResult, CallError> {
        // An unknown workflow is a 404 before anybody is asked.
        let found = self
            .0
            .workflows
            .retrieve(call.scope, &references, None)
            .await
            .map_err(|error| CallError::Workflow(about_workflow(&call.target, error)))?;
        let name = call.target.to_string();
        let also = [workflow_name(&found)];
        let facts = ToolFacts { name: &name, also: &also, ..ToolFacts::default() };
        let request = InvokeRequest {
            references,
            inputs: Value::Object(call.arguments.clone()),
            depth: call.depth,
            is_test: call.in_test,
            resumes: call.resumes == Resumes::Always,
            limit: call.limit,
            idempotency_key: call.idempotency_key.clone(),
            origin: call.origin.clone(),
            ..InvokeRequest::default()
        };
        let run = Run { found: &found, facts, asked: call.asked(), caller: call.permission, call: Some((call, recording)) };
        let reply = self.run_permitted(call.scope, run, request).await?;
        traces.waits_for = reply.waits_for;
        traces.goes_on = reply.code == 202;
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
    ) -> Result<ActionTarget, CallError> {
        self.0.catalog.ready(scope.project).await.map_err(|error| CallError::Connection(error.into()))?;
        // Before the connection: a credential that is read now was not yet revoked when this integration took the place of another.
        let reached = self.0.catalog.reach(provider, Reach::Action(integration, action)).await;
        if let Err(error @ CatalogError::NotConfigured { .. }) = reached {
            return Err(CallError::Connection(error.into()));
        }
        let found = reached.and_then(|()| self.0.catalog.integration(scope.project, provider, integration));
        let Some(connection) = self.0.connections.find(scope, provider, integration, slug).await? else {
            return Err(self.no_connection(scope, provider, integration, slug).await);
        };
        let integration = found.map_err(|error| match error {
            error @ (CatalogError::Upstream(_) | CatalogError::UpstreamServer(_)) => CallError::Connection(error.into()),
            _ => CallError::ActionNotFound(format!("{provider}/{integration}/{action}")),
        })?;
        let action = integration.action(action).cloned().ok_or_else(|| CallError::ActionNotFound(unknown_action(&integration, action)))?;
        Ok(ActionTarget { integration, action, connection })
    }

    async fn check(&self, call: &Call, action: &Arc<Action>) -> Result<(), CallError> {
        // The checker takes a value; moving the map in and out would cost more than one clone of a small object.
        self.check_values(call.scope.project, action, Value::Object(call.arguments.clone())).await
    }

    pub(crate) async fn check_values(&self, project: ProjectId, action: &Arc<Action>, arguments: Value) -> Result<(), CallError> {
        let (action, size) = (action.clone(), action.weigh(&arguments, LARGE));
        let check = move |_: &Budget| action.check(&arguments).map_err(|said| CallError::invalid(&Violation::join(&said)));
        self.0.workers.run(project, size, check).await
    }

    /// A connection that there is not, with the connection or the integration that was meant, if one is near.
    async fn no_connection(&self, scope: Scope, provider: &str, integration: &str, slug: &str) -> CallError {
        let others = self.0.connections.query(scope, Some(provider), Some(integration)).await.unwrap_or_default();
        let mut hint = suggest::did_you_mean(slug, others.iter().map(|other| other.slug.as_str()));
        if let (true, Ok(source)) = (others.is_empty(), self.0.catalog.source(provider)) {
            let listed = source.integrations(scope.project);
            if !listed.iter().any(|listed| listed.key == integration) {
                hint = suggest::did_you_mean(integration, listed.iter().map(|listed| listed.key.as_str()));
            }
        }
        CallError::ConnectionNotFound(with_hint(&[provider, integration, slug], &hint))
    }

    async fn run(&self, target: &ActionTarget, call: &Call, recording: &Recording) -> Result<ToolResult, CallError> {
        // Pinned here, because a future that is handed on by value is kept twice.
        let work = pin!(self.run_renewed(target, call, recording));
        let (result, renewal) = connections::renewing(work).await;
        recording.note(|timings| timings.add_renewal(renewal));
        result
    }

    async fn run_renewed(&self, target: &ActionTarget, call: &Call, recording: &Recording) -> Result<ToolResult, CallError> {
        let ActionTarget { integration, connection, action } = target;
        let usable = self.0.connections.usable(connection, integration).await?;
        recording.intend(!action.read_only, connection.row_id()).await?;
        if !action.read_only {
            self.note_sent(call, recording.id).await?;
        }
        let key = &CallKey::of(call);
        let attempt = |usable: Arc<Usable>| async move {
            let started = Instant::now();
            let (result, queued) = egress::queued(pin!(self.attempt(target, call, &usable, key))).await;
            recording.note(|timings| timings.add_attempt(started.elapsed(), queued));
            result
        };
        let outcome = self.0.connections.with_credential(connection, integration, usable, attempt, accepts).await?;
        outcome.map_err(|error| explain(integration, connection, error))
    }

    async fn attempt(
        &self,
        target: &ActionTarget,
        call: &Call,
        usable: &Usable,
        idempotency_key: &CallKey<'_>,
    ) -> Result<ToolResult, RunError> {
        let ActionTarget { integration, action, connection } = target;
        let Some(runner) = self.0.runners.get(integration.provider) else {
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

    /// What somebody is asked about, where somebody is.
    pub(crate) fn asked(&self) -> PermissionRequest<'_> {
        PermissionRequest { agent: self.origin.agent, never_asks: self.never_asks, ..PermissionRequest::one(&self.arguments) }
    }
}

pub(crate) fn read(scope: Scope, request: CallRequest) -> Result<Call, CallError> {
    let CallRequest {
        name,
        arguments,
        idempotency_key,
        permission,
        never_asks,
        depth,
        in_test,
        resumes,
        limit,
        progress,
        stop,
        origin,
        gateway,
    } = request;
    let (target, arguments) = (name.into_target()?, read_arguments(arguments)?);
    Ok(Call {
        scope,
        target,
        arguments,
        permission,
        never_asks,
        depth,
        in_test,
        resumes,
        limit,
        idempotency_key,
        progress,
        stop,
        origin,
        gateway,
    })
}

/// As much of a name as is recorded, in one piece where all of it is.
fn recorded_name(name: &str) -> String {
    let is_recorded = name.len() <= MAX_NAME && name.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_recorded { name.to_owned() } else { name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect() }
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
            ops::find(op).is_some_and(|op| matches!(op.target, ops::OpTarget::Handler { handler: ops::Handler::TestRun }))
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

/// A result that can be stored and read again.
fn readable(result: ToolResult) -> ToolResult {
    if !in_place(size(&result.data, LARGE), || depth_exceeds(&result.data, MAX_DEPTH)) {
        return result;
    }
    ToolResult::refused(Value::Null, format!("The result is nested more than {MAX_DEPTH} deep."), None)
}

/// What an outcome says about the credential. A result that says no may have another reason.
fn accepts(outcome: &Result<ToolResult, RunError>) -> Acceptance {
    match outcome {
        Ok(ToolResult { error: None, .. }) => Acceptance::Accepted,
        Err(RunError::Unauthorized(reason)) => Acceptance::Refused(reason.clone()),
        Ok(_) | Err(_) => Acceptance::Unknown,
    }
}

fn explain(integration: &Integration, connection: &Connection, error: RunError) -> CallError {
    let name = &integration.name;
    match error {
        RunError::Arguments(reason) => CallError::invalid(&reason),
        RunError::Connection(reason) => CallError::Unusable(format!("{name}: {reason}")),
        RunError::Unauthorized(reason) => certain(format!("{name} refused the credential of `{}`: {reason}", connection.slug)),
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
