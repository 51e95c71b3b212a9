//! The queries over histories. Every one names the project and the family.

use kernel::{ArtifactId, ProjectId, RevisionId, Timestamp, VariantId};
use store::{Db, Row, StoreError, Tx, args, holding};
use uuid::Uuid;

use crate::{Artifact, Edit, Family, Query, Revision, Variant};

const DEFAULT_PAGE: i64 = 100;
const MAX_PAGE: i64 = 1000;

macro_rules! artifact_columns {
    () => {
        "project_id, id, slug, name, description, flags, tags, meta, is_guarded, created_at, updated_at, archived_at, created_by_id"
    };
}

macro_rules! variant_columns {
    () => {
        "project_id, id, artifact_id, slug, name, description, created_at, updated_at, archived_at, created_by_id"
    };
}

macro_rules! revision_columns {
    () => {
        "project_id, id, artifact_id, variant_id, slug, version, data, message, created_at, archived_at, created_by_id"
    };
}

fn artifact(row: &Row) -> Result<Artifact, StoreError> {
    Ok(Artifact {
        id: row.get("id")?,
        project: row.get("project_id")?,
        slug: row.get("slug")?,
        name: row.get("name")?,
        description: row.get("description")?,
        flags: row.get("flags")?,
        tags: row.get("tags")?,
        meta: row.get("meta")?,
        is_guarded: row.get("is_guarded")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        archived_at: row.get("archived_at")?,
        created_by: row.get("created_by_id")?,
    })
}

fn variant(row: &Row) -> Result<Variant, StoreError> {
    Ok(Variant {
        id: row.get("id")?,
        project: row.get("project_id")?,
        artifact: row.get("artifact_id")?,
        slug: row.get("slug")?,
        name: row.get("name")?,
        description: row.get("description")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        archived_at: row.get("archived_at")?,
        created_by: row.get("created_by_id")?,
    })
}

fn revision(row: &Row) -> Result<Revision, StoreError> {
    Ok(Revision {
        id: row.get("id")?,
        project: row.get("project_id")?,
        artifact: row.get("artifact_id")?,
        variant: row.get("variant_id")?,
        slug: row.get("slug")?,
        version: row.get("version")?,
        data: row.get("data")?,
        message: row.get("message")?,
        created_at: row.get("created_at")?,
        archived_at: row.get("archived_at")?,
        created_by: row.get("created_by_id")?,
    })
}

pub(crate) async fn insert_artifact(tx: &mut Tx, family: Family, new: &Artifact) -> Result<(), StoreError> {
    let sql = "insert into artifacts (project_id, id, family, slug, name, description, flags, tags, meta, is_guarded, created_at, updated_at, \
               created_by_id) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
    let args = args![
        new.project,
        new.id,
        family.name(),
        new.slug.as_str(),
        new.name.as_deref(),
        new.description.as_deref(),
        new.flags.as_ref(),
        new.tags.as_ref(),
        new.meta.as_ref(),
        new.is_guarded,
        new.created_at,
        new.updated_at,
        new.created_by
    ];
    tx.execute(sql, args).await.map(|_| ())
}

pub(crate) async fn insert_variant(tx: &mut Tx, family: Family, new: &Variant) -> Result<(), StoreError> {
    let sql = "insert into variants (project_id, id, artifact_id, family, slug, name, description, created_at, updated_at, created_by_id) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let args = args![
        new.project,
        new.id,
        new.artifact,
        family.name(),
        new.slug.as_str(),
        new.name.as_deref(),
        new.description.as_deref(),
        new.created_at,
        new.updated_at,
        new.created_by
    ];
    tx.execute(sql, args).await.map(|_| ())
}

pub(crate) async fn insert_revision(tx: &mut Tx, family: Family, new: &Revision) -> Result<(), StoreError> {
    let sql = "insert into revisions (project_id, id, artifact_id, variant_id, family, slug, version, data, message, created_at, created_by_id) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    let args = args![
        new.project,
        new.id,
        new.artifact,
        new.variant,
        family.name(),
        new.slug.as_str(),
        new.version,
        new.data.as_ref(),
        new.message.as_deref(),
        new.created_at,
        new.created_by
    ];
    tx.execute(sql, args).await.map(|_| ())
}

pub(crate) async fn artifact_by(
    db: &Db,
    project: ProjectId,
    family: Family,
    id: Option<Uuid>,
    slug: Option<&str>,
) -> Result<Option<Artifact>, StoreError> {
    let sql = concat!(
        "select ",
        artifact_columns!(),
        " from artifacts where project_id = $1 and family = $2 and ($3 is null or id = $3) and ($4 is null or slug = $4) limit 1"
    );
    db.optional(sql, args![project, family.name(), id, slug]).await?.as_ref().map(artifact).transpose()
}

