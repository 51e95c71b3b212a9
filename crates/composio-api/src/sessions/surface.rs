//! A session for clients of the Model Context Protocol: exactly the tools that it lists, under their slugs.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use futures_util::future::BoxFuture;
use kernel::Scope;
use mcp::{Call, CallOutcome, Page, RpcError, Surface};
use serde_json::{Value, json};

use super::{OpenSession, assistive_prompt};
use crate::execute::ExecutedTool;
use crate::page::Window;
use crate::tools::ToolDetails;
use crate::{ApiError, ComposioApi};

/// Many clients read the first page only, so it holds a lot.
const PAGE: &str = "200";

/// The tools of a session, as one key sees them.
#[derive(Clone, Debug)]
pub struct SessionSurface {
    api: ComposioApi,
    /// The key's own, which opens the session again whenever something is asked of it.
    scope: Scope,
    session: OpenSession,
    /// How long a tool may take.
    limit: Duration,
}

impl SessionSurface {
    pub fn new(api: ComposioApi, scope: Scope, session: OpenSession, limit: Duration) -> Self {
        Self { api, scope, session, limit }
    }

    async fn page(&self, cursor: Option<&str>) -> Result<Page, RpcError> {
        let window = Window::read(Some(PAGE), cursor, usize::MAX).map_err(|refusal| RpcError::Params(refusal.message))?;
        let page = self.api.session_tools(self.session.within(), window).await.map_err(|error| fault(&error))?;
        Ok(Page { tools: page.items.iter().map(definition).collect(), next: page.next_cursor })
    }

    async fn run(&self, call: Call) -> Result<CallOutcome, RpcError> {
        let ran = self.api.run_in_session(self.session.within(), &call.name, call.arguments, None, None, self.limit).await;
        match ran {
            Ok(ran) => Ok(outcome(ran.told())),
            // What a session does not have is unknown, whether it is elsewhere or not.
            Err(ApiError::Refused(refusal)) if matches!(refusal.status, 403 | 404) => Err(RpcError::Params(refusal.message)),
            Err(ApiError::Refused(refusal)) => {
                let fix = refusal.suggested_fix.map(|fix| format!(" {fix}")).unwrap_or_default();
                Ok(CallOutcome::failure(format!("{}{fix}", refusal.message)))
            }
            Err(error) => Err(fault(&error)),
        }
    }

    async fn look(&self) -> Result<u64, RpcError> {
        let session = self.api.open_session(self.scope, &self.session.within.id).await.map_err(|error| fault(&error))?;
        let listed = self.api.listed_slugs(session.within()).await.map_err(|error| fault(&error))?;
        let mut hasher = DefaultHasher::new();
        (session.row().config_version, listed).hash(&mut hasher);
        Ok(hasher.finish())
    }
}

fn fault(error: &ApiError) -> RpcError {
    match error {
        ApiError::Refused(refusal) => RpcError::Params(refusal.message.clone()),
        other => RpcError::internal(other),
    }
}

fn definition(tool: &ToolDetails) -> Value {
    let has = |tag: &str| tool.tags.contains(&tag);
    json!({
        "name": tool.slug,
        "title": format!("{}: {}", tool.toolkit.name, tool.name),
        "description": tool.description,
        "inputSchema": tool.input_parameters,
        "annotations": {"readOnlyHint": has("readOnlyHint"), "destructiveHint": has("destructiveHint"), "openWorldHint": true},
    })
}

fn outcome(done: ExecutedTool) -> CallOutcome {
    let ExecutedTool { data, successful, error, .. } = done;
    let (text, data) = (Value::Object(data.clone()).to_string(), Value::Object(data));
    match error {
        None if successful => CallOutcome::text(text, Some(data), false),
        error => {
            let error = error.unwrap_or_else(|| "The tool failed.".to_owned());
            let is_empty = data.as_object().is_none_or(serde_json::Map::is_empty);
            CallOutcome::failure(if is_empty { error } else { format!("{error}\n{text}") })
        }
    }
}

impl Surface for SessionSurface {
    fn instructions(&self) -> String {
        assistive_prompt(&self.session.within.config, None)
    }

    fn list<'a>(&'a self, cursor: Option<&'a str>) -> BoxFuture<'a, Result<Page, RpcError>> {
        Box::pin(self.page(cursor))
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<CallOutcome, RpcError>> {
        Box::pin(self.run(call))
    }

    fn fingerprint(&self) -> BoxFuture<'_, Result<u64, RpcError>> {
        Box::pin(self.look())
    }
}
