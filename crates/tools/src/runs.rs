//! Runs of workflows. Whatever runs one asks the project's rules for it, by each of its names.

use std::collections::HashSet;

use futures_util::future::BoxFuture;
use kernel::{ApprovalId, CallRef, ProjectId, Scope};
use serde_json::{Map, json};
use store::StoreError;
use workflows::{InvokeReply, InvokeRequest, NotRun, Retrieved, Runs, WorkflowError};

use crate::permission::{Permission, ToolFacts};
use crate::policy::{Asked, Unsaid};
use crate::{CallError, Tools};

/// A workflow that somebody wants to run, as rules and people see it.
pub(crate) struct Run<'a> {
    pub(crate) found: &'a Retrieved,
    pub(crate) facts: ToolFacts<'a>,
    pub(crate) asked: Asked<'a>,
    /// The caller's own word; it can only be stricter than the project's.
    pub(crate) caller: Option<Permission>,
}

impl Tools {
    /// Runs a workflow if it may run.
    pub(crate) async fn run_permitted(&self, scope: Scope, run: Run<'_>, request: InvokeRequest) -> Result<InvokeReply, CallError> {
        self.permit(scope, &run.facts, run.asked, run.caller, Unsaid::Run).await?;
        Ok(self.executor.run(scope, run.found, request).await)
    }

    /// Runs a workflow that was asked for as such.
    pub async fn invoke(&self, scope: Scope, request: InvokeRequest) -> Result<InvokeReply, CallError> {
        let found = self.workflows.retrieve(scope, &request.references, request.key.as_deref()).await?;
        let [name, versioned] = workflow_names(&found);
        let mut also = vec![versioned];
        if let Some(environment) = self.workflows.environment_slug(scope, &request.references).await? {
            also.push(CallRef::Environment { environment, slug: found.artifact.slug.clone() }.to_string());
        }
        let facts = ToolFacts { name: &name, also: &also, ..ToolFacts::default() };
        let inputs = request.inputs.as_object().cloned().unwrap_or_default();
        let mut whole = Map::from_iter([("inputs".to_owned(), request.inputs.clone()), ("references".to_owned(), json!(also))]);
        whole.extend(request.data.clone().map(|data| ("data".to_owned(), data)));
        // The delivery is part of what is approved, so its further tries need no other approval, and no other delivery can use it.
        whole.extend(request.origin.delivery.map(|delivery| ("delivery".to_owned(), json!(delivery))));
        let asked = Asked { arguments: &inputs, whole: &whole, all_tries: request.origin.delivery.is_some() };
        self.run_permitted(scope, Run { found: &found, facts, asked, caller: None }, request).await
    }
}

impl Runs for Tools {
    fn run(&self, scope: Scope, request: InvokeRequest) -> BoxFuture<'_, Result<InvokeReply, NotRun>> {
        Box::pin(async move {
            self.invoke(scope, request).await.map_err(|error| match error {
                CallError::Waiting(ref approval) => NotRun::Waiting { approval: approval.id, message: error.to_string() },
                CallError::Workflow(error) => NotRun::Workflow(error),
                CallError::Store(error) => NotRun::Workflow(WorkflowError::Store(error)),
                refused => NotRun::Denied(refused.to_string()),
            })
        })
    }

    fn undecided(&self, project: ProjectId) -> BoxFuture<'_, Result<HashSet<ApprovalId>, StoreError>> {
        Box::pin(Tools::undecided(self, project))
    }
}

/// The name of a workflow in rules, however it is called.
pub(crate) fn workflow_name(found: &Retrieved) -> String {
    CallRef::Variant { slug: found.artifact.slug.clone(), version: None }.to_string()
}

/// The same, and the name of this revision.
pub(crate) fn workflow_names(found: &Retrieved) -> [String; 2] {
    let version = Some(found.revision.version.to_string());
    [workflow_name(found), CallRef::Variant { slug: found.artifact.slug.clone(), version }.to_string()]
}
