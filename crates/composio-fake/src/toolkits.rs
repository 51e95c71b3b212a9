//! Toolkits and their categories.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::catalog::{Auth, Field, Toolkit};
use crate::refusal::Refusal;
use crate::request::{JsonBody, Paged, QueryString};
use crate::state::{Shared, SharedState};

const CAP: usize = 1000;
const MADE: &str = "2026-01-05T09:00:00.000Z";
const CHANGED: &str = "2026-10-20T09:00:00.000Z";

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/toolkits", get(list))
        .route("/toolkits/multi", post(multi))
        .route("/toolkits/categories", get(categories))
        .route("/toolkits/{slug}", get(one))
}

async fn list(State(shared): SharedState, query: QueryString) -> Result<Json<Paged<Value>>, Refusal> {
    let wanted = ToolkitFilter {
        category: query.one("category").map(str::to_owned),
        managed_by: query.one("managed_by").map(str::to_owned),
        kind: query.one("type").map(str::to_owned),
        sort_by: query.one("sort_by").map(str::to_owned),
        search: query.one("search").map(str::to_lowercase),
        toolkits: vec![],
    };
    let page = query.page(CAP)?;
    let world = shared.world();
    Ok(Json(page.cut(wanted.of(world.catalog.toolkits())?, item)))
}

#[derive(Debug, Deserialize)]
struct ToolkitsRequest {
    #[serde(flatten)]
    wanted: ToolkitFilter,
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ToolkitFilter {
    category: Option<String>,
    managed_by: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    sort_by: Option<String>,
    search: Option<String>,
    #[serde(default)]
    toolkits: Vec<String>,
}

async fn multi(State(shared): SharedState, JsonBody(multi): JsonBody<ToolkitsRequest>) -> Result<Json<Paged<Value>>, Refusal> {
    let pairs = [("limit", multi.limit.map(|limit| limit.to_string())), ("cursor", multi.cursor)];
    let page = QueryString(pairs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()).page(CAP)?;
    let world = shared.world();
    Ok(Json(page.cut(multi.wanted.of(world.catalog.toolkits())?, item)))
}

impl ToolkitFilter {
    fn of<'a>(&self, all: impl Iterator<Item = &'a Toolkit>) -> Result<Vec<&'a Toolkit>, Refusal> {
        if self.search.as_ref().is_some_and(|search| search.chars().count() < 3) {
            return Err(Refusal::invalid("search must have at least 3 characters"));
        }
        // Nobody made a toolkit of their own here.
        let own = match (self.managed_by.as_deref(), self.kind.as_deref()) {
            (None | Some("all" | "composio"), None | Some("all" | "native")) => false,
            (Some("project"), None | Some("all" | "native" | "custom")) | (None | Some("all" | "composio"), Some("custom")) => true,
            _ => return Err(Refusal::invalid("managed_by must be composio, all or project, and type native, custom or all")),
        };
        let mut found: Vec<&Toolkit> = all.filter(|toolkit| !own && self.fits(toolkit)).collect();
        match self.sort_by.as_deref() {
            None | Some("usage") => {}
            Some("alphabetically") => found.sort_by_key(|toolkit| toolkit.name.to_lowercase()),
            Some(_) => return Err(Refusal::invalid("sort_by must be usage or alphabetically")),
        }
        Ok(found)
    }

    fn fits(&self, toolkit: &Toolkit) -> bool {
        let in_category = |wanted: &String| toolkit.categories.iter().any(|category| category.id == *wanted || category.name == *wanted);
        let has_words =
            |words: &String| [&toolkit.slug, &toolkit.name, &toolkit.description].iter().any(|text| text.to_lowercase().contains(words));
        self.category.as_ref().is_none_or(in_category)
            && self.search.as_ref().is_none_or(has_words)
            && (self.managed_by.as_deref() != Some("composio") || toolkit.managed().is_some())
            && (self.toolkits.is_empty() || self.toolkits.contains(&toolkit.slug))
    }
}

async fn categories(State(shared): SharedState) -> Json<Value> {
    let world = shared.world();
    let all: BTreeMap<&str, &str> = world
        .catalog
        .toolkits()
        .flat_map(|toolkit| &toolkit.categories)
        .map(|category| (category.id.as_str(), category.name.as_str()))
        .collect();
    let items: Vec<Value> = all.into_iter().map(|(id, name)| json!({"id": id, "name": name})).collect();
    let total = items.len();
    Json(json!({"items": items, "next_cursor": null, "total_pages": 1, "current_page": 1, "total_items": total}))
}

