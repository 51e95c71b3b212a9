//! What the protocol's own conformance suite wants to find on a server: tools, prompts and resources that mean nothing. It is a surface like
//! any other, without a project behind it, and is mounted only where the operator asks for it.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use kernel::signed::Signer;
use serde_json::{Map, Value, json};

use crate::{Call, CallOutcome, Page, RpcError, Surface};

/// `tools` and `prompts` by name: a definition, what is asked of the client in each round, and the result; `lists`: the results of the rest.
static FIXTURES: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(include_str!("conformance.json")).unwrap_or_default());

/// The fixtures of the conformance suite.
#[derive(Debug)]
pub struct Conformance {
    signer: Signer,
    changes: AtomicU64,
}

impl Conformance {
    pub fn new(signer: Signer) -> Self {
        Self { signer, changes: AtomicU64::new(0) }
    }

    async fn play(&self, fixture: &Value, call: &Call) -> Result<CallOutcome, RpcError> {
        match call.name.as_str() {
            "test_tool_with_progress" => {
                for done in [0.0, 50.0, 100.0] {
                    call.progress.tell(calls::ProgressStep { done, total: Some(100.0), message: None });
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            "test_trigger_tool_change" => {
                self.changes.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
        let rounds = fixture["rounds"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_signed = fixture["signed"] == true;
        let mut round = if is_signed { self.round(call.state.as_deref())? } else { 0 };
        if rounds.get(round).is_some_and(|asked| is_answered(asked, &call.inputs)) {
            round += 1;
        }
        let Some(asked) = rounds.get(round).and_then(Value::as_object) else { return Ok(CallOutcome::Done(fields(&fixture["result"]))) };
        let mut requests = asked.clone();
        if fixture["only_declared"] == true {
            requests
                .retain(|_, request| call.client.can(request["method"].as_str().unwrap_or_default().split('/').next().unwrap_or_default()));
        }
        let state = is_signed.then(|| self.signer.sign(format!("mcp-conformance:{round}").as_bytes()));
        Ok(CallOutcome::NeedsInput { requests, state })
    }

    fn round(&self, state: Option<&str>) -> Result<usize, RpcError> {
        let Some(state) = state else { return Ok(0) };
        let payload = self.signer.verify(state).and_then(|payload| String::from_utf8(payload).ok());
        let round = payload.as_deref().and_then(|payload| payload.strip_prefix("mcp-conformance:")?.parse().ok());
        round.ok_or_else(|| RpcError::Params("`params.requestState` was changed.".to_owned()))
    }
}

impl Surface for Conformance {
    fn instructions(&self) -> String {
        "Fixtures of the conformance suite.".to_owned()
    }

    fn list<'a>(&'a self, _cursor: Option<&'a str>) -> BoxFuture<'a, Result<Page, RpcError>> {
        let tools = FIXTURES["tools"].as_object().into_iter().flatten();
        let tools = tools.map(|(name, fixture)| {
            let mut definition = json!({"name": name, "description": name, "inputSchema": {"type": "object"}});
            if let Some(schema) = fixture.get("schema") {
                definition["inputSchema"] = schema.clone();
            }
            definition
        });
        let page = Page { tools: tools.collect(), next: None };
        Box::pin(async move { Ok(page) })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<CallOutcome, RpcError>> {
        Box::pin(async move {
            let fixture = FIXTURES["tools"].get(&call.name).ok_or_else(|| RpcError::Params(format!("Unknown tool: {}", call.name)))?;
            self.play(fixture, &call).await
        })
    }

    fn fingerprint(&self) -> BoxFuture<'_, Result<u64, RpcError>> {
        Box::pin(async { Ok(self.changes.load(Ordering::Relaxed)) })
    }

    fn watch_every(&self) -> Duration {
        Duration::from_millis(50)
    }

    fn capabilities(&self) -> Value {
        json!({"tools": {"listChanged": true}, "prompts": {}, "resources": {}})
    }

    fn mirrored_schema(&self, tool: &str) -> Option<Value> {
        FIXTURES["tools"].get(tool)?.get("schema").cloned()
    }

    fn other<'a>(&'a self, method: &'a str, call: Call) -> BoxFuture<'a, Result<CallOutcome, RpcError>> {
        Box::pin(async move {
            let found = match method {
                "prompts/get" => FIXTURES["prompts"].get(&call.name),
                "resources/read" => FIXTURES["resources"].get(&call.name),
                _ => {
                    let list = FIXTURES["lists"].get(method).ok_or_else(|| RpcError::Method(method.to_owned()))?;
                    return Ok(CallOutcome::Done(fields(list)));
                }
            };
            let fixture = found.ok_or_else(|| RpcError::Params(format!("There is no {}.", call.name)))?;
            self.play(fixture, &call).await
        })
    }
}

fn is_answered(asked: &Value, inputs: &Map<String, Value>) -> bool {
    asked.as_object().is_some_and(|asked| asked.keys().all(|name| inputs.contains_key(name)))
}

fn fields(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_fixtures_can_be_read() {
        assert!(super::FIXTURES["tools"].as_object().is_some_and(|tools| tools.len() > 20));
    }
}
