//! Forks: a new variant with the whole line of another, up to one of its revisions.

use kernel::{RevisionId, Scope, VariantId};
use store::{Many, StoreError, Tx, row};
use uuid::Uuid;

use crate::reference::{Levels, Reference};
use crate::store as rows;
use crate::{Family, NewVariant, Variant, Words, WorkflowError, Workflows};

/// The longest line that one fork copies.
const MAX_LINE: i64 = 10_000;

/// What to fork, and what the new variant shall be.
#[derive(Clone, Debug)]
pub struct Fork {
    pub source: Reference,
    /// The last revision that is copied; the newest if nothing is said.
    pub pin: Option<Reference>,
    pub slug: String,
    pub words: Words,
}

impl Workflows {
    /// Copies every revision that is not archived, oldest first, with fresh ids, slugs and versions.
    #[kernel::boxed]
    pub async fn fork(&self, scope: Scope, family: Family, fork: Fork) -> Result<Variant, WorkflowError> {
        let name = family.name();
        let (source, last) = self.fork_source(scope, family, &fork).await?;
        let line = rows::line(&self.0.db, scope.project, source.id, last, MAX_LINE + 1).await?;
        if line.is_empty() {
            return Err(WorkflowError::BadRequest(format!("The {name} variant '{}' has no revision to copy.", source.slug)));
        }
        if i64::try_from(line.len()).is_ok_and(|length| length > MAX_LINE) {
            return Err(WorkflowError::BadRequest(format!(
                "The {name} variant '{}' has more than {MAX_LINE} revisions. Pin an earlier one.",
                source.slug
            )));
        }
        let artifact = self.artifact(scope, family, source.artifact).await?;
        // A slug that the copies would have may be somebody's own.
        for suffix in [String::new(), format!("-{}", &Uuid::new_v4().simple().to_string()[..8])] {
            let mut tx = self.0.db.begin().await?;
            let new = NewVariant { artifact: artifact.id, slug: fork.slug.clone(), words: fork.words.clone() };
            let variant = self.insert_variant(&mut tx, scope, family, &artifact, new).await?;
            match self.copy(&mut tx, scope, &variant, &line, &suffix).await {
                Err(StoreError::Conflict) => {}
                copied => {
                    copied?;
                    tx.commit().await?;
                    return Ok(variant);
                }
            }
        }
        Err(WorkflowError::Taken { family: format!("{name} revision"), slug: format!("{}-0", fork.slug) })
    }

    /// The variant to copy, and the version to end with.
    async fn fork_source(&self, scope: Scope, family: Family, fork: &Fork) -> Result<(Variant, Option<i64>), WorkflowError> {
        let name = family.name();
        let unknown = |error| match error {
            WorkflowError::NotFound(missing) => {
                WorkflowError::BadRequest(format!("{missing}: `{name}_variant_ref` and `{name}_revision_ref` name the variant to fork."))
            }
            other => other,
        };
        let Reference { id, slug, .. } = &fork.source;
        let source = self.named_variant(scope, family, *id, slug.as_deref()).await.map_err(unknown)?;
        let Some(pin) = &fork.pin else { return Ok((source, None)) };
        let levels = Levels { variant: Some(Reference::id(source.id.uuid())), revision: Some(pin.clone()), artifact: None };
        let pinned = self.find(scope.project, family, &levels).await.map_err(unknown)?;
        Ok((source, Some(pinned.revision.version)))
    }

    /// The database copies what it has; nothing large comes this way.
    async fn copy(&self, tx: &mut Tx, scope: Scope, variant: &Variant, line: &[RevisionId], suffix: &str) -> Result<(), StoreError> {
        let now = self.0.clock.now();
        let copies = line.iter().zip(0_i64..).map(|(source, version)| {
            row! {
                project_id: scope.project,
                source_id: *source,
                id: RevisionId::new(),
                variant_id: VariantId::from(variant.id.uuid()),
                slug: format!("{}-{version}{suffix}", variant.slug),
                version: version,
                created_at: now,
                created_by_id: scope.author(),
            }
        });
        let sql = "insert into revisions (project_id, id, artifact_id, variant_id, family, slug, version, name, description, tags, \
                   tag_digests, meta, traits, data, message, created_at, updated_at, created_by_id) \
                   select r.project_id, v.id, r.artifact_id, v.variant_id, r.family, v.slug, v.version, r.name, r.description, r.tags, \
                   r.tag_digests, r.meta, r.traits, r.data, r.message, v.created_at, v.created_at, v.created_by_id \
                   from v join revisions r on r.project_id = v.project_id and r.id = v.source_id";
        tx.write_many(Many::with(copies, sql)).await.map(|_| ())
    }
}