async fn one(State(shared): SharedState, Path(slug): Path<String>, query: QueryString) -> Result<Json<Value>, Refusal> {
    let world = shared.world();
    let toolkit = find(world.catalog.toolkit(&slug), &slug)?;
    if let Some(version) = query.one("version").filter(|version| toolkit.resolve(version).is_none()) {
        return Err(Refusal::not_found("Toolkit_VersionNotFound", format!("Toolkit {slug} has no version {version}")));
    }
    Ok(Json(details(toolkit)))
}

/// A toolkit that must be there.
pub(crate) fn find<'a>(toolkit: Option<&'a Toolkit>, slug: &str) -> Result<&'a Toolkit, Refusal> {
    toolkit.ok_or_else(|| Refusal::not_found("Toolkit_ToolkitNotFound", format!("Toolkit {slug} was not found")))
}

fn item(toolkit: &Toolkit) -> Value {
    json!({
        "slug": toolkit.slug,
        "name": toolkit.name,
        "type": "native",
        "auth_schemes": toolkit.auth.iter().map(|auth| &auth.mode).collect::<Vec<_>>(),
        "composio_managed_auth_schemes": managed_schemes(toolkit),
        "no_auth": toolkit.no_auth(),
        "is_local_toolkit": false,
        "deprecated": {"toolkitId": uuid_of(toolkit)},
        "meta": meta(toolkit, toolkit.categories.iter().map(|category| json!({"id": category.id, "name": category.name})).collect()),
    })
}

fn details(toolkit: &Toolkit) -> Value {
    let mut meta = meta(toolkit, toolkit.categories.iter().map(|category| json!({"slug": category.id, "name": category.name})).collect());
    meta["available_versions"] = toolkit.versions.clone().into();
    let managed: Vec<Value> = toolkit
        .auth
        .iter()
        .filter(|auth| auth.managed)
        .map(|auth| json!({"mode": auth.mode, "scopes": {"available": auth.scopes}}))
        .collect();
    json!({
        "slug": toolkit.slug,
        "name": toolkit.name,
        "type": "native",
        "enabled": true,
        "is_local_toolkit": false,
        "composio_managed_auth_schemes": managed_schemes(toolkit),
        "composio_managed_auth": managed,
        "auth_config_details": toolkit.auth.iter().map(|auth| auth_details(toolkit, auth)).collect::<Vec<_>>(),
        "base_url": format!("https://api.{}.example", toolkit.slug.replace('_', "-")),
        "get_current_user_endpoint": "/me",
        "meta": meta,
        "deprecated": {"toolkitId": uuid_of(toolkit), "rawProxyInfoByAuthSchemes": []},
    })
}

fn auth_details(toolkit: &Toolkit, auth: &Auth) -> Value {
    json!({
        "mode": auth.mode,
        "name": format!("{}_{}", toolkit.slug, auth.mode.to_lowercase()),
        "required_scopes": auth.scopes,
        "fields": {
            "auth_config_creation": {"required": fields(&app_fields(auth), true), "optional": []},
            "connected_account_initiation": {
                "required": fields(&auth.account_required, true),
                "optional": fields(&auth.account_optional, false),
            },
        },
    })
}

/// What somebody who brings an OAuth app of their own must give.
pub(crate) fn app_fields(auth: &Auth) -> Vec<Field> {
    if auth.mode != "OAUTH2" {
        return vec![];
    }
    let field = |name: &str, shown: &str, secret| Field {
        name: name.to_owned(),
        display_name: shown.to_owned(),
        description: format!("The {} of your OAuth app.", shown.to_lowercase()),
        secret,
        default: None,
    };
    vec![field("client_id", "Client id", false), field("client_secret", "Client secret", true)]
}

pub(crate) fn fields(fields: &[Field], required: bool) -> Vec<Value> {
    let write = |field: &Field| {
        json!({
            "name": field.name,
            "displayName": field.display_name,
            "type": "string",
            "description": field.description,
            "required": required,
            "default": field.default,
            "is_secret": field.secret,
            "user_visible": true,
        })
    };
    fields.iter().map(write).collect()
}

fn managed_schemes(toolkit: &Toolkit) -> Vec<&str> {
    toolkit.auth.iter().filter(|auth| auth.managed).map(|auth| auth.mode.as_str()).collect()
}

fn meta(toolkit: &Toolkit, categories: Vec<Value>) -> Value {
    json!({
        "created_at": MADE,
        "updated_at": CHANGED,
        "description": toolkit.description,
        "logo": toolkit.logo(),
        "app_url": toolkit.url,
        "categories": categories,
        "triggers_count": toolkit.triggers.len(),
        "tools_count": toolkit.tools.len(),
        "version": toolkit.version(),
    })
}

/// An old-style id, the same every time.
fn uuid_of(toolkit: &Toolkit) -> String {
    let number = toolkit.slug.bytes().fold(7u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    format!("00000000-0000-4000-8000-{:012x}", number & 0xffff_ffff_ffff)
}
