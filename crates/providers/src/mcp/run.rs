//! Running an action: the tool of a live server.

use std::time::Instant;

use futures_util::future::BoxFuture;
use imports::Changed;
use serde_json::Value;
use tools::{Invocation, RunError, Runner, ToolResult};

use super::fault::Fault;
use super::session::ToolCall;
use super::target::{Server, authorization};
use super::{Mcp, result};
use crate::native::run::missing;

/// What servers answer when they do not know a tool.
const UNKNOWN: [i64; 2] = [-32601, -32602];

impl Runner for Mcp {
    fn run<'a>(&'a self, invocation: Invocation<'a>) -> BoxFuture<'a, Result<ToolResult, RunError>> {
        Box::pin(async move {
            let server = invocation.integration.service::<Server>().ok_or_else(|| missing(invocation))?;
            let tool = server.tools.get(&invocation.action.key).ok_or_else(|| missing(invocation))?;
            let called =
                tokio::time::timeout(self.limit, self.call(server, tool, invocation)).await.unwrap_or(Err(Fault::Late(self.limit)));
            let scrub = |words: &str| server.secrets.scrub(&invocation.usable.fields.scrub(words));
            match called.and_then(result::read) {
                Ok(result) => Ok(ToolResult { error: result.error.map(|words| scrub(&words)), ..result }),
                Err(fault) => {
                    if matches!(&fault, Fault::Rpc { code, .. } if UNKNOWN.contains(code)) {
                        // The list may be out of date.
                        let _ = self.changes.send(Changed { project: server.project, import: server.import, account: None });
                    }
                    Err(explained(fault, scrub))
                }
            }
        })
    }
}

impl Mcp {
    /// Calls a tool. A server that forgot us did nothing, so it is asked once more.
    async fn call(&self, server: &Server, tool: &str, invocation: Invocation<'_>) -> Result<Value, Fault> {
        let started = Instant::now();
        let account = authorization(&invocation.usable.fields);
        let call =
            || ToolCall { tool, arguments: invocation.arguments, schema: &invocation.action.input_schema, progress: invocation.progress };
        let session = self.sessions.get(server, invocation.connection, account.clone()).await?;
        match session.call(call(), self.limit.saturating_sub(started.elapsed())).await {
            Err(Fault::Forgotten) => {
                self.sessions.forget(server, invocation.connection, &account, &session).await;
                let session = self.sessions.get(server, invocation.connection, account).await?;
                session.call(call(), self.limit.saturating_sub(started.elapsed())).await
            }
            answered => answered,
        }
    }
}

fn explained(fault: Fault, scrub: impl Fn(&str) -> String) -> RunError {
    let words = scrub(&fault.to_string());
    match fault {
        Fault::Unauthorized { .. } => RunError::Unauthorized(words),
        Fault::Status(status) if status.is_server_error() => {
            RunError::Server { status: status.as_u16(), message: status.canonical_reason().unwrap_or("no reason given").to_owned() }
        }
        Fault::Unreachable(error) => RunError::Unreachable(error),
        Fault::Gone(_) | Fault::Late(_) => RunError::Lost(format!("{words}; check whether the call took effect before repeating it")),
        Fault::Rpc { .. }
        | Fault::Status(_)
        | Fault::Forgotten
        | Fault::NotStarted(_)
        | Fault::TooLarge(_)
        | Fault::LongList(_)
        | Fault::Unreadable(_) => RunError::Upstream(words),
    }
}
