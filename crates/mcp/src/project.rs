//! The tools of a project: every action of every connection that can be used, and every workflow that can be run.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use catalog::{Action, Integration};
use connections::Connection;
use futures_util::future::BoxFuture;
use kernel::json::Document;
use kernel::{CallRef, Scope};
use serde_json::{Value, json};
use tools::format::{Format, ToolView, definition, expand_types, function_name, is_hashed};
use tools::{CallError, Tools};
use workflows::{Artifact, Family, Query, References, WorkflowError};

use crate::approval::Approver;
use crate::page::{PAGE, after, cursor_of};
use crate::{Call, Fault, Outcome, Page, Surface, reply};

const MAX_WORKFLOWS: i64 = 500;

/// The tools of a project, as one key sees them.
#[derive(Clone, Debug)]
pub struct ProjectTools {
    pub approver: Approver,
    /// How long a workflow may take.
    pub limit: Duration,
}

/// One tool, before anybody wants to read it.
pub(crate) enum Entry {
    Action { integration: Arc<Integration>, action: Arc<Action>, connection: String, is_one_of_many: bool, failure: Option<String> },
    Workflow(Box<Artifact>),
}

impl Entry {
    pub(crate) fn call_ref(&self) -> String {
        match self {
            Self::Action { integration, action, connection, .. } => {
                format!("tools.{}.{}.{}.{connection}", integration.provider, integration.key, action.key)
            }
            Self::Workflow(artifact) => CallRef::Variant { slug: artifact.slug.clone(), version: None }.to_string(),
        }
    }
}

impl ProjectTools {
    pub(crate) fn tools(&self) -> &Tools {
        &self.approver.tools
    }

    pub(crate) fn scope(&self) -> Scope {
        self.approver.scope
    }

    /// What is listed: everything that the project connected or made, in an order that stays.
    async fn entries(&self) -> Result<Vec<Entry>, Fault> {
        self.entries_through(self.connections().await?).await
    }

    /// What can be called: the same, and what needs no account. That is not listed, for it would fill every client's context.
    pub(crate) async fn callable(&self) -> Result<Vec<Entry>, Fault> {
        let mut rows = self.connections().await?;
        rows.extend(self.tools().connections.implicit(self.scope().project, &rows));
        self.entries_through(rows).await
    }

    async fn connections(&self) -> Result<Vec<Connection>, Fault> {
        let found = self.tools().connections.query(self.scope().project, None, None).await;
        found.map_err(|error| Fault::internal(&error))
    }

    async fn entries_through(&self, mut rows: Vec<Connection>) -> Result<Vec<Entry>, Fault> {
        let (tools, scope) = (self.tools(), self.scope());
        rows.retain(Connection::is_usable);
        rows.sort_by(|a, b| (&a.provider, &a.integration, &a.slug).cmp(&(&b.provider, &b.integration, &b.slug)));
        let mut entries = Vec::new();
        for row in &rows {
            let Ok(integration) = tools.catalog.integration(scope.project, &row.provider, &row.integration) else { continue };
            let is_one_of_many =
                rows.iter().filter(|other| other.provider == row.provider && other.integration == row.integration).count() > 1;
            entries.extend(integration.actions.iter().map(|action| Entry::Action {
                integration: integration.clone(),
                action: action.clone(),
                connection: row.slug.clone(),
                is_one_of_many,
                failure: row.failure.clone(),
            }));
        }
        let mut workflows = self.workflows().await?;
        workflows.sort_by(|a, b| a.slug.cmp(&b.slug));
        entries.extend(workflows.into_iter().map(|artifact| Entry::Workflow(Box::new(artifact))));
        Ok(entries)
    }

    async fn workflows(&self) -> Result<Vec<Artifact>, Fault> {
        let query = Query { limit: Some(MAX_WORKFLOWS), ..Query::default() };
        let found = self.tools().workflows.query_artifacts(self.scope(), Family::Workflow, &query).await;
        found.map_err(|error| Fault::internal(&error))
    }

