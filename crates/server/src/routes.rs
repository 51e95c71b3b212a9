//! The route table: every path that Toolyard answers. A route that is not documented cannot be mounted.

use axum::Router;
use axum::extract::Request;
use tower::Layer;
use tower::util::{MapRequest, MapRequestLayer};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, Predicate, SizeAbove};
use tower_http::cors::{AllowHeaders, AllowOrigin, Any, CorsLayer};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::document::{Document, finished};
use crate::edge::{mount, watch};
use crate::{
    App, access, admin, agents, aliases, composio_api, dashboard, end_users, environments, grants, keys, mcp, model_api, oauth, operations,
    pages, people, project, secrets, tools, triggers, workflows,
};

/// Bodies of so many bytes and more are compressed for whoever takes that; a packet holds what is smaller.
const WORTH_COMPRESSING: u64 = 1024;

/// In parts: unoptimised, one expression with all of them needs more than a thread's stack.
fn table() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Document::openapi())
        .merge(server_table())
        .merge(tool_table())
        .merge(event_table())
        .merge(workflow_table())
        .merge(trigger_table())
        .merge(people_table())
        .merge(alias_table())
        .merge(composio_table())
}

/// The server itself, its operator, and what a project keeps.
fn server_table() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(operations::root::root))
        .routes(routes!(operations::health::health))
        .routes(routes!(operations::health::ready))
        .routes(routes!(operations::metrics))
        .routes(routes!(operations::docs::document))
        .routes(routes!(operations::docs::page))
        .routes(routes!(admin::simple_accounts::create, admin::simple_accounts::delete))
        .routes(routes!(admin::projects::create, admin::projects::list))
        .routes(routes!(admin::projects::delete))
        .routes(routes!(admin::keys::create, admin::keys::list))
        .routes(routes!(admin::keys::revoke))
        .routes(routes!(admin::status::fetch))
        .routes(routes!(tools::oauth_apps::set_everywhere, tools::oauth_apps::list_everywhere))
        .routes(routes!(tools::oauth_apps::delete_everywhere))
        .routes(routes!(access::check))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::revoke))
        .routes(routes!(project::branding::fetch, project::branding::set))
        .routes(routes!(project::connect_links::fetch, project::connect_links::set))
        .routes(routes!(project::retention::fetch, project::retention::set))
        .routes(routes!(project::user_limits::fetch, project::user_limits::set))
        .routes(routes!(secrets::rows::list, secrets::rows::create))
        .routes(routes!(secrets::rows::fetch, secrets::rows::change, secrets::rows::delete))
        .routes(routes!(secrets::reads::list))
}

