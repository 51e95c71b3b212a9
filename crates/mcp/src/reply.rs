//! From what a call came to, to what a client reads.

use serde_json::{Value, json};
use store::StoreError;
use tools::{CallError, CallReply, ToolResult};
use workflows::WorkflowError;

use crate::{Fault, Outcome};

/// A call that came to a result, be it that the tool said no.
pub(crate) fn of_reply(reply: CallReply) -> Outcome {
    let ToolResult { data, error, .. } = reply.result;
    match error {
        None => Outcome::text(text_of(&data), Some(structured(data)), false),
        Some(error) if data.is_null() || data == Value::String(error.clone()) => Outcome::failure(error),
        Some(error) => Outcome::failure(format!("{error}\n{data}")),
    }
}

/// A call that came to none. What a model can do something about is a result that says so.
pub(crate) fn of_error(error: CallError) -> Result<Outcome, Fault> {
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
            Err(Fault::Params(format!("Unknown tool: {text}")))
        }
        CallError::Store(store) | CallError::Workflow(WorkflowError::Store(store)) | CallError::Connection(C::Store(store))
            if !matches!(store, StoreError::Nul | StoreError::Conflict) =>
        {
            Err(Fault::internal(&store))
        }
        CallError::Interrupted(_) | CallError::Connection(C::Sealed(_) | C::Interrupted(_)) => Err(Fault::internal(&text)),
        _ => Ok(Outcome::failure(text)),
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
