//! Making and finding histories: artifacts and their variants.

use kernel::{ArtifactId, RevisionId, Scope, Slug, VariantId};
use store::{Page, PageSize, StoreError, Tx};
use uuid::Uuid;

use crate::commit::Next;
use crate::store::{self as rows, Named};
use crate::{
    Artifact, Edit, Family, FirstRevision, NewArtifact, NewVariant, Query, Revision, Variant, Words, WorkflowError, Workflows, flags, tags,
};

/// What is served from the program itself begins like this; nobody may write there.
const RESERVED: &str = "__ag__";
/// The message of a revision that is there so that a variant has one.
pub(crate) const INITIAL: &str = "Initial revision";

impl Workflows {
    #[kernel::boxed]
    pub async fn create_artifact(&self, scope: Scope, family: Family, new: NewArtifact) -> Result<Artifact, WorkflowError> {
        self.ensure_defaults(scope, family).await?;
        let mut tx = self.0.db.begin().await?;
        let artifact = self.insert_artifact(&mut tx, scope, family, new).await?;
        tx.commit().await?;
        Ok(artifact)
    }

    #[kernel::boxed]
    pub async fn create_variant(&self, scope: Scope, family: Family, new: NewVariant) -> Result<Variant, WorkflowError> {
        let artifact = self.artifact(scope, family, new.artifact).await?;
        let mut tx = self.0.db.begin().await?;
        let variant = self.insert_variant(&mut tx, scope, family, &artifact, new).await?;
        tx.commit().await?;
        Ok(variant)
    }

    /// The first revision of a variant: version 0, without data.
    #[kernel::boxed]
    pub async fn create_first(&self, scope: Scope, family: Family, new: FirstRevision) -> Result<Revision, WorkflowError> {
        let (variant, _) = self.open_variant(scope, family, new.variant).await?;
        if new.artifact.is_some_and(|artifact| artifact != variant.artifact) {
            let name = family.name();
            return Err(WorkflowError::BadRequest(format!("The variant is not one of the {name} that `{name}_id` names.")));
        }
        let mut tx = self.0.db.begin().await?;
        if rows::has_revisions(&mut tx, &variant).await? {
            return Err(WorkflowError::HasRevisions(variant.slug));
        }
        let next = Next { message: Some(INITIAL.to_owned()), slug: new.slug, words: new.words, ..variant.next(None) };
        let revision = self.insert_revision(&mut tx, scope, family, next, None).await?;
        tx.commit().await?;
        Ok(revision)
    }

    /// A variant that can be committed to, and what it belongs to.
    pub(crate) async fn open_variant(&self, scope: Scope, family: Family, id: VariantId) -> Result<(Variant, Artifact), WorkflowError> {
        let variant = self.variant(scope, family, id).await?;
        let artifact = self.artifact(scope, family, variant.artifact).await?;
        if variant.archived_at.is_some() || artifact.archived_at.is_some() {
            return Err(WorkflowError::BadRequest(format!("'{}' is archived. Unarchive it before committing to it.", artifact.slug)));
        }
        Ok((variant, artifact))
    }

    pub(crate) async fn insert_artifact(
        &self,
        tx: &mut Tx,
        scope: Scope,
        family: Family,
        new: NewArtifact,
    ) -> Result<Artifact, WorkflowError> {
        let slug = checked(&new.slug)?;
        check_name(new.words.name.as_deref())?;
        let roles = flags::roles(family, new.flags.as_ref())?;
        let digests = tags::checked(new.words.tags.as_ref())?;
        let now = self.0.clock.now();
        let artifact = Artifact {
            id: ArtifactId::new(),
            project: scope.project,
            slug: slug.to_string(),
            name: new.words.name,
            description: new.words.description,
            tags: new.words.tags,
            meta: new.words.meta,
            roles: (roles.mask != 0).then_some(roles.value),
            is_guarded: false,
            created_at: now,
            updated_at: now,
            archived_at: None,
            created_by: Some(scope.author()),
            updated_by: None,
            archived_by: None,
        };
        let made = rows::insert_artifact(tx, family, &artifact, digests.as_deref()).await;
        made.map_err(|error| taken(error, family, "", &artifact.slug))?;
        Ok(artifact)
    }

