//! The page at which a person connects an account.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Form, Path, State};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use http::StatusCode;
use serde_json::{Map, Value, json};
use url::Url;

use crate::accounts;
use crate::catalog::Field;
use crate::state::{Shared, SharedState};
use crate::world::{Account, Link, Status, World};

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/link/{token}", get(show).post(answer))
}

async fn show(State(shared): SharedState, Path(token): Path<String>) -> Response {
    let world = shared.world();
    let Some((_, account)) = open(&world, &token) else { return gone() };
    let fields: Vec<&Field> = wanted(&world, account);
    let inputs: String = fields.iter().map(|field| input(field)).collect();
    let action = if fields.is_empty() { "Allow" } else { "Connect" };
    let toolkit = world.catalog.toolkit(&account.toolkit).map_or(account.toolkit.as_str(), |toolkit| &toolkit.name);
    Html(format!(
        "<!doctype html><title>Connect {toolkit}</title><h1>Connect {toolkit}</h1><form method=\"post\">{inputs}\
         <button name=\"answer\" value=\"allow\">{action}</button> <button name=\"answer\" value=\"deny\" formnovalidate>Deny</button></form>",
    ))
    .into_response()
}

async fn answer(State(shared): SharedState, Path(token): Path<String>, Form(form): Form<Vec<(String, String)>>) -> Response {
    let mut world = shared.world();
    let Some((link, account)) = open(&world, &token).map(|(link, account)| (link.clone(), account.clone())) else { return gone() };
    let mut values = account.values.clone();
    values.extend(form.iter().filter(|(name, _)| name != "answer").map(|(name, value)| (name.clone(), json!(value))));
    let denied = form.iter().any(|(name, value)| name == "answer" && value == "deny");
    let missing = world.auth_config(&account.auth_config).map(|config| accounts::missing(&world, config, &values)).unwrap_or_default();
    if !denied && !missing.is_empty() {
        return (StatusCode::UNPROCESSABLE_ENTITY, Html(format!("<!doctype html><p>{}.</p>", missing.join(", ")))).into_response();
    }
    finish(&mut world, &account.id, values, denied);
    match link.callback_url.as_deref().and_then(|url| Url::parse(url).ok()) {
        Some(url) => Redirect::to(back(url, &account.id, denied).as_str()).into_response(),
        None => Html("<!doctype html><p>You can close this window.</p>").into_response(),
    }
}

/// Ends the wait for a person, and with it the link.
pub(crate) fn finish(world: &mut World, account: &str, values: Map<String, Value>, denied: bool) -> bool {
    if denied {
        return world.turn(account, Status::Failed, Some("The person denied it"));
    }
    let done = world.turn(account, Status::Active, None);
    if let Some(account) = world.account_mut(account) {
        account.values.extend(values);
    }
    done
}

/// Where the person's browser goes afterwards; what the address has in its query stays.
fn back(mut url: Url, account: &str, denied: bool) -> Url {
    let mut query = url.query_pairs_mut();
    query.append_pair("connected_account_id", account).append_pair("status", if denied { "failed" } else { "success" });
    if denied {
        query.append_pair("error_message", "The person denied it");
    }
    drop(query);
    url
}

fn open<'a>(world: &'a World, token: &str) -> Option<(&'a Link, &'a Account)> {
    let link = world.links.iter().find(|link| link.token == token)?;
    Some((link, world.account(&link.account)?))
}

fn gone() -> Response {
    (StatusCode::GONE, Html("<!doctype html><p>This link was used already or is too old.</p>")).into_response()
}

/// The fields that the caller did not fill in for the person.
fn wanted<'a>(world: &'a World, account: &Account) -> Vec<&'a Field> {
    let auth = world.catalog.toolkit(&account.toolkit).and_then(|toolkit| toolkit.auth(&account.scheme));
    auth.into_iter().flat_map(|auth| &auth.account_required).filter(|field| !account.values.contains_key(&field.name)).collect()
}

fn input(field: &Field) -> String {
    let kind = if field.secret { "password" } else { "text" };
    format!(
        "<p><label>{}<br><input name=\"{}\" type=\"{kind}\" required></label><br><small>{}</small></p>",
        field.display_name, field.name, field.description
    )
}
