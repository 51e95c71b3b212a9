//! Running a tool.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::post;
use axum::{Json, Router};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::catalog::{Tool, Toolkit};
use crate::refusal::Refusal;
use crate::request::JsonBody;
use crate::state::{Shared, SharedState};
use crate::world::{self, Account, Status, World};
use crate::{answer, search, tools};

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/tools/execute/{slug}", post(execute))
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Run {
    connected_account_id: Option<String>,
    user_id: Option<String>,
    /// The old name of `user_id`.
    entity_id: Option<String>,
    version: Option<String>,
    arguments: Option<Map<String, Value>>,
    text: Option<String>,
    custom_connection_data: Option<Value>,
}

async fn execute(State(shared): SharedState, Path(slug): Path<String>, JsonBody(run): JsonBody<Run>) -> Result<Json<Value>, Refusal> {
    run.start(&mut shared.world(), &slug).map(Json)
}

impl Run {
    pub(crate) fn of(user_id: &str, arguments: Map<String, Value>) -> Self {
        Self { user_id: Some(user_id.to_owned()), arguments: Some(arguments), ..Self::default() }
    }

    pub(crate) fn start(self, world: &mut World, slug: &str) -> Result<Value, Refusal> {
        let (toolkit, tool) = world.catalog.tool(slug).ok_or_else(|| tools::unknown(slug))?;
        if tool.deprecated {
            return Err(Refusal::new(
                StatusCode::GONE,
                10410,
                "Tool_ToolDeprecated",
                format!("Tool {slug} is deprecated and no longer runs"),
            ));
        }
        if self.version.as_ref().is_some_and(|version| toolkit.resolve(version).is_none()) {
            return Err(tools::unknown(slug));
        }
        if self.text.is_some() {
            return Err(match self.arguments {
                Some(_) => Refusal::invalid("Give either arguments or text, not both"),
                None => {
                    Refusal::new(StatusCode::NOT_IMPLEMENTED, 10501, "HTTP_NotImplemented", "This stand-in has no model to read text with")
                }
            });
        }
        if !toolkit.no_auth() && self.custom_connection_data.is_none() {
            self.account(world, toolkit)?.may_run(world, tool)?;
        }
        let arguments = self.arguments.unwrap_or_default();
        if let Some(problem) = problem(tool, &arguments) {
            return Ok(failed(&problem));
        }
        if let Some(words) = &tool.fails {
            return Ok(failed(words));
        }
        let user = self.user_id.or(self.entity_id);
        if slug == search::SLUG {
            return search::run(world, user.as_deref(), &arguments).map(|data| done(&data));
        }
        let output = Arc::clone(&tool.output);
        Ok(done(&answer::make(world, &output, &arguments)))
    }

    fn account<'a>(&self, world: &'a World, toolkit: &Toolkit) -> Result<&'a Account, Refusal> {
        let user = self.user_id.as_deref().or(self.entity_id.as_deref());
        let missing = |whose: String| {
            let message = format!("No connected account was found for {whose} and toolkit {}", toolkit.slug);
            Refusal::new(StatusCode::NOT_FOUND, 1810, "ActionExecute_ConnectedAccountNotFound", message).fix("Connect an account first")
        };
        let Some(id) = &self.connected_account_id else {
            let user = user.ok_or_else(|| Refusal::invalid("Give a user_id or a connected_account_id"))?;
            let theirs = |account: &&Account| account.toolkit == toolkit.slug && account.user_id == user;
            let active = world.accounts.iter().rev().filter(theirs).find(|account| account.status == Status::Active);
            return active.or_else(|| world.accounts.iter().rev().find(theirs)).ok_or_else(|| missing(format!("user {user}")));
        };
        let account = world.account(id).filter(|account| user.is_none_or(|user| user == account.user_id));
        let account = account.ok_or_else(|| missing(format!("account {id}")))?;
        if account.toolkit != toolkit.slug {
            return Err(Refusal::invalid(format!("Connected account {id} is one of {}, not of {}", account.toolkit, toolkit.slug)));
        }
        Ok(account)
    }
}

impl Account {
    fn may_run(&self, world: &World, tool: &Tool) -> Result<(), Refusal> {
        if self.status != Status::Active {
            let message = format!("Connected account {} is {}, not ACTIVE", self.id, self.status.text());
            return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, 1811, "ActionExecute_ConnectedAccountNotActive", message)
                .fix("Let the person connect again"));
        }
        let config = world.auth_config(&self.auth_config);
        let allowed = config.and_then(|config| config.tool_access.get("tools_available_for_execution")?.as_array());
        if allowed.is_some_and(|allowed| !allowed.is_empty() && !allowed.iter().any(|slug| *slug == tool.slug)) {
            let message = format!("The auth config does not let {} run", tool.slug);
            return Err(Refusal::new(StatusCode::FORBIDDEN, 10403, "ActionExecute_ToolNotAllowed", message));
        }
        Ok(())
    }
}

/// What is wrong with the arguments. Composio tells it as a failure of the tool, not of the request.
fn problem(tool: &Tool, arguments: &Map<String, Value>) -> Option<String> {
    let errors = tool.input_schema().faults(arguments);
    (!errors.is_empty()).then(|| format!("Invalid arguments for {}: {}", tool.slug, errors.join("; ")))
}

fn done(data: &Value) -> Value {
    json!({"data": data, "error": null, "successful": true, "log_id": world::new_id("log")})
}

fn failed(error: &str) -> Value {
    json!({"data": {}, "error": error, "successful": false, "log_id": world::new_id("log")})
}
