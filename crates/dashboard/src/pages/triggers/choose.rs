//! From what there is to one event.

use askama::Template;
use axum::extract::Query;
use serde::Deserialize;
use serde_json::Value;

use super::subscription_form;
use crate::frame::{Frame, Section, show};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

const PROVIDERS: &str = "/triggers/catalog/providers";
const PAGE: usize = 60;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NewQuery {
    provider: Option<String>,
    integration: Option<String>,
    event: Option<String>,
    connection: Option<String>,
    /// What the trigger is to run.
    workflow: Option<String>,
    search: Option<String>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ProvidersAnswer {
    providers: Vec<Provider>,
}

#[derive(Debug, Deserialize)]
struct Provider {
    key: String,
    name: String,
    integrations_count: usize,
}

#[derive(Debug, Deserialize)]
struct IntegrationsAnswer {
    integrations: Vec<Integration>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct IntegrationAnswer {
    integration: Integration,
}

#[derive(Debug, Deserialize)]
struct Integration {
    key: String,
    name: String,
    description: String,
    events_count: usize,
}

#[derive(Debug, Deserialize)]
struct EventsAnswer {
    events: Vec<Event>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct EventAnswer {
    event: Event,
}

/// An event of an integration; schemas are there where one event is read.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Event {
    pub(super) key: String,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) provider: String,
    pub(super) integration: String,
    pub(super) trigger_config: Option<Value>,
    pub(super) payload: Option<Value>,
}

/// Reads an event with its schemas.
pub(super) async fn event(visit: &Visit, provider: &str, integration: &str, key: &str) -> Result<Event, Refusal> {
    let path = Path::new(PROVIDERS).at(provider).at("integrations").at(integration).at("events").at(key);
    Ok(visit.get::<EventAnswer>(path).await?.event)
}

pub(super) async fn choose(visit: Visit, Query(query): Query<NewQuery>) -> PageResult {
    let said = |value: &Option<String>| value.clone().filter(|value| !value.trim().is_empty());
    let provider = said(&query.provider).unwrap_or_else(|| "native".to_owned());
    match (said(&query.integration), said(&query.event)) {
        (Some(integration), Some(key)) => {
            let event = event(&visit, &provider, &integration, &key).await?;
            subscription_form::new(&visit, event, said(&query.connection), said(&query.workflow)).await
        }
        (Some(integration), None) => choose_event(&visit, &provider, &integration, &query).await,
        (None, _) => choose_integration(&visit, &provider, &query).await,
    }
}

struct Choice {
    href: String,
    name: String,
    description: String,
    note: String,
}

#[derive(Template)]
#[template(path = "trigger_new.html")]
struct IntegrationsPage {
    frame: Frame,
    here: String,
    all: String,
    provider: String,
    providers: Vec<(String, String, bool)>,
    workflow: String,
    search: String,
    choices: Vec<Choice>,
    next: Option<String>,
}

async fn choose_integration(visit: &Visit, provider: &str, query: &NewQuery) -> PageResult {
    let search = query.search.as_deref().map(str::trim).filter(|search| !search.is_empty());
    let providers: ProvidersAnswer = visit.get(PROVIDERS).await?;
    let asked = Path::new(PROVIDERS)
        .at(provider)
        .at("integrations")
        .with("limit", PAGE)
        .with_some("search", search)
        .with_some("cursor", query.cursor.as_deref());
    let found: IntegrationsAnswer = visit.get(asked).await?;
    let here = visit.page("triggers").at("new");
    let workflow = query.workflow.as_deref();
    let at_provider = |key: &str| here.clone().with("provider", key).with_some("workflow", workflow);
    let of_provider = at_provider(provider);
    let choices = found.integrations.into_iter().map(|integration| Choice {
        href: of_provider.clone().with("integration", &integration.key).into(),
        note: if integration.events_count == 1 { "1 event".to_owned() } else { format!("{} events", integration.events_count) },
        name: integration.name,
        description: integration.description,
    });
    let page = IntegrationsPage {
        frame: Frame::new(visit, Section::Triggers, "New trigger"),
        all: visit.page("triggers").into(),
        provider: provider.to_owned(),
        providers: providers
            .providers
            .into_iter()
            .filter(|entry| entry.integrations_count > 0 || entry.key == provider)
            .map(|entry| (entry.name, at_provider(&entry.key).into(), entry.key == provider))
            .collect(),
        workflow: workflow.unwrap_or_default().to_owned(),
        search: search.unwrap_or_default().to_owned(),
        choices: choices.collect(),
        next: found.cursor.map(|cursor| of_provider.with_some("search", search).with("cursor", cursor).into()),
        here: here.into(),
    };
    show(&page)
}

#[derive(Template)]
#[template(path = "trigger_new_event.html")]
struct EventsPage {
    frame: Frame,
    here: String,
    back: String,
    name: String,
    description: String,
    provider: String,
    integration: String,
    workflow: String,
    search: String,
    choices: Vec<Choice>,
    next: Option<String>,
}

async fn choose_event(visit: &Visit, provider: &str, integration: &str, query: &NewQuery) -> PageResult {
    let search = query.search.as_deref().map(str::trim).filter(|search| !search.is_empty());
    let of_integration = Path::new(PROVIDERS).at(provider).at("integrations").at(integration);
    let about: IntegrationAnswer = visit.get(of_integration.clone()).await?;
    let asked = of_integration.at("events").with("limit", PAGE).with_some("query", search).with_some("cursor", query.cursor.as_deref());
    let found: EventsAnswer = visit.get(asked).await?;
    let new = visit.page("triggers").at("new");
    let workflow = query.workflow.as_deref();
    let of_provider = new.clone().with("provider", provider).with_some("workflow", workflow);
    let here = of_provider.clone().with("integration", integration).with_some("connection", query.connection.as_deref());
    let choices = found.events.into_iter().map(|event| Choice {
        href: here.clone().with("event", &event.key).into(),
        name: event.name,
        description: event.description,
        note: event.key,
    });
    let page = EventsPage {
        frame: Frame::new(visit, Section::Triggers, format!("Events of {}", about.integration.name)),
        back: of_provider.into(),
        workflow: workflow.unwrap_or_default().to_owned(),
        name: about.integration.name,
        description: about.integration.description,
        provider: provider.to_owned(),
        integration: about.integration.key,
        search: search.unwrap_or_default().to_owned(),
        choices: choices.collect(),
        next: found.cursor.map(|cursor| here.clone().with_some("search", search).with("cursor", cursor).into()),
        here: new.into(),
    };
    show(&page)
}
