//! The apps of an agent: finding one, giving it with its limits, and taking it away.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::one::show_one;
use super::{Agent, app_path, change, tabs};
use crate::form::Form;
use crate::frame::{Frame, Link, Section, see_other, show, show_refused};
use crate::pages::connections::{self, Connection, Seen};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui::{self, Markup, Tone, badge};
use crate::visit::Visit;

const PAGE: usize = 60;

#[derive(Debug, Deserialize)]
struct Apps {
    apps: Vec<App>,
    #[serde(default)]
    total_apps: usize,
}

#[derive(Debug, Deserialize)]
struct App {
    #[serde(rename = "app_name")]
    name: String,
    display_name: Option<String>,
    description: Option<String>,
    status: String,
    #[serde(default)]
    auth_schemes: Vec<String>,
    action_count: u64,
}

impl App {
    fn title(&self) -> &str {
        self.display_name.as_deref().unwrap_or(&self.name)
    }

    fn state(&self) -> Markup {
        match self.status.as_str() {
            "active" => badge(Tone::Good, "connected"),
            "pending" | "added" => badge(Tone::Wait, &self.status),
            "not_connected" if self.auth_schemes.is_empty() => badge(Tone::Plain, "needs no account"),
            "not_connected" => badge(Tone::Plain, "not connected"),
            other => badge(Tone::Bad, other),
        }
    }

