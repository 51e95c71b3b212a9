//! The decision: what an agent was given, held against what is there. A function of values.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use calls::permission::ToolFacts;
use calls::{PolicyView, ProjectPolicy};
use catalog::Action;
use definitions::config::{ConnectionTool, ToolConfig};
use definitions::format::{function_name, is_hashed};
use definitions::ops::{self, Op};
use definitions::{DescribedTool, Referenced, Tool, Verdict};
use kernel::call_ref::CallRefError;
use kernel::{AgentId, CallName, CallRef};
use serde_json::Value;

use super::tool::{GrantedTool, LeftOut, give_names};
use crate::{Agent, AppName, AppPolicy, Apps, Assignment, Reason, Route, Status, ToolMode};

/// A tool config that the server can act on, as far as it was found.
#[derive(Clone, Debug)]
pub(crate) struct Configured {
    pub(crate) config: ToolConfig,
    /// For workflows only.
    pub(crate) workflow: Option<Result<Referenced, Reason>>,
}

/// Everything that the decision looks at.
#[derive(Debug)]
pub(crate) struct Grants {
    agent: Agent,
    /// Those that are switched off, too.
    rows: BTreeMap<AppName, Assignment>,
    routes: BTreeMap<AppName, Result<Route, Reason>>,
    configured: Vec<Configured>,
    named: HashMap<CallRef, ConfigWord>,
    /// The ways to integrations that configs give as a whole, by the place of the config.
    whole: HashMap<usize, Result<Route, Reason>>,
    on_call: PolicyView,
    on_op: PolicyView,
}

/// What the configs say about one ref.
#[derive(Debug)]
struct ConfigWord {
    /// The first config that names it.
    index: usize,
    /// The way to its action; nothing for workflows and ops.
    route: Option<Result<Route, Reason>>,
    /// The strictest word of all that name it.
    permission: Option<Verdict>,
}

