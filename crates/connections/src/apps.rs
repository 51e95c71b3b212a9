//! OAuth apps: the client id and secret that a project, or the whole deployment, registered at a provider.

use catalog::Integration;
use kernel::seal::Place;
use kernel::{AppId, ProjectId, Timestamp};
use serde_json::Value;
use store::{Row, StoreError, args};
use uuid::Uuid;

use crate::{Connection, ConnectionError, Connections};

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
    /// Keeps an app; one that was there for the same integration is replaced. A new secret for the same client keeps the app's id, so
    /// that connections made with it go on; another client is another app.
    pub async fn set_app(&self, owner: Owner, new: NewApp) -> Result<App, ConnectionError> {
        let client_id = new.client_id.trim();
        if client_id.is_empty() {
            return Err(ConnectionError::Field("`client_id` is empty".to_owned()));
        }
        let project = owner.project().unwrap_or_else(|| ProjectId::from(Uuid::nil()));
        self.catalog.reach_integration(project, &new.provider, &new.integration).await?;
        let mut tx = self.db.begin().await?;
        let sql = concat!("select ", columns!(), " from oauth_apps where owner = $1 and provider_key = $2 and integration_key = $3");
        let known =
            tx.optional(sql, args![owner.text(), new.provider.as_str(), new.integration.as_str()]).await?.as_ref().map(read).transpose()?;
        let id = known.as_ref().filter(|app| app.client_id == client_id).map_or_else(AppId::new, |app| app.id);
        let secret = self.sealer.seal(new.client_secret.as_bytes(), place(id));
        let scopes = new.scopes.as_ref().map(|scopes| Value::from(scopes.clone()));
        if let Some(known) = known {
            tx.execute("delete from oauth_apps where owner = $1 and id = $2", args![owner.text(), known.id]).await?;
        }
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
            client_id,
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

    /// The app for a new connection: the project's own, else the deployment's where that may be `shared`: its secret never goes where a project
    /// says.
    pub(crate) async fn app_for(
        &self,
        project: ProjectId,
        integration: &Integration,
        shared: bool,
    ) -> Result<Option<App>, ConnectionError> {
        let sql = concat!(
            "select ",
            columns!(),
            " from oauth_apps where (owner = $1 or (owner = 'deployment' and $4)) and provider_key = $2 and integration_key = $3 \
             order by case when owner = $1 then 0 else 1 end limit 1"
        );
        let row = self.db.optional(sql, args![project.to_string(), integration.provider, integration.key.as_str(), shared]).await?;
        Ok(row.as_ref().map(read).transpose()?)
    }

    /// The app that a grant was given to, and no other: a provider would take another's request for a stolen token.
    pub(crate) async fn app_used(&self, project: ProjectId, id: Option<AppId>) -> Result<Option<App>, ConnectionError> {
        let Some(id) = id else { return Ok(None) };
        let sql = concat!("select ", columns!(), " from oauth_apps where (owner = $1 or owner = 'deployment') and id = $2");
        let row = self.db.optional(sql, args![project.to_string(), id]).await?;
        Ok(row.as_ref().map(read).transpose()?)
    }

    /// The client secret of the app that a connection was made with, if it was made with one that is still there.
    pub async fn client_secret(&self, connection: &Connection) -> Result<Option<String>, ConnectionError> {
        let app = self.app_used(connection.project, connection.app).await?;
        app.map(|app| self.app_secret(&app)).transpose()
    }

    pub(crate) fn app_secret(&self, app: &App) -> Result<String, ConnectionError> {
        let secret = self.sealer.open(&app.secret, place(app.id))?;
        String::from_utf8(secret).map_err(|_| kernel::seal::SealError::Damaged.into())
    }
}
