//! Tool router sessions, as much of them as clients need to make one and search in it.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::execute::Run;
use crate::refusal::Refusal;
use crate::request::JsonBody;
use crate::search;
use crate::state::{Shared, SharedState};
use crate::world::{self, World};

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/tool_router/session", post(create))
        .route("/tool_router/session/{id}", get(one))
        .route("/tool_router/session/{id}/execute", post(execute))
        .route("/tool_router/session/{id}/execute_meta", post(execute_meta))
}

#[derive(Debug, Deserialize)]
struct Create {
    user_id: String,
}

async fn create(State(shared): SharedState, JsonBody(order): JsonBody<Create>) -> Result<(StatusCode, Json<Value>), Refusal> {
    if order.user_id.is_empty() {
        return Err(Refusal::invalid("user_id must not be empty"));
    }
    let id = world::new_id("trs");
    let session = json!({
        "session_id": id,
        "mcp": {"type": "http", "url": format!("{}/tool_router/{id}/mcp", shared.origin)},
        "tool_router_tools": [search::SLUG],
        "config": {
            "user_id": order.user_id,
            "preload": {"tools": []},
            "search": {"enable": true},
            "execute": {"enable_multi_execute": false},
            "instant": {"return_instant_charge": false, "return_prices_in_search": false},
        },
        "config_version": 1,
        "warnings": [],
    });
    shared.world().sessions.push(session.clone());
    Ok((StatusCode::CREATED, Json(session)))
}

async fn one(State(shared): SharedState, Path(id): Path<String>) -> Result<Json<Value>, Refusal> {
    find(&shared.world(), &id).map(Json)
}

fn find(world: &World, id: &str) -> Result<Value, Refusal> {
    let session = world.sessions.iter().find(|session| session["session_id"] == id);
    session.cloned().ok_or_else(|| Refusal::not_found("ToolRouterV2_SessionNotFound", format!("Session {id} was not found")))
}

#[derive(Debug, Deserialize)]
struct Call {
    #[serde(alias = "slug")]
    tool_slug: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

async fn execute(State(shared): SharedState, Path(id): Path<String>, JsonBody(call): JsonBody<Call>) -> Result<Json<Value>, Refusal> {
    run(&mut shared.world(), &id, call)
}

async fn execute_meta(State(shared): SharedState, Path(id): Path<String>, JsonBody(call): JsonBody<Call>) -> Result<Json<Value>, Refusal> {
    if call.tool_slug == search::SLUG { run(&mut shared.world(), &id, call) } else { Err(crate::tools::unknown(&call.tool_slug)) }
}

fn run(world: &mut World, id: &str, call: Call) -> Result<Json<Value>, Refusal> {
    let session = find(world, id)?;
    let user = session["config"]["user_id"].as_str().unwrap_or_default();
    let ran = Run::of(user, call.arguments).start(world, &call.tool_slug)?;
    let result = if ran["successful"] == true { "completed" } else { "failed" };
    Ok(Json(json!({"result_type": result, "data": ran["data"], "error": ran["error"], "log_id": ran["log_id"]})))
}
