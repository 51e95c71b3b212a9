//! The one webhook subscription of the project.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use url::{Host, Url};

use crate::refusal::Refusal;
use crate::request::{JsonBody, Paged, QueryString};
use crate::state::{Shared, SharedState};
use crate::world::{self, Webhook, World, iso};

pub(crate) const MESSAGE: &str = "composio.trigger.message";
pub(crate) const DISABLED: &str = "composio.trigger.disabled";
pub(crate) const EXPIRED: &str = "composio.connected_account.expired";

const CAP: usize = 50;
const VERSIONS: [&str; 3] = ["V1", "V2", "V3"];

/// What can be subscribed to, and in which versions it is sent.
const EVENTS: [(&str, &str, &[&str]); 3] = [
    (MESSAGE, "A trigger fired.", &VERSIONS),
    (DISABLED, "A trigger was switched off because it kept failing.", &["V3"]),
    (EXPIRED, "A connected account no longer works and needs its person again.", &["V3"]),
];

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/webhook_subscriptions", get(list).post(create))
        .route("/webhook_subscriptions/event_types", get(event_types))
        .route("/webhook_subscriptions/{id}", get(one).patch(update).delete(remove))
        .route("/webhook_subscriptions/{id}/rotate_secret", post(rotate))
}

async fn list(State(shared): SharedState, query: QueryString) -> Result<Json<Paged<Value>>, Refusal> {
    let page = query.page(CAP)?;
    let world = shared.world();
    Ok(Json(page.cut(world.webhooks.iter().collect(), Webhook::wire)))
}

async fn event_types() -> Json<Value> {
    let items: Vec<Value> = EVENTS
        .iter()
        .map(|(event_type, description, versions)| json!({"event_type": event_type, "description": description, "supported_versions": versions}))
        .collect();
    Json(json!({"items": items}))
}

#[derive(Debug, Deserialize)]
struct WebhookFields {
    webhook_url: Option<String>,
    enabled_events: Option<Vec<String>>,
    version: Option<String>,
}

impl WebhookFields {
    fn check(&self, world: &World) -> Result<(), Refusal> {
        if let Some(url) = &self.webhook_url {
            check_url(url, world.allow_http)?;
        }
        if let Some(events) = &self.enabled_events {
            if events.is_empty() {
                return Err(Refusal::invalid("enabled_events must name at least one event"));
            }
            if let Some(unknown) = events.iter().find(|event| !EVENTS.iter().any(|(known, ..)| known == event)) {
                return Err(Refusal::invalid(format!("There is no event {unknown}")));
            }
        }
        match &self.version {
            Some(version) if !VERSIONS.contains(&version.as_str()) => Err(Refusal::invalid("version must be V1, V2 or V3")),
            _ => Ok(()),
        }
    }
}

/// Composio wants https. Here plain http to this machine is fine too, so that tests need no certificates;
/// [`crate::Fake::allow_http`] opens or closes that.
fn check_url(text: &str, allow_http: Option<bool>) -> Result<(), Refusal> {
    let refused = Refusal::invalid("webhook_url must be an https URL of at most 2048 characters");
    let Ok(url) = Url::parse(text) else { return Err(refused) };
    let local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let fine = url.scheme() == "https" || (url.scheme() == "http" && allow_http.unwrap_or(local));
    if fine && text.len() <= 2048 { Ok(()) } else { Err(refused) }
}

async fn create(State(shared): SharedState, JsonBody(wish): JsonBody<WebhookFields>) -> Result<(StatusCode, Json<Value>), Refusal> {
    let mut world = shared.world();
    wish.check(&world)?;
    let url = wish.webhook_url.ok_or_else(|| Refusal::invalid("webhook_url is missing"))?;
    let events = wish.enabled_events.ok_or_else(|| Refusal::invalid("enabled_events is missing"))?;
    if !world.webhooks.is_empty() {
        let message = "This project has a webhook subscription already";
        return Err(
            Refusal::new(StatusCode::CONFLICT, 10409, "WebhookSubscription_AlreadyExists", message).fix("Change the one that is there")
        );
    }
    let now = world.now();
    let version = wish.version.unwrap_or_else(|| "V3".to_owned());
    let webhook = Webhook { id: world::new_id("whs"), url, version, events, secret: new_secret(), created_at: now, updated_at: now };
    let made = webhook.wire();
    world.webhooks.push(webhook);
    Ok((StatusCode::CREATED, Json(made)))
}

fn new_secret() -> String {
    format!("whsec_{}", uuid::Uuid::new_v4().simple())
}

async fn one(State(shared): SharedState, Path(id): Path<String>) -> Result<Json<Value>, Refusal> {
    Ok(Json(find(&mut shared.world(), &id)?.wire()))
}

async fn update(
    State(shared): SharedState,
    Path(id): Path<String>,
    JsonBody(wish): JsonBody<WebhookFields>,
) -> Result<Json<Value>, Refusal> {
    let mut world = shared.world();
    wish.check(&world)?;
    let now = world.now();
    let webhook = find(&mut world, &id)?;
    webhook.url = wish.webhook_url.unwrap_or_else(|| webhook.url.clone());
    webhook.events = wish.enabled_events.unwrap_or_else(|| webhook.events.clone());
    webhook.version = wish.version.unwrap_or_else(|| webhook.version.clone());
    webhook.updated_at = now;
    Ok(Json(webhook.wire()))
}

async fn rotate(State(shared): SharedState, Path(id): Path<String>) -> Result<Json<Value>, Refusal> {
    let mut world = shared.world();
    let now = world.now();
    let webhook = find(&mut world, &id)?;
    webhook.secret = new_secret();
    webhook.updated_at = now;
    Ok(Json(json!({"id": webhook.id, "secret": webhook.secret})))
}

async fn remove(State(shared): SharedState, Path(id): Path<String>) -> Result<Json<Value>, Refusal> {
    let mut world = shared.world();
    find(&mut world, &id)?;
    world.webhooks.retain(|webhook| webhook.id != id);
    Ok(Json(json!({"success": true})))
}

fn find<'a>(world: &'a mut World, id: &str) -> Result<&'a mut Webhook, Refusal> {
    let unknown = || Refusal::not_found("WebhookSubscription_NotFound", format!("Webhook subscription {id} was not found"));
    world.webhooks.iter_mut().find(|webhook| webhook.id == id).ok_or_else(unknown)
}

impl Webhook {
    pub(crate) fn wire(&self) -> Value {
        json!({
            "id": self.id,
            "webhook_url": self.url,
            "version": self.version,
            "enabled_events": self.events,
            "secret": self.secret,
            "created_at": iso(self.created_at),
            "updated_at": iso(self.updated_at),
        })
    }
}
