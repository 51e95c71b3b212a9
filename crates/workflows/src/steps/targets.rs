//! What steps call, held against what there is when they are saved.

use kernel::suggest::did_you_mean;
use kernel::{CallRef, Scope};

use crate::{Artifact, Family, References, WorkflowError, Workflows, store as rows};

/// How many are looked through for the one that was meant.
const MAX_SLUGS: i64 = 10_000;

impl Workflows {
    /// Refuses steps that call what does not exist. A workflow may call itself before it is there.
    pub(crate) async fn check_calls(&self, scope: Scope, own: &str, calls: &[CallRef]) -> Result<(), WorkflowError> {
        let itself = CallRef::Variant { slug: own.to_owned(), version: None };
        for (index, target) in calls.iter().enumerate() {
            if *target == itself || calls[..index].contains(target) {
                continue;
            }
            self.check_call(scope, target).await.map_err(|error| match error {
                WorkflowError::Invalid(said) => WorkflowError::Invalid(format!("`data.steps.{index}.call`: {said}")),
                other => other,
            })?;
        }
        Ok(())
    }

    async fn check_call(&self, scope: Scope, target: &CallRef) -> Result<(), WorkflowError> {
        match target {
            CallRef::Variant { slug, version } => {
                self.must_exist(scope, Family::Workflow, slug).await?;
                let Some(version) = version else { return Ok(()) };
                let references = References::workflow(slug, Some(version));
                match self.find(scope.project, Family::Workflow, &references.workflow).await {
                    Err(WorkflowError::NotFound(_)) => Err(WorkflowError::Invalid(format!("workflow `{slug}` has no version {version}"))),
                    found => found.map(|_| ()),
                }
            }
            // What is deployed there may come later.
            CallRef::Environment { environment, slug } => {
                self.ensure_environments(scope.project).await?;
                self.must_exist(scope, Family::Environment, environment).await?;
                self.must_exist(scope, Family::Workflow, slug).await
            }
            CallRef::Gateway { .. } | CallRef::Reserved { .. } => match self.0.caller.get() {
                Some(caller) => caller.check(scope, target).await,
                None => Ok(()),
            },
        }
    }

    async fn must_exist(&self, scope: Scope, family: Family, slug: &str) -> Result<(), WorkflowError> {
        match rows::artifact_by(&self.0.db, scope.project, family, rows::Named::Slug(slug)).await? {
            Some(Artifact { archived_at: None, .. }) => Ok(()),
            Some(_) => Err(WorkflowError::Invalid(format!("{} `{slug}` is archived", family.name()))),
            None => {
                let others = rows::slugs(&self.0.db, scope.project, family, MAX_SLUGS).await?;
                let near = did_you_mean(slug, others.iter().map(String::as_str));
                Err(WorkflowError::Invalid(format!("there is no {} `{slug}`.{near}", family.name())))
            }
        }
    }
}
