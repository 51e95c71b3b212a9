//! What the API knows of a tool: what it does, what it takes, and through which connections it can be called.

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::choice::Choice;
use crate::pages::connections::{self, Connection, Seen};
use crate::path::Path;
use crate::refusal::Refusal;
use crate::ui::{Markup, Tone, badge};
use crate::visit::Visit;

/// What a call does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Reads,
    Changes,
    Destroys,
    Unknown,
}

impl Effect {
    pub(super) fn badge(self) -> Markup {
        match self {
            Self::Reads => badge(Tone::Good, "only reads"),
            Self::Changes => badge(Tone::Wait, "changes something"),
            Self::Destroys => badge(Tone::Bad, "cannot be undone"),
            Self::Unknown => badge(Tone::Plain, "workflow"),
        }
    }

    /// What the button says.
    pub(super) fn run(self) -> &'static str {
        match self {
            Self::Reads => "Run",
            Self::Changes => "Run (changes something)",
            Self::Destroys => "Run (cannot be undone)",
            Self::Unknown => "Run the workflow",
        }
    }

    pub(super) fn is_destructive(self) -> bool {
        self == Self::Destroys
    }
}

/// A connection that a call can go through.
#[derive(Clone, Debug)]
pub(super) struct Through {
    pub(super) slug: String,
    pub(super) label: String,
    is_usable: bool,
}

/// A tool on its page.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) title: String,
    pub(super) app: String,
    /// The page of the app, where there is one.
    pub(super) app_page: Option<String>,
    pub(super) description: String,
    pub(super) effect: Effect,
    pub(super) schema: Value,
    pub(super) scopes: Vec<String>,
    pub(super) pitfalls: Vec<String>,
    pub(super) connections: Vec<Through>,
    /// The slug of the connection that is chosen.
    pub(super) connection: Option<String>,
    /// Where an account is connected, where none can be used.
    pub(super) connect: Option<String>,
    pub(super) call_ref: String,
    pub(super) mcp_name: String,
}

impl Tool {
    /// Whether there is anything to call it through; workflows need nothing.
    pub(super) fn can_be_called(&self) -> bool {
        self.connect.is_none() || !self.connections.is_empty()
    }

    pub(super) fn is_chosen(&self, through: &Through) -> bool {
        self.connection.as_ref() == Some(&through.slug)
    }
}

pub(super) async fn read(visit: &Visit, choice: &Choice) -> Result<Tool, Refusal> {
    match choice {
        Choice::Action { provider, integration, action, connection } => {
            read_action(visit, &ActionChoice { provider, integration, action, connection: connection.as_deref() }).await
        }
        Choice::Workflow { call_ref, slug, version, environment } => {
            let mut asked = json!({"workflow_ref": {"slug": slug}});
            if let Some(version) = version {
                asked["workflow_revision_ref"] = json!({"version": version});
            }
            if let Some(environment) = environment {
                asked["environment_ref"] = json!({"slug": environment});
            }
            read_workflow(visit, call_ref, slug, asked).await
        }
    }
}

struct ActionChoice<'a> {
    provider: &'a str,
    integration: &'a str,
    action: &'a str,
    connection: Option<&'a str>,
}

#[derive(Debug, Deserialize)]
struct ActionAnswer {
    action: Action,
}

