//! Agents.

use definitions::config::{OnError, coerce_list};
use kernel::{AgentId, ProjectId, Scope};
use serde_json::{Map, Value, json};
use store::{Arg, Db, Row, StoreError, Tx, args, page_sql};

use crate::life::AgentFilter;
use crate::model::EPHEMERAL;
use crate::{Agent, AgentRef, AppName, Status, ToolMode};

macro_rules! columns {
    () => {
        "project_id, id, number, name, agent_type, description, status, configuration, tags, job_title, marketplace_category, priority_level, \
         max_concurrent_tasks, auto_start, tool_mode, tool_configs, version, created_at, updated_at, created_by, updated_by"
    };
}

/// The agents that a list shows: `$1` to `$6` narrow it, `$9` is a key that sees its own agents only.
macro_rules! listed {
    () => {
        "project_id = $1 and ($2 is null or status = $2) and ($3 is null or agent_type = $3) \
         and ($4 is null or priority_level = $4) and ($5 is null or lower(name) like $5 escape '!' or lower(description) like $5 escape '!') \
         and ($3 is not null or agent_type <> $6) \
         and ($9 is null or id in (select k.agent_id from agent_keys k where k.project_id = $1 and k.key_id = $9))"
    };
}

pub(crate) fn read(row: &Row) -> Result<Agent, StoreError> {
    let status: String = row.get("status")?;
    let mode: String = row.get("tool_mode")?;
    let configs: Value = row.get("tool_configs")?;
    let configs = coerce_list(configs.as_array().map_or(&[], Vec::as_slice), OnError::Raise);
    Ok(Agent {
        project: row.get("project_id")?,
        id: row.get("id")?,
        number: row.get("number")?,
        name: row.get("name")?,
        agent_type: row.get("agent_type")?,
        description: row.get("description")?,
        status: Status::named(&status).ok_or_else(|| broken("status"))?,
        configuration: object(row, "configuration")?,
        tags: serde_json::from_value(row.get("tags")?).map_err(|_| broken("tags"))?,
        job_title: row.get("job_title")?,
        marketplace_category: row.get("marketplace_category")?,
        priority_level: row.get("priority_level")?,
        max_concurrent_tasks: row.get("max_concurrent_tasks")?,
        auto_start: row.get("auto_start")?,
        tool_mode: ToolMode::named(&mode).ok_or_else(|| broken("tool_mode"))?,
        // A config that cannot be read might be a limit, so it is not passed over.
        tool_configs: configs.map_err(|_| broken("tool_configs"))?.configs,
        version: row.get("version")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        created_by: row.get("created_by")?,
        updated_by: row.get("updated_by")?,
    })
}

pub(super) fn broken(column: &str) -> StoreError {
    StoreError::Column(column.to_owned())
}

pub(super) fn object(row: &Row, column: &str) -> Result<Map<String, Value>, StoreError> {
    match row.get(column)? {
        Value::Object(map) => Ok(map),
        _ => Err(broken(column)),
    }
}

fn key(agent: AgentRef) -> [Arg<'static>; 2] {
    match agent {
        AgentRef::Id(id) => args![id, None::<i64>],
        AgentRef::Number(number) => args![None::<AgentId>, number],
    }
}

const FIND: &str = concat!("select ", columns!(), " from agents where project_id = $1 and (id = $2 or number = $3)");

pub(crate) async fn find(db: &Db, project: ProjectId, agent: AgentRef) -> Result<Option<Agent>, StoreError> {
    let [id, number] = key(agent);
    db.optional(FIND, [project.into(), id, number]).await?.as_ref().map(read).transpose()
}

/// The same within a transaction that has its turn, so that it stays as it is read.
pub(crate) async fn hold(tx: &mut Tx, project: ProjectId, agent: AgentRef) -> Result<Option<Agent>, StoreError> {
    let [id, number] = key(agent);
    tx.optional(FIND, [project.into(), id, number]).await?.as_ref().map(read).transpose()
}

fn list_args<'a>(scope: Scope, filter: &'a AgentFilter, pattern: Option<&'a str>) -> [Arg<'a>; 9] {
    args![
        scope.project,
        filter.status.as_deref(),
        filter.agent_type.as_deref(),
        filter.priority_level.as_deref(),
        pattern,
        EPHEMERAL,
        filter.size.rows(),
        filter.skip,
        scope.is_for_agents.then_some(scope.key)
    ]
}

