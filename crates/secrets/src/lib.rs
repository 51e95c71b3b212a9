//! Named secrets of a project: kept sealed, written by people, shown by value only to keys that may read them, and sent in headers to the
//! hosts that they were given for. It must never know what a workflow or a tool is.

mod error;
mod host;
mod reads;
mod rows;
mod text;

use std::time::Duration;

use kernel::seal::Sealer;
use kernel::{Clock, ProjectId, Scope, SecretId, Slug, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use store::{Db, Row, StoreError, args, row};
use uuid::Uuid;

pub use error::SecretError;
pub use host::Host;
pub use reads::{Purpose, SecretRead};
pub use rows::reseal;
pub use text::{Part, ReferenceError, parts};

/// The most secrets that a project may have, which is also what one list shows.
pub const MOST: usize = 500;
/// The longest value, in bytes.
const MAX_VALUE: usize = 32 << 10;
/// The longest name, and the longest description, in characters.
const MAX_NAME: usize = 200;
const MAX_DESCRIPTION: usize = 2000;
const MAX_HOSTS: usize = 50;

/// The named secrets of a deployment.
#[derive(Clone, Debug)]
pub struct Secrets {
    db: Db,
    clock: Clock,
    sealer: Sealer,
    /// How long it is kept who was shown a value.
    reads_kept: Duration,
}

/// A secret as it is listed: everything but its value.
#[derive(Clone, Debug)]
pub struct Secret {
    pub id: SecretId,
    pub project: ProjectId,
    pub slug: String,
    pub name: Option<String>,
    pub description: Option<String>,
    /// Where it may be sent in a header.
    pub hosts: Vec<Host>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub updated_by: Option<Uuid>,
}

/// What a new secret shall be.
#[derive(Debug)]
pub struct NewSecret {
    pub slug: Slug,
    pub name: Option<String>,
    pub description: Option<String>,
    pub hosts: Vec<Host>,
    pub value: SecretString,
}

/// What becomes of a secret; what is not given stays.
#[derive(Debug, Default)]
pub struct SecretChange {
    pub name: Option<String>,
    pub description: Option<String>,
    pub hosts: Option<Vec<Host>>,
    pub value: Option<SecretString>,
}

impl Secret {
    /// Whether it may be sent to where an address leads.
    pub fn may_go_to(&self, url: &url::Url) -> Result<(), SecretError> {
        if self.hosts.iter().any(|host| host.is_of(url)) {
            return Ok(());
        }
        let host = Host::of(url).map(|host| host.to_string()).unwrap_or_default();
        Err(SecretError::OtherHost { slug: self.slug.clone(), host })
    }

    fn read(row: &Row) -> Result<Self, StoreError> {
        let hosts: Value = row.get("hosts")?;
        let hosts = hosts.as_array().into_iter().flatten().filter_map(|host| host.as_str()?.parse().ok());
        Ok(Self {
            id: row.get("id")?,
            project: row.get("project_id")?,
            slug: row.get("slug")?,
            name: row.get("name")?,
            description: row.get("description")?,
            hosts: hosts.collect(),
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
            updated_by: row.get("updated_by_id")?,
        })
    }
}

impl Secrets {
    pub fn new(db: Db, clock: Clock, sealer: Sealer, reads_kept: Duration) -> Self {
        Self { db, clock, sealer, reads_kept }
    }

    #[kernel::boxed]
    pub async fn create(&self, scope: Scope, new: NewSecret) -> Result<Secret, SecretError> {
        check_words(new.name.as_deref(), new.description.as_deref())?;
        check_hosts(&new.hosts)?;
        check_value(&new.value)?;
        let (id, now) = (SecretId::new(), self.clock.now());
        let hosts = written(&new.hosts);
        let value = self.sealer.seal(new.value.expose_secret().as_bytes(), rows::place(id));
        let mut tx = self.db.begin().await?;
        let many = tx.optional("select count(*) as many from secrets where project_id = $1", args![scope.project]).await?;
        if many.map_or(Ok(0), |row| row.get::<i64>("many"))? >= i64::try_from(MOST).unwrap_or(i64::MAX) {
            return Err(SecretError::TooMany);
        }
        let row = row! {
            project_id: scope.project,
            id: id,
            slug: &new.slug,
            name: new.name.as_deref(),
            description: new.description.as_deref(),
            hosts: &hosts,
            value: value,
            created_at: now,
            updated_at: now,
            updated_by_id: scope.author(),
        };
        match tx.insert("secrets", row).await {
            Err(StoreError::Conflict) => return Err(SecretError::Taken(new.slug.to_string())),
            inserted => inserted?,
        }
        tx.commit().await?;
        self.find(scope.project, new.slug.as_str()).await
    }

    /// All secrets of a project, by their slugs.
    #[kernel::boxed]
    pub async fn list(&self, project: ProjectId) -> Result<Vec<Secret>, SecretError> {
        let rows =
            self.db.all(concat!("select ", rows::columns!(), " from secrets where project_id = $1 order by slug"), args![project]).await?;
        Ok(rows.iter().map(Secret::read).collect::<Result<_, _>>()?)
    }

    /// A secret by its slug or its id.
    #[kernel::boxed]
    pub async fn find(&self, project: ProjectId, named: &str) -> Result<Secret, SecretError> {
        match rows::find(&self.db, project, named).await? {
            Some(row) => Ok(Secret::read(&row)?),
            None => Err(self.missing(project, named).await),
        }
    }

    /// Changes what is given and nothing else.
    #[kernel::boxed]
    pub async fn change(&self, scope: Scope, named: &str, change: SecretChange) -> Result<Secret, SecretError> {
        check_words(change.name.as_deref(), change.description.as_deref())?;
        change.hosts.as_deref().map_or(Ok(()), check_hosts)?;
        change.value.as_ref().map_or(Ok(()), check_value)?;
        let Secret { id, .. } = self.find(scope.project, named).await?;
        let value = change.value.map(|value| self.sealer.seal(value.expose_secret().as_bytes(), rows::place(id)));
        let hosts = change.hosts.as_deref().map(written);
        let sql = concat!(
            "update secrets set name = coalesce($3, name), description = coalesce($4, description), hosts = coalesce($5, hosts), \
             value = coalesce($6, value), updated_at = $7, updated_by_id = $8 where project_id = $1 and id = $2 returning ",
            rows::columns!()
        );
        let (name, description) = (change.name.as_deref(), change.description.as_deref());
        let (now, author) = (self.clock.now(), scope.author());
        let changed = self.db.returning(sql, args![scope.project, id, name, description, hosts.as_ref(), value, now, author]).await?;
        match changed {
            Some(row) => Ok(Secret::read(&row)?),
            None => Err(self.missing(scope.project, named).await),
        }
    }

    #[kernel::boxed]
    pub async fn delete(&self, scope: Scope, named: &str) -> Result<Secret, SecretError> {
        let secret = self.find(scope.project, named).await?;
        match self.db.execute("delete from secrets where project_id = $1 and id = $2", args![scope.project, secret.id]).await? {
            0 => Err(self.missing(scope.project, named).await),
            _ => Ok(secret),
        }
    }

    /// A secret for a header of a request to a host that it was given for.
    #[kernel::boxed]
    pub async fn for_host(&self, project: ProjectId, slug: &str, url: &url::Url) -> Result<SecretString, SecretError> {
        let Some(row) = rows::find(&self.db, project, slug).await? else { return Err(self.missing(project, slug).await) };
        let secret = Secret::read(&row)?;
        secret.may_go_to(url)?;
        self.open(secret.id, &row)
    }

    fn open(&self, id: SecretId, row: &Row) -> Result<SecretString, SecretError> {
        let value = self.sealer.open(&row.get::<Vec<u8>>("value")?, rows::place(id))?;
        String::from_utf8(value).map(SecretString::from).map_err(|_| kernel::seal::SealError::Damaged.into())
    }

    /// A name that no secret has, with the nearest that one has.
    async fn missing(&self, project: ProjectId, named: &str) -> SecretError {
        match self.list(project).await {
            Ok(known) => SecretError::not_found(named, known.iter().map(|secret| secret.slug.as_str())),
            Err(error) => error,
        }
    }
}

fn written(hosts: &[Host]) -> Value {
    hosts.iter().map(Host::to_string).collect()
}

fn check_words(name: Option<&str>, description: Option<&str>) -> Result<(), SecretError> {
    let longer = |text: Option<&str>, most: usize| text.is_some_and(|text| text.chars().count() > most);
    match () {
        () if longer(name, MAX_NAME) => Err(SecretError::Invalid(format!("`name` has more than {MAX_NAME} characters"))),
        () if longer(description, MAX_DESCRIPTION) => {
            Err(SecretError::Invalid(format!("`description` has more than {MAX_DESCRIPTION} characters")))
        }
        () => Ok(()),
    }
}

fn check_hosts(hosts: &[Host]) -> Result<(), SecretError> {
    if hosts.len() > MAX_HOSTS { Err(SecretError::Invalid(format!("`hosts` has more than {MAX_HOSTS} hosts"))) } else { Ok(()) }
}

fn check_value(value: &SecretString) -> Result<(), SecretError> {
    match value.expose_secret().len() {
        0 => Err(SecretError::Invalid("the value is empty".to_owned())),
        length if length > MAX_VALUE => Err(SecretError::Invalid(format!("the value has more than {MAX_VALUE} bytes"))),
        _ => Ok(()),
    }
}
