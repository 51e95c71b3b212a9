//! One action or one event: what it takes and what it gives.

use askama::Template;
use axum::extract::Path as Segments;
use serde::Deserialize;
use serde_json::Value;

use super::body::{Action, Event, integration, integration_page, integration_path};
use super::integration::{events_path, subscribe_page, try_page};
use super::parameters::{Parameter, parameters};
use crate::frame::{Frame, Section, show};
use crate::refusal::PageResult;
use crate::ui::{self, Markup, json_tree};
use crate::visit::Visit;

/// Descriptions longer than this are folded in the table.
const SHOWN: usize = 400;

#[derive(Debug, Deserialize)]
struct ActionAnswer {
    action: Action,
}

#[derive(Debug, Deserialize)]
struct EventAnswer {
    event: Event,
}

/// A schema, as a table and as it is.
#[derive(Debug)]
struct SchemaView {
    title: &'static str,
    /// Says so where it takes nothing.
    empty: &'static str,
    parameters: Vec<Parameter>,
    tree: Markup,
}

impl SchemaView {
    fn new(title: &'static str, empty: &'static str, schema: &Value) -> Self {
        Self { title, empty, parameters: parameters(schema), tree: json_tree(schema) }
    }
}

#[derive(Template)]
#[template(path = "catalog_action.html")]
struct ActionPage {
    frame: Frame,
    /// The integration's name and page.
    of: (String, String),
    effect: Markup,
    try_href: String,
    schemas: Vec<SchemaView>,
    pagination: Option<Markup>,
    action: Action,
}

pub(super) async fn action(visit: Visit, Segments((_, provider, key, action)): Segments<(String, String, String, String)>) -> PageResult {
    let found: ActionAnswer = visit.get(integration_path(&provider, &key).at("actions").at(&action)).await?;
    let mut action = found.action;
    let taken = action.schemas.take().unwrap_or_default();
    let mut schemas = vec![SchemaView::new("Parameters", "It takes no parameters.", &taken.inputs)];
    schemas.extend(taken.outputs.map(|outputs| SchemaView::new("Result", "What comes back is not described in detail.", &outputs)));
    let page = ActionPage {
        frame: Frame::new(&visit, Section::Catalog, &action.name),
        of: of(&visit, &provider, &key).await,
        effect: action.effect(),
        try_href: try_page(&visit, &provider, &key, &action.key).into(),
        schemas,
        pagination: action.pagination.as_ref().map(json_tree),
        action,
    };
    show(&page)
}

#[derive(Template)]
#[template(path = "catalog_event.html")]
struct EventPage {
    frame: Frame,
    of: (String, String),
    subscribe: String,
    may_subscribe: bool,
    schemas: Vec<SchemaView>,
    event: Event,
}

pub(super) async fn event(visit: Visit, Segments((_, provider, key, event)): Segments<(String, String, String, String)>) -> PageResult {
    let found: EventAnswer = visit.get(events_path(&provider, &key).at(&event)).await?;
    let mut event = found.event;
    let settings = event.trigger_config.take().unwrap_or_default();
    let mut schemas = vec![SchemaView::new("Settings", "A subscription to it needs no settings.", &settings)];
    schemas.extend(event.payload.take().map(|payload| SchemaView::new("Payload", "What it brings is not described in detail.", &payload)));
    let page = EventPage {
        frame: Frame::new(&visit, Section::Catalog, &event.name),
        of: of(&visit, &provider, &key).await,
        subscribe: subscribe_page(&visit, &provider, &key, &event.key).into(),
        may_subscribe: visit.may("edit_triggers"),
        schemas,
        event,
    };
    show(&page)
}

/// The name and the page of the integration. Its key will do where the name cannot be seen.
async fn of(visit: &Visit, provider: &str, key: &str) -> (String, String) {
    let name = integration(visit, provider, key).await.map_or_else(|_| key.to_owned(), |found| found.name);
    (name, integration_page(visit, provider, key).into())
}