    pub(crate) async fn insert_variant(
        &self,
        tx: &mut Tx,
        scope: Scope,
        family: Family,
        artifact: &Artifact,
        new: NewVariant,
    ) -> Result<Variant, WorkflowError> {
        let slug = checked(&new.slug)?;
        check_name(new.words.name.as_deref())?;
        let digests = tags::checked(new.words.tags.as_ref())?;
        let now = self.0.clock.now();
        let variant = Variant {
            id: VariantId::new(),
            project: scope.project,
            artifact: artifact.id,
            artifact_slug: artifact.slug.clone(),
            slug: slug.to_string(),
            name: new.words.name,
            description: new.words.description,
            tags: new.words.tags,
            meta: new.words.meta,
            roles: artifact.roles,
            created_at: now,
            updated_at: now,
            archived_at: None,
            created_by: Some(scope.author()),
            updated_by: None,
            archived_by: None,
        };
        let made = rows::insert_variant(tx, family, &variant, digests.as_deref()).await;
        made.map_err(|error| taken(error, family, " variant", &variant.slug))?;
        Ok(variant)
    }

    #[kernel::boxed]
    pub async fn artifact(&self, scope: Scope, family: Family, id: ArtifactId) -> Result<Artifact, WorkflowError> {
        let found = rows::artifact_by(&self.0.db, scope.project, family, Named::Id(id.uuid())).await?;
        found.ok_or_else(|| WorkflowError::missing(family, ""))
    }

    #[kernel::boxed]
    pub async fn variant(&self, scope: Scope, family: Family, id: VariantId) -> Result<Variant, WorkflowError> {
        let found = rows::variant_by(&self.0.db, scope.project, family, Named::Id(id.uuid())).await?;
        found.ok_or_else(|| WorkflowError::missing(family, " variant"))
    }

    #[kernel::boxed]
    pub async fn revision(&self, scope: Scope, family: Family, id: RevisionId) -> Result<Revision, WorkflowError> {
        let found = rows::revision_by(&self.0.db, scope.project, family, Named::Id(id.uuid())).await?;
        found.ok_or_else(|| WorkflowError::missing(family, " revision"))
    }

    /// Changes the words of an artifact; what is left out stays as it is.
    #[kernel::boxed]
    pub async fn edit(&self, scope: Scope, family: Family, id: ArtifactId, edit: Edit) -> Result<Artifact, WorkflowError> {
        let roles = flags::roles(family, edit.flags.as_ref())?;
        let digests = check_words(&edit.words)?;
        let row = self.artifact(scope, family, id).await?;
        present(family, &row.slug, row.archived_at.is_some())?;
        let words = self.written(scope, &edit.words, digests.as_deref());
        let changed = rows::edit_artifact(&self.0.db, scope.project, family, id, words, roles).await?;
        changed.ok_or_else(|| WorkflowError::missing(family, ""))
    }

    /// Changes the words of a variant.
    #[kernel::boxed]
    pub async fn edit_variant(&self, scope: Scope, family: Family, id: VariantId, words: Words) -> Result<Variant, WorkflowError> {
        let digests = check_words(&words)?;
        let row = self.variant(scope, family, id).await?;
        present(family, &row.slug, row.archived_at.is_some())?;
        let words = self.written(scope, &words, digests.as_deref());
        let changed = rows::edit_variant(&self.0.db, scope.project, family, id, words).await?;
        changed.ok_or_else(|| WorkflowError::missing(family, " variant"))
    }

    /// Changes the words of a revision; its data stays what it was.
    #[kernel::boxed]
    pub async fn edit_revision(&self, scope: Scope, family: Family, id: RevisionId, words: Words) -> Result<Revision, WorkflowError> {
        let digests = check_words(&words)?;
        let row = self.revision(scope, family, id).await?;
        present(family, &row.slug, row.archived_at.is_some())?;
        let words = self.written(scope, &words, digests.as_deref());
        let changed = rows::edit_revision(&self.0.db, scope.project, family, id, words).await?;
        changed.ok_or_else(|| WorkflowError::missing(family, " revision"))
    }

    fn written<'a>(&self, scope: Scope, words: &'a Words, digests: Option<&'a str>) -> rows::NewWords<'a> {
        rows::NewWords { words, digests, by: scope.author(), at: self.0.clock.now() }
    }

