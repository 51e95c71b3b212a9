//! Platform ops for callers without a runner: the arguments are checked, bound to the run and permitted here, and the request they stand
//! for goes to our own routes with the caller's own key.

use std::time::Duration;

use bytes::Bytes;
use definitions::Verdict;
use definitions::ops::{self, Assembled, DirectTool, Mount, Op, RESULT_MAX_BYTES};
use futures_util::future::BoxFuture;
use kernel::{CallRef, Origin, Scope, schema};
use serde_json::{Map, Value, json};

use crate::call::Recording;
use crate::permission::ToolFacts;
use crate::policy::{DefaultVerdict, PermissionRequest};
use crate::{CallError, CallReply, CallRequest, Calls, ToolResult};

/// Sends a request to our own routes.
pub trait OwnRoutes: Send + Sync {
    /// The status and the body, however large; a redirect is an answer like any other.
    fn send(&self, request: Assembled) -> BoxFuture<'_, Result<(u16, Bytes), NoRoute>>;
}

/// None of our routes takes the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no route takes this request")]
pub struct NoRoute;

/// A call of an op.
#[derive(Clone, Debug, Default)]
pub struct OpRequest {
    pub op: String,
    /// What the model said.
    pub arguments: Map<String, Value>,
    /// What the run decides: `workflow`, `session`, `trace` and so on.
    pub context: Value,
    /// The caller's own word; it can only be stricter than the project's.
    pub permission: Option<Verdict>,
    pub in_test: bool,
    /// How long a run may take.
    pub limit: Option<Duration>,
    /// What led to it, for the record.
    pub origin: Origin,
}

impl Calls {
    /// Calls an op. Reads run; what changes something asks first, unless the project's policy says otherwise.
    #[kernel::boxed]
    pub async fn op(&self, scope: Scope, request: OpRequest, routes: &dyn OwnRoutes) -> Result<CallReply, CallError> {
        let op = ops::lookup(&request.op).map_err(|error| CallError::UnknownOp(error.to_string()))?;
        let name = ops::call_ref(&op.op);
        let recording = self.recording(scope, &ops::call_ref(&request.op).into(), request.origin.clone());
        let id = recording.id();
        let result = self.run_op(scope, op, &name, &request, routes, &recording).await;
        let reply =
            result.map(|result| CallReply { id, at: self.0.clock.now(), result, is_gateway: false, waits_for: None, account: None });
        self.keep(scope.project, id, &request.arguments, &reply).await;
        recording.finish(&reply, None).await;
        reply
    }

    async fn run_op(
        &self,
        scope: Scope,
        op: &'static Op,
        name: &str,
        request: &OpRequest,
        routes: &dyn OwnRoutes,
        recording: &Recording,
    ) -> Result<ToolResult, CallError> {
        check(op, &request.arguments)?;
        let work = prepare(op, name, request)?;
        crate::reserved::require_key(scope, op, &request.arguments)?;
        let also = match &work {
            Prepared::Call(call) if let Value::Object(bound) = &call.arguments => Box::pin(self.names_of(scope, op, bound)).await,
            Prepared::Call(_) | Prepared::Request(_) => ops::other_refs(op),
        };
        let facts = ToolFacts { name, also: &also, read_only: Some(op.read_only), ..ToolFacts::default() };
        let whole = asked(op, request.arguments.clone(), &request.context);
        let asked = PermissionRequest { whole: &whole, agent: request.origin.agent, ..PermissionRequest::one(&request.arguments) };
        let permit = self.permit(scope, &facts, asked, request.permission, DefaultVerdict::AskBeforeWrites).await?;
        recording.note_permit(permit);
        self.intend(scope, recording, !op.read_only, permit).await?;
        match work {
            Prepared::Request(assembled) => {
                let Ok(answer) = routes.send(assembled).await else {
                    self.give_back(scope, permit).await?;
                    return Err(CallError::UnknownOp(format!("Platform op `{}` leads to no route.", op.op)));
                };
                Ok(read(answer))
            }
            Prepared::Call(call) => {
                self.call_permitted(
                    scope,
                    CallRequest { in_test: request.in_test, limit: request.limit, origin: request.origin.clone(), ..*call },
                )
                .await
            }
        }
    }

    async fn call_permitted(&self, scope: Scope, request: CallRequest) -> Result<ToolResult, CallError> {
        let call = crate::call::read(scope, request)?;
        let CallRef::Reserved { op } = &call.target else { return Err(CallError::UnknownReserved(call.target.to_string())) };
        Box::pin(self.reserved_permitted(&call, op)).await
    }
}

/// What an op comes to before anybody is asked.
enum Prepared {
    Request(Assembled),
    Call(Box<CallRequest>),
}

fn prepare(op: &'static Op, name: &str, request: &OpRequest) -> Result<Prepared, CallError> {
    if let Some(tool) = DirectTool::of(op, &Mount::root()) {
        let assembled = ops::assemble(&tool, request.arguments.clone(), &request.context).map_err(|error| CallError::invalid(&error))?;
        return Ok(Prepared::Request(assembled));
    }
    let bound = ops::bind_arguments(op, request.arguments.clone(), &request.context).map_err(|error| CallError::invalid(&error))?;
    let call = CallRequest { name: name.to_owned().into(), arguments: Value::Object(bound), ..CallRequest::default() };
    Ok(Prepared::Call(Box::new(call)))
}

/// The schema is closed, so nothing that is bound can be smuggled in.
fn check(op: &Op, arguments: &Map<String, Value>) -> Result<(), CallError> {
    schema::check(&ops::visible_schema(op), &Value::Object(arguments.clone())).map_err(|error| CallError::invalid(&error))
}

/// What a person is asked about: the arguments and the values of the run that they are bound to. The rest of the context, such as a trace,
/// differs from one try to the next and decides nothing.
fn asked(op: &Op, arguments: Map<String, Value>, context: &Value) -> Map<String, Value> {
    let used = ops::bound_values(op, context);
    Map::from_iter([("arguments".to_owned(), Value::Object(arguments)), ("context".to_owned(), Value::Object(used))])
}

fn read((status, body): (u16, Bytes)) -> ToolResult {
    let text = String::from_utf8_lossy(&body);
    if !(200..300).contains(&status) {
        let message = ops::failure_text(status, &text);
        return ToolResult::refused(json!({"status": status, "message": message}), message, Some(status));
    }
    let data = if text.len() <= RESULT_MAX_BYTES { serde_json::from_str(&text).ok() } else { None };
    ToolResult::ok(data.unwrap_or_else(|| json!(ops::cap_text(&text, RESULT_MAX_BYTES))))
}
