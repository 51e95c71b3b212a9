//! The tools that a request names, found among the apps of the project. One that is not found fails them all.

use std::sync::Arc;

use catalog::Integration;
use kernel::suggest::did_you_mean;
use serde_json::{Map, Value, json};

use crate::{AppName, AppPolicy, AppStatus, Apps, Assignment, Reason, StableToolId};

/// What a request may say of a tool.
const FIELDS: [&str; 4] = ["id", "app_name", "priority", "config"];
const MAX_TOOLS: usize = 1000;
const MAX_PRIORITY: i64 = 1_000_000;
/// As much of a name as an answer repeats.
const SHOWN: usize = 100;

/// A tool as a request names it. Its parts are as they came, so that everything that is wrong can be told at once.
#[derive(Clone, Debug, Default)]
pub struct RequestedTool {
    /// A stable id, a name or a catalog id.
    pub name: Value,
    pub priority: Option<Value>,
    pub config: Option<Value>,
    /// A field that tools do not have.
    pub unknown: Option<String>,
}

/// An app that shall be assigned.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) app: AppName,
    pub(crate) priority: Option<i64>,
    pub(crate) config: Option<(Map<String, Value>, AppPolicy)>,
    /// It needs no account and has no connection yet; one is made.
    pub(crate) connect: Option<Arc<Integration>>,
}

impl Wanted {
    /// Whether it asks for other settings than the row has.
    pub(crate) fn differs(&self, row: &Assignment) -> bool {
        self.priority.is_some_and(|priority| priority != row.priority)
            || self.config.as_ref().is_some_and(|(config, _)| *config != row.config)
    }
}

/// A tool that cannot be assigned, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejected {
    /// As the request named it.
    pub tool: Value,
    pub code: &'static str,
    pub message: String,
}

impl Rejected {
    fn new(tool: &Value, code: &'static str, message: impl Into<String>) -> Self {
        let tool = match tool {
            Value::String(text) => json!(text.chars().take(SHOWN).collect::<String>()),
            Value::Array(_) | Value::Object(_) => Value::Null,
            plain => plain.clone(),
        };
        Self { tool, code, message: message.into() }
    }

    fn because(tool: &Value, reason: &Reason) -> Self {
        Self::new(tool, reason.code(), reason.to_string())
    }
}

/// Finds every tool of a request; `kept` are apps that the agent has. Named twice is named once, unless the two ask for different things.
pub(crate) fn resolve(items: &[RequestedTool], apps: &Apps, kept: &[AppName], may_connect: bool) -> Result<Vec<Wanted>, Vec<Rejected>> {
    if items.len() > MAX_TOOLS {
        return Err(vec![Rejected::new(&Value::Null, "too_many", format!("An agent has at most {MAX_TOOLS} apps."))]);
    }
    let mut wanted: Vec<Wanted> = Vec::new();
    let mut rejected = Vec::new();
    for item in items {
        match one(item, apps, kept, may_connect) {
            Err(problem) => rejected.push(problem),
            Ok(next) => match wanted.iter_mut().find(|known| known.app == next.app) {
                None => wanted.push(next),
                Some(known) => {
                    if let Err(message) = merge(known, next) {
                        rejected.push(Rejected::new(&item.name, "conflicting", message));
                    }
                }
            },
        }
    }
    if rejected.is_empty() { Ok(wanted) } else { Err(rejected) }
}

fn merge(known: &mut Wanted, next: Wanted) -> Result<(), String> {
    let clash = |ours: bool, theirs: bool, same: bool| ours && theirs && !same;
    if clash(known.priority.is_some(), next.priority.is_some(), known.priority == next.priority)
        || clash(known.config.is_some(), next.config.is_some(), known.config == next.config)
    {
        return Err(format!("{} is named twice with different settings.", known.app));
    }
    known.priority = known.priority.or(next.priority);
    known.config = known.config.take().or(next.config);
    Ok(())
}

