//! Changing agents: everything that can be refused is refused before anything is written, and what is written is written together with
//! its history.

use ::store::{StoreError, Tx};
use connections::{ConnectionError, NewConnection};
use kernel::{AgentId, Permission, Scope, Timestamp};
use serde_json::{Map, Value, json};

use crate::assign::{Others, Step, steps};
use crate::patch::{blank, described, difference, lay_over};
use crate::store::history::NewHistoryEntry;
use crate::wanted::{RequestedTool, Wanted, among, resolve};
use crate::{
    Agent, AgentError, AgentPatch, AgentRef, AgentView, Agents, AppName, AppPolicy, AppStatus, Assignment, Change, NewAgent, ToolMode,
    store,
};

const MAX_BULK: usize = 100;

/// The versions that a change may start from; without one, any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precondition(pub Option<Vec<i64>>);

impl Precondition {
    fn check(&self, agent: &Agent) -> Result<(), AgentError> {
        match &self.0 {
            Some(versions) if !versions.contains(&agent.version) => Err(AgentError::Stale(agent.version)),
            _ => Ok(()),
        }
    }
}

/// Who changes something, and when.
struct Act {
    actor: String,
    now: Timestamp,
}

impl Agents {
    #[kernel::boxed]
    pub async fn create(&self, scope: Scope, new: NewAgent) -> Result<AgentView, AgentError> {
        let mut made = self.create_all(scope, vec![new]).await?;
        made.pop().ok_or(AgentError::NotFound)
    }

    /// Makes all of them or none.
    #[kernel::boxed]
    pub async fn create_all(&self, scope: Scope, new: Vec<NewAgent>) -> Result<Vec<AgentView>, AgentError> {
        if new.is_empty() || new.len() > MAX_BULK {
            return Err(AgentError::Invalid(format!("Give 1 to {MAX_BULK} agents.")));
        }
        let act = self.act(scope);
        let apps = self.apps(scope).await?;
        let mut ready = Vec::with_capacity(new.len());
        let mut rejected = Vec::new();
        for new in new {
            let tool_ids = new.rest.tool_ids.clone().unwrap_or_default();
            let mut agent = blank(scope.project, &act.actor, act.now);
            lay_over(&mut agent, AgentPatch { name: Some(new.name), agent_type: Some(new.agent_type), ..new.rest })?;
            match resolve(&tool_ids, &apps, &[], scope.may(Permission::EditTools)) {
                Ok(wanted) => ready.push((agent, wanted)),
                Err(problems) => rejected.extend(problems),
            }
        }
        if !rejected.is_empty() {
            return Err(AgentError::Rejected(rejected));
        }
        for (agent, wanted) in &ready {
            may_give(scope, !wanted.is_empty() || opens(&blank(scope.project, &act.actor, act.now), agent))?;
        }
        for (_, wanted) in &ready {
            self.connect(scope, wanted).await?;
        }
        let mut tx = self.0.db.begin().await?;
        store::take_turn(&mut tx, scope.project).await?;
        let mut made = Vec::with_capacity(ready.len());
        for (mut agent, wanted) in ready {
            agent.number = store::next_number(&mut tx, scope.project, "agent").await?;
            named(store::agents::insert(&mut tx, &agent).await, &agent)?;
            let line = NewHistoryEntry { change: Change::Created, app: None, before: None, after: Some(described(&agent)) };
            store::history::add(&mut tx, &agent, &act.actor, act.now, line).await?;
            apply(&mut tx, &agent, &act, &steps(&[], &wanted, Others::Keep)).await?;
            made.push(agent.id);
        }
        tx.commit().await?;
        self.views(scope, &made).await
    }

    /// Changes what is named and leaves the rest. With `tool_ids` the list is whole: what it leaves out is switched off.
    #[kernel::boxed]
    pub async fn update(
        &self,
        scope: Scope,
        agent: AgentRef,
        patch: AgentPatch,
        precondition: &Precondition,
    ) -> Result<AgentView, AgentError> {
        let before = self.find(scope, agent).await?;
        precondition.check(&before)?;
        // Told before the rows are held, with a copy that is thrown away.
        lay_over(&mut before.clone(), patch.clone())?;
        let wanted = match &patch.tool_ids {
            None => None,
            Some(items) => Some(self.wanted(scope, items, before.id).await?),
        };
        if let Some(wanted) = &wanted {
            may_give(scope, wanted.iter().any(|want| want.connect.is_some()))?;
            self.connect(scope, wanted).await?;
        }
        let act = self.act(scope);
        let mut tx = self.0.db.begin().await?;
        let (mut held, rows) = hold(&mut tx, scope, agent, precondition).await?;
        let (was, old) = (held.clone(), described(&held));
        lay_over(&mut held, patch)?;
        let new = described(&held);
        let steps = wanted.as_ref().map(|wanted| steps(&rows, wanted, Others::SwitchOff)).unwrap_or_default();
        may_give(scope, steps.iter().any(Step::gives) || opens(&was, &held))?;
        if old != new || !steps.is_empty() {
            self.write(&mut tx, held, &act, difference(&old, &new), &steps).await?;
        }
        tx.commit().await?;
        self.get(scope, agent).await
    }

