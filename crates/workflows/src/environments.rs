//! Environments: what is deployed where, with a history like everything else.

use kernel::{ArtifactId, ProjectId, RevisionId, Scope, VariantId};
use serde_json::{Map, Value};
use store::{StoreError, Tx, args};

use crate::histories::INITIAL;
use crate::{
    Artifact, Change, Committed, Delta, Family, NewRevision, References, Revision, Variant, WorkflowError, Workflows, deployment_key,
    store as rows,
};

/// The environments that every project begins with.
pub const DEFAULT_ENVIRONMENTS: [&str; 3] = ["development", "staging", "production"];

/// A deployment: one workflow revision to one environment.
#[derive(Clone, Debug)]
pub struct Deploy {
    pub references: References,
    /// `{workflow slug}.revision` unless it is named.
    pub key: Option<String>,
    pub message: Option<String>,
}

/// What was deployed, and the environment's revision that says so.
#[derive(Clone, Debug)]
pub struct Deployed {
    pub revision: Revision,
    pub environment: Committed,
}

impl Workflows {
    /// Makes the default environments of a project that has none yet.
    pub(crate) async fn ensure_environments(&self, project: ProjectId) -> Result<(), WorkflowError> {
        let sql = "select id from artifacts where project_id = $1 and family = 'environment' limit 1";
        if self.0.db.optional(sql, args![project]).await?.is_some() {
            return Ok(());
        }
        match self.insert_defaults(project).await {
            // Somebody else was here a moment earlier.
            Err(StoreError::Conflict) => Ok(()),
            other => Ok(other?),
        }
    }

    /// All of them or none: a project that has one is not given the others later.
    async fn insert_defaults(&self, project: ProjectId) -> Result<(), StoreError> {
        let mut tx = self.0.db.begin().await?;
        for slug in DEFAULT_ENVIRONMENTS {
            self.insert_default(&mut tx, project, slug).await?;
        }
        tx.commit().await
    }

    async fn insert_default(&self, tx: &mut Tx, project: ProjectId, slug: &str) -> Result<(), StoreError> {
        let now = self.0.clock.now();
        let artifact = Artifact {
            id: ArtifactId::new(),
            project,
            slug: slug.to_owned(),
            name: Some(slug.to_owned()),
            description: None,
            tags: None,
            meta: None,
            roles: None,
            is_guarded: false,
            created_at: now,
            updated_at: now,
            archived_at: None,
            created_by: None,
            updated_by: None,
            archived_by: None,
        };
        let variant = Variant {
            id: VariantId::new(),
            project,
            artifact: artifact.id,
            artifact_slug: slug.to_owned(),
            slug: slug.to_owned(),
            name: None,
            description: None,
            tags: None,
            meta: None,
            roles: None,
            created_at: now,
            updated_at: now,
            archived_at: None,
            created_by: None,
            updated_by: None,
            archived_by: None,
        };
        let revision = Revision {
            id: RevisionId::new(),
            project,
            artifact: artifact.id,
            artifact_slug: slug.to_owned(),
            variant: variant.id,
            variant_slug: slug.to_owned(),
            slug: format!("{slug}-0"),
            version: 0,
            name: None,
            description: None,
            tags: None,
            meta: None,
            roles: None,
            traits: None,
            data: None,
            message: Some(INITIAL.to_owned()),
            created_at: now,
            updated_at: now,
            archived_at: None,
            created_by: None,
            updated_by: None,
            archived_by: None,
        };
        rows::insert_artifact(tx, Family::Environment, &artifact, None).await?;
        rows::insert_variant(tx, Family::Environment, &variant, None).await?;
        rows::insert_revision(tx, Family::Environment, &revision, None, None).await
    }

    /// Deploys a revision: from now on the environment's key leads to exactly this one.
    #[kernel::boxed]
    pub async fn deploy(&self, scope: Scope, family: Family, deploy: Deploy) -> Result<Deployed, WorkflowError> {
        self.ensure_environments(scope.project).await?;
        let workflow = self.find(scope.project, family, &deploy.references.workflow).await?.open(family)?;
        let environment = self.find(scope.project, Family::Environment, &deploy.references.environment).await?.open(Family::Environment)?;
        let key = deploy.key.unwrap_or_else(|| deployment_key(&workflow.artifact.slug));
        let set = Map::from_iter([(key, Value::Object(workflow.references(family)))]);
        let change = Change::Delta(Delta { set: Some(set), remove: None });
        let new = NewRevision { message: deploy.message, ..NewRevision::of(environment.variant.id, change) };
        let environment = self.commit(scope, Family::Environment, new).await?;
        Ok(Deployed { revision: workflow.revision, environment })
    }

    /// Keeps an environment from being deployed to, or lets it be again.
    #[kernel::boxed]
    pub async fn guard(&self, scope: Scope, id: ArtifactId, guarded: bool) -> Result<Artifact, WorkflowError> {
        let changed =
            rows::guard_artifact(&self.0.db, scope.project, Family::Environment, id, guarded, (scope.author(), self.0.clock.now())).await?;
        changed.ok_or_else(|| WorkflowError::missing(Family::Environment, ""))
    }
}
