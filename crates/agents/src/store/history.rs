//! Who changed what. Rows are added and never touched again.

use kernel::{AgentId, ProjectId, Scope, Timestamp};
use serde_json::Value;
use store::{Db, PageSize, Row, StoreError, Tx, args, page_sql};
use uuid::Uuid;

use super::agents::broken;
use crate::daily::AssignmentChange;
use crate::{Agent, AgentRef, AppName, Change, HistoryEntry, HistoryPage};

fn read(row: &Row) -> Result<HistoryEntry, StoreError> {
    let change: String = row.get("change")?;
    let app: Option<String> = row.get("app_name")?;
    Ok(HistoryEntry {
        id: row.get("id")?,
        version: row.get("version")?,
        change: Change::named(&change).ok_or_else(|| broken("change"))?,
        app: app.map(|app| AppName::of(&app)),
        before: row.get("before")?,
        after: row.get("after")?,
        actor: row.get("actor")?,
        at: row.get("created_at")?,
    })
}

/// What is added to an agent's history.
#[derive(Debug)]
pub(crate) struct NewHistoryEntry<'a> {
    pub(crate) change: Change,
    pub(crate) app: Option<&'a AppName>,
    pub(crate) before: Option<Value>,
    pub(crate) after: Option<Value>,
}

pub(crate) async fn add(tx: &mut Tx, agent: &Agent, actor: &str, now: Timestamp, line: NewHistoryEntry<'_>) -> Result<(), StoreError> {
    let sql = "insert into agent_history (project_id, id, agent_id, agent_number, version, change, app_name, before, after, actor, created_at) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    let args = args![
        agent.project,
        Uuid::now_v7(),
        agent.id,
        agent.number,
        agent.version,
        line.change.name(),
        line.app.map(AppName::as_str),
        line.before.as_ref(),
        line.after.as_ref(),
        actor,
        now
    ];
    tx.execute(sql, args).await.map(|_| ())
}

/// What gave or took apps up to a time, in order; of one agent, or of all that the key sees.
pub(crate) async fn steps(db: &Db, scope: Scope, agent: Option<AgentId>, until: Timestamp) -> Result<Vec<AssignmentChange>, StoreError> {
    let sql = "select agent_number, change, app_name, created_at from agent_history \
               where project_id = $1 and change in ('assigned', 'reassigned', 'unassigned', 'deleted') and created_at <= $2 \
               and ($3 is null or agent_id = $3) \
               and ($4 is null or agent_id in (select k.agent_id from agent_keys k where k.project_id = $1 and k.key_id = $4)) \
               order by created_at, version, id";
    let rows = db.all(sql, args![scope.project, until, agent, scope.is_for_agents.then_some(scope.key)]).await?;
    let step = |row: &Row| {
        let change: String = row.get("change")?;
        let app: Option<String> = row.get("app_name")?;
        Ok(AssignmentChange {
            agent: row.get("agent_number")?,
            app: app.map(|app| AppName::of(&app)),
            change: Change::named(&change).ok_or_else(|| broken("change"))?,
            at: row.get("created_at")?,
        })
    };
    rows.iter().map(step).collect()
}

/// A page of an agent's history, newest first, also after the agent is gone.
pub(crate) async fn page(
    db: &Db,
    project: ProjectId,
    agent: AgentRef,
    size: PageSize,
    cursor: Option<Uuid>,
) -> Result<HistoryPage, StoreError> {
    let (id, number) = match agent {
        AgentRef::Id(id) => (Some(id), None),
        AgentRef::Number(number) => (None::<AgentId>, Some(number)),
    };
    let sql = page_sql!(
        select "id, version, change, app_name, before, after, actor, created_at",
        bytes "coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0)",
        from "agent_history",
        where "project_id = $1 and (agent_id = $2 or agent_number = $3) \
               and ($4 is null or (version, id) < (select version, id from agent_history where project_id = $1 and id = $4))",
        by "version" "desc",
        limit "$5"
    );
    let rows = db.all(sql, args![project, id, number, cursor, size.rows()]).await?;
    let page = size.read(&rows, read)?;
    let cursor = page.cursor(|entry| entry.id);
    Ok(HistoryPage { entries: page.rows, cursor })
}
