//! What a project says about calls in general: a default and rules, kept per project and remembered for a moment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kernel::{ProjectId, Scope, suggest};
use serde_json::{Map, Value, json};
use store::{StoreError, args};

use crate::approvals::Permit;
use crate::permission::{Mode, Permission, Plan, Rule, ToolFacts, decide};
use crate::{CallError, Tools};

/// How long another node may go on with an older policy.
const REMEMBERED: Duration = Duration::from_secs(2);
const MAX_REMEMBERED: usize = 10_000;
const MAX_RULES: usize = 500;

/// The policies of projects that called a moment ago.
#[derive(Debug, Default)]
pub(crate) struct Policies(Mutex<HashMap<ProjectId, (Instant, Arc<Value>)>>);

impl Policies {
    fn recent(&self, project: ProjectId) -> Option<Arc<Value>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&project).filter(|(since, _)| since.elapsed() < REMEMBERED).map(|(_, policy)| policy.clone())
    }

    fn remember(&self, project: ProjectId, policy: Arc<Value>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_REMEMBERED {
            known.retain(|_, (since, _)| since.elapsed() < REMEMBERED);
        }
        known.insert(project, (Instant::now(), policy));
    }
}

/// What happens when nobody said anything about a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unsaid {
    /// Whoever calls has asked already, as runners do.
    Run,
    /// Reads run, everything else asks.
    AskBeforeWrites,
}

/// What a project says about tools, whatever they are called with. Rules that look at arguments are silent here.
#[derive(Clone, Debug)]
pub struct ProjectWord(Arc<Value>);

impl ProjectWord {
    /// On a call at `/tools/call`.
    pub fn on_call(&self) -> Word {
        Word(plan(&self.0, Unsaid::Run))
    }

    /// On a platform op.
    pub fn on_op(&self) -> Word {
        Word(plan(&self.0, Unsaid::AskBeforeWrites))
    }
}

/// The project's word on one kind of call.
#[derive(Clone, Debug)]
pub struct Word(Plan);

impl Word {
    pub fn about(&self, tool: &ToolFacts<'_>) -> Permission {
        if self.0.is_silent() { self.0.unsaid(tool) } else { decide(&self.0, tool, &Value::Null) }
    }
}

/// What somebody wants to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// What rules look at.
    pub(crate) arguments: &'a Map<String, Value>,
    /// What an approval is for.
    pub(crate) whole: &'a Map<String, Value>,
    /// Whether the same thing may be tried again under one approval.
    pub(crate) all_tries: bool,
}

impl<'a> Asked<'a> {
    /// One call with these arguments.
    pub(crate) fn one(arguments: &'a Map<String, Value>) -> Self {
        Self { arguments, whole: arguments, all_tries: false }
    }
}

impl Tools {
    /// What the project says about tools in general.
    pub async fn word(&self, project: ProjectId) -> Result<ProjectWord, StoreError> {
        self.policy(project).await.map(ProjectWord)
    }

    /// The project's policy: `{default?, rules}`.
    pub async fn policy(&self, project: ProjectId) -> Result<Arc<Value>, StoreError> {
        if let Some(policy) = self.policies.recent(project) {
            return Ok(policy);
        }
        let row = self.db.optional("select plan from tool_policies where project_id = $1", args![project]).await?;
        let policy = Arc::new(row.map_or_else(|| Ok(json!({"rules": []})), |row| row.get("plan"))?);
        self.policies.remember(project, policy.clone());
        Ok(policy)
    }

    /// Replaces the project's policy.
    pub async fn set_policy(&self, scope: Scope, policy: Value) -> Result<Arc<Value>, CallError> {
        check(&policy).map_err(CallError::BadFilter)?;
        self.check_patterns(scope, &policy).await?;
        let sql = "insert into tool_policies (project_id, plan, updated_at, updated_by_id) values ($1, $2, $3, $4) \
                   on conflict (project_id) do update set plan = excluded.plan, updated_at = excluded.updated_at, updated_by_id = excluded.updated_by_id";
        self.db.execute(sql, args![scope.project, &policy, self.clock.now(), scope.author()]).await?;
        let policy = Arc::new(policy);
        self.policies.remember(scope.project, policy.clone());
        Ok(policy)
    }

    /// Lets a call go on, refuses it, or makes it wait. The caller may ask for more care than the project does, never for less.
    pub(crate) async fn permit(
        &self,
        scope: Scope,
        facts: &ToolFacts<'_>,
        asked: Asked<'_>,
        caller: Option<Permission>,
        unsaid: Unsaid,
    ) -> Result<Permit, CallError> {
        let policy = self.policy(scope.project).await?;
        let plan = plan(&policy, unsaid);
        // Most projects say nothing, and then there is nothing to look at.
        let verdict = if plan.is_silent() { plan.unsaid(facts) } else { decide(&plan, facts, &Value::Object(asked.arguments.clone())) };
        match verdict.max(caller.unwrap_or(Permission::Allow)) {
            Permission::Allow => Ok(Permit::default()),
            Permission::Ask => self.use_approval(scope, facts.name, asked).await,
            Permission::Deny => Err(CallError::Denied(format!("The project does not allow calls of `{}`.", facts.name))),
        }
    }
}

fn plan(policy: &Value, unsaid: Unsaid) -> Plan {
    let default = match unsaid {
        _ if policy.get("default").is_some_and(|default| !default.is_null()) => return Plan::from_value(Some(policy)),
        Unsaid::Run => Mode::Always(Permission::Allow),
        Unsaid::AskBeforeWrites => Mode::AllowReads,
    };
    Plan::from_value(Some(policy)).with_mode(default)
}

/// A policy is written by a person, so every mistake in it is told.
fn check(policy: &Value) -> Result<(), String> {
    let Value::Object(fields) = policy else { return Err("The policy must be an object.".to_owned()) };
    if let Some(unknown) = fields.keys().find(|key| !["default", "rules"].contains(&key.as_str())) {
        let nearest = suggest::did_you_mean(unknown, ["default", "rules"]);
        return Err(format!("`{unknown}` is not part of a policy; there are `default` and `rules`.{nearest}"));
    }
    let default = fields.get("default").filter(|default| !default.is_null());
    if default.is_some_and(|default| Mode::from_value(default).is_none()) {
        return Err("`default` must be allow, ask, deny or allow_reads.".to_owned());
    }
    let rules = match fields.get("rules") {
        None => return Ok(()),
        Some(Value::Array(rules)) if rules.len() <= MAX_RULES => rules,
        Some(Value::Array(_)) => return Err(format!("`rules` may hold {MAX_RULES} rules.")),
        Some(_) => return Err("`rules` must be a list.".to_owned()),
    };
    for (index, rule) in rules.iter().enumerate() {
        let known = ["pattern", "permission"];
        if let Some(unknown) = rule.as_object().and_then(|rule| rule.keys().find(|key| !known.contains(&key.as_str()))) {
            let nearest = suggest::did_you_mean(unknown, known);
            return Err(format!("`rules.{index}.{unknown}` is not part of a rule; there are `pattern` and `permission`.{nearest}"));
        }
        if Rule::from_value(rule).is_none() {
            return Err(format!("`rules.{index}` must have a `pattern` and a `permission` of allow, ask or deny."));
        }
    }
    Ok(())
}
