//! `Idempotency-Key`: a call repeated under the same key returns the first result and runs nothing.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use kernel::json::sorted;
use kernel::{CallId, CallRef, ProjectId, Scope};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use store::{StoreError, args};

use crate::call::Call;
use crate::{CallError, CallReply, Calls, ToolResult, UpstreamKey};

pub(crate) const KEPT_FOR: Duration = Duration::from_hours(24);
const MAX_KEY: usize = 255;

/// A place taken under a key, to be filled with the reply.
#[derive(Debug)]
pub(crate) struct Reservation {
    project: ProjectId,
    name: String,
    call: CallId,
}

/// What becomes of a call whose key an earlier try took, where nobody knows how that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resumes {
    /// The earlier try may be under way, so this one is refused.
    #[default]
    Never,
    /// It is made again if the earlier try was not sent. That one is not sent any more.
    IfUnsent,
    /// It is made again: the earlier try has certainly ended, and a repetition does no harm.
    Always,
}

/// What is known about a key.
#[derive(Debug)]
pub(crate) enum KeyState {
    /// Nothing: this call is the first.
    First(Reservation),
    /// The first call's reply.
    Done(CallReply),
}

impl Calls {
    pub(crate) async fn reserve(&self, call: &Call, key: &str, id: CallId) -> Result<KeyState, CallError> {
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(CallError::Arguments(format!("Idempotency-Key must have 1 to {MAX_KEY} characters")));
        }
        // Two keys of one project do not share results, nor do two end users of one key: each sees only what was called for it.
        let project = call.scope.project;
        let name = stored_name(call, key);
        // What we do ourselves is not noted when it begins, so it may have been done.
        let is_unsent = !matches!(call.target, CallRef::Reserved { .. });
        let print = fingerprint(&call.target.to_string(), &Value::Object(call.arguments.clone()));
        let now = self.0.clock.now();
        let mut tx = self.0.db.begin().await?;
        tx.execute("delete from tool_idempotency where project_id = $1 and created_at < $2", args![project, now.minus(KEPT_FOR)]).await?;
        let sql = "insert into tool_idempotency (project_id, name, fingerprint, call_id, created_at, is_unsent) values ($1, $2, $3, $4, $5, $6) \
                   on conflict (project_id, name) do nothing";
        let first = tx.execute(sql, args![project, name.as_str(), print.as_slice(), id, now, is_unsent]).await? == 1;
        if first {
            tx.commit().await?;
            return Ok(KeyState::First(Reservation { project, name, call: id }));
        }
        let sql = "select fingerprint, call_id, reply from tool_idempotency where project_id = $1 and name = $2";
        let row = tx.optional(sql, args![project, name.as_str()]).await?;
        tx.commit().await?;
        let Some(row) = row else {
            return Err(CallError::InProgress("The first call with this Idempotency-Key just ended. Try again.".to_owned()));
        };
        if row.get::<Vec<u8>>("fingerprint")? != print {
            return Err(CallError::KeyReused("This Idempotency-Key was used with another call.".to_owned()));
        }
        match row.get::<Option<Value>>("reply")? {
            Some(reply) => Ok(KeyState::Done(read(call, row.get("call_id")?, &reply))),
            None if self.take_over(call, &name, id).await? => Ok(KeyState::First(Reservation { project, name, call: id })),
            None => Err(CallError::InProgress(
                "The first call with this Idempotency-Key has not ended, or its outcome is not known. It is not run again.".to_owned(),
            )),
        }
    }

    /// Takes the key from an earlier try, where the call may be made again. A call that was not sent by then is not sent by its first try.
    async fn take_over(&self, call: &Call, name: &str, id: CallId) -> Result<bool, StoreError> {
        let also_sent = match call.resumes {
            Resumes::Never => return Ok(false),
            Resumes::IfUnsent => false,
            Resumes::Always => true,
        };
        // What was intended may have been sent although that was not noted: the intention survives a loss of power, the note may not.
        let sql = "update tool_idempotency set call_id = $3, created_at = $4 where project_id = $1 and name = $2 and reply is null \
                   and ($5 or (is_unsent and not exists (select 1 from tool_calls as c where c.project_id = $1 and c.id = tool_idempotency.call_id)))";
        Ok(self.0.db.execute(sql, args![call.scope.project, name, id, self.0.clock.now(), also_sent]).await? == 1)
    }

    /// Notes that a call is sent now, under the key that it has. Its intention is written before.
    pub(crate) async fn note_sent(&self, call: &Call, id: CallId) -> Result<(), CallError> {
        let Some(key) = &call.idempotency_key else { return Ok(()) };
        let sql = "update tool_idempotency set is_unsent = false where project_id = $1 and name = $2 and call_id = $3";
        match self.0.db.execute(sql, args![call.scope.project, stored_name(call, key), id]).await? {
            0 => Err(CallError::InProgress("A later try has taken over this Idempotency-Key. This one was not sent.".to_owned())),
            _ => Ok(()),
        }
    }

    /// Keeps the reply of the first call; a call that never reached its target frees the key.
    pub(crate) async fn settle(&self, reservation: Reservation, reply: Option<&CallReply>) -> Result<(), StoreError> {
        let Reservation { project, name, call } = reservation;
        match reply {
            Some(reply) => {
                let text =
                    json!({"data": reply.result.data, "error": reply.result.error, "status": reply.result.status, "at": reply.at.micros()});
                let sql = "update tool_idempotency set reply = $4 where project_id = $1 and name = $2 and call_id = $3";
                self.0.db.execute(sql, args![project, name, call, &text]).await?;
            }
            None => {
                self.0
                    .db
                    .execute(
                        "delete from tool_idempotency where project_id = $1 and name = $2 and call_id = $3",
                        args![project, name, call],
                    )
                    .await?;
            }
        }
        Ok(())
    }
}

