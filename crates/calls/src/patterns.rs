//! Which refs a rule's pattern can fit. One that fits none would look active and do nothing, so it is refused when it is saved.

use std::collections::HashSet;
use std::sync::Arc;

use catalog::{Integration, Reach};
use definitions::ops;
use kernel::call_ref::RESERVED_PROVIDER;
use kernel::{Scope, suggest};
use serde_json::Value;
use workflows::Family;

use crate::permission::Rule;
use crate::{CallError, Calls};

/// A segment that may be any text.
const ANY: char = '\u{1}';
/// A segment that no name has, so that only a `*` covers it: for patterns about whatever will be there.
const UNNAMED: char = '\u{2}';
const MAX_WORKFLOWS: i64 = 10_000;
/// How many patterns an error offers.
const OFFERED: usize = 3;
const OFFERED_ARGUMENTS: usize = 6;
/// A pattern that fits more actions than this is about all of them, and their arguments are not read.
const MAX_ACTIONS: usize = 2000;

/// The refs that calls of a project can have.
#[derive(Debug, Default)]
struct Refs {
    providers: Vec<&'static str>,
    integrations: Vec<Arc<Integration>>,
    workflows: Vec<String>,
    environments: Vec<String>,
}

impl Calls {
    /// Refuses rules that can fit no call. Rules that are there already stay: what they named may have gone since.
    pub(crate) async fn check_patterns(&self, scope: Scope, policy: &Value) -> Result<(), CallError> {
        let kept = self.policy(scope.project).await?;
        let kept: HashSet<&str> = patterns(&kept).map(|(_, pattern)| pattern).collect();
        let fresh: Vec<(usize, &str)> = patterns(policy).filter(|(_, pattern)| !kept.contains(pattern)).collect();
        if fresh.is_empty() {
            return Ok(());
        }
        let refs = self.refs(scope, &fresh).await?;
        for (index, pattern) in fresh {
            if !refs.fit(Rule::tool_of(pattern)) {
                let meant = refs.meant(pattern);
                return Err(CallError::BadFilter(format!(
                    "`rules.{index}`: no ref fits `{pattern}`, so the rule would do nothing.{meant}"
                )));
            }
            if let Some(why) = refs.lacks_argument(pattern) {
                return Err(CallError::BadFilter(format!("`rules.{index}`: {why}")));
            }
        }
        Ok(())
    }

    async fn refs(&self, scope: Scope, patterns: &[(usize, &str)]) -> Result<Refs, CallError> {
        self.0.catalog.ready(scope.project).await.map_err(|error| CallError::Connection(error.into()))?;
        for (_, pattern) in patterns {
            if let ["tools", provider, integration, ..] = pattern.split('.').collect::<Vec<_>>()[..]
                && !provider.contains('*')
                && !integration.contains('*')
            {
                // A mirror may not have it yet; what cannot be asked for is not there.
                let _ = self.0.catalog.reach(provider, Reach::Integration(integration)).await;
            }
        }
        let providers: Vec<&'static str> = self.0.catalog.providers().into_iter().map(|provider| provider.key).collect();
        let sources = providers.iter().filter_map(|provider| self.0.catalog.source(provider).ok());
        let integrations = sources.flat_map(|source| source.integrations(scope.project)).collect();
        let workflows = self.0.workflows.slugs(scope, Family::Workflow, MAX_WORKFLOWS).await?;
        let environments = self.0.workflows.slugs(scope, Family::Environment, MAX_WORKFLOWS).await?;
        Ok(Refs { providers, integrations, workflows, environments })
    }
}

fn patterns(policy: &Value) -> impl Iterator<Item = (usize, &str)> {
    let rules = policy.get("rules").and_then(Value::as_array).into_iter().flatten().enumerate();
    rules.filter_map(|(index, rule)| Some((index, rule.get("pattern")?.as_str()?)))
}

impl Refs {
    fn fit(&self, pattern: &str) -> bool {
        self.fits_a_workflow(pattern) || fits_an_op(pattern) || self.fits_an_action(pattern)
    }

    fn fits_a_workflow(&self, pattern: &str) -> bool {
        let slugs = || self.workflows.iter().map(String::as_str).chain(["\u{2}"]);
        slugs().any(|slug| {
            meet(pattern, &format!("workflow.variant.{slug}"))
                || meet(pattern, &format!("workflow.variant.{slug}.{ANY}"))
                || self.environments.iter().any(|environment| meet(pattern, &format!("workflow.environment.{environment}.{slug}")))
        })
    }