    /// Gives the agent one more app, or changes the settings of one that it has.
    #[kernel::boxed]
    pub async fn add_tool(
        &self,
        scope: Scope,
        agent: AgentRef,
        tool: &RequestedTool,
        precondition: &Precondition,
    ) -> Result<AgentView, AgentError> {
        let before = self.find(scope, agent).await?;
        precondition.check(&before)?;
        let wanted = self.wanted(scope, std::slice::from_ref(tool), before.id).await?;
        may_give(scope, wanted.iter().any(|want| want.connect.is_some()))?;
        self.connect(scope, &wanted).await?;
        let act = self.act(scope);
        let mut tx = self.0.db.begin().await?;
        let (held, rows) = hold(&mut tx, scope, agent, precondition).await?;
        let steps = steps(&rows, &wanted, Others::Keep);
        may_give(scope, steps.iter().any(Step::gives))?;
        if !steps.is_empty() {
            self.write(&mut tx, held, &act, None, &steps).await?;
        }
        tx.commit().await?;
        self.get(scope, agent).await
    }

    /// Takes one app away.
    #[kernel::boxed]
    pub async fn remove_tool(
        &self,
        scope: Scope,
        agent: AgentRef,
        tool: &str,
        precondition: &Precondition,
    ) -> Result<AgentView, AgentError> {
        let apps = self.apps(scope).await?;
        let act = self.act(scope);
        let mut tx = self.0.db.begin().await?;
        let (held, rows) = hold(&mut tx, scope, agent, precondition).await?;
        let row = among(&rows, tool, &apps).map_err(AgentError::NotAssigned)?;
        self.write(&mut tx, held, &act, None, &[Step::Unassign(row)]).await?;
        tx.commit().await?;
        self.get(scope, agent).await
    }

    #[kernel::boxed]
    pub async fn delete(&self, scope: Scope, agent: AgentRef, precondition: &Precondition) -> Result<Agent, AgentError> {
        let act = self.act(scope);
        let mut tx = self.0.db.begin().await?;
        let (mut held, _) = hold(&mut tx, scope, agent, precondition).await?;
        held.version += 1;
        let line = NewHistoryEntry { change: Change::Deleted, app: None, before: Some(described(&held)), after: None };
        store::history::add(&mut tx, &held, &act.actor, act.now, line).await?;
        store::agents::delete(&mut tx, &held).await?;
        tx.commit().await?;
        Ok(held)
    }

