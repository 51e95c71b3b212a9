//! `/v3.1/triggers_types` and `/v3.1/trigger_instances`

use axum::extract::State;
use composio_api::Refusal;
use composio_api::page::{Page, commas};
use composio_api::tools::Versions;
use composio_api::trigger_instances::{NewTrigger, TriggerBody, TriggerFilter, UpsertedTrigger};
use composio_api::trigger_types::TriggerTypeBody;
use document::{IntoParams, ToSchema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ApiAnswer, Asked, ByKey};
use crate::App;
use crate::edge::auth::{EditTriggers, ViewTriggers};
use crate::edge::{Json, PathOf, Payload};

/// Which trigger types to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ComposioTriggerTypesQuery {
    /// Slugs of toolkits with commas.
    toolkit_slugs: Option<String>,
    /// A version for all toolkits, or one for each as `toolkit_versions[github]=...`.
    toolkit_versions: Option<String>,
    /// 20 where nothing is said, 50 at most.
    limit: Option<String>,
    cursor: Option<String>,
}

/// List trigger types
#[document::path(get, path = "/v3.1/triggers_types", operation_id = "composio_list_trigger_types", tag = "Composio's API",
    security(("key" = ["view_triggers"]), ("composio_key" = [])), params(ComposioTriggerTypesQuery),
    responses((status = 200, body = inline(Page<TriggerTypeBody>)), (status = 404, description = "No such toolkit, or no such version")))]
pub(crate) async fn types(
    ByKey(scope, _): ByKey<ViewTriggers>,
    State(app): State<App>,
    Asked(query): Asked<ComposioTriggerTypesQuery>,
) -> ApiAnswer<Json<Page<TriggerTypeBody>>> {
    let toolkits = commas(query.toolkit_slugs.as_deref());
    let versions = Versions::read(query.toolkit_versions.as_deref())?;
    Ok(Json(app.composio_api.trigger_types(scope, &toolkits, &versions, query.limit.as_deref(), query.cursor.as_deref()).await?))
}

/// List the slugs of all trigger types
#[document::path(get, path = "/v3.1/triggers_types/list/enum", operation_id = "composio_list_trigger_slugs", tag = "Composio's API",
    security(("key" = ["view_triggers"]), ("composio_key" = [])), responses((status = 200, body = Vec<String>)))]
pub(crate) async fn slugs(ByKey(scope, _): ByKey<ViewTriggers>, State(app): State<App>) -> ApiAnswer<Json<Vec<String>>> {
    Ok(Json(app.composio_api.trigger_slugs(scope).await?))
}

/// The version that is meant.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ComposioTriggerVersionQuery {
    /// A version for all toolkits, or one for each as `toolkit_versions[github]=...`.
    toolkit_versions: Option<String>,
}

/// Read a trigger type
#[document::path(get, path = "/v3.1/triggers_types/{slug}", operation_id = "composio_fetch_trigger_type", tag = "Composio's API",
    security(("key" = ["view_triggers"]), ("composio_key" = [])), params(("slug" = String, Path), ComposioTriggerVersionQuery),
    responses((status = 200, body = TriggerTypeBody), (status = 404, description = "No such trigger type, or no such version")))]
pub(crate) async fn fetch_type(
    ByKey(scope, _): ByKey<ViewTriggers>,
    State(app): State<App>,
    PathOf(slug): PathOf<String>,
    Asked(query): Asked<ComposioTriggerVersionQuery>,
) -> ApiAnswer<Json<TriggerTypeBody>> {
    let versions = Versions::read(query.toolkit_versions.as_deref())?;
    Ok(Json(app.composio_api.trigger_type(scope, &slug, &versions).await?))
}

/// What a trigger shall be. Older names of the same things are taken too.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = composio::UpsertTrigger)]
pub struct UpsertTriggerBody {
    /// Whose newest working account is watched, where none is named.
    pub user_id: Option<String>,
    #[serde(alias = "connectedAuthId")]
    pub connected_account_id: Option<String>,
    #[serde(alias = "triggerConfig")]
    #[schema(value_type = Option<Object>)]
    pub trigger_config: Option<Map<String, Value>>,
    /// A version, or a version for each toolkit.
    #[schema(value_type = Option<crate::shapes::ObjectOrText>)]
    pub toolkit_versions: Option<Value>,
    pub version: Option<String>,
    /// Not served here: events go to the project's webhook.
    pub egress_url: Option<String>,
}

/// A version as a query would say it.
fn versions(body: &UpsertTriggerBody) -> Result<Versions, Refusal> {
    match &body.toolkit_versions {
        None | Some(Value::Null) => Versions::read(body.version.as_deref()),
        Some(Value::String(text)) => Versions::read(Some(text)),
        Some(Value::Object(each)) => Versions::read(Some(&Value::Object(each.clone()).to_string())),
        Some(_) => Err(Refusal::bad_request("`toolkit_versions` must be a version, or a version for each toolkit.")),
    }
}

fn no_egress(url: Option<&str>) -> Result<(), Refusal> {
    match url.filter(|url| !url.is_empty()) {
        None => Ok(()),
        Some(_) => Err(Refusal::bad_request("`egress_url` is not served here: events go to the project's webhook.")
            .fix("Leave it out, and create a webhook subscription.")),
    }
}