/// Tools and agents.
fn tool_table() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(tools::catalog::providers))
        .routes(routes!(tools::catalog::provider))
        .routes(routes!(tools::catalog::integrations))
        .routes(routes!(tools::catalog::categories))
        .routes(routes!(tools::catalog::integration))
        .routes(routes!(tools::catalog::actions))
        .routes(routes!(tools::catalog::action))
        .routes(routes!(tools::connections::query))
        .routes(routes!(tools::connections::create))
        .routes(routes!(tools::hooks::list, tools::hooks::create))
        .routes(routes!(tools::hooks::delete))
        .routes(routes!(tools::hooks::messages))
        .routes(routes!(tools::hooks::retry))
        .routes(routes!(pages::callback))
        .routes(routes!(pages::callback_of_app))
        .routes(routes!(tools::connections::fetch, tools::connections::edit, tools::connections::delete))
        .routes(routes!(tools::connections::refresh))
        .routes(routes!(tools::connections::revoke))
        .routes(routes!(tools::connections::usage))
        .routes(routes!(tools::connections::consumers))
        .routes(routes!(tools::oauth_apps::set, tools::oauth_apps::list))
        .routes(routes!(tools::oauth_apps::redirect))
        .routes(routes!(tools::oauth_apps::delete))
        .routes(routes!(tools::imports::list))
        .routes(routes!(tools::imports::openapi))
        .routes(routes!(tools::imports::mcp))
        .routes(routes!(tools::imports::fetch, tools::imports::delete))
        .routes(routes!(tools::imports::refresh))
        .routes(routes!(tools::resolve::resolve))
        .routes(routes!(tools::resolve::specs))
        .routes(routes!(tools::resolve::schema))
        .routes(routes!(tools::discover::tools))
        .routes(routes!(tools::discover::events))
        .routes(routes!(tools::learned::list, tools::learned::set, tools::learned::clear))
        .routes(routes!(tools::learned::forget))
        .routes(routes!(tools::ops::list))
        .routes(routes!(tools::ops::call))
        .routes(routes!(tools::approvals::list))
        .routes(routes!(tools::notices::list, tools::notices::create))
        .routes(routes!(tools::notices::delete))
        .routes(routes!(tools::notices::test))
        .routes(routes!(tools::approvals::fetch, tools::approvals::decide))
        .routes(routes!(tools::approvals::policy, tools::approvals::set_policy))
        .routes(routes!(tools::approvals::explain))
        .routes(routes!(tools::call::call))
        .routes(routes!(tools::calls::list))
        .routes(routes!(tools::call_stats::stats))
        .routes(routes!(tools::calls::keeping, tools::calls::set_keeping))
        .routes(routes!(tools::calls::fetch))
        .routes(routes!(tools::market::connected))
        .routes(routes!(tools::market::workspace))
        .routes(routes!(tools::market::marketplace))
        .routes(routes!(tools::market::stats))
        .routes(routes!(tools::market::add))
        .routes(routes!(tools::market::remove))
        .routes(routes!(tools::market::app_actions))
        .routes(routes!(tools::market::app_triggers))
        .routes(routes!(agents::rows::types))
        .routes(routes!(agents::rows::stats))
        .routes(routes!(agents::daily::days))
        .routes(routes!(agents::rows::create_all))
        .routes(routes!(agents::rows::create, agents::rows::list))
        .routes(routes!(agents::rows::fetch, agents::rows::edit, agents::rows::delete))
        .routes(routes!(agents::rows::status))
        .routes(routes!(agents::tools::add))
        .routes(routes!(agents::tools::remove))
        .routes(routes!(agents::tools::history))
        .routes(routes!(agents::toolset::toolset))
        .routes(routes!(agents::toolset::call))
}

/// What can be waited for, and where.
fn event_table() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(triggers::catalog::providers))
        .routes(routes!(triggers::catalog::provider))
        .routes(routes!(triggers::catalog::integrations))
        .routes(routes!(triggers::catalog::integration))
        .routes(routes!(triggers::catalog::events))
        .routes(routes!(triggers::catalog::event))
        .routes(routes!(triggers::connections::query))
        .routes(routes!(triggers::connections::create))
        .routes(routes!(triggers::connections::fetch, triggers::connections::edit, triggers::connections::delete))
        .routes(routes!(triggers::connections::refresh))
        .routes(routes!(triggers::connections::revoke))
        .routes(routes!(triggers::connections::usage))
        .routes(routes!(triggers::connections::consumers))
}

