//! Auth configs: how accounts of a toolkit are connected.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, patch};
use axum::{Json, Router};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::catalog::Toolkit;
use crate::refusal::Refusal;
use crate::request::{JsonBody, Paged, QueryString};
use crate::state::{Shared, SharedState};
use crate::toolkits;
use crate::world::{self, AuthConfig, Status, World, iso};

const CAP: usize = 200;

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/auth_configs", get(list).post(create))
        .route("/auth_configs/{id}", get(one).patch(update).delete(remove))
        .route("/auth_configs/{id}/{status}", patch(switch))
}

#[derive(Debug, Deserialize)]
struct Create {
    toolkit: ToolkitSlug,
    #[serde(default)]
    auth_config: AuthConfigChoice,
}

#[derive(Debug, Deserialize)]
struct ToolkitSlug {
    slug: String,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum AuthConfigChoice {
    UseComposioManagedAuth {
        name: Option<String>,
        #[serde(default)]
        credentials: Map<String, Value>,
        #[serde(default)]
        tool_access_config: Map<String, Value>,
    },
    UseCustomAuth {
        name: Option<String>,
        #[serde(rename = "authScheme")]
        auth_scheme: String,
        #[serde(default)]
        credentials: Map<String, Value>,
        #[serde(default)]
        tool_access_config: Map<String, Value>,
    },
}

impl Default for AuthConfigChoice {
    fn default() -> Self {
        Self::UseComposioManagedAuth { name: None, credentials: Map::new(), tool_access_config: Map::new() }
    }
}

async fn create(State(shared): SharedState, JsonBody(order): JsonBody<Create>) -> Result<(StatusCode, Json<Value>), Refusal> {
    let mut world = shared.world();
    let toolkit = toolkits::find(world.catalog.toolkit(&order.toolkit.slug), &order.toolkit.slug)?;
    let managed = matches!(order.auth_config, AuthConfigChoice::UseComposioManagedAuth { .. });
    let (scheme, name, credentials, tool_access) = match order.auth_config {
        AuthConfigChoice::UseComposioManagedAuth { name, credentials, tool_access_config } => {
            (managed_scheme(toolkit)?, name, credentials, tool_access_config)
        }
        AuthConfigChoice::UseCustomAuth { name, auth_scheme, credentials, tool_access_config } => {
            (custom_scheme(toolkit, auth_scheme, &credentials)?, name, credentials, tool_access_config)
        }
    };
    let now = world.now();
    let config = AuthConfig {
        id: world::new_id("ac"),
        uuid: world::new_uuid(),
        toolkit: toolkit.slug.clone(),
        name: name.unwrap_or_else(|| format!("auth_config_{}", toolkit.slug)),
        scheme,
        managed,
        enabled: true,
        credentials,
        tool_access,
        created_at: now,
        updated_at: now,
    };
    let made = json!({
        "toolkit": {"slug": config.toolkit},
        "auth_config": {"id": config.id, "auth_scheme": config.scheme, "is_composio_managed": config.managed},
    });
    world.auth_configs.push(config);
    Ok((StatusCode::CREATED, Json(made)))
}

fn managed_scheme(toolkit: &Toolkit) -> Result<String, Refusal> {
    let auth = toolkit.managed().ok_or_else(|| {
        let message = format!("Toolkit {} has no auth that Composio manages", toolkit.slug);
        Refusal::new(StatusCode::BAD_REQUEST, 301, "AuthConfig_DefaultAuthConfigNotFound", message)
            .fix("Use use_custom_auth with credentials of your own")
    })?;
    Ok(auth.mode.clone())
}

fn custom_scheme(toolkit: &Toolkit, scheme: String, credentials: &Map<String, Value>) -> Result<String, Refusal> {
    let refused = |message: String| Refusal::new(StatusCode::BAD_REQUEST, 303, "AuthConfig_BadRequest", message);
    let auth = toolkit.auth(&scheme).ok_or_else(|| refused(format!("Toolkit {} does not take {scheme}", toolkit.slug)))?;
    let missing: Vec<String> = toolkits::app_fields(auth)
        .into_iter()
        .filter(|field| !credentials.contains_key(&field.name))
        .map(|field| format!("credentials.{} is missing", field.name))
        .collect();
    if missing.is_empty() { Ok(scheme) } else { Err(refused("Required credentials are missing".to_owned()).errors(missing)) }
}

async fn list(State(shared): SharedState, query: QueryString) -> Result<Json<Paged<Value>>, Refusal> {
    let page = query.page(CAP)?;
    let world = shared.world();
    let toolkits = query.many("toolkit_slug");
    let managed = query.one("is_composio_managed").map(|text| text == "true");
    let words = query.one("search").map(str::to_lowercase);
    let fits = |config: &&AuthConfig| {
        (toolkits.is_empty() || toolkits.contains(&config.toolkit.as_str()))
            && managed.is_none_or(|managed| managed == config.managed)
            && (config.enabled || query.is_true("show_disabled"))
            && words.as_ref().is_none_or(|words| config.name.to_lowercase().contains(words))
    };
    let found: Vec<&AuthConfig> = world.auth_configs.iter().rev().filter(fits).collect();
    Ok(Json(page.cut(found, |config| config.wire(&world))))
}

async fn one(State(shared): SharedState, Path(id): Path<String>) -> Result<Json<Value>, Refusal> {
    let world = shared.world();
    Ok(Json(find(&world, &id)?.wire(&world)))
}

/// An auth config that must be there.
pub(crate) fn find<'a>(world: &'a World, id: &str) -> Result<&'a AuthConfig, Refusal> {
    world.auth_config(id).ok_or_else(|| unknown(id))
}