fn one(item: &RequestedTool, apps: &Apps, kept: &[AppName], may_connect: bool) -> Result<Wanted, Rejected> {
    let name = &item.name;
    let invalid = |message: &str| Rejected::new(name, "invalid", message);
    if let Some(unknown) = &item.unknown {
        let unknown: String = unknown.chars().take(40).collect();
        let nearest = did_you_mean(&unknown, FIELDS);
        return Err(invalid(&format!("`{unknown}` is not part of a tool; there are `id`, `app_name`, `priority` and `config`.{nearest}")));
    }
    let (mut priority, mut config) = (None, None);
    if let Some(value) = item.priority.as_ref().filter(|value| !value.is_null()) {
        let number = value.as_i64().filter(|number| number.abs() <= MAX_PRIORITY);
        priority = Some(number.ok_or_else(|| invalid(&format!("`priority` must be a whole number within ±{MAX_PRIORITY}.")))?);
    }
    if let Some(value) = item.config.as_ref().filter(|value| !value.is_null()) {
        let fields = value.as_object().ok_or_else(|| invalid("`config` must be an object."))?;
        let policy = AppPolicy::read(fields).map_err(|problem| Rejected::new(name, "invalid_config", problem))?;
        config = Some((fields.clone(), policy));
    }
    let app = find(name, apps)?;
    let connect = match apps.status(&app) {
        status if status.is_assignable() => None,
        // What the agent has already is only suspended: saving the list again keeps it.
        AppStatus::Disabled | AppStatus::Failed if kept.contains(&app) => None,
        AppStatus::Disabled | AppStatus::Failed => {
            let reason = apps.route(&app, &AppPolicy::default()).err().unwrap_or(Reason::NotConnected(app));
            return Err(Rejected::because(name, &reason));
        }
        AppStatus::Unknown => return Err(Rejected::because(name, &Reason::UnknownApp(app))),
        _ => match apps.integrations(&app).iter().find(|integration| integration.is_no_auth()) {
            Some(integration) if may_connect => Some(integration.clone()),
            Some(_) => {
                let message = format!("{app} needs no account, but is not connected, and this key lacks `edit_tools` to connect it.");
                return Err(Rejected::new(name, "not_connected", message));
            }
            None => return Err(Rejected::because(name, &Reason::NotConnected(app))),
        },
    };
    if let Some((_, policy)) = &config {
        check_actions(&app, policy, apps).map_err(|problem| Rejected::new(name, "invalid_config", problem))?;
    }
    Ok(Wanted { app, priority, config, connect })
}

/// The app that a number, a name or a catalog id means.
fn find(name: &Value, apps: &Apps) -> Result<AppName, Rejected> {
    match name {
        Value::String(text) if !text.trim().is_empty() => Ok(by_text(text, apps)),
        Value::Number(number) => {
            let id = number.as_i64().and_then(StableToolId::from_number);
            let unknown = || Rejected::new(name, "unknown_app", format!("No app has the id {number}."));
            by_stable_id(id.ok_or_else(unknown)?, apps).map_err(|several| {
                let names: Vec<&str> = several.iter().map(|app| app.as_str()).collect();
                let message = format!("{} share this id; name the one you mean.", names.join(" and "));
                if names.is_empty() { unknown() } else { Rejected::new(name, "ambiguous", message) }
            })
        }
        _ => Err(Rejected::new(name, "invalid", "Name an app by its stable id, its name or its catalog id.")),
    }
}

/// The one app with the id: among those that may be assigned, or else in the catalog. Several that may be assigned are told, not guessed.
fn by_stable_id(id: StableToolId, apps: &Apps) -> Result<AppName, Vec<&AppName>> {
    let near: Vec<&AppName> = apps.own().into_iter().filter(|app| app.stable_id() == id).collect();
    match near[..] {
        [one] => return Ok(one.clone()),
        [] => {}
        _ => return Err(near),
    }
    let far: Vec<&AppName> = apps.offered().keys().filter(|app| app.stable_id() == id).collect();
    match far[..] {
        [one] => Ok(one.clone()),
        _ => Err(far),
    }
}