    fn fits_an_action(&self, pattern: &str) -> bool {
        let providers = self.providers.iter();
        if providers.into_iter().any(|provider| meet(pattern, &format!("tools.{provider}.{UNNAMED}.{ANY}.{ANY}"))) {
            return true;
        }
        self.integrations.iter().any(|integration| {
            let head = format!("tools.{}.{}", integration.provider, integration.key);
            let unnamed = if integration.actions.is_empty() { ANY } else { UNNAMED };
            meet(pattern, &format!("{head}.{unnamed}.{ANY}"))
                || integration.actions.iter().any(|action| meet(pattern, &format!("{head}.{}.{ANY}", action.key)))
        })
    }

    /// Why a pattern that names an argument can never hold: none of the tools that it fits has that argument. What workflows take is not
    /// looked at, since each revision may take something else.
    fn lacks_argument(&self, pattern: &str) -> Option<String> {
        let argument = Rule::argument_of(pattern)?;
        let tool = Rule::tool_of(pattern);
        if self.fits_a_workflow(tool) {
            return None;
        }
        let mut known: HashSet<String> = HashSet::new();
        let fitting =
            ops::all().iter().filter(|op| std::iter::once(&op.op).chain(&op.aliases).any(|name| meet(tool, &ops::call_ref(name))));
        known.extend(fitting.flat_map(|op| argument_names(&op.input_schema)));
        let mut looked_at = 0;
        for integration in &self.integrations {
            let head = format!("tools.{}.{}", integration.provider, integration.key);
            if integration.actions.is_empty() && meet(tool, &format!("{head}.{ANY}.{ANY}")) {
                return None;
            }
            for action in integration.actions.iter().filter(|action| meet(tool, &format!("{head}.{}.{ANY}", action.key))) {
                known.extend(argument_names(&action.input_schema.value()));
                looked_at += 1;
                if known.contains(&argument) || looked_at > MAX_ACTIONS {
                    return None;
                }
            }
        }
        if known.contains(&argument) || known.is_empty() {
            return None;
        }
        let hint = suggest::did_you_mean(&argument, known.iter().map(String::as_str));
        let mut names: Vec<String> = known.iter().take(OFFERED_ARGUMENTS).map(|name| format!("`{name}`")).collect();
        names.sort();
        let hint = if hint.is_empty() { format!(" There are, for example, {}.", names.join(", ")) } else { hint };
        Some(format!("no tool that `{tool}` fits has an argument `{argument}`, so the rule would do nothing.{hint}"))
    }

    /// What whoever wrote the pattern may have meant, as the end of a message.
    fn meant(&self, pattern: &str) -> String {
        let tool = Rule::tool_of(pattern);
        let limits = &pattern[tool.len()..];
        let dotted = if tool.contains('.') { tool.to_owned() } else { tool.replace("__", ".") };
        let mut found = self.completed(&dotted);
        if found.is_empty() {
            found = self.completed(&self.mended(&dotted));
        }
        if found.is_empty() {
            found.extend(self.widened(&dotted));
        }
        found.truncate(OFFERED);
        match &found[..] {
            [] => " A pattern is a ref, such as `tools.native.github.CREATE_*` or `workflow.variant.*`.".to_owned(),
            found => {
                let offered: Vec<String> = found.iter().map(|pattern| format!("`{pattern}{limits}`")).collect();
                format!(" Did you mean {}?", offered.join(" or "))
            }
        }
    }

    /// The pattern with what is missing before or after it.
    fn completed(&self, pattern: &str) -> Vec<String> {
        let providers = self.providers.iter().map(|provider| format!("tools.{provider}."));
        let reserved = [String::new(), format!("tools.{RESERVED_PROVIDER}."), "workflow.variant.".to_owned()];
        let heads: Vec<String> = reserved.into_iter().chain(providers).collect();
        let complete = |head: &str| {
            let whole = format!("{head}{pattern}");
            let longer = format!("{whole}.*");
            [whole, longer].into_iter().find(|whole| self.fit(whole))
        };
        let is_action = || self.integrations.iter().any(|integration| integration.action(pattern).is_some());
        let found: Vec<String> = heads.iter().filter_map(|head| complete(head)).collect();
        if found.is_empty() && is_action() { vec![format!("tools.*.{pattern}.*")] } else { found }
    }

