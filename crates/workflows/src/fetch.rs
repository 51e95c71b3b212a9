//! From references to a revision. The deepest reference that identifies decides; the others are compared with what it leads to.

use kernel::{ProjectId, Scope};
use serde_json::{Map, Value, json};

use crate::reference::{Levels, Reference};
use crate::store::{self as rows, Named};
use crate::{Artifact, Family, References, Revision, RowKind, Variant, WorkflowError, Workflows};

/// A revision with the history it stands in.
#[derive(Clone, Debug)]
pub struct Retrieved {
    pub artifact: Artifact,
    pub variant: Variant,
    pub revision: Revision,
    /// The deployment that led to it.
    pub deployment: Option<Deployment>,
}

/// A key of an environment's revision.
#[derive(Clone, Debug)]
pub struct Deployment {
    pub key: String,
    pub environment: Box<Retrieved>,
}

impl Retrieved {
    /// Exact references to what was found, under a family's names.
    pub fn references(&self, family: Family) -> Map<String, Value> {
        let name = family.name();
        Map::from_iter([
            (name.to_owned(), json!({"id": self.artifact.id, "slug": self.artifact.slug})),
            (format!("{name}_variant"), json!({"id": self.variant.id, "slug": self.variant.slug})),
            (
                format!("{name}_revision"),
                json!({"id": self.revision.id, "slug": self.revision.slug, "version": self.revision.version.to_string()}),
            ),
        ])
    }

    /// The same, with those of the environment that led to it.
    pub fn all_references(&self, family: Family) -> Map<String, Value> {
        let environment = self.deployment.as_ref().map(|deployment| deployment.environment.references(Family::Environment));
        environment.into_iter().flatten().chain(self.references(family)).collect()
    }

    /// Whatever is named must be what was found; a pin is never quietly something else.
    fn agrees(&self, family: Family, levels: &Levels) -> Result<(), WorkflowError> {
        let named = [
            ("", &levels.artifact, self.artifact.id.uuid(), &self.artifact.slug),
            ("_variant", &levels.variant, self.variant.id.uuid(), &self.variant.slug),
            ("_revision", &levels.revision, self.revision.id.uuid(), &self.revision.slug),
        ];
        for (level, reference, id, slug) in named {
            let Some(reference) = reference else { continue };
            let refuse = |field: &str, given: &dyn std::fmt::Display, is: &dyn std::fmt::Display| {
                let name = family.name();
                Err(WorkflowError::BadRequest(format!("`{name}{level}_ref.{field}` `{given}` does not match what was found: `{is}`.")))
            };
            if let Some(given) = reference.id.filter(|given| *given != id) {
                return refuse("id", &given, &id);
            }
            if let Some(given) = reference.slug.as_ref().filter(|given| *given != slug) {
                return refuse("slug", given, slug);
            }
            if let Some(given) = &reference.version
                && parse_version(given)? != self.revision.version
            {
                return refuse("version", given, &self.revision.version);
            }
        }
        Ok(())
    }

