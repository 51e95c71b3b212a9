//! The edge as one service: what every request goes through, whichever route answers it.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use futures_util::future::BoxFuture;
use http::{HeaderValue, header};
use tower::{Layer, Service as _, service_fn};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, Predicate, SizeAbove};
use tower_http::cors::{AllowHeaders, AllowOrigin, Any, CorsLayer};

use crate::edge::{mount, watch};
use crate::routes::{Answer, router};
use crate::tools::ops::{Inside, OwnFor};
use crate::{App, composio_api, dashboard, mcp};

/// Bodies of so many bytes and more are compressed for whoever takes that; a packet holds what is smaller.
const WORTH_COMPRESSING: u64 = 1024;

/// All that answers at the socket.
#[derive(Clone, Debug)]
pub struct Service {
    app: App,
    routes: Router,
}

impl Service {
    pub fn new(app: App) -> Self {
        // Ops and pages of the dashboard are requests to our own routes; they are answered without a socket and without what stands around.
        let inside = with_fallbacks(with_conformance(router(|route| Bare(route.answer)), &app), Bare);
        app.agent_runs.set_routes(Arc::new(OwnFor { router: inside.clone(), app: app.downgrade() }));
        let inside = inside.with_state(app.clone());
        let mut outside = outside(&app, &inside);
        if !app.options.cors_origins.is_empty() {
            outside = outside.layer(cors(&app.options.cors_origins));
        }
        Self { routes: outside.with_state(app.clone()), app }
    }

    /// Answers one request.
    pub async fn answer(self, request: Request) -> Response {
        let Self { app, mut routes } = self;
        let request = mount::normalise(request);
        if !request.headers().contains_key(header::ACCEPT_ENCODING) {
            return enveloped(&mut routes, request).await;
        }
        let compression = CompressionLayer::new().compress_when(DefaultPredicate::new().and(SizeAbove::new(WORTH_COMPRESSING)));
        let mut compressed = compression.layer(service_fn(|request| {
            let mut routes = routes.clone();
            async move { Ok::<_, Infallible>(enveloped(&mut routes, request).await) }
        }));
        let Ok(response) = compressed.call(request).await;
        watch::compress_large(&app, response.map(Body::new)).await
    }
}

impl tower::Service<Request> for Service {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let service = self.clone();
        Box::pin(async { Ok(service.answer(request).await) })
    }
}

/// The answer of a route, where it is a failure under Composio's paths in its form.
async fn enveloped(routes: &mut Router, request: Request) -> Response {
    let envelope = composio_api::Envelope::around(&request);
    let Ok(response) = routes.call(request).await;
    match envelope {
        Some(envelope) => envelope.write(response),
        None => response,
    }
}

/// A handler with nothing around it.
#[derive(Clone, Copy)]
struct Bare(Answer);

impl Handler<Bare, App> for Bare {
    type Future = BoxFuture<'static, Response>;

    fn call(self, request: Request, app: App) -> Self::Future {
        (self.0)(request, app)
    }
}

/// A handler that is watched over, and may ask our own routes.
#[derive(Clone)]
struct Watched {
    /// The route, where one is known.
    path: Option<&'static str>,
    answer: Answer,
    inside: Inside,
}

impl Handler<Watched, App> for Watched {
    type Future = BoxFuture<'static, Response>;

    fn call(self, mut request: Request, app: App) -> Self::Future {
        request.extensions_mut().insert(self.inside);
        Box::pin(watch::watched(app, self.path, request, self.answer))
    }
}

fn outside(app: &App, inside: &Router) -> Router<App> {
    let watched = |path, answer| Watched { path, answer, inside: Inside(inside.clone()) };
    let api = with_fallbacks(router(|route| watched(Some(route.path), route.answer)), |answer| watched(None, answer));
    let others = with_conformance(dashboard::routes(app, inside.clone()), app);
    api.merge(others.layer(from_fn_with_state(app.clone(), watch::watch)))
}

fn with_conformance(router: Router<App>, app: &App) -> Router<App> {
    if app.options.mcp_conformance { router.route(mcp::conformance::PATH, mcp::conformance::route(app)) } else { router }
}

/// Unknown paths, and known ones with another method.
fn with_fallbacks<H: Handler<T, App>, T: 'static>(router: Router<App>, handler: impl Fn(Answer) -> H) -> Router<App> {
    router
        .fallback(handler(|request, app| Handler::call(watch::not_found, request, app)))
        .method_not_allowed_fallback(handler(|request, app| Handler::call(watch::wrong_method, request, app)))
}

fn cors(origins: &[String]) -> CorsLayer {
    let any = origins.iter().any(|origin| origin == "*");
    let listed = origins.iter().filter_map(|origin| origin.parse::<HeaderValue>().ok());
    let origins = if any { AllowOrigin::any() } else { AllowOrigin::list(listed) };
    let cors = CorsLayer::new().allow_origin(origins).allow_methods(Any).allow_headers(AllowHeaders::mirror_request());
    cors.expose_headers([header::WWW_AUTHENTICATE, ::mcp::header::SESSION_ID])
}
