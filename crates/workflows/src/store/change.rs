//! Changes to rows that are there. A revision's data, message and version never change.

use kernel::{ArtifactId, ProjectId, RevisionId, Timestamp, VariantId};
use store::{Db, StoreError, Tx, args};
use uuid::Uuid;

use super::{artifact, artifact_columns, revision, revision_columns, variant, variant_columns};
use crate::flags::Bits;
use crate::{Artifact, Family, Revision, Variant};

/// New words for a row, with the digests of its tags, and who writes them when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewWords<'a> {
    pub(crate) words: &'a crate::Words,
    pub(crate) digests: Option<&'a str>,
    pub(crate) by: Uuid,
    pub(crate) at: Timestamp,
}

/// What is not given stays.
macro_rules! edit_sql {
    ($table:literal, $more:literal, $columns:expr) => {
        concat!(
            "update ",
            $table,
            " set name = coalesce($4, name), description = coalesce($5, description), tags = coalesce($6, tags), \
             tag_digests = coalesce($7, tag_digests), meta = coalesce($8, meta), updated_at = $9, updated_by_id = $10",
            $more,
            " where project_id = $1 and family = $2 and id = $3 returning ",
            $columns
        )
    };
}

macro_rules! edit_args {
    ($project:ident, $family:ident, $id:ident, $edit:ident $(, $more:expr)*) => {
        args![
            $project,
            $family.kept_as(),
            $id,
            $edit.words.name.as_deref(),
            $edit.words.description.as_deref(),
            $edit.words.tags.as_ref(),
            $edit.digests,
            $edit.words.meta.as_ref(),
            $edit.at,
            $edit.by
            $(, $more)*
        ]
    };
}

pub(crate) async fn edit_artifact(
    db: &Db,
    project: ProjectId,
    family: Family,
    id: ArtifactId,
    edit: NewWords<'_>,
    roles: Bits,
) -> Result<Option<Artifact>, StoreError> {
    let sql =
        edit_sql!("artifacts", ", roles = case when $11 = 0 then roles else (coalesce(roles, 0) & ~$11) | $12 end", artifact_columns!());
    db.returning(sql, edit_args!(project, family, id, edit, roles.mask, roles.value)).await?.as_ref().map(artifact).transpose()
}

pub(crate) async fn edit_variant(
    db: &Db,
    project: ProjectId,
    family: Family,
    id: VariantId,
    edit: NewWords<'_>,
) -> Result<Option<Variant>, StoreError> {
    let sql = edit_sql!("variants", "", variant_columns!());
    db.returning(sql, edit_args!(project, family, id, edit)).await?.as_ref().map(variant).transpose()
}

pub(crate) async fn edit_revision(
    db: &Db,
    project: ProjectId,
    family: Family,
    id: RevisionId,
    edit: NewWords<'_>,
) -> Result<Option<Revision>, StoreError> {
    let sql = edit_sql!("revisions", "", revision_columns!());
    db.returning(sql, edit_args!(project, family, id, edit)).await?.as_ref().map(revision).transpose()
}

pub(crate) async fn guard_artifact(
    db: &Db,
    project: ProjectId,
    family: Family,
    id: ArtifactId,
    guarded: bool,
    (by, at): (Uuid, Timestamp),
) -> Result<Option<Artifact>, StoreError> {
    let sql = concat!(
        "update artifacts set is_guarded = $4, updated_at = $5, updated_by_id = $6 where project_id = $1 and family = $2 and id = $3 returning ",
        artifact_columns!()
    );
    db.returning(sql, args![project, family.kept_as(), id, guarded, at, by]).await?.as_ref().map(artifact).transpose()
}

/// Who archived a row and when; nothing of both brings it back.
pub(crate) type Archived = (Option<Uuid>, Option<Timestamp>);

pub(crate) async fn archive_artifact(
    db: &Db,
    project: ProjectId,
    family: Family,
    id: ArtifactId,
    (by, at): Archived,
) -> Result<Option<Artifact>, StoreError> {
    let sql = concat!(
        "update artifacts set archived_at = $4, archived_by_id = $5 where project_id = $1 and family = $2 and id = $3 returning ",
        artifact_columns!()
    );
    db.returning(sql, args![project, family.kept_as(), id, at, by]).await?.as_ref().map(artifact).transpose()
}

/// Its revisions go and come with it.
pub(crate) async fn archive_variant(
    tx: &mut Tx,
    project: ProjectId,
    family: Family,
    id: VariantId,
    (by, at): Archived,
) -> Result<Option<Variant>, StoreError> {
    let sql = concat!(
        "update variants set archived_at = $4, archived_by_id = $5 where project_id = $1 and family = $2 and id = $3 returning ",
        variant_columns!()
    );
    let changed = tx.optional(sql, args![project, family.kept_as(), id, at, by]).await?.as_ref().map(variant).transpose()?;
    let sql = "update revisions set archived_at = $3, archived_by_id = $4 where project_id = $1 and variant_id = $2";
    tx.execute(sql, args![project, id, at, by]).await?;
    Ok(changed)
}

pub(crate) async fn archive_revision(
    db: &Db,
    project: ProjectId,
    family: Family,
    id: RevisionId,
    (by, at): Archived,
) -> Result<Option<Revision>, StoreError> {
    let sql = concat!(
        "update revisions set archived_at = $4, archived_by_id = $5 where project_id = $1 and family = $2 and id = $3 returning ",
        revision_columns!()
    );
    db.returning(sql, args![project, family.kept_as(), id, at, by]).await?.as_ref().map(revision).transpose()
}
