//! Sealing everything again with the current key, while others go on working.

use kernel::seal::Sealer;
use kernel::{AppId, ConnectionId, ProjectId};
use store::{Db, args};

use crate::{ConnectionError, apps, store as rows};

/// Seals every secret of every project with the current key; a row that changes meanwhile is left to its writer.
#[kernel::boxed]
pub async fn reseal(db: &Db, sealer: &Sealer) -> Result<u64, ConnectionError> {
    let mut resealed = 0;
    let sql = "select project_id, id, credentials, attempt_data from gateway_connections";
    for row in db.all(sql, args![]).await? {
        let (project, id): (ProjectId, ConnectionId) = (row.get("project_id")?, row.get("id")?);
        if let Some(old) = row.get::<Option<Vec<u8>>>("credentials")?.filter(|sealed| !sealer.is_current(sealed)) {
            let new = sealer.seal(&sealer.open(&old, rows::place(id, "credentials"))?, rows::place(id, "credentials"));
            let sql = "update gateway_connections set credentials = $3 where project_id = $1 and id = $2 and credentials = $4";
            resealed += db.execute(sql, args![project, id, new, old]).await?;
        }
        if let Some(old) = row.get::<Option<Vec<u8>>>("attempt_data")?.filter(|sealed| !sealer.is_current(sealed)) {
            let new = sealer.seal(&sealer.open(&old, rows::place(id, "attempt_data"))?, rows::place(id, "attempt_data"));
            let sql = "update gateway_connections set attempt_data = $3 where project_id = $1 and id = $2 and attempt_data = $4";
            resealed += db.execute(sql, args![project, id, new, old]).await?;
        }
    }
    for row in db.all("select id, client_secret from oauth_apps", args![]).await? {
        let (id, old): (AppId, Vec<u8>) = (row.get("id")?, row.get("client_secret")?);
        if !sealer.is_current(&old) {
            let new = sealer.seal(&sealer.open(&old, apps::place(id))?, apps::place(id));
            resealed +=
                db.execute("update oauth_apps set client_secret = $2 where id = $1 and client_secret = $3", args![id, new, old]).await?;
        }
    }
    Ok(resealed + crate::hooks::reseal(db, sealer).await?)
}