/// Workflows and environments.
fn workflow_table() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(workflows::invoke::invoke))
        .routes(routes!(workflows::runs::list))
        .routes(routes!(workflows::run_stats::fetch))
        .routes(routes!(workflows::runs::fetch))
        .routes(routes!(workflows::runs::cancel))
        .routes(routes!(workflows::stream::events))
        .routes(routes!(model_api::models))
        .routes(routes!(model_api::completions::completions))
        .routes(routes!(model_api::responses::create))
        .routes(routes!(workflows::runs::signing_secret))
        .routes(routes!(workflows::check::check))
        .routes(routes!(workflows::history::query))
        .routes(routes!(workflows::history::create))
        .routes(routes!(workflows::history::fetch, workflows::history::edit))
        .routes(routes!(workflows::history::archive))
        .routes(routes!(workflows::history::unarchive))
        .routes(routes!(workflows::history::query_variants))
        .routes(routes!(workflows::history::create_variant))
        .routes(routes!(workflows::history::fork))
        .routes(routes!(workflows::history::fetch_variant, workflows::history::edit_variant))
        .routes(routes!(workflows::history::archive_variant))
        .routes(routes!(workflows::history::unarchive_variant))
        .routes(routes!(workflows::history::query_revisions))
        .routes(routes!(workflows::history::create_revision))
        .routes(routes!(workflows::history::commit))
        .routes(routes!(workflows::history::log))
        .routes(routes!(workflows::history::retrieve))
        .routes(routes!(workflows::history::resolve))
        .routes(routes!(workflows::deploy::deploy))
        .routes(routes!(workflows::history::fetch_revision, workflows::history::edit_revision))
        .routes(routes!(workflows::history::archive_revision))
        .routes(routes!(workflows::history::unarchive_revision))
        .routes(routes!(workflows::simple::query))
        .routes(routes!(workflows::simple::create))
        .routes(routes!(workflows::simple::fetch, workflows::simple::edit))
        .routes(routes!(workflows::simple::archive))
        .routes(routes!(workflows::simple::unarchive))
        .routes(routes!(environments::history::query))
        .routes(routes!(environments::history::create))
        .routes(routes!(environments::history::fetch, environments::history::edit))
        .routes(routes!(environments::history::archive))
        .routes(routes!(environments::history::unarchive))
        .routes(routes!(environments::history::query_variants))
        .routes(routes!(environments::history::create_variant))
        .routes(routes!(environments::history::fork))
        .routes(routes!(environments::history::fetch_variant, environments::history::edit_variant))
        .routes(routes!(environments::history::archive_variant))
        .routes(routes!(environments::history::unarchive_variant))
        .routes(routes!(environments::history::query_revisions))
        .routes(routes!(environments::history::create_revision))
        .routes(routes!(environments::history::commit))
        .routes(routes!(environments::history::log))
        .routes(routes!(environments::history::retrieve))
        .routes(routes!(environments::history::resolve))
        .routes(routes!(environments::history::fetch_revision, environments::history::edit_revision))
        .routes(routes!(environments::history::archive_revision))
        .routes(routes!(environments::history::unarchive_revision))
        .routes(routes!(environments::simple::query))
        .routes(routes!(environments::simple::create))
        .routes(routes!(environments::simple::fetch, environments::simple::edit))
        .routes(routes!(environments::simple::archive))
        .routes(routes!(environments::simple::unarchive))
        .routes(routes!(environments::simple::guard))
        .routes(routes!(environments::simple::unguard))
}

/// Triggers and what becomes of them.
fn trigger_table() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(triggers::subscriptions::create, triggers::subscriptions::list))
        .routes(routes!(triggers::subscriptions::query))
        .routes(routes!(triggers::subscriptions::test))
        .routes(routes!(triggers::subscriptions::fetch, triggers::subscriptions::edit, triggers::subscriptions::delete))
        .routes(routes!(triggers::subscriptions::start))
        .routes(routes!(triggers::subscriptions::stop))
        .routes(routes!(triggers::subscriptions::refresh))
        .routes(routes!(triggers::subscriptions::revoke))
        .routes(routes!(triggers::schedules::create, triggers::schedules::list))
        .routes(routes!(triggers::schedules::query))
        .routes(routes!(triggers::schedules::preview))
        .routes(routes!(triggers::schedules::fetch, triggers::schedules::edit, triggers::schedules::delete))
        .routes(routes!(triggers::schedules::start))
        .routes(routes!(triggers::schedules::stop))
        .routes(routes!(triggers::schedules::run))
        .routes(routes!(triggers::schedules::tick))
        .routes(routes!(triggers::stats::fetch))
        .routes(routes!(triggers::deliveries::list))
        .routes(routes!(triggers::deliveries::query))
        .routes(routes!(triggers::deliveries::replay))
        .routes(routes!(triggers::deliveries::fetch))
        .routes(routes!(triggers::deliveries::retry))
        .routes(routes!(triggers::deliveries::cancel))
        .routes(routes!(triggers::deliveries::complete))
        .routes(routes!(triggers::deliveries::event))
        .routes(routes!(triggers::deliveries::preview))
        .routes(routes!(triggers::ingress::native, triggers::ingress::handshake))
        .routes(routes!(triggers::ingress::composio))
}