    /// Whether it must be connected before an agent can have it.
    fn wants_account(&self) -> bool {
        self.status == "not_connected" && !self.auth_schemes.is_empty()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChooseQuery {
    search: Option<String>,
    /// The API pages the marketplace by offset only.
    offset: Option<String>,
}

#[derive(Template)]
#[template(path = "agent_apps.html")]
struct ChoosePage {
    frame: Frame,
    all: String,
    here: String,
    tabs: Vec<Link>,
    agent: Agent,
    connections: String,
    search: String,
    connected: Vec<App>,
    found: Vec<App>,
    total: usize,
    next: Option<String>,
}

impl ChoosePage {
    fn app_path(&self, app: &str) -> String {
        app_path(&self.here, app)
    }
}

pub(super) async fn choose(visit: Visit, Segments((_, id)): Segments<(String, String)>, Query(query): Query<ChooseQuery>) -> PageResult {
    let agent = Agent::read(&visit, &id).await?;
    let search = query.search.unwrap_or_default();
    let offset: usize = query.offset.and_then(|offset| offset.parse().ok()).unwrap_or(0).min(1_000_000);
    let connected: Apps = visit.get("/tools/connected").await?;
    let asked = Path::new("/tools/marketplace").with("limit", PAGE).with("offset", offset).with_some("search", Some(search.trim()));
    let found: Apps = visit.get(asked).await?;
    let all = visit.page("agents");
    let here = all.clone().at(&id);
    let more = offset + found.apps.len();
    let next = (more < found.total_apps && !found.apps.is_empty())
        .then(|| here.clone().at("apps").with("search", &search).with("offset", more).into());
    let is_new = |app: &App| agent.app(&app.name).is_none();
    let page = ChoosePage {
        frame: Frame::new(&visit, Section::Agents, format!("Give {} an app", agent.name)),
        all: all.into(),
        here: here.into(),
        tabs: tabs(&visit, &id, "apps"),
        connections: visit.page("connections").into(),
        connected: connected.apps.into_iter().filter(is_new).collect(),
        total: found.total_apps,
        found: found.apps.into_iter().filter(|app| is_new(app) && (app.status == "not_connected" || !search.is_empty())).collect(),
        agent,
        search,
        next,
    };
    show(&page)
}

#[derive(Debug, Deserialize)]
struct Action {
    name: String,
    display_name: String,
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    destructive: bool,
}

/// An action with its two boxes.
#[derive(Debug, PartialEq, Eq)]
struct Choice {
    name: String,
    title: String,
    effect: &'static str,
    is_allowed: bool,
    is_denied: bool,
}

/// The settings of an app, as they stand or as they were ticked.
#[derive(Debug, Default)]
struct Settings {
    config: Map<String, Value>,
    priority: String,
    version: String,
}

impl Settings {
    fn word(&self, name: &str) -> &str {
        self.config.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn holds(&self, list: &str, action: &str) -> bool {
        self.config.get(list).and_then(Value::as_array).is_some_and(|all| all.iter().any(|name| name == action))
    }

    /// The settings that a form says, over those that it does not show.
    fn typed(mut config: Map<String, Value>, form: &Form) -> Self {
        for name in ["access", "permission", "connection"] {
            match form.some(name) {
                Some(text) => config.insert(name.to_owned(), text.into()),
                None => config.remove(name),
            };
        }
        for name in ["allow", "deny"] {
            let ticked: Vec<&str> = form.all(name).collect();
            if ticked.is_empty() {
                config.remove(name)
            } else {
                config.insert(name.to_owned(), ticked.into())
            };
        }
        Self { config, priority: form.text("priority").to_owned(), version: form.text("version").to_owned() }
    }
}

/// Every action of the app, and those that only the settings still know.
fn choices(actions: Vec<Action>, settings: &Settings) -> Vec<Choice> {
    let mut choices: Vec<Choice> = actions
        .into_iter()
        .map(|action| Choice {
            is_allowed: settings.holds("allow", &action.name),
            is_denied: settings.holds("deny", &action.name),
            effect: match (action.read_only, action.destructive) {
                (true, _) => "reads",
                (_, true) => "destroys",
                _ => "changes",
            },
            name: action.name,
            title: action.display_name,
        })
        .collect();
    let named = ["allow", "deny"].into_iter().filter_map(|list| settings.config.get(list)?.as_array()).flatten().filter_map(Value::as_str);
    for name in named {
        if choices.iter().all(|choice| choice.name != name) {
            let (is_allowed, is_denied) = (settings.holds("allow", name), settings.holds("deny", name));
            choices.push(Choice {
                name: name.to_owned(),
                title: "Not in the catalog now".to_owned(),
                effect: "unknown",
                is_allowed,
                is_denied,
            });
        }
    }
    choices
}

#[derive(Template)]
#[template(path = "agent_app.html")]
struct SettingsPage {
    frame: Frame,
    all: String,
    here: String,
    tabs: Vec<Link>,
    agent: Agent,
    /// Where the form goes.
    address: String,
    title: String,
    reason: Option<String>,
    is_assigned: bool,
    settings: Settings,
    choices: Vec<Choice>,
    /// Slugs to choose from, each with what it is called.
    connections: Vec<(String, String)>,
}

/// The connections of an app, and the one that the settings name where it is not among them.
async fn connections_of(visit: &Visit, app: &str, named: &str) -> Vec<(String, String)> {
    let found = connections::query(visit, Seen::WithTools, None).await.unwrap_or_default();
    let label = |one: &Connection| if one.title() == one.slug { one.slug.clone() } else { format!("{} ({})", one.title(), one.slug) };
    let of_app = found.iter().filter(|one| one.integration_key == app && one.end_user.is_none());
    let mut all: Vec<(String, String)> = of_app.map(|one| (one.slug.clone(), label(one))).collect();
    if !named.is_empty() && all.iter().all(|(slug, _)| slug != named) {
        all.push((named.to_owned(), named.to_owned()));
    }
    all
}

pub(super) async fn settings(visit: Visit, Segments((_, id, app)): Segments<(String, String, String)>) -> PageResult {
    show_settings(&visit, &id, &app, None, None).await
}

async fn show_settings(visit: &Visit, id: &str, app: &str, typed: Option<Settings>, refusal: Option<&Refusal>) -> PageResult {
    let agent = Agent::read(visit, id).await?;
    let actions: Result<Vec<Action>, Refusal> = visit.get(Path::new("/tools").at(app).at("actions").with("limit", 1000)).await;
    let assigned = agent.app(app);
    // An app that is assigned can be seen and taken away when the catalog does not have it any more.
    let actions = match actions {
        Ok(actions) => actions,
        Err(_) if assigned.is_some() => Vec::new(),
        Err(refusal) => return Err(refusal),
    };
    let settings = typed.unwrap_or_else(|| Settings {
        config: assigned.map(|app| app.configuration.clone()).unwrap_or_default(),
        priority: assigned.map_or(0, |app| app.priority).to_string(),
        version: agent.version.to_string(),
    });
    let title = assigned.map_or(app, |app| app.title()).to_owned();
    let all = visit.page("agents");
    let page = SettingsPage {
        frame: Frame::new(visit, Section::Agents, format!("{title} for {}", agent.name)).refused(refusal),
        address: all.clone().at(id).at("apps").at(app).into(),
        here: all.clone().at(id).into(),
        all: all.into(),
        tabs: tabs(visit, id, "apps"),
        title,
        reason: assigned.and_then(|app| app.reason.as_ref()).map(|reason| reason.message.clone()),
        is_assigned: assigned.is_some(),
        choices: choices(actions, &settings),
        connections: connections_of(visit, app, settings.word("connection")).await,
        agent,
        settings,
    };
    show_refused(refusal, &page)
}

pub(super) async fn assign(visit: Visit, Segments((_, id, app)): Segments<(String, String, String)>, form: Form) -> PageResult {
    let agent = Agent::read(&visit, &id).await?;
    let kept = agent.app(&app).map(|app| app.configuration.clone()).unwrap_or_default();
    let settings = Settings::typed(kept, &form);
    match send(&visit, &id, &app, &settings).await {
        Ok(()) => see_other(visit.page("agents").at(&id).with("told", "assigned")),
        Err(refusal) => show_settings(&visit, &id, &app, Some(settings), Some(&refusal)).await,
    }
}

async fn send(visit: &Visit, id: &str, app: &str, settings: &Settings) -> Result<(), Refusal> {
    let priority = if settings.priority.is_empty() { Ok(0) } else { settings.priority.parse::<i64>() };
    let priority = priority.map_err(|_| {
        Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, format!("The priority must be a whole number: `{}` is not.", settings.priority))
    })?;
    let body = json!({"app_name": app, "priority": priority, "config": settings.config});
    change(visit, Method::POST, Path::new("/agents").at(id).at("tools"), body, &settings.version).await.map(|_| ())
}

pub(super) async fn remove(visit: Visit, Segments((_, id, app)): Segments<(String, String, String)>) -> PageResult {
    match visit.delete(Path::new("/agents").at(&id).at("tools").at(&app)).await {
        Ok(()) => see_other(visit.page("agents").at(&id).with("told", "removed")),
        Err(refusal) => show_one(&visit, &id, None, Some(&refusal)).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(fields: &[(&str, &str)]) -> Form {
        Form(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_form_replaces_what_it_shows_and_keeps_the_rest() {
        let old = json!({"access": "full", "allow": ["A"], "connection": "old", "meta": {"a": 1}});
        let typed = Settings::typed(
            old.as_object().unwrap().clone(),
            &form(&[("access", "read_only"), ("deny", "B"), ("deny", "C"), ("priority", " 7 ")]),
        );
        assert_eq!(Value::Object(typed.config), json!({"access": "read_only", "meta": {"a": 1}, "deny": ["B", "C"]}));
        assert_eq!(typed.priority, "7");
    }

    #[test]
    fn actions_that_are_gone_stay_in_sight() {
        let action = Action { name: "A".to_owned(), display_name: "Do a".to_owned(), read_only: false, destructive: true };
        let settings = Settings { config: json!({"allow": ["A"], "deny": ["OLD"]}).as_object().unwrap().clone(), ..Settings::default() };
        let seen: Vec<(String, &str, bool, bool)> = choices(vec![action], &settings)
            .into_iter()
            .map(|choice| (choice.name, choice.effect, choice.is_allowed, choice.is_denied))
            .collect();
        assert_eq!(seen, [("A".to_owned(), "destroys", true, false), ("OLD".to_owned(), "unknown", false, true)]);
    }
}