#[derive(Debug, Deserialize)]
struct Action {
    name: String,
    description: String,
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    destructive: bool,
    schemas: Option<Schemas>,
    scopes: Option<Vec<String>>,
    #[serde(default)]
    pitfalls: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Schemas {
    inputs: Value,
}

#[derive(Debug, Deserialize)]
struct IntegrationAnswer {
    integration: Integration,
}

#[derive(Debug, Deserialize)]
struct Integration {
    name: String,
    /// None where no account is needed.
    #[serde(default)]
    auth_schemes: Vec<String>,
}

async fn read_action(visit: &Visit, chosen: &ActionChoice<'_>) -> Result<Tool, Refusal> {
    let ActionChoice { provider, integration, action, connection } = *chosen;
    let app_path = Path::new("/tools/catalog/providers").at(provider).at("integrations").at(integration);
    let ActionAnswer { action: found } = visit.get(app_path.clone().at("actions").at(action)).await?;
    let IntegrationAnswer { integration: app } = visit.get(app_path).await?;
    let connections = connections::query(visit, Seen::WithTools, Some((provider, integration))).await?;
    let main = format!("{integration}-main");
    let implicit = app.auth_schemes.is_empty().then_some(main.as_str());
    let through = throughs(connections, implicit, connection);
    let connection = chosen_slug(&through, connection);
    let call_ref = format!("tools.{provider}.{integration}.{action}.{}", connection.as_deref().unwrap_or(&main));
    let is_ready = through.iter().any(|through| through.is_usable);
    let connect =
        (!is_ready).then(|| visit.page("connections").at("new").with("provider", provider).with("integration", integration).into());
    let mcp_name = mcp_name(visit, chosen, connection.as_deref(), &call_ref).await;
    Ok(Tool {
        title: found.name,
        app: app.name,
        app_page: Some(visit.page("catalog").at(provider).at(integration).into()),
        description: found.description,
        effect: match (found.read_only, found.destructive) {
            (true, _) => Effect::Reads,
            (_, true) => Effect::Destroys,
            _ => Effect::Changes,
        },
        schema: found.schemas.map_or_else(|| json!({}), |schemas| schemas.inputs),
        scopes: found.scopes.unwrap_or_default(),
        pitfalls: found.pitfalls,
        connections: through,
        connection,
        connect,
        call_ref,
        mcp_name,
    })
}

/// The connections to choose from: those that are there, the one that an app without accounts always has, and the one that was asked for.
fn throughs(connections: Vec<Connection>, implicit: Option<&str>, asked: Option<&str>) -> Vec<Through> {
    let mut all: Vec<Through> = connections.into_iter().map(through).collect();
    for (slug, label) in [(implicit, "no account needed"), (asked, "not connected")] {
        if let Some(slug) = slug.filter(|slug| all.iter().all(|through| through.slug != *slug)) {
            all.push(Through { slug: slug.to_owned(), label: format!("{slug} ({label})"), is_usable: label == "no account needed" });
        }
    }
    all
}

fn through(connection: Connection) -> Through {
    let (is_usable, account) = (connection.is_active() && connection.is_valid(), connection.account());
    let mut label = connection.slug.clone();
    for more in [connection.name, account].into_iter().flatten().filter(|more| !more.is_empty()) {
        label.push_str(&format!(", {more}"));
    }
    if !is_usable {
        label.push_str(" (cannot be used now)");
    }
    Through { slug: connection.slug, label, is_usable }
}

fn chosen_slug(through: &[Through], asked: Option<&str>) -> Option<String> {
    let usable = through.iter().find(|through| through.is_usable).or(through.first());
    asked.map(str::to_owned).or_else(|| usable.map(|through| through.slug.clone()))
}

/// The name that MCP clients see, which is shorter than the ref where that is too long for them.
async fn mcp_name(visit: &Visit, chosen: &ActionChoice<'_>, connection: Option<&str>, call_ref: &str) -> String {
    let ActionChoice { provider, integration, action, .. } = *chosen;
    let tool = json!({"type": "gateway", "provider": provider, "integration": integration, "action": action, "connection": connection});
    let resolved: Option<Value> = match connection {
        Some(_) => visit.post("/tools/resolve?format=mcp", json!({"tools": [tool]})).await.ok(),
        None => None,
    };
    let name = resolved.as_ref().and_then(|answer| answer["definitions"][0]["name"].as_str());
    name.map_or_else(|| call_ref.replace('.', "__"), str::to_owned)
}

async fn read_workflow(visit: &Visit, call_ref: &str, slug: &str, asked: Value) -> Result<Tool, Refusal> {
    let answer: Value = visit.post("/workflows/revisions/retrieve", asked).await?;
    let revision = &answer["workflow_revision"];
    if !revision.is_object() {
        return Err(Refusal::new(StatusCode::NOT_FOUND, format!("There is no workflow `{call_ref}`.")));
    }
    let text = |name: &str| revision[name].as_str().filter(|text| !text.is_empty());
    Ok(Tool {
        title: text("name").unwrap_or(slug).to_owned(),
        app: "Workflow".to_owned(),
        app_page: None,
        description: text("description").unwrap_or_default().to_owned(),
        effect: Effect::Unknown,
        schema: revision["data"]["schemas"]["inputs"].clone(),
        scopes: Vec::new(),
        pitfalls: Vec::new(),
        connections: Vec::new(),
        connection: None,
        connect: None,
        mcp_name: call_ref.replace('.', "__"),
        call_ref: call_ref.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(slug: &str, is_valid: bool) -> Connection {
        serde_json::from_value(
            json!({"id": slug, "slug": slug, "provider_key": "native", "integration_key": "news", "created_at": "", "updated_at": "",
                "flags": {"is_active": true, "is_valid": is_valid}, "meta": {"account": {"label": "ann"}}}),
        )
        .unwrap()
    }

    fn slugs(through: &[Through]) -> Vec<&str> {
        through.iter().map(|through| through.slug.as_str()).collect()
    }

    #[test]
    fn the_first_connection_that_works_is_chosen() {
        let through = throughs(vec![connection("old", false), connection("new", true)], None, None);
        assert_eq!(chosen_slug(&through, None).as_deref(), Some("new"));
        assert_eq!(through[0].label, "old, ann (cannot be used now)");
        assert_eq!(chosen_slug(&throughs(vec![connection("old", false)], None, None), None).as_deref(), Some("old"));
        assert_eq!(chosen_slug(&[], None), None);
    }

    #[test]
    fn an_app_without_accounts_always_has_a_connection() {
        assert_eq!(slugs(&throughs(Vec::new(), Some("news-main"), None)), ["news-main"]);
        assert_eq!(slugs(&throughs(vec![connection("news-main", true)], Some("news-main"), Some("news-main"))), ["news-main"]);
        let asked = throughs(vec![connection("a", true)], None, Some("gone"));
        assert_eq!((slugs(&asked), chosen_slug(&asked, Some("gone"))), (vec!["a", "gone"], Some("gone".to_owned())));
    }
}