/// People, and the clients that act for them.
fn people_table() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(pages::show, pages::submit))
        .routes(routes!(pages::sign_in::show, pages::sign_in::submit))
        .routes(routes!(pages::sign_in::sign_out))
        .routes(routes!(pages::provider::start))
        .routes(routes!(pages::provider::callback))
        .routes(routes!(pages::link::show, pages::link::submit))
        .routes(routes!(pages::invitation::show, pages::invitation::submit))
        .routes(routes!(pages::account::show, pages::account::submit))
        .routes(routes!(people::me::me))
        .routes(routes!(people::sessions::list, people::sessions::end_others))
        .routes(routes!(people::sessions::end))
        .routes(routes!(people::members::list))
        .routes(routes!(people::members::edit, people::members::remove))
        .routes(routes!(people::invitations::create, people::invitations::list))
        .routes(routes!(people::invitations::revoke))
        .routes(routes!(mcp::project::post, mcp::project::changes))
        .routes(routes!(mcp::agent::post, mcp::agent::changes))
        .routes(routes!(mcp::session::post, mcp::session::changes))
        .routes(routes!(end_users::rows::list))
        .routes(routes!(end_users::rows::export, end_users::rows::forget))
        .routes(routes!(end_users::sessions::create, end_users::sessions::list))
        .routes(routes!(end_users::session_tools::fetch, end_users::sessions::revoke))
        .routes(routes!(end_users::session_tools::tools))
        .routes(routes!(end_users::session_tools::find))
        .routes(routes!(end_users::session_tools::call))
        .routes(routes!(end_users::session_tools::connect))
        .routes(routes!(end_users::session_tools::accounts))
        .routes(routes!(end_users::session_tools::decide))
        .routes(routes!(end_users::session_triggers::events))
        .routes(routes!(end_users::session_triggers::list, end_users::session_triggers::create))
        .routes(routes!(end_users::session_triggers::delete))
        .routes(routes!(mcp::metadata::root))
        .routes(routes!(mcp::metadata::project))
        .routes(routes!(mcp::metadata::agent))
        .routes(routes!(oauth::metadata::root))
        .routes(routes!(oauth::metadata::openid))
        .routes(routes!(oauth::register::register))
        .routes(routes!(oauth::authorize::show, oauth::authorize::decide))
        .routes(routes!(oauth::token::token))
        .routes(routes!(oauth::revoke::revoke))
        .routes(routes!(oauth::introspect::introspect))
        .routes(routes!(oauth::device::begin))
        .routes(routes!(oauth::device::show, oauth::device::decide))
        .routes(routes!(grants::list))
        .routes(routes!(grants::fetch, grants::revoke))
        .routes(routes!(grants::own))
        .routes(routes!(grants::revoke_own))
}