pub(crate) async fn list(db: &Db, scope: Scope, filter: &AgentFilter) -> Result<Vec<Row>, StoreError> {
    let sql = page_sql!(
        select columns!(),
        bytes "octet_length(configuration) + octet_length(tool_configs) + octet_length(tags) + coalesce(octet_length(description), 0)",
        from "agents",
        where listed!(),
        by "number" "asc",
        limit "$7 offset $8"
    );
    let pattern = filter.search.as_deref().map(containing);
    db.all(sql, list_args(scope, filter, pattern.as_deref())).await
}

/// The assignments of the agents that a list shows, in one query.
pub(crate) async fn list_assignments(db: &Db, scope: Scope, filter: &AgentFilter) -> Result<Vec<Row>, StoreError> {
    let sql = concat!(
        "select ",
        super::assignments::columns!(),
        " from agent_app_assignments where project_id = $1 and is_active and agent_id in (select id from agents where ",
        listed!(),
        " order by number limit $7 offset $8)"
    );
    let pattern = filter.search.as_deref().map(containing);
    db.all(sql, list_args(scope, filter, pattern.as_deref())).await
}

/// Every agent of a project by id, number and name.
pub(crate) async fn names(db: &Db, project: ProjectId) -> Result<Vec<(AgentId, i64, String)>, StoreError> {
    let rows = db.all("select id, number, name from agents where project_id = $1 order by number", args![project]).await?;
    rows.iter().map(|row| Ok((row.get("id")?, row.get("number")?, row.get("name")?))).collect()
}

/// The agents that use an app because they use every app: nothing is said about this one.
pub(crate) async fn inheriting(db: &Db, project: ProjectId, app: &AppName) -> Result<Vec<AgentId>, StoreError> {
    let sql = "select id from agents where project_id = $1 and tool_mode = $3 and not exists \
               (select 1 from agent_app_assignments said where said.project_id = $1 and said.agent_id = agents.id and said.app_name = $2)";
    db.all(sql, args![project, app.as_str(), ToolMode::Inherit.name()]).await?.iter().map(|row| row.get("id")).collect()
}

/// A pattern for texts that contain this one.
fn containing(text: &str) -> String {
    let escaped = text.to_lowercase().replace('!', "!!").replace('%', "!%").replace('_', "!_");
    format!("%{escaped}%")
}

/// How many agents there are of each type and status.
pub(crate) async fn counts(db: &Db, project: ProjectId) -> Result<Vec<(String, String, i64)>, StoreError> {
    let sql =
        "select agent_type, status, count(*) as agents from agents where project_id = $1 and agent_type <> $2 group by agent_type, status";
    let rows = db.all(sql, args![project, EPHEMERAL]).await?;
    rows.iter().map(|row| Ok((row.get("agent_type")?, row.get("status")?, row.get("agents")?))).collect()
}

pub(crate) async fn insert(tx: &mut Tx, agent: &Agent) -> Result<(), StoreError> {
    let sql = concat!(
        "insert into agents (",
        columns!(),
        ") values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)"
    );
    tx.execute(sql, values(agent)).await.map(|_| ())
}

/// Writes an agent that is held.
pub(crate) async fn update(tx: &mut Tx, agent: &Agent) -> Result<(), StoreError> {
    let sql = "update agents set number = $3, name = $4, agent_type = $5, description = $6, status = $7, configuration = $8, tags = $9, \
               job_title = $10, marketplace_category = $11, priority_level = $12, max_concurrent_tasks = $13, auto_start = $14, \
               tool_mode = $15, tool_configs = $16, version = $17, created_at = $18, updated_at = $19, created_by = $20, updated_by = $21 \
               where project_id = $1 and id = $2";
    tx.execute(sql, values(agent)).await.map(|_| ())
}

fn values(agent: &Agent) -> [Arg<'_>; 21] {
    args![
        agent.project,
        agent.id,
        agent.number,
        agent.name.as_str(),
        agent.agent_type.as_str(),
        agent.description.as_deref(),
        agent.status.name(),
        &Value::Object(agent.configuration.clone()),
        &json!(agent.tags),
        agent.job_title.as_deref(),
        agent.marketplace_category.as_deref(),
        agent.priority_level.as_str(),
        agent.max_concurrent_tasks,
        agent.auto_start,
        agent.tool_mode.name(),
        &json!(agent.tool_configs),
        agent.version,
        agent.created_at,
        agent.updated_at,
        agent.created_by.as_str(),
        agent.updated_by.as_str()
    ]
}

/// Its assignments go with it.
pub(crate) async fn delete(tx: &mut Tx, agent: &Agent) -> Result<(), StoreError> {
    tx.execute("delete from agents where project_id = $1 and id = $2", args![agent.project, agent.id]).await.map(|_| ())
}
