//! The walk of a tool call: ref, target, arguments, credential, runner, record.

use std::sync::Arc;
use std::time::{Duration, Instant};

use catalog::{Action, Integration};
use connections::{Connection, Usable};
use egress::EgressError;
use kernel::{CallId, CallRef, ConnectionId, Scope, Timestamp};
use serde_json::{Map, Value};
use tracing::Instrument;

use crate::idempotency::Seen;
use crate::{CallError, CallRecord, Invocation, Outcome, RunError, ToolResult, Tools};

/// As much of a name as is recorded.
const MAX_NAME: usize = 300;

/// A call as it comes in.
#[derive(Clone, Debug)]
pub struct CallRequest {
    /// The call ref.
    pub name: String,
    /// An object, or a string that holds one.
    pub arguments: Value,
    pub idempotency_key: Option<String>,
}

/// A call that came to a result.
#[derive(Clone, Debug)]
pub struct CallReply {
    pub id: CallId,
    pub at: Timestamp,
    pub result: ToolResult,
}

/// An action with the connection it is called through.
struct Target {
    integration: Arc<Integration>,
    action: Arc<Action>,
    connection: Connection,
}

impl Tools {
    /// Calls a tool. Once it has begun it runs to its end, and every call is recorded, even if the caller goes away.
    pub async fn call(&self, scope: Scope, request: CallRequest) -> Result<CallReply, CallError> {
        let tools = self.clone();
        let work = async move { tools.recorded(scope, request).await };
        self.tasks.spawn(work.in_current_span()).await.unwrap_or_else(|error| Err(CallError::Interrupted(error.to_string())))
    }

    async fn recorded(&self, scope: Scope, request: CallRequest) -> Result<CallReply, CallError> {
        let id = CallId::new();
        let started = Instant::now();
        let mut record = CallRecord {
            id,
            project: scope.project,
            key: scope.key,
            user: scope.user,
            call_ref: request.name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect(),
            connection: None,
            outcome: Outcome::Failed,
            message: None,
            duration: Duration::ZERO,
            created_at: self.clock.now(),
        };
        let reply = self.once(scope, request, id, &mut record.connection).await;
        (record.outcome, record.message) = match &reply {
            Ok(CallReply { result: ToolResult { error: None, .. }, id: first, .. }) => {
                (Outcome::Ok, (*first != id).then(|| format!("repeats {first}")))
            }
            Ok(CallReply { result: ToolResult { error, .. }, .. }) => (Outcome::Error, error.clone()),
            Err(error) => (Outcome::Failed, Some(error.to_string())),
        };
        record.duration = started.elapsed();
        self.audit.record(record).await;
        reply
    }

    /// Runs the call, or hands back what the first call under the same key came to.
    async fn once(&self, scope: Scope, request: CallRequest, id: CallId, used: &mut Option<ConnectionId>) -> Result<CallReply, CallError> {
        let call_ref: CallRef = request.name.parse()?;
        let arguments = read_arguments(request.arguments)?;
        let reservation = match &request.idempotency_key {
            None => None,
            Some(key) => {
                match self.reserve(scope.project, scope.key, key, id, &call_ref.to_string(), &Value::Object(arguments.clone())).await? {
                    Seen::Done(reply) => return Ok(reply),
                    Seen::First(reservation) => Some(reservation),
                }
            }
        };
        let result = self.dispatch(scope, &call_ref, &arguments, used).await;
        let reply = result.map(|result| CallReply { id, at: self.clock.now(), result });
        if let Some(reservation) = reservation
            && !reply.as_ref().is_err_and(CallError::is_uncertain)
            && let Err(error) = self.settle(reservation, reply.as_ref().ok()).await
        {
            tracing::error!(call = %id, %error, "the reply could not be kept for its Idempotency-Key");
        }
        reply
    }