/// Workflows under other names.
fn alias_table() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(aliases::applications::history::query))
        .routes(routes!(aliases::applications::history::create))
        .routes(routes!(aliases::applications::history::fetch, aliases::applications::history::edit))
        .routes(routes!(aliases::applications::history::archive))
        .routes(routes!(aliases::applications::history::unarchive))
        .routes(routes!(aliases::applications::history::query_variants))
        .routes(routes!(aliases::applications::history::create_variant))
        .routes(routes!(aliases::applications::history::fork))
        .routes(routes!(aliases::applications::history::fetch_variant, aliases::applications::history::edit_variant))
        .routes(routes!(aliases::applications::history::archive_variant))
        .routes(routes!(aliases::applications::history::unarchive_variant))
        .routes(routes!(aliases::applications::history::query_revisions))
        .routes(routes!(aliases::applications::history::create_revision))
        .routes(routes!(aliases::applications::history::commit))
        .routes(routes!(aliases::applications::history::log))
        .routes(routes!(aliases::applications::history::retrieve))
        .routes(routes!(aliases::applications::history::resolve))
        .routes(routes!(aliases::applications::deploy::deploy))
        .routes(routes!(aliases::applications::history::fetch_revision, aliases::applications::history::edit_revision))
        .routes(routes!(aliases::applications::history::archive_revision))
        .routes(routes!(aliases::applications::history::unarchive_revision))
        .routes(routes!(aliases::applications::simple::query))
        .routes(routes!(aliases::applications::simple::create))
        .routes(routes!(aliases::applications::simple::fetch, aliases::applications::simple::edit))
        .routes(routes!(aliases::applications::simple::archive))
        .routes(routes!(aliases::applications::simple::unarchive))
        .routes(routes!(aliases::evaluators::history::query))
        .routes(routes!(aliases::evaluators::history::create))
        .routes(routes!(aliases::evaluators::history::fetch, aliases::evaluators::history::edit))
        .routes(routes!(aliases::evaluators::history::archive))
        .routes(routes!(aliases::evaluators::history::unarchive))
        .routes(routes!(aliases::evaluators::history::query_variants))
        .routes(routes!(aliases::evaluators::history::create_variant))
        .routes(routes!(aliases::evaluators::history::fork))
        .routes(routes!(aliases::evaluators::history::fetch_variant, aliases::evaluators::history::edit_variant))
        .routes(routes!(aliases::evaluators::history::archive_variant))
        .routes(routes!(aliases::evaluators::history::unarchive_variant))
        .routes(routes!(aliases::evaluators::history::query_revisions))
        .routes(routes!(aliases::evaluators::history::create_revision))
        .routes(routes!(aliases::evaluators::history::commit))
        .routes(routes!(aliases::evaluators::history::log))
        .routes(routes!(aliases::evaluators::history::retrieve))
        .routes(routes!(aliases::evaluators::history::resolve))
        .routes(routes!(aliases::evaluators::deploy::deploy))
        .routes(routes!(aliases::evaluators::history::fetch_revision, aliases::evaluators::history::edit_revision))
        .routes(routes!(aliases::evaluators::history::archive_revision))
        .routes(routes!(aliases::evaluators::history::unarchive_revision))
        .routes(routes!(aliases::evaluators::simple::query))
        .routes(routes!(aliases::evaluators::simple::create))
        .routes(routes!(aliases::evaluators::simple::fetch, aliases::evaluators::simple::edit))
        .routes(routes!(aliases::evaluators::simple::archive))
        .routes(routes!(aliases::evaluators::simple::unarchive))
}

/// Composio's API, for its SDKs. It answers at `/v3` too: see `mount`.
fn composio_table() -> OpenApiRouter<App> {
    composio_catalog_table().merge(composio_account_table()).merge(composio_trigger_table()).merge(composio_session_table())
}

/// Toolkits, tools and their execution.
fn composio_catalog_table() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(composio_api::toolkits::list))
        .routes(routes!(composio_api::toolkits::several))
        .routes(routes!(composio_api::toolkits::categories))
        .routes(routes!(composio_api::toolkits::fetch))
        .routes(routes!(composio_api::tools::list))
        .routes(routes!(composio_api::tools::slugs))
        .routes(routes!(composio_api::tools::fetch))
        .routes(routes!(composio_api::tools::execute))
        .routes(routes!(composio_api::absent::proxy))
        .routes(routes!(composio_api::absent::input))
        .routes(routes!(composio_api::absent::upload))
        .routes(routes!(composio_api::absent::realtime))
        .routes(routes!(composio_api::absent::realtime_auth))
}

/// Auth configs and connected accounts.
fn composio_account_table() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(composio_api::auth_configs::create, composio_api::auth_configs::list))
        .routes(routes!(composio_api::auth_configs::fetch, composio_api::auth_configs::change, composio_api::auth_configs::delete))
        .routes(routes!(composio_api::auth_configs::enable))
        .routes(routes!(composio_api::connected_accounts::create, composio_api::connected_accounts::list))
        .routes(routes!(composio_api::connected_accounts::link))
        .routes(routes!(
            composio_api::connected_accounts::fetch,
            composio_api::connected_accounts::change,
            composio_api::connected_accounts::delete
        ))
        .routes(routes!(composio_api::connected_accounts::enable))
        .routes(routes!(composio_api::connected_accounts::refresh))
        .routes(routes!(composio_api::connected_accounts::revoke))
}

