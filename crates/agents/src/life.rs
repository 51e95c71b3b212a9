//! Reading agents, with their apps as they stand now.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ::store::{Page, PageSize, page_bytes};
use catalog::Integration;
use definitions::Verdict;
use kernel::suggest::did_you_mean;
use kernel::{AgentId, Budget, Scope, Timestamp};
use uuid::Uuid;

use crate::{Agent, AgentError, AgentRef, Agents, AppStatus, Apps, Assignment, HistoryPage, Reason, Status, store};

/// Which agents to list.
#[derive(Clone, Debug)]
pub struct AgentFilter {
    pub skip: i64,
    pub size: PageSize,
    pub status: Option<String>,
    pub agent_type: Option<String>,
    pub priority_level: Option<String>,
    /// Part of a name or a description.
    pub search: Option<String>,
}

/// An agent with the apps that are assigned to it.
#[derive(Clone, Debug)]
pub struct AgentView {
    pub agent: Agent,
    /// The most preferred first.
    pub apps: Vec<AssignedApp>,
}

/// An assigned app: what the catalog says about it, and whether it can be used now.
#[derive(Clone, Debug)]
pub struct AssignedApp {
    pub assignment: Assignment,
    pub integration: Option<Arc<Integration>>,
    pub status: AppStatus,
    pub unusable: Option<Reason>,
}

/// How many agents there are.
#[derive(Clone, Debug)]
pub struct Stats {
    pub total: i64,
    pub active: i64,
    pub inactive: i64,
    pub by_type: BTreeMap<String, i64>,
    pub at: Timestamp,
}

impl Agents {
    pub(crate) async fn find(&self, scope: Scope, agent: AgentRef) -> Result<Agent, AgentError> {
        let found = store::agents::find(&self.0.db, scope.project, agent).await?.ok_or(AgentError::NotFound)?;
        self.seen(scope, found).await
    }

    #[kernel::boxed]
    pub async fn get(&self, scope: Scope, agent: AgentRef) -> Result<AgentView, AgentError> {
        let agent = self.find(scope, agent).await?;
        let rows = store::assignments::all(&self.0.db, scope.project, agent.id).await?;
        let apps = self.apps(scope).await?;
        Ok(view(agent, rows, &apps))
    }

    /// The agent without its apps.
    #[kernel::boxed]
    pub async fn read(&self, scope: Scope, agent: AgentRef) -> Result<Agent, AgentError> {
        self.find(scope, agent).await
    }

    /// Agents in the order in which they were made.
    #[kernel::boxed]
    pub async fn list(&self, scope: Scope, filter: &AgentFilter) -> Result<Page<AgentView>, AgentError> {
        if let Some(status) = filter.status.as_deref().filter(|status| Status::named(status).is_none()) {
            let names = Status::ALL.map(Status::name);
            let nearest = did_you_mean(status, names);
            return Err(AgentError::Invalid(format!("`{status}` is not a status; there are {}.{nearest}", names.join(", "))));
        }
        let (found, size) = (store::agents::list(&self.0.db, scope, filter).await?, filter.size);
        let bytes = page_bytes(&found);
        let read = move |_: &Budget| Ok::<_, AgentError>(size.read(&found, store::agents::read)?);
        let Page { rows: agents, more } = self.0.workers.run(scope.project, bytes, read).await?;
        let mut rows: HashMap<AgentId, Vec<Assignment>> = HashMap::new();
        for row in &store::agents::list_assignments(&self.0.db, scope, filter).await? {
            let row = store::assignments::read(row)?;
            rows.entry(row.agent).or_default().push(row);
        }
        let apps = self.apps(scope).await?;
        let mut rows_of = |agent: &Agent| rows.remove(&agent.id).unwrap_or_default();
        let views = agents.into_iter().map(|agent| (rows_of(&agent), agent)).map(|(rows, agent)| view(agent, rows, &apps));
        Ok(Page { rows: views.collect(), more })
    }

    pub(crate) async fn views(&self, scope: Scope, ids: &[AgentId]) -> Result<Vec<AgentView>, AgentError> {
        let apps = self.apps(scope).await?;
        let mut views = Vec::with_capacity(ids.len());
        for id in ids {
            let agent = self.find(scope, AgentRef::Id(*id)).await?;
            let rows = store::assignments::all(&self.0.db, scope.project, *id).await?;
            views.push(view(agent, rows, &apps));
        }
        Ok(views)
    }

    #[kernel::boxed]
    pub async fn stats(&self, scope: Scope) -> Result<Stats, AgentError> {
        let mut stats = Stats { total: 0, active: 0, inactive: 0, by_type: BTreeMap::new(), at: self.0.clock.now() };
        for (kind, status, count) in store::agents::counts(&self.0.db, scope.project).await? {
            stats.total += count;
            stats.active += if status == Status::Active.name() { count } else { 0 };
            stats.inactive += if status == Status::Inactive.name() { count } else { 0 };
            *stats.by_type.entry(kind).or_default() += count;
        }
        Ok(stats)
    }

    /// Who changed what, newest first. An agent that is gone still has its history.
    #[kernel::boxed]
    pub async fn history(
        &self,
        scope: Scope,
        agent: AgentRef,
        limit: Option<i64>,
        cursor: Option<Uuid>,
    ) -> Result<HistoryPage, AgentError> {
        if scope.is_for_agents {
            self.find(scope, agent).await?;
        }
        let page = store::history::page(&self.0.db, scope.project, agent, PageSize::asked(limit), cursor).await?;
        // Every agent has at least the line of its making, on some page.
        if page.entries.is_empty() && cursor.is_none() {
            return Err(AgentError::NotFound);
        }
        Ok(page)
    }
}

fn view(agent: Agent, rows: Vec<Assignment>, apps: &Apps) -> AgentView {
    let mut rows: Vec<Assignment> = rows.into_iter().filter(|row| row.is_active).collect();
    rows.sort_by(|left, right| right.priority.cmp(&left.priority).then(left.id.cmp(&right.id)));
    let app = |assignment: Assignment| {
        let route = apps.route(&assignment.app, &assignment.policy);
        let status = apps.status(&assignment.app);
        let integration = match &route {
            Ok(route) => Some(route.integration.clone()),
            Err(_) => apps.integrations(&assignment.app).first().cloned(),
        };
        let unusable = match route {
            Err(reason) => Some(reason),
            Ok(_) if assignment.policy.permission == Some(Verdict::Deny) => Some(Reason::DeniedByAgent(assignment.app.to_string())),
            Ok(_) if agent.status != Status::Active => Some(Reason::AgentNotActive(agent.status.name())),
            Ok(_) => None,
        };
        AssignedApp { assignment, integration, status, unusable }
    };
    let apps = rows.into_iter().map(app).collect();
    AgentView { agent, apps }
}
