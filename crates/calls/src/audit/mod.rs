//! The audit trail: a row for every call. What changes something has its row before it goes out.

mod kept;
mod lost;
mod nodes;
mod recent;
mod stats;
mod timings;
mod writer;

use std::time::Duration;

use kernel::{
    AgentId, ApprovalId, CallId, CallRef, ConnectionId, DeliveryId, EndUserId, KeyId, Origin, ProjectId, RunId, Timestamp, UserId, suggest,
};
use store::{PageSize, Row, StoreError, args, page_sql};

use crate::call::tool_name;
use crate::{CallError, Calls};

pub(crate) use kept::{KEPT, Keeper};
pub use kept::{KeptCall, ResealError, reseal};
pub use nodes::Node;
pub use recent::NewestCalls;
pub use stats::{CallStats, FailingTool, StatBucket};
pub use timings::Timings;
pub(crate) use writer::Audit;

macro_rules! columns {
    () => {
        "project_id, id, key_id, user_id, call_ref, connection_id, outcome, message, duration_us, created_at, tool, agent_id, run_id, step, \
         delivery_id, approval_us, queue_us, renewal_us, upstream_us, repeats_id, end_user_id, approval_id"
    };
}

/// A page of the calls that the filters leave.
macro_rules! page_where {
    ($origin:literal) => {
        page_sql!(
            select columns!(),
            bytes "octet_length(call_ref) + coalesce(octet_length(message), 0)",
            from "tool_calls",
            where concat!("project_id = $1 and ($2 is null or id < $2) and ($3 is null or connection_id = $3) \
                   and ($4 is null or outcome = $4) and ($5 is null or lower(coalesce(tool, call_ref)) like $5 escape '\\') \
                   and ($6 is null or agent_id = $6) and ($7 is null or created_at >= $7) and ($9 is null or key_id = $9) \
                   and ($10 is null or created_at < $10) and ", $origin),
            by id "desc",
            limit "$8"
        )
    };
}

/// How a call that got the answer of another says so.
pub(crate) const REPEATS: &str = "repeats ";

/// How calls are recorded on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditSettings {
    /// Calls that only read are written down before they go out too.
    pub reads_first: bool,
    /// What is written before a call goes out survives a loss of power, and not only the end of this process. PostgreSQL sees to that itself.
    pub sync: bool,
    /// How long a node that says nothing counts as alive.
    pub lease: Duration,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self { reads_first: false, sync: false, lease: Duration::from_secs(30) }
    }
}

/// How a call ended, if it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The tool ran and succeeded.
    Ok,
    /// The tool ran and said no.
    Error,
    /// The tool did not run, or not to its end.
    Failed,
    /// The node that made the call went away before the end: it may have taken effect.
    Unknown,
    /// The tool did not run, because a person is asked first.
    Waiting,
    /// The call is under way.
    Running,
}

impl Outcome {
    pub const ALL: [Self; 6] = [Self::Ok, Self::Error, Self::Failed, Self::Unknown, Self::Waiting, Self::Running];
    /// Those that are ends.
    pub const ENDS: [Self; 5] = [Self::Ok, Self::Error, Self::Failed, Self::Unknown, Self::Waiting];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Waiting => "waiting",
            Self::Running => "running",
        }
    }

    fn parse(text: &str) -> Self {
        Self::ALL.into_iter().find(|outcome| outcome.name() == text).unwrap_or(Self::Failed)
    }
}

/// One call, for the record. It holds no arguments and no results.
#[derive(Clone, Debug)]
pub struct CallRecord {
    pub id: CallId,
    pub project: ProjectId,
    pub key: KeyId,
    pub user: Option<UserId>,
    /// Whom it was made for.
    pub end_user: Option<EndUserId>,
    /// As it was called.
    pub call_ref: String,
    /// The one name of the tool, however it was called; nothing where the name means none.
    pub tool: Option<String>,
    pub origin: Origin,
    pub connection: Option<ConnectionId>,
    pub outcome: Outcome,
    pub message: Option<String>,
    pub duration: Duration,
    pub timings: Timings,
    /// The call whose answer this one got, because it had the same idempotency key.
    pub repeats: Option<CallId>,
    /// The approval that it waits for, or that it was made with.
    pub approval: Option<ApprovalId>,
    pub created_at: Timestamp,
}

