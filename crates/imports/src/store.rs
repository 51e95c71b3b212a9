//! The queries over imports. Every one names the project, but those that look for changes of all of them.

use std::collections::BTreeSet;

use kernel::seal::{SealedColumn, Sealer};
use kernel::{ImportId, ProjectId};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use store::{Db, Row, StoreError, Tx, Usage, args};

use crate::{Import, ImportError, Source, Stored};

macro_rules! columns {
    () => {
        "project_id, id, provider_key, integration_key, name, source, origins, actions_count, version, created_at, updated_at, \
         created_by_id, updated_by_id"
    };
}

fn read(row: &Row) -> Result<Import, StoreError> {
    let origins: Option<Value> = row.get("origins")?;
    let source: Option<Value> = row.get("source")?;
    Ok(Import {
        id: row.get("id")?,
        project: row.get("project_id")?,
        provider: row.get("provider_key")?,
        key: row.get("integration_key")?,
        name: row.get("name")?,
        source: Source::read(&source.unwrap_or_default()),
        origins: origins.and_then(|origins| serde_json::from_value(origins).ok()).unwrap_or_default(),
        actions_count: row.get("actions_count")?,
        version: row.get("version")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        created_by: row.get("created_by_id")?,
        updated_by: row.get("updated_by_id")?,
    })
}

fn read_stored(row: &Row, sealer: &Sealer) -> Result<Stored, ImportError> {
    let import = read(row)?;
    let secret = row.get::<Option<Vec<u8>>>("secret")?.map(|sealed| sealer.open(&sealed, place(import.id))).transpose()?;
    let secret = secret.map(|plain| SecretString::from(String::from_utf8_lossy(&plain).into_owned()));
    Ok(Stored { definition: row.get("definition")?, secret, import })
}

pub(crate) fn place(id: ImportId) -> SealedColumn<'static> {
    SealedColumn { table: "imports", column: "secret", row: id.uuid() }
}

/// Oldest first, so that a list keeps its order.
pub(crate) async fn list(db: &Db, project: ProjectId) -> Result<Vec<Import>, StoreError> {
    let sql = concat!("select ", columns!(), " from imports where project_id = $1 order by created_at, id");
    db.all(sql, args![project]).await?.iter().map(read).collect()
}

pub(crate) async fn by_id(db: &Db, project: ProjectId, id: ImportId) -> Result<Option<Import>, StoreError> {
    let sql = concat!("select ", columns!(), " from imports where project_id = $1 and id = $2");
    db.optional(sql, args![project, id]).await?.as_ref().map(read).transpose()
}

pub(crate) async fn stored(db: &Db, sealer: &Sealer, project: ProjectId, id: ImportId) -> Result<Option<Stored>, ImportError> {
    let sql = concat!("select ", columns!(), ", definition, secret from imports where project_id = $1 and id = $2");
    db.optional(sql, args![project, id]).await?.map(|row| read_stored(&row, sealer)).transpose()
}

pub(crate) async fn stored_by_key(
    db: &Db,
    sealer: &Sealer,
    project: ProjectId,
    provider: &str,
    key: &str,
) -> Result<Option<Stored>, ImportError> {
    let sql = concat!(
        "select ",
        columns!(),
        ", definition, secret from imports where project_id = $1 and provider_key = $2 and integration_key = $3"
    );
    db.optional(sql, args![project, provider, key]).await?.map(|row| read_stored(&row, sealer)).transpose()
}

/// How many imports a project has and how long their definitions are, one left out.
pub(crate) async fn weight(db: &Db, project: ProjectId, without: Option<ImportId>) -> Result<Usage, StoreError> {
    let sql = "select count(*) as many, cast(coalesce(sum(length(definition)), 0) as bigint) as long from imports \
               where project_id = $1 and ($2 is null or id <> $2)";
    db.measure(sql, args![project, without]).await
}

/// A row to be written.
#[derive(Debug)]
pub(crate) struct Write<'a> {
    pub(crate) import: &'a Import,
    pub(crate) definition: &'a str,
    pub(crate) secret: Option<&'a SecretString>,
}

impl Write<'_> {
    fn sealed(&self, sealer: &Sealer) -> Option<Vec<u8>> {
        self.secret.map(|secret| sealer.seal(secret.expose_secret().as_bytes(), place(self.import.id)))
    }

    fn origins(&self) -> Value {
        self.import.origins.iter().map(String::as_str).collect()
    }
}