    /// The pattern with a `*` for its end, as long as it still says what it is about.
    fn widened(&self, pattern: &str) -> Option<String> {
        let segments: Vec<&str> = pattern.split('.').collect();
        let wider = (2..segments.len()).rev().map(|kept| format!("{}.*", segments[..kept].join(".")));
        wider.filter(|wider| wider.matches('.').count() > 2 || wider.starts_with("workflow.")).find(|wider| self.fit(wider))
    }

    /// The pattern with the nearest names in place of those that nothing has.
    fn mended(&self, pattern: &str) -> String {
        let words = ["tools", "workflow", "variant", "environment", RESERVED_PROVIDER];
        let mut words: Vec<&str> = words.into_iter().chain(self.providers.iter().copied()).chain(op_names()).collect();
        words.extend(self.workflows.iter().chain(&self.environments).map(String::as_str));
        words.extend(self.integrations.iter().map(|integration| integration.key.as_str()));
        let mut segments: Vec<&str> = Vec::new();
        for segment in pattern.split('.') {
            let before = segments.last().copied().unwrap_or_default();
            let of = self.integrations.iter().filter(|integration| integration.key == before);
            let actions: Vec<&str> = of.flat_map(|integration| &integration.actions).map(|action| action.key.as_str()).collect();
            let known = if actions.is_empty() { &words } else { &actions };
            let is_known = segment.contains('*') || known.contains(&segment);
            segments.push(if is_known { segment } else { suggest::nearest(segment, known.iter().copied()).unwrap_or(segment) });
        }
        segments.join(".")
    }
}

/// The arguments that a schema names.
fn argument_names(schema: &Value) -> Vec<String> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

fn fits_an_op(pattern: &str) -> bool {
    op_names().chain(["\u{2}"]).any(|op| meet(pattern, &ops::call_ref(op)))
}

fn op_names() -> impl Iterator<Item = &'static str> {
    ops::all().iter().flat_map(|op| std::iter::once(&op.op).chain(&op.aliases)).map(String::as_str)
}

/// Whether some ref of this shape fits the pattern, in which `*` stands for any text.
fn meet(pattern: &str, shape: &str) -> bool {
    // Most part before anything may stand for several letters, which is seen at once.
    let mut firm = pattern.chars().zip(shape.chars()).take_while(|(letter, there)| *letter != '*' && *there != ANY);
    if firm.any(|(letter, there)| letter != there) {
        return false;
    }
    let in_segment = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let shape: Vec<char> = shape.chars().collect();
    // For each place in the shape: whether the rest of it fits the rest of the pattern, which grows from its end.
    let mut rest: Vec<bool> = vec![false; shape.len() + 1];
    rest[shape.len()] = true;
    for letter in pattern.chars().rev() {
        let mut now = vec![false; shape.len() + 1];
        for at in (0..=shape.len()).rev() {
            let next = at < shape.len();
            now[at] = match (letter, shape.get(at)) {
                ('*', _) => rest[at] || (next && now[at + 1]),
                // One letter of the segment, and then perhaps more of it.
                (letter, Some(&ANY)) => in_segment(letter) && (rest[at + 1] || rest[at]),
                (letter, Some(there)) => letter == *there && rest[at + 1],
                (_, None) => false,
            };
        }
        rest = now;
    }
    rest[0]
}

#[cfg(test)]
mod tests {
    use catalog::{Action, Draft};
    use serde_json::json;

    use super::*;

    fn refs() -> Refs {
        let integration = |provider, key: &str, actions: &[&str]| {
            let schema = json!({"type": "object"});
            let action = |key: &&str| Action::new((*key).to_owned(), String::new(), String::new(), &schema);
            let draft = Draft { key: key.to_owned(), actions: actions.iter().map(action).collect(), ..Draft::default() };
            Arc::new(Integration::new(provider, draft))
        };
        Refs {
            providers: vec!["native", "openapi", "composio"],
            integrations: vec![
                integration("native", "hacker-news", &["SEARCH", "GET_ITEM"]),
                integration("native", "github", &["CREATE_AN_ISSUE", "DELETE_A_REPOSITORY"]),
                integration("composio", "asana", &[]),
            ],
            workflows: vec!["pay".to_owned()],
            environments: vec!["production".to_owned(), "staging".to_owned()],
        }
    }

