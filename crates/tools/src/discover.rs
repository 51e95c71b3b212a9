//! Discovery: sentences in, tools or events out, with the state of their connections and what to do next.

use std::sync::Arc;

use catalog::{Integration, Ranked};
use connections::Connection;
use kernel::{ProjectId, Scope};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{CallError, Tools};

const DEFAULT_ALTERNATIVES: usize = 3;
const MAX_ALTERNATIVES: usize = 50;

/// What somebody wants to do.
#[derive(Clone, Debug)]
pub struct Discover {
    pub use_cases: Vec<String>,
    /// One provider, or all of them.
    pub provider: Option<String>,
    pub alternatives: usize,
}

impl Discover {
    /// Reads arguments that fit the documented schema.
    pub(crate) fn from_arguments(arguments: &Map<String, Value>) -> Self {
        let cases = arguments.get("use_cases").and_then(Value::as_array).into_iter().flatten();
        Self {
            use_cases: cases.filter_map(Value::as_str).map(str::to_owned).collect(),
            provider: arguments.get("provider").and_then(Value::as_str).map(str::to_owned),
            alternatives: arguments
                .get("limit_alternatives")
                .and_then(Value::as_u64)
                .map_or(DEFAULT_ALTERNATIVES, |limit| usize::try_from(limit).unwrap_or(MAX_ALTERNATIVES)),
        }
    }

    fn trimmed(&self) -> Result<Vec<&str>, CallError> {
        let cases: Vec<&str> = self.use_cases.iter().map(|case| case.trim()).filter(|case| !case.is_empty()).collect();
        if cases.is_empty() { Err(CallError::BadFilter("Give at least one use case.".to_owned())) } else { Ok(cases) }
    }
}

/// What fits.
#[derive(Clone, Debug, Serialize)]
pub struct Discovered {
    pub capabilities: Vec<Value>,
    pub connections: Vec<Value>,
    pub guidance: Guidance,
    pub ready: bool,
    pub notes: Vec<String>,
}

/// What to do, and what to watch out for.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Guidance {
    pub plan_steps: Vec<String>,
    pub pitfalls: Vec<String>,
}

/// Whether an integration can be used now.
struct State {
    name: &'static str,
    connection: Option<(String, Value)>,
}

impl Tools {
    /// The actions that fit each use case, in the order of the request.
    pub async fn discover(&self, scope: Scope, request: &Discover) -> Result<Discovered, CallError> {
        let describe = |ranked: &Ranked<catalog::Action>, slug: Option<&str>| {
            let (integration, action) = (&ranked.integration, &ranked.item);
            let mut tool = json!({
                "type": "gateway",
                "provider": integration.provider,
                "integration": integration.key,
                "action": action.key,
                "connection": slug,
                "input_schema": action.input_schema.value(),
                "description": action.description,
                "provider_action": action.key,
            });
            drop_nulls(&mut tool);
            ("tool", tool)
        };
        let brief = |ranked: &Ranked<catalog::Action>| {
            let (integration, action) = (&ranked.integration, &ranked.item);
            json!({"integration": integration.key, "action": action.key, "description": action.description, "provider_action": action.key})
        };
        let pitfalls = |ranked: &Ranked<catalog::Action>| ranked.item.pitfalls.clone();
        let rank = |case: &str| self.catalog.rank_actions(scope.project, request.provider.as_deref(), case);
        self.assemble(scope.project, request, rank, describe, brief, pitfalls, "/tools/connections/").await
    }

    /// The events that fit each use case, in the order of the request.
    pub async fn discover_events(&self, scope: Scope, request: &Discover) -> Result<Discovered, CallError> {
        let describe = |ranked: &Ranked<catalog::Event>, _: Option<&str>| {
            let (integration, event) = (&ranked.integration, &ranked.item);
            let mut found = json!({
                "type": "trigger",
                "provider": integration.provider,
                "integration": integration.key,
                "event_key": event.key,
                "trigger_config": event.config_schema.value(),
                "payload": event.payload_schema.as_ref().map(kernel::json::Document::value),
                "description": event.description,
                "provider_event": event.key,
            });
            drop_nulls(&mut found);
            ("event", found)
        };
        let brief = |ranked: &Ranked<catalog::Event>| {
            let (integration, event) = (&ranked.integration, &ranked.item);
            json!({"integration": integration.key, "event_key": event.key, "description": event.description, "provider_event": event.key})
        };
        let rank = |case: &str| self.catalog.rank_events(scope.project, request.provider.as_deref(), case);
        self.assemble(scope.project, request, rank, describe, brief, |_| Vec::new(), "/triggers/connections/").await
    }

