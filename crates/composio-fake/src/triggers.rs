//! Trigger types, and the triggers that were made from them.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, patch, post};
use axum::{Json, Router};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::accounts;
use crate::catalog::{Toolkit, TriggerType};
use crate::refusal::Refusal;
use crate::request::{JsonBody, Paged, QueryString};
use crate::state::{Shared, SharedState};
use crate::world::{self, Account, Status, Trigger, World, iso};

const CAP: usize = 50;

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/triggers_types", get(types))
        .route("/triggers_types/list/enum", get(slugs))
        .route("/triggers_types/{slug}", get(one_type))
        .route("/trigger_instances/{slug}/upsert", post(upsert))
        .route("/trigger_instances/active", get(active))
        .route("/trigger_instances/manage/{id}", patch(switch).delete(remove))
}

async fn types(State(shared): SharedState, query: QueryString) -> Result<Json<Paged<Value>>, Refusal> {
    let page = query.page(CAP)?;
    let wanted = query.many("toolkit_slugs");
    let world = shared.world();
    let found = world.catalog.trigger_types().filter(|(toolkit, _)| wanted.is_empty() || wanted.contains(&toolkit.slug.as_str())).collect();
    Ok(Json(page.cut(found, |(toolkit, kind)| type_wire(toolkit, kind))))
}

async fn slugs(State(shared): SharedState) -> Json<Value> {
    Json(shared.world().catalog.trigger_types().map(|(_, kind)| kind.slug.as_str()).collect())
}

async fn one_type(State(shared): SharedState, Path(slug): Path<String>) -> Result<Json<Value>, Refusal> {
    let world = shared.world();
    let (toolkit, kind) = world.catalog.trigger_type(&slug).ok_or_else(|| unknown_type(&slug))?;
    Ok(Json(type_wire(toolkit, kind)))
}

fn unknown_type(slug: &str) -> Refusal {
    Refusal::not_found("TriggerType_NotFound", format!("Trigger type {slug} was not found"))
}

fn type_wire(toolkit: &Toolkit, kind: &TriggerType) -> Value {
    json!({
        "slug": kind.slug,
        "name": kind.name,
        "description": kind.description,
        "instructions": kind.instructions,
        "type": kind.kind,
        "types": [kind.kind],
        "toolkit": {"slug": toolkit.slug, "name": toolkit.name, "logo": toolkit.logo()},
        "config": kind.config_schema(),
        "payload": kind.payload_schema(),
        "version": toolkit.version(),
        "requires_webhook_endpoint_setup": false,
    })
}

#[derive(Debug, Deserialize)]
struct Upsert {
    #[serde(alias = "connectedAuthId")]
    connected_account_id: Option<String>,
    user_id: Option<String>,
    #[serde(alias = "triggerConfig", default)]
    trigger_config: Map<String, Value>,
}

/// The same account and config are the same trigger, which is on afterwards.
async fn upsert(State(shared): SharedState, Path(slug): Path<String>, JsonBody(order): JsonBody<Upsert>) -> Result<Json<Value>, Refusal> {
    let mut world = shared.world();
    let (toolkit, kind) = world.catalog.trigger_type(&slug).ok_or_else(|| unknown_type(&slug))?;
    let account = order.account(&world, toolkit)?.id.clone();
    let errors = kind.config_schema().faults(&order.trigger_config);
    if !errors.is_empty() {
        return Err(Refusal::invalid(format!("The config does not fit {slug}")).errors(errors));
    }
    let version = toolkit.version().to_owned();
    let now = world.now();
    let same = |trigger: &&mut Trigger| trigger.slug == slug && trigger.account == account && trigger.config == order.trigger_config;
    if let Some(trigger) = world.triggers.iter_mut().find(same) {
        trigger.disabled_at = None;
        trigger.updated_at = now;
        return Ok(Json(trigger.made()));
    }
    let trigger = Trigger {
        id: world::new_id("ti"),
        uuid: world::new_uuid(),
        slug,
        account,
        config: order.trigger_config,
        version,
        created_at: now,
        updated_at: now,
        disabled_at: None,
    };
    let made = trigger.made();
    world.triggers.push(trigger);
    Ok(Json(made))
}