/// What a ref leads to.
enum RefTarget<'a> {
    Action { app: AppName, route: &'a Route, action: &'a Arc<Action>, permission: Option<Verdict> },
    Workflow(&'a Referenced),
    Op(&'static Op),
}

/// A ref in the one spelling that decisions know: ops go by their first name.
fn canonical(target: CallRef) -> CallRef {
    match target {
        CallRef::Reserved { op } => CallRef::Reserved { op: ops::find(&op).map_or(op, |found| found.op.clone()) },
        other => other,
    }
}

impl Grants {
    pub(crate) fn new(agent: Agent, rows: Vec<Assignment>, apps: Apps, configured: Vec<Configured>, policy: &ProjectPolicy) -> Self {
        let rows: BTreeMap<AppName, Assignment> = rows.into_iter().map(|row| (row.app.clone(), row)).collect();
        let on = rows.iter().filter(|(_, row)| row.is_active);
        let mut routes: BTreeMap<_, _> = on.map(|(app, row)| (app.clone(), apps.route(app, &row.policy))).collect();
        if agent.tool_mode == ToolMode::Inherit {
            for app in apps.connected().filter(|app| !rows.contains_key(*app)) {
                routes.insert(app.clone(), apps.route(app, &AppPolicy::default()));
            }
        }
        let mut named: HashMap<CallRef, ConfigWord> = HashMap::new();
        let mut whole = HashMap::new();
        for (index, tool) in configured.iter().enumerate() {
            if let ToolConfig::Connection(config) = &tool.config {
                let route = apps.through(&config.connection.provider, &config.connection.integration, &config.connection.slug);
                for action in route.iter().flat_map(|route| &route.integration.actions) {
                    let (target, word) = (through(config, &action.key), config.permission(&action.key).verdict(action.read_only));
                    let entry = named.entry(target).or_insert(ConfigWord { index, route: Some(route.clone()), permission: None });
                    entry.permission = entry.permission.max(word);
                }
                whole.insert(index, route);
                continue;
            }
            let Some(target) = tool.call_ref() else { continue };
            let route = match &target {
                CallRef::Gateway { provider, integration, connection, .. } => Some(apps.through(provider, integration, connection)),
                _ => None,
            };
            let entry = named.entry(target).or_insert(ConfigWord { index, route, permission: None });
            entry.permission = entry.permission.max(tool.config.hints().permission);
        }
        Self { agent, rows, routes, configured, named, whole, on_call: policy.on_call(), on_op: policy.on_op() }
    }

    /// The agent, where there is a row of it.
    pub(crate) fn agent(&self) -> Option<AgentId> {
        Some(self.agent.id).filter(|id| *id != AgentId::nil())
    }

    pub(super) fn into_agent(self) -> Agent {
        self.agent
    }

    /// Whether a call of this ref may be made, and with how much care. A deny by anyone wins, and then the strictest word.
    pub(crate) fn decide(&self, target: &CallRef) -> Result<Verdict, Reason> {
        self.look(target).map(|(_, permission)| permission)
    }

    fn look(&self, target: &CallRef) -> Result<(RefTarget<'_>, Verdict), Reason> {
        if self.agent.status != Status::Active {
            return Err(Reason::AgentNotActive(self.agent.status.name()));
        }
        let named = self.named.get(target);
        let name = target.to_string();
        let unnamed = || Reason::NotATool(name.clone());
        let found = match target {
            CallRef::Gateway { provider, integration, action, connection } => {
                self.action(named, provider, integration, action, connection)?
            }
            CallRef::Variant { .. } | CallRef::Environment { .. } => {
                let workflow = named.and_then(|named| self.configured[named.index].workflow.as_ref()).ok_or_else(unnamed)?;
                RefTarget::Workflow(workflow.as_ref().map_err(Clone::clone)?)
            }
            CallRef::Reserved { op } => {
                named.ok_or_else(unnamed)?;
                RefTarget::Op(ops::lookup(op).map_err(|error| Reason::UnknownOp(error.to_string()))?)
            }
        };
        let permission = self.permission(&found, &name, named.and_then(|named| named.permission))?;
        Ok((found, permission))
    }

    fn action<'a>(
        &'a self,
        named: Option<&'a ConfigWord>,
        provider: &str,
        integration: &str,
        action: &str,
        connection: &str,
    ) -> Result<RefTarget<'a>, Reason> {
        let app = AppName::of(integration);
        let policy = match self.rows.get(&app) {
            Some(row) if !row.is_active => return Err(Reason::SwitchedOff(app)),
            Some(row) => Some(&row.policy),
            None if named.is_some() || self.agent.tool_mode == ToolMode::Inherit => None,
            None => return Err(Reason::NotAssigned(app)),
        };
        // A config names its connection itself; an app is used through one.
        let own = named.and_then(|named| named.route.as_ref());
        let route = own.or_else(|| self.routes.get(&app)).ok_or_else(|| Reason::NotConnected(app.clone()))?;
        let route = route.as_ref().map_err(Clone::clone)?;
        if route.integration.provider != provider || route.integration.key != integration || route.connection != connection {
            return Err(Reason::OtherConnection { app, used: route.connection.clone() });
        }
        let Some(found) = route.integration.action(action) else {
            return Err(Reason::UnknownAction { app, action: action.to_owned() });
        };
        match policy.and_then(|policy| policy.refuses(&app, found)) {
            Some(reason) => Err(reason),
            None => Ok(RefTarget::Action { app, route, action: found, permission: policy.and_then(|policy| policy.permission) }),
        }
    }

    fn permission(&self, found: &RefTarget<'_>, name: &str, authored: Option<Verdict>) -> Result<Verdict, Reason> {
        let assigned = match found {
            RefTarget::Action { permission, .. } => *permission,
            RefTarget::Workflow(_) | RefTarget::Op(_) => None,
        };
        let by_agent = authored.max(assigned).unwrap_or(Verdict::Allow);
        if by_agent == Verdict::Deny {
            return Err(Reason::DeniedByAgent(name.to_owned()));
        }
        let by_project = match found {
            RefTarget::Action { action, .. } => {
                self.on_call.verdict_on(&ToolFacts { name, read_only: Some(action.read_only), ..ToolFacts::default() })
            }
            RefTarget::Workflow(workflow) => {
                self.on_call.verdict_on(&ToolFacts { name, also: std::slice::from_ref(&workflow.workflow), ..ToolFacts::default() })
            }
            RefTarget::Op(op) => {
                let also = ops::other_refs(op);
                self.on_op.verdict_on(&ToolFacts { name, also: &also, read_only: Some(op.read_only), ..ToolFacts::default() })
            }
        };
        match by_project {
            Verdict::Deny => Err(Reason::DeniedByProject(name.to_owned())),
            word => Ok(word.max(by_agent)),
        }
    }

    /// What a name means: a call ref, or a name in the list. Only a name that ends in a hash needs the list to be read.
    pub(crate) fn target(&self, name: &CallName) -> Result<CallRef, CallRefError> {
        let parsed = name.clone().into_target().map(canonical);
        match &parsed {
            Ok(target) if self.decide(target).is_ok() => return parsed,
            _ => {}
        }
        let name = name.text();
        let hashed = || self.list().0.into_iter().find(|tool| tool.name == name).map(|tool| tool.call_ref);
        match self.wished(name).or_else(|| is_hashed(name).then(hashed).flatten()) {
            Some(target) => Ok(target),
            None => parsed,
        }
    }

    /// The tool whose author gave it this name. One that is left out keeps it, so that a call of it is told why.
    fn wished(&self, name: &str) -> Option<CallRef> {
        let configured = self.configured.iter().enumerate();
        let wishing = configured.filter(|(_, tool)| tool.config.declared_name().is_some_and(|wished| function_name(wished) == name));
        let wishing: Vec<(usize, CallRef)> = wishing.filter_map(|(index, tool)| Some((index, tool.call_ref()?))).collect();
        let is_listed = |(index, target): &&(usize, CallRef)| {
            self.named.get(target).is_some_and(|named| named.index == *index) && self.decide(target).is_ok()
        };
        wishing.iter().find(is_listed).or(wishing.first()).map(|(_, target)| target.clone())
    }

    /// Every tool that may be used, and what may not with the reason. Configured tools come first, then apps by priority, those of equal
    /// priority taking turns, so that a large one does not push the others out.
    pub(super) fn list(&self) -> (Vec<GrantedTool>, Vec<LeftOut>) {
        let (mut groups, mut left_out) = (Vec::new(), Vec::new());
        let mut named = HashSet::new();
        let mut own = Vec::new();
        for (index, tool) in self.configured.iter().enumerate() {
            if let (ToolConfig::Connection(config), Some(route)) = (&tool.config, self.whole.get(&index)) {
                match route {
                    Ok(route) => {
                        for action in &route.integration.actions {
                            let target = through(config, &action.key);
                            if named.insert(target.clone()) {
                                self.sort_in(target, None, 0, &mut own, &mut left_out);
                            }
                        }
                    }
                    Err(reason) => left_out.push(LeftOut { tool: tool.shown(), app: None, reason: reason.clone() }),
                }
                continue;
            }
            let Some(target) = tool.call_ref() else {
                left_out.push(LeftOut { tool: tool.shown(), app: None, reason: tool.why_not() });
                continue;
            };
            if named.insert(target.clone()) {
                self.sort_in(target, tool.config.declared_name(), 0, &mut own, &mut left_out);
            }
        }
        for (app, route) in &self.routes {
            let priority = self.priority(app);
            let route = match route {
                Ok(route) => route,
                Err(reason) => {
                    left_out.push(LeftOut { tool: app.to_string(), app: Some(app.clone()), reason: reason.clone() });
                    continue;
                }
            };
            let mut tools = Vec::new();
            for action in &route.integration.actions {
                let target = CallRef::Gateway {
                    provider: route.integration.provider.to_owned(),
                    integration: route.integration.key.clone(),
                    action: action.key.clone(),
                    connection: route.connection.clone(),
                };
                if !named.contains(&target) {
                    self.sort_in(target, None, priority, &mut tools, &mut left_out);
                }
            }
            groups.push((priority, tools));
        }
        for app in self.rows.values().filter(|row| !row.is_active).map(|row| &row.app) {
            left_out.push(LeftOut { tool: app.to_string(), app: Some(app.clone()), reason: Reason::SwitchedOff(app.clone()) });
        }
        own.extend(in_turn(groups));
        give_names(&mut own);
        (own, left_out)
    }

    fn sort_in(&self, target: CallRef, wished: Option<&str>, priority: i64, tools: &mut Vec<GrantedTool>, left_out: &mut Vec<LeftOut>) {
        match self.look(&target) {
            Ok((found, permission)) => tools.push(tool(target, found, permission, priority, wished)),
            Err(reason) => {
                let app = match &target {
                    CallRef::Gateway { integration, .. } => Some(AppName::of(integration)),
                    _ => None,
                };
                left_out.push(LeftOut { tool: target.to_string(), app, reason });
            }
        }
    }

    fn priority(&self, app: &AppName) -> i64 {
        self.rows.get(app).map_or(0, |row| row.priority)
    }
}

