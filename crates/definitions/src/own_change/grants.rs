//! What an agent's tools and servers may do without a person: its own commit may narrow that, never widen it.

use serde_json::{Map, Value};
use workflows::changeset::{key_of, text};
use workflows::embed::contains_embed;

use super::scope::ScopeError;
use crate::Verdict;

/// Older flags that stand for `ask`.
const APPROVAL: [&str; 2] = ["needs_approval", "needsApproval"];

/// A list whose entries hold permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Tools,
    Mcps,
}

/// Refuses new and changed entries that would do more than a person granted.
pub(super) fn check(before: &Value, after: &Value, agent: &str) -> Result<(), ScopeError> {
    let plan = DeclaredRules::read(before);
    for list in [List::Tools, List::Mcps] {
        let (old, new) = (before.get(list.name()), after.get(list.name()));
        if old != new {
            let place = format!("{agent}/{}", list.name());
            let old = entries(old, &place)?;
            Judge { list, plan: &plan, old, place: &place }.check(entries(new, &place)?)?;
        }
    }
    Ok(())
}

fn entries<'a>(value: Option<&'a Value>, place: &str) -> Result<&'a [Value], ScopeError> {
    match value {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(other) if contains_embed(other) => Err(ScopeError::Embed { place: place.to_owned() }),
        Some(_) => Err(ScopeError::Shape { place: place.to_owned(), expected: "a list" }),
    }
}

/// What a person said about tools by name and about all of them.
struct DeclaredRules {
    rules: Vec<(String, Verdict)>,
    denies: bool,
}

impl DeclaredRules {
    fn read(agent: &Value) -> Self {
        let rules = Verdict::ALL.into_iter().flat_map(|permission| {
            let list = agent.pointer(&format!("/harness/permissions/{}", permission.name())).and_then(Value::as_array);
            let patterns = list.into_iter().flatten().filter_map(Value::as_str);
            patterns.map(move |pattern| (pattern.split('(').next().unwrap_or_default().to_owned(), permission))
        });
        let default = agent.pointer("/runner/permissions/default").and_then(Value::as_str);
        Self { rules: rules.collect(), denies: default.is_some_and(|default| default.eq_ignore_ascii_case("deny")) }
    }

    /// The strictest rule that names the tool. A rule for many names is a policy, like the default.
    fn rule(&self, name: Option<&str>) -> Option<Verdict> {
        self.rules.iter().filter(|(rule, _)| Some(rule.as_str()) == name).map(|(_, permission)| *permission).max()
    }
}

struct Judge<'a> {
    list: List,
    plan: &'a DeclaredRules,
    old: &'a [Value],
    place: &'a str,
}