impl Upsert {
    fn account<'a>(&self, world: &'a World, toolkit: &Toolkit) -> Result<&'a Account, Refusal> {
        let account = match (&self.connected_account_id, &self.user_id) {
            (Some(id), _) => accounts::find(world, id)?,
            (None, Some(user)) => {
                let theirs =
                    |account: &&Account| account.user_id == *user && account.toolkit == toolkit.slug && account.status == Status::Active;
                let message = format!("User {user} has no active account of {}", toolkit.slug);
                world.accounts.iter().rev().find(theirs).ok_or_else(|| Refusal::not_found("ConnectedAccount_NotFound", message))?
            }
            (None, None) => return Err(Refusal::invalid("Give a connected_account_id or a user_id")),
        };
        if account.toolkit != toolkit.slug {
            return Err(Refusal::invalid(format!(
                "Connected account {} is one of {}, not of {}",
                account.id, account.toolkit, toolkit.slug
            )));
        }
        if account.status != Status::Active {
            let message = format!("Connected account {} is {}, not ACTIVE", account.id, account.status.text());
            return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, 10422, "Trigger_ConnectedAccountNotActive", message));
        }
        Ok(account)
    }
}

async fn active(State(shared): SharedState, query: QueryString) -> Result<Json<Paged<Value>>, Refusal> {
    let page = query.page(CAP)?;
    let world = shared.world();
    let any = |name: &str, old: &str, value: &str| {
        let wanted = [query.many(name), query.many(old)].concat();
        wanted.is_empty() || wanted.contains(&value)
    };
    let show_disabled = query.is_true("show_disabled") || query.is_true("showDisabled");
    let fits = |trigger: &&Trigger| {
        let account = world.account(&trigger.account);
        (show_disabled || trigger.disabled_at.is_none())
            && any("connected_account_ids", "connectedAccountIds", &trigger.account)
            && any("trigger_ids", "triggerIds", &trigger.id)
            && any("trigger_names", "triggerNames", &trigger.slug)
            && any("auth_config_ids", "authConfigIds", account.map_or("", |account| &account.auth_config))
            && any("user_ids", "userIds", account.map_or("", |account| &account.user_id))
    };
    let found: Vec<&Trigger> = world.triggers.iter().rev().filter(fits).collect();
    Ok(Json(page.cut(found, |trigger| trigger.wire(&world))))
}

#[derive(Debug, Deserialize)]
struct Switch {
    status: String,
}

async fn switch(State(shared): SharedState, Path(id): Path<String>, JsonBody(order): JsonBody<Switch>) -> Result<Json<Value>, Refusal> {
    let mut world = shared.world();
    let now = world.now();
    let trigger = world.triggers.iter_mut().find(|trigger| trigger.id == id).ok_or_else(|| unknown(&id))?;
    trigger.disabled_at = match order.status.as_str() {
        "enable" => None,
        "disable" => trigger.disabled_at.or(Some(now)),
        _ => return Err(Refusal::invalid("status must be enable or disable")),
    };
    trigger.updated_at = now;
    Ok(Json(json!({"status": "success"})))
}

async fn remove(State(shared): SharedState, Path(id): Path<String>) -> Result<Json<Value>, Refusal> {
    let mut world = shared.world();
    let before = world.triggers.len();
    world.triggers.retain(|trigger| trigger.id != id);
    if world.triggers.len() < before { Ok(Json(json!({"trigger_id": id}))) } else { Err(unknown(&id)) }
}

fn unknown(id: &str) -> Refusal {
    Refusal::not_found("TriggerInstance_NotFound", format!("Trigger {id} was not found"))
}

impl Trigger {
    fn made(&self) -> Value {
        json!({"trigger_id": self.id, "deprecated": {"uuid": self.uuid}})
    }

    pub(crate) fn wire(&self, world: &World) -> Value {
        let account = world.account(&self.account);
        let disabled_at = self.disabled_at.map(iso);
        json!({
            "id": self.id,
            "uuid": self.uuid,
            "trigger_name": self.slug,
            "connected_account_id": self.account,
            "connected_account_uuid": account.map(|account| &account.uuid),
            "user_id": account.map(|account| &account.user_id),
            "trigger_config": self.config,
            "state": {},
            "version": self.version,
            "updated_at": iso(self.updated_at),
            "disabled_at": disabled_at,
            "triggerName": self.slug,
            "connectedAccountId": self.account,
            "triggerConfig": self.config,
            "updatedAt": iso(self.updated_at),
            "disabledAt": disabled_at,
            "deprecated": {"createdAt": iso(self.created_at)},
        })
    }
}
