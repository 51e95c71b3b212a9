//! Apps that were chosen before an account was connected.

use kernel::{ProjectId, Timestamp};
use store::{Db, StoreError, args};

use crate::AppName;

pub(crate) async fn all(db: &Db, project: ProjectId) -> Result<Vec<(AppName, Timestamp)>, StoreError> {
    let rows = db.all("select app_name, added_at from project_apps where project_id = $1", args![project]).await?;
    rows.iter().map(|row| Ok((AppName::of(&row.get::<String>("app_name")?), row.get("added_at")?))).collect()
}

/// Whether it was not there before.
pub(crate) async fn add(db: &Db, project: ProjectId, app: &AppName, by: &str, now: Timestamp) -> Result<bool, StoreError> {
    let sql = "insert into project_apps (project_id, app_name, added_at, added_by) values ($1, $2, $3, $4) on conflict do nothing";
    Ok(db.execute(sql, args![project, app.as_str(), now, by]).await? == 1)
}

/// Whether it was there.
pub(crate) async fn remove(db: &Db, project: ProjectId, app: &AppName) -> Result<bool, StoreError> {
    Ok(db.execute("delete from project_apps where project_id = $1 and app_name = $2", args![project, app.as_str()]).await? == 1)
}
