//! The table of secrets.

use kernel::seal::{SealedColumn, Sealer};
use kernel::{ProjectId, SecretId};
use store::{Db, Row, StoreError, args};
use uuid::Uuid;

use crate::SecretError;

macro_rules! columns {
    () => {
        "project_id, id, slug, name, description, hosts, created_at, updated_at, updated_by_id"
    };
}
pub(crate) use columns;

pub(crate) fn place(id: SecretId) -> SealedColumn<'static> {
    SealedColumn { table: "secrets", column: "value", row: id.uuid() }
}

/// A secret with its sealed value, by its slug or its id.
pub(crate) async fn find(db: &Db, project: ProjectId, named: &str) -> Result<Option<Row>, StoreError> {
    let id: Option<Uuid> = named.parse().ok();
    let sql = concat!(
        "select ",
        columns!(),
        ", value from secrets where project_id = $1 and (slug = $2 or id = $3) order by case when slug = $2 then 0 else 1 end limit 1"
    );
    db.optional(sql, args![project, named, id]).await
}

/// Seals every value with the current key.
#[kernel::boxed]
pub async fn reseal(db: &Db, sealer: &Sealer) -> Result<u64, SecretError> {
    let mut resealed = 0;
    for row in db.all("select project_id, id, value from secrets", args![]).await? {
        let (project, id, old): (ProjectId, SecretId, Vec<u8>) = (row.get("project_id")?, row.get("id")?, row.get("value")?);
        if !sealer.is_current(&old) {
            let new = sealer.seal(&sealer.open(&old, place(id))?, place(id));
            // One that was replaced meanwhile is sealed with the current key already.
            let sql = "update secrets set value = $3 where project_id = $1 and id = $2 and value = $4";
            resealed += db.execute(sql, args![project, id, new, old]).await?;
        }
    }
    Ok(resealed)
}
