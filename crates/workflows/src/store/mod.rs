//! The queries over histories. Every one names the project and the family.

mod change;
mod find;
mod pages;

use ::store::{Row, StoreError, Tx, row};

pub(crate) use change::{
    NewWords, archive_artifact, archive_revision, archive_variant, edit_artifact, edit_revision, edit_variant, guard_artifact,
};
pub(crate) use find::{
    Named, artifact_by, default_variant, has_revisions, head_for_commit, is_slug_taken, line, log, newest_revision, revision_by,
    revision_of, slugs, variant_by,
};
pub(crate) use pages::{artifacts, revisions, simple, unread_artifacts, unread_revisions, variants};

use crate::{Artifact, Family, Revision, Variant};

macro_rules! artifact_columns {
    () => {
        "project_id, id, slug, name, description, tags, meta, roles, is_guarded, created_at, updated_at, archived_at, created_by_id, \
         updated_by_id, archived_by_id"
    };
}

macro_rules! variant_columns {
    () => {
        "project_id, id, artifact_id, slug, name, description, tags, meta, created_at, updated_at, archived_at, created_by_id, \
         updated_by_id, archived_by_id, \
         (select a.slug from artifacts a where a.project_id = variants.project_id and a.id = variants.artifact_id) as artifact_slug, \
         (select a.roles from artifacts a where a.project_id = variants.project_id and a.id = variants.artifact_id) as roles"
    };
}

macro_rules! revision_columns {
    () => {
        "project_id, id, artifact_id, variant_id, slug, version, name, description, tags, meta, traits, data, message, created_at, updated_at, \
         archived_at, created_by_id, updated_by_id, archived_by_id, \
         (select a.slug from artifacts a where a.project_id = revisions.project_id and a.id = revisions.artifact_id) as artifact_slug, \
         (select a.roles from artifacts a where a.project_id = revisions.project_id and a.id = revisions.artifact_id) as roles, \
         (select v.slug from variants v where v.project_id = revisions.project_id and v.id = revisions.variant_id) as variant_slug"
    };
}

pub(crate) use {artifact_columns, revision_columns, variant_columns};

fn artifact(row: &Row) -> Result<Artifact, StoreError> {
    Ok(Artifact {
        id: row.get("id")?,
        project: row.get("project_id")?,
        slug: row.get("slug")?,
        name: row.get("name")?,
        description: row.get("description")?,
        tags: row.get("tags")?,
        meta: row.get("meta")?,
        roles: row.get("roles")?,
        is_guarded: row.get("is_guarded")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        archived_at: row.get("archived_at")?,
        created_by: row.get("created_by_id")?,
        updated_by: row.get("updated_by_id")?,
        archived_by: row.get("archived_by_id")?,
    })
}

fn variant(row: &Row) -> Result<Variant, StoreError> {
    Ok(Variant {
        id: row.get("id")?,
        project: row.get("project_id")?,
        artifact: row.get("artifact_id")?,
        artifact_slug: row.get("artifact_slug")?,
        slug: row.get("slug")?,
        name: row.get("name")?,
        description: row.get("description")?,
        tags: row.get("tags")?,
        meta: row.get("meta")?,
        roles: row.get("roles")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        archived_at: row.get("archived_at")?,
        created_by: row.get("created_by_id")?,
        updated_by: row.get("updated_by_id")?,
        archived_by: row.get("archived_by_id")?,
    })
}

fn revision(row: &Row) -> Result<Revision, StoreError> {
    Ok(Revision {
        id: row.get("id")?,
        project: row.get("project_id")?,
        artifact: row.get("artifact_id")?,
        artifact_slug: row.get("artifact_slug")?,
        variant: row.get("variant_id")?,
        variant_slug: row.get("variant_slug")?,
        slug: row.get("slug")?,
        version: row.get("version")?,
        name: row.get("name")?,
        description: row.get("description")?,
        tags: row.get("tags")?,
        meta: row.get("meta")?,
        roles: row.get("roles")?,
        traits: row.get("traits")?,
        data: row.get("data")?,
        message: row.get("message")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        archived_at: row.get("archived_at")?,
        created_by: row.get("created_by_id")?,
        updated_by: row.get("updated_by_id")?,
        archived_by: row.get("archived_by_id")?,
    })
}

pub(crate) async fn insert_artifact(tx: &mut Tx, family: Family, new: &Artifact, digests: Option<&str>) -> Result<(), StoreError> {
    let row = row! {
        project_id: new.project,
        id: new.id,
        family: family.kept_as(),
        slug: new.slug.as_str(),
        name: new.name.as_deref(),
        description: new.description.as_deref(),
        tags: new.tags.as_ref(),
        tag_digests: digests,
        meta: new.meta.as_ref(),
        roles: new.roles,
        is_guarded: new.is_guarded,
        created_at: new.created_at,
        updated_at: new.updated_at,
        created_by_id: new.created_by,
    };
    tx.insert("artifacts", row).await
}

pub(crate) async fn insert_variant(tx: &mut Tx, family: Family, new: &Variant, digests: Option<&str>) -> Result<(), StoreError> {
    let row = row! {
        project_id: new.project,
        id: new.id,
        artifact_id: new.artifact,
        family: family.kept_as(),
        slug: new.slug.as_str(),
        name: new.name.as_deref(),
        description: new.description.as_deref(),
        tags: new.tags.as_ref(),
        tag_digests: digests,
        meta: new.meta.as_ref(),
        created_at: new.created_at,
        updated_at: new.updated_at,
        created_by_id: new.created_by,
    };
    tx.insert("variants", row).await
}

/// Makes a revision; `data` is the text of what it holds.
pub(crate) async fn insert_revision(
    tx: &mut Tx,
    family: Family,
    new: &Revision,
    data: Option<String>,
    digests: Option<&str>,
) -> Result<(), StoreError> {
    let row = row! {
        project_id: new.project,
        id: new.id,
        artifact_id: new.artifact,
        variant_id: new.variant,
        family: family.kept_as(),
        slug: new.slug.as_str(),
        version: new.version,
        name: new.name.as_deref(),
        description: new.description.as_deref(),
        tags: new.tags.as_ref(),
        tag_digests: digests,
        meta: new.meta.as_ref(),
        traits: new.traits,
        data: data,
        message: new.message.as_deref(),
        created_at: new.created_at,
        updated_at: new.updated_at,
        created_by_id: new.created_by,
    };
    tx.insert("revisions", row).await
}
