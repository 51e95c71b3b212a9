//! What an assignment says about its app: which account, which actions, and with how much care.

use catalog::Action;
use definitions::Verdict;
use kernel::Slug;
use kernel::suggest::did_you_mean;
use serde_json::{Map, Value};

use crate::{AppName, Reason};

const KEYS: [&str; 7] = ["provider", "connection", "access", "allow", "deny", "permission", "meta"];
const MAX_ACTIONS: usize = 5000;

/// How far an agent may go with an app.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Actions that only read.
    ReadOnly,
    #[default]
    Full,
}

impl Access {
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::Full => "full",
        }
    }
}

/// The `config` of an assignment, read. `meta` is the author's own and means nothing here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppPolicy {
    pub provider: Option<String>,
    pub connection: Option<String>,
    pub access: Access,
    /// Only these actions; nothing said means all.
    pub allow: Option<Vec<String>>,
    pub deny: Vec<String>,
    pub permission: Option<Verdict>,
}

impl AppPolicy {
    /// Reads a config. It is closed: a misspelt limit must not pass for none.
    pub fn read(config: &Map<String, Value>) -> Result<Self, String> {
        if let Some(unknown) = config.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let unknown: String = unknown.chars().take(40).collect();
            let known = KEYS.map(|key| format!("`{key}`")).join(", ");
            return Err(format!("`{unknown}` is not part of a config; there are {known}.{}", did_you_mean(&unknown, KEYS)));
        }
        let given = |key: &str| config.get(key).filter(|value| !value.is_null());
        let word = |key: &str, expected: &str| match given(key) {
            None => Ok(None),
            Some(value) => value.as_str().map(Some).ok_or_else(|| format!("`{key}` must be {expected}.")),
        };
        let slug = |key: &str| match word(key, "a slug")? {
            None => Ok(None),
            Some(text) => text.parse::<Slug>().map(|slug| Some(slug.to_string())).map_err(|error| format!("`{key}` {error}")),
        };
        let access = "`full` or `read_only`";
        let access = match word("access", access)? {
            None | Some("full") => Access::Full,
            Some("read_only") => Access::ReadOnly,
            Some(_) => return Err(format!("`access` must be {access}.")),
        };
        let permission = "`allow`, `ask` or `deny`";
        let permission = match word("permission", permission)? {
            None => None,
            Some(text) => Some(Verdict::named(text).ok_or_else(|| format!("`permission` must be {permission}."))?),
        };
        if given("meta").is_some_and(|meta| !meta.is_object()) {
            return Err("`meta` must be an object.".to_owned());
        }
        Ok(Self {
            provider: slug("provider")?,
            connection: slug("connection")?,
            access,
            allow: given("allow").map(|value| actions("allow", value)).transpose()?,
            deny: given("deny").map(|value| actions("deny", value)).transpose()?.unwrap_or_default(),
            permission,
        })
    }

    /// The actions that the policy names.
    pub fn named(&self) -> impl Iterator<Item = &String> {
        self.allow.iter().flatten().chain(&self.deny)
    }

    /// Whether a connection is one that may be used.
    pub(crate) fn fits(&self, provider: &str, connection: &str) -> bool {
        self.provider.as_deref().is_none_or(|wanted| wanted == provider)
            && self.connection.as_deref().is_none_or(|wanted| wanted == connection)
    }

    /// Why an action is out of reach, if it is. A deny wins over everything.
    pub(crate) fn refuses(&self, app: &AppName, action: &Action) -> Option<Reason> {
        let (app, key) = (app.clone(), action.key.clone());
        if self.deny.contains(&key) {
            return Some(Reason::Denied { app, action: key });
        }
        if self.allow.as_ref().is_some_and(|allow| !allow.contains(&key)) {
            return Some(Reason::NotAllowed { app, action: key });
        }
        (self.access == Access::ReadOnly && !action.read_only).then_some(Reason::ReadOnly { app, action: key })
    }
}

fn actions(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let wrong = || format!("`{key}` must be a list of at most {MAX_ACTIONS} action keys.");
    let items = value.as_array().filter(|items| items.len() <= MAX_ACTIONS).ok_or_else(wrong)?;
    items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(config: Value) -> Result<AppPolicy, String> {
        AppPolicy::read(config.as_object().unwrap())
    }

    #[test]
    fn mistakes_are_told() {
        for (config, problem) in [
            (json!({"denny": ["A"]}), "`meta`. Did you mean `deny`?"),
            (json!({"deny": "A"}), "`deny` must be a list"),
            (json!({"allow": [1]}), "`allow` must be a list"),
            (json!({"access": "some"}), "`access` must be"),
            (json!({"access": 1}), "`access` must be"),
            (json!({"permission": "maybe"}), "`permission` must be"),
            (json!({"connection": "a.b"}), "`connection` must not contain dots"),
            (json!({"meta": 1}), "`meta` must be an object"),
        ] {
            let error = read(config.clone()).unwrap_err();
            assert!(error.contains(problem), "{config}: {error}");
        }
        assert_eq!(read(json!({"allow": null, "deny": null, "access": null, "meta": {"x": 1}})), Ok(AppPolicy::default()));
    }

    #[test]
    fn a_deny_wins() {
        let app = AppName::of("fake");
        let action = |key: &str, read_only: bool| {
            let mut action = Action::new(key.to_owned(), String::new(), String::new(), &json!({}));
            action.read_only = read_only;
            action
        };
        for (config, key, read_only, code) in [
            (json!({}), "A", false, None),
            (json!({"allow": ["A"], "deny": ["A"]}), "A", true, Some("denied")),
            (json!({"allow": ["B"]}), "A", true, Some("not_allowed")),
            (json!({"allow": []}), "A", true, Some("not_allowed")),
            (json!({"allow": ["A"], "access": "read_only"}), "A", false, Some("read_only")),
            (json!({"allow": ["A"], "access": "read_only"}), "A", true, None),
        ] {
            let refused = read(config.clone()).unwrap().refuses(&app, &action(key, read_only));
            assert_eq!(refused.as_ref().map(Reason::code), code, "{config}");
        }
    }
}