    async fn dispatch(
        &self,
        scope: Scope,
        call_ref: &CallRef,
        arguments: &Map<String, Value>,
        used: &mut Option<ConnectionId>,
    ) -> Result<ToolResult, CallError> {
        match call_ref {
            CallRef::Reserved { .. } => Err(CallError::UnknownReserved(call_ref.to_string())),
            CallRef::Variant { .. } | CallRef::Environment { .. } => Err(CallError::NoWorkflows),
            CallRef::Gateway { provider, integration, action, connection } => {
                let target = self.target(scope, provider, integration, action, connection).await?;
                *used = Some(target.connection.id);
                self.run(&target, arguments).await
            }
        }
    }

    async fn target(&self, scope: Scope, provider: &str, integration: &str, action: &str, slug: &str) -> Result<Target, CallError> {
        let connection = self.connections.find(scope.project, provider, integration, slug).await?;
        let connection = connection.ok_or_else(|| CallError::ConnectionNotFound(format!("{provider}/{integration}/{slug}")))?;
        let missing = || CallError::ActionNotFound(format!("{provider}/{integration}/{action}"));
        let integration = self.catalog.integration(scope.project, provider, integration).map_err(|_| missing())?;
        let action = integration.action(action).cloned().ok_or_else(missing)?;
        Ok(Target { integration, action, connection })
    }

    async fn run(&self, target: &Target, arguments: &Map<String, Value>) -> Result<ToolResult, CallError> {
        let Target { integration, action, connection } = target;
        connection.require_usable()?;
        check(action, arguments)?;
        let usable = self.connections.usable(connection, integration).await?;
        match self.attempt(target, arguments, &usable).await {
            Err(RunError::Unauthorized(reason)) => {
                let Some(fresh) = self.connections.after_refusal(connection, integration, &usable).await? else {
                    return Err(certain(format!("{} refused the credential of `{}`: {reason}", integration.name, connection.slug)));
                };
                self.attempt(target, arguments, &fresh).await.map_err(|error| explain(integration, error))
            }
            other => other.map_err(|error| explain(integration, error)),
        }
    }

    async fn attempt(&self, target: &Target, arguments: &Map<String, Value>, usable: &Usable) -> Result<ToolResult, RunError> {
        let Target { integration, action, connection } = target;
        let Some(runner) = self.runners.get(integration.provider) else {
            return Err(RunError::Upstream(format!("provider `{}` cannot run actions", integration.provider)));
        };
        runner.run(Invocation { integration, action, arguments, connection: connection.id, usable }).await
    }
}

/// Arguments are an object, or a string that holds one. Nothing else runs.
fn read_arguments(arguments: Value) -> Result<Map<String, Value>, CallError> {
    match arguments {
        Value::Object(map) => Ok(map),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(map)) => Ok(map),
            Ok(_) => Err(CallError::Arguments("Invalid arguments: the string holds JSON, but not an object.".to_owned())),
            Err(error) => Err(CallError::Arguments(format!("Invalid arguments: the string is not JSON ({error})."))),
        },
        _ => Err(CallError::Arguments("Invalid arguments: give an object, or a string that holds one.".to_owned())),
    }
}

fn check(action: &Action, arguments: &Map<String, Value>) -> Result<(), CallError> {
    // The checker takes a value; moving the map in and out would cost more than one clone of a small object.
    action.check(&Value::Object(arguments.clone())).map_err(|violations| {
        let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
        CallError::Arguments(format!("Invalid arguments: {}", texts.join("; ")))
    })
}

fn explain(integration: &Integration, error: RunError) -> CallError {
    let name = &integration.name;
    match error {
        RunError::Arguments(reason) => CallError::Arguments(format!("Invalid arguments: {reason}")),
        RunError::Connection(reason) => CallError::Unusable(format!("{name}: {reason}")),
        RunError::Unauthorized(reason) => certain(format!("{name} refused the credential: {reason}")),
        RunError::Upstream(message) => certain(format!("{name}: {message}")),
        RunError::Server { status, message } => {
            CallError::UpstreamServer { message: format!("{name} failed with status {status}: {message}") }
        }
        RunError::Unreachable(error) => {
            let uncertain = matches!(error, EgressError::Timeout { .. } | EgressError::Io { .. });
            CallError::Upstream { message: format!("{name} could not be reached: {error}"), uncertain }
        }
    }
}

fn certain(message: String) -> CallError {
    CallError::Upstream { message, uncertain: false }
}
