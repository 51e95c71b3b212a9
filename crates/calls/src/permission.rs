//! May this call run, must a human be asked, or is it refused? A pure decision over what the author, the server and the rules say.

use definitions::{BUILT_INS, Verdict};
use serde::Serialize;
use serde_json::Value;

/// What happens to tools that nobody said anything about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultMode {
    Always(Verdict),
    /// Reads run; everything else asks.
    AllowReads,
}

impl DefaultMode {
    pub(crate) fn from_value(value: &Value) -> Option<Self> {
        match value.as_str()? {
            "allow_reads" => Some(Self::AllowReads),
            other => Verdict::named(other).map(Self::Always),
        }
    }

    fn permission(self, read_only: Option<bool>) -> Verdict {
        match self {
            Self::Always(permission) => permission,
            Self::AllowReads if read_only == Some(true) => Verdict::Allow,
            Self::AllowReads => Verdict::Ask,
        }
    }
}

/// A permission for the calls that fit `Name`, `Name(argument=text)` or `Name(prefix:*)`; a `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pattern: String,
    tool: String,
    condition: Option<Condition>,
    permission: Verdict,
}

/// The argument that made a rule hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MatchedArgument {
    /// Where it is, as `owner` or `labels.0`.
    pub name: String,
    pub value: String,
}

/// A rule that fits a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MatchedRule {
    /// Its place in the policy.
    pub index: usize,
    pub pattern: String,
    pub permission: Verdict,
    /// None where the rule asks for no argument.
    pub argument: Option<MatchedArgument>,
}

/// What a rule asks of the arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Condition {
    /// `argument=text`: this argument, or the parts of it where it is a list or an object.
    Argument { name: String, glob: String },
    /// `prefix:*`: whatever text there is.
    Prefix(String),
}

impl Condition {
    fn parse(text: &str) -> Option<Self> {
        if let Some(prefix) = text.strip_suffix(":*") {
            return Some(Self::Prefix(prefix.to_owned()));
        }
        let (name, glob) = text.split_once('=')?;
        (!name.is_empty()).then(|| Self::Argument { name: name.to_owned(), glob: glob.to_owned() })
    }

    /// The argument that makes it hold, if it does. The model chooses the order of arguments and adds others, so a rule that restricts holds
    /// when any text fits, and one that allows only when all do.
    fn matched(&self, name: &str, arguments: &Value, permission: Verdict) -> Option<MatchedArgument> {
        let opened = opened(arguments);
        let inspected = opened.as_ref().unwrap_or(arguments);
        let mut texts = Vec::new();
        match (self, inspected) {
            (Self::Argument { name: argument, .. }, Value::Object(fields)) => {
                fields.get(argument).into_iter().for_each(|value| collect(argument, value, true, &mut texts));
            }
            (Self::Argument { .. }, _) => {}
            // Of a shell call the command is what runs.
            (Self::Prefix(_), Value::Object(fields)) if name.eq_ignore_ascii_case("bash") && fields.contains_key("command") => {
                texts.extend(fields["command"].as_str().map(|text| ("command".to_owned(), text.to_owned())));
            }
            (Self::Prefix(_), other) => collect("", other, false, &mut texts),
        }
        let fits = |(_, text): &(String, String)| match self {
            Self::Argument { glob, .. } => fits_glob(glob, text),
            Self::Prefix(prefix) => text.starts_with(prefix),
        };
        let holds = permission != Verdict::Allow || texts.iter().all(fits);
        let found = if holds { texts.into_iter().find(fits) } else { None };
        found.map(|(name, value)| MatchedArgument { name, value })
    }
}

/// Every text in a value with its place; where `plain`, also its numbers and other plain values as text.
fn collect(place: &str, value: &Value, plain: bool, into: &mut Vec<(String, String)>) {
    let below = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| collect(&below(&index.to_string()), item, plain, into));
        }
        Value::Object(fields) => fields.iter().for_each(|(name, field)| collect(&below(name), field, plain, into)),
        Value::String(text) => into.push((place.to_owned(), text.clone())),
        other if plain => into.push((place.to_owned(), other.to_string())),
        _ => {}
    }
}

