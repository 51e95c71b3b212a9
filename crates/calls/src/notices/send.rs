//! Telling: beside the call that waits, in a few tries, and the end of it is written to the notice. Until then its row is there (`to_send`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use egress::webhook;
use futures_util::future::join_all;
use kernel::template::Template;
use kernel::{ApprovalId, Budget, KeyedLock, NoticeId, Permission, ProjectId, Scope};
use serde_json::{Map, Value};
use store::args;
use work::LARGE;

use super::message::{self, Message};
use super::to_send::ToSend;
use super::{Notice, NoticeWay, place};
use crate::{CallError, CallRequest, Calls};

/// How long is waited before the second try, and before the third.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(3)];
const TIMEOUT: Duration = Duration::from_secs(10);
/// As much of an answer as is read; nothing is done with it.
const MAX_ANSWER: usize = 4 << 10;
const MAX_ERROR: usize = 500;
/// How many approvals may wait in this process for the turn of one notice; the others are left for later.
const MAX_BEHIND: usize = 100;

/// Whose turn it is: a notice tells one thing at a time, so that one whose receiver is slow holds up no other.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    locks: KeyedLock<NoticeId>,
    waiting: Arc<Mutex<HashMap<NoticeId, usize>>>,
}

/// A place among those that wait for a notice.
struct Place {
    notice: NoticeId,
    waiting: Arc<Mutex<HashMap<NoticeId, usize>>>,
}

impl Turns {
    /// A place, if the notice is not too far behind.
    fn place(&self, notice: NoticeId) -> Option<Place> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let many = waiting.entry(notice).or_default();
        if *many >= MAX_BEHIND {
            return None;
        }
        *many += 1;
        Some(Place { notice, waiting: self.waiting.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(many) = waiting.get_mut(&self.notice) {
            *many -= 1;
            if *many == 0 {
                waiting.remove(&self.notice);
            }
        }
    }
}

/// Why somebody was not told.
struct Untold {
    message: String,
    /// Whether another try may help.
    may_pass: bool,
}

impl Untold {
    fn certain(message: impl Into<String>) -> Self {
        Self { message: message.into(), may_pass: false }
    }

    fn passing(message: impl Into<String>) -> Self {
        Self { message: message.into(), may_pass: true }
    }
}

impl From<CallError> for Untold {
    fn from(error: CallError) -> Self {
        let may_pass = matches!(error, CallError::Upstream { uncertain: false, .. } | CallError::Store(_) | CallError::NotRecorded(_));
        Self { message: error.to_string(), may_pass }
    }
}

impl Calls {
    /// Tells whoever wants to know that a call waits. The call does not wait for that.
    pub(crate) fn announce(&self, project: ProjectId, approval: ApprovalId) {
        let (calls, stop) = (self.clone(), self.0.stop.clone());
        let telling = async move {
            match calls.left_of(project, approval).await {
                Ok(left) => {
                    join_all(left.into_iter().map(|one| calls.tell(one))).await;
                }
                Err(error) => tracing::warn!(%approval, %error, "nobody could be told yet that a call waits"),
            }
        };
        self.0.tasks.spawn(async move { stop.run_until_cancelled(telling).await });
    }

    /// Where a person decides about an approval.
    #[kernel::boxed]
    pub async fn page_of(&self, project: ProjectId, approval: ApprovalId) -> Result<String, CallError> {
        let row = self.0.db.optional("select slug from projects where id = $1", args![project]).await?;
        let slug: String = row.map_or(Ok(String::new()), |row| row.get("slug"))?;
        Ok((self.0.approval_address)(&self.0.public_url, &slug, approval))
    }

    /// Tells somebody, in up to three tries. What cannot be told now because the database fails, or because too much waits before it, is left
    /// for later.
    pub(super) async fn tell(&self, one: ToSend) {
        if let Err(error) = self.tell_in_turn(one).await {
            tracing::warn!(approval = %one.approval, notice = %one.notice, %error, "somebody could not be told yet that a call waits");
        }
    }

    async fn tell_in_turn(&self, one: ToSend) -> Result<(), CallError> {
        let Some(_place) = self.0.notice_turns.place(one.notice) else { return Ok(()) };
        let _turn = self.0.notice_turns.locks.lock(&one.notice).await;
        if !self.keep_taken(one).await? {
            return Ok(());
        }
        let notice = self.notice(one.project, one.notice).await?;
        if let Some(message) = self.message_about(one.project, one.approval).await? {
            let told = self.tell_in_tries(&notice, &message).await;
            self.note_end(&notice, told.err().map(|untold| untold.message)).await;
        }
        Ok(self.settle_notice(one).await?)
    }

    async fn tell_in_tries(&self, notice: &Notice, message: &Message) -> Result<(), Untold> {
        let mut told = self.tell_once(notice, message).await;
        for pause in PAUSES {
            if !told.as_ref().is_err_and(|untold| untold.may_pass) {
                break;
            }
            tokio::time::sleep(pause).await;
            told = self.tell_once(notice, message).await;
        }
        told
    }

