//! From references to a revision. What is named must be there, and names that say the same thing twice must agree.

use kernel::{ProjectId, Scope};
use serde_json::{Value, json};

use crate::reference::{Levels, Reference};
use crate::{Artifact, Family, References, Revision, Variant, WorkflowError, Workflows, store as rows};

/// A revision with the history it stands in.
#[derive(Clone, Debug)]
pub struct Retrieved {
    pub artifact: Artifact,
    pub variant: Variant,
    pub revision: Revision,
    /// The key of the deployment it was found by.
    pub key: Option<String>,
}

impl Retrieved {
    /// Exact references to what was found.
    pub fn references(&self) -> Value {
        json!({
            "workflow": {"id": self.artifact.id, "slug": self.artifact.slug},
            "workflow_variant": {"id": self.variant.id, "slug": self.variant.slug},
            "workflow_revision": {"id": self.revision.id, "slug": self.revision.slug, "version": self.revision.version.to_string()},
        })
    }

    /// What is named beside an environment must be what is deployed there; a pin is never quietly something else.
    fn agrees(&self, levels: &Levels) -> Result<(), WorkflowError> {
        let named = [
            (&levels.artifact, self.artifact.id.uuid(), &self.artifact.slug),
            (&levels.variant, self.variant.id.uuid(), &self.variant.slug),
            (&levels.revision, self.revision.id.uuid(), &self.revision.slug),
        ];
        let differs = named.into_iter().any(|(reference, id, slug)| {
            let Some(reference) = reference else { return false };
            reference.id.is_some_and(|given| given != id) || reference.slug.as_ref().is_some_and(|given| given != slug)
        });
        if differs || version_of(levels)?.is_some_and(|version| version != self.revision.version) {
            let version = self.revision.version;
            return Err(WorkflowError::BadRequest(format!(
                "The references name something else than what is deployed: version {version} of '{}'.",
                self.artifact.slug
            )));
        }
        Ok(())
    }

    /// The JSON Schema of the inputs, where the author gave one.
    pub fn input_schema(&self) -> Option<&Value> {
        crate::data::input_schema(self.revision.data.as_ref()?)
    }
}

/// Where a workflow's deployment stands in an environment, unless another place is named.
pub fn deployment_key(slug: &str) -> String {
    format!("{slug}.revision")
}

impl Workflows {
    /// The revision that the references name.
    pub async fn retrieve(&self, scope: Scope, references: &References, key: Option<&str>) -> Result<Retrieved, WorkflowError> {
        if !references.names_environment() {
            return self.find(scope.project, Family::Workflow, &references.workflow).await;
        }
        self.ensure_environments(scope.project).await?;
        let environment = self.find(scope.project, Family::Environment, &references.environment).await?;
        let slug = match &references.workflow.artifact {
            Some(Reference { slug: Some(slug), .. }) => Some(slug.clone()),
            _ if key.is_some() => None,
            _ if references.workflow == Levels::default() => {
                return Err(WorkflowError::BadRequest("Name a workflow or a key beside the environment.".to_owned()));
            }
            _ => Some(self.find(scope.project, Family::Workflow, &references.workflow).await?.artifact.slug),
        };
        let key = key.map_or_else(|| deployment_key(slug.as_deref().unwrap_or_default()), str::to_owned);
        let deployed = environment.revision.data.as_ref().and_then(|data| data.get("references")?.get(&key)?.as_object());
        let deployed = deployed.ok_or_else(|| WorkflowError::NotDeployed {
            slug: slug.clone().unwrap_or_else(|| key.clone()),
            environment: environment.artifact.slug.clone(),
        })?;
        let deployed = References::read(deployed)?;
        let found = self.find(scope.project, Family::Workflow, &deployed.workflow).await?;
        found.agrees(&references.workflow)?;
        Ok(Retrieved { key: Some(key), ..found })
    }

    /// The environment's revision that the references name.
    pub async fn retrieve_environment(&self, scope: Scope, references: &References) -> Result<Retrieved, WorkflowError> {
        self.ensure_environments(scope.project).await?;
        self.find(scope.project, Family::Environment, &references.environment).await
    }

