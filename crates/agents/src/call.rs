//! Calling a tool as an agent: the toolset decides, then the call takes the walk of every other call.

use calls::{CallError, CallReply, CallRequest, OpRequest, OwnRoutes};
use definitions::Verdict;
use kernel::{CallName, CallRef, Scope};
use serde_json::{Map, Value};

use crate::toolset::{Grants, ToolOwner};
use crate::{AgentError, AgentRef, Agents};

/// A call that an agent makes.
#[derive(Clone, Debug, Default)]
pub struct AgentCall {
    pub request: CallRequest,
    /// What the run decides for platform ops: `workflow`, `session` and so on.
    pub context: Map<String, Value>,
}

impl Agents {
    /// Calls a tool by its ref or by its name in the toolset. What the toolset leaves out does not run, and is recorded as refused.
    #[kernel::boxed]
    pub async fn call(&self, scope: Scope, agent: AgentRef, call: AgentCall, routes: &dyn OwnRoutes) -> Result<CallReply, AgentError> {
        let grants = self.grants(scope, agent).await?;
        self.call_granted(scope, &grants, call, routes).await
    }

    /// The same for whoever's tools they are.
    #[kernel::boxed]
    pub async fn call_of(&self, scope: Scope, owner: &ToolOwner, call: AgentCall, routes: &dyn OwnRoutes) -> Result<CallReply, AgentError> {
        let grants = self.grants_of(scope, owner).await?;
        self.call_granted(scope, &grants, call, routes).await
    }

    async fn call_granted(&self, scope: Scope, grants: &Grants, call: AgentCall, routes: &dyn OwnRoutes) -> Result<CallReply, AgentError> {
        let AgentCall { mut request, context } = call;
        request.origin.agent = grants.agent();
        let target = match grants.target(&request.name) {
            Ok(target) => target,
            Err(error) => {
                self.0.calls.record_refusal(scope, &request.name, &error.to_string(), request.origin).await;
                return Err(CallError::from(error).into());
            }
        };
        let verdict = match grants.decide(&target) {
            Ok(verdict) => verdict,
            Err(reason) => {
                self.0.calls.record_refusal(scope, &CallName::from(target), &reason.to_string(), request.origin).await;
                return Err(AgentError::Refused(reason));
            }
        };
        let permission = request.permission.max(Some(verdict)).filter(|verdict| *verdict != Verdict::Allow);
        match target {
            CallRef::Reserved { op } => self.call_op(scope, op, CallRequest { permission, ..request }, context, routes).await,
            target => Ok(self.0.calls.call(scope, CallRequest { name: target.into(), permission, ..request }).await?),
        }
    }

    async fn call_op(
        &self,
        scope: Scope,
        op: String,
        request: CallRequest,
        context: Map<String, Value>,
        routes: &dyn OwnRoutes,
    ) -> Result<CallReply, AgentError> {
        if request.idempotency_key.is_some() {
            return Err(CallError::Arguments("A platform op takes no Idempotency-Key.".to_owned()).into());
        }
        let request = OpRequest {
            op,
            arguments: calls::read_arguments(request.arguments)?,
            context: Value::Object(context),
            permission: request.permission,
            in_test: request.in_test,
            limit: request.limit,
            origin: request.origin,
        };
        Ok(self.0.calls.op(scope, request, routes).await?)
    }
}