    /// Archived things are not listed, run or deployed; they come back as they were.
    #[kernel::boxed]
    pub async fn archive_artifact(&self, scope: Scope, family: Family, id: ArtifactId, archived: bool) -> Result<Artifact, WorkflowError> {
        self.unguarded(scope, family, id).await?;
        let changed = rows::archive_artifact(&self.0.db, scope.project, family, id, self.mark(scope, archived)).await?;
        changed.ok_or_else(|| WorkflowError::missing(family, ""))
    }

    /// A variant goes with all its revisions, and they come back with it.
    #[kernel::boxed]
    pub async fn archive_variant(&self, scope: Scope, family: Family, id: VariantId, archived: bool) -> Result<Variant, WorkflowError> {
        self.unguarded(scope, family, self.variant(scope, family, id).await?.artifact).await?;
        let mut tx = self.0.db.begin().await?;
        let changed = rows::archive_variant(&mut tx, scope.project, family, id, self.mark(scope, archived)).await?;
        tx.commit().await?;
        changed.ok_or_else(|| WorkflowError::missing(family, " variant"))
    }

    #[kernel::boxed]
    pub async fn archive_revision(&self, scope: Scope, family: Family, id: RevisionId, archived: bool) -> Result<Revision, WorkflowError> {
        self.unguarded(scope, family, self.revision(scope, family, id).await?.artifact).await?;
        let changed = rows::archive_revision(&self.0.db, scope.project, family, id, self.mark(scope, archived)).await?;
        changed.ok_or_else(|| WorkflowError::missing(family, " revision"))
    }

    fn mark(&self, scope: Scope, archived: bool) -> (Option<Uuid>, Option<kernel::Timestamp>) {
        (archived.then(|| scope.author()), archived.then(|| self.0.clock.now()))
    }

    /// What is archived is passed over, so archiving a part of an environment deploys something else.
    async fn unguarded(&self, scope: Scope, family: Family, id: ArtifactId) -> Result<(), WorkflowError> {
        let artifact = self.artifact(scope, family, id).await?;
        if artifact.is_guarded { Err(WorkflowError::Guarded(artifact.slug)) } else { Ok(()) }
    }

    #[kernel::boxed]
    pub async fn query_artifacts(&self, scope: Scope, family: Family, query: &Query) -> Result<Page<Artifact>, WorkflowError> {
        self.ensure_defaults(scope, family).await?;
        let by_slug = |name| async move { Ok(rows::artifact_by(&self.0.db, scope.project, family, name).await?.map(|row| row.id.uuid())) };
        let Some(query) = narrowed(query, by_slug).await? else { return Ok(nothing()) };
        rows::artifacts(&self.0.db, scope.project, family, &query).await?.read(&self.0.workers, scope.project).await
    }

    /// The slugs of at most so many artifacts that are not archived.
    #[kernel::boxed]
    pub async fn slugs(&self, scope: Scope, family: Family, most: i64) -> Result<Vec<String>, WorkflowError> {
        self.ensure_defaults(scope, family).await?;
        Ok(rows::slugs(&self.0.db, scope.project, family, most).await?)
    }

    #[kernel::boxed]
    pub async fn query_variants(&self, scope: Scope, family: Family, query: &Query) -> Result<Page<Variant>, WorkflowError> {
        self.ensure_defaults(scope, family).await?;
        let by_slug = |name| async move { Ok(rows::variant_by(&self.0.db, scope.project, family, name).await?.map(|row| row.id.uuid())) };
        let Some(query) = narrowed(query, by_slug).await? else { return Ok(nothing()) };
        rows::variants(&self.0.db, scope.project, family, &query).await?.read(&self.0.workers, scope.project).await
    }

    #[kernel::boxed]
    pub async fn query_revisions(&self, scope: Scope, family: Family, query: &Query) -> Result<Page<Revision>, WorkflowError> {
        self.ensure_defaults(scope, family).await?;
        let by_slug = |name| async move { Ok(rows::revision_by(&self.0.db, scope.project, family, name).await?.map(|row| row.id.uuid())) };
        let Some(query) = narrowed(query, by_slug).await? else { return Ok(nothing()) };
        rows::revisions(&self.0.db, scope.project, family, &query).await?.read(&self.0.workers, scope.project).await
    }

    /// A variant's revisions from one version back, or from the newest, without archived ones.
    #[kernel::boxed]
    pub async fn log(
        &self,
        scope: Scope,
        family: Family,
        variant: VariantId,
        from: Option<i64>,
        depth: PageSize,
    ) -> Result<Page<Revision>, WorkflowError> {
        self.variant(scope, family, variant).await?;
        rows::log(&self.0.db, scope.project, variant, from, depth).await?.read(&self.0.workers, scope.project).await
    }

