//! What a project says about calls in general: a default and rules, kept per project, remembered for a moment, read once.

use std::sync::Arc;

use definitions::Verdict;
use kernel::{AgentId, ProjectId, Scope, suggest};
use serde_json::{Map, Value, json};
use store::{StoreError, args};

use crate::approvals::Permit;
use crate::permission::{DefaultMode, Rule, RuleSet, ToolFacts, decide};
use crate::{CallError, Calls};

/// How many projects' rules are remembered.
pub(crate) const MAX_REMEMBERED: usize = 10_000;
const MAX_RULES: usize = 500;

/// A project's policy, as it was written and as it is asked.
#[derive(Debug)]
pub(crate) struct Policy {
    written: Arc<Value>,
    on_call: RuleSet,
    on_op: RuleSet,
}

impl Policy {
    fn read(written: Value) -> Self {
        let (on_call, on_op) = (plan(&written, DefaultVerdict::Run), plan(&written, DefaultVerdict::AskBeforeWrites));
        Self { written: Arc::new(written), on_call, on_op }
    }

    fn plan(&self, unsaid: DefaultVerdict) -> &RuleSet {
        match unsaid {
            DefaultVerdict::Run => &self.on_call,
            DefaultVerdict::AskBeforeWrites => &self.on_op,
        }
    }
}

/// What happens when nobody said anything about a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DefaultVerdict {
    /// Whoever calls has asked already, as runners do.
    Run,
    /// Reads run, everything else asks.
    AskBeforeWrites,
}

/// What a project says about tools, whatever they are called with. Rules that look at arguments are silent here.
#[derive(Clone, Debug)]
pub struct ProjectPolicy(Arc<Value>);

impl ProjectPolicy {
    /// On a call at `/tools/call`.
    pub fn on_call(&self) -> PolicyView {
        PolicyView(plan(&self.0, DefaultVerdict::Run))
    }

    /// On a platform op.
    pub fn on_op(&self) -> PolicyView {
        PolicyView(plan(&self.0, DefaultVerdict::AskBeforeWrites))
    }
}

/// The project's word on one kind of call.
#[derive(Clone, Debug)]
pub struct PolicyView(RuleSet);

impl PolicyView {
    pub fn verdict_on(&self, tool: &ToolFacts<'_>) -> Verdict {
        if self.0.is_silent() { self.0.unsaid(tool) } else { decide(&self.0, tool, &Value::Null) }
    }
}

/// What somebody wants to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PermissionRequest<'a> {
    /// What rules look at.
    pub(crate) arguments: &'a Map<String, Value>,
    /// What an approval is for.
    pub(crate) whole: &'a Map<String, Value>,
    /// Whether the same thing may be tried again under one approval.
    pub(crate) all_tries: bool,
    /// The agent whose call it is.
    pub(crate) agent: Option<AgentId>,
    /// Whether nobody may be asked.
    pub(crate) never_asks: bool,
}

impl<'a> PermissionRequest<'a> {
    /// One call with these arguments.
    pub(crate) fn one(arguments: &'a Map<String, Value>) -> Self {
        Self { arguments, whole: arguments, all_tries: false, agent: None, never_asks: false }
    }
}

impl Calls {
    /// What the project says about tools in general.
    #[kernel::boxed]
    pub async fn project_policy(&self, project: ProjectId) -> Result<ProjectPolicy, StoreError> {
        self.policy(project).await.map(ProjectPolicy)
    }

    /// The project's policy: `{default?, rules}`.
    #[kernel::boxed]
    pub async fn policy(&self, project: ProjectId) -> Result<Arc<Value>, StoreError> {
        Ok(self.rules(project).await?.written.clone())
    }

    async fn rules(&self, project: ProjectId) -> Result<Arc<Policy>, StoreError> {
        let read = || async {
            let row = self.0.db.optional("select plan from tool_policies where project_id = $1", args![project]).await?;
            let written = row.map_or_else(|| Ok(json!({"rules": []})), |row| row.get("plan"))?;
            Ok(Arc::new(Policy::read(written)))
        };
        self.0.policies.or_read(project, read).await
    }