/// Trigger types, trigger instances and webhook subscriptions.
fn composio_trigger_table() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(composio_api::triggers::types))
        .routes(routes!(composio_api::triggers::slugs))
        .routes(routes!(composio_api::triggers::fetch_type))
        .routes(routes!(composio_api::triggers::upsert))
        .routes(routes!(composio_api::triggers::list))
        .routes(routes!(composio_api::triggers::change, composio_api::triggers::delete))
        .routes(routes!(composio_api::webhooks::list, composio_api::webhooks::create))
        .routes(routes!(composio_api::webhooks::events))
        .routes(routes!(composio_api::webhooks::fetch, composio_api::webhooks::change, composio_api::webhooks::delete))
        .routes(routes!(composio_api::webhooks::rotate))
}

/// Sessions of the tool router.
fn composio_session_table() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(composio_api::sessions::create))
        .routes(routes!(composio_api::sessions::fetch, composio_api::sessions::patch, composio_api::sessions::delete))
        .routes(routes!(composio_api::sessions::tools))
        .routes(routes!(composio_api::sessions::toolkits))
        .routes(routes!(composio_api::sessions::search))
        .routes(routes!(composio_api::sessions::execute))
        .routes(routes!(composio_api::sessions::execute_meta))
        .routes(routes!(composio_api::sessions::link))
        .routes(routes!(composio_api::sessions::attach))
        .routes(routes!(composio_api::sessions::history))
        .routes(routes!(composio_api::sessions::proxy))
        .routes(routes!(mcp::tool_router::post, mcp::tool_router::changes))
}

/// The OpenAPI document.
pub fn openapi() -> utoipa::openapi::OpenApi {
    finished(table().split_for_parts().1)
}

/// Rewrites the path, then routes.
pub type Service = MapRequest<Router, fn(Request) -> Request>;

/// The routes, still without what they work on.
pub fn routes() -> Router<App> {
    table().split_for_parts().0
}

/// The whole edge as one service.
pub fn service(mut router: Router<App>, app: App) -> Service {
    if app.options.mcp_conformance {
        router = router.route(mcp::conformance::PATH, mcp::conformance::route(&app));
    }
    let router = router.fallback(watch::not_found).method_not_allowed_fallback(watch::wrong_method);
    // Ops and pages of the dashboard are requests to our own routes; they are answered without a socket and without the layers below.
    let inside = router.clone().with_state(app.clone());
    app.agent_runs.set_routes(std::sync::Arc::new(tools::ops::OwnFor { router: router.clone(), app: app.downgrade() }));
    let mut router = router
        .merge(dashboard::routes(&app, inside.clone()))
        .layer(axum::Extension(tools::ops::Inside(inside)))
        .layer(axum::middleware::from_fn_with_state(app.clone(), watch::watch))
        .layer(axum::middleware::from_fn(composio_api::envelope))
        .layer(CompressionLayer::new().compress_when(DefaultPredicate::new().and(SizeAbove::new(WORTH_COMPRESSING))))
        .layer(axum::middleware::from_fn_with_state(app.clone(), watch::compress_large));
    if !app.options.cors_origins.is_empty() {
        let origins: Vec<http::HeaderValue> = app.options.cors_origins.iter().filter_map(|origin| origin.parse().ok()).collect();
        let any = app.options.cors_origins.iter().any(|origin| origin == "*");
        let origins = if any { AllowOrigin::any() } else { AllowOrigin::list(origins) };
        let cors = CorsLayer::new().allow_origin(origins).allow_methods(Any).allow_headers(AllowHeaders::mirror_request());
        router = router.layer(cors.expose_headers([http::header::WWW_AUTHENTICATE, ::mcp::header::SESSION_ID]));
    }
    MapRequestLayer::new(mount::normalise as fn(Request) -> Request).layer(router.with_state(app))
}
