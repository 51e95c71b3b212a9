//! Agents: what each may use, and how clients reach it.

mod actors;
mod apps;
mod clients;
mod edit;
mod history;
mod list;
mod one;
mod toolset;

use axum::Router;
use axum::routing::{get, post};
use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::api::Request;
use crate::frame::Link;
use crate::path::Path;
use crate::refusal::Refusal;
use crate::ui::{Markup, Tone, badge};
use crate::visit::Visit;

pub(crate) use actors::Actors;

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/{project}/agents", get(list::list))
        .route("/{project}/agents/new", get(edit::new).post(edit::create))
        .route("/{project}/agents/clients", get(clients::of_project))
        .route("/{project}/agents/{agent}", get(one::one))
        .route("/{project}/agents/{agent}/edit", get(edit::edit).post(edit::save))
        .route("/{project}/agents/{agent}/delete", post(edit::delete))
        .route("/{project}/agents/{agent}/apps", get(apps::choose))
        .route("/{project}/agents/{agent}/apps/{app}", get(apps::settings).post(apps::assign))
        .route("/{project}/agents/{agent}/apps/{app}/remove", post(apps::remove))
        .route("/{project}/agents/{agent}/toolset", get(toolset::toolset))
        .route("/{project}/agents/{agent}/history", get(history::history))
        .route("/{project}/agents/{agent}/clients", get(clients::of_agent))
}

#[derive(Debug, Deserialize)]
struct Agent {
    id: i64,
    public_id: String,
    version: i64,
    name: String,
    description: Option<String>,
    #[serde(rename = "agent_type")]
    kind: String,
    status: String,
    tool_mode: String,
    job_title: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    configuration: Value,
    #[serde(default)]
    tool_configs: Value,
    created_at: String,
    updated_at: String,
    #[serde(default)]
    tools: Vec<AssignedApp>,
}

impl Agent {
    async fn read(visit: &Visit, id: &str) -> Result<Self, Refusal> {
        visit.get(Path::new("/agents").at(id)).await
    }

    fn state(&self) -> Markup {
        let tone = match self.status.as_str() {
            "active" => Tone::Good,
            "training" => Tone::Wait,
            _ => Tone::Plain,
        };
        badge(tone, &self.status)
    }

    fn app(&self, name: &str) -> Option<&AssignedApp> {
        self.tools.iter().find(|app| app.app_name.eq_ignore_ascii_case(name))
    }

    fn unusable(&self) -> usize {
        self.tools.iter().filter(|app| !app.usable).count()
    }

    fn is_configured(&self) -> bool {
        self.configuration.as_object().is_some_and(|all| !all.is_empty())
    }

    fn has_configs(&self) -> bool {
        self.tool_configs.as_array().is_some_and(|all| !all.is_empty())
    }

    fn inherits(&self) -> bool {
        self.tool_mode == "inherit"
    }
}

#[derive(Debug, Deserialize)]
struct AssignedApp {
    app_name: String,
    display_name: Option<String>,
    priority: i64,
    #[serde(default)]
    configuration: Map<String, Value>,
    status: String,
    usable: bool,
    reason: Option<Reason>,
}

#[derive(Debug, Deserialize)]
struct Reason {
    code: String,
    message: String,
}

impl AssignedApp {
    fn title(&self) -> &str {
        self.display_name.as_deref().unwrap_or(&self.app_name)
    }

    fn state(&self) -> Markup {
        if self.usable {
            badge(Tone::Good, "usable")
        } else {
            badge(if self.status == "pending" { Tone::Wait } else { Tone::Bad }, &self.status)
        }
    }

    fn limits(&self) -> String {
        limits(&self.configuration)
    }
}

/// What the settings of an app leave of it, in words.
fn limits(config: &Map<String, Value>) -> String {
    let count = |name: &str| config.get(name).and_then(Value::as_array).map(Vec::len);
    let actions = |count: usize| if count == 1 { "1 action".to_owned() } else { format!("{count} actions") };
    let word = |name: &str| config.get(name).and_then(Value::as_str);
    let mut words = vec![match word("access") {
        Some("read_only") => "Read only".to_owned(),
        _ => "Full access".to_owned(),
    }];
    words.extend(count("allow").map(|count| format!("only {}", actions(count))));
    words.extend(count("deny").filter(|count| *count > 0).map(|count| format!("without {}", actions(count))));
    words.extend(match word("permission") {
        Some("ask") => Some("every call waits for a person".to_owned()),
        Some("deny") => Some("no call is allowed".to_owned()),
        _ => None,
    });
    words.extend(word("connection").map(|slug| format!("through {slug}")));
    words.join(", ")
}

/// The pages of one agent.
fn tabs(visit: &Visit, id: &str, current: &str) -> Vec<Link> {
    let mut pages = vec![("", "Overview"), ("toolset", "Tools for a prompt"), ("clients", "Clients"), ("history", "History")];
    if visit.may("edit_agents") {
        pages.push(("edit", "Edit"));
    }
    let here = visit.page("agents").at(id);
    let link = |(path, label): (&str, &str)| Link {
        href: if path.is_empty() { here.clone().into() } else { here.clone().at(path).into() },
        label: label.to_owned(),
        is_current: path == current,
    };
    pages.into_iter().map(link).collect()
}

/// The page of an app, below that of its agent.
fn app_path(agent: &str, app: &str) -> String {
    Path::new(agent).at("apps").at(app).into()
}

/// Changes an agent, if it is still the version that the form was filled from.
async fn change(visit: &Visit, method: Method, path: Path, body: Value, version: &str) -> Result<Value, Refusal> {
    let if_match = version.parse::<u64>().ok().map(|version| format!("\"{version}\""));
    let answer = visit.api.send(Request { method, path: path.into(), body: Some(body), if_match }).await;
    if answer.status.is_success() { Ok(serde_json::from_slice(&answer.body).unwrap_or_default()) } else { Err(Refusal::of(&answer)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_are_said_in_words() {
        let config = json!({"access": "read_only", "allow": ["A"], "deny": ["B", "C"], "permission": "ask", "connection": "main"});
        let words = "Read only, only 1 action, without 2 actions, every call waits for a person, through main";
        assert_eq!(limits(config.as_object().unwrap()), words);
        assert_eq!(limits(&Map::new()), "Full access");
    }
}