    #[test]
    fn patterns_that_fit_something() {
        for pattern in [
            "*",
            "tools.*",
            "tools.native.hacker-news.*",
            "tools.native.github.CREATE_*",
            "tools.native.github.CREATE_AN_ISSUE.main",
            "tools.*.github.*.main",
            "*.SEARCH.*",
            "*.main",
            "tools.openapi.*",
            "tools.openapi.*.delete_*",
            "tools.composio.asana.ANYTHING.main",
            "tools.agenta.*",
            "tools.agenta.find_capabilities",
            "tools.agenta.create_trigger",
            "workflow.*",
            "workflow.variant.*",
            "workflow.variant.pay",
            "workflow.variant.pay.2",
            "workflow.variant.p*",
            "workflow.environment.production.*",
            "workflow.environment.*.pay",
        ] {
            assert!(refs().fit(pattern), "{pattern}");
        }
        assert!(Refs::default().fit("workflow.variant.*"), "also while there is no workflow");
    }

    #[test]
    fn an_argument_that_no_tool_has_is_told_with_the_nearest() {
        let with = |arguments: &[&str]| {
            let fields: serde_json::Map<String, Value> =
                arguments.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
            Action::new("CREATE_AN_ISSUE".to_owned(), String::new(), String::new(), &json!({"type": "object", "properties": fields}))
        };
        let draft = Draft { key: "github".to_owned(), actions: vec![with(&["owner", "repo", "title"])], ..Draft::default() };
        let mut refs = refs();
        refs.integrations = vec![Arc::new(Integration::new("native", draft)), refs.integrations[2].clone()];
        for pattern in [
            "tools.native.github.CREATE_*(owner=acme)",
            "tools.native.github.CREATE_*(acme:*)",
            "tools.native.github.CREATE_AN_ISSUE.main",
            "tools.composio.asana.*(anything=x)",
            "workflow.variant.pay(amount=1*)",
            "*(anything=x)",
        ] {
            assert_eq!(refs.lacks_argument(pattern), None, "{pattern}");
        }
        let told = refs.lacks_argument("tools.native.github.*(ownr=acme)").unwrap();
        assert!(told.contains("`ownr`") && told.contains("Did you mean `owner`?"), "{told}");
        assert!(refs.lacks_argument("tools.native.github.*(zzzzzz=1)").unwrap().contains("`repo`"));
        assert!(refs.lacks_argument("tools.agenta.rename_agent(nme=Evil)").unwrap().contains("Did you mean `name`?"));
    }

    #[test]
    fn patterns_that_fit_nothing_are_told_what_would() {
        for (pattern, meant) in [
            ("hacker-news.*", "`tools.native.hacker-news.*`"),
            ("hacker-news", "`tools.native.hacker-news.*`"),
            ("tools.native.hacker-news", "`tools.native.hacker-news.*`"),
            ("tools.native.github.CREATE_AN_ISSUE", "`tools.native.github.CREATE_AN_ISSUE.*`"),
            ("tools.native.githb.*", "`tools.native.github.*`"),
            ("tools.native.github.CREATE_ISSUE.main", "`tools.native.github.CREATE_AN_ISSUE.main`"),
            ("tools__native__github__*", "`tools.native.github.*`"),
            ("githb.*", "`tools.native.github.*`"),
            ("SEARCH", "`tools.*.SEARCH.*`"),
            ("rename_agent", "`tools.agenta.rename_agent`"),
            ("tools.agenta.rename_agnt(Evil:*)", "`tools.agenta.rename_agent(Evil:*)`"),
            ("pay", "`workflow.variant.pay`"),
            ("workflow.variant.payy", "`workflow.variant.pay`"),
            ("workflow.environment.prod.*", "`workflow.environment.production.*`"),
            ("tools.native.github.CREATE_AN_ISSUE.main.more", "`tools.native.github.CREATE_AN_ISSUE.*`"),
            ("tools.native.github.MERGE_*", "`tools.native.github.*`"),
            ("Bash(rm:*)", "A pattern is a ref"),
        ] {
            assert!(!refs().fit(Rule::tool_of(pattern)), "{pattern}");
            let said = refs().meant(pattern);
            assert!(said.contains(meant), "{pattern}: {said}");
        }
    }
}