/// `native.github` is a catalog id, also written `native/github`; anything else is a name.
fn by_text(text: &str, apps: &Apps) -> AppName {
    let app = AppName::of(text);
    let named = |provider: &str, key: &str| {
        let app = AppName::of(key);
        apps.integrations(&app).iter().any(|integration| integration.provider == provider && integration.key == key).then_some(app)
    };
    let by_id = text.trim().split_once(['.', '/']).and_then(|(provider, key)| named(provider, key));
    by_id.unwrap_or(app)
}

/// An action that does not exist limits nothing, so it is a mistake.
fn check_actions(app: &AppName, policy: &AppPolicy, apps: &Apps) -> Result<(), String> {
    let integrations: Vec<_> = apps
        .integrations(app)
        .iter()
        .filter(|integration| policy.provider.as_deref().is_none_or(|provider| provider == integration.provider))
        .collect();
    if let Some(provider) = policy.provider.as_deref().filter(|_| integrations.is_empty()) {
        let offering = apps.integrations(app).iter().map(|integration| integration.provider);
        return Err(format!("`provider`: `{provider}` does not offer {app}.{}", did_you_mean(provider, offering)));
    }
    match policy.named().find(|action| integrations.iter().all(|integration| integration.action(action).is_none())) {
        Some(unknown) if !integrations.is_empty() => {
            let all = integrations.iter().flat_map(|integration| &integration.actions).map(|action| action.key.as_str());
            let nearest = did_you_mean(unknown, all);
            Err(format!("{app} has no action `{}`.{nearest}", unknown.chars().take(SHOWN).collect::<String>()))
        }
        _ => Ok(()),
    }
}

/// The assignment that a path names, by stable id, name or catalog id.
pub(crate) fn among<'a>(rows: &'a [Assignment], text: &str, apps: &Apps) -> Result<&'a Assignment, AppName> {
    let id = text.parse().ok().and_then(StableToolId::from_number);
    let app = by_text(text, apps);
    let named = |row: &&Assignment| row.is_active && (row.app == app || id == Some(row.app.stable_id()));
    rows.iter().find(named).ok_or(app)
}

#[cfg(test)]
mod tests {
    use catalog::{Catalog, Draft, Provider, Source};
    use kernel::{ProjectId, Timestamp};

    use super::*;

    /// A catalog of two apps that share an id, one that needs no account, and one with actions.
    #[derive(Debug)]
    struct Few;

    impl Source for Few {
        fn provider(&self) -> Provider {
            Provider { key: "native", name: "Native", description: "" }
        }

        fn integrations(&self, project: ProjectId) -> Vec<Arc<Integration>> {
            ["ao", "b0", "open", "shut"].iter().filter_map(|key| self.integration(project, key)).collect()
        }

        fn integration(&self, _: ProjectId, key: &str) -> Option<Arc<Integration>> {
            let locked = catalog::auth::AuthScheme::Bearer(catalog::auth::Credentials::default());
            let auth = if key == "open" { vec![] } else { vec![locked] };
            let actions = vec![catalog::Action::new("READ".to_owned(), String::new(), String::new(), &json!({}))];
            Some(Arc::new(Integration::new("native", Draft { key: key.to_owned(), auth, actions, ..Draft::default() })))
        }

        fn edition(&self, _: ProjectId) -> u64 {
            0
        }
    }

    fn apps(added: &[&str]) -> Apps {
        let added = added.iter().map(|app| (AppName::of(app), Timestamp::from_micros(0))).collect();
        Apps::new(connections::AccountsOf::project(ProjectId::new()), Catalog::new(vec![Arc::new(Few)]), Vec::new(), added)
    }