fn read(call: &Call, id: CallId, reply: &Value) -> CallReply {
    let error = reply["error"].as_str().map(str::to_owned);
    let at = kernel::Timestamp::from_micros(reply["at"].as_i64().unwrap_or_default());
    let status = reply["status"].as_u64().and_then(|status| u16::try_from(status).ok());
    let result = ToolResult { data: reply["data"].clone(), error, status };
    CallReply { id, at, result, is_gateway: call.is_gateway(), waits_for: None, account: None }
}

/// The key that a service gets to know a repetition by: the same for the same call under the same key of its caller, new for a call
/// without one. It has the form of a UUID, because some services take no more than that.
pub(crate) struct CallKey<'a> {
    call: &'a Call,
    made: OnceLock<String>,
}

impl<'a> CallKey<'a> {
    pub(crate) fn of(call: &'a Call) -> Self {
        Self { call, made: OnceLock::new() }
    }
}

impl UpstreamKey for CallKey<'_> {
    fn get(&self) -> &str {
        self.made.get_or_init(|| upstream_key(self.call))
    }
}

impl fmt::Debug for CallKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallKey").field(&self.made).finish()
    }
}

fn upstream_key(call: &Call) -> String {
    let caller = match &call.idempotency_key {
        Some(key) => format!("{}:{}:{key}", call.scope.project, caller(&call.scope)),
        None => CallId::new().to_string(),
    };
    let print = fingerprint(&call.target.to_string(), &Value::Object(call.arguments.clone()));
    let digest = Sha256::new().chain_update(caller).chain_update([0]).chain_update(print).finalize();
    let bytes: [u8; 16] = std::array::from_fn(|index| digest[index]);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}

/// What a key is kept under: its caller's name for it, with the caller.
fn stored_name(call: &Call, key: &str) -> String {
    format!("{}:{key}", caller(&call.scope))
}

/// Who calls, and for whom.
fn caller(scope: &Scope) -> String {
    match scope.end_user() {
        None => scope.key.to_string(),
        Some(end_user) => format!("{}/{end_user}", scope.key),
    }
}

/// The fingerprint of a call for one end user; no other's has it.
pub(crate) fn fingerprint_for(scope: Scope, call_ref: &str, arguments: &Value) -> Vec<u8> {
    let print = fingerprint(call_ref, arguments);
    match scope.end_user() {
        None => print,
        Some(end_user) => Sha256::new().chain_update(print).chain_update(end_user.uuid()).finalize().to_vec(),
    }
}

pub(crate) fn fingerprint(call_ref: &str, arguments: &Value) -> Vec<u8> {
    Sha256::new().chain_update(call_ref).chain_update([0]).chain_update(sorted(arguments).to_string()).finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_means_nothing() {
        let one = fingerprint("x", &json!({"a": 1, "b": {"c": [1, 2], "d": 2}}));
        assert_eq!(one, fingerprint("x", &json!({"b": {"d": 2, "c": [1, 2]}, "a": 1})));
        assert_ne!(one, fingerprint("x", &json!({"b": {"d": 2, "c": [2, 1]}, "a": 1})));
        assert_ne!(one, fingerprint("y", &json!({"a": 1, "b": {"c": [1, 2], "d": 2}})));
    }
}
