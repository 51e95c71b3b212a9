//! Calls that wait for a person's word. Where the client can ask the person in front of it, and its key may approve, it is asked; else the
//! model is told whom to turn to.

use std::time::Duration;

use calls::{Approval, CallError, Calls};
use catalog::Catalog;
use connections::Connections;
use kernel::signed::Signer;
use kernel::{ApprovalId, Clock, Scope, Timestamp};
use serde_json::{Map, Value, json};
use uuid::Uuid;
use workflows::Workflows;

use crate::{Call, CallOutcome, RpcError};

/// The name of the question.
const APPROVAL: &str = "approval";
const PURPOSE: &str = "mcp-approval";
/// How long an answer is taken.
const GOOD_FOR: Duration = Duration::from_hours(1);
/// How much a person is shown of all arguments, and of one of them where they are longer together.
const MAX_SHOWN: usize = 2000;
const MAX_VALUE: usize = 200;

/// What surfaces call.
#[derive(Clone, Debug)]
pub struct Domains {
    pub clock: Clock,
    pub catalog: Catalog,
    pub connections: Connections,
    pub workflows: Workflows,
    pub calls: Calls,
}

/// Asks people, on behalf of one key.
#[derive(Clone, Debug)]
pub struct Approver {
    pub domains: Domains,
    pub scope: Scope,
    pub signer: Signer,
    /// Where approvals are decided.
    pub approvals_url: String,
    /// Whether the person in front of the client may decide.
    pub may_approve: bool,
}

impl Approver {
    /// Takes the person's word, where the call comes back with one. What is left to do without one is told.
    pub(crate) async fn hear(&self, call: &Call) -> Result<Option<CallOutcome>, RpcError> {
        let Some(answer) = call.inputs.get(APPROVAL) else { return Ok(None) };
        let id = self.asked_about(call.state.as_deref())?;
        let approved = match answer["action"].as_str() {
            Some("accept") => true,
            Some("decline") => false,
            _ => {
                let approval = self.domains.calls.approval(self.scope, id).await;
                return approval.map(|approval| Some(self.referral(&approval))).or_else(|error| crate::reply::of_error(error).map(Some));
            }
        };
        if !self.may_approve {
            return Err(RpcError::Params("This key may not approve calls.".to_owned()));
        }
        let note = answer.pointer("/content/note").and_then(Value::as_str).filter(|note| !note.trim().is_empty());
        match self.domains.calls.decide(self.scope, id, approved, note).await {
            // Somebody else was faster; the call itself will see what they said.
            Ok(_) | Err(CallError::Decided(_)) => Ok(None),
            Err(error) => crate::reply::of_error(error).map(Some),
        }
    }

    /// What a call that waits comes to.
    pub(crate) fn ask(&self, approval: &Approval, call: &Call) -> CallOutcome {
        if !(call.client.shows_forms() && self.may_approve) {
            return self.referral(approval);
        }
        // Nobody is asked about what they cannot see.
        let Some(arguments) = shown(&approval.arguments) else { return self.referral(approval) };
        let question = json!({
            "method": "elicitation/create",
            "params": {
                "message": format!("Allow this call?\n\n{}\n{arguments}", approval.call_ref),
                "requestedSchema": {
                    "type": "object",
                    "properties": {"note": {"type": "string", "title": "Note", "description": "Why; it is kept with the decision", "maxLength": 1000}},
                },
            },
        });
        CallOutcome::NeedsInput { requests: Map::from_iter([(APPROVAL.to_owned(), question)]), state: Some(self.state(approval.id)) }
    }

    /// Whom to turn to.
    fn referral(&self, approval: &Approval) -> CallOutcome {
        let mut told = approval.told(&self.approvals_url);
        CallOutcome::text(told.error.unwrap_or_default(), Some(told.data["details"].take()), true)
    }

    fn state(&self, approval: ApprovalId) -> String {
        let until = self.domains.clock.now().plus(GOOD_FOR).micros();
        self.signer.sign(json!([PURPOSE, approval, self.scope.key, until]).to_string().as_bytes())
    }

    /// The approval that this very key was asked about.
    fn asked_about(&self, state: Option<&str>) -> Result<ApprovalId, RpcError> {
        let bad = || RpcError::Params("`params.requestState` is not what this question came with, or too old.".to_owned());
        let payload = state.and_then(|state| self.signer.verify(state)).ok_or_else(bad)?;
        let payload: Value = serde_json::from_slice(&payload).map_err(|_| bad())?;
        let until = Timestamp::from_micros(payload[3].as_i64().unwrap_or_default());
        let is_ours = payload[0] == PURPOSE && payload[2] == json!(self.scope.key) && until > self.domains.clock.now();
        let id = payload[1].as_str().and_then(|id| id.parse::<Uuid>().ok()).filter(|_| is_ours);
        id.map(ApprovalId::from).ok_or_else(bad)
    }
}

/// The arguments as a person can judge them: every one is named, and what is cut says so. Nothing where there is too much to show.
fn shown(arguments: &Value) -> Option<String> {
    let whole = arguments.to_string();
    if whole.chars().nth(MAX_SHOWN).is_none() {
        return Some(whole);
    }
    let lines: Vec<String> = arguments
        .as_object()?
        .iter()
        .map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), shortened(&value.to_string())))
        .collect();
    Some(lines.join("\n")).filter(|shown| shown.chars().nth(MAX_SHOWN).is_none())
}

fn shortened(value: &str) -> String {
    match value.char_indices().nth(MAX_VALUE) {
        None => value.to_owned(),
        Some((end, _)) => format!("{} … {} more characters", &value[..end], value[end..].chars().count()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_sees_every_argument_and_what_was_cut() {
        assert_eq!(shown(&json!({"a": 1})).as_deref(), Some(r#"{"a":1}"#));
        let long = json!({"padding": "é".repeat(5000), "recipient": "eve@example.com", "amount": 1_000_000});
        let text = shown(&long).unwrap();
        assert!(text.contains("\"recipient\": \"eve@example.com\"") && text.contains("\"amount\": 1000000"), "{text}");
        assert!(text.contains("… 4802 more characters"), "{text}");
        assert!(text.chars().count() <= MAX_SHOWN);
        let lines = shown(&json!({"a\nrecipient: bob": "é".repeat(5000)})).unwrap();
        assert_eq!(lines.lines().count(), 1, "a name cannot pass for another line");
        let many: Map<String, Value> = (0..500).map(|at| (format!("argument_{at}"), json!("value"))).collect();
        assert_eq!(shown(&Value::Object(many)), None);
        assert_eq!(shown(&json!({"a".repeat(3000): 1})), None);
        assert_eq!(shown(&json!("x".repeat(3000))), None);
    }
}
