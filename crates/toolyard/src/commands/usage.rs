//! What would stop if something went away: the triggers, agents and workflows that use it, in words.

use agents::AppName;
use serde_json::{Value, json};

use super::client::Client;
use super::integrations::{list, text};
use super::names::Integration;
use super::{agent, connect, environment, trigger};

const PAGE: usize = 500;
/// As many revisions as are looked through for those that use something.
const LOOKED_THROUGH: usize = 5000;

/// Rows, or none with a note: a key that may not see them can still delete.
fn seen(what: &str, found: anyhow::Result<Vec<Value>>) -> Vec<Value> {
    found.unwrap_or_else(|error| {
        eprintln!("note: cannot see which {what} use it: {error:#}");
        Vec::new()
    })
}

/// What uses a connection.
pub(super) async fn of_connection(client: &Client, row: &Value) -> anyhow::Result<Vec<String>> {
    let integration = Integration::of(row);
    let slug = text(row, "slug");
    let mut stops = triggers_with(client, |found| found["connection_id"] == row["id"]).await;
    let others = connect::query(client, Some(&integration)).await?;
    let is_last = !list(&others, "connections").iter().any(|other| other["id"] != row["id"] && connect::is_ready(other));
    stops.extend(agents_with(client, &integration, |tool| tool["configuration"]["connection"] == slug.as_str() || is_last).await);
    let prefix = format!("tools.{}.{}.", integration.provider, integration.key);
    let ending = format!(".{slug}");
    stops.extend(workflows_with(client, |word| word.starts_with(&prefix) && word.ends_with(&ending)).await);
    Ok(stops)
}

/// What uses an integration: its connections and OAuth apps, and what uses those.
pub(super) async fn of_integration(client: &Client, integration: &Integration) -> anyhow::Result<Vec<String>> {
    let found = connect::query(client, Some(integration)).await?;
    let connections = list(&found, "connections");
    let mut stops: Vec<String> = connections.iter().map(|row| format!("connection {}", text(row, "slug"))).collect();
    let apps = client.get("/tools/oauth-apps").await?;
    let apps = list(&apps, "oauth_apps").iter().filter(|app| Integration::of(app) == *integration);
    stops.extend(apps.map(|app| format!("OAuth app {}", text(app, "client_id"))));
    stops.extend(triggers_with(client, |found| connections.iter().any(|row| row["id"] == found["connection_id"])).await);
    stops.extend(agents_with(client, integration, |_| true).await);
    let prefix = format!("tools.{}.{}.", integration.provider, integration.key);
    stops.extend(workflows_with(client, |word| word.starts_with(&prefix)).await);
    Ok(stops)
}

/// What uses an OAuth app: connections that were made with one.
pub(super) async fn of_oauth_app(client: &Client, app: &Value) -> anyhow::Result<Vec<String>> {
    let found = connect::query(client, Some(&Integration::of(app))).await?;
    let renewed = list(&found, "connections").iter().filter(|row| row["data"]["auth_scheme"] == "oauth");
    Ok(renewed.map(|row| format!("connection {}, once its token expires", text(row, "slug"))).collect())
}

/// What runs a workflow.
pub(super) async fn of_workflow(client: &Client, row: &Value) -> Vec<String> {
    let slug = text(row, "slug");
    let is_it = |reference: &Value| reference["slug"] == slug.as_str() || reference["id"] == row["id"];
    let families = ["workflow", "application", "evaluator"];
    let mut stops = triggers_with(client, |found| families.iter().any(|family| is_it(&found["data"]["references"][*family]))).await;
    for environment in seen("environments", environment::all(client, false).await) {
        let deployed = environment["data"]["references"].as_object().into_iter().flatten();
        if deployed.into_iter().any(|(_, references)| is_it(&references["workflow"])) {
            stops.push(format!("what is deployed to {}", text(&environment, "slug")));
        }
    }
    let exact = format!("workflow.variant.{slug}");
    let (versioned, deployed) = (format!("{exact}."), format!(".{slug}"));
    let calls_it = |word: &str| {
        word == exact || word.starts_with(&versioned) || (word.starts_with("workflow.environment.") && word.ends_with(&deployed))
    };
    stops.extend(workflows_with(client, calls_it).await);
    stops
}

/// What is deployed to an environment, and what runs it.
pub(super) async fn of_environment(client: &Client, row: &Value) -> Vec<String> {
    let slug = text(row, "slug");
    let mut stops: Vec<String> = environment::deployed(row).into_iter().map(|deployed| format!("what is deployed: {deployed}")).collect();
    let runs_there = |found: &Value| {
        let reference = &found["data"]["references"]["environment"];
        reference["slug"] == slug.as_str() || reference["id"] == row["id"]
    };
    stops.extend(triggers_with(client, runs_there).await);
    let prefix = format!("workflow.environment.{slug}.");
    stops.extend(workflows_with(client, |word| word.starts_with(&prefix)).await);
    stops
}

/// The subscriptions and schedules that fit.
async fn triggers_with(client: &Client, fits: impl Fn(&Value) -> bool) -> Vec<String> {
    let mut stops = Vec::new();
    for (kind, found) in [("subscription", trigger::subscriptions(client).await), ("schedule", trigger::schedules(client).await)] {
        let found = seen("triggers", found);
        stops.extend(found.iter().filter(|found| fits(found)).map(|found| format!("{kind} {}", trigger::label(found))));
    }
    stops
}

/// The agents to which the integration's app is assigned, where the assignment fits.
async fn agents_with(client: &Client, integration: &Integration, fits: impl Fn(&Value) -> bool) -> Vec<String> {
    let app = AppName::of(&integration.key);
    let agents = seen("agents", agent::all(client).await);
    let has_it = |agent: &&Value| list(agent, "tools").iter().any(|tool| tool["app_name"] == app.as_str() && fits(tool));
    agents.iter().filter(has_it).map(|agent| format!("agent {}, which has {}", text(agent, "name"), app.as_str())).collect()
}

/// The workflows whose newest version calls something that fits.
async fn workflows_with(client: &Client, fits: impl Fn(&str) -> bool) -> Vec<String> {
    let newest = seen("workflows", newest_revisions(client).await);
    newest
        .iter()
        .filter(|revision| has_text(&revision["data"], &fits))
        .map(|revision| format!("workflow {}", text(revision, "workflow")))
        .collect()
}

/// The newest revision of each workflow, with its slug as `workflow`.
async fn newest_revisions(client: &Client) -> anyhow::Result<Vec<Value>> {
    let mut newest: Vec<Value> = Vec::new();
    let (mut next, mut looked) = (Value::Null, 0);
    let slugs = super::workflow::slugs(client).await?;
    loop {
        let reply = client.post("/workflows/revisions/query", &json!({"windowing": {"limit": PAGE, "next": next}})).await?;
        let rows = list(&reply, "workflow_revisions");
        for row in rows {
            let Some(slug) = row["workflow_id"].as_str().and_then(|id| slugs.get(id)) else { continue };
            if !newest.iter().any(|known| known["workflow"] == slug.as_str()) {
                newest.push(json!({"workflow": slug, "data": row["data"]}));
            }
        }
        looked += rows.len();
        next = reply["windowing"]["next"].clone();
        if next.is_null() || looked >= LOOKED_THROUGH {
            return Ok(newest);
        }
    }
}

fn has_text(value: &Value, fits: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(word) => fits(word),
        Value::Array(items) => items.iter().any(|item| has_text(item, fits)),
        Value::Object(fields) => fields.values().any(|field| has_text(field, fits)),
        _ => false,
    }
}
