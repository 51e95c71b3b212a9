//! Names and ids of end users. A name is known from its first use on.

use std::collections::HashMap;

use kernel::{EndUserId, EndUserName, ProjectId};
use store::{PageSize, Row, StoreError, Usage, args, page_sql};

use crate::{EndUser, EndUserError, EndUsers, MOST};

/// What a project's end users are counted as.
pub(crate) const COUNTED: &str = "end_users";

/// Which end users to list.
#[derive(Clone, Debug, Default)]
pub struct EndUserFilter {
    /// A part of the name.
    pub name: Option<String>,
    pub limit: Option<i64>,
    pub cursor: Option<EndUserId>,
}

/// One page of end users, newest first.
#[derive(Clone, Debug)]
pub struct EndUserPage {
    pub end_users: Vec<EndUser>,
    pub cursor: Option<EndUserId>,
}

fn read(row: &Row) -> Result<EndUser, StoreError> {
    Ok(EndUser { id: row.get("id")?, name: row.get("name")?, created_at: row.get("created_at")? })
}

impl EndUsers {
    /// The id behind a name; nothing where nobody used the name yet.
    #[kernel::boxed]
    pub async fn find(&self, project: ProjectId, name: &EndUserName) -> Result<Option<EndUserId>, EndUserError> {
        let key = (project, name.as_str().to_owned());
        Ok(self.0.known.or_find(key, || self.read_id(project, name)).await?)
    }

    async fn read_id(&self, project: ProjectId, name: &EndUserName) -> Result<Option<EndUserId>, StoreError> {
        let sql = "select id from end_user_names where project_id = $1 and name = $2";
        self.0.db.optional(sql, args![project, name.as_str()]).await?.map(|row| row.get("id")).transpose()
    }

    /// The id behind a name, which is known from now on.
    #[kernel::boxed]
    pub async fn ensure(&self, project: ProjectId, name: &EndUserName) -> Result<EndUserId, EndUserError> {
        if let Some(known) = self.find(project, name).await? {
            return Ok(known);
        }
        if self.0.db.usage(project, COUNTED).await?.rows >= MOST {
            return Err(EndUserError::TooMany(MOST));
        }
        let id = EndUserId::new();
        let mut tx = self.0.db.begin().await?;
        let sql = "insert into end_user_names (project_id, id, name, created_at) values ($1, $2, $3, $4) \
                   on conflict (project_id, name) do nothing";
        let is_new = tx.execute(sql, args![project, id, name.as_str(), self.0.clock.now()]).await? == 1;
        if is_new {
            tx.count(project, COUNTED, Usage::row(name.as_str().len())).await?;
        }
        tx.commit().await?;
        if is_new { Ok(id) } else { self.read_id(project, name).await?.ok_or(EndUserError::NotFound) }
    }

    #[kernel::boxed]
    pub async fn list(&self, project: ProjectId, filter: &EndUserFilter) -> Result<EndUserPage, EndUserError> {
        let page = PageSize::asked(filter.limit);
        let name = filter.name.as_deref().map(|part| store::fitting(&format!("*{part}*")));
        let sql = page_sql!(
            select "project_id, id, name, created_at",
            bytes "octet_length(name)",
            from "end_user_names",
            where "project_id = $1 and ($2 is null or id < $2) and ($3 is null or lower(name) like $3 escape '\\')",
            by id "desc",
            limit "$4"
        );
        let rows = self.0.db.all(sql, args![project, filter.cursor, name, page.rows()]).await?;
        let page = page.read(&rows, read)?;
        let cursor = page.cursor(|last| last.id);
        Ok(EndUserPage { end_users: page.rows, cursor })
    }

    #[kernel::boxed]
    pub async fn get(&self, project: ProjectId, name: &EndUserName) -> Result<EndUser, EndUserError> {
        let sql = "select id, name, created_at from end_user_names where project_id = $1 and name = $2";
        let row = self.0.db.optional(sql, args![project, name.as_str()]).await?.ok_or(EndUserError::NotFound)?;
        Ok(read(&row)?)
    }

    /// What some end users are called. Whoever was forgotten has no name.
    #[kernel::boxed]
    pub async fn names(&self, project: ProjectId, ids: Vec<EndUserId>) -> Result<HashMap<EndUserId, String>, EndUserError> {
        let mut names = HashMap::new();
        for id in ids {
            if names.contains_key(&id) {
                continue;
            }
            let sql = "select name from end_user_names where project_id = $1 and id = $2";
            if let Some(row) = self.0.db.optional(sql, args![project, id]).await? {
                names.insert(id, row.get("name")?);
            }
        }
        Ok(names)
    }

    /// Drops the name; whether there was one.
    pub(crate) async fn drop_name(&self, project: ProjectId, id: EndUserId) -> Result<bool, StoreError> {
        let mut tx = self.0.db.begin().await?;
        let sql = "delete from end_user_names where project_id = $1 and id = $2 returning name";
        let gone = tx.optional(sql, args![project, id]).await?;
        if let Some(row) = &gone {
            let bytes = i64::try_from(row.get::<String>("name")?.len()).unwrap_or(0);
            tx.count(project, COUNTED, Usage { rows: -1, bytes: -bytes }).await?;
        }
        tx.commit().await?;
        Ok(gone.is_some())
    }
}
