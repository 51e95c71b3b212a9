//! Approvals: a call that must ask waits for a person's word. The word holds for one call: this caller, this tool, these arguments, for a day.

use std::collections::HashSet;
use std::time::Duration;

use kernel::{AgentId, ApprovalId, Budget, EndUserId, KeyId, ProjectId, Scope, Timestamp, UserId};
use serde_json::{Value, json};
use store::{PageSize, Row, StoreError, Usage, args, page_bytes, page_sql, row};
use tokio::sync::watch;
use uuid::Uuid;

use crate::idempotency::fingerprint_for;
use crate::notices::to_send;
use crate::policy::PermissionRequest;
use crate::reserved::AgentError;
use crate::retention::APPROVALS;
use crate::{CallError, Calls, ToolResult};

const LIFETIME: Duration = Duration::from_hours(24);
const MAX_NOTE: usize = 1000;

macro_rules! columns {
    () => {
        "project_id, id, key_id, user_id, call_ref, arguments, status, note, decided_by_id, decided_at, created_at, expires_at, \
         agent_id, rule, end_user_id"
    };
}

/// Where an approval stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalStatus {
    /// Nobody has decided.
    Pending,
    /// The call may be made once.
    Approved,
    /// The call is refused.
    Denied,
    /// The call was made.
    Used,
    /// Nobody decided, or the call was not made, in time.
    Expired,
}

impl ApprovalStatus {
    pub const ALL: [Self; 5] = [Self::Pending, Self::Approved, Self::Denied, Self::Used, Self::Expired];

    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Used => "used",
            Self::Expired => "expired",
        }
    }
}

/// A call that waits, or waited, for a person's word.
#[derive(Clone, Debug)]
pub struct Approval {
    pub id: ApprovalId,
    pub key: KeyId,
    pub user: Option<UserId>,
    /// The agent that made the call.
    pub agent: Option<AgentId>,
    /// Whom the call is for.
    pub end_user: Option<EndUserId>,
    pub call_ref: String,
    /// The pattern of the rule that asked; nothing where the default did, or the caller itself.
    pub rule: Option<String>,
    pub arguments: Value,
    pub status: ApprovalStatus,
    pub note: Option<String>,
    pub decided_by: Option<Uuid>,
    pub decided_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

impl Approval {
    /// What a model is told in place of a result, so that it can go on: that the call waits, who decides, and what to do then. `approvals_url`
    /// is where approvals are decided.
    pub fn told(&self, approvals_url: &str) -> ToolResult {
        let (id, url) = (self.id, format!("{approvals_url}/{}", self.id));
        let message = format!(
            "This call waits for a person: {url}\nAn editor of the project approves it with `toolyard approval approve {id}` or by posting \
             {{\"decision\": \"approve\"}} there. Then make the same call again, with the same arguments."
        );
        let details = json!({"status": self.status.name(), "approval_id": id, "url": url, "expires_at": self.expires_at.to_string()});
        let told =
            AgentError::new("approval_required", message).next("Tell the user that this call waits for approval, and go on without it.");
        told.details(details).retryable().into()
    }

    fn read(row: &Row, now: Timestamp) -> Result<Self, StoreError> {
        let stored: String = row.get("status")?;
        let expires_at: Timestamp = row.get("expires_at")?;
        let status = ApprovalStatus::ALL.into_iter().find(|status| status.name() == stored);
        let status = status.ok_or_else(|| StoreError::Column("status".to_owned()))?;
        let is_over = expires_at <= now && matches!(status, ApprovalStatus::Pending | ApprovalStatus::Approved);
        Ok(Self {
            id: row.get("id")?,
            key: row.get("key_id")?,
            user: row.get("user_id")?,
            agent: row.get("agent_id")?,
            end_user: row.get("end_user_id")?,
            call_ref: row.get("call_ref")?,
            rule: row.get("rule")?,
            arguments: row.get("arguments")?,
            status: if is_over { ApprovalStatus::Expired } else { status },
            note: row.get("note")?,
            decided_by: row.get("decided_by_id")?,
            decided_at: row.get("decided_at")?,
            created_at: row.get("created_at")?,
            expires_at,
        })
    }
}

/// Which approvals to list.
#[derive(Clone, Debug, Default)]
pub struct ApprovalFilter {
    pub status: Option<String>,
    pub end_user: Option<EndUserId>,
    pub limit: Option<i64>,
    pub cursor: Option<ApprovalId>,
}

/// One page of approvals, newest first.
#[derive(Clone, Debug)]
pub struct ApprovalPage {
    pub approvals: Vec<Approval>,
    pub cursor: Option<ApprovalId>,
}

/// That a call may run, and the approval that was used up for it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Permit {
    approval: Option<ApprovalId>,
    waited: Option<Duration>,
}

