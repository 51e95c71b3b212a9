//! Connected accounts, from the link to the end.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, patch, post};
use axum::{Json, Router};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::auth;
use crate::refusal::Refusal;
use crate::request::{JsonBody, Paged, QueryString};
use crate::state::{Shared, SharedState};
use crate::world::{self, Account, AuthConfig, LINK_LIFE, Link, Status, World, iso};

const CAP: usize = 1000;

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/connected_accounts", get(list).post(create))
        .route("/connected_accounts/link", post(link))
        .route("/connected_accounts/{id}", get(one).patch(rename).delete(remove))
        .route("/connected_accounts/{id}/status", patch(switch))
        .route("/connected_accounts/{id}/refresh", post(refresh))
        .route("/connected_accounts/{id}/revoke", post(revoke))
}

async fn list(State(shared): SharedState, query: QueryString) -> Result<Json<Paged<Value>>, Refusal> {
    let page = query.page(CAP)?;
    let world = shared.world();
    let any = |name: &str, value: &str| {
        let wanted = query.many(name);
        wanted.is_empty() || wanted.contains(&value)
    };
    let fits = |account: &&Account| {
        any("toolkit_slugs", &account.toolkit)
            && any("statuses", account.status.text())
            && any("user_ids", &account.user_id)
            && any("auth_config_ids", &account.auth_config)
            && any("connected_account_ids", &account.id)
    };
    let mut found: Vec<&Account> = world.accounts.iter().filter(fits).collect();
    if query.one("order_by") == Some("updated_at") {
        found.sort_by_key(|account| account.updated_at);
    }
    if query.one("order_direction") != Some("asc") {
        found.reverse();
    }
    Ok(Json(page.cut(found, |account| account.wire(&world))))
}

#[derive(Debug, Deserialize)]
struct Create {
    auth_config: AuthConfigId,
    connection: Connection,
}

#[derive(Debug, Deserialize)]
struct AuthConfigId {
    id: String,
}

#[derive(Debug, Deserialize)]
struct Connection {
    user_id: Option<String>,
    callback_url: Option<String>,
    state: Option<InitialState>,
}

#[derive(Debug, Deserialize)]
struct InitialState {
    #[serde(default)]
    val: Map<String, Value>,
}

/// Accounts whose credentials the caller has. Whoever needs a person for it must make a link.
async fn create(State(shared): SharedState, JsonBody(order): JsonBody<Create>) -> Result<(StatusCode, Json<Value>), Refusal> {
    let mut world = shared.world();
    let config = auth::find(&world, &order.auth_config.id)?.clone();
    check_enabled(&config)?;
    if config.managed && config.scheme == "OAUTH2" {
        let message = "Accounts of managed OAuth auth configs are no longer made here; make a link";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, 600, "ConnectedAccount_BadRequest", message).fix("POST /connected_accounts/link"));
    }
    let values = order.connection.state.map(|given| given.val).unwrap_or_default();
    let user_id = order.connection.user_id.unwrap_or_else(|| "default".to_owned());
    let account = if config.scheme == "OAUTH2" && !values.contains_key("access_token") {
        begin(&mut world, &shared.origin, &config, user_id, order.connection.callback_url, None).0
    } else {
        let missing = missing(&world, &config, &values);
        if !missing.is_empty() {
            return Err(Refusal::new(
                StatusCode::BAD_REQUEST,
                601,
                "ConnectedAccount_MissingRequiredFields",
                "Required fields are missing",
            )
            .errors(missing));
        }
        let account = new_account(&mut world, &config, user_id, None, values);
        world.accounts.push(Account { status: Status::Active, ..account.clone() });
        account.id
    };
    let account = find(&world, &account)?;
    let made = json!({
        "id": account.id,
        "connectionData": account.state(),
        "status": account.status.text(),
        "redirect_url": account.redirect_url,
        "redirect_uri": account.redirect_url,
        "deprecated": {"uuid": account.uuid, "authConfigUuid": config.uuid},
    });
    Ok((StatusCode::CREATED, Json(made)))
}

/// The required fields that a person or caller did not give, one line each.
pub(crate) fn missing(world: &World, config: &AuthConfig, values: &Map<String, Value>) -> Vec<String> {
    let auth = world.catalog.toolkit(&config.toolkit).and_then(|toolkit| toolkit.auth(&config.scheme));
    auth.into_iter()
        .flat_map(|auth| &auth.account_required)
        .filter(|field| values.get(&field.name).and_then(Value::as_str).is_none_or(str::is_empty))
        .map(|field| format!("{} is missing", field.name))
        .collect()
}

