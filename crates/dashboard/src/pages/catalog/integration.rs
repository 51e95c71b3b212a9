//! One integration: what it can do, how accounts are connected, and which are.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use serde::Deserialize;

use super::body::{Action, Auth, Event, Integration, integration, integration_page, integration_path};
use super::oauth_app::{AppForm, OAuthApp, oauth_apps, redirect_url};
use crate::form::Form;
use crate::frame::{Frame, Section, show_refused};
use crate::pages::connections::{self, Connection};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui::{self, Markup};
use crate::visit::Visit;

const TOLD: [(&str, &str); 2] =
    [("app-kept", "The OAuth app is kept. Accounts can be connected with OAuth now."), ("app-deleted", "The OAuth app is deleted.")];
/// How many actions or events a page shows.
const SHOWN: u32 = 50;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OneQuery {
    q: Option<String>,
    cursor: Option<String>,
    events: Option<String>,
    told: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ActionsAnswer {
    total: u64,
    cursor: Option<String>,
    actions: Vec<Action>,
}

#[derive(Debug, Deserialize)]
struct EventsAnswer {
    total: u64,
    cursor: Option<String>,
    events: Vec<Event>,
}

#[derive(Debug)]
struct ActionRow {
    action: Action,
    effect: Markup,
    href: String,
    try_href: String,
}

#[derive(Debug)]
struct EventRow {
    event: Event,
    href: String,
    subscribe: String,
}

#[derive(Template)]
#[template(path = "integration.html")]
struct OnePage {
    frame: Frame,
    all: String,
    here: String,
    provider: String,
    integration: Integration,
    may_edit: bool,
    connect: String,
    connections: Vec<(Connection, String)>,
    q: String,
    actions: Vec<ActionRow>,
    actions_total: u64,
    more_actions: Option<String>,
    events: Vec<EventRow>,
    events_total: u64,
    more_events: Option<String>,
    /// Ways to connect, each with the address where one does.
    ways: Vec<(Auth, String)>,
    app: Option<OAuthApp>,
    app_form: AppForm,
    /// What an OAuth app is registered with, where the project has none.
    redirect_url: Option<String>,
}

pub(super) async fn one(
    visit: Visit,
    Segments((_, provider, key)): Segments<(String, String, String)>,
    Query(query): Query<OneQuery>,
) -> PageResult {
    show_one(&visit, &provider, &key, &query, None, None).await
}

/// The page again, with what was typed into the form of the OAuth app and why it was refused.
pub(super) async fn show_again(visit: &Visit, provider: &str, key: &str, refusal: &Refusal, form: &Form) -> PageResult {
    show_one(visit, provider, key, &OneQuery::default(), Some(refusal), Some(form)).await
}

async fn show_one(
    visit: &Visit,
    provider: &str,
    key: &str,
    query: &OneQuery,
    refusal: Option<&Refusal>,
    typed: Option<&Form>,
) -> PageResult {
    let found = integration(visit, provider, key).await?;
    let (actions_total, actions, more_actions) = actions(visit, provider, key, query).await?;
    let (events_total, events, more_events) = events(visit, provider, key, query).await?;
    let connected = connections::query(visit, connections::Seen::WithTools, Some((provider, key))).await.unwrap_or_default();
    let apps = oauth_apps(visit).await.unwrap_or_default();
    let app = apps.into_iter().find(|app| app.is_of(provider, key));
    let connect = connections::connect_page(visit, provider, key);
    let here = integration_page(visit, provider, key);
    let page = OnePage {
        frame: Frame::new(visit, Section::Catalog, &found.name).told(query.told.as_deref(), &TOLD).refused(refusal),
        all: visit.page("catalog").with("provider", provider).into(),
        may_edit: visit.may("edit_tools"),
        connections: connected.into_iter().map(|one| one.with_page(visit)).collect(),
        q: query.q.clone().unwrap_or_default(),
        actions,
        actions_total,
        more_actions,
        events,
        events_total,
        more_events,
        ways: found.auth.iter().map(|auth| (auth.clone(), connect.clone().with("scheme", &auth.scheme).into())).collect(),
        app_form: AppForm::new(&here, app.as_ref(), typed),
        redirect_url: if found.has_oauth() && app.is_none() { redirect_url(visit, provider, key).await } else { None },
        app,
        connect: connect.into(),
        here: here.into(),
        provider: provider.to_owned(),
        integration: found,
    };
    show_refused(refusal, &page)
}

async fn actions(visit: &Visit, provider: &str, key: &str, query: &OneQuery) -> Result<(u64, Vec<ActionRow>, Option<String>), Refusal> {
    let path = integration_path(provider, key).at("actions").with("limit", SHOWN);
    let path = path.with_some("query", query.q.as_deref()).with_some("cursor", query.cursor.as_deref());
    let found: ActionsAnswer = visit.get(path).await?;
    let here = integration_page(visit, provider, key);
    let next = found.cursor.map(|cursor| format!("{}#actions", here.clone().with_some("q", query.q.as_deref()).with("cursor", cursor)));
    let rows = found.actions.into_iter().map(|action| ActionRow {
        effect: action.effect(),
        href: here.clone().at("actions").at(&action.key).into(),
        try_href: try_page(visit, provider, key, &action.key).into(),
        action,
    });
    Ok((found.total, rows.collect(), next))
}

/// The events, where the visitor may see triggers and the provider has any.
async fn events(visit: &Visit, provider: &str, key: &str, query: &OneQuery) -> Result<(u64, Vec<EventRow>, Option<String>), Refusal> {
    let path = events_path(provider, key).with("limit", SHOWN).with_some("cursor", query.events.as_deref());
    let found: Option<EventsAnswer> = match visit.get_if_allowed(path).await {
        Err(refusal) if refusal.is_missing() => None,
        other => other?,
    };
    let Some(found) = found else { return Ok((0, Vec::new(), None)) };
    let here = integration_page(visit, provider, key);
    let next = found.cursor.map(|cursor| format!("{}#events", here.clone().with("events", cursor)));
    let rows = found.events.into_iter().map(|event| EventRow {
        href: here.clone().at("events").at(&event.key).into(),
        subscribe: subscribe_page(visit, provider, key, &event.key).into(),
        event,
    });
    Ok((found.total, rows.collect(), next))
}

pub(super) fn events_path(provider: &str, key: &str) -> Path {
    Path::new("/triggers/catalog/providers").at(provider).at("integrations").at(key).at("events")
}

pub(super) fn try_page(visit: &Visit, provider: &str, integration: &str, action: &str) -> Path {
    visit.page("try").with("provider", provider).with("integration", integration).with("action", action)
}

pub(super) fn subscribe_page(visit: &Visit, provider: &str, integration: &str, event: &str) -> Path {
    visit.page("triggers").at("new").with("provider", provider).with("integration", integration).with("event", event)
}
