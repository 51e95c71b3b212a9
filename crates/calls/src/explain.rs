//! What the project's rules would say to a call, and why. Nothing is called and nobody is asked.

use catalog::Reach;
use definitions::{Verdict, about_workflow, ops, unknown_action, workflow_names};
use kernel::{CallRef, Scope};
use serde::Serialize;
use serde_json::{Map, Value};
use workflows::References;

use crate::permission::{MatchedRule, ToolFacts, decide};
use crate::policy::{DefaultVerdict, plan};
use crate::reserved::is_callable;
use crate::{CallError, Calls};

/// What would happen to a call.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The name of the tool, as rules see it.
    pub tool: String,
    /// Other names of it that rules may use.
    pub also: Vec<String>,
    /// Whether the tool is known only to read.
    pub read_only: Option<bool>,
    pub permission: Verdict,
    /// The rules that fit, the one that decides first; none where the default decides.
    pub rules: Vec<MatchedRule>,
    /// The same in words.
    pub why: String,
}

/// A tool as rules see it.
struct Named {
    name: String,
    also: Vec<String>,
    read_only: Option<bool>,
    unsaid: DefaultVerdict,
}

impl Calls {
    /// Explains what the project's permissions say to a call. A tool that does not exist is an error, as it is for a call.
    #[kernel::boxed]
    pub async fn explain(&self, scope: Scope, name: &str, arguments: Map<String, Value>) -> Result<Explanation, CallError> {
        let named = self.named(scope, &name.parse()?).await?;
        let policy = self.policy(scope.project).await?;
        let plan = plan(&policy, named.unsaid);
        let facts = ToolFacts { name: &named.name, also: &named.also, read_only: named.read_only, ..ToolFacts::default() };
        let arguments = Value::Object(arguments);
        let permission = decide(&plan, &facts, &arguments);
        let rules = plan.matched(&facts, &arguments);
        let why = why(permission, &rules, &policy, &named);
        let Named { name, also, read_only, .. } = named;
        Ok(Explanation { tool: name, also, read_only, permission, rules, why })
    }

    async fn named(&self, scope: Scope, target: &CallRef) -> Result<Named, CallError> {
        match target {
            CallRef::Gateway { provider, integration, action, .. } => {
                let missing = |error: catalog::CatalogError| CallError::Connection(error.into());
                self.0.catalog.ready(scope.project).await.map_err(missing)?;
                self.0.catalog.reach(provider, Reach::Integration(integration)).await.map_err(missing)?;
                let integration = self.0.catalog.integration(scope.project, provider, integration).map_err(missing)?;
                let action = integration.action(action).ok_or_else(|| CallError::ActionNotFound(unknown_action(&integration, action)))?;
                Ok(Named { name: target.to_string(), also: Vec::new(), read_only: Some(action.read_only), unsaid: DefaultVerdict::Run })
            }
            CallRef::Reserved { op } => {
                let op = ops::lookup(op).map_err(|error| CallError::UnknownOp(error.to_string()))?;
                let unsaid = if is_callable(&op.op) { DefaultVerdict::Run } else { DefaultVerdict::AskBeforeWrites };
                Ok(Named { name: ops::call_ref(&op.op), also: ops::other_refs(op), read_only: Some(op.read_only), unsaid })
            }
            CallRef::Variant { slug, version } => self.named_workflow(scope, target, References::workflow(slug, version.as_deref())).await,
            CallRef::Environment { environment, slug } => self.named_workflow(scope, target, References::deployed(environment, slug)).await,
        }
    }

    async fn named_workflow(&self, scope: Scope, target: &CallRef, references: References) -> Result<Named, CallError> {
        let found = self
            .0
            .workflows
            .retrieve(scope, &references, None)
            .await
            .map_err(|error| CallError::Workflow(about_workflow(target, error)))?;
        let [name, versioned] = workflow_names(&found);
        let mut also = vec![versioned];
        if let CallRef::Environment { .. } = target {
            also.push(target.to_string());
        }
        Ok(Named { name, also, read_only: None, unsaid: DefaultVerdict::Run })
    }
}

fn why(permission: Verdict, rules: &[MatchedRule], policy: &Value, named: &Named) -> String {
    let becomes = match permission {
        Verdict::Allow => "runs",
        Verdict::Ask => "waits for a person",
        Verdict::Deny => "is refused",
    };
    if let Some(rule) = rules.first() {
        let by = rule.argument.as_ref().map(|argument| format!(", which `{}` = `{}` fits", argument.name, shorten(&argument.value)));
        return format!("The call {becomes} by rule {}, `{}`{}.", rule.index, rule.pattern, by.unwrap_or_default());
    }
    match policy.get("default").and_then(Value::as_str) {
        Some("allow_reads") => {
            let reads = if named.read_only == Some(true) { "only reads" } else { "may change something" };
            format!("No rule fits, so the default `allow_reads` decides: the tool {reads}, so the call {becomes}.")
        }
        Some(default) => format!("No rule fits, so the default `{default}` decides: the call {becomes}."),
        None => format!("No rule fits and the project has no default: the call {becomes}."),
    }
}

fn shorten(value: &str) -> String {
    const SHOWN: usize = 60;
    let mut shown: String = value.chars().take(SHOWN).collect();
    if shown.len() < value.len() {
        shown.push('…');
    }
    shown
}
