//! Making and finding histories: artifacts and their variants.

use kernel::{ArtifactId, RevisionId, Scope, Slug, VariantId};
use serde_json::Value;
use store::{StoreError, Tx};
use uuid::Uuid;

use crate::{Artifact, Edit, Family, NewArtifact, NewVariant, Query, Revision, Variant, WorkflowError, Workflows, data, store as rows};

/// What is served from the program itself begins like this; nobody may write there.
const RESERVED: &str = "__ag__";

impl Workflows {
    pub async fn create_artifact(&self, scope: Scope, family: Family, new: NewArtifact) -> Result<Artifact, WorkflowError> {
        self.ensure_defaults(scope, family).await?;
        let mut tx = self.0.db.begin().await?;
        let artifact = self.insert_artifact(&mut tx, scope, family, new).await?;
        tx.commit().await?;
        Ok(artifact)
    }

    /// An artifact with a variant of the same slug, an empty first revision and, when there is data, a second one that holds it.
    pub async fn create_simple(
        &self,
        scope: Scope,
        family: Family,
        new: NewArtifact,
        data: Option<Value>,
    ) -> Result<(Artifact, Variant, Revision), WorkflowError> {
        if let Some(data) = &data {
            data::check(family, data)?;
            self.check_calls(scope, &new.slug, &data::calls(data)).await?;
        }
        self.ensure_defaults(scope, family).await?;
        let mut tx = self.0.db.begin().await?;
        let artifact = self.insert_artifact(&mut tx, scope, family, new).await?;
        let variant = NewVariant { artifact: artifact.id, slug: artifact.slug.clone(), name: None, description: None };
        let variant = self.insert_variant(&mut tx, scope, family, variant).await?;
        let mut revision = self.insert_revision(&mut tx, scope, family, variant.next(None), None).await?;
        if data.is_some() {
            revision = self.insert_revision(&mut tx, scope, family, variant.next(Some(revision.version)), data).await?;
        }
        tx.commit().await?;
        Ok((artifact, variant, revision))
    }

    pub async fn create_variant(&self, scope: Scope, family: Family, new: NewVariant) -> Result<Variant, WorkflowError> {
        self.artifact(scope, family, new.artifact).await?;
        let mut tx = self.0.db.begin().await?;
        let variant = self.insert_variant(&mut tx, scope, family, new).await?;
        tx.commit().await?;
        Ok(variant)
    }

    /// A new variant that begins with the newest data of another.
    pub async fn fork(
        &self,
        scope: Scope,
        family: Family,
        source: VariantId,
        slug: &str,
        name: Option<String>,
    ) -> Result<(Variant, Revision), WorkflowError> {
        let source = self.variant(scope, family, source).await?;
        let head = rows::revision_of(&self.0.db, scope.project, source.id, None).await?;
        let mut tx = self.0.db.begin().await?;
        let new = NewVariant { artifact: source.artifact, slug: slug.to_owned(), name, description: None };
        let variant = self.insert_variant(&mut tx, scope, family, new).await?;
        let next = variant.next(None).message(Some(format!("forked from {}", source.slug)));
        let revision = self.insert_revision(&mut tx, scope, family, next, head.and_then(|head| head.data)).await?;
        tx.commit().await?;
        Ok((variant, revision))
    }

    pub(crate) async fn insert_artifact(
        &self,
        tx: &mut Tx,
        scope: Scope,
        family: Family,
        new: NewArtifact,
    ) -> Result<Artifact, WorkflowError> {
        let slug = checked(&new.slug)?;
        check_name(new.name.as_deref())?;
        let now = self.0.clock.now();
        let artifact = Artifact {
            id: ArtifactId::new(),
            project: scope.project,
            slug: slug.to_string(),
            name: new.name,
            description: new.description,
            flags: new.flags,
            tags: new.tags,
            meta: new.meta,
            is_guarded: false,
            created_at: now,
            updated_at: now,
            archived_at: None,
            created_by: Some(scope.author()),
        };
        rows::insert_artifact(tx, family, &artifact).await.map_err(|error| taken(error, family, "", &artifact.slug))?;
        Ok(artifact)
    }

    async fn insert_variant(&self, tx: &mut Tx, scope: Scope, family: Family, new: NewVariant) -> Result<Variant, WorkflowError> {
        let slug = checked(&new.slug)?;
        check_name(new.name.as_deref())?;
        let now = self.0.clock.now();
        let variant = Variant {
            id: VariantId::new(),
            project: scope.project,
            artifact: new.artifact,
            slug: slug.to_string(),
            name: new.name,
            description: new.description,
            created_at: now,
            updated_at: now,
            archived_at: None,
            created_by: Some(scope.author()),
        };
        rows::insert_variant(tx, family, &variant).await.map_err(|error| taken(error, family, " variant", &variant.slug))?;
        Ok(variant)
    }

    pub async fn artifact(&self, scope: Scope, family: Family, id: ArtifactId) -> Result<Artifact, WorkflowError> {
        let found = rows::artifact_by(&self.0.db, scope.project, family, Some(id.uuid()), None).await?;
        found.ok_or_else(|| WorkflowError::missing(family, ""))
    }

    pub async fn variant(&self, scope: Scope, family: Family, id: VariantId) -> Result<Variant, WorkflowError> {
        let found = rows::variant_by(&self.0.db, scope.project, family, Some(id.uuid()), None).await?;
        found.ok_or_else(|| WorkflowError::missing(family, " variant"))
    }

