//! Running an action: the tool of a live server.

use std::sync::Arc;
use std::time::Instant;

use calls::{Invocation, Progress, ProgressStep, RunError, Runner, ToolResult};
use futures_util::future::BoxFuture;
use imports::Changed;
use kernel::Scrubber;
use kernel::json::size;
use mcp_wire::code;
use serde_json::Value;
use work::{LARGE, WorkError};

use crate::fault::ServerError;
use crate::reader::Reader;
use crate::session::ToolCall;
use crate::target::{Server, authorization};
use crate::{Mcp, result};

/// What servers answer when they do not know a tool.
const UNKNOWN: [i64; 2] = [code::METHOD_NOT_FOUND, code::INVALID_PARAMS];

impl Runner for Mcp {
    fn run<'a>(&'a self, invocation: Invocation<'a>) -> BoxFuture<'a, Result<ToolResult, RunError>> {
        Box::pin(async move {
            let server = invocation.integration.service::<Server>().ok_or_else(|| missing(invocation))?;
            let tool = server.tools.get(&invocation.action.key).ok_or_else(|| missing(invocation))?;
            let secrets = Arc::new(server.secrets.and(invocation.usable.scrubber()));
            let progress = without(invocation.progress, &secrets);
            let invocation = Invocation { progress: &progress, ..invocation };
            let called =
                tokio::time::timeout(self.limit, self.call(server, tool, invocation)).await.unwrap_or(Err(ServerError::Late(self.limit)));
            let result = match called {
                Ok(answer) => {
                    let (reader, scrubber) = (Reader::new(self.ground.workers.clone(), server.project), secrets.clone());
                    reader.work(size(&answer, LARGE), move |budget| result::read(answer, &scrubber, budget)).await
                }
                Err(fault) => Err(fault),
            };
            match result {
                Ok(result) => Ok(result),
                Err(fault) => {
                    if matches!(&fault, ServerError::Rpc { code, .. } if UNKNOWN.contains(code)) {
                        // The list may be out of date.
                        let _ = self.changes.send(Changed { project: server.project, import: server.import, account: None });
                    }
                    Err(explained(fault, &secrets))
                }
            }
        })
    }
}

impl Mcp {
    /// Calls a tool. A server that forgot us did nothing, so it is asked once more.
    async fn call(&self, server: &Server, tool: &str, invocation: Invocation<'_>) -> Result<Value, ServerError> {
        let started = Instant::now();
        let account = authorization(&invocation.usable.fields);
        let call =
            || ToolCall { tool, arguments: invocation.arguments, schema: &invocation.action.input_schema, progress: invocation.progress };
        let session = self.sessions.get(server, invocation.connection, account.clone()).await?;
        match session.call(call(), self.limit.saturating_sub(started.elapsed())).await {
            Err(ServerError::Forgotten) => {
                self.sessions.forget(server, invocation.connection, &account, &session).await;
                let session = self.sessions.get(server, invocation.connection, account).await?;
                session.call(call(), self.limit.saturating_sub(started.elapsed())).await
            }
            answered => answered,
        }
    }
}

/// Passes on how far a call is, without the secrets that the server was given.
fn without(progress: &Progress, secrets: &Arc<Scrubber>) -> Progress {
    if !progress.is_wanted() {
        return Progress::default();
    }
    let (progress, secrets) = (progress.clone(), secrets.clone());
    Progress::to(move |step| {
        let message = step.message.map(|words| secrets.cut_text(&words));
        progress.tell(ProgressStep { message, ..step });
    })
}

fn missing(invocation: Invocation<'_>) -> RunError {
    RunError::Upstream(format!("`{}` is not here any more", invocation.action.key))
}

fn explained(fault: ServerError, secrets: &Scrubber) -> RunError {
    let words = secrets.cut_text(&fault.to_string());
    match fault {
        ServerError::Unauthorized { .. } => RunError::Unauthorized(words),
        ServerError::Status(status) if status.is_server_error() => {
            RunError::Server { status: status.as_u16(), message: status.canonical_reason().unwrap_or("no reason given").to_owned() }
        }
        ServerError::Unreachable(error) => RunError::Unreachable(error),
        ServerError::Gone(_) | ServerError::Late(_) => {
            RunError::Lost(format!("{words}; check whether the call took effect before repeating it"))
        }
        ServerError::TooMuch(WorkError::Exceeded(_)) => {
            RunError::Upstream(format!("{words} Ask for less, for example with a smaller page."))
        }
        ServerError::Rpc { .. }
        | ServerError::Status(_)
        | ServerError::Forgotten
        | ServerError::NotStarted(_)
        | ServerError::TooLarge(_)
        | ServerError::LongList(_)
        | ServerError::Unreadable(_)
        | ServerError::TooMuch(_) => RunError::Upstream(words),
    }
}