impl Rule {
    /// A pattern without a condition is a tool's whole name. An empty one names nothing.
    pub fn new(pattern: &str, permission: Verdict) -> Option<Self> {
        if pattern.is_empty() {
            return None;
        }
        let (tool, condition) = split(pattern);
        Some(Self { pattern: pattern.to_owned(), tool: tool.to_owned(), condition, permission })
    }

    /// The argument that a pattern names, if it names one.
    pub(crate) fn argument_of(pattern: &str) -> Option<String> {
        match split(pattern).1? {
            Condition::Argument { name, .. } => Some(name),
            Condition::Prefix(_) => None,
        }
    }

    /// What a pattern says of the tool's name.
    pub(crate) fn tool_of(pattern: &str) -> &str {
        split(pattern).0
    }

    pub(crate) fn from_value(value: &Value) -> Option<Self> {
        let permission = Verdict::named(value.get("permission")?.as_str()?)?;
        Self::new(value.get("pattern")?.as_str()?, permission)
    }

    fn fits(&self, name: &str, arguments: &Value) -> bool {
        let holds = |condition: &Condition| condition.matched(name, arguments, self.permission).is_some();
        same_tool(&self.tool, name) && self.condition.as_ref().is_none_or(holds)
    }

    /// Itself as one that fits a call, with the argument that made it fit, if it asks for one.
    fn matched(&self, index: usize, name: &str, arguments: &Value) -> Option<MatchedRule> {
        if !same_tool(&self.tool, name) {
            return None;
        }
        let argument = match &self.condition {
            None => None,
            Some(condition) => Some(condition.matched(name, arguments, self.permission)?),
        };
        Some(MatchedRule { index, pattern: self.pattern.clone(), permission: self.permission, argument })
    }
}

fn split(pattern: &str) -> (&str, Option<Condition>) {
    let limited = pattern.strip_suffix(')').and_then(|head| head.split_once('(')).filter(|(tool, _)| !tool.is_empty());
    let parsed = limited.and_then(|(tool, text)| Some((tool, Condition::parse(text)?)));
    parsed.map_or((pattern, None), |(tool, condition)| (tool, Some(condition)))
}

/// Built-ins are called `Bash` in one harness and `bash` in another; other names mean exactly themselves.
fn same_tool(rule: &str, name: &str) -> bool {
    rule == name || (rule.eq_ignore_ascii_case(name) && is_built_in(name)) || (rule.contains('*') && fits_glob(rule, name))
}

/// `*` stands for any text.
fn fits_glob(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|start| name.strip_prefix(start)) else { return false };
    let Some(end) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(end)
}

fn is_built_in(name: &str) -> bool {
    BUILT_INS.iter().any(|built_in| built_in.eq_ignore_ascii_case(name))
}

/// The permissions of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSet {
    mode: DefaultMode,
    rules: Vec<Rule>,
}

impl RuleSet {
    /// Reads `{default?, rules?}`. What cannot be read fails towards asking a human, never towards running.
    pub fn from_value(value: Option<&Value>) -> Self {
        let Some(value) = value else { return Self::new(DefaultMode::AllowReads, Vec::new()) };
        let mode = value.as_object().and_then(|fields| match fields.get("default") {
            None | Some(Value::Null) => Some(DefaultMode::AllowReads),
            Some(default) => DefaultMode::from_value(default),
        });
        match mode {
            Some(mode) => Self::new(mode, rules(value)),
            None => Self::new(DefaultMode::Always(Verdict::Ask), Vec::new()),
        }
    }

    pub fn new(mode: DefaultMode, rules: Vec<Rule>) -> Self {
        Self { mode, rules }
    }

    /// The same plan with another word for tools that nobody said anything about.
    #[must_use]
    pub fn with_mode(self, mode: DefaultMode) -> Self {
        Self { mode, ..self }
    }

    /// Whether only the default speaks.
    pub(crate) fn is_silent(&self) -> bool {
        self.rules.is_empty()
    }

    /// What the default says of a tool.
    pub(crate) fn unsaid(&self, tool: &ToolFacts<'_>) -> Verdict {
        tool.permission.or(tool.server_permission).unwrap_or_else(|| self.mode.permission(tool.read_only))
    }

    fn strictest(&self, tool: &ToolFacts<'_>, arguments: &Value) -> Option<Verdict> {
        let fits = |rule: &&Rule| rule.fits(tool.name, arguments) || tool.also.iter().any(|name| rule.fits(name, arguments));
        self.rules.iter().filter(fits).map(|rule| rule.permission).max()
    }
}