    /// The definition of a tool; a workflow that cannot be run has none.
    pub(crate) async fn define(&self, entry: &Entry) -> Result<Option<Value>, Fault> {
        match entry {
            Entry::Action { integration, action, connection, is_one_of_many, failure } => {
                let description = match (failure, is_one_of_many) {
                    (Some(failure), _) => format!("{} ({failure})", action.description),
                    (None, true) => format!("{} (connection `{connection}`)", action.description),
                    (None, false) => action.description.clone(),
                };
                let (input, output) = (action.input_schema.value(), action.output_schema.as_ref().map(Document::value));
                let view = ToolView {
                    name: &entry.call_ref(),
                    description: &description,
                    input_schema: &input,
                    output_schema: output.as_ref(),
                    read_only: Some(action.read_only),
                    destructive: Some(action.destructive),
                };
                let mut defined = definition(Format::Mcp, &view);
                defined["title"] = json!(format!("{}: {}", integration.name, action.name));
                defined["annotations"]["openWorldHint"] = true.into();
                Ok(Some(defined))
            }
            Entry::Workflow(artifact) => self.define_workflow(artifact, &entry.call_ref()).await,
        }
    }

    async fn define_workflow(&self, artifact: &Artifact, call_ref: &str) -> Result<Option<Value>, Fault> {
        let references = References::workflow(&artifact.slug, None);
        let found = match self.tools().workflows.retrieve(self.scope(), &references, None).await {
            Ok(found) if found.revision.data.is_some() => found,
            Ok(_) | Err(WorkflowError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(Fault::internal(&error)),
        };
        let name = artifact.name.as_deref().unwrap_or(&artifact.slug);
        let schema = found.input_schema().map_or_else(|| json!({"type": "object"}), expand_types);
        let view = ToolView {
            name: call_ref,
            description: artifact.description.as_deref().unwrap_or(name),
            input_schema: &schema,
            output_schema: None,
            read_only: None,
            destructive: None,
        };
        let mut defined = definition(Format::Mcp, &view);
        defined["title"] = json!(name);
        Ok(Some(defined))
    }

    async fn page(&self, cursor: Option<&str>) -> Result<Page, Fault> {
        let entries = self.entries().await?;
        let start = after(entries.iter().map(Entry::call_ref), cursor)?;
        let rest = &entries[start..];
        let shown = &rest[..rest.len().min(PAGE)];
        let mut page = Page::default();
        for entry in shown {
            page.tools.extend(self.define(entry).await?);
        }
        page.next = shown.last().filter(|_| rest.len() > PAGE).map(|last| cursor_of(&last.call_ref()));
        Ok(page)
    }

    /// The call ref behind a name. Most names are refs, written as clients accept them.
    async fn target(&self, name: &str) -> Result<String, Fault> {
        if !is_hashed(name) && name.parse::<CallRef>().is_ok() {
            return Ok(name.to_owned());
        }
        let named = self.callable().await?.iter().map(Entry::call_ref).find(|call_ref| function_name(call_ref) == name);
        named.ok_or_else(|| Fault::Params(format!("Unknown tool: {}", name.chars().take(200).collect::<String>())))
    }

    async fn run(&self, call: Call) -> Result<Outcome, Fault> {
        let name = self.target(&call.name).await?;
        if let Some(outcome) = self.approver.hear(&call).await? {
            return Ok(outcome);
        }
        let (request, _stop) = call.to(name, self.limit);
        match self.tools().call(self.scope(), request).await {
            Ok(reply) => Ok(reply::of_reply(reply)),
            Err(CallError::Waiting(approval)) => Ok(self.approver.ask(&approval, &call)),
            Err(error) => reply::of_error(error),
        }
    }

    async fn look(&self) -> Result<u64, Fault> {
        let mut hasher = DefaultHasher::new();
        for entry in self.entries().await? {
            entry.call_ref().hash(&mut hasher);
            match &entry {
                Entry::Action { action, failure, .. } => (Arc::as_ptr(action) as usize, failure).hash(&mut hasher),
                Entry::Workflow(artifact) => artifact.updated_at.micros().hash(&mut hasher),
            }
        }
        let newest = Query { limit: Some(1), ..Query::default() };
        let newest = self.tools().workflows.query_revisions(self.scope(), Family::Workflow, &newest).await;
        let newest = newest.map_err(|error| Fault::internal(&error))?;
        newest.first().map(|revision| revision.id.uuid()).hash(&mut hasher);
        Ok(hasher.finish())
    }
}

impl Surface for ProjectTools {
    fn instructions(&self) -> String {
        "The tools of one Toolyard project: actions of connected accounts, named tools__{provider}__{integration}__{action}__{connection}, and \
         workflows. A call that must be approved by a person says so and how."
            .to_owned()
    }

    fn list<'a>(&'a self, cursor: Option<&'a str>) -> BoxFuture<'a, Result<Page, Fault>> {
        Box::pin(self.page(cursor))
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Fault>> {
        Box::pin(self.run(call))
    }

    fn fingerprint(&self) -> BoxFuture<'_, Result<u64, Fault>> {
        Box::pin(self.look())
    }
}