    #[expect(clippy::too_many_arguments, reason = "what differs between actions and events is handed in")]
    async fn assemble<T>(
        &self,
        project: ProjectId,
        request: &Discover,
        rank: impl Fn(&str) -> Result<Vec<Ranked<T>>, catalog::CatalogError>,
        describe: impl Fn(&Ranked<T>, Option<&str>) -> (&'static str, Value),
        brief: impl Fn(&Ranked<T>) -> Value,
        pitfalls: impl Fn(&Ranked<T>) -> Vec<String>,
        endpoint: &str,
    ) -> Result<Discovered, CallError> {
        let cases = request.trimmed()?;
        let mut ranked = Vec::with_capacity(cases.len());
        for case in &cases {
            ranked.push(rank(case).map_err(|error| CallError::Connection(error.into()))?);
        }
        let rows = self.connections.query(project, None, None).await?;
        let mut seen: Vec<Arc<Integration>> = Vec::new();
        let mut answer =
            Discovered { capabilities: Vec::new(), connections: Vec::new(), guidance: Guidance::default(), ready: true, notes: Vec::new() };
        for (case, found) in cases.iter().zip(&ranked) {
            let primary = found.first().filter(|first| first.is_confident);
            let others = found.iter().skip(usize::from(primary.is_some())).take(request.alternatives.min(MAX_ALTERNATIVES));
            for ranked in primary.into_iter().chain(others.clone()) {
                if !seen.iter().any(|known| Arc::ptr_eq(known, &ranked.integration)) {
                    seen.push(ranked.integration.clone());
                }
            }
            let mut capability = json!({"use_case": case, "alternatives": others.map(&brief).collect::<Vec<_>>()});
            if let Some(primary) = primary {
                let state = state(&primary.integration, &rows);
                let slug = state.connection.as_ref().map(|(slug, _)| slug.as_str());
                let (field, value) = describe(primary, slug);
                capability["integration"] = json!(primary.integration.key);
                capability[field] = value;
                capability["connection"] = state.body();
                answer.ready &= state.name == "ready";
                answer.guidance.add(primary.integration.as_ref(), &capability[field], &state, pitfalls(primary));
            } else {
                let note =
                    if found.is_empty() { "Nothing fits this use case." } else { "Nothing fits this use case well; see the alternatives." };
                capability["note"] = json!(note);
                answer.notes.push(format!("{case}: {note}"));
                answer.ready = false;
            }
            answer.capabilities.push(capability);
        }
        answer.connections = seen.iter().map(|integration| affordance(integration, &rows, endpoint)).collect();
        Ok(answer)
    }
}

impl State {
    fn body(&self) -> Value {
        let mut body = json!({"state": self.name});
        if let Some((slug, id)) = &self.connection {
            body["slug"] = json!(slug);
            body["id"] = id.clone();
        }
        body
    }
}

impl Guidance {
    fn add(&mut self, integration: &Integration, found: &Value, state: &State, pitfalls: Vec<String>) {
        let what = found["action"].as_str().or_else(|| found["event_key"].as_str()).unwrap_or_default();
        if state.name != "ready" {
            add(&mut self.plan_steps, format!("Connect {}: follow `connections[].connect`.", integration.name));
        }
        let verb = if found["type"] == "trigger" { "Subscribe to" } else { "Call" };
        add(&mut self.plan_steps, format!("{verb} {}.{what}.", integration.key));
        for pitfall in pitfalls {
            add(&mut self.pitfalls, pitfall);
        }
    }
}

fn add(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}

fn drop_nulls(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
    }
}

fn rows_of<'a>(integration: &'a Integration, rows: &'a [Connection]) -> impl Iterator<Item = &'a Connection> {
    rows.iter().filter(|row| row.provider == integration.provider && row.integration == integration.key)
}

/// The newest usable connection, or what it takes to get one.
fn state(integration: &Integration, rows: &[Connection]) -> State {
    if let Some(row) = rows_of(integration, rows).find(|row| row.is_usable()) {
        return State { name: "ready", connection: Some((row.slug.clone(), json!(row.id))) };
    }
    let schemes = integration.wire_schemes();
    let name = match () {
        () if integration.is_no_auth() => "ready",
        () if schemes.contains(&"api_key") && !schemes.contains(&"oauth") => "needs_input",
        () => "needs_auth",
    };
    State { name, connection: None }
}

fn affordance(integration: &Integration, rows: &[Connection], endpoint: &str) -> Value {
    let state = state(integration, rows);
    let mut body = json!({"integration": integration.key, "state": state.name});
    if let Some((slug, id)) = &state.connection {
        body["slug"] = json!(slug);
        body["id"] = id.clone();
        return body;
    }
    let slug = free_slug(integration, rows);
    let mut connection = json!({"provider_key": integration.provider, "integration_key": integration.key, "slug": slug});
    if state.name == "needs_input" {
        connection["data"] = json!({"auth_scheme": "api_key"});
    }
    body["connect"] = json!({"endpoint": format!("POST {endpoint}"), "body": {"connection": connection}});
    body
}

/// `{integration}-main`, or the first of `-main-2`, `-main-3` and so on that is free.
fn free_slug(integration: &Integration, rows: &[Connection]) -> String {
    let is_free = |slug: &String| rows_of(integration, rows).all(|row| row.slug != *slug);
    let first = format!("{}-main", integration.key);
    let numbered = (2..=rows.len() + 2).map(|number| format!("{first}-{number}"));
    std::iter::once(first.clone()).chain(numbered).find(is_free).unwrap_or(first)
}