    /// As the edge reads it.
    fn requested(item: &Value) -> RequestedTool {
        let Value::Object(fields) = item else { return RequestedTool { name: item.clone(), ..RequestedTool::default() } };
        RequestedTool {
            name: fields.get("id").or_else(|| fields.get("app_name")).cloned().unwrap_or_default(),
            priority: fields.get("priority").cloned(),
            config: fields.get("config").cloned(),
            unknown: fields.keys().find(|key| !FIELDS.contains(&key.as_str())).cloned(),
        }
    }

    fn names(items: Value, apps: &Apps) -> Result<Vec<String>, Vec<(Value, &'static str)>> {
        let items: Vec<RequestedTool> = items.as_array().unwrap().iter().map(requested).collect();
        let resolved = resolve(&items, apps, &[], true);
        resolved
            .map(|wanted| wanted.into_iter().map(|want| want.app.to_string()).collect())
            .map_err(|rejected| rejected.into_iter().map(|problem| (problem.tool, problem.code)).collect())
    }

    #[test]
    fn ids_names_and_catalog_ids_mean_the_same() {
        let apps = apps(&["shut", "ao"]);
        let shut = AppName::of("shut").stable_id().number();
        for item in [
            json!(shut),
            json!("shut"),
            json!(" Shut "),
            json!("native.shut"),
            json!("native/shut"),
            json!({"id": shut}),
            json!({"app_name": "SHUT"}),
        ] {
            assert_eq!(names(json!([item, "shut"]), &apps).unwrap(), ["SHUT"], "{item}");
        }
    }

    #[test]
    fn a_shared_id_means_the_one_that_is_here_and_is_refused_when_both_are() {
        let both = AppName::of("ao").stable_id().number();
        assert_eq!(names(json!([both]), &apps(&["b0"])).unwrap(), ["B0"]);
        assert_eq!(names(json!([both]), &apps(&["ao", "b0"])).unwrap_err(), [(json!(both), "ambiguous")]);
        assert_eq!(names(json!([both]), &apps(&[])).unwrap_err(), [(json!(both), "ambiguous")]);
        assert_eq!(names(json!(["ao", "b0"]), &apps(&["ao", "b0"])).unwrap(), ["AO", "B0"]);
    }

    #[test]
    fn everything_that_fails_is_named() {
        let apps = apps(&["ao"]);
        let shut = AppName::of("shut").stable_id().number();
        let items = json!(["ao", shut, 7, -5, "nothing", null, true, {"id": "ao", "config": {"denny": []}}, {"id": "ao", "config": {"deny": ["RAED"]}},
            {"id": "ao", "prio": 1}, {"priority": 1}, {"id": "ao", "priority": 1.5}]);
        let codes: Vec<&str> = names(items, &apps).unwrap_err().into_iter().map(|(_, code)| code).collect();
        let expected = ["not_connected", "unknown_app", "unknown_app", "unknown_app", "invalid", "invalid"];
        assert_eq!(codes[..6], expected);
        assert_eq!(codes[6..], ["invalid_config", "invalid_config", "invalid", "invalid", "invalid"]);
    }

    #[test]
    fn named_twice_is_named_once_unless_they_disagree() {
        let apps = apps(&["ao"]);
        let wanted = resolve(&[json!("ao"), json!({"id": "AO", "priority": 3})].map(|item| requested(&item)), &apps, &[], true).unwrap();
        assert_eq!((wanted.len(), wanted[0].priority), (1, Some(3)));
        let twice = json!([{"id": "ao", "priority": 1}, {"id": "ao", "priority": 2}]);
        assert_eq!(names(twice, &apps).unwrap_err(), [(json!("ao"), "conflicting")]);
    }

    #[test]
    fn what_needs_no_account_is_connected_by_whoever_may() {
        let apps = apps(&[]);
        let wanted = resolve(&[requested(&json!("open"))], &apps, &[], true).unwrap();
        assert_eq!(wanted[0].connect.as_ref().unwrap().key, "open");
        assert_eq!(resolve(&[requested(&json!("open"))], &apps, &[], false).unwrap_err()[0].code, "not_connected");
    }
}
