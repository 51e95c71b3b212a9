//! OAuth apps: the client id and secret that a project, or the whole deployment, registered at a provider.

use catalog::Integration;
use catalog::auth::AuthScheme;
use kernel::seal::SealedColumn;
use kernel::{AppId, AuthConfigId, ProjectId, Timestamp};
use serde_json::Value;
use sha2::{Digest, Sha256};
use store::{Row, StoreError, args};
use uuid::Uuid;

use crate::{Connection, ConnectionError, Connections};

/// Whose app it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Project(ProjectId),
    /// Of a project, and used by those connections only that are made with this auth config.
    AuthConfig(ProjectId, AuthConfigId),
    Deployment,
}

impl Owner {
    fn project(self) -> Option<ProjectId> {
        match self {
            Self::Project(project) | Self::AuthConfig(project, _) => Some(project),
            Self::Deployment => None,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Project(project) => project.to_string(),
            Self::AuthConfig(_, config) => format!("auth-config/{config}"),
            Self::Deployment => "deployment".to_owned(),
        }
    }

    /// Known before there is an app: a provider wants the address before it hands out a client id. An auth config has its project's.
    fn redirect_tag(self, provider: &str, integration: &str) -> String {
        let owner = self.project().map_or(self, Self::Project);
        let digest = Sha256::digest(format!("{}/{provider}/{integration}", owner.text()));
        kernel::hex::encode(&digest[..8])
    }
}

/// An app as it is listed: without its secret.
#[derive(Clone, Debug)]
pub struct OAuthApp {
    pub id: AppId,
    pub project: Option<ProjectId>,
    pub provider: String,
    pub integration: String,
    pub client_id: String,
    pub scopes: Option<Vec<String>>,
    pub created_at: Timestamp,
    /// Whether people are sent back to an address that is this app's alone.
    has_own_redirect: bool,
    secret: Vec<u8>,
}

impl OAuthApp {
    fn owner(&self) -> Owner {
        self.project.map_or(Owner::Deployment, Owner::Project)
    }

    /// The last part of the address that people are sent back to, where the app has one of its own.
    pub(crate) fn redirect_tag(&self) -> Option<String> {
        self.has_own_redirect.then(|| self.owner().redirect_tag(&self.provider, &self.integration))
    }
}

/// What a new app shall be.
#[derive(Clone)]
pub struct NewOAuthApp {
    pub provider: String,
    pub integration: String,
    pub client_id: String,
    pub client_secret: String,
    pub scopes: Option<Vec<String>>,
}

impl std::fmt::Debug for NewOAuthApp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewOAuthApp").field("integration", &self.integration).finish_non_exhaustive()
    }
}

macro_rules! columns {
    () => {
        "project_id, id, provider_key, integration_key, client_id, client_secret, scopes, created_at, own_redirect"
    };
}

fn read(row: &Row) -> Result<OAuthApp, StoreError> {
    let scopes = row.get::<Option<Value>>("scopes")?;
    Ok(OAuthApp {
        id: row.get("id")?,
        project: row.get("project_id")?,
        provider: row.get("provider_key")?,
        integration: row.get("integration_key")?,
        client_id: row.get("client_id")?,
        scopes: scopes.and_then(|scopes| serde_json::from_value(scopes).ok()),
        created_at: row.get("created_at")?,
        has_own_redirect: row.get("own_redirect")?,
        secret: row.get("client_secret")?,
    })
}

pub(crate) fn place(id: AppId) -> SealedColumn<'static> {
    SealedColumn { table: "oauth_apps", column: "client_secret", row: id.uuid() }
}

impl Connections {
    /// Keeps an app; one that was there for the same integration is replaced. A new secret for the same client keeps the app's id, so
    /// that connections made with it go on; another client is another app.
    #[kernel::boxed]
    pub async fn set_app(&self, owner: Owner, new: NewOAuthApp) -> Result<OAuthApp, ConnectionError> {
        let client_id = new.client_id.trim();
        if client_id.is_empty() {
            return Err(ConnectionError::Field("`client_id` is empty".to_owned()));
        }
        let project = owner.project().unwrap_or_else(|| ProjectId::from(Uuid::nil()));
        self.0.catalog.reach_integration(project, &new.provider, &new.integration).await?;
        let mut tx = self.0.db.begin().await?;
        let sql = concat!("select ", columns!(), " from oauth_apps where owner = $1 and provider_key = $2 and integration_key = $3");
        let known =
            tx.optional(sql, args![owner.text(), new.provider.as_str(), new.integration.as_str()]).await?.as_ref().map(read).transpose()?;
        let same = known.as_ref().filter(|app| app.client_id == client_id);
        let (id, own_redirect) = same.map_or_else(|| (AppId::new(), true), |app| (app.id, app.has_own_redirect));
        let secret = self.0.sealer.seal(new.client_secret.as_bytes(), place(id));
        let scopes = new.scopes.as_ref().map(|scopes| Value::from(scopes.clone()));
        if let Some(known) = known {
            tx.execute("delete from oauth_apps where owner = $1 and id = $2", args![owner.text(), known.id]).await?;
        }
        let sql = concat!(
            "insert into oauth_apps (project_id, id, owner, provider_key, integration_key, client_id, client_secret, scopes, created_at, own_redirect) \
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) returning ",
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
            self.0.clock.now(),
            own_redirect
        ];
        let row = tx.optional(sql, args).await?.ok_or(ConnectionError::NotFound)?;
        tx.commit().await?;
        Ok(read(&row)?)
    }

