//! The tools of a project: every action of every connection that can be used, and every workflow that can be run.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use calls::{CallError, Calls};
use catalog::{Action, Integration};
use connections::Connection;
use definitions::format::{Format, expand_types, function_name, is_hashed};
use definitions::{DescribedTool, Tool};
use futures_util::future::BoxFuture;
use kernel::{CallName, CallRef, Scope};
use serde_json::{Value, json};
use workflows::{Artifact, Family, Query, References, WorkflowError};

use crate::approval::Approver;
use crate::page::{PAGE, after, cursor_of};
use crate::{Call, CallOutcome, Page, RpcError, Surface, reply};

const MAX_WORKFLOWS: i64 = 500;

/// The tools of a project, as one key sees them.
#[derive(Clone, Debug)]
pub struct ProjectTools {
    pub approver: Approver,
    /// How long a workflow may take.
    pub limit: Duration,
}

/// One tool, before anybody wants to read it.
pub(crate) enum ProjectTool {
    Action { integration: Arc<Integration>, action: Arc<Action>, connection: String, is_one_of_many: bool, failure: Option<String> },
    Workflow(Box<Artifact>),
}

impl ProjectTool {
    pub(crate) fn call_ref(&self) -> CallRef {
        match self {
            Self::Action { integration, action, connection, .. } => CallRef::Gateway {
                provider: integration.provider.to_owned(),
                integration: integration.key.clone(),
                action: action.key.clone(),
                connection: connection.clone(),
            },
            Self::Workflow(artifact) => CallRef::Variant { slug: artifact.slug.clone(), version: None },
        }
    }
}

impl ProjectTools {
    pub(crate) fn calls(&self) -> &Calls {
        &self.approver.domains.calls
    }

    pub(crate) fn scope(&self) -> Scope {
        self.approver.scope
    }

    /// What is listed: everything that the project connected or made, in an order that stays.
    async fn entries(&self) -> Result<Vec<ProjectTool>, RpcError> {
        self.entries_through(self.connections().await?).await
    }

    /// What can be called: the same, and what needs no account. That is not listed, for it would fill every client's context.
    pub(crate) async fn callable(&self) -> Result<Vec<ProjectTool>, RpcError> {
        let mut rows = self.connections().await?;
        rows.extend(self.approver.domains.connections.implicit(self.scope().into(), &rows));
        self.entries_through(rows).await
    }

    async fn connections(&self) -> Result<Vec<Connection>, RpcError> {
        let found = self.approver.domains.connections.query(self.scope(), None, None).await;
        found.map_err(|error| RpcError::internal(&error))
    }

    async fn entries_through(&self, mut rows: Vec<Connection>) -> Result<Vec<ProjectTool>, RpcError> {
        let (catalog, scope) = (&self.approver.domains.catalog, self.scope());
        rows.retain(Connection::is_usable);
        rows.sort_by(|a, b| (&a.provider, &a.integration, &a.slug).cmp(&(&b.provider, &b.integration, &b.slug)));
        let mut entries = Vec::new();
        for row in &rows {
            let Ok(integration) = catalog.integration(scope.project, &row.provider, &row.integration) else { continue };
            let is_one_of_many =
                rows.iter().filter(|other| other.provider == row.provider && other.integration == row.integration).count() > 1;
            entries.extend(integration.actions.iter().map(|action| ProjectTool::Action {
                integration: integration.clone(),
                action: action.clone(),
                connection: row.slug.clone(),
                is_one_of_many,
                failure: row.failure.clone(),
            }));
        }
        let mut workflows = self.workflows().await?;
        workflows.sort_by(|a, b| a.slug.cmp(&b.slug));
        entries.extend(workflows.into_iter().map(|artifact| ProjectTool::Workflow(Box::new(artifact))));
        Ok(entries)
    }

    async fn workflows(&self) -> Result<Vec<Artifact>, RpcError> {
        let mut query = Query { limit: Some(MAX_WORKFLOWS), ..Query::default() };
        let mut found = Vec::new();
        loop {
            let page = self.approver.domains.workflows.query_artifacts(self.scope(), Family::Workflow, &query).await;
            let page = page.map_err(|error| RpcError::internal(&error))?;
            query.next = page.cursor(|last| last.id.uuid());
            // What a tool is defined by; the rest may be large.
            found.extend(page.rows.into_iter().map(|mut artifact| {
                (artifact.tags, artifact.meta) = (None, None);
                artifact
            }));
            if query.next.is_none() || i64::try_from(found.len()).is_ok_and(|found| found >= MAX_WORKFLOWS) {
                return Ok(found);
            }
        }
    }

    /// The definition of a tool; a workflow that cannot be run has none.
    pub(crate) async fn define(&self, entry: &ProjectTool) -> Result<Option<Value>, RpcError> {
        self.define_as(entry, Format::Mcp).await
    }

