//! Running an action: Composio makes the call with the account that it keeps.

use calls::{Invocation, RunError, Runner, ToolResult};
use connections::ACCOUNT;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::Composio;
use crate::client::{ApiRequest, ComposioError};

/// What Composio says when there is no such account.
const NO_ACCOUNT: i64 = 1810;

impl Runner for Composio {
    fn run<'a>(&'a self, invocation: Invocation<'a>) -> BoxFuture<'a, Result<ToolResult, RunError>> {
        Box::pin(async move {
            let Invocation { integration, action, arguments, project, usable, .. } = invocation;
            let slug = action.remote.as_deref().unwrap_or(&action.key);
            let mut body = json!({"arguments": arguments, "user_id": project});
            if let Some(account) = usable.fields.get(ACCOUNT) {
                body["connected_account_id"] = json!(account);
            }
            let ask = ApiRequest::post(&["tools", "execute", slug], body)
                .within(self.settings.limit)
                .of(project)
                .circuit(format!("{project}/{}", integration.key));
            match self.client.ask(ask).await {
                Ok(reply) => read(reply),
                Err(fault) => {
                    if fault.is_missing() {
                        self.stale.notify_one();
                    }
                    Err(explained(fault))
                }
            }
        })
    }
}

/// Reads the envelope: a tool that ran and said no is a result too.
fn read(mut reply: Value) -> Result<ToolResult, RunError> {
    let odd = |what: &str| {
        let message =
            format!("Composio answered with something unreadable ({what}); check whether the call took effect before repeating it");
        Err(RunError::Lost(message))
    };
    let Some(successful) = reply.get("successful").and_then(Value::as_bool) else { return odd("without `successful`") };
    let error = match reply.get("error") {
        None | Some(Value::Null) => None,
        Some(Value::String(error)) => Some(error.clone()).filter(|error| !error.is_empty()),
        Some(_) => return odd("`error` is no text"),
    };
    let data = reply.get_mut("data").map(Value::take).unwrap_or_default();
    let error = if successful { None } else { Some(error.unwrap_or_else(|| "the tool failed and gave no reason".to_owned())) };
    Ok(ToolResult { data, error, status: None })
}

fn explained(fault: ComposioError) -> RunError {
    let words = fault.to_string();
    match fault {
        ComposioError::Refused { code: Some(NO_ACCOUNT), .. } | ComposioError::Refused { status: 422, .. } => RunError::Unauthorized(words),
        ComposioError::Refused { .. } | ComposioError::Resting(_) => RunError::Upstream(words),
        ComposioError::Server { status, message } => RunError::Server { status, message },
        ComposioError::Malformed(_) => RunError::Lost(format!("{words}; check whether the call took effect before repeating it")),
        ComposioError::TooMuch(_) => RunError::Lost(format!("{words} Check whether the call took effect before repeating it.")),
        ComposioError::Unreachable(error) => RunError::Unreachable(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_says_no_is_a_result_and_an_odd_envelope_is_not() {
        let ok = read(json!({"successful": true, "data": {"id": 1}, "error": null, "log_id": "log_1"})).unwrap();
        assert_eq!(ok, ToolResult::ok(json!({"id": 1})));
        let no = read(json!({"successful": false, "data": {}, "error": "no such channel"})).unwrap();
        assert_eq!(no, ToolResult::refused(json!({}), "no such channel", None));
        assert!(read(json!({"successful": false, "data": [1]})).unwrap().error.is_some());
        for odd in [json!({}), json!([]), json!("text"), json!({"successful": "yes"}), json!({"successful": true, "error": {"a": 1}})] {
            assert!(matches!(read(odd), Err(RunError::Lost(_))));
        }
    }
}
