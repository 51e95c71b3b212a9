//! Runs of workflows. Whatever runs one asks the project's rules for it, by each of its names.

use std::collections::HashSet;
use std::sync::Arc;

use definitions::{Verdict, workflow_names};
use futures_util::future::BoxFuture;
use kernel::{ApprovalId, CallRef, ProjectId, Scope, json};
use serde_json::{Map, json};
use store::StoreError;
use tokio::sync::watch;
use work::{LARGE, SMALL};
use workflows::{InvokeReply, InvokeRequest, NotRun, References, Retrieved, Runs, WorkflowError};

use crate::call::{Call, Recording};
use crate::permission::ToolFacts;
use crate::policy::{DefaultVerdict, PermissionRequest};
use crate::{CallError, Calls};

/// How many workflows are remembered as they are run.
pub(crate) const MAX_REMEMBERED: usize = 512;

/// Who runs what: the project, the references and the key of a deployment.
pub(crate) type RunKey = (ProjectId, References, Option<String>);

/// A workflow as references lead to it, and the names that rules know it by.
#[derive(Debug)]
pub(crate) struct Runnable {
    found: Retrieved,
    name: String,
    also: Vec<String>,
}

impl Runnable {
    fn is_small(&self) -> bool {
        self.found.revision.data.as_ref().is_none_or(|data| json::size(data, LARGE) <= SMALL)
    }
}

/// A workflow that somebody wants to run, as rules and people see it.
pub(crate) struct Run<'a> {
    pub(crate) found: &'a Retrieved,
    pub(crate) facts: ToolFacts<'a>,
    pub(crate) asked: PermissionRequest<'a>,
    /// The caller's own word; it can only be stricter than the project's.
    pub(crate) caller: Option<Verdict>,
    /// The call that runs it, if it is one, and its row.
    pub(crate) call: Option<(&'a Call, &'a Recording)>,
}

impl Calls {
    /// Runs a workflow if it may run.
    pub(crate) async fn run_permitted(&self, scope: Scope, run: Run<'_>, request: InvokeRequest) -> Result<InvokeReply, CallError> {
        self.0.workflows.check_room(scope.project).await?;
        let permit = self.permit(scope, &run.facts, run.asked, run.caller, DefaultVerdict::Run).await?;
        if let Some((call, recording)) = run.call {
            recording.note_permit(permit);
            self.intend(scope, recording, true, permit).await?;
            if let Err(error) = self.note_sent(call, recording.id()).await {
                self.give_back(scope, permit).await?;
                return Err(error);
            }
        }
        Ok(self.0.executor.run(scope, run.found, request).await)
    }

    /// Runs a workflow that was asked for as such.
    #[kernel::boxed]
    pub async fn invoke(&self, scope: Scope, request: InvokeRequest) -> Result<InvokeReply, CallError> {
        let runnable = self.runnable(scope, &request).await?;
        let Runnable { found, name, also } = &*runnable;
        let facts = ToolFacts { name, also, ..ToolFacts::default() };
        let inputs = request.inputs.as_object().cloned().unwrap_or_default();
        let mut whole = Map::from_iter([("inputs".to_owned(), request.inputs.clone()), ("references".to_owned(), json!(also))]);
        whole.extend(request.data.clone().map(|data| ("data".to_owned(), data)));
        // The delivery is part of what is approved, so its further tries need no other approval, and no other delivery can use it.
        whole.extend(request.origin.delivery.map(|delivery| ("delivery".to_owned(), json!(delivery))));
        let (all_tries, agent) = (request.origin.delivery.is_some(), request.origin.agent);
        let asked = PermissionRequest { arguments: &inputs, whole: &whole, all_tries, agent, never_asks: false };
        self.run_permitted(scope, Run { found, facts, asked, caller: None, call: None }, request).await
    }

    /// What is run, remembered: the same few workflows run again and again.
    async fn runnable(&self, scope: Scope, request: &InvokeRequest) -> Result<Arc<Runnable>, WorkflowError> {
        let known = (scope.project, request.references.clone(), request.key.clone());
        let read = || async {
            let found = self.0.workflows.retrieve(scope, &request.references, request.key.as_deref()).await?;
            let [name, versioned] = workflow_names(&found);
            let mut also = vec![versioned];
            if let Some(environment) = self.0.workflows.environment_slug(scope, &request.references).await? {
                also.push(CallRef::Environment { environment, slug: found.artifact.slug.clone() }.to_string());
            }
            Ok(Arc::new(Runnable { found, name, also }))
        };
        self.0.runnables.or_read_any(known, read, |runnable| runnable.is_small()).await
    }
}

impl Runs for Calls {
    fn run(&self, scope: Scope, request: InvokeRequest) -> BoxFuture<'_, Result<InvokeReply, NotRun>> {
        Box::pin(async move {
            self.invoke(scope, request).await.map_err(|error| match error {
                CallError::Waiting(ref approval) => NotRun::Waiting { approval: approval.id, message: error.to_string() },
                CallError::Workflow(error) => NotRun::Workflow(error),
                CallError::Store(error) => NotRun::Workflow(WorkflowError::Store(error)),
                CallError::Full(full) => NotRun::Workflow(WorkflowError::Full(full)),
                refused => NotRun::Denied(refused.to_string()),
            })
        })
    }

    fn undecided(&self, project: ProjectId) -> BoxFuture<'_, Result<HashSet<ApprovalId>, StoreError>> {
        Box::pin(Calls::undecided(self, project))
    }

    fn decisions(&self) -> watch::Receiver<()> {
        Calls::decisions(self)
    }
}