    /// The same for any model API.
    pub(crate) async fn define_as(&self, entry: &ProjectTool, format: Format) -> Result<Option<Value>, RpcError> {
        match entry {
            ProjectTool::Action { integration, action, connection, is_one_of_many, failure } => {
                let description = match (failure, is_one_of_many) {
                    (Some(failure), _) => format!("{} ({failure})", action.description),
                    (None, true) => format!("{} (connection `{connection}`)", action.description),
                    (None, false) => action.description.clone(),
                };
                let tool = Tool::Action(integration.clone(), action.clone());
                let mut defined = tool.define(format, &entry.call_ref().to_string(), &description);
                if format == Format::Mcp {
                    defined["title"] = json!(format!("{}: {}", integration.name, action.name));
                    defined["annotations"]["openWorldHint"] = true.into();
                }
                Ok(Some(defined))
            }
            ProjectTool::Workflow(artifact) => self.define_workflow(artifact, &entry.call_ref().to_string()).await,
        }
    }

    async fn define_workflow(&self, artifact: &Artifact, call_ref: &str) -> Result<Option<Value>, RpcError> {
        let references = References::workflow(&artifact.slug, None);
        let found = match self.approver.domains.workflows.retrieve(self.scope(), &references, None).await {
            Ok(found) if found.revision.data.is_some() => found,
            Ok(_) | Err(WorkflowError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(RpcError::internal(&error)),
        };
        let title = artifact.name.as_deref().unwrap_or(&artifact.slug);
        let tool = Tool::Described(DescribedTool {
            title: title.to_owned(),
            description: artifact.description.as_deref().unwrap_or(title).to_owned(),
            input_schema: found.input_schema().map_or_else(|| json!({"type": "object"}), expand_types),
            read_only: None,
        });
        let mut defined = tool.define(Format::Mcp, call_ref, tool.description());
        defined["title"] = json!(tool.title());
        Ok(Some(defined))
    }

    async fn page(&self, cursor: Option<&str>) -> Result<Page, RpcError> {
        let entries = self.entries().await?;
        let start = after(entries.iter().map(|entry| entry.call_ref().to_string()), cursor)?;
        let rest = &entries[start..];
        let shown = &rest[..rest.len().min(PAGE)];
        let mut page = Page::default();
        for entry in shown {
            page.tools.extend(self.define(entry).await?);
        }
        page.next = shown.last().filter(|_| rest.len() > PAGE).map(|last| cursor_of(&last.call_ref().to_string()));
        Ok(page)
    }

    /// The call ref behind a name. Most names are refs, written as clients accept them.
    async fn target(&self, name: &str) -> Result<CallName, RpcError> {
        let given = CallName::from(name.to_owned());
        if !is_hashed(name) && given.target().is_ok() {
            return Ok(given);
        }
        let mut callable = self.callable().await?.into_iter().map(|tool| tool.call_ref());
        let named = callable.find(|call_ref| function_name(&call_ref.to_string()) == name);
        named.map(CallName::from).ok_or_else(|| RpcError::Params(format!("Unknown tool: {}", name.chars().take(200).collect::<String>())))
    }

    async fn run(&self, call: Call) -> Result<CallOutcome, RpcError> {
        let name = self.target(&call.name).await?;
        if let Some(outcome) = self.approver.hear(&call).await? {
            return Ok(outcome);
        }
        let (request, _stop) = call.to(name, self.limit);
        match self.calls().call(self.scope(), request).await {
            Ok(reply) => Ok(reply::of_reply(reply)),
            Err(CallError::Waiting(approval)) => Ok(self.approver.ask(&approval, &call)),
            Err(error) => reply::of_error(error),
        }
    }

    async fn look(&self) -> Result<u64, RpcError> {
        let mut hasher = DefaultHasher::new();
        for entry in self.entries().await? {
            entry.call_ref().hash(&mut hasher);
            match &entry {
                ProjectTool::Action { action, failure, .. } => (Arc::as_ptr(action) as usize, failure).hash(&mut hasher),
                ProjectTool::Workflow(artifact) => artifact.updated_at.micros().hash(&mut hasher),
            }
        }
        let newest = Query { limit: Some(1), ..Query::default() };
        let newest = self.approver.domains.workflows.query_revisions(self.scope(), Family::Workflow, &newest).await;
        let newest = newest.map_err(|error| RpcError::internal(&error))?;
        newest.rows.first().map(|revision| revision.id.uuid()).hash(&mut hasher);
        Ok(hasher.finish())
    }
}

impl Surface for ProjectTools {
    fn instructions(&self) -> String {
        "The tools of one Toolyard project: actions of connected accounts, named tools__{provider}__{integration}__{action}__{connection}, and \
         workflows. A call that must be approved by a person says so and how."
            .to_owned()
    }

    fn list<'a>(&'a self, cursor: Option<&'a str>) -> BoxFuture<'a, Result<Page, RpcError>> {
        Box::pin(self.page(cursor))
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<CallOutcome, RpcError>> {
        Box::pin(self.run(call))
    }

    fn fingerprint(&self) -> BoxFuture<'_, Result<u64, RpcError>> {
        Box::pin(self.look())
    }
}
