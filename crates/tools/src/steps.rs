//! The calls of workflow steps: tools like any others, made with the permissions of whoever runs the workflow.

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use kernel::Permission;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;
use workflows::{StepCall, StepCaller, StepError};

use crate::{CallError, CallRequest, Parts, Tools};

/// Knows the tools without keeping them alive: they hold the workflows that hold this.
#[derive(Debug)]
pub(crate) struct Caller(Weak<Parts>);

impl Caller {
    pub(crate) fn new(tools: &Tools) -> Self {
        Self(Arc::downgrade(&tools.0))
    }
}

impl StepCaller for Caller {
    fn call(&self, call: StepCall) -> BoxFuture<'_, Result<Value, StepError>> {
        Box::pin(async move {
            let tools = Tools(self.0.upgrade().ok_or_else(|| "the server is stopping".to_owned())?);
            if !call.scope.may(Permission::RunTools) {
                return Err(format!("this key lacks `{}`", Permission::RunTools).into());
            }
            let request = CallRequest {
                name: call.name,
                arguments: Value::Object(call.arguments),
                idempotency_key: call.idempotency_key,
                depth: call.depth,
                in_test: call.in_test,
                resumes: call.resumes,
                ..CallRequest::default()
            };
            // A task of its own, so that workflows inside workflows do not pile up on one stack; it ends with its caller.
            let work = async move { tools.call(call.scope, request).await };
            let reply = AbortOnDropHandle::new(tokio::spawn(work.in_current_span())).await.map_err(|error| error.to_string())?;
            let reply = reply.map_err(|error| match error {
                CallError::Waiting(_) => StepError::Waiting(error.to_string()),
                other => StepError::Failed(other.to_string()),
            })?;
            match reply.result.error {
                None => Ok(reply.result.data),
                Some(error) if reply.is_waiting => Err(StepError::Waiting(error)),
                Some(error) => Err(StepError::Failed(error)),
            }
        })
    }
}