impl CallRecord {
    fn read(row: &Row) -> Result<Self, StoreError> {
        let micros: i64 = row.get("duration_us")?;
        let message: Option<String> = row.get("message")?;
        Ok(Self {
            id: row.get("id")?,
            project: row.get("project_id")?,
            key: row.get("key_id")?,
            user: row.get("user_id")?,
            end_user: row.get("end_user_id")?,
            call_ref: row.get("call_ref")?,
            tool: row.get("tool")?,
            origin: Origin {
                agent: row.get("agent_id")?,
                run: row.get("run_id")?,
                step: row.get("step")?,
                delivery: row.get("delivery_id")?,
            },
            connection: row.get("connection_id")?,
            outcome: Outcome::parse(&row.get::<String>("outcome")?),
            duration: Duration::from_micros(u64::try_from(micros).unwrap_or(0)),
            timings: Timings::read(row)?,
            // Rows of an earlier version have it only in words.
            repeats: row.get::<Option<CallId>>("repeats_id")?.or_else(|| message.as_deref()?.strip_prefix(REPEATS)?.parse().ok()),
            message,
            approval: row.get("approval_id")?,
            created_at: row.get("created_at")?,
        })
    }
}

/// Which calls to list.
#[derive(Clone, Debug, Default)]
pub struct CallFilter {
    pub connection: Option<ConnectionId>,
    pub outcome: Option<String>,
    /// A ref in any of its forms, or a pattern in which `*` stands for any text.
    pub tool: Option<String>,
    pub agent: Option<AgentId>,
    pub key: Option<KeyId>,
    pub run: Option<RunId>,
    pub delivery: Option<DeliveryId>,
    pub end_user: Option<EndUserId>,
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
    pub limit: Option<i64>,
    pub cursor: Option<String>,
}

/// The tool that a filter means, as it is compared.
fn wanted(tool: &str) -> Result<String, CallError> {
    if tool.contains('*') {
        return Ok(store::fitting(tool));
    }
    let target: CallRef = tool
        .parse()
        .map_err(|_| CallError::BadFilter(format!("`tool`: `{tool}` is no ref. Give one, or a pattern; did you mean `*.{tool}.*`?")))?;
    Ok(store::fitting(&tool_name(&target)))
}

/// One page of calls, newest first.
#[derive(Clone, Debug)]
pub struct CallPage {
    pub calls: Vec<CallRecord>,
    pub cursor: Option<String>,
}

impl Calls {
    /// The record of calls, newest first.
    #[kernel::boxed]
    pub async fn records(&self, project: ProjectId, filter: &CallFilter) -> Result<CallPage, CallError> {
        let outcomes = Outcome::ALL.map(Outcome::name);
        if let Some(outcome) = filter.outcome.as_deref().filter(|outcome| !outcomes.contains(outcome)) {
            let nearest = suggest::did_you_mean(outcome, outcomes);
            return Err(CallError::BadFilter(format!("`{outcome}` is not an outcome; there are {}.{nearest}", outcomes.join(", "))));
        }
        let tool = filter.tool.as_deref().map(wanted).transpose()?;
        self.0.audit.settled().await;
        let page = PageSize::asked(filter.limit);
        let before: Option<CallId> = match filter.cursor.as_deref() {
            None | Some("") => None,
            Some(cursor) => Some(cursor.parse().map_err(|_| CallError::BadCursor)?),
        };
        // A run, a delivery and an end user have few calls among many, so they are found by their own indexes. The other filters go through the newest
        // calls until the page is full.
        let sql = match (filter.run, filter.delivery, filter.end_user) {
            (Some(_), ..) => page_where!("run_id = $11 and ($12 is null or delivery_id = $12) and ($13 is null or end_user_id = $13)"),
            (None, Some(_), _) => page_where!("($11 is null or run_id = $11) and delivery_id = $12 and ($13 is null or end_user_id = $13)"),
            (None, None, Some(_)) => {
                page_where!("($11 is null or run_id = $11) and ($12 is null or delivery_id = $12) and end_user_id = $13")
            }
            (None, None, None) => {
                page_where!("($11 is null or run_id = $11) and ($12 is null or delivery_id = $12) and ($13 is null or end_user_id = $13)")
            }
        };
        let args = args![
            project,
            before,
            filter.connection,
            filter.outcome.as_deref(),
            tool,
            filter.agent,
            filter.since,
            page.rows(),
            filter.key,
            filter.until,
            filter.run,
            filter.delivery,
            filter.end_user
        ];
        let rows = self.0.db.all(sql, args).await?;
        let page = page.read(&rows, CallRecord::read)?;
        let cursor = page.cursor(|last| last.id.to_string());
        Ok(CallPage { calls: page.rows, cursor })
    }

    /// One call of the record.
    #[kernel::boxed]
    pub async fn record(&self, project: ProjectId, id: CallId) -> Result<CallRecord, CallError> {
        self.0.audit.settled().await;
        let sql = concat!("select ", columns!(), " from tool_calls where project_id = $1 and id = $2");
        let row = self.0.db.optional(sql, args![project, id]).await?.ok_or(CallError::NotFound)?;
        Ok(CallRecord::read(&row)?)
    }
}
