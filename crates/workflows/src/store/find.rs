//! Rows by their names, and lines of revisions.

use kernel::{ArtifactId, ProjectId, RevisionId, Timestamp, VariantId};
use store::{Db, PageSize, Row, StoreError, Tx, args, page_sql};
use uuid::Uuid;

use super::pages::Found;
use super::{artifact, artifact_columns, revision, revision_columns, variant, variant_columns};
use crate::{Artifact, Family, Revision, Variant};

/// What a row is found by; each has an index.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Named<'a> {
    Id(Uuid),
    Slug(&'a str),
}

/// One row of a table by its name.
macro_rules! one {
    ($db:ident, $project:ident, $family:ident, $name:ident, $table:literal, $columns:expr) => {
        match $name {
            Named::Id(id) => {
                let sql = concat!("select ", $columns, " from ", $table, " where project_id = $1 and id = $2 and family = $3");
                $db.optional(sql, args![$project, id, $family.kept_as()]).await?
            }
            Named::Slug(slug) => {
                let sql = concat!("select ", $columns, " from ", $table, " where project_id = $1 and family = $2 and slug = $3");
                $db.optional(sql, args![$project, $family.kept_as(), slug]).await?
            }
        }
    };
}

pub(crate) async fn artifact_by(db: &Db, project: ProjectId, family: Family, name: Named<'_>) -> Result<Option<Artifact>, StoreError> {
    let row: Option<Row> = one!(db, project, family, name, "artifacts", artifact_columns!());
    row.as_ref().map(artifact).transpose()
}

pub(crate) async fn variant_by(db: &Db, project: ProjectId, family: Family, name: Named<'_>) -> Result<Option<Variant>, StoreError> {
    let row: Option<Row> = one!(db, project, family, name, "variants", variant_columns!());
    row.as_ref().map(variant).transpose()
}

pub(crate) async fn revision_by(db: &Db, project: ProjectId, family: Family, name: Named<'_>) -> Result<Option<Revision>, StoreError> {
    let row: Option<Row> = one!(db, project, family, name, "revisions", revision_columns!());
    row.as_ref().map(revision).transpose()
}

/// The default variant of an artifact: its oldest, also when that is archived. A name must not lead to another line of history.
pub(crate) async fn default_variant(db: &Db, project: ProjectId, artifact: ArtifactId) -> Result<Option<Variant>, StoreError> {
    let sql =
        concat!("select ", variant_columns!(), " from variants where project_id = $1 and artifact_id = $2 order by created_at, id limit 1");
    db.optional(sql, args![project, artifact]).await?.as_ref().map(variant).transpose()
}

const NEWEST: &str = concat!(
    "select ",
    revision_columns!(),
    " from revisions where project_id = $1 and variant_id = $2 and archived_at is null order by version desc limit 1"
);

/// A variant's newest revision that is not archived.
pub(crate) async fn newest_revision(db: &Db, variant: &Variant) -> Result<Option<Revision>, StoreError> {
    db.optional(NEWEST, args![variant.project, variant.id]).await?.as_ref().map(revision).transpose()
}

/// A variant's revision of one version, or its newest. One that is archived is the newest only where all are.
pub(crate) async fn revision_of(
    db: &Db,
    project: ProjectId,
    variant: VariantId,
    version: Option<i64>,
) -> Result<Option<Revision>, StoreError> {
    let row = if let Some(version) = version {
        let sql = concat!("select ", revision_columns!(), " from revisions where project_id = $1 and variant_id = $2 and version = $3");
        db.optional(sql, args![project, variant, version]).await?
    } else {
        let newest = db.optional(NEWEST, args![project, variant]).await?;
        let sql = concat!(
            "select ",
            revision_columns!(),
            " from revisions where project_id = $1 and variant_id = $2 order by version desc limit 1"
        );
        if newest.is_some() { newest } else { db.optional(sql, args![project, variant]).await? }
    };
    row.as_ref().map(revision).transpose()
}

/// A variant's revisions by version, newest first, without those that are archived.
pub(crate) async fn log(
    db: &Db,
    project: ProjectId,
    variant: VariantId,
    from: Option<i64>,
    size: PageSize,
) -> Result<Found<Revision>, StoreError> {
    let sql = page_sql!(
        select revision_columns!(),
        bytes "coalesce(octet_length(data), 0) + coalesce(octet_length(message), 0) + coalesce(octet_length(tags), 0) \
               + coalesce(octet_length(meta), 0)",
        from "revisions",
        where "project_id = $1 and variant_id = $2 and version <= $3 and archived_at is null",
        by "version" "desc",
        limit "$4"
    );
    let rows = db.all(sql, args![project, variant, from.unwrap_or(i64::MAX), size.rows()]).await?;
    Ok(Found { rows, size, read: revision })
}

/// The ids of a variant's revisions up to a version, oldest first, without those that are archived; at most so many.
pub(crate) async fn line(
    db: &Db,
    project: ProjectId,
    variant: VariantId,
    last: Option<i64>,
    most: i64,
) -> Result<Vec<RevisionId>, StoreError> {
    let sql = "select id from revisions where project_id = $1 and variant_id = $2 and version <= $3 and archived_at is null \
               order by version limit $4";
    db.all(sql, args![project, variant, last.unwrap_or(i64::MAX), most]).await?.iter().map(|row| row.get("id")).collect()
}

/// Whether a variant has a revision, archived ones counted, with the variant's row held so that nobody makes one meanwhile.
pub(crate) async fn has_revisions(tx: &mut Tx, variant: &Variant) -> Result<bool, StoreError> {
    let (project, id) = (variant.project, variant.id);
    tx.execute("update variants set updated_at = updated_at where project_id = $1 and id = $2", args![project, id]).await?;
    Ok(tx.optional("select id from revisions where project_id = $1 and variant_id = $2 limit 1", args![project, id]).await?.is_some())
}

pub(crate) async fn is_slug_taken(tx: &mut Tx, project: ProjectId, family: Family, slug: &str) -> Result<bool, StoreError> {
    let sql = "select id from revisions where project_id = $1 and family = $2 and slug = $3";
    Ok(tx.optional(sql, args![project, family.kept_as(), slug]).await?.is_some())
}

/// The slugs of artifacts that are not archived, newest first.
pub(crate) async fn slugs(db: &Db, project: ProjectId, family: Family, most: i64) -> Result<Vec<String>, StoreError> {
    let sql = "select slug from artifacts where project_id = $1 and family = $2 and archived_at is null order by id desc limit $3";
    db.all(sql, args![project, family.kept_as(), most]).await?.iter().map(|row| row.get("slug")).collect()
}

/// Where a commit begins.
#[derive(Debug)]
pub(crate) struct Head {
    /// The newest revision that is not archived.
    pub(crate) newest: Option<RevisionId>,
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
    let sql = "update artifacts set updated_at = $3 where project_id = $1 and id = $2 returning is_guarded";
    let guarded = tx.optional(sql, args![project, variant.artifact, now]).await?;
    let sql = "select version from revisions where project_id = $1 and variant_id = $2 order by version desc limit 1";
    let version = tx.optional(sql, args![project, id]).await?.map(|row| row.get("version")).transpose()?;
    let sql = "select id from revisions where project_id = $1 and variant_id = $2 and archived_at is null order by version desc limit 1";
    let newest = tx.optional(sql, args![project, id]).await?.map(|row| row.get("id")).transpose()?;
    Ok(Head { newest, version, is_guarded: guarded.map_or(Ok(false), |row| row.get("is_guarded"))? })
}
