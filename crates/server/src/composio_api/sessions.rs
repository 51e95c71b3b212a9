//! `/v3.1/tool_router/session`

use axum::extract::State;
use composio_api::Refusal;
use composio_api::page::{Page, Window, commas};
use composio_api::sessions::{
    ConfigVersion, DeletedSession, ExecuteInSession, ExecuteMeta, Experimental, LinkInSession, LinkedInSession, NewSession, PatchSession,
    SearchAnswer, SearchSession, SessionAnswer, SessionResult, SessionToolkit, SessionToolkitFilter,
};
use composio_api::tools::ToolDetails;
use document::{IntoParams, ToSchema};
use http::StatusCode;
use serde::Deserialize;

use super::{ApiAnswer, Asked, ByKey};
use crate::App;
use crate::edge::auth::RunTools;
use crate::edge::{Json, PathOf, Payload};

/// The most tools, toolkits and versions on a page.
const MOST_TOOLS: usize = 500;
const MOST_TOOLKITS: usize = 50;
const MOST_VERSIONS: usize = 200;

/// Make a session of the tool router
///
/// It lets one user use some toolkits, through meta tools that find, call and connect, by slug, or over the Model Context Protocol. It ends 90
/// days after it was last used.
#[document::path(post, path = "/v3.1/tool_router/session", operation_id = "composio_create_session", tag = "Composio's API",
    security(("key" = ["run_tools"]), ("composio_key" = [])), request_body = NewSession,
    responses((status = 201, body = SessionAnswer), (status = 400, description = "Something that it names is not there, or not the user's")))]
pub(crate) async fn create(
    ByKey(scope, _): ByKey<RunTools>,
    State(app): State<App>,
    Payload(body): Payload<NewSession>,
) -> ApiAnswer<(StatusCode, Json<SessionAnswer>)> {
    Ok((StatusCode::CREATED, Json(app.composio_api.create_session(scope, body).await?)))
}

/// Read a session of the tool router
#[document::path(get, path = "/v3.1/tool_router/session/{router_session_id}", operation_id = "composio_fetch_session", tag = "Composio's API",
    security(("key" = ["run_tools"]), ("composio_key" = [])), params(("router_session_id" = String, Path)),
    responses((status = 200, body = SessionAnswer), (status = 404, description = "No such session, or it ended")))]
pub(crate) async fn fetch(
    ByKey(scope, _): ByKey<RunTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
) -> ApiAnswer<Json<SessionAnswer>> {
    let session = app.composio_api.open_session(scope, &id).await?;
    Ok(Json(app.composio_api.session(&session).await?))
}

/// Change the config of a session
///
/// Only what is given changes, and null removes a block. With `expected_config_version` nothing is changed where another version is in force.
#[document::path(patch, path = "/v3.1/tool_router/session/{router_session_id}", operation_id = "composio_patch_session", tag = "Composio's API",
    security(("key" = ["run_tools"]), ("composio_key" = [])), params(("router_session_id" = String, Path)), request_body = PatchSession,
    responses((status = 200, body = SessionAnswer), (status = 400, description = "Something that it names is not there, or not the user's"),
        (status = 404, description = "No such session, or it ended"), (status = 409, description = "Another version of the config is in force")))]
pub(crate) async fn patch(
    ByKey(scope, _): ByKey<RunTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    Payload(body): Payload<PatchSession>,
) -> ApiAnswer<Json<SessionAnswer>> {
    Ok(Json(app.composio_api.patch_session(scope, &id, body).await?))
}

/// End a session of the tool router
#[document::path(delete, path = "/v3.1/tool_router/session/{router_session_id}", operation_id = "composio_delete_session", tag = "Composio's API",
    security(("key" = ["run_tools"]), ("composio_key" = [])), params(("router_session_id" = String, Path)),
    responses((status = 200, body = DeletedSession), (status = 404, description = "No such session, or it ended")))]
pub(crate) async fn delete(
    ByKey(scope, _): ByKey<RunTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
) -> ApiAnswer<Json<DeletedSession>> {
    Ok(Json(app.composio_api.delete_session(scope, &id).await?))
}

/// A part of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ComposioPageQuery {
    /// 20 where nothing is said.
    limit: Option<String>,
    cursor: Option<String>,
}

/// List the tools of a session
///
/// The meta tools that are switched on, then those that were preloaded.
#[document::path(get, path = "/v3.1/tool_router/session/{router_session_id}/tools", operation_id = "composio_list_session_tools", tag = "Composio's API",
    security(("key" = ["run_tools"]), ("composio_key" = [])), params(("router_session_id" = String, Path), ComposioPageQuery),
    responses((status = 200, body = inline(Page<ToolDetails>)), (status = 404, description = "No such session, or it ended")))]