impl Judge<'_> {
    fn check(&self, new: &[Value]) -> Result<(), ScopeError> {
        let mut unmatched: Vec<&Value> = self.old.iter().collect();
        for (index, entry) in new.iter().enumerate() {
            match unmatched.iter().position(|old| *old == entry) {
                Some(same) => {
                    unmatched.remove(same);
                }
                None => self.check_entry(entry, &format!("{}/{index}", self.place))?,
            }
        }
        Ok(())
    }

    /// An entry that is new, or not what it was.
    fn check_entry(&self, entry: &Value, place: &str) -> Result<(), ScopeError> {
        if self.list == List::Tools && text(entry, "type") == Some("platform") {
            return Err(ScopeError::PlatformTool { place: place.to_owned() });
        }
        if self.list == List::Tools && text(entry, "type") == Some("gateway_connection") {
            let reason =
                "A person decides what an agent may do with a whole integration. Name single actions with the permission `ask` instead.";
            return Err(ScopeError::Permission { place: format!("{place}/policy"), reason: reason.to_owned() });
        }
        if contains_embed(&self.list.identity(entry)) {
            return Err(ScopeError::Embed { place: place.to_owned() });
        }
        self.objection(entry).map_or(Ok(()), |reason| {
            let place = format!("{place}/{}", self.list.permission_path().join("/"));
            Err(ScopeError::Permission { place, reason })
        })
    }

    fn objection(&self, entry: &Value) -> Option<String> {
        let name = self.list.key(entry).unwrap_or_default();
        if !self.list.is_readable(entry) {
            return Some(format!("The permission of `{name}` must be `ask` or `deny`, or be left out."));
        }
        let word = self.word(entry);
        let kin = self.old.iter().filter(|old| self.list.is_kin(old, entry)).map(|old| self.word(old));
        let whole = self.old.iter().filter_map(|old| word_on_whole(old, entry)).map(whole_verdict);
        let was = kin.chain(whole).find(|was| self.is_looser(*was, word));
        if let Some(was) = was.filter(|_| word != Some(Verdict::Allow)) {
            let was = was.unwrap_or(Verdict::Deny).name();
            return Some(format!("`{name}` stands at `{was}`, and an agent may not loosen that. Give it the permission `{was}`."));
        }
        let granted = word != Some(Verdict::Allow) || self.old.iter().any(|old| self.is_granted(old, entry));
        let refusal = || format!("`{name}` would do something new without asking. Give it the permission `ask` or `deny`.");
        (was.is_some() || !granted).then(refusal)
    }

    /// What holds for an entry when its author, or a rule with its name, said something.
    fn word(&self, entry: &Value) -> Option<Verdict> {
        let own = self.list.own(entry);
        let rule = match self.list {
            List::Tools => self.plan.rule(self.list.key(entry).as_deref()),
            List::Mcps => None,
        };
        rule.filter(|rule| *rule == Verdict::Deny).or(own).or(rule)
    }

    /// Without a word the plan decides, which may allow; with a default of deny, asking is looser than silence.
    fn is_looser(&self, was: Option<Verdict>, is: Option<Verdict>) -> bool {
        match (was, is) {
            (Some(was), Some(is)) => is < was,
            (Some(was), None) => was != Verdict::Allow,
            (None, Some(Verdict::Ask)) => self.plan.denies,
            (None, is) => is == Some(Verdict::Allow),
        }
    }

    /// Whether a person let exactly this run without asking.
    fn is_granted(&self, old: &Value, entry: &Value) -> bool {
        let same_name = self.list.key(old) == self.list.key(entry);
        same_name && self.word(old) == Some(Verdict::Allow) && self.list.substance(old) == self.list.substance(entry)
    }
}

impl List {
    fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Mcps => "mcps",
        }
    }

    fn key(self, entry: &Value) -> Option<String> {
        key_of(self.name(), entry)
    }

    fn permission_path(self) -> &'static [&'static str] {
        match self {
            Self::Tools => &["permission"],
            Self::Mcps => &["policy", "permission"],
        }
    }

    /// What an entry says under each name of its permission.
    fn permissions(self, entry: &Value) -> impl Iterator<Item = &Value> {
        let (at, names): (_, &[&str]) = match self {
            Self::Tools => (Some(entry), &["permission", "permission_mode", "permissionMode"]),
            Self::Mcps => (entry.get("policy"), &["permission"]),
        };
        names.iter().filter_map(move |name| at?.get(name)).filter(|value| !value.is_null())
    }

    fn needs_approval(self, entry: &Value) -> bool {
        self == Self::Tools && APPROVAL.iter().any(|name| entry.get(name) == Some(&Value::Bool(true)))
    }

    /// The author's own word, the strictest where there are several.
    fn own(self, entry: &Value) -> Option<Verdict> {
        let words = self.permissions(entry).filter_map(|word| Verdict::named(word.as_str()?));
        words.chain(self.needs_approval(entry).then_some(Verdict::Ask)).max()
    }

    fn is_readable(self, entry: &Value) -> bool {
        self.permissions(entry).all(|word| word.as_str().and_then(Verdict::named).is_some())
    }

    /// Whether two entries have the same name or reach the same thing.
    fn is_kin(self, old: &Value, entry: &Value) -> bool {
        let same = |old: Option<String>, new: Option<String>| old.is_some() && old == new;
        same(self.key(old), self.key(entry)) || same(self.reach(old), self.reach(entry))
    }

    /// What an entry reaches, whatever it is called and through whichever account.
    fn reach(self, entry: &Value) -> Option<String> {
        let reach = match self {
            Self::Mcps => text(entry.get("connection")?, "url")?.trim_end_matches('/').to_owned(),
            Self::Tools => match text(entry, "type") {
                Some("reference") => format!("workflow {}", text(entry, "slug")?),
                Some("gateway" | "composio") => format!("{} {}", text(entry, "integration")?, text(entry, "action")?),
                _ => spelled_action(entry)?,
            },
        };
        Some(reach.to_lowercase())
    }

    /// What an entry is, without what it may do and how it is shown. Of a server nothing is mere show.
    fn substance(self, entry: &Value) -> Value {
        match self {
            Self::Tools => {
                let shown = without(entry, &["permission", "render", "description", "input_schema"]);
                without(&without(&shown, &["permission_mode", "permissionMode"]), &APPROVAL)
            }
            Self::Mcps => {
                let mut server = entry.clone();
                if let Some(policy) = server.get_mut("policy") {
                    *policy = without(policy, &["permission"]);
                }
                server
            }
        }
    }

    /// What must be plain to be judged.
    fn identity(self, entry: &Value) -> Value {
        match self {
            Self::Tools => without(entry, &["render", "description", "input_schema", "script"]),
            Self::Mcps => entry.clone(),
        }
    }
}