    /// What is archived can be read, but not run or deployed.
    pub(crate) fn open(self, family: Family) -> Result<Self, WorkflowError> {
        if [self.artifact.archived_at, self.variant.archived_at, self.revision.archived_at].iter().any(Option::is_some) {
            return Err(WorkflowError::not_found(family.into(), format!("'{}' is archived: {}", self.artifact.slug, family.name())));
        }
        Ok(self)
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
    /// The workflow's revision that the references name, which can be run.
    #[kernel::boxed]
    pub async fn retrieve(&self, scope: Scope, references: &References, key: Option<&str>) -> Result<Retrieved, WorkflowError> {
        self.lead(scope, Family::Workflow, references, key).await?.open(Family::Workflow)
    }

    /// The revision that the references name, archived or not. Direct references that lead nowhere find nothing; a deployment that is not
    /// there is an error.
    #[kernel::boxed]
    pub async fn look_up(
        &self,
        scope: Scope,
        family: Family,
        references: &References,
        key: Option<&str>,
    ) -> Result<Option<Retrieved>, WorkflowError> {
        self.ensure_defaults(scope, family).await?;
        let found = match family {
            Family::Environment => self.find(scope.project, family, &references.environment).await,
            _ if references.names_environment() || key.is_some() => return self.lead(scope, family, references, key).await.map(Some),
            _ => self.find(scope.project, family, &references.workflow).await,
        };
        match found {
            Err(WorkflowError::NotFound(_)) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Follows references, through an environment where they name one.
    async fn lead(&self, scope: Scope, family: Family, references: &References, key: Option<&str>) -> Result<Retrieved, WorkflowError> {
        if !references.names_environment() {
            if key.is_some() {
                return Err(WorkflowError::BadRequest("`key` names a deployment: name an environment beside it.".to_owned()));
            }
            return self.find(scope.project, family, &references.workflow).await;
        }
        references.workflow.check(family)?;
        let key = match key {
            Some(key) => key.to_owned(),
            None => deployment_key(&self.deployed_slug(scope, family, &references.workflow).await?),
        };
        self.ensure_environments(scope.project).await?;
        let environment = self.find(scope.project, Family::Environment, &references.environment).await?.open(Family::Environment)?;
        let deployed = environment.revision.data.as_ref().and_then(|data| data.get("references")?.get(&key)?.as_object());
        let deployed = deployed.filter(|group| !group.is_empty()).ok_or_else(|| WorkflowError::NotDeployed {
            slug: key.strip_suffix(".revision").unwrap_or(&key).to_owned(),
            environment: environment.artifact.slug.clone(),
        })?;
        let target = References::read(deployed)?.workflow;
        let found = self.find(scope.project, family, &target).await?;
        found.agrees(family, &references.workflow)?;
        Ok(Retrieved { deployment: Some(Deployment { key, environment: Box::new(environment) }), ..found })
    }

    /// The slug by which a workflow is deployed, where no key is given.
    async fn deployed_slug(&self, scope: Scope, family: Family, levels: &Levels) -> Result<String, WorkflowError> {
        let name = family.name();
        match &levels.artifact {
            Some(Reference { slug: Some(slug), .. }) => Ok(slug.clone()),
            Some(Reference { id: Some(id), .. }) => {
                let found = rows::artifact_by(&self.0.db, scope.project, family, Named::Id(*id)).await?;
                let unknown = || WorkflowError::BadRequest(format!("`{name}_ref.id` `{id}` does not exist."));
                Ok(found.ok_or_else(unknown)?.slug)
            }
            _ => Err(WorkflowError::BadRequest(format!("Name what is deployed beside the environment: give `key` or `{name}_ref`."))),
        }
    }

    /// The slug of the environment that the references name, if they name one.
    #[kernel::boxed]
    pub async fn environment_slug(&self, scope: Scope, references: &References) -> Result<Option<String>, WorkflowError> {
        if !references.names_environment() {
            return Ok(None);
        }
        self.ensure_environments(scope.project).await?;
        Ok(Some(self.find(scope.project, Family::Environment, &references.environment).await?.artifact.slug))
    }

    /// Finds a revision by references to its levels.
    pub(crate) async fn find(&self, project: ProjectId, family: Family, levels: &Levels) -> Result<Retrieved, WorkflowError> {
        let db = &self.0.db;
        levels.check(family)?;
        let version = version_of(levels)?;
        let missing = |part: &str| WorkflowError::missing(family, part);
        let exact = match named(levels.revision.as_ref()) {
            Some(name) => Some(rows::revision_by(db, project, family, name).await?.ok_or_else(|| missing(" revision"))?),
            None => None,
        };
        let variant = match (&exact, named(levels.variant.as_ref()), named(levels.artifact.as_ref())) {
            (Some(exact), _, _) => rows::variant_by(db, project, family, Named::Id(exact.variant.uuid())).await?,
            (None, Some(name), _) => rows::variant_by(db, project, family, name).await?,
            (None, None, Some(name)) => {
                let text = if let Named::Slug(slug) = name { format!(" `{slug}`") } else { String::new() };
                let artifact = rows::artifact_by(db, project, family, name).await?.ok_or_else(|| missing(&text))?;
                rows::default_variant(db, project, artifact.id).await?
            }
            (None, None, None) => return Err(WorkflowError::BadRequest(format!("Name the {} by id or slug.", family.name()))),
        };
        let variant = variant.ok_or_else(|| missing(" variant"))?;
        let artifact = rows::artifact_by(db, project, family, Named::Id(variant.artifact.uuid())).await?.ok_or_else(|| missing(""))?;
        let revision = match exact {
            Some(exact) => exact,
            None => rows::revision_of(db, project, variant.id, version).await?.ok_or_else(|| missing(" revision"))?,
        };
        let found = Retrieved { artifact, variant, revision, deployment: None };
        found.agrees(family, levels)?;
        Ok(found)
    }
}

impl Levels {
    /// A version alone says nothing: it counts within one variant.
    fn check(&self, family: Family) -> Result<(), WorkflowError> {
        let name = family.name();
        let only_version = |reference: &Option<Reference>| reference.as_ref().is_some_and(|it| !it.is_named() && it.version.is_some());
        if only_version(&self.variant) {
            return Err(WorkflowError::BadRequest(format!("`{name}_variant_ref` has only a `version`. Give its `id` or `slug`.")));
        }
        if only_version(&self.revision) && named(self.variant.as_ref()).is_none() && named(self.artifact.as_ref()).is_none() {
            return Err(WorkflowError::BadRequest(format!(
                "`{name}_revision_ref` has only a `version`. Name `{name}_variant_ref` or `{name}_ref` beside it."
            )));
        }
        Ok(())
    }
}

fn named(reference: Option<&Reference>) -> Option<Named<'_>> {
    let reference = reference?;
    reference.id.map(Named::Id).or_else(|| reference.slug.as_deref().map(Named::Slug))
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
    number.ok_or_else(|| WorkflowError::not_found(RowKind::Version, format!("Version '{text}'")))
}
