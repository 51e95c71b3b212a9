//! Which apps an agent has.

use kernel::{AgentId, ProjectId, Timestamp};
use serde_json::Value;
use store::{Db, Row, StoreError, Tx, args};

use super::agents::{broken, object};
use crate::{AppName, AppPolicy, Assignment};

macro_rules! columns {
    () => {
        "id, agent_id, app_name, is_active, priority, config, assigned_at, assigned_by"
    };
}
pub(super) use columns;

pub(crate) fn read(row: &Row) -> Result<Assignment, StoreError> {
    let app: String = row.get("app_name")?;
    let config = object(row, "config")?;
    Ok(Assignment {
        id: row.get("id")?,
        agent: row.get("agent_id")?,
        app: AppName::of(&app),
        is_active: row.get("is_active")?,
        priority: row.get("priority")?,
        // What cannot be read might be a limit, so it fails.
        policy: AppPolicy::read(&config).map_err(|_| broken("config"))?,
        config,
        assigned_at: row.get("assigned_at")?,
        assigned_by: row.get("assigned_by")?,
    })
}

/// Every row of an agent, those that are switched off too.
const ALL: &str = concat!("select ", columns!(), " from agent_app_assignments where project_id = $1 and agent_id = $2 order by id");

pub(crate) async fn all(db: &Db, project: ProjectId, agent: AgentId) -> Result<Vec<Assignment>, StoreError> {
    db.all(ALL, args![project, agent]).await?.iter().map(read).collect()
}

pub(crate) async fn all_held(tx: &mut Tx, project: ProjectId, agent: AgentId) -> Result<Vec<Assignment>, StoreError> {
    tx.all(ALL, args![project, agent]).await?.iter().map(read).collect()
}

/// The assignments of an app that are on.
pub(crate) async fn of_app(db: &Db, project: ProjectId, app: &AppName) -> Result<Vec<Assignment>, StoreError> {
    let sql = concat!("select ", columns!(), " from agent_app_assignments where project_id = $1 and app_name = $2 and is_active");
    db.all(sql, args![project, app.as_str()]).await?.iter().map(read).collect()
}

pub(crate) async fn insert(tx: &mut Tx, project: ProjectId, row: &Assignment) -> Result<(), StoreError> {
    let sql = "insert into agent_app_assignments (project_id, id, agent_id, app_name, is_active, priority, config, assigned_at, assigned_by, \
               updated_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $8)";
    let config = Value::Object(row.config.clone());
    let args = args![
        project,
        row.id,
        row.agent,
        row.app.as_str(),
        row.is_active,
        row.priority,
        &config,
        row.assigned_at,
        row.assigned_by.as_str()
    ];
    tx.execute(sql, args).await.map(|_| ())
}

pub(crate) async fn update(tx: &mut Tx, project: ProjectId, row: &Assignment, now: Timestamp) -> Result<(), StoreError> {
    let sql = "update agent_app_assignments set is_active = $3, priority = $4, config = $5, assigned_at = $6, assigned_by = $7, updated_at = $8 \
               where project_id = $1 and id = $2";
    let config = Value::Object(row.config.clone());
    let args = args![project, row.id, row.is_active, row.priority, &config, row.assigned_at, row.assigned_by.as_str(), now];
    tx.execute(sql, args).await.map(|_| ())
}