/// What an entry for a whole integration says of the action that another entry names.
fn word_on_whole<'a>(whole: &'a Value, entry: &Value) -> Option<&'a str> {
    let connection = whole.get("connection").filter(|_| text(whole, "type") == Some("gateway_connection"))?;
    let (integration, action) = (text(entry, "integration")?, text(entry, "action")?);
    if !text(connection, "integration")?.eq_ignore_ascii_case(integration) {
        return None;
    }
    let permissions = whole.pointer("/policy/permissions");
    let named = permissions.and_then(|permissions| permissions.get("tools")?.get(action)?.as_str());
    Some(named.or_else(|| text(permissions?, "default")).unwrap_or("inherit"))
}

/// What such a word means where it is not known whether the action only reads; nothing where the plan of the run decides.
fn whole_verdict(word: &str) -> Option<Verdict> {
    if word == "allow_reads" { Some(Verdict::Ask) } else { Verdict::named(word) }
}

/// The action of an old entry whose name spells `tools.{provider}.{integration}.{action}.{connection}`.
fn spelled_action(entry: &Value) -> Option<String> {
    let function = entry.get("function").and_then(|function| text(function, "name"));
    let name = function.or_else(|| text(entry, "name"))?;
    let dotted = if name.contains('.') { name.to_owned() } else { name.replace("__", ".") };
    match dotted.split('.').collect::<Vec<_>>()[..] {
        ["tools", _, integration, action, _] => Some(format!("{integration} {action}")),
        _ => None,
    }
}

