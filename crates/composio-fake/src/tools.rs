//! Tools, listed and described.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;

use crate::catalog::{AnswerSchema, Schema, Tool, Toolkit};
use crate::refusal::Refusal;
use crate::request::QueryString;
use crate::search;
use crate::state::{Shared, SharedState};
use crate::world::World;

const CAP: usize = 1000;

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/tools", get(list)).route("/tools/enum", get(slugs)).route("/tools/{slug}", get(one))
}

async fn list(State(shared): SharedState, query: QueryString) -> Result<Response, Refusal> {
    let page = query.page(CAP)?;
    let world = shared.world();
    let slugs = query.many("tool_slugs");
    let found: Vec<(&Toolkit, &Tool)> =
        if slugs.is_empty() { filtered(&world, &query)? } else { slugs.iter().filter_map(|slug| world.catalog.tool(slug)).collect() };
    let found = found.into_iter().filter_map(|(toolkit, tool)| Some((toolkit, tool, version(toolkit, &query)?))).collect();
    Ok(Json(page.cut(found, |(toolkit, tool, version)| details(toolkit, tool, version))).into_response())
}

fn filtered<'a>(world: &'a World, query: &QueryString) -> Result<Vec<(&'a Toolkit, &'a Tool)>, Refusal> {
    let mut toolkits: Vec<String> = query.many("toolkit_slug").into_iter().map(str::to_lowercase).collect();
    for id in query.many("auth_config_ids") {
        let config = world.auth_config(id);
        let config = config.ok_or_else(|| Refusal::not_found("AuthConfig_NotFound", format!("Auth config {id} was not found")))?;
        toolkits.push(config.toolkit.clone());
    }
    let tags = query.many("tags");
    let scopes = query.many("scopes");
    let deprecated = query.one("include_deprecated") != Some("false");
    let important = query.is_true("important");
    let has = |list: &[String], wanted: &[&str]| wanted.is_empty() || list.iter().any(|item| wanted.contains(&item.as_str()));
    let fits = |(toolkit, tool): &(&Toolkit, &Tool)| {
        (toolkits.is_empty() || toolkits.contains(&toolkit.slug))
            && has(&tool.tags, &tags)
            && has(&tool.scopes, &scopes)
            && (deprecated || !tool.deprecated)
            && (!important || tool.tags.iter().any(|tag| tag == "important"))
    };
    let found = world.catalog.tools().filter(fits);
    Ok(match query.one("query").or_else(|| query.one("search")) {
        Some(words) => search::rank(found, words).into_iter().map(|(_, pair)| pair).collect(),
        None => found.collect(),
    })
}

async fn slugs(State(shared): SharedState) -> Json<Value> {
    Json(shared.world().catalog.tools().map(|(_, tool)| tool.slug.as_str()).collect())
}

async fn one(State(shared): SharedState, Path(slug): Path<String>, query: QueryString) -> Result<Response, Refusal> {
    let world = shared.world();
    let (toolkit, tool) = world.catalog.tool(&slug).ok_or_else(|| unknown(&slug))?;
    let version = match query.one("version") {
        Some(wanted) => toolkit.resolve(wanted),
        None => version(toolkit, &query),
    };
    Ok(Json(details(toolkit, tool, version.ok_or_else(|| unknown(&slug))?)).into_response())
}

pub(crate) fn unknown(slug: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, 2401, "Tool_ToolNotFound", format!("Tool {slug} was not found"))
        .fix("Take a slug from the list of tools")
}

/// The version of a toolkit that the query asks for; none where it has no such version.
fn version<'a>(toolkit: &'a Toolkit, query: &'a QueryString) -> Option<&'a str> {
    let of_toolkit = |key: &str| key.strip_prefix("toolkit_versions[").and_then(|rest| rest.strip_suffix(']')) == Some(&toolkit.slug);
    let wanted = query.0.iter().find(|(key, _)| of_toolkit(key)).map(|(_, version)| version.as_str());
    toolkit.resolve(wanted.or_else(|| query.one("toolkit_versions")).unwrap_or("latest"))
}

/// A tool as the API shows it.
#[derive(Debug, Serialize)]
struct Details<'a> {
    slug: &'a str,
    name: &'a str,
    description: &'a str,
    human_description: &'a str,
    toolkit: ToolkitName<'a>,
    input_parameters: Schema<'a>,
    output_parameters: AnswerSchema<'a>,
    no_auth: bool,
    scopes: &'a [String],
    scope_requirements: AllOf<'a>,
    tags: &'a [String],
    version: &'a str,
    available_versions: &'a [String],
    is_deprecated: bool,
    deprecated: OldNames<'a>,
}

#[derive(Debug, Serialize)]
struct ToolkitName<'a> {
    slug: &'a str,
    name: &'a str,
    logo: String,
}

#[derive(Debug, Serialize)]
struct AllOf<'a> {
    all_of: &'a [String],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OldNames<'a> {
    display_name: &'a str,
    version: &'a str,
    #[serde(rename = "available_versions")]
    available_versions: &'a [String],
    #[serde(rename = "is_deprecated")]
    is_deprecated: bool,
    toolkit: Logo,
}

#[derive(Debug, Serialize)]
struct Logo {
    logo: String,
}

fn details<'a>(toolkit: &'a Toolkit, tool: &'a Tool, version: &'a str) -> Details<'a> {
    Details {
        slug: &tool.slug,
        name: &tool.name,
        description: &tool.description,
        human_description: &tool.description,
        toolkit: ToolkitName { slug: &toolkit.slug, name: &toolkit.name, logo: toolkit.logo() },
        input_parameters: tool.input_schema(),
        output_parameters: tool.output_schema(),
        no_auth: toolkit.no_auth(),
        scopes: &tool.scopes,
        scope_requirements: AllOf { all_of: &tool.scopes },
        tags: &tool.tags,
        version,
        available_versions: &toolkit.versions,
        is_deprecated: tool.deprecated,
        deprecated: OldNames {
            display_name: &tool.name,
            version,
            available_versions: &toolkit.versions,
            is_deprecated: tool.deprecated,
            toolkit: Logo { logo: toolkit.logo() },
        },
    }
}
