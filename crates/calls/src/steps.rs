//! The calls of workflow steps: tools like any others, made with the permissions of whoever runs the workflow.

use catalog::{CatalogError, Reach};
use definitions::ops;
use futures_util::future::BoxFuture;
use kernel::suggest::did_you_mean;
use kernel::{CallRef, Permission, Scope, WeakShared};
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;
use work::WorkError;
use workflows::{StepCall, StepCaller, StepError, WorkflowError};

use crate::idempotency::Resumes;
use crate::{CallError, CallRequest, Calls, Inner, ToolResult, reserved};

/// Knows the calls without keeping them alive: they hold the workflows that hold this.
#[derive(Debug)]
pub(crate) struct Caller(WeakShared<Inner>);

impl Caller {
    pub(crate) fn new(calls: &Calls) -> Self {
        Self(calls.0.downgrade())
    }
}

impl StepCaller for Caller {
    fn call(&self, call: StepCall) -> BoxFuture<'_, Result<Value, StepError>> {
        Box::pin(async move {
            let calls = Calls(self.0.upgrade().ok_or_else(|| StepError::failed(503, "the server is stopping"))?);
            if !call.scope.may(Permission::RunTools) {
                return Err(StepError::failed(403, format!("this key lacks `{}`", Permission::RunTools)));
            }
            let stops = call.stops_when_uncertain && calls.may_change(call.scope, &call.target).await;
            let request = CallRequest {
                name: call.target.into(),
                arguments: Value::Object(call.arguments),
                idempotency_key: call.idempotency_key,
                depth: call.depth,
                in_test: call.in_test,
                resumes: match (call.resumes, stops) {
                    (false, _) => Resumes::Never,
                    (true, true) => Resumes::IfUnsent,
                    (true, false) => Resumes::Always,
                },
                origin: call.origin,
                ..CallRequest::default()
            };
            // A task of its own, so that workflows inside workflows do not pile up on one stack; it ends with its caller.
            let work = async move { calls.call(call.scope, request).await };
            let called = AbortOnDropHandle::new(tokio::spawn(work.in_current_span())).await;
            let reply = called.map_err(|error| StepError::failed(500, error.to_string()))?.map_err(|error| match error {
                CallError::Waiting(ref approval) => StepError::Waiting { approval: approval.id, message: error.to_string() },
                unsure if stops && (unsure.is_uncertain() || matches!(unsure, CallError::InProgress(_))) => {
                    StepError::Unknown(format!("its outcome is unknown, so it is not repeated; look whether it took effect: {unsure}"))
                }
                other => StepError::failed(code_of_error(&other), other.to_string()),
            })?;
            let ToolResult { data, error, status } = reply.result;
            match (error, reply.waits_for) {
                (None, None) => Ok(data),
                (message, Some(approval)) => {
                    Err(StepError::Waiting { approval, message: message.unwrap_or_else(|| format!("it waits for approval {approval}")) })
                }
                (Some(error), None) => Err(StepError::failed(code_of_status(status), error)),
            }
        })
    }

    fn check<'a>(&'a self, scope: Scope, target: &'a CallRef) -> BoxFuture<'a, Result<(), WorkflowError>> {
        Box::pin(async move {
            let Some(calls) = self.0.upgrade().map(Calls) else { return Ok(()) };
            match target {
                CallRef::Gateway { provider, integration, action, connection } => {
                    calls.check_action(scope, provider, integration, action).await?;
                    calls.check_connection(scope, provider, integration, action, connection).await
                }
                CallRef::Reserved { op } if !reserved::is_callable(op) => {
                    let callable = ops::all().iter().flat_map(|op| std::iter::once(&op.op).chain(&op.aliases)).map(String::as_str);
                    let callable = callable.filter(|op| reserved::is_callable(op));
                    Err(invalid(format!("`{op}` is no op that a step can call.{}", did_you_mean(op, callable))))
                }
                _ => Ok(()),
            }
        })
    }
}

impl Calls {
    /// Whether a call changes something at a service. A workflow decides for its own steps.
    async fn may_change(&self, scope: Scope, target: &CallRef) -> bool {
        match target {
            CallRef::Gateway { provider, integration, action, connection } => {
                let target = self.target(scope, provider, integration, action, connection).await;
                target.is_ok_and(|target| !target.action.read_only)
            }
            _ => false,
        }
    }

