//! A history as one thing: an artifact with its default variant and the newest data there.

use kernel::json::size;
use kernel::{ArtifactId, Budget, CallRef, Scope};
use serde_json::Value;
use store::Page;
use work::LARGE;

use crate::commit::{Next, RevisionData};
use crate::histories::{INITIAL, check_words, narrowed, nothing, present};
use crate::store as rows;
use crate::{
    Artifact, Change, Edit, Family, NewArtifact, NewRevision, NewVariant, Query, Simple, Words, WorkflowError, Workflows, data, flags,
};

impl Workflows {
    /// Whether data could be saved under a slug: its shape, and that what it names is there. Answers with what its steps call.
    #[kernel::boxed]
    pub async fn check(&self, scope: Scope, family: Family, slug: &str, data: &Value) -> Result<Vec<CallRef>, WorkflowError> {
        let check = move |data: &Value, _: &Budget| data::check(family, data).map(|()| data::calls(data));
        let calls = self.0.workers.over(scope.project, size(data, LARGE), data, check).await?;
        self.check_calls(scope, slug, &calls).await?;
        self.check_secrets(scope, data).await?;
        self.check_agent(scope, data).await?;
        Ok(calls)
    }

    /// An artifact with a variant of the same slug, an empty first revision and, when there is data, a second one that holds it.
    #[kernel::boxed]
    pub async fn create_simple(
        &self,
        scope: Scope,
        family: Family,
        new: NewArtifact,
        data: Option<Value>,
    ) -> Result<Simple, WorkflowError> {
        if let Some(data) = &data {
            self.check(scope, family, &new.slug, data).await?;
        }
        self.ensure_defaults(scope, family).await?;
        let data = data.map(RevisionData::from);
        let mut tx = self.0.db.begin().await?;
        let artifact = self.insert_artifact(&mut tx, scope, family, new).await?;
        let variant = self.insert_variant(&mut tx, scope, family, &artifact, default_line(&artifact)).await?;
        let first = Next { message: Some(INITIAL.to_owned()), ..variant.next(None) };
        let mut revision = self.insert_revision(&mut tx, scope, family, first, None).await?;
        if data.is_some() {
            revision = self.insert_revision(&mut tx, scope, family, variant.next(Some(revision.version)), data).await?;
        }
        tx.commit().await?;
        Ok(Simple { artifact, variant: Some(variant.id), revision: Some(revision) })
    }

    /// Changes the words of an artifact and, where there is data, commits it to the default variant.
    #[kernel::boxed]
    pub async fn edit_simple(
        &self,
        scope: Scope,
        family: Family,
        id: ArtifactId,
        edit: Edit,
        data: Option<Value>,
    ) -> Result<Simple, WorkflowError> {
        check_words(&edit.words)?;
        flags::roles(family, edit.flags.as_ref())?;
        let artifact = self.artifact(scope, family, id).await?;
        present(family, &artifact.slug, artifact.archived_at.is_some())?;
        if let Some(data) = data {
            let variant = match rows::default_variant(&self.0.db, scope.project, id).await? {
                Some(variant) => variant.id,
                None => self.create_variant(scope, family, default_line(&artifact)).await?.id,
            };
            let new = NewRevision { skips_equal: false, ..NewRevision::of(variant, Change::Data(data)) };
            self.commit(scope, family, new).await?;
        }
        self.edit(scope, family, id, edit).await?;
        self.simple(scope, family, id).await
    }

    /// Artifacts with their newest data; flags are those of the newest revision.
    #[kernel::boxed]
    pub async fn query_simple(&self, scope: Scope, family: Family, query: &Query) -> Result<Page<Simple>, WorkflowError> {
        self.ensure_defaults(scope, family).await?;
        let by_slug = |name| async move { Ok(rows::artifact_by(&self.0.db, scope.project, family, name).await?.map(|row| row.id.uuid())) };
        let Some(query) = narrowed(query, by_slug).await? else { return Ok(nothing()) };
        let (page, mut newest) = rows::simple(&self.0.db, &self.0.workers, scope.project, family, &query).await?;
        let rows = page.rows.into_iter().map(|(artifact, variant, id)| {
            let at = id.and_then(|id| newest.iter().position(|revision| revision.id == id));
            Simple { artifact, variant, revision: at.map(|at| newest.swap_remove(at)) }
        });
        Ok(Page { rows: rows.collect(), more: page.more })
    }

    /// An artifact with its newest data. Its role is not looked at.
    #[kernel::boxed]
    pub async fn simple(&self, scope: Scope, family: Family, id: ArtifactId) -> Result<Simple, WorkflowError> {
        let artifact = self.artifact(scope, family, id).await?;
        let variant = rows::default_variant(&self.0.db, scope.project, id).await?;
        let revision = match &variant {
            Some(variant) => rows::revision_of(&self.0.db, scope.project, variant.id, None).await?,
            None => None,
        };
        Ok(Simple { artifact, variant: variant.map(|variant| variant.id), revision })
    }
}

/// The variant that an artifact begins with.
fn default_line(artifact: &Artifact) -> NewVariant {
    NewVariant { artifact: artifact.id, slug: artifact.slug.clone(), words: Words::default() }
}