impl Permit {
    /// A call that was approved, and when it was asked about and decided.
    fn read(row: &Row) -> Result<Self, StoreError> {
        let (asked, decided): (Timestamp, Option<Timestamp>) = (row.get("created_at")?, row.get("decided_at")?);
        let waited = decided.map(|decided| u64::try_from(decided.micros().saturating_sub(asked.micros())).unwrap_or(0));
        Ok(Self { approval: Some(row.get("id")?), waited: waited.map(Duration::from_micros) })
    }

    pub(crate) fn approval(self) -> Option<ApprovalId> {
        self.approval
    }

    /// How long a person took to say yes.
    pub(crate) fn waited(self) -> Option<Duration> {
        self.waited
    }
}

impl Calls {
    /// How many approvals of all projects wait for a person, for the operator; an index has no others.
    #[kernel::boxed]
    pub async fn waiting_approvals(&self) -> Result<u64, StoreError> {
        let sql = "select count(*) as found from tool_approvals where status = 'pending' and expires_at > $1";
        let row = self.0.db.optional(sql, args![self.0.clock.now()]).await?;
        Ok(row.map_or(Ok(0), |row| row.get::<i64>("found"))?.unsigned_abs())
    }

    /// Uses up an approval of exactly this call, or asks for one.
    pub(crate) async fn use_approval(
        &self,
        scope: Scope,
        call_ref: &str,
        asked: PermissionRequest<'_>,
        rule: Option<String>,
    ) -> Result<Permit, CallError> {
        let arguments = Value::Object(asked.whole.clone());
        let print = fingerprint_for(scope, call_ref, &arguments);
        let now = self.0.clock.now();
        let sql = "update tool_approvals set status = 'used' where project_id = $1 and (status = 'approved' or $5) and id = \
                   (select id from tool_approvals where project_id = $1 and key_id = $2 and fingerprint = $3 \
                   and (status = 'approved' or (status = 'used' and $5)) and expires_at > $4 order by id limit 1) returning id, created_at, decided_at";
        if let Some(row) = self.0.db.returning(sql, args![scope.project, scope.key, print.as_slice(), now, asked.all_tries]).await? {
            return Ok(Permit::read(&row)?);
        }
        let sql = concat!(
            "select ",
            columns!(),
            " from tool_approvals where project_id = $1 and key_id = $2 and fingerprint = $3 and status in ('pending', 'denied') \
             and expires_at > $4 order by id desc limit 1"
        );
        let known = self.0.db.optional(sql, args![scope.project, scope.key, print.as_slice(), now]).await?;
        if let Some(row) = known {
            let known = Approval::read(&row, now)?;
            return Err(if known.status == ApprovalStatus::Denied { denied(&known) } else { CallError::Waiting(Box::new(known)) });
        }
        let approval = Approval {
            id: ApprovalId::new(),
            key: scope.key,
            user: scope.user,
            agent: asked.agent,
            end_user: scope.end_user(),
            call_ref: call_ref.to_owned(),
            rule,
            arguments,
            status: ApprovalStatus::Pending,
            note: None,
            decided_by: None,
            decided_at: None,
            created_at: now,
            expires_at: now.plus(LIFETIME),
        };
        self.ask_somebody(scope, &approval, &print).await?;
        Err(CallError::Waiting(Box::new(approval)))
    }

    /// Undoes the use of an approval by a call that never left.
    pub(crate) async fn give_back(&self, scope: Scope, permit: Permit) -> Result<(), StoreError> {
        let Some(approval) = permit.approval else { return Ok(()) };
        let sql = "update tool_approvals set status = 'approved' where project_id = $1 and id = $2 and status = 'used'";
        self.0.db.execute(sql, args![scope.project, approval]).await?;
        Ok(())
    }

    async fn ask_somebody(&self, scope: Scope, approval: &Approval, print: &[u8]) -> Result<(), CallError> {
        let written = approval.arguments.to_string();
        let size = Usage::row(written.len());
        self.0.limits.approvals.admit(self.0.db.usage(scope.project, APPROVALS).await?, size)?;
        let row = row! {
            project_id: scope.project,
            id: approval.id,
            key_id: approval.key,
            user_id: approval.user,
            agent_id: approval.agent,
            end_user_id: approval.end_user,
            call_ref: approval.call_ref.as_str(),
            rule: approval.rule.as_deref(),
            fingerprint: print,
            arguments: written,
            status: approval.status.name(),
            created_at: approval.created_at,
            expires_at: approval.expires_at,
            size: size.bytes,
        };
        let mut tx = self.0.db.begin().await?;
        tx.insert("tool_approvals", row).await?;
        tx.count(scope.project, APPROVALS, size).await?;
        to_send::write(&mut tx, scope.project, approval.id, approval.created_at).await?;
        tx.commit().await?;
        self.announce(scope.project, approval.id);
        Ok(())
    }