pub(crate) async fn insert(db: &Db, sealer: &Sealer, write: &Write<'_>) -> Result<(), StoreError> {
    let Import { project, id, provider, key, name, source, actions_count, version, created_at, updated_at, created_by, .. } = write.import;
    let mut tx = db.begin().await?;
    advance(&mut tx, *project).await?;
    let sql = "insert into imports (project_id, id, provider_key, integration_key, name, source, origins, definition, secret, actions_count, \
               version, created_at, updated_at, created_by_id) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
    let args = args![
        *project,
        *id,
        provider.as_str(),
        key.as_str(),
        name.as_str(),
        &source.json(),
        &write.origins(),
        write.definition,
        write.sealed(sealer),
        *actions_count,
        *version,
        *created_at,
        *updated_at,
        *created_by
    ];
    tx.execute(sql, args).await?;
    tx.commit().await
}

/// Puts a new version in place of the one that was read; says whether it was still there.
pub(crate) async fn replace(db: &Db, sealer: &Sealer, write: &Write<'_>, read: i64) -> Result<bool, StoreError> {
    let Import { project, id, name, source, actions_count, version, updated_at, updated_by, .. } = write.import;
    let mut tx = db.begin().await?;
    advance(&mut tx, *project).await?;
    let sql = "update imports set name = $4, source = $5, origins = $6, definition = $7, secret = $8, actions_count = $9, version = $10, \
               updated_at = $11, updated_by_id = $12 where project_id = $1 and id = $2 and version = $3";
    let args = args![
        *project,
        *id,
        read,
        name.as_str(),
        &source.json(),
        &write.origins(),
        write.definition,
        write.sealed(sealer),
        *actions_count,
        *version,
        *updated_at,
        *updated_by
    ];
    let replaced = tx.execute(sql, args).await? == 1;
    if replaced {
        tx.commit().await?;
    }
    Ok(replaced)
}

pub(crate) async fn delete(db: &Db, project: ProjectId, id: ImportId) -> Result<bool, StoreError> {
    let mut tx = db.begin().await?;
    advance(&mut tx, project).await?;
    let deleted = tx.execute("delete from imports where project_id = $1 and id = $2", args![project, id]).await? == 1;
    tx.commit().await?;
    Ok(deleted)
}

/// Takes the next edition for the project.
async fn advance(tx: &mut Tx, project: ProjectId) -> Result<(), StoreError> {
    let row = tx.optional("update import_counter set edition = edition + 1 where id = 1 returning edition", args![]).await?;
    let edition: i64 = row.ok_or_else(|| StoreError::Column("edition".to_owned()))?.get("edition")?;
    let sql = "insert into import_editions (project_id, edition) values ($1, $2) on conflict (project_id) do update set edition = excluded.edition";
    tx.execute(sql, args![project, edition]).await?;
    Ok(())
}

/// A project's edition and which version of which import it is made of, as one snapshot.
pub(crate) async fn outline(db: &Db, project: ProjectId) -> Result<(i64, Vec<(ImportId, i64)>), StoreError> {
    let sql = "select e.edition, i.id, i.version from import_editions e left join imports i on i.project_id = e.project_id \
               where e.project_id = $1 order by i.created_at, i.id";
    let rows = db.all(sql, args![project]).await?;
    let edition = rows.first().map_or(Ok(0), |row| row.get("edition"))?;
    let mut parts = Vec::with_capacity(rows.len());
    for row in &rows {
        if let Some(id) = row.get::<Option<ImportId>>("id")? {
            parts.push((id, row.get("version")?));
        }
    }
    Ok((edition, parts))
}

/// The projects that changed after an edition, and the last edition of all.
pub(crate) async fn changed_since(db: &Db, edition: i64) -> Result<(BTreeSet<(i64, uuid::Uuid)>, i64), StoreError> {
    let mut changed = BTreeSet::new();
    for row in db.all("select project_id, edition from import_editions where edition > $1", args![edition]).await? {
        changed.insert((row.get("edition")?, row.get("project_id")?));
    }
    let last = changed.last().map_or(edition, |(last, _)| *last);
    Ok((changed, last))
}