fn find_mut<'a>(world: &'a mut World, id: &str) -> Result<&'a mut AuthConfig, Refusal> {
    world.auth_configs.iter_mut().find(|config| config.id == id).ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, 302, "AuthConfig_NotFound", format!("Auth config {id} was not found"))
}

#[derive(Debug, Deserialize)]
struct Change {
    #[serde(default)]
    credentials: Map<String, Value>,
    tool_access_config: Option<Map<String, Value>>,
}

async fn update(State(shared): SharedState, Path(id): Path<String>, JsonBody(change): JsonBody<Change>) -> Result<Json<Value>, Refusal> {
    let mut world = shared.world();
    let now = world.now();
    let config = find_mut(&mut world, &id)?;
    config.credentials.extend(change.credentials);
    config.tool_access.extend(change.tool_access_config.unwrap_or_default());
    config.updated_at = now;
    Ok(success("The auth config was changed"))
}

/// An auth config that is off takes its accounts with it, and back again.
async fn switch(State(shared): SharedState, Path((id, status)): Path<(String, String)>) -> Result<Json<Value>, Refusal> {
    let enabled = match status.as_str() {
        "ENABLED" => true,
        "DISABLED" => false,
        _ => return Err(Refusal::invalid("status must be ENABLED or DISABLED")),
    };
    let mut world = shared.world();
    let now = world.now();
    let config = find_mut(&mut world, &id)?;
    config.enabled = enabled;
    config.updated_at = now;
    let (from, to, reason) = if enabled {
        (Status::Inactive, Status::Active, None)
    } else {
        (Status::Active, Status::Inactive, Some("The auth config is disabled"))
    };
    let affected: Vec<String> = world
        .accounts
        .iter()
        .filter(|account| account.auth_config == id && account.status == from)
        .map(|account| account.id.clone())
        .collect();
    for account in affected {
        world.turn(&account, to, reason);
    }
    Ok(success("The status was changed"))
}

async fn remove(State(shared): SharedState, Path(id): Path<String>) -> Result<Json<Value>, Refusal> {
    let mut world = shared.world();
    find(&world, &id)?;
    let accounts: Vec<String> =
        world.accounts.iter().filter(|account| account.auth_config == id).map(|account| account.id.clone()).collect();
    for account in accounts {
        world.remove_account(&account);
    }
    world.auth_configs.retain(|config| config.id != id);
    Ok(success("The auth config was deleted"))
}

fn success(message: &str) -> Json<Value> {
    Json(json!({"success": true, "message": message}))
}

impl AuthConfig {
    pub(crate) fn wire(&self, world: &World) -> Value {
        let toolkit = world.catalog.toolkit(&self.toolkit);
        let auth = toolkit.and_then(|toolkit| toolkit.auth(&self.scheme));
        let mut expected = auth.map(|auth| toolkits::fields(&auth.account_required, true)).unwrap_or_default();
        expected.extend(auth.map(|auth| toolkits::fields(&auth.account_optional, false)).unwrap_or_default());
        json!({
            "id": self.id,
            "uuid": self.uuid,
            "type": if self.managed { "default" } else { "custom" },
            "toolkit": {"slug": self.toolkit, "logo": toolkit.map(Toolkit::logo)},
            "name": self.name,
            "auth_scheme": self.scheme,
            "is_composio_managed": self.managed,
            "credentials": world::redacted(&self.credentials),
            "status": if self.enabled { "ENABLED" } else { "DISABLED" },
            "created_by": "fake",
            "created_at": iso(self.created_at),
            "last_updated_at": iso(self.updated_at),
            "no_of_connections": world.accounts.iter().filter(|account| account.auth_config == self.id).count(),
            "expected_input_fields": expected,
            "tool_access_config": self.tool_access,
            "is_enabled_for_tool_router": true,
        })
    }
}
