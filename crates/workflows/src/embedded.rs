//! Where the data of embeds comes from: the workflows and environments of the same project.

use futures_util::future::BoxFuture;
use kernel::{ProjectId, Scope};
use serde_json::Value;

use crate::embed::{self, EmbedError, EmbedLimits, EmbedRef, ErrorPolicy, Fetch, Key, Level, Resolved};
use crate::reference::{Levels, Reference};
use crate::{Family, References, Retrieved, WorkflowError, Workflows};

/// A workflow that is an overlay over others; inlined it would carry the whole kit along.
const NOT_EMBEDDABLE: &str = "__ag__build_kit";

struct ProjectFetch<'a> {
    workflows: &'a Workflows,
    project: ProjectId,
}

impl Fetch for ProjectFetch<'_> {
    fn fetch<'a>(&'a self, embed: &'a EmbedRef) -> BoxFuture<'a, Result<Option<Value>, String>> {
        Box::pin(async move {
            if embed.refs.values().any(|reference| reference.slug.as_deref() == Some(NOT_EMBEDDABLE)) {
                return Err(format!("`{NOT_EMBEDDABLE}` cannot be embedded"));
            }
            match self.data(embed).await {
                Ok(data) => Ok(data),
                Err(WorkflowError::NotFound(_) | WorkflowError::NotDeployed { .. }) => Ok(None),
                Err(error) => Err(error.to_string()),
            }
        })
    }
}

impl ProjectFetch<'_> {
    async fn data(&self, embed: &EmbedRef) -> Result<Option<Value>, WorkflowError> {
        let level = |level| embed.refs.get(&level).map(reference).transpose();
        let levels = Levels { artifact: level(Level::Artifact)?, variant: level(Level::Variant)?, revision: level(Level::Revision)? };
        let found = self.find(embed.family, levels).await?;
        let Some(data) = found.revision.data else { return Ok(None) };
        let followed = match &embed.key {
            Key::Own => return Ok(Some(data)),
            Key::Named(key) => follow(&data, key),
            Key::Only => match data.get("references").and_then(Value::as_object) {
                Some(references) if references.len() == 1 => references.values().next(),
                _ => {
                    let message = format!("'{}' does not have exactly one deployment; name its key", found.artifact.slug);
                    return Err(WorkflowError::BadRequest(message));
                }
            },
        };
        let Some(followed) = followed.and_then(Value::as_object).filter(|group| !group.is_empty()) else { return Ok(None) };
        let references = References::read(followed)?;
        Ok(self.workflows.find(self.project, Family::Workflow, &references.workflow).await?.revision.data)
    }

    /// What an embed names. A revision by slug and version may also mean a slug that ends in the version, or that version of an artifact.
    async fn find(&self, family: Family, levels: Levels) -> Result<Retrieved, WorkflowError> {
        let exact = self.workflows.find(self.project, family, &levels).await;
        let (Err(WorkflowError::NotFound(_)), Some(Reference { id: None, slug: Some(slug), version: Some(version) })) =
            (&exact, &levels.revision)
        else {
            return exact;
        };
        let revision = Some(Reference::slug(&format!("{slug}-{version}")));
        let suffixed = self.workflows.find(self.project, family, &Levels { revision, ..Levels::default() }).await;
        if !matches!(suffixed, Err(WorkflowError::NotFound(_))) {
            return suffixed;
        }
        let whole = Levels { artifact: Some(Reference::slug(slug)), revision: Some(Reference::version(version)), variant: None };
        match self.workflows.find(self.project, family, &whole).await {
            Err(WorkflowError::NotFound(_)) => exact,
            found => found,
        }
    }
}

/// The reference under a key: literally, along its dots, or by the slug of the deployed variant.
fn follow<'a>(data: &'a Value, key: &str) -> Option<&'a Value> {
    let references = data.get("references")?;
    let walked = || key.split('.').try_fold(references, |node, part| node.get(part));
    let by_slug = || {
        let slug =
            |group: &Value| ["application_variant", "workflow_variant", "evaluator_variant"].iter().any(|name| group[name]["slug"] == key);
        references.as_object()?.values().find(|group| slug(group))
    };
    references.get(key).or_else(walked).or_else(by_slug)
}

fn reference(written: &embed::Reference) -> Result<Reference, WorkflowError> {
    let id = written.id.as_deref().map(str::parse).transpose();
    let id = id.map_err(|_| WorkflowError::Invalid(format!("`{}` is not an id", written.id.as_deref().unwrap_or_default())))?;
    Ok(Reference { id, slug: written.slug.clone(), version: written.version.clone() })
}

impl Workflows {
    /// The value with its embeds in place.
    #[kernel::boxed]
    pub async fn resolve(&self, scope: Scope, value: Value, limits: EmbedLimits, policy: ErrorPolicy) -> Result<Resolved, EmbedError> {
        embed::resolve(value, &ProjectFetch { workflows: self, project: scope.project }, limits, policy).await
    }

    /// A revision's data as it runs.
    pub(crate) async fn with_embeds(&self, scope: Scope, data: Value) -> Result<Value, EmbedError> {
        if !embed::contains_embed(&data) {
            return Ok(data);
        }
        Ok(self.resolve(scope, data, EmbedLimits::default(), ErrorPolicy::Exception).await?.value)
    }
}