impl Configured {
    /// What a call is aimed at; nothing when it does not come to this server.
    fn call_ref(&self) -> Option<CallRef> {
        match &self.config {
            ToolConfig::Platform(tool) => Some(canonical(CallRef::Reserved { op: tool.op.clone() })),
            other => other.call_ref().ok().flatten(),
        }
    }

    fn shown(&self) -> String {
        match &self.config {
            ToolConfig::Gateway(tool) => tool.reference(),
            ToolConfig::Connection(tool) => tool.shown(),
            ToolConfig::Builtin(tool) => tool.name.clone(),
            other => other.declared_name().unwrap_or_default().to_owned(),
        }
    }

    fn why_not(&self) -> Reason {
        match &self.config {
            ToolConfig::Builtin(_) => Reason::RunsElsewhere("builtin"),
            ToolConfig::Code(_) => Reason::RunsElsewhere("code"),
            ToolConfig::Client(_) => Reason::RunsElsewhere("client"),
            // A reference with a segment that no ref can hold.
            _ => Reason::NotATool(self.shown()),
        }
    }
}

/// An action of an integration that a config gives as a whole.
fn through(config: &ConnectionTool, action: &str) -> CallRef {
    let names = config.connection.clone();
    CallRef::Gateway { provider: names.provider, integration: names.integration, action: action.to_owned(), connection: names.slug }
}

