//! Several tools at once, side by side.

use std::time::Duration;

use futures_util::StreamExt;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Within;
use super::execute::completed;
use super::meta::MetaTool;
use crate::execute::ExecutedTool;
use crate::{ApiError, ComposioApi, Refusal};

const MAX_TOOLS: usize = 50;
/// How many run at a time.
const AT_ONCE: usize = 8;

/// What all of them came to, in the order in which they were asked for.
#[derive(Debug, Serialize)]
struct SeveralResults {
    results: Vec<OneResult>,
    total_count: usize,
    success_count: usize,
    error_count: usize,
}

#[derive(Debug, Serialize)]
struct OneResult {
    index: usize,
    tool_slug: String,
    response: OneResponse,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct OneResponse {
    successful: bool,
    data: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_id: Option<String>,
}

/// One call of several, as a model writes it.
#[derive(Debug)]
struct OneCall {
    slug: String,
    arguments: Map<String, Value>,
    account: Option<String>,
}

impl OneCall {
    fn read(value: &Value) -> Result<Self, Refusal> {
        let wrong = |what: &str| Refusal::bad_request(format!("Each of `tools` is an object with `tool_slug` and `arguments`: {what}."));
        let slug = value.get("tool_slug").and_then(Value::as_str).ok_or_else(|| wrong("`tool_slug` must be a text"))?;
        let arguments = match value.get("arguments") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(arguments)) => arguments.clone(),
            // Some models write objects as text.
            Some(Value::String(text)) => serde_json::from_str(text).map_err(|_| wrong("`arguments` must be an object"))?,
            Some(_) => return Err(wrong("`arguments` must be an object")),
        };
        let account = value.get("account").and_then(Value::as_str).map(str::to_owned);
        Ok(Self { slug: slug.to_owned(), arguments, account })
    }
}

impl ComposioApi {
    /// Runs several tools of a session. One that fails does not stop the others.
    pub(super) async fn execute_several(
        &self,
        session: &Within,
        arguments: &Map<String, Value>,
        limit: Duration,
    ) -> Result<ExecutedTool, ApiError> {
        let list = arguments.get("tools").and_then(Value::as_array).filter(|list| (1..=MAX_TOOLS).contains(&list.len()));
        let list = list.ok_or_else(|| Refusal::bad_request(format!("`tools` must be a list of 1 to {MAX_TOOLS} tools to call.")))?;
        let calls = list.iter().map(OneCall::read).collect::<Result<Vec<_>, _>>()?;
        let runs = calls.into_iter().enumerate().map(|(index, call)| self.execute_one(session, index, call, limit));
        let results: Vec<OneResult> = futures_util::stream::iter(runs).buffered(AT_ONCE).collect().await;
        let (total, failed) = (results.len(), results.iter().filter(|one| one.error.is_some()).count());
        let done = completed(SeveralResults { results, total_count: total, success_count: total - failed, error_count: failed });
        if failed == 0 {
            return Ok(done);
        }
        Ok(ExecutedTool { successful: false, error: Some(format!("{failed} of {total} tools failed.")), ..done })
    }

    async fn execute_one(&self, session: &Within, index: usize, call: OneCall, limit: Duration) -> OneResult {
        let OneCall { slug, arguments, account } = call;
        let ran = if MetaTool::is_one(&slug) {
            Ok(ExecutedTool::failed("A meta tool is called by itself, not among others."))
        } else {
            Box::pin(self.run_in_session(session, &slug, arguments, account.as_deref(), None, limit)).await.map(super::execute::Ran::told)
        };
        let done = ran.unwrap_or_else(|error| ExecutedTool::failed(said(&error)));
        let ExecutedTool { data, successful, error, log_id } = done;
        let response = OneResponse { successful, data, error: error.clone(), log_id };
        OneResult { index, tool_slug: slug, response, error }
    }
}

/// What failed, in words for the model. Our own failures are nobody's business.
fn said(error: &ApiError) -> String {
    match error {
        ApiError::Refused(refusal) => match &refusal.suggested_fix {
            Some(fix) => format!("{} {fix}", refusal.message),
            None => refusal.message.clone(),
        },
        ApiError::Store(_) | ApiError::Sealed(_) => {
            tracing::error!(%error, "a tool of several could not be run");
            "The server failed; try again.".to_owned()
        }
        other => other.to_string(),
    }
}