    /// The slug of the environment that the references name, if they name one.
    pub async fn environment_slug(&self, scope: Scope, references: &References) -> Result<Option<String>, WorkflowError> {
        if !references.names_environment() {
            return Ok(None);
        }
        Ok(Some(self.retrieve_environment(scope, references).await?.artifact.slug))
    }

    /// Finds a revision by references to its levels; the deepest one decides, the others must agree.
    pub(crate) async fn find(&self, project: ProjectId, family: Family, levels: &Levels) -> Result<Retrieved, WorkflowError> {
        let db = &self.0.db;
        let version = version_of(levels)?;
        let root = match named(levels.artifact.as_ref()) {
            Some((id, slug)) => {
                let named = slug.map(|slug| format!(" `{slug}`")).unwrap_or_default();
                Some(rows::artifact_by(db, project, family, id, slug).await?.ok_or_else(|| WorkflowError::missing(family, &named))?)
            }
            None => None,
        };
        let line = match named(levels.variant.as_ref()) {
            Some((id, slug)) => {
                Some(rows::variant_by(db, project, family, id, slug).await?.ok_or_else(|| WorkflowError::missing(family, " variant"))?)
            }
            None => None,
        };
        let exact = match named(levels.revision.as_ref()) {
            Some((id, slug)) => {
                Some(rows::revision_by(db, project, family, id, slug).await?.ok_or_else(|| WorkflowError::missing(family, " revision"))?)
            }
            None => None,
        };
        let variant = match (&exact, line, &root) {
            (Some(exact), Some(line), _) if line.id != exact.variant => return Err(disagree()),
            (Some(exact), _, _) => rows::variant_by(db, project, family, Some(exact.variant.uuid()), None).await?,
            (None, Some(line), _) => Some(line),
            (None, None, Some(root)) => rows::default_variant(db, project, root.id).await?,
            (None, None, None) => return Err(WorkflowError::BadRequest(format!("Name the {} by id or slug.", family.name()))),
        };
        let variant = variant.ok_or_else(|| WorkflowError::missing(family, " variant"))?;
        let artifact = match root {
            Some(root) if root.id != variant.artifact => return Err(disagree()),
            Some(root) => root,
            None => {
                let found = rows::artifact_by(db, project, family, Some(variant.artifact.uuid()), None).await?;
                found.ok_or_else(|| WorkflowError::missing(family, ""))?
            }
        };
        let revision = match exact {
            Some(exact) if version.is_some_and(|version| version != exact.version) => return Err(disagree()),
            Some(exact) => exact,
            None => {
                let found = rows::revision_of(db, project, variant.id, version).await?;
                found.ok_or_else(|| WorkflowError::missing(family, " revision"))?
            }
        };
        if [artifact.archived_at, variant.archived_at, revision.archived_at].iter().any(Option::is_some) {
            return Err(WorkflowError::NotFound(format!("'{}' is archived: {}", artifact.slug, family.name())));
        }
        Ok(Retrieved { artifact, variant, revision, key: None })
    }
}

fn named(reference: Option<&Reference>) -> Option<(Option<uuid::Uuid>, Option<&str>)> {
    reference.filter(|reference| reference.is_named()).map(|reference| (reference.id, reference.slug.as_deref()))
}

/// A version may stand beside any level; it always means the revision's.
fn version_of(levels: &Levels) -> Result<Option<i64>, WorkflowError> {
    let given =
        [&levels.artifact, &levels.variant, &levels.revision].into_iter().flatten().filter_map(|reference| reference.version.as_deref());
    let mut versions = given.map(parse_version).collect::<Result<Vec<i64>, _>>()?;
    versions.dedup();
    match versions[..] {
        [] => Ok(None),
        [version] => Ok(Some(version)),
        _ => Err(WorkflowError::BadRequest("The references name different versions.".to_owned())),
    }
}

fn parse_version(text: &str) -> Result<i64, WorkflowError> {
    let digits = text.strip_prefix('v').unwrap_or(text);
    let number = if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None };
    number.ok_or_else(|| WorkflowError::NotFound(format!("Version '{text}'")))
}

fn disagree() -> WorkflowError {
    WorkflowError::BadRequest("The references do not agree with each other.".to_owned())
}