fn without(value: &Value, names: &[&str]) -> Value {
    let Value::Object(fields) = value else { return value.clone() };
    let kept = fields.iter().filter(|(name, _)| !names.contains(&name.as_str()));
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::scope;
    use super::*;

    const PERMISSION: &str = "permission_not_committable";
    const PLATFORM: &str = "platform_tool_not_committable";
    const EMBED: &str = "embed_not_committable";

    fn verdict(before: Value, after: Value) -> Result<(), (&'static str, String)> {
        let agent = |agent: Value| json!({"parameters": {"agent": agent}});
        scope::check(&agent(before), &agent(after)).map_err(|error| (error.code(), error.place().replace("/parameters/agent", "")))
    }

    fn tools(before: Value, after: Value) -> Result<(), (&'static str, String)> {
        verdict(json!({"tools": before}), json!({"tools": after}))
    }

    fn client(name: &str, permission: Option<&str>) -> Value {
        let mut tool = json!({"type": "client", "name": name});
        if let Some(permission) = permission {
            tool["permission"] = json!(permission);
        }
        tool
    }

    fn gateway(name: &str, action: &str, permission: Value) -> Value {
        json!({"type": "gateway", "integration": "github", "action": action, "connection": "main", "name": name, "permission": permission})
    }

    #[test]
    fn older_names_of_a_permission_count() {
        let tool = |extra: Value| {
            let mut tool = client("a", None);
            tool.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            json!([tool])
        };
        for (was, is, fine) in [
            (json!({"needs_approval": true}), json!({}), false),
            (json!({"needs_approval": true}), json!({"permission": "ask"}), true),
            (json!({"permission": "ask"}), json!({"needsApproval": true}), true),
            (json!({"permissionMode": "deny"}), json!({"permission": "ask"}), false),
            (json!({}), json!({"permission_mode": "allow"}), false),
            (json!({}), json!({"permission_mode": "maybe"}), false),
        ] {
            assert_eq!(tools(tool(was.clone()), tool(is.clone())).is_ok(), fine, "{was} {is}");
        }
    }

    fn server(name: &str, url: &str, permission: Value) -> Value {
        json!({"name": name, "connection": {"type": "http", "url": url}, "policy": {"tools": {"mode": "all"}, "permission": permission}})
    }

    #[test]
    fn a_person_decides_about_whole_integrations() {
        let whole = |default: &str| {
            json!({"type": "gateway_connection", "connection": {"provider": "composio", "integration": "github", "slug": "main"},
            "policy": {"permissions": {"default": default, "tools": {"GET": "allow"}}}})
        };
        assert!(tools(json!([whole("ask")]), json!([whole("ask"), client("a", None)])).is_ok());
        for (before, after) in [(json!([]), json!([whole("deny")])), (json!([whole("ask")]), json!([whole("deny")]))] {
            assert_eq!(tools(before, after), Err((PERMISSION, "/tools/0/policy".to_owned())));
        }
        for (default, action, permission, fine) in [
            ("deny", "PUT", json!(null), false),
            ("deny", "PUT", json!("ask"), false),
            ("deny", "PUT", json!("deny"), true),
            ("allow_reads", "PUT", json!(null), false),
            ("allow_reads", "PUT", json!("ask"), true),
            ("inherit", "PUT", json!(null), true),
            ("deny", "GET", json!("ask"), true),
        ] {
            let named = gateway("x", action, permission.clone());
            assert_eq!(tools(json!([whole(default)]), json!([named])).is_ok(), fine, "{default} {action} {permission}");
        }
    }

    #[test]
    fn permissions_go_one_way() {
        let all = [None, Some("allow"), Some("ask"), Some("deny")];
        for (was, fine) in [
            (None, vec![None, Some("ask"), Some("deny")]),
            (Some("allow"), all.to_vec()),
            (Some("ask"), vec![Some("ask"), Some("deny")]),
            (Some("deny"), vec![Some("deny")]),
        ] {
            for is in all {
                let expected = if fine.contains(&is) { Ok(()) } else { Err((PERMISSION, "/tools/0/permission".to_owned())) };
                assert_eq!(tools(json!([client("a", was)]), json!([client("a", is)])), expected, "{was:?} {is:?}");
                let described = |permission| {
                    let mut tool = client("a", permission);
                    tool["description"] = json!("other words");
                    tool
                };
                assert_eq!(tools(json!([client("a", was)]), json!([described(is)])), expected, "{was:?} {is:?}");
                let servers = |permission| json!({"mcps": [server("m", "https://m", json!(permission))]});
                let expected = expected.map_err(|(code, _)| (code, "/mcps/0/policy/permission".to_owned()));
                assert_eq!(verdict(servers(was), servers(is)), expected, "{was:?} {is:?}");
            }
        }
    }

    #[test]
    fn new_entries_ask_or_stay_silent() {
        for (is, fine) in [
            (json!(null), true),
            (json!("ask"), true),
            (json!("deny"), true),
            (json!("allow"), false),
            (json!("Allow"), false),
            (json!(1), false),
        ] {
            let at = |place: &str| if fine { Ok(()) } else { Err((PERMISSION, place.to_owned())) };
            assert_eq!(tools(json!(["read"]), json!(["read", gateway("g", "GET", is.clone())])), at("/tools/1/permission"), "{is}");
            let servers = json!({"mcps": [server("m", "https://m", is)]});
            assert_eq!(verdict(json!({}), servers), at("/mcps/0/policy/permission"));
        }
        assert_eq!(
            tools(json!([client("a", Some("allow")), "read"]), json!(["read", client("a", Some("allow"))])),
            Ok(()),
            "order is free"
        );
        assert_eq!(tools(json!([client("a", Some("deny"))]), json!([])), Ok(()), "removal is free");
    }

    #[test]
    fn another_name_or_shape_does_not_loosen() {
        let deny = || json!([gateway("g", "DELETE", json!("deny"))]);
        let refused = Err((PERMISSION, "/tools/0/permission".to_owned()));
        for after in [
            gateway("h", "DELETE", json!(null)),
            gateway("h", "delete", json!("ask")),
            json!({"type": "composio", "integration": "github", "action": "DELETE", "connection": "other"}),
            json!({"name": "tools__composio__github__DELETE__main"}),
            json!({"type": "function", "function": {"name": "tools.native.github.DELETE.main"}, "permission": "ask"}),
            json!({"type": "code", "name": "g", "script": "1"}),
            json!("g"),
        ] {
            assert_eq!(tools(deny(), json!([after])), refused, "{after}");
        }
        assert_eq!(tools(deny(), json!([gateway("h", "DELETE", json!("deny")), gateway("i", "GET", json!(null))])), Ok(()));
        let twice = json!([gateway("g", "DELETE", json!("deny")), gateway("g", "DELETE", json!(null))]);
        assert_eq!(tools(deny(), twice), Err((PERMISSION, "/tools/1/permission".to_owned())));
        let workflow = |name: &str, permission: &str| json!([{"type": "reference", "slug": "w", "name": name, "permission": permission}]);
        assert_eq!(tools(workflow("a", "deny"), workflow("b", "ask")), refused);
        let servers = |name: &str, url: &str, permission: Value| json!({"mcps": [server(name, url, permission)]});
        let moved = verdict(servers("m", "https://m", json!("ask")), servers("n", "https://M/", json!(null)));
        assert_eq!(moved, Err((PERMISSION, "/mcps/0/policy/permission".to_owned())));
    }

    #[test]
    fn an_allowance_stays_with_what_was_allowed() {
        let code = |script: &str, permission: &str| json!([{"type": "code", "name": "c", "script": script, "permission": permission}]);
        let refused = Err((PERMISSION, "/tools/0/permission".to_owned()));
        assert_eq!(tools(code("1", "allow"), code("2", "allow")), refused);
        assert_eq!(tools(code("1", "allow"), code("2", "ask")), Ok(()));
        assert_eq!(tools(json!([gateway("g", "GET", json!("allow"))]), json!([gateway("g", "DELETE", json!("allow"))])), refused);
        assert_eq!(tools(json!([gateway("g", "GET", json!("allow"))]), json!([gateway("h", "GET", json!("allow"))])), refused);
        let policy = |mode: Value| json!({"tools": mode, "permission": "allow"});
        let servers = |url: &str, mode: Value| json!({"mcps": [{"name": "m", "connection": {"url": url}, "policy": policy(mode)}]});
        let (some, all) = (json!({"mode": "include", "names": ["a"]}), json!({"mode": "all"}));
        let refused = Err((PERMISSION, "/mcps/0/policy/permission".to_owned()));
        assert_eq!(verdict(servers("https://a", some.clone()), servers("https://a", all)), refused);
        assert_eq!(verdict(servers("https://a", some.clone()), servers("https://b", some)), refused);
    }

    #[test]
    fn the_plan_counts() {
        let with = |plan: &Value, tools: Value| {
            let mut agent = plan.clone();
            agent["tools"] = tools;
            agent
        };
        let rules = json!({"harness": {"permissions": {"allow": ["a", "p(x:*)"], "deny": ["d"], "ask": ["a*"]}}});
        let denies = json!({"runner": {"permissions": {"default": "Deny"}}});
        let (none, ask) = (json!(null), json!("ask"));
        for (plan, before, after, fine) in [
            (&rules, json!([]), json!([gateway("a", "X", none.clone())]), false),
            (&rules, json!([]), json!([gateway("p", "X", none.clone())]), false),
            (&rules, json!([]), json!([gateway("a", "X", ask.clone())]), true),
            (&rules, json!([]), json!([gateway("ab", "X", none.clone())]), true),
            (&rules, json!([gateway("a", "X", none.clone())]), json!([gateway("a", "Y", none.clone())]), false),
            (&rules, json!([gateway("d", "X", none.clone())]), json!([gateway("e", "X", ask.clone())]), false),
            (&rules, json!([gateway("d", "X", none.clone())]), json!([gateway("d", "X", ask.clone())]), true),
            (&denies, json!([gateway("a", "X", none.clone())]), json!([gateway("a", "X", ask.clone())]), false),
            (&denies, json!([]), json!([gateway("a", "X", ask)]), true),
            (&denies, json!([]), json!([gateway("a", "X", none)]), true),
        ] {
            let result = verdict(with(plan, before), with(plan, after.clone()));
            assert_eq!(result.is_ok(), fine, "{after}");
        }
    }

    #[test]
    fn platform_tools_are_a_persons_to_give() {
        let op = |op: &str, permission: Option<&str>| json!({"type": "platform", "op": op, "permission": permission});
        for (before, after, at) in [
            (json!([]), json!([op("a", None)]), Some(0)),
            (json!([op("a", None)]), json!(["read", op("a", Some("deny"))]), Some(1)),
            (json!([op("a", None)]), json!([op("a", None), op("a", None)]), Some(1)),
            (json!([op("a", None)]), json!([op("b", None)]), Some(0)),
            (json!([op("a", None), op("b", None)]), json!([client("x", None), op("b", None)]), None),
            (json!([op("a", None)]), json!(null), None),
        ] {
            let expected = at.map_or(Ok(()), |at| Err((PLATFORM, format!("/tools/{at}"))));
            assert_eq!(tools(before, after.clone()), expected, "{after}");
        }
    }

    #[test]
    fn embeds_hide_nothing() {
        let embed = || json!({"@ag.embed": {"@ag.references": {"workflow": {"slug": "w"}}}});
        let token = "@{{workflow.slug=w}}";
        for entry in [
            embed(),
            json!({"@ag.embed": embed()["@ag.embed"], "type": "client", "name": "a", "permission": "ask"}),
            json!({"type": token, "op": "commit_revision"}),
            json!({"type": "gateway", "integration": "github", "action": token, "connection": "main"}),
            json!({"type": "client", "name": "a", "permission": embed()}),
        ] {
            assert_eq!(tools(json!([]), json!([entry])), Err((EMBED, "/tools/0".to_owned())), "{entry}");
        }
        let plain = json!({"type": "client", "name": "a", "description": token, "input_schema": embed()});
        assert_eq!(tools(json!([embed()]), json!([plain, embed()])), Ok(()));
        assert_eq!(tools(json!([]), embed()), Err((EMBED, "/tools".to_owned())));
        assert_eq!(tools(embed(), json!([])), Err((EMBED, "/tools".to_owned())));
        assert_eq!(tools(json!([]), json!("none")), Err(("invalid_shape", "/tools".to_owned())));
        let hidden = json!({"mcps": [{"name": "m", "policy": embed()}]});
        assert_eq!(verdict(json!({}), hidden), Err((EMBED, "/mcps/0".to_owned())));
    }
}