    pub async fn revision(&self, scope: Scope, family: Family, id: RevisionId) -> Result<Revision, WorkflowError> {
        let found = rows::revision_by(&self.0.db, scope.project, family, Some(id.uuid()), None).await?;
        found.ok_or_else(|| WorkflowError::missing(family, " revision"))
    }

    /// Changes the words of an artifact; what is left out stays as it is.
    pub async fn edit(&self, scope: Scope, family: Family, id: ArtifactId, edit: Edit) -> Result<Artifact, WorkflowError> {
        check_name(edit.name.as_deref())?;
        let changed = rows::update_artifact(&self.0.db, scope.project, family, id, &edit, self.0.clock.now()).await?;
        changed.ok_or_else(|| WorkflowError::missing(family, ""))
    }

    /// Archived things are not listed, run or deployed; they come back as they were.
    pub async fn archive_artifact(&self, scope: Scope, family: Family, id: ArtifactId, archived: bool) -> Result<Artifact, WorkflowError> {
        self.unguarded(scope, family, id).await?;
        let at = archived.then(|| self.0.clock.now());
        let changed = rows::archive_artifact(&self.0.db, scope.project, family, id, at).await?;
        changed.ok_or_else(|| WorkflowError::missing(family, ""))
    }

    pub async fn archive_variant(&self, scope: Scope, family: Family, id: VariantId, archived: bool) -> Result<Variant, WorkflowError> {
        self.unguarded(scope, family, self.variant(scope, family, id).await?.artifact).await?;
        let at = archived.then(|| self.0.clock.now());
        let changed = rows::archive_variant(&self.0.db, scope.project, family, id, at).await?;
        changed.ok_or_else(|| WorkflowError::missing(family, " variant"))
    }

    pub async fn archive_revision(&self, scope: Scope, family: Family, id: RevisionId, archived: bool) -> Result<Revision, WorkflowError> {
        self.unguarded(scope, family, self.revision(scope, family, id).await?.artifact).await?;
        let at = archived.then(|| self.0.clock.now());
        let changed = rows::archive_revision(&self.0.db, scope.project, family, id, at).await?;
        changed.ok_or_else(|| WorkflowError::missing(family, " revision"))
    }

    /// What is archived is passed over, so archiving a part of an environment deploys something else.
    async fn unguarded(&self, scope: Scope, family: Family, id: ArtifactId) -> Result<(), WorkflowError> {
        let artifact = self.artifact(scope, family, id).await?;
        if artifact.is_guarded { Err(WorkflowError::Guarded(artifact.slug)) } else { Ok(()) }
    }

    pub async fn query_artifacts(&self, scope: Scope, family: Family, query: &Query) -> Result<Vec<Artifact>, WorkflowError> {
        self.ensure_defaults(scope, family).await?;
        Ok(rows::artifacts(&self.0.db, scope.project, family, query).await?)
    }

    pub async fn query_variants(&self, scope: Scope, family: Family, query: &Query) -> Result<Vec<Variant>, WorkflowError> {
        self.ensure_defaults(scope, family).await?;
        Ok(rows::variants(&self.0.db, scope.project, family, query).await?)
    }

    pub async fn query_revisions(&self, scope: Scope, family: Family, query: &Query) -> Result<Vec<Revision>, WorkflowError> {
        self.ensure_defaults(scope, family).await?;
        Ok(rows::revisions(&self.0.db, scope.project, family, query).await?)
    }

    /// A variant's revisions from one version back, or from the newest, archived ones among them.
    pub async fn log(
        &self,
        scope: Scope,
        family: Family,
        variant: VariantId,
        from: Option<i64>,
        depth: i64,
    ) -> Result<Vec<Revision>, WorkflowError> {
        self.variant(scope, family, variant).await?;
        Ok(rows::log(&self.0.db, scope.project, variant, from, depth).await?)
    }

    /// The artifact that an id or slug names.
    pub async fn named(&self, scope: Scope, family: Family, id: Option<Uuid>, slug: Option<&str>) -> Result<Artifact, WorkflowError> {
        if id.is_none() && slug.is_none() {
            return Err(WorkflowError::BadRequest(format!("Name the {} by id or slug.", family.name())));
        }
        self.ensure_defaults(scope, family).await?;
        let found = rows::artifact_by(&self.0.db, scope.project, family, id, slug).await?;
        found.ok_or_else(|| WorkflowError::missing(family, ""))
    }

    /// A project's first look at its environments makes the default ones.
    async fn ensure_defaults(&self, scope: Scope, family: Family) -> Result<(), WorkflowError> {
        match family {
            Family::Workflow => Ok(()),
            Family::Environment => self.ensure_environments(scope.project).await,
        }
    }
}

fn checked(slug: &str) -> Result<Slug, WorkflowError> {
    if slug.starts_with(RESERVED) {
        return Err(WorkflowError::Reserved(slug.to_owned()));
    }
    Ok(slug.parse()?)
}

fn check_name(name: Option<&str>) -> Result<(), WorkflowError> {
    match name {
        Some(name) if name.trim().is_empty() => Err(WorkflowError::Invalid("`name` is blank".to_owned())),
        _ => Ok(()),
    }
}

fn taken(error: StoreError, family: Family, part: &str, slug: &str) -> WorkflowError {
    match error {
        StoreError::Conflict => WorkflowError::Taken { family: format!("{}{part}", family.name()), slug: slug.to_owned() },
        other => other.into(),
    }
}