pub(crate) async fn variant_by(
    db: &Db,
    project: ProjectId,
    family: Family,
    id: Option<Uuid>,
    slug: Option<&str>,
) -> Result<Option<Variant>, StoreError> {
    let sql = concat!(
        "select ",
        variant_columns!(),
        " from variants where project_id = $1 and family = $2 and ($3 is null or id = $3) and ($4 is null or slug = $4) limit 1"
    );
    db.optional(sql, args![project, family.name(), id, slug]).await?.as_ref().map(variant).transpose()
}

/// The default variant of an artifact: its oldest, also when that is archived. A name must not lead to another line of history.
pub(crate) async fn default_variant(db: &Db, project: ProjectId, artifact: ArtifactId) -> Result<Option<Variant>, StoreError> {
    let sql =
        concat!("select ", variant_columns!(), " from variants where project_id = $1 and artifact_id = $2 order by created_at, id limit 1");
    db.optional(sql, args![project, artifact]).await?.as_ref().map(variant).transpose()
}

pub(crate) async fn revision_by(
    db: &Db,
    project: ProjectId,
    family: Family,
    id: Option<Uuid>,
    slug: Option<&str>,
) -> Result<Option<Revision>, StoreError> {
    let sql = concat!(
        "select ",
        revision_columns!(),
        " from revisions where project_id = $1 and family = $2 and ($3 is null or id = $3) and ($4 is null or slug = $4) order by version desc limit 1"
    );
    db.optional(sql, args![project, family.name(), id, slug]).await?.as_ref().map(revision).transpose()
}

/// A variant's revision of one version, or its newest.
pub(crate) async fn revision_of(
    db: &Db,
    project: ProjectId,
    variant: VariantId,
    version: Option<i64>,
) -> Result<Option<Revision>, StoreError> {
    let sql = concat!(
        "select ",
        revision_columns!(),
        " from revisions where project_id = $1 and variant_id = $2 and ($3 is null or version = $3) and archived_at is null order by version desc limit 1"
    );
    db.optional(sql, args![project, variant, version]).await?.as_ref().map(revision).transpose()
}

/// A variant's revisions by version, newest first.
pub(crate) async fn log(
    db: &Db,
    project: ProjectId,
    variant: VariantId,
    from: Option<i64>,
    depth: i64,
) -> Result<Vec<Revision>, StoreError> {
    let sql = concat!(
        "select ",
        revision_columns!(),
        " from revisions where project_id = $1 and variant_id = $2 and ($3 is null or version <= $3) order by version desc limit $4"
    );
    db.all(sql, args![project, variant, from, depth]).await?.iter().map(revision).collect()
}

/// Where a commit begins.
#[derive(Debug)]
pub(crate) struct Head {
    /// The newest revision that is not archived.
    pub(crate) revision: Option<Revision>,
    /// The highest version there ever was.
    pub(crate) version: Option<i64>,
    /// Whether the artifact is guarded.
    pub(crate) is_guarded: bool,
}

/// Where a commit begins, with the variant's row held so that two commits cannot take the same version.
pub(crate) async fn head_for_commit(tx: &mut Tx, variant: &Variant, now: Timestamp) -> Result<Head, StoreError> {
    let (project, id) = (variant.project, variant.id);
    tx.execute("update variants set updated_at = $3 where project_id = $1 and id = $2", args![project, id, now]).await?;
    // Its row is held too, so that nobody guards it before this commit is made.
    let sql = "update artifacts set updated_at = updated_at where project_id = $1 and id = $2 returning is_guarded";
    let guarded = tx.optional(sql, args![project, variant.artifact]).await?;
    let sql = "select version from revisions where project_id = $1 and variant_id = $2 order by version desc limit 1";
    let version = tx.optional(sql, args![project, id]).await?.map(|row| row.get("version")).transpose()?;
    let sql = concat!(
        "select ",
        revision_columns!(),
        " from revisions where project_id = $1 and variant_id = $2 and archived_at is null order by version desc limit 1"
    );
    let revision = tx.optional(sql, args![project, id]).await?.as_ref().map(revision).transpose()?;
    Ok(Head { revision, version, is_guarded: guarded.map_or(Ok(false), |row| row.get("is_guarded"))? })
}

/// A page of artifacts, newest first.
pub(crate) async fn artifacts(db: &Db, project: ProjectId, family: Family, query: &Query) -> Result<Vec<Artifact>, StoreError> {
    let sql = concat!(
        "select ",
        artifact_columns!(),
        " from artifacts where project_id = $1 and family = $2 and ($3 is null or lower(slug) like $3 escape '\\' or lower(name) like $3 escape '\\') \
         and ($4 or archived_at is null) and ($5 is null or id < $5) and ($6 is null or slug = $6) order by id desc limit $7"
    );
    let args = args![project, family.name(), pattern(query), query.include_archived, query.next, query.slug.as_deref(), limit(query)];
    db.all(sql, args).await?.iter().map(artifact).collect()
}