fn check_enabled(config: &AuthConfig) -> Result<(), Refusal> {
    if config.enabled { Ok(()) } else { Err(Refusal::invalid(format!("Auth config {} is disabled", config.id))) }
}

#[derive(Debug, Deserialize)]
struct NewLink {
    auth_config_id: String,
    user_id: String,
    callback_url: Option<String>,
    alias: Option<String>,
    #[serde(default)]
    connection_data: Map<String, Value>,
}

async fn link(State(shared): SharedState, JsonBody(order): JsonBody<NewLink>) -> Result<(StatusCode, Json<Value>), Refusal> {
    if order.user_id.is_empty() {
        return Err(Refusal::invalid("user_id must not be empty"));
    }
    if order.callback_url.as_ref().is_some_and(|url| url::Url::parse(url).is_err()) {
        return Err(Refusal::invalid("callback_url must be a URL"));
    }
    let mut world = shared.world();
    let config = auth::find(&world, &order.auth_config_id)?.clone();
    check_enabled(&config)?;
    let (id, link) = begin(&mut world, &shared.origin, &config, order.user_id, order.callback_url, order.alias);
    let account = world.account_mut(&id).ok_or_else(|| unknown(&id))?;
    account.values = order.connection_data;
    let made = json!({
        "link_token": link.token,
        "redirect_url": account.redirect_url,
        "expires_at": iso(link.expires_at),
        "connected_account_id": id,
    });
    Ok((StatusCode::CREATED, Json(made)))
}

fn begin(
    world: &mut World,
    origin: &str,
    config: &AuthConfig,
    user_id: String,
    callback_url: Option<String>,
    alias: Option<String>,
) -> (String, Link) {
    let account = new_account(world, config, user_id, alias, Map::new());
    let id = account.id.clone();
    world.accounts.push(account);
    let link = wait_for_person(world, origin, &id, callback_url);
    (id, link)
}

fn new_account(world: &mut World, config: &AuthConfig, user_id: String, alias: Option<String>, values: Map<String, Value>) -> Account {
    let now = world.now();
    Account {
        id: world::new_id("ca"),
        uuid: world::new_uuid(),
        word_id: world::word_id(&config.toolkit, world.next()),
        alias,
        toolkit: config.toolkit.clone(),
        auth_config: config.id.clone(),
        scheme: config.scheme.clone(),
        user_id,
        status: Status::Initiated,
        reason: None,
        values,
        redirect_url: None,
        created_at: now,
        updated_at: now,
    }
}

/// Puts an account back to the start, with a new page for the person.
fn wait_for_person(world: &mut World, origin: &str, account: &str, callback_url: Option<String>) -> Link {
    let link = Link { token: world::new_id("lk"), account: account.to_owned(), callback_url, expires_at: world.now() + LINK_LIFE };
    world.turn(account, Status::Initiated, None);
    if let Some(account) = world.account_mut(account) {
        account.redirect_url = Some(format!("{origin}/link/{}", link.token));
    }
    world.links.retain(|other| other.account != account);
    world.links.push(link.clone());
    link
}

async fn one(State(shared): SharedState, Path(id): Path<String>) -> Result<Json<Value>, Refusal> {
    let world = shared.world();
    let account = find(&world, &id)?;
    let mut wire = account.wire(&world);
    wire["params"] = json!({});
    Ok(Json(wire))
}

/// An account that must be there.
pub(crate) fn find<'a>(world: &'a World, id: &str) -> Result<&'a Account, Refusal> {
    world.account(id).ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, 602, "ConnectedAccount_NotFound", format!("Connected account {id} was not found"))
}

#[derive(Debug, Deserialize)]
struct Refresh {
    redirect_url: Option<String>,
}