    /// What is to be said of an approval; nothing once it is decided or over, because then nobody has to be told.
    async fn message_about(&self, project: ProjectId, approval: ApprovalId) -> Result<Option<Message>, CallError> {
        let sql =
            "select call_ref, expires_at from tool_approvals where project_id = $1 and id = $2 and status = 'pending' and expires_at > $3";
        let Some(row) = self.0.db.optional(sql, args![project, approval, self.0.clock.now()]).await? else { return Ok(None) };
        let url = self.page_of(project, approval).await?;
        Ok(Some(Message { id: approval, call_ref: row.get("call_ref")?, url, expires_at: row.get("expires_at")?, is_test: false }))
    }

    /// Tells somebody about no call, once; what went wrong, if something did.
    #[kernel::boxed]
    pub async fn test_notice(&self, scope: Scope, id: NoticeId) -> Result<Option<String>, CallError> {
        let notice = self.notice(scope.project, id).await?;
        let mut message = Message::test(String::new(), self.0.clock.now());
        message.url = self.page_of(scope.project, message.id).await?;
        let error = self.tell_once(&notice, &message).await.err().map(|untold| shortened(&untold.message));
        self.note_end(&notice, error.clone()).await;
        Ok(error)
    }

    async fn note_end(&self, notice: &Notice, error: Option<String>) {
        let error = error.as_deref().map(shortened);
        if let Some(error) = &error {
            tracing::info!(notice = %notice.id, error, "somebody could not be told that a call waits");
        }
        let sql = "update approval_notices set last_error = $3, last_at = $4 where project_id = $1 and id = $2";
        if let Err(error) = self.0.db.execute(sql, args![notice.project, notice.id, error, self.0.clock.now()]).await {
            tracing::warn!(notice = %notice.id, %error, "the end of a notice could not be written");
        }
    }

    async fn tell_once(&self, notice: &Notice, message: &Message) -> Result<(), Untold> {
        match &notice.way {
            NoticeWay::Webhook { url } => self.post_notice(notice, url, message).await,
            NoticeWay::Tool { call_ref, arguments } => Box::pin(self.call_notice(notice, call_ref, arguments, message)).await,
        }
    }

    async fn post_notice(&self, notice: &Notice, url: &str, message: &Message) -> Result<(), Untold> {
        let url = url.parse().map_err(|_| Untold::certain("Its address is none."))?;
        let sealed = notice.secret.as_deref().unwrap_or_default();
        let secret = self.0.sealer.open(sealed, place(notice.id)).map_err(|error| Untold::certain(format!("Its secret {error}.")))?;
        let now = self.0.clock.now();
        let id = format!("{}.{}", message.id, notice.id);
        let request = webhook::post(url, &String::from_utf8_lossy(&secret), &id, now.seconds(), message.body(now));
        let request = request.timeout(TIMEOUT).max_response(MAX_ANSWER);
        let answer = self.0.egress.send(request).await.map_err(|error| Untold::passing(format!("It could not be reached: {error}.")))?;
        if answer.status.is_success() {
            Ok(())
        } else {
            Err(Untold::passing(format!("It answered with status {}.", answer.status.as_u16())))
        }
    }

    /// Calls a tool as whoever saved the notice, with what they may do now. It asks nobody, so it cannot make a question about a question.
    async fn call_notice(&self, notice: &Notice, call_ref: &str, arguments: &Map<String, Value>, message: &Message) -> Result<(), Untold> {
        let acting =
            self.0.accounts.acting(notice.project, notice.key, notice.user).await.map_err(|error| Untold::from(CallError::from(error)))?;
        let Some(scope) = acting else {
            return Err(Untold::certain("The key that saved this notice is revoked. Make the notice again with another key."));
        };
        if !scope.may(Permission::RunTools) {
            return Err(Untold::certain("Whoever saved this notice may not call tools any more."));
        }
        let filled = self.fill(notice.project, message::template(arguments)?, message).await.map_err(Untold::certain)?;
        let request = CallRequest {
            name: call_ref.to_owned().into(),
            arguments: Value::Object(filled),
            idempotency_key: Some(format!("notice:{}:{}", notice.id, message.id)),
            never_asks: true,
            ..CallRequest::default()
        };
        let reply = self.call(scope, request).await?;
        match reply.result.error {
            None => Ok(()),
            Some(error) => Err(Untold::certain(error)),
        }
    }

    /// The arguments with what the message says.
    pub(super) async fn fill(&self, project: ProjectId, template: Template, message: &Message) -> Result<Map<String, Value>, String> {
        let context = message.context();
        let weight = template.weigh(&context, LARGE);
        let fill = move |budget: &Budget| Ok::<_, CallError>(template.render(&context, budget));
        let filled = self.0.workers.run(project, weight, fill).await.map_err(|error: CallError| error.to_string())?;
        match filled.map_err(|error| format!("`arguments{}`: {}", error.place, error.message))? {
            Some(Value::Object(arguments)) => Ok(arguments),
            _ => Ok(Map::new()),
        }
    }
}

fn shortened(error: impl AsRef<str>) -> String {
    error.as_ref().chars().filter(|c| !c.is_control()).take(MAX_ERROR).collect()
}
