//! The route table: every path that Toolyard answers. A route that is not documented cannot be mounted.

use axum::Router;
use axum::extract::Request;
use tower::Layer;
use tower::util::{MapRequest, MapRequestLayer};
use tower_http::compression::CompressionLayer;
use tower_http::cors::{AllowHeaders, AllowOrigin, Any, CorsLayer};
use utoipa::OpenApi;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::edge::{mount, watch};
use crate::{App, admin, agents, environments, mcp, operations, pages, tools, triggers, workflows};

#[derive(OpenApi)]
#[openapi(
    info(title = "Toolyard", description = "Tools, connections and triggers for agents. Every path also works under `/api` and `/preview`, with and without a trailing slash."),
    modifiers(&Security)
)]
struct Document;

struct Security;

impl utoipa::Modify for Security {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let key = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("A project key; `Authorization: ApiKey <key>` is the same."))
            .build();
        components.add_security_scheme("key", SecurityScheme::Http(key));
        let operator = ApiKeyValue::with_description("Authorization", "`Access <operator key>`");
        components.add_security_scheme("operator", SecurityScheme::ApiKey(ApiKey::Header(operator)));
    }
}

fn table() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Document::openapi())
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
        .routes(routes!(tools::oauth_apps::set_everywhere, tools::oauth_apps::list_everywhere))
        .routes(routes!(tools::oauth_apps::delete_everywhere))
        .routes(routes!(tools::catalog::providers))
        .routes(routes!(tools::catalog::provider))
        .routes(routes!(tools::catalog::integrations))
        .routes(routes!(tools::catalog::categories))
        .routes(routes!(tools::catalog::integration))
        .routes(routes!(tools::catalog::actions))
        .routes(routes!(tools::catalog::action))
        .routes(routes!(tools::connections::query))
        .routes(routes!(tools::connections::create))
        .routes(routes!(pages::callback))
        .routes(routes!(tools::connections::fetch, tools::connections::delete))
        .routes(routes!(tools::connections::refresh))
        .routes(routes!(tools::connections::revoke))
        .routes(routes!(tools::connections::usage))
        .routes(routes!(tools::oauth_apps::set, tools::oauth_apps::list))
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
        .routes(routes!(tools::approvals::fetch, tools::approvals::decide))
        .routes(routes!(tools::approvals::policy, tools::approvals::set_policy))
        .routes(routes!(tools::call::call))
        .routes(routes!(tools::calls::list))
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
        .routes(routes!(triggers::catalog::providers))
        .routes(routes!(triggers::catalog::provider))
        .routes(routes!(triggers::catalog::integrations))
        .routes(routes!(triggers::catalog::integration))
        .routes(routes!(triggers::catalog::events))
        .routes(routes!(triggers::catalog::event))
        .routes(routes!(triggers::connections::query))
        .routes(routes!(triggers::connections::create))
        .routes(routes!(triggers::connections::fetch, triggers::connections::delete))
        .routes(routes!(triggers::connections::refresh))
        .routes(routes!(triggers::connections::revoke))
        .routes(routes!(triggers::connections::usage))
        .routes(routes!(workflows::history::query))
        .routes(routes!(workflows::history::create))
        .routes(routes!(workflows::invoke::invoke))
        .routes(routes!(workflows::runs::list))
        .routes(routes!(workflows::runs::fetch))
        .routes(routes!(workflows::runs::signing_secret))
        .routes(routes!(workflows::history::fetch, workflows::history::edit))
        .routes(routes!(workflows::history::archive))
        .routes(routes!(workflows::history::unarchive))
        .routes(routes!(workflows::history::query_variants))
        .routes(routes!(workflows::history::create_variant))
        .routes(routes!(workflows::history::fork))
        .routes(routes!(workflows::history::fetch_variant))
        .routes(routes!(workflows::history::archive_variant))
        .routes(routes!(workflows::history::unarchive_variant))
        .routes(routes!(workflows::history::query_revisions))
        .routes(routes!(workflows::history::commit))
        .routes(routes!(workflows::history::log))
        .routes(routes!(workflows::history::retrieve))
        .routes(routes!(workflows::history::resolve))
        .routes(routes!(workflows::deploy::deploy))
        .routes(routes!(workflows::history::fetch_revision))
        .routes(routes!(workflows::history::archive_revision))
        .routes(routes!(workflows::history::unarchive_revision))
        .routes(routes!(workflows::simple::create))
        .routes(routes!(workflows::simple::fetch))
        .routes(routes!(environments::history::query))
        .routes(routes!(environments::history::create))
        .routes(routes!(environments::history::fetch, environments::history::edit))
        .routes(routes!(environments::history::archive))
        .routes(routes!(environments::history::unarchive))
        .routes(routes!(environments::history::query_variants))
        .routes(routes!(environments::history::create_variant))
        .routes(routes!(environments::history::fork))
        .routes(routes!(environments::history::fetch_variant))
        .routes(routes!(environments::history::archive_variant))
        .routes(routes!(environments::history::unarchive_variant))
        .routes(routes!(environments::history::query_revisions))
        .routes(routes!(environments::history::commit))
        .routes(routes!(environments::history::log))
        .routes(routes!(environments::history::retrieve))
        .routes(routes!(environments::history::resolve))
        .routes(routes!(environments::history::fetch_revision))
        .routes(routes!(environments::history::archive_revision))
        .routes(routes!(environments::history::unarchive_revision))
        .routes(routes!(environments::simple::create))
        .routes(routes!(environments::simple::guard))
        .routes(routes!(environments::simple::unguard))
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
        .routes(routes!(pages::show, pages::submit))
        .routes(routes!(mcp::project::post, mcp::project::changes))
        .routes(routes!(mcp::agent::post, mcp::agent::changes))
        .routes(routes!(mcp::metadata::root))
        .routes(routes!(mcp::metadata::project))
        .routes(routes!(mcp::metadata::agent))
}

/// The OpenAPI document.
pub fn openapi() -> utoipa::openapi::OpenApi {
    table().split_for_parts().1
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
    // Ops are requests to our own routes; they are answered without a socket and without the layers below.
    let inside = tools::ops::Inside(router.clone().with_state(app.clone()));
    let mut router = router
        .layer(axum::Extension(inside))
        .layer(axum::middleware::from_fn_with_state(app.clone(), watch::watch))
        .layer(CompressionLayer::new());
    if !app.options.cors_origins.is_empty() {
        let origins: Vec<http::HeaderValue> = app.options.cors_origins.iter().filter_map(|origin| origin.parse().ok()).collect();
        let any = app.options.cors_origins.iter().any(|origin| origin == "*");
        let origins = if any { AllowOrigin::any() } else { AllowOrigin::list(origins) };
        let cors = CorsLayer::new().allow_origin(origins).allow_methods(Any).allow_headers(AllowHeaders::mirror_request());
        router = router.layer(cors.expose_headers([http::header::WWW_AUTHENTICATE, mcp::SESSION]));
    }
    MapRequestLayer::new(mount::normalise as fn(Request) -> Request).layer(router.with_state(app))
}