    /// Writes a held agent under its next version, and what happened to it and its apps.
    async fn write(
        &self,
        tx: &mut Tx,
        mut agent: Agent,
        act: &Act,
        changed: Option<(Value, Value)>,
        steps: &[Step<'_>],
    ) -> Result<(), AgentError> {
        agent.version += 1;
        agent.updated_at = act.now;
        agent.updated_by = act.actor.clone();
        named(store::agents::update(tx, &agent).await, &agent)?;
        if let Some((before, after)) = changed {
            let line = NewHistoryEntry { change: Change::Updated, app: None, before: Some(before), after: Some(after) };
            store::history::add(tx, &agent, &act.actor, act.now, line).await?;
        }
        Ok(apply(tx, &agent, act, steps).await?)
    }

    async fn wanted(&self, scope: Scope, items: &[RequestedTool], agent: AgentId) -> Result<Vec<Wanted>, AgentError> {
        let apps = self.apps(scope).await?;
        let rows = store::assignments::all(&self.0.db, scope.project, agent).await?;
        let kept: Vec<AppName> = rows.into_iter().filter(|row| row.is_active).map(|row| row.app).collect();
        resolve(items, &apps, &kept, scope.may(Permission::EditTools)).map_err(AgentError::Rejected)
    }

    /// Connects apps that need no account: whoever asks for one has said all there is to say.
    async fn connect(&self, scope: Scope, wanted: &[Wanted]) -> Result<(), AgentError> {
        for integration in wanted.iter().filter_map(|want| want.connect.as_ref()) {
            let new = NewConnection {
                slug: format!("{}-main", integration.key),
                provider: integration.provider.to_owned(),
                integration: integration.key.clone(),
                ..NewConnection::default()
            };
            match self.0.connections.create(scope, new).await {
                // Somebody else was quicker.
                Ok(_) | Err(ConnectionError::Taken { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Chooses an app for the project; one that needs no account is connected at once. Whether it was not there before.
    #[kernel::boxed]
    pub async fn add_app(&self, scope: Scope, name: &str) -> Result<bool, AgentError> {
        let apps = self.apps(scope).await?;
        let app = AppName::of(name);
        let status = apps.status(&app);
        if status == AppStatus::Unknown {
            return Err(AgentError::UnknownApp(app));
        }
        let is_new = status == AppStatus::NotConnected;
        if is_new {
            let tool = RequestedTool { name: json!(app.as_str()), ..RequestedTool::default() };
            let wanted = resolve(&[tool], &apps, &[], scope.may(Permission::EditTools)).unwrap_or_default();
            self.connect(scope, &wanted).await?;
        }
        store::apps::add(&self.0.db, scope.project, &app, &scope.author().to_string(), self.0.clock.now()).await?;
        Ok(is_new)
    }

    /// Forgets that an app was chosen. Whether it was.
    #[kernel::boxed]
    pub async fn remove_app(&self, scope: Scope, name: &str) -> Result<bool, AgentError> {
        Ok(store::apps::remove(&self.0.db, scope.project, &AppName::of(name)).await?)
    }

    fn act(&self, scope: Scope) -> Act {
        Act { actor: scope.author().to_string(), now: self.0.clock.now() }
    }
}

/// Whoever may not call tools may not give them either: a key of the agent would call them.
fn may_give(scope: Scope, gives: bool) -> Result<(), AgentError> {
    if gives && !scope.may(Permission::RunTools) { Err(AgentError::MayNotGive(Permission::RunTools)) } else { Ok(()) }
}

/// Whether a change opens tools besides those of assignments.
fn opens(before: &Agent, after: &Agent) -> bool {
    let inherits = after.tool_mode == ToolMode::Inherit && before.tool_mode != ToolMode::Inherit;
    inherits || after.tool_configs.iter().any(|config| !before.tool_configs.contains(config))
}

/// Reads an agent with its rows, and keeps them still.
async fn hold(tx: &mut Tx, scope: Scope, agent: AgentRef, precondition: &Precondition) -> Result<(Agent, Vec<Assignment>), AgentError> {
    store::take_turn(tx, scope.project).await?;
    let held = store::agents::hold(tx, scope.project, agent).await?.ok_or(AgentError::NotFound)?;
    precondition.check(&held)?;
    let rows = store::assignments::all_held(tx, scope.project, held.id).await?;
    Ok((held, rows))
}

fn named(result: Result<(), StoreError>, agent: &Agent) -> Result<(), AgentError> {
    match result {
        Err(StoreError::Conflict) => Err(AgentError::NameTaken(agent.name.clone())),
        other => Ok(other?),
    }
}

async fn apply(tx: &mut Tx, agent: &Agent, act: &Act, steps: &[Step<'_>]) -> Result<(), StoreError> {
    for step in steps {
        let (change, before, after) = match step {
            Step::Assign(want) => {
                let id = store::next_number(tx, agent.project, "assignment").await?;
                let row = settle(fresh(id, agent, want, act), want);
                store::assignments::insert(tx, agent.project, &row).await?;
                (Change::Assigned, None, Some(row))
            }
            Step::Reassign(old, want) => {
                let on = Assignment { is_active: true, assigned_at: act.now, assigned_by: act.actor.clone(), ..(*old).clone() };
                (Change::Reassigned, Some(*old), Some(settle(on, want)))
            }
            Step::Adjust(old, want) => (Change::Adjusted, Some(*old), Some(settle((*old).clone(), want))),
            Step::Unassign(old) => (Change::Unassigned, Some(*old), Some(Assignment { is_active: false, ..(*old).clone() })),
        };
        if let (Some(_), Some(row)) = (before, &after) {
            store::assignments::update(tx, agent.project, row, act.now).await?;
        }
        let app = after.as_ref().map(|row| &row.app);
        let line = NewHistoryEntry { change, app, before: before.map(settings), after: after.as_ref().map(settings) };
        store::history::add(tx, agent, &act.actor, act.now, line).await?;
    }
    Ok(())
}

fn fresh(id: i64, agent: &Agent, want: &Wanted, act: &Act) -> Assignment {
    Assignment {
        id,
        agent: agent.id,
        app: want.app.clone(),
        is_active: true,
        priority: 0,
        config: Map::new(),
        policy: AppPolicy::default(),
        assigned_at: act.now,
        assigned_by: act.actor.clone(),
    }
}

/// The row with the settings that were asked for.
fn settle(row: Assignment, want: &Wanted) -> Assignment {
    let (config, policy) = want.config.clone().unwrap_or((row.config, row.policy));
    Assignment { priority: want.priority.unwrap_or(row.priority), config, policy, ..row }
}

fn settings(row: &Assignment) -> Value {
    json!({"assignment_id": row.id, "is_active": row.is_active, "priority": row.priority, "config": row.config})
}