/// Seals the secrets of every import with the current key; one that changes meanwhile is left to its writer.
#[kernel::boxed]
pub async fn reseal(db: &Db, sealer: &Sealer) -> Result<u64, ImportError> {
    let mut resealed = 0;
    for row in db.all("select project_id, id, secret from imports where secret is not null", args![]).await? {
        let (project, id): (ProjectId, ImportId) = (row.get("project_id")?, row.get("id")?);
        let old: Vec<u8> = row.get("secret")?;
        if !sealer.is_current(&old) {
            let new = sealer.seal(&sealer.open(&old, place(id))?, place(id));
            let sql = "update imports set secret = $3 where project_id = $1 and id = $2 and secret = $4";
            resealed += db.execute(sql, args![project, id, new, old]).await?;
        }
    }
    Ok(resealed)
}

#[cfg(test)]
mod tests {
    use kernel::Timestamp;
    use kernel::seal::{KeyRing, SealingKey};

    use super::*;

    async fn with_project() -> (Db, ProjectId, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(&format!("sqlite://{}", dir.path().join("test.db").display())).await.unwrap();
        db.migrate().await.unwrap();
        let project = ProjectId::new();
        db.execute("insert into projects (id, slug, name, created_at) values ($1, 'p', 'P', 0)", args![project]).await.unwrap();
        (db, project, dir)
    }

    fn import(project: ProjectId) -> Import {
        Import {
            id: ImportId::new(),
            project,
            provider: "mcp".to_owned(),
            key: "files".to_owned(),
            name: "Files".to_owned(),
            source: Source { url: "https://example.com/mcp".parse().ok(), settings: serde_json::Map::new() },
            origins: BTreeSet::from(["https://example.com".to_owned()]),
            actions_count: 0,
            version: 1,
            created_at: Timestamp::from_micros(1),
            updated_at: Timestamp::from_micros(1),
            created_by: None,
            updated_by: None,
        }
    }

    #[tokio::test]
    async fn secrets_are_sealed_and_survive_a_rotation() {
        let (db, project, _dir) = with_project().await;
        let ring = KeyRing::of(SealingKey::generate());
        let sealer = Sealer::new(ring.clone());
        let import = import(project);
        let secret = SecretString::from("Bearer abc".to_owned());
        insert(&db, &sealer, &Write { import: &import, definition: "{}", secret: Some(&secret) }).await.unwrap();
        let row = db.optional("select secret from imports", args![]).await.unwrap().unwrap();
        assert!(!String::from_utf8_lossy(&row.get::<Vec<u8>>("secret").unwrap()).contains("abc"));
        let next = ring.with_new_key();
        assert_eq!(reseal(&db, &Sealer::new(next.clone())).await.unwrap(), 1);
        assert_eq!(reseal(&db, &Sealer::new(next.clone())).await.unwrap(), 0);
        let read = stored(&db, &Sealer::new(next.current_only()), project, import.id).await.unwrap().unwrap();
        assert_eq!(read.import, import);
        assert_eq!(read.secret.unwrap().expose_secret(), "Bearer abc");
    }

    #[tokio::test]
    async fn every_change_has_an_edition_of_its_own() {
        let (db, project, _dir) = with_project().await;
        let sealer = Sealer::new(KeyRing::of(SealingKey::generate()));
        assert_eq!(outline(&db, project).await.unwrap(), (0, Vec::new()));
        let mut import = import(project);
        insert(&db, &sealer, &Write { import: &import, definition: "{}", secret: None }).await.unwrap();
        assert_eq!(outline(&db, project).await.unwrap(), (1, vec![(import.id, 1)]));
        import.version = 2;
        let write = Write { import: &import, definition: "{}", secret: None };
        assert!(replace(&db, &sealer, &write, 1).await.unwrap());
        assert!(!replace(&db, &sealer, &write, 1).await.unwrap(), "somebody else was first");
        assert_eq!(outline(&db, project).await.unwrap(), (2, vec![(import.id, 2)]));
        assert_eq!(changed_since(&db, 1).await.unwrap(), (BTreeSet::from([(2, project.uuid())]), 2));
        assert!(delete(&db, project, import.id).await.unwrap());
        assert!(!delete(&db, project, import.id).await.unwrap());
        let (edition, parts) = outline(&db, project).await.unwrap();
        assert!(edition > 2 && parts.is_empty());
    }
}
