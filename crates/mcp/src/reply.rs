//! From what a call came to, to what a client reads.

use calls::{CallError, CallReply, ToolResult};
use serde_json::{Value, json};
use store::StoreError;
use workflows::WorkflowError;

use crate::{CallOutcome, RpcError};

/// A call that came to a result, be it that the tool said no.
pub(crate) fn of_reply(reply: CallReply) -> CallOutcome {
    let ToolResult { data, error, .. } = reply.result;
    match error {
        None => CallOutcome::text(text_of(&data), Some(structured(data)), false),
        Some(error) if data.is_null() || data == Value::String(error.clone()) => CallOutcome::failure(error),
        Some(error) => CallOutcome::failure(format!("{error}\n{data}")),
    }
}

/// A call that came to none. What a model can do something about is a result that says so.
pub(crate) fn of_error(error: CallError) -> Result<CallOutcome, RpcError> {
    use connections::ConnectionError as C;
    let text = error.to_string();
    match error {
        CallError::Ref(_)
        | CallError::UnknownReserved(_)
        | CallError::NotHere { .. }
        | CallError::UnknownOp(_)
        | CallError::ConnectionNotFound(_)
        | CallError::ActionNotFound(_)
        | CallError::Workflow(WorkflowError::NotFound(_) | WorkflowError::NotDeployed { .. }) => {
            Err(RpcError::Params(format!("Unknown tool: {text}")))
        }
        CallError::Store(store) | CallError::Workflow(WorkflowError::Store(store)) | CallError::Connection(C::Store(store))
            if !matches!(store, StoreError::Nul | StoreError::Conflict) =>
        {
            Err(RpcError::internal(&store))
        }
        CallError::Interrupted(_) | CallError::Connection(C::Sealed(_) | C::Interrupted(_)) => Err(RpcError::internal(&text)),
        _ => Ok(CallOutcome::failure(text)),
    }
}

fn text_of(data: &Value) -> String {
    match data {
        Value::Null => "Done; there is nothing to return.".to_owned(),
        Value::String(text) => text.clone(),
        data => data.to_string(),
    }
}

/// Structured content is an object in every revision before the newest, so anything else is put into one.
fn structured(data: Value) -> Value {
    match data {
        Value::Object(_) => data,
        Value::Null => json!({}),
        data => json!({"result": data}),
    }
}