fn tool(call_ref: CallRef, found: RefTarget<'_>, permission: Verdict, priority: i64, wished: Option<&str>) -> GrantedTool {
    let failure = match &found {
        RefTarget::Action { route, .. } => route.failure.clone(),
        RefTarget::Workflow(_) | RefTarget::Op(_) => None,
    };
    let described = |title: &str, description: &str, input_schema: Value, read_only: Option<bool>| {
        Tool::Described(DescribedTool { title: title.to_owned(), description: description.to_owned(), input_schema, read_only })
    };
    let (app, connection, tool) = match found {
        RefTarget::Action { app, route, action, .. } => {
            (Some(app), Some(route.connection.clone()), Tool::Action(route.integration.clone(), action.clone()))
        }
        RefTarget::Workflow(Referenced { spec, .. }) => {
            (None, None, described(&spec.name, &spec.description, spec.input_schema.clone(), None))
        }
        RefTarget::Op(op) => (None, None, described(&op.op, &op.description, ops::visible_schema(op), Some(op.read_only))),
    };
    let wished = wished.map(str::to_owned);
    GrantedTool { call_ref, name: String::new(), app, connection, permission, priority, failure, tool, wished }
}

/// Groups in the order of their priority, the highest first; within one priority each gives one tool in turn.
fn in_turn(mut groups: Vec<(i64, Vec<GrantedTool>)>) -> Vec<GrantedTool> {
    groups.sort_by_key(|(priority, _)| std::cmp::Reverse(*priority));
    let mut ordered = Vec::with_capacity(groups.iter().map(|(_, tools)| tools.len()).sum());
    for peers in groups.chunk_by_mut(|(left, _), (right, _)| left == right) {
        let mut queues: Vec<_> = peers.iter_mut().map(|(_, tools)| std::mem::take(tools).into_iter()).collect();
        loop {
            let before = ordered.len();
            ordered.extend(queues.iter_mut().filter_map(Iterator::next));
            if ordered.len() == before {
                break;
            }
        }
    }
    ordered
}