    /// The address to register as the redirect URL of an owner's app. Each app has its own, so that what one provider sends back is never
    /// taken for the answer of another.
    pub fn redirect_url(&self, owner: Owner, provider: &str, integration: &str) -> String {
        format!("{}/{}", self.callback_url(), owner.redirect_tag(provider, integration))
    }

    /// The address that people are sent back to for an app that is there.
    pub fn app_redirect_url(&self, app: &OAuthApp) -> String {
        self.redirect_at(app.redirect_tag().as_deref())
    }

    pub(crate) fn redirect_at(&self, tag: Option<&str>) -> String {
        tag.map_or_else(|| self.callback_url(), |tag| format!("{}/{tag}", self.callback_url()))
    }

    /// The apps of one owner.
    #[kernel::boxed]
    pub async fn list_apps(&self, owner: Owner) -> Result<Vec<OAuthApp>, ConnectionError> {
        let sql = concat!("select ", columns!(), " from oauth_apps where owner = $1 order by integration_key");
        let rows = self.0.db.all(sql, args![owner.text()]).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    #[kernel::boxed]
    pub async fn delete_app(&self, owner: Owner, id: AppId) -> Result<(), ConnectionError> {
        let removed = self.0.db.execute("delete from oauth_apps where owner = $1 and id = $2", args![owner.text(), id]).await?;
        if removed == 0 { Err(ConnectionError::NotFound) } else { Ok(()) }
    }

    /// The app for a new connection: the project's own, else the deployment's where that may be `shared`: its secret never goes where a project
    /// says.
    pub(crate) async fn app_for(
        &self,
        project: ProjectId,
        integration: &Integration,
        shared: bool,
    ) -> Result<Option<OAuthApp>, ConnectionError> {
        let sql = concat!(
            "select ",
            columns!(),
            " from oauth_apps where (owner = $1 or (owner = 'deployment' and $4)) and provider_key = $2 and integration_key = $3 \
             order by case when owner = $1 then 0 else 1 end limit 1"
        );
        let row = self.0.db.optional(sql, args![project.to_string(), integration.provider, integration.key.as_str(), shared]).await?;
        Ok(row.as_ref().map(read).transpose()?)
    }

    /// Whether accounts of an integration can be connected by OAuth without another app: the project or the deployment has one, or the
    /// provider.
    #[kernel::boxed]
    pub async fn has_app(&self, project: ProjectId, integration: &Integration) -> Result<bool, ConnectionError> {
        let (shared, is_managed) = match integration.schemes().find(|scheme| scheme.name() == "oauth2") {
            Some(AuthScheme::OAuth2(oauth)) => (!oauth.trusts_the_connection(), false),
            Some(AuthScheme::Hosted(hosted)) => (true, hosted.is_managed),
            _ => return Ok(false),
        };
        Ok(is_managed || self.app_for(project, integration, shared).await?.is_some())
    }

    /// The app that a grant was given to, and no other: a provider would take another's request for a stolen token.
    pub(crate) async fn app_used(&self, project: ProjectId, id: Option<AppId>) -> Result<Option<OAuthApp>, ConnectionError> {
        let Some(id) = id else { return Ok(None) };
        let sql = concat!("select ", columns!(), " from oauth_apps where (project_id = $1 or owner = 'deployment') and id = $2");
        let row = self.0.db.optional(sql, args![project, id]).await?;
        Ok(row.as_ref().map(read).transpose()?)
    }

    /// The client secret of the app that a connection was made with, if it was made with one that is still there.
    #[kernel::boxed]
    pub async fn client_secret(&self, connection: &Connection) -> Result<Option<String>, ConnectionError> {
        let app = self.app_used(connection.project, connection.app).await?;
        app.map(|app| self.app_secret(&app)).transpose()
    }

    pub(crate) fn app_secret(&self, app: &OAuthApp) -> Result<String, ConnectionError> {
        let secret = self.0.sealer.open(&app.secret, place(app.id))?;
        String::from_utf8(secret).map_err(|_| kernel::seal::SealError::Damaged.into())
    }
}