impl RuleSet {
    /// The rules that fit a call, the one that decides first.
    pub(crate) fn matched(&self, tool: &ToolFacts<'_>, arguments: &Value) -> Vec<MatchedRule> {
        let names = || std::iter::once(tool.name).chain(tool.also.iter().map(String::as_str));
        let fit = |(index, rule): (usize, &Rule)| names().find_map(|name| rule.matched(index, name, arguments));
        let mut found: Vec<MatchedRule> = self.rules.iter().enumerate().filter_map(fit).collect();
        found.sort_by_key(|rule| std::cmp::Reverse(rule.permission));
        found
    }
}

fn rules(plan: &Value) -> Vec<Rule> {
    plan.get("rules").and_then(Value::as_array).into_iter().flatten().filter_map(Rule::from_value).collect()
}

/// What the decision needs to know about a tool.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToolFacts<'a> {
    pub name: &'a str,
    /// Other spellings of the name; a rule for any of them holds.
    pub also: &'a [String],
    /// Unknown counts as a write.
    pub read_only: Option<bool>,
    /// The author's word on this tool.
    pub permission: Option<Verdict>,
    /// The author's word on the MCP server that offers it.
    pub server_permission: Option<Verdict>,
}

/// Decides a call. A deny by anyone wins; otherwise the most specific voice does: tool, server, strictest rule, default.
pub fn decide(plan: &RuleSet, tool: &ToolFacts<'_>, arguments: &Value) -> Verdict {
    let voices = [tool.permission, tool.server_permission, plan.strictest(tool, arguments)];
    if voices.contains(&Some(Verdict::Deny)) {
        return Verdict::Deny;
    }
    voices.into_iter().flatten().next().unwrap_or_else(|| plan.mode.permission(tool.read_only))
}