    /// Refuses an action that the catalog does not have. A provider that cannot be asked now leaves it open.
    async fn check_action(&self, scope: Scope, provider: &str, integration: &str, action: &str) -> Result<(), WorkflowError> {
        let source = match self.0.catalog.source(provider) {
            Ok(source) => source,
            Err(CatalogError::UnknownProvider(_)) => {
                let near = did_you_mean(provider, self.0.catalog.providers().iter().map(|provider| provider.key));
                return Err(invalid(format!("there is no provider `{provider}`.{near}")));
            }
            Err(_) => return Ok(()),
        };
        if self.0.catalog.ready(scope.project).await.is_err() || source.reach(Reach::Action(integration, action)).await.is_err() {
            return Ok(());
        }
        let Some(found) = source.integration(scope.project, integration) else {
            let all = source.integrations(scope.project);
            let near = did_you_mean(integration, all.iter().map(|other| other.key.as_str()));
            return Err(invalid(format!("{provider} has no integration `{integration}`.{near}")));
        };
        if found.action(action).is_none() {
            let near = did_you_mean(action, found.actions.iter().map(|other| other.key.as_str()));
            return Err(invalid(format!("{integration} has no action `{action}`.{near}")));
        }
        Ok(())
    }

    /// Refuses a connection that a call would not find.
    async fn check_connection(
        &self,
        scope: Scope,
        provider: &str,
        integration: &str,
        action: &str,
        slug: &str,
    ) -> Result<(), WorkflowError> {
        // Whose account it will be is known when the step runs.
        if matches!(slug, connections::NEWEST | connections::ONLY) {
            return Ok(());
        }
        let Err(CallError::ConnectionNotFound(_)) = self.target(scope, provider, integration, action, slug).await else { return Ok(()) };
        let others = self.0.connections.query(scope, Some(provider), Some(integration)).await.unwrap_or_default();
        let near = did_you_mean(slug, others.iter().map(|other| other.slug.as_str()));
        let hint = match others.as_slice() {
            [] => "connect it first".to_owned(),
            others => format!("there are: {}", others.iter().map(|other| other.slug.as_str()).collect::<Vec<_>>().join(", ")),
        };
        Err(invalid(format!("{integration} has no connection `{slug}`; {hint}.{near}")))
    }
}

/// What a tool that said no means for the run: its own status, unless it speaks of our credential or our pace. Without one nobody can
/// tell whether another try would help.
fn code_of_status(status: Option<u16>) -> i64 {
    match status {
        Some(401 | 403 | 407 | 408 | 421 | 425 | 429) | None => 424,
        Some(status) => status.into(),
    }
}

/// What a call that came to no result means for the run. A 4xx other than 424 would fail again in the same way.
fn code_of_error(error: &CallError) -> i64 {
    use connections::ConnectionError as C;
    match error {
        CallError::Forbidden(_) | CallError::Denied(_) => 403,
        CallError::UnknownReserved(_)
        | CallError::NotHere { .. }
        | CallError::UnknownOp(_)
        | CallError::NotFound
        | CallError::ApprovalNotFound
        | CallError::NoticeNotFound
        | CallError::ConnectionNotFound(_)
        | CallError::ActionNotFound(_)
        | CallError::Workflow(WorkflowError::NotFound(_) | WorkflowError::NotDeployed { .. })
        | CallError::Connection(C::NotFound | C::UnknownIntegration(_)) => 404,
        CallError::KeyReused(_) | CallError::Work(WorkError::Exceeded(_)) => 422,
        CallError::Full(_) | CallError::UserLimit(_) | CallError::Workflow(WorkflowError::Full(_)) => 429,
        CallError::NotRecorded(_) => 503,
        CallError::UpstreamServer { .. } | CallError::Connection(C::UpstreamServer { .. }) => 502,
        CallError::Store(_)
        | CallError::Work(WorkError::Broken)
        | CallError::Interrupted(_)
        | CallError::Sealed(_)
        | CallError::Workflow(WorkflowError::Store(_))
        | CallError::Connection(C::Store(_) | C::Sealed(_) | C::Interrupted(_)) => 500,
        CallError::Ref(_)
        | CallError::Arguments(_)
        | CallError::Unusable(_)
        | CallError::BadFilter(_)
        | CallError::NoticeInvalid(_)
        | CallError::TooManyNotices(_)
        | CallError::BadCursor
        | CallError::Workflow(_) => 400,
        // A service that is away, a call that is under way, an account that must be connected again.
        CallError::Upstream { .. }
        | CallError::InProgress(_)
        | CallError::Work(WorkError::Busy)
        | CallError::Waiting(_)
        | CallError::Decided(_)
        | CallError::Connection(_) => 424,
    }
}

fn invalid(said: String) -> WorkflowError {
    WorkflowError::Invalid(said)
}