pub(crate) async fn tools(
    ByKey(scope, _): ByKey<RunTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    Asked(query): Asked<ComposioPageQuery>,
) -> ApiAnswer<Json<Page<ToolDetails>>> {
    // SDKs that say nothing want all of them.
    let all = MOST_TOOLS.to_string();
    let window = Window::read(query.limit.as_deref().or(Some(&all)), query.cursor.as_deref(), MOST_TOOLS)?;
    let session = app.composio_api.open_session(scope, &id).await?;
    Ok(Json(app.composio_api.session_tools(session.within(), window).await?))
}

/// Which toolkits of a session to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ComposioSessionToolkitsQuery {
    /// Slugs with commas: these, in the session or not.
    toolkits: Option<String>,
    /// `true` for those that the user has an account of.
    is_connected: Option<String>,
    /// A part of the slug, the name or the description.
    search: Option<String>,
    /// 20 where nothing is said, 50 at most.
    limit: Option<String>,
    cursor: Option<String>,
}

/// List the toolkits of a session, with the user's accounts
#[document::path(get, path = "/v3.1/tool_router/session/{router_session_id}/toolkits", operation_id = "composio_list_session_toolkits", tag = "Composio's API",
    security(("key" = ["run_tools"]), ("composio_key" = [])), params(("router_session_id" = String, Path), ComposioSessionToolkitsQuery),
    responses((status = 200, body = inline(Page<SessionToolkit>)), (status = 404, description = "No such session, or it ended")))]
pub(crate) async fn toolkits(
    ByKey(scope, _): ByKey<RunTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    Asked(query): Asked<ComposioSessionToolkitsQuery>,
) -> ApiAnswer<Json<Page<SessionToolkit>>> {
    let window = Window::read(query.limit.as_deref(), query.cursor.as_deref(), MOST_TOOLKITS)?;
    let is_connected = query.is_connected.as_deref().is_some_and(|word| word.eq_ignore_ascii_case("true"));
    let filter = SessionToolkitFilter { toolkits: commas(query.toolkits.as_deref()), is_connected, search: query.search };
    let session = app.composio_api.open_session(scope, &id).await?;
    Ok(Json(app.composio_api.session_toolkits(session.within(), &filter, window).await?))
}

/// Find tools of a session by what they shall do
#[document::path(post, path = "/v3.1/tool_router/session/{router_session_id}/search", operation_id = "composio_search_session", tag = "Composio's API",
    security(("key" = ["run_tools"]), ("composio_key" = [])), params(("router_session_id" = String, Path)), request_body = SearchSession,
    responses((status = 200, body = SearchAnswer), (status = 403, description = "Search is switched off in this session"),
        (status = 404, description = "No such session, or it ended")))]
pub(crate) async fn search(
    ByKey(scope, _): ByKey<RunTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    Payload(body): Payload<SearchSession>,
) -> ApiAnswer<Json<SearchAnswer>> {
    let session = app.composio_api.open_session(scope, &id).await?;
    Ok(Json(app.composio_api.search_in_session(session.within(), body).await?))
}

/// Run a tool in a session
///
/// Once the tool and the account are found, whatever goes wrong is a 200 whose `result_type` is `failed`, with the reason in `error`.
#[document::path(post, path = "/v3.1/tool_router/session/{router_session_id}/execute", operation_id = "composio_execute_in_session", tag = "Composio's API",
    security(("key" = ["run_tools"]), ("composio_key" = [])), params(("router_session_id" = String, Path)), request_body = ExecuteInSession,
    responses((status = 200, body = SessionResult), (status = 400, description = "No account that the call may use; code 1803"),
        (status = 403, description = "The tool is outside of the session"), (status = 404, description = "No such session or tool"),
        (status = 422, description = "The account cannot be used")))]
pub(crate) async fn execute(
    ByKey(scope, _): ByKey<RunTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    Payload(body): Payload<ExecuteInSession>,
) -> ApiAnswer<Json<SessionResult>> {
    let session = app.composio_api.open_session(scope, &id).await?;
    Ok(Json(app.composio_api.execute_in_session(session.within(), body, app.options.run_limit()).await?))
}