/// What works is renewed in place; what does not needs the person again.
async fn refresh(
    State(shared): SharedState,
    Path(id): Path<String>,
    query: QueryString,
    JsonBody(order): JsonBody<Refresh>,
) -> Result<Json<Value>, Refusal> {
    let callback_url = order.redirect_url.or_else(|| query.one("redirect_url").map(str::to_owned));
    let mut world = shared.world();
    match find(&world, &id)?.status {
        Status::Active => _ = world.turn(&id, Status::Active, None),
        Status::Inactive => return Err(Refusal::invalid(format!("Connected account {id} is disabled"))),
        _ => _ = wait_for_person(&mut world, &shared.origin, &id, callback_url),
    }
    let account = find(&world, &id)?;
    Ok(Json(json!({"id": id, "status": account.status.text(), "redirect_url": account.redirect_url})))
}

#[derive(Debug, Deserialize)]
struct Switch {
    enabled: bool,
}

async fn switch(State(shared): SharedState, Path(id): Path<String>, JsonBody(order): JsonBody<Switch>) -> Result<Json<Value>, Refusal> {
    let mut world = shared.world();
    match (find(&world, &id)?.status, order.enabled) {
        (Status::Inactive, true) => _ = world.turn(&id, Status::Active, None),
        (Status::Active, false) => _ = world.turn(&id, Status::Inactive, Some("The account was disabled")),
        (Status::Active, true) | (Status::Inactive, false) => {}
        (other, _) => return Err(Refusal::invalid(format!("Connected account {id} is {}", other.text()))),
    }
    Ok(Json(json!({"success": true})))
}

#[derive(Debug, Deserialize)]
struct Rename {
    alias: Option<String>,
}

async fn rename(State(shared): SharedState, Path(id): Path<String>, JsonBody(order): JsonBody<Rename>) -> Result<Json<Value>, Refusal> {
    let mut world = shared.world();
    let now = world.now();
    let account = world.account_mut(&id).ok_or_else(|| unknown(&id))?;
    account.alias = order.alias.or(account.alias.take());
    account.updated_at = now;
    Ok(Json(json!({"id": id, "status": account.status.text(), "success": true})))
}

async fn revoke(State(shared): SharedState, Path(id): Path<String>) -> Result<Json<Value>, Refusal> {
    let mut world = shared.world();
    let account = find(&world, &id)?;
    let tokens =
        if account.scheme == "OAUTH2" && account.status == Status::Active { json!(["access_token", "refresh_token"]) } else { json!([]) };
    world.turn(&id, Status::Revoked, Some("The account was revoked"));
    Ok(Json(json!({"revoked_tokens": tokens, "connected_account": {"id": id, "status": Status::Revoked.text()}})))
}

async fn remove(State(shared): SharedState, Path(id): Path<String>, query: QueryString) -> Result<Json<Value>, Refusal> {
    if !shared.world().remove_account(&id) {
        return Err(unknown(&id));
    }
    let mut gone = json!({"success": true});
    if query.is_true("revoke_on_delete") {
        gone["revoke_job_id"] = json!(world::new_id("job"));
    }
    Ok(Json(gone))
}

impl Account {
    pub(crate) fn wire(&self, world: &World) -> Value {
        let config = world.auth_config(&self.auth_config);
        json!({
            "id": self.id,
            "word_id": self.word_id,
            "alias": self.alias,
            "toolkit": {"slug": self.toolkit},
            "auth_config": {
                "id": self.auth_config,
                "auth_scheme": self.scheme,
                "is_composio_managed": config.is_some_and(|config| config.managed),
                "is_disabled": config.is_none_or(|config| !config.enabled),
            },
            "authScheme": self.scheme,
            "user_id": self.user_id,
            "status": self.status.text(),
            "status_reason": self.reason,
            "is_disabled": self.status == Status::Inactive,
            "state": self.state(),
            "data": self.state()["val"],
            "experimental": {"account_type": "PRIVATE"},
            "created_at": iso(self.created_at),
            "updated_at": iso(self.updated_at),
            "deprecated": {"labels": [], "uuid": self.uuid},
        })
    }

    fn state(&self) -> Value {
        let mut val = world::redacted(&self.values);
        val.insert("status".to_owned(), self.status.text().into());
        match self.status {
            Status::Initiated => _ = val.insert("redirectUrl".to_owned(), json!(self.redirect_url)),
            Status::Failed | Status::Expired => _ = val.insert("error".to_owned(), json!(self.reason)),
            _ if self.scheme == "OAUTH2" => {
                val.insert("access_token".to_owned(), json!("REDACTED"));
                val.insert("token_type".to_owned(), json!("Bearer"));
            }
            _ => {}
        }
        json!({"authScheme": self.scheme, "val": val})
    }
}
