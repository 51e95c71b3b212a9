//! Which agents a key acts for.

use std::collections::HashMap;

use kernel::{AgentId, KeyId, ProjectId};
use store::{Db, StoreError, Tx, args};

pub(crate) async fn bind(tx: &mut Tx, project: ProjectId, key: KeyId, agent: AgentId) -> Result<(), StoreError> {
    let sql =
        "insert into agent_keys (project_id, key_id, agent_id) values ($1, $2, $3) on conflict (project_id, key_id, agent_id) do nothing";
    tx.execute(sql, args![project, key, agent]).await.map(|_| ())
}

pub(crate) async fn is_bound(db: &Db, project: ProjectId, key: KeyId, agent: AgentId) -> Result<bool, StoreError> {
    let sql = "select agent_id from agent_keys where project_id = $1 and key_id = $2 and agent_id = $3";
    Ok(db.optional(sql, args![project, key, agent]).await?.is_some())
}

/// The names of the agents of each key, in one project or in all.
pub(crate) async fn names(db: &Db, project: Option<ProjectId>) -> Result<HashMap<KeyId, Vec<String>>, StoreError> {
    let sql = "select k.key_id, a.name from agent_keys k join agents a on a.project_id = k.project_id and a.id = k.agent_id \
               where $1 is null or k.project_id = $1 order by a.number";
    let mut names: HashMap<KeyId, Vec<String>> = HashMap::new();
    for row in &db.all(sql, args![project]).await? {
        names.entry(row.get("key_id")?).or_default().push(row.get("name")?);
    }
    Ok(names)
}
