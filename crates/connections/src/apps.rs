//! OAuth apps: the client id and secret that a project, or the whole deployment, registered at a provider.

use kernel::seal::Place;
use kernel::{AppId, ProjectId, Timestamp};
use serde_json::Value;
use store::{Row, StoreError, args};

use crate::{ConnectionError, Connections};

/// Whose app it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Project(ProjectId),
    Deployment,
}

impl Owner {
    fn project(self) -> Option<ProjectId> {
        match self {
            Self::Project(project) => Some(project),
            Self::Deployment => None,
        }
    }

    fn text(self) -> String {
        self.project().map_or_else(|| "deployment".to_owned(), |project| project.to_string())
    }
}

/// An app as it is listed: without its secret.
#[derive(Clone, Debug)]
pub struct App {
    pub id: AppId,
    pub project: Option<ProjectId>,
    pub provider: String,
    pub integration: String,
    pub client_id: String,
    pub scopes: Option<Vec<String>>,
    pub created_at: Timestamp,
    secret: Vec<u8>,
}

/// What a new app shall be.
#[derive(Clone)]
pub struct NewApp {
    pub provider: String,
    pub integration: String,
    pub client_id: String,
    pub client_secret: String,
    pub scopes: Option<Vec<String>>,
}

impl std::fmt::Debug for NewApp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewApp").field("integration", &self.integration).finish_non_exhaustive()
    }
}

macro_rules! columns {
    () => {
        "project_id, id, provider_key, integration_key, client_id, client_secret, scopes, created_at"
    };
}

fn read(row: &Row) -> Result<App, StoreError> {
    let scopes = row.get::<Option<Value>>("scopes")?;
    Ok(App {
        id: row.get("id")?,
        project: row.get("project_id")?,
        provider: row.get("provider_key")?,
        integration: row.get("integration_key")?,
        client_id: row.get("client_id")?,
        scopes: scopes.and_then(|scopes| serde_json::from_value(scopes).ok()),
        created_at: row.get("created_at")?,
        secret: row.get("client_secret")?,
    })
}

pub(crate) fn place(id: AppId) -> Place<'static> {
    Place { table: "oauth_apps", column: "client_secret", row: id.uuid() }
}

impl Connections {
    /// Keeps an app; one that was there for the same integration is replaced.
    pub async fn set_app(&self, owner: Owner, new: NewApp) -> Result<App, ConnectionError> {
        if new.client_id.trim().is_empty() {
            return Err(ConnectionError::Field("`client_id` is empty".to_owned()));
        }
        if let Owner::Project(project) = owner {
            self.catalog.integration(project, &new.provider, &new.integration)?;
        } else {
            self.catalog.source(&new.provider)?;
        }
        let id = AppId::new();
        let secret = self.sealer.seal(new.client_secret.as_bytes(), place(id));
        let scopes = new.scopes.as_ref().map(|scopes| Value::from(scopes.clone()));
        // The secret is sealed for its row, so a replacement is a new row.
        let mut tx = self.db.begin().await?;
        tx.execute(
            "delete from oauth_apps where owner = $1 and provider_key = $2 and integration_key = $3",
            args![owner.text(), new.provider.as_str(), new.integration.as_str()],
        )
        .await?;
        let sql = concat!(
            "insert into oauth_apps (project_id, id, owner, provider_key, integration_key, client_id, client_secret, scopes, created_at) \
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9) returning ",
            columns!()
        );
        let args = args![
            owner.project(),
            id,
            owner.text(),
            new.provider.as_str(),
            new.integration.as_str(),
            new.client_id.trim(),
            secret,
            scopes.as_ref(),
            self.clock.now()
        ];
        let row = tx.optional(sql, args).await?.ok_or(ConnectionError::NotFound)?;
        tx.commit().await?;
        Ok(read(&row)?)
    }

    /// The apps of one owner.
    pub async fn list_apps(&self, owner: Owner) -> Result<Vec<App>, ConnectionError> {
        let sql = concat!("select ", columns!(), " from oauth_apps where owner = $1 order by integration_key");
        let rows = self.db.all(sql, args![owner.text()]).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    pub async fn delete_app(&self, owner: Owner, id: AppId) -> Result<(), ConnectionError> {
        let removed = self.db.execute("delete from oauth_apps where owner = $1 and id = $2", args![owner.text(), id]).await?;
        if removed == 0 { Err(ConnectionError::NotFound) } else { Ok(()) }
    }

    /// The app for an integration: the one a connection was made with, else the project's own, else the deployment's.
    pub(crate) async fn app_for(
        &self,
        project: ProjectId,
        provider: &str,
        integration: &str,
        made_with: Option<AppId>,
    ) -> Result<Option<App>, ConnectionError> {
        let sql = concat!(
            "select ",
            columns!(),
            " from oauth_apps where (owner = $1 or owner = 'deployment') and provider_key = $2 and integration_key = $3 \
             order by case when id = $4 then 0 when owner = $1 then 1 else 2 end limit 1"
        );
        let row = self.db.optional(sql, args![project.to_string(), provider, integration, made_with]).await?;
        Ok(row.as_ref().map(read).transpose()?)
    }

    pub(crate) fn app_secret(&self, app: &App) -> Result<String, ConnectionError> {
        let secret = self.sealer.open(&app.secret, place(app.id))?;
        String::from_utf8(secret).map_err(|_| kernel::seal::SealError::Damaged.into())
    }
}
