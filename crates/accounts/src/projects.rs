//! Projects: what every row belongs to.

use kernel::{ProjectId, Slug, Timestamp, UserId};
use store::{Row, StoreError, args};

use crate::{AccountError, Accounts};

/// The project that the first start makes.
pub const DEFAULT_PROJECT: &str = "default";

/// One project.
#[derive(Clone, Debug)]
pub struct Project {
    pub id: ProjectId,
    pub slug: String,
    pub name: String,
    pub user: Option<UserId>,
    pub created_at: Timestamp,
}

impl Project {
    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            slug: row.get("slug")?,
            name: row.get("name")?,
            user: row.get("user_id")?,
            created_at: row.get("created_at")?,
        })
    }
}

impl Accounts {
    #[kernel::boxed]
    pub async fn create_project(&self, slug: &str, name: Option<&str>) -> Result<Project, AccountError> {
        let slug: Slug = slug.parse().map_err(|_| AccountError::Invalid(slug.to_owned(), "project slug"))?;
        let project = Project {
            id: ProjectId::new(),
            name: name.unwrap_or(slug.as_str()).to_owned(),
            slug: slug.to_string(),
            user: None,
            created_at: self.clock.now(),
        };
        let sql = "insert into projects (id, slug, name, created_at) values ($1, $2, $3, $4)";
        match self.db.execute(sql, args![project.id, &slug, project.name.as_str(), project.created_at]).await {
            Err(StoreError::Conflict) => Err(AccountError::SlugTaken(project.slug)),
            Err(error) => Err(error.into()),
            Ok(_) => Ok(project),
        }
    }

    #[kernel::boxed]
    pub async fn list_projects(&self) -> Result<Vec<Project>, AccountError> {
        let rows = self.db.all("select id, slug, name, user_id, created_at from projects order by created_at, id", args![]).await?;
        Ok(rows.iter().map(Project::read).collect::<Result<_, _>>()?)
    }

    /// Finds a project by id or slug.
    #[kernel::boxed]
    pub async fn find_project(&self, name: &str) -> Result<Project, AccountError> {
        let id: Option<ProjectId> = name.parse().ok();
        let sql = "select id, slug, name, user_id, created_at from projects where id = $1 or slug = $2";
        let row = self.db.optional(sql, args![id, name]).await?.ok_or(AccountError::ProjectNotFound)?;
        Ok(Project::read(&row)?)
    }

    /// Removes a project and everything that belongs to it.
    #[kernel::boxed]
    pub async fn delete_project(&self, id: ProjectId) -> Result<(), AccountError> {
        let removed = self.db.execute("delete from projects where id = $1", args![id]).await?;
        self.authenticator.forget();
        if removed == 0 { Err(AccountError::ProjectNotFound) } else { Ok(()) }
    }
}