    #[kernel::boxed]
    pub async fn approvals(&self, scope: Scope, filter: &ApprovalFilter) -> Result<ApprovalPage, CallError> {
        let known = |status: &str| ApprovalStatus::ALL.iter().any(|known| known.name() == status);
        if let Some(status) = filter.status.as_deref().filter(|status| !known(status)) {
            let names = ApprovalStatus::ALL.map(ApprovalStatus::name).join(", ");
            return Err(CallError::BadFilter(format!("`{status}` is not a status; there are: {names}.")));
        }
        let now = self.0.clock.now();
        let page = PageSize::asked(filter.limit);
        // What has expired is still stored as it was left.
        let sql = page_sql!(
            select columns!(),
            bytes "octet_length(arguments) + octet_length(call_ref) + coalesce(octet_length(note), 0)",
            from "tool_approvals",
            where "project_id = $1 and ($6 is null or end_user_id = $6) and ($2 is null or id < $2) and ($3 is null \
                   or ($3 = 'expired' and status in ('pending', 'approved') and expires_at <= $4) \
                   or (status = $3 and (status in ('denied', 'used') or expires_at > $4)))",
            by id "desc",
            limit "$5"
        );
        let rows = self
            .0
            .db
            .all(sql, args![scope.project, filter.cursor, filter.status.as_deref(), now, page.rows(), scope.end_user().or(filter.end_user)])
            .await?;
        let size = page_bytes(&rows);
        let read = move |_: &Budget| Ok::<_, CallError>(page.read(&rows, |row| Approval::read(row, now))?);
        let page = self.0.workers.run(scope.project, size, read).await?;
        let cursor = page.cursor(|last| last.id);
        Ok(ApprovalPage { approvals: page.rows, cursor })
    }

    /// The approvals of a project that nobody has decided, also those that expired like that within the last day.
    pub(crate) async fn undecided(&self, project: ProjectId) -> Result<HashSet<ApprovalId>, StoreError> {
        let sql = "select id from tool_approvals where project_id = $1 and status = 'pending' and expires_at > $2";
        self.0.db.all(sql, args![project, self.0.clock.now().minus(LIFETIME)]).await?.iter().map(|row| row.get("id")).collect()
    }

    /// The approvals of all projects that somebody decided since then, for whoever waits for one.
    #[kernel::boxed]
    pub async fn decided_since(&self, then: Timestamp) -> Result<Vec<(ProjectId, ApprovalId)>, StoreError> {
        let sql = "select project_id, id from tool_approvals where decided_at >= $1";
        self.0.db.all(sql, args![then]).await?.iter().map(|row| Ok((row.get("project_id")?, row.get("id")?))).collect()
    }

    /// Hears whenever a person decides something, on this node.
    pub fn decisions(&self) -> watch::Receiver<()> {
        self.0.decisions.subscribe()
    }

    #[kernel::boxed]
    pub async fn approval(&self, scope: Scope, id: ApprovalId) -> Result<Approval, CallError> {
        let sql = concat!("select ", columns!(), " from tool_approvals where project_id = $1 and id = $2");
        let row = self.0.db.optional(sql, args![scope.project, id]).await?.ok_or(CallError::ApprovalNotFound)?;
        let approval = Approval::read(&row, self.0.clock.now())?;
        if scope.sees(approval.end_user.into()) { Ok(approval) } else { Err(CallError::ApprovalNotFound) }
    }

    /// A person's word on a pending approval. It is given once.
    #[kernel::boxed]
    pub async fn decide(&self, scope: Scope, id: ApprovalId, approved: bool, note: Option<&str>) -> Result<Approval, CallError> {
        if note.is_some_and(|note| note.chars().count() > MAX_NOTE) {
            return Err(CallError::BadFilter(format!("`note` may have {MAX_NOTE} characters.")));
        }
        self.approval(scope, id).await?;
        let now = self.0.clock.now();
        let status = if approved { ApprovalStatus::Approved } else { ApprovalStatus::Denied };
        let sql = concat!(
            "update tool_approvals set status = $3, note = $4, decided_by_id = $5, decided_at = $6 \
             where project_id = $1 and id = $2 and status = 'pending' and expires_at > $6 returning ",
            columns!()
        );
        match self.0.db.returning(sql, args![scope.project, id, status.name(), note, scope.author(), now]).await? {
            Some(row) => {
                self.0.decisions.send_replace(());
                Ok(Approval::read(&row, now)?)
            }
            None => Err(CallError::Decided(self.approval(scope, id).await?.status.name())),
        }
    }
}

fn denied(approval: &Approval) -> CallError {
    let note = approval.note.as_deref().map(|note| format!(": {note}")).unwrap_or_default();
    CallError::Denied(format!("The call of `{}` was denied{note}", approval.call_ref))
}