pub(crate) async fn variants(db: &Db, project: ProjectId, family: Family, query: &Query) -> Result<Vec<Variant>, StoreError> {
    let sql = concat!(
        "select ",
        variant_columns!(),
        " from variants where project_id = $1 and family = $2 and ($3 is null or lower(slug) like $3 escape '\\' or lower(name) like $3 escape '\\') \
         and ($4 or archived_at is null) and ($5 is null or artifact_id = $5) and ($6 is null or id < $6) and ($7 is null or slug = $7) order by id desc limit $8"
    );
    let args = args![
        project,
        family.name(),
        pattern(query),
        query.include_archived,
        query.artifact,
        query.next,
        query.slug.as_deref(),
        limit(query)
    ];
    db.all(sql, args).await?.iter().map(variant).collect()
}

pub(crate) async fn revisions(db: &Db, project: ProjectId, family: Family, query: &Query) -> Result<Vec<Revision>, StoreError> {
    let sql = concat!(
        "select ",
        revision_columns!(),
        " from revisions where project_id = $1 and family = $2 and ($3 is null or lower(slug) like $3 escape '\\') and ($4 or archived_at is null) \
         and ($5 is null or artifact_id = $5) and ($6 is null or variant_id = $6) and ($7 is null or id < $7) and ($8 is null or slug = $8) order by id desc limit $9"
    );
    let args = args![
        project,
        family.name(),
        pattern(query),
        query.include_archived,
        query.artifact,
        query.variant,
        query.next,
        query.slug.as_deref(),
        limit(query)
    ];
    db.all(sql, args).await?.iter().map(revision).collect()
}

/// Changes the words of an artifact; what is not given stays.
pub(crate) async fn update_artifact(
    db: &Db,
    project: ProjectId,
    family: Family,
    id: ArtifactId,
    edit: &Edit,
    now: Timestamp,
) -> Result<Option<Artifact>, StoreError> {
    let sql = concat!(
        "update artifacts set name = coalesce($4, name), description = coalesce($5, description), flags = coalesce($6, flags), \
         tags = coalesce($7, tags), meta = coalesce($8, meta), updated_at = $9 \
         where project_id = $1 and family = $2 and id = $3 returning ",
        artifact_columns!()
    );
    let args = args![
        project,
        family.name(),
        id,
        edit.name.as_deref(),
        edit.description.as_deref(),
        edit.flags.as_ref(),
        edit.tags.as_ref(),
        edit.meta.as_ref(),
        now
    ];
    db.returning(sql, args).await?.as_ref().map(artifact).transpose()
}

pub(crate) async fn guard_artifact(
    db: &Db,
    project: ProjectId,
    family: Family,
    id: ArtifactId,
    guarded: bool,
    now: Timestamp,
) -> Result<Option<Artifact>, StoreError> {
    let sql = concat!(
        "update artifacts set is_guarded = $4, updated_at = $5 where project_id = $1 and family = $2 and id = $3 returning ",
        artifact_columns!()
    );
    db.returning(sql, args![project, family.name(), id, guarded, now]).await?.as_ref().map(artifact).transpose()
}

pub(crate) async fn archive_artifact(
    db: &Db,
    project: ProjectId,
    family: Family,
    id: ArtifactId,
    at: Option<Timestamp>,
) -> Result<Option<Artifact>, StoreError> {
    let sql =
        concat!("update artifacts set archived_at = $4 where project_id = $1 and family = $2 and id = $3 returning ", artifact_columns!());
    db.returning(sql, args![project, family.name(), id, at]).await?.as_ref().map(artifact).transpose()
}

pub(crate) async fn archive_variant(
    db: &Db,
    project: ProjectId,
    family: Family,
    id: VariantId,
    at: Option<Timestamp>,
) -> Result<Option<Variant>, StoreError> {
    let sql =
        concat!("update variants set archived_at = $4 where project_id = $1 and family = $2 and id = $3 returning ", variant_columns!());
    db.returning(sql, args![project, family.name(), id, at]).await?.as_ref().map(variant).transpose()
}

pub(crate) async fn archive_revision(
    db: &Db,
    project: ProjectId,
    family: Family,
    id: RevisionId,
    at: Option<Timestamp>,
) -> Result<Option<Revision>, StoreError> {
    let sql =
        concat!("update revisions set archived_at = $4 where project_id = $1 and family = $2 and id = $3 returning ", revision_columns!());
    db.returning(sql, args![project, family.name(), id, at]).await?.as_ref().map(revision).transpose()
}

fn pattern(query: &Query) -> Option<String> {
    query.text.as_deref().map(holding)
}

fn limit(query: &Query) -> i64 {
    query.limit.unwrap_or(DEFAULT_PAGE).clamp(1, MAX_PAGE)
}