/// The object or array that a string spells, if it spells one.
fn opened(value: &Value) -> Option<Value> {
    let text = value.as_str()?;
    let container = text.trim_start().starts_with(['{', '[']);
    if container { serde_json::from_str(text).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ALLOW: Option<Verdict> = Some(Verdict::Allow);
    const ASK: Option<Verdict> = Some(Verdict::Ask);
    const DENY: Option<Verdict> = Some(Verdict::Deny);

    fn plan(default: &str, rules: &[(&str, &str)]) -> RuleSet {
        let rules: Vec<Value> = rules.iter().map(|(pattern, permission)| json!({"pattern": pattern, "permission": permission})).collect();
        RuleSet::from_value(Some(&json!({"default": default, "rules": rules})))
    }

    #[test]
    fn without_rules_the_tool_speaks_before_the_default() {
        use Verdict::{Allow, Ask, Deny};
        let (yes, no) = (Some(true), Some(false));
        for (default, permission, read_only, verdict) in [
            ("allow", None, yes, Allow),
            ("allow", None, no, Allow),
            ("allow", None, None, Allow),
            ("allow", ALLOW, None, Allow),
            ("allow", ASK, None, Ask),
            ("allow", DENY, None, Deny),
            ("ask", None, yes, Ask),
            ("ask", None, no, Ask),
            ("ask", None, None, Ask),
            ("ask", ALLOW, None, Allow),
            ("ask", ASK, None, Ask),
            ("ask", DENY, None, Deny),
            ("deny", None, yes, Deny),
            ("deny", None, no, Deny),
            ("deny", None, None, Deny),
            ("deny", ALLOW, None, Allow),
            ("deny", ASK, None, Ask),
            ("deny", DENY, None, Deny),
            ("allow_reads", None, yes, Allow),
            ("allow_reads", None, no, Ask),
            ("allow_reads", None, None, Ask),
            ("allow_reads", ALLOW, yes, Allow),
            ("allow_reads", ALLOW, no, Allow),
            ("allow_reads", ALLOW, None, Allow),
            ("allow_reads", ASK, yes, Ask),
            ("allow_reads", ASK, no, Ask),
            ("allow_reads", ASK, None, Ask),
            ("allow_reads", DENY, yes, Deny),
            ("allow_reads", DENY, no, Deny),
            ("allow_reads", DENY, None, Deny),
        ] {
            let facts = ToolFacts { name: "fetch", read_only, permission, ..ToolFacts::default() };
            let plan = plan(default, &[]);
            assert_eq!(decide(&plan, &facts, &json!({})), verdict, "{default} {permission:?} {read_only:?}");
        }
    }

    #[test]
    fn a_deny_wins_and_then_the_most_specific_voice() {
        use Verdict::{Allow, Ask, Deny};
        for (default, rules, permission, server_permission, verdict) in [
            ("ask", &[("fetch", "deny")][..], None, ALLOW, Deny),
            ("ask", &[("fetch", "deny")], ALLOW, None, Deny),
            ("ask", &[("fetch", "deny")], ALLOW, ALLOW, Deny),
            ("ask", &[("fetch", "allow")], DENY, ALLOW, Deny),
            ("ask", &[("fetch", "allow")], ALLOW, DENY, Deny),
            ("allow", &[], None, DENY, Deny),
            ("deny", &[], None, ALLOW, Allow),
            ("allow", &[], ASK, ALLOW, Ask),
            ("allow", &[], ALLOW, ASK, Allow),
            ("allow", &[("fetch", "allow")], None, ASK, Ask),
            ("allow", &[("fetch", "ask")], ALLOW, None, Allow),
            ("allow", &[("fetch", "ask")], None, None, Ask),
            ("allow", &[("fetch", "allow"), ("fetch", "ask")], None, None, Ask),
            ("deny", &[("fetch", "allow")], None, None, Allow),
            ("deny", &[("Fetch", "allow")], None, None, Deny),
            ("ask", &[("other", "deny")], ALLOW, None, Allow),
        ] {
            let facts = ToolFacts { name: "fetch", permission, server_permission, ..ToolFacts::default() };
            assert_eq!(
                decide(&plan(default, rules), &facts, &json!({})),
                verdict,
                "{default} {rules:?} {permission:?} {server_permission:?}"
            );
        }
    }

    #[test]
    fn rules_look_at_the_name_and_the_texts() {
        use Verdict::{Allow, Ask, Deny};
        let npm = json!({"command": "npm run test"});
        for (name, rules, arguments, verdict) in [
            ("Bash", &[("Bash", "allow")][..], json!({}), Allow),
            ("bash", &[("Bash", "allow")], json!({}), Allow),
            ("BASH", &[("bash", "ask")], json!({}), Ask),
            ("Bash", &[("Bash(npm run:*)", "allow")], npm.clone(), Allow),
            ("bash", &[("Bash(npm run:*)", "allow")], npm.clone(), Allow),
            ("Bash", &[("Bash(npm run:*)", "allow")], json!({"command": 42}), Deny),
            ("Bash", &[("Bash(npm run:*)", "allow")], json!({"command": "rm"}), Deny),
            ("Bash", &[("Bash(npm run:*)", "allow")], json!({"note": "npm run", "command": "rm"}), Deny),
            ("Bash", &[("Bash(npm:*)", "allow")], json!(r#"{"command": "npm ci"}"#), Allow),
            ("Bash", &[("Bash", "allow"), ("Bash(npm:*)", "ask"), ("Bash(npm run:*)", "deny")], npm.clone(), Deny),
            ("Bash", &[("Bash", "allow"), ("Bash(npm:*)", "ask")], npm.clone(), Ask),
            ("Bash", &[("Bash(:*)", "allow")], npm.clone(), Allow),
            ("fetch", &[("fetch(https://a:*)", "allow")], json!({"retries": 1, "url": "https://a/b"}), Allow),
            ("fetch", &[("fetch(https://a:*)", "allow")], json!({"note": "x", "url": "https://a/b"}), Deny),
            ("fetch", &[("fetch(https://a:*)", "allow")], json!([1, "https://a"]), Allow),
            ("fetch", &[("fetch(https://a:*)", "allow")], json!("https://a"), Allow),
            ("fetch", &[("fetch(https://a:*)", "allow")], json!(null), Deny),
            ("fetch", &[("fetch(https://a:*)", "allow")], json!(7), Deny),
            ("f(x)", &[("f(x)", "allow")], json!({}), Allow),
            ("make", &[("make(safe:*)", "allow")], json!({"note": "safe", "title": "danger"}), Deny),
            ("make", &[("make(safe:*)", "allow")], json!({"note": "safe", "title": "safe too"}), Allow),
            ("make", &[("make(safe:*)", "allow")], json!({"note": "safe", "more": {"deep": ["danger"]}}), Deny),
            ("make", &[("make(title=safe*)", "allow")], json!({"note": "x", "title": "safe"}), Allow),
            ("make", &[("make(title=safe*)", "allow")], json!({"title": "danger", "note": "safe"}), Deny),
            ("make", &[("make(title=safe*)", "allow")], json!({"note": "safe"}), Deny),
            ("make", &[("make(ids=7)", "allow")], json!({"ids": [7, 7]}), Allow),
            ("make", &[("make(ids=7)", "allow")], json!({"ids": [7, 8]}), Deny),
            ("Bash", &[("Bash(npm run)", "allow")], npm, Deny),
        ] {
            let facts = ToolFacts { name, ..ToolFacts::default() };
            assert_eq!(decide(&plan("deny", rules), &facts, &arguments), verdict, "{name} {rules:?} {arguments}");
        }
    }

    #[test]
    fn a_rule_that_restricts_holds_wherever_the_text_stands() {
        use Verdict::{Allow, Ask, Deny};
        for (rules, arguments, verdict) in [
            (&[("get(secret:*)", "deny")][..], json!({"path": "p", "owner": "secret1"}), Deny),
            (&[("get(secret:*)", "ask")], json!({"path": ["p", "secret1"]}), Ask),
            (&[("get(secret:*)", "deny")], json!({"path": "p"}), Allow),
            (&[("get(owner=secret*)", "deny")], json!({"path": "p", "owner": "secret1"}), Deny),
            (&[("get(owner=secret*)", "deny")], json!({"path": "secret1", "owner": "me"}), Allow),
            (&[("get(owner=*)", "ask")], json!({"owner": null}), Ask),
        ] {
            let facts = ToolFacts { name: "get", ..ToolFacts::default() };
            assert_eq!(decide(&plan("allow", rules), &facts, &arguments), verdict, "{rules:?} {arguments}");
        }
    }

    #[test]
    fn a_rule_holds_for_every_spelling() {
        let also = ["workflow.variant.pay".to_owned()];
        let facts = ToolFacts { name: "workflow.environment.production.pay", also: &also, ..ToolFacts::default() };
        assert_eq!(decide(&plan("allow", &[("workflow.variant.pay", "deny")]), &facts, &json!({})), Verdict::Deny);
        assert_eq!(decide(&plan("allow", &[("workflow.environment.*", "ask")]), &facts, &json!({})), Verdict::Ask);
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, fits) in [
            ("tools.native.github.*", "tools.native.github.CREATE.main", true),
            ("tools.native.github.*", "tools.native.gitlab.CREATE.main", false),
            ("tools.*.main", "tools.native.github.CREATE.main", true),
            ("tools.*.github.*.main", "tools.native.github.CREATE.other", false),
            ("*", "anything", true),
            ("a*a", "a", false),
            ("*.DELETE_*", "tools.native.github.DELETE_A_REPO.main", true),
        ] {
            assert_eq!(same_tool(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn plans_that_cannot_be_read_ask() {
        let asks = RuleSet::new(DefaultMode::Always(Verdict::Ask), Vec::new());
        for value in [json!(null), json!("allow"), json!([]), json!({"default": "ALLOW"}), json!({"default": 1, "rules": []})] {
            assert_eq!(RuleSet::from_value(Some(&value)), asks, "{value}");
        }
        let reads = RuleSet::new(DefaultMode::AllowReads, Vec::new());
        assert_eq!(RuleSet::from_value(None), reads);
        for value in [json!({}), json!({"default": null}), json!({"default": "allow_reads", "rules": "x"})] {
            assert_eq!(RuleSet::from_value(Some(&value)), reads, "{value}");
        }
    }

    #[test]
    fn malformed_rules_are_dropped() {
        let value = json!({"default": "ask", "rules": [
            7, null, {}, {"pattern": "a"}, {"pattern": 1, "permission": "allow"}, {"pattern": "a", "permission": "maybe"},
            {"pattern": "", "permission": "deny"}, {"pattern": "a", "permission": "allow"}
        ]});
        assert_eq!(RuleSet::from_value(Some(&value)).rules, [Rule::new("a", Verdict::Allow).unwrap()]);
    }
}