/// Make a trigger, or enable the one that watches the same
#[document::path(post, path = "/v3.1/trigger_instances/{slug}/upsert", operation_id = "composio_upsert_trigger", tag = "Composio's API",
    security(("key" = ["edit_triggers"]), ("composio_key" = [])), params(("slug" = String, Path)), request_body = UpsertTriggerBody,
    responses((status = 200, body = UpsertedTrigger), (status = 400, description = "A bad configuration, or no account (code 1803)"),
        (status = 404, description = "No such trigger type, or no such version"), (status = 422, description = "The account cannot be used"),
        (status = 424, description = "The service refused")))]
pub(crate) async fn upsert(
    ByKey(scope, _): ByKey<EditTriggers>,
    State(app): State<App>,
    PathOf(slug): PathOf<String>,
    Payload(body): Payload<UpsertTriggerBody>,
) -> ApiAnswer<Json<UpsertedTrigger>> {
    no_egress(body.egress_url.as_deref())?;
    let versions = versions(&body)?;
    let config = body.trigger_config.unwrap_or_default();
    let new = NewTrigger { user: body.user_id, account: body.connected_account_id, config, versions };
    Ok(Json(Box::pin(app.composio_api.upsert_trigger(scope, &slug, new)).await?))
}

/// Which trigger instances to list; lists are one text with commas.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ComposioTriggersQuery {
    #[serde(alias = "triggerIds")]
    trigger_ids: Option<String>,
    #[serde(alias = "triggerNames")]
    trigger_names: Option<String>,
    #[serde(alias = "connectedAccountIds")]
    connected_account_ids: Option<String>,
    #[serde(alias = "authConfigIds")]
    auth_config_ids: Option<String>,
    user_ids: Option<String>,
    /// `true` for those too that are disabled.
    #[serde(alias = "showDisabled")]
    show_disabled: Option<String>,
    /// 20 where nothing is said, 100 at most.
    limit: Option<String>,
    cursor: Option<String>,
}

/// List trigger instances, newest first
#[document::path(get, path = "/v3.1/trigger_instances/active", operation_id = "composio_list_triggers", tag = "Composio's API",
    security(("key" = ["view_triggers"]), ("composio_key" = [])), params(ComposioTriggersQuery), responses((status = 200, body = inline(Page<TriggerBody>))))]
pub(crate) async fn list(
    ByKey(scope, _): ByKey<ViewTriggers>,
    State(app): State<App>,
    Asked(query): Asked<ComposioTriggersQuery>,
) -> ApiAnswer<Json<Page<TriggerBody>>> {
    let filter = TriggerFilter {
        ids: commas(query.trigger_ids.as_deref()),
        slugs: commas(query.trigger_names.as_deref()),
        accounts: commas(query.connected_account_ids.as_deref()),
        auth_configs: commas(query.auth_config_ids.as_deref()),
        users: commas(query.user_ids.as_deref()),
        show_disabled: query.show_disabled.is_some_and(|text| text.eq_ignore_ascii_case("true")),
    };
    Ok(Json(app.composio_api.triggers(scope, &filter, query.limit.as_deref(), query.cursor.as_deref()).await?))
}

/// What becomes of a trigger.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = composio::ChangeTrigger)]
pub struct ChangeTriggerBody {
    /// `enable` or `disable`.
    pub status: Option<String>,
    /// Not served here: events go to the project's webhook.
    pub egress_url: Option<String>,
}

/// It was done.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = composio::ChangedTrigger)]
pub struct ChangedTrigger {
    /// Always `success`.
    #[schema(value_type = String)]
    pub status: &'static str,
}

/// Enable or disable a trigger
#[document::path(patch, path = "/v3.1/trigger_instances/manage/{trigger_id}", operation_id = "composio_change_trigger", tag = "Composio's API",
    security(("key" = ["edit_triggers"]), ("composio_key" = [])), params(("trigger_id" = String, Path)), request_body = ChangeTriggerBody,
    responses((status = 200, body = ChangedTrigger), (status = 404, description = "No such trigger"), (status = 424, description = "The service refused")))]
pub(crate) async fn change(
    ByKey(scope, _): ByKey<EditTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    Payload(body): Payload<ChangeTriggerBody>,
) -> ApiAnswer<Json<ChangedTrigger>> {
    no_egress(body.egress_url.as_deref())?;
    let enable = match body.status.as_deref() {
        Some("enable") => true,
        Some("disable") => false,
        _ => return Err(Refusal::bad_request("`status` must be `enable` or `disable`.").into()),
    };
    app.composio_api.switch_trigger(scope, &id, enable).await?;
    Ok(Json(ChangedTrigger { status: "success" }))
}

/// The trigger that is gone.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = composio::DeletedTrigger)]
pub struct DeletedTrigger {
    pub trigger_id: String,
}

/// Delete a trigger; what it sent stays in the log
#[document::path(delete, path = "/v3.1/trigger_instances/manage/{trigger_id}", operation_id = "composio_delete_trigger", tag = "Composio's API",
    security(("key" = ["edit_triggers"]), ("composio_key" = [])), params(("trigger_id" = String, Path)),
    responses((status = 200, body = DeletedTrigger), (status = 404, description = "No such trigger")))]
pub(crate) async fn delete(
    ByKey(scope, _): ByKey<EditTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
) -> ApiAnswer<Json<DeletedTrigger>> {
    Ok(Json(DeletedTrigger { trigger_id: app.composio_api.delete_trigger(scope, &id).await? }))
}