/// Run a meta tool in a session
#[document::path(post, path = "/v3.1/tool_router/session/{router_session_id}/execute_meta", operation_id = "composio_execute_meta", tag = "Composio's API",
    security(("key" = ["run_tools"]), ("composio_key" = [])), params(("router_session_id" = String, Path)), request_body = ExecuteMeta,
    responses((status = 200, body = SessionResult), (status = 400, description = "Not a meta tool"), (status = 403, description = "The meta tool is switched off"),
        (status = 404, description = "No such session, or it ended")))]
pub(crate) async fn execute_meta(
    ByKey(scope, _): ByKey<RunTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    Payload(body): Payload<ExecuteMeta>,
) -> ApiAnswer<Json<SessionResult>> {
    let session = app.composio_api.open_session(scope, &id).await?;
    Ok(Json(app.composio_api.execute_meta(session.within(), body, app.options.run_limit()).await?))
}

/// Begin to connect an account of a session's user
#[document::path(post, path = "/v3.1/tool_router/session/{router_session_id}/link", operation_id = "composio_link_in_session", tag = "Composio's API",
    security(("key" = ["run_tools"]), ("composio_key" = [])), params(("router_session_id" = String, Path)), request_body = LinkInSession,
    responses((status = 201, body = LinkedInSession), (status = 400, description = "The toolkit cannot be connected so"),
        (status = 403, description = "The toolkit is outside of the session"), (status = 404, description = "No such session or toolkit")))]
pub(crate) async fn link(
    ByKey(scope, _): ByKey<RunTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    Payload(body): Payload<LinkInSession>,
) -> ApiAnswer<(StatusCode, Json<LinkedInSession>)> {
    let session = app.composio_api.open_session(scope, &id).await?;
    Ok((StatusCode::CREATED, Json(app.composio_api.link_in_session(session.within(), body).await?)))
}

/// Tools of the caller's own.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct ComposioAttach {
    pub experimental: Experimental,
}

/// Name tools of the caller's own
///
/// They run in the caller's process. The answer has the slugs that models call them by; nothing is kept.
#[document::path(post, path = "/v3.1/tool_router/session/{router_session_id}/attach", operation_id = "composio_attach_to_session", tag = "Composio's API",
    security(("key" = ["run_tools"]), ("composio_key" = [])), params(("router_session_id" = String, Path)), request_body = ComposioAttach,
    responses((status = 200, body = SessionAnswer), (status = 400, description = "A slug is taken or cannot be one"), (status = 404, description = "No such session, or it ended")))]
pub(crate) async fn attach(
    ByKey(scope, _): ByKey<RunTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    Payload(body): Payload<ComposioAttach>,
) -> ApiAnswer<Json<SessionAnswer>> {
    let session = app.composio_api.open_session(scope, &id).await?;
    Ok(Json(app.composio_api.attach_to_session(&session, &body.experimental).await?))
}

/// List the configs that a session had, newest first
#[document::path(get, path = "/v3.1/tool_router/session/{router_session_id}/config_history", operation_id = "composio_list_session_configs", tag = "Composio's API",
    security(("key" = ["run_tools"]), ("composio_key" = [])), params(("router_session_id" = String, Path), ComposioPageQuery),
    responses((status = 200, body = inline(Page<ConfigVersion>)), (status = 404, description = "No such session, or it ended")))]
pub(crate) async fn history(
    ByKey(scope, _): ByKey<RunTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    Asked(query): Asked<ComposioPageQuery>,
) -> ApiAnswer<Json<Page<ConfigVersion>>> {
    let window = Window::read(query.limit.as_deref(), query.cursor.as_deref(), MOST_VERSIONS)?;
    let session = app.composio_api.open_session(scope, &id).await?;
    Ok(Json(app.composio_api.session_history(&session, window).await?))
}

/// Send a request of your own with an account's credential, in a session
///
/// It would go around what a project allows of its tools, so it is not served here.
#[document::path(post, path = "/v3.1/tool_router/session/{router_session_id}/proxy_execute", operation_id = "composio_proxy_in_session", tag = "Composio's API",
    security(("key" = ["run_tools"]), ("composio_key" = [])), params(("router_session_id" = String, Path)),
    responses((status = 404, description = "No such session, or it ended"), (status = 501, description = "Not served here")))]
pub(crate) async fn proxy(ByKey(scope, _): ByKey<RunTools>, State(app): State<App>, PathOf(id): PathOf<String>) -> ApiAnswer<Json<()>> {
    app.composio_api.open_session(scope, &id).await?;
    Err(Refusal::not_served(
        "Requests of your own with an account's credential are not served: they would go around what the project allows. Run a tool.",
    )
    .into())
}