    /// The artifact that an id or slug names.
    #[kernel::boxed]
    pub async fn named(&self, scope: Scope, family: Family, id: Option<Uuid>, slug: Option<&str>) -> Result<Artifact, WorkflowError> {
        self.ensure_defaults(scope, family).await?;
        let found = rows::artifact_by(&self.0.db, scope.project, family, name_of(family, "", id, slug)?).await?;
        let agrees = |row: &Artifact| slug.is_none_or(|slug| slug == row.slug);
        found.filter(agrees).ok_or_else(|| WorkflowError::missing(family, ""))
    }

    /// The variant that an id or slug names.
    #[kernel::boxed]
    pub async fn named_variant(
        &self,
        scope: Scope,
        family: Family,
        id: Option<Uuid>,
        slug: Option<&str>,
    ) -> Result<Variant, WorkflowError> {
        self.ensure_defaults(scope, family).await?;
        let found = rows::variant_by(&self.0.db, scope.project, family, name_of(family, "_variant", id, slug)?).await?;
        let agrees = |row: &Variant| slug.is_none_or(|slug| slug == row.slug);
        found.filter(agrees).ok_or_else(|| WorkflowError::missing(family, " variant"))
    }

    /// A project's first look at its environments makes the default ones.
    pub(crate) async fn ensure_defaults(&self, scope: Scope, family: Family) -> Result<(), WorkflowError> {
        match family {
            Family::Environment => self.ensure_environments(scope.project).await,
            Family::Workflow | Family::Application | Family::Evaluator => Ok(()),
        }
    }
}

/// The query with the slug it asks for looked up, so that an index leads to the row; nothing where no row has it.
pub(crate) async fn narrowed<'q, F>(query: &'q Query, by_slug: impl FnOnce(Named<'q>) -> F) -> Result<Option<Query>, WorkflowError>
where
    F: Future<Output = Result<Option<Uuid>, StoreError>>,
{
    let Some(slug) = query.slug.as_deref() else { return Ok(Some(query.clone())) };
    let Some(id) = by_slug(Named::Slug(slug)).await? else { return Ok(None) };
    Ok(query.id.is_none_or(|asked| asked == id).then(|| Query { id: Some(id), slug: None, ..query.clone() }))
}

pub(crate) fn nothing<T>() -> Page<T> {
    Page { rows: Vec::new(), more: false }
}

fn name_of<'a>(family: Family, level: &str, id: Option<Uuid>, slug: Option<&'a str>) -> Result<Named<'a>, WorkflowError> {
    match (id, slug) {
        (Some(id), _) => Ok(Named::Id(id)),
        (None, Some(slug)) => Ok(Named::Slug(slug)),
        (None, None) => Err(WorkflowError::BadRequest(format!("`{}{level}_ref` names nothing: give an `id` or a `slug`.", family.name()))),
    }
}

pub(crate) fn checked(slug: &str) -> Result<Slug, WorkflowError> {
    if slug.starts_with(RESERVED) {
        return Err(WorkflowError::Reserved(slug.to_owned()));
    }
    Ok(slug.parse()?)
}

pub(crate) fn check_name(name: Option<&str>) -> Result<(), WorkflowError> {
    match name {
        Some(name) if name.trim().is_empty() => Err(WorkflowError::Invalid("`name` is blank".to_owned())),
        _ => Ok(()),
    }
}

/// Checks new words; the digests of their tags.
pub(crate) fn check_words(words: &Words) -> Result<Option<String>, WorkflowError> {
    check_name(words.name.as_deref())?;
    tags::checked(words.tags.as_ref())
}

/// What is archived is changed only after it was brought back.
pub(crate) fn present(family: Family, slug: &str, is_archived: bool) -> Result<(), WorkflowError> {
    if is_archived {
        return Err(WorkflowError::not_found(family.into(), format!("'{slug}' is archived, so it cannot be changed: {}", family.name())));
    }
    Ok(())
}

pub(crate) fn taken(error: StoreError, family: Family, part: &str, slug: &str) -> WorkflowError {
    match error {
        StoreError::Conflict => WorkflowError::Taken { family: format!("{}{part}", family.name()), slug: slug.to_owned() },
        other => other.into(),
    }
}