    /// Refuses what is no policy, and patterns that fit nothing.
    #[kernel::boxed]
    pub async fn check_policy(&self, scope: Scope, policy: &Value) -> Result<(), CallError> {
        check(policy).map_err(CallError::BadFilter)?;
        self.check_patterns(scope, policy).await
    }

    /// Replaces the project's policy.
    #[kernel::boxed]
    pub async fn set_policy(&self, scope: Scope, policy: Value) -> Result<Arc<Value>, CallError> {
        self.check_policy(scope, &policy).await?;
        let sql = "insert into tool_policies (project_id, plan, updated_at, updated_by_id) values ($1, $2, $3, $4) \
                   on conflict (project_id) do update set plan = excluded.plan, updated_at = excluded.updated_at, updated_by_id = excluded.updated_by_id";
        self.0.db.execute(sql, args![scope.project, &policy, self.0.clock.now(), scope.author()]).await?;
        Ok(Arc::new(policy))
    }

    /// Lets a call go on, refuses it, or makes it wait. The caller may ask for more care than the project does, never for less.
    pub(crate) async fn permit(
        &self,
        scope: Scope,
        facts: &ToolFacts<'_>,
        asked: PermissionRequest<'_>,
        caller: Option<Verdict>,
        unsaid: DefaultVerdict,
    ) -> Result<Permit, CallError> {
        let policy = self.rules(scope.project).await?;
        let plan = policy.plan(unsaid);
        // Most projects say nothing, and then there is nothing to look at.
        let verdict = if plan.is_silent() { plan.unsaid(facts) } else { decide(plan, facts, &Value::Object(asked.arguments.clone())) };
        match verdict.max(caller.unwrap_or(Verdict::Allow)) {
            Verdict::Allow => Ok(Permit::default()),
            Verdict::Ask if asked.never_asks => {
                Err(CallError::Denied(format!("The call of `{}` would have to ask a person, and a notice cannot.", facts.name)))
            }
            Verdict::Ask => {
                let rule = if verdict == Verdict::Ask { asking(plan, facts, asked.arguments) } else { None };
                self.use_approval(scope, facts.name, asked, rule).await
            }
            Verdict::Deny => Err(CallError::Denied(format!("The project does not allow calls of `{}`.", facts.name))),
        }
    }
}

/// The pattern of the rule that makes a call ask, where it is a rule.
fn asking(plan: &RuleSet, facts: &ToolFacts<'_>, arguments: &Map<String, Value>) -> Option<String> {
    let matched = plan.matched(facts, &Value::Object(arguments.clone())).into_iter().next();
    matched.filter(|rule| rule.permission == Verdict::Ask).map(|rule| rule.pattern)
}

pub(crate) fn plan(policy: &Value, unsaid: DefaultVerdict) -> RuleSet {
    let default = match unsaid {
        _ if policy.get("default").is_some_and(|default| !default.is_null()) => return RuleSet::from_value(Some(policy)),
        DefaultVerdict::Run => DefaultMode::Always(Verdict::Allow),
        DefaultVerdict::AskBeforeWrites => DefaultMode::AllowReads,
    };
    RuleSet::from_value(Some(policy)).with_mode(default)
}

/// A policy is written by a person, so every mistake in it is told.
fn check(policy: &Value) -> Result<(), String> {
    let Value::Object(fields) = policy else { return Err("The policy must be an object.".to_owned()) };
    if let Some(unknown) = fields.keys().find(|key| !["default", "rules"].contains(&key.as_str())) {
        let nearest = suggest::did_you_mean(unknown, ["default", "rules"]);
        return Err(format!("`{unknown}` is not part of a policy; there are `default` and `rules`.{nearest}"));
    }
    let default = fields.get("default").filter(|default| !default.is_null());
    if default.is_some_and(|default| DefaultMode::from_value(default).is_none()) {
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
