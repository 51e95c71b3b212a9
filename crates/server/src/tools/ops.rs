//! `/tools/ops`: what an agent may ask of Toolyard itself, called without a runner.

use agent_runs::RoutesFor;
use axum::body::Body;
use axum::extract::State;
use axum::{Extension, Json, Router};
use bytes::Bytes;
use calls::{NoRoute, OpRequest, OwnRoutes};
use definitions::Verdict;
use definitions::ops::{self, Assembled, Method};
use document::ToSchema;
use futures_util::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use kernel::Scope;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tower::ServiceExt;
use uuid::Uuid;

use super::call::{CallAnswer, CallOutcome, RUN_KIND, is_test, read_permission, time_limit};
use crate::edge::auth::{OnBehalf, RunTools, ViewTools};
use crate::edge::mount;
use crate::edge::watch::{Unrouted, within};
use crate::edge::{ApiResult, NoFilters, OptionalPayload, PathOf, QueryOf, Scoped};
use crate::{App, Parts, run_limit};

/// The most bytes of an answer of our own that are read.
const MAX_ANSWER: usize = 4 << 20;

/// Our own routes, for requests that we make ourselves.
#[derive(Clone, Debug)]
pub struct Inside(pub(crate) Router);

/// Our own routes with the caller's scope: an op can do no more than the caller could.
pub(crate) struct Own {
    pub(crate) scope: Scope,
    pub(crate) router: Router,
    pub(crate) headers: HeaderMap,
}

/// No routes, for whoever has no platform ops.
pub(crate) struct Nowhere;

impl OwnRoutes for Nowhere {
    fn send(&self, _: Assembled) -> BoxFuture<'_, Result<(u16, Bytes), NoRoute>> {
        Box::pin(async { Err(NoRoute) })
    }
}

impl OwnRoutes for Own {
    fn send(&self, request: Assembled) -> BoxFuture<'_, Result<(u16, Bytes), NoRoute>> {
        Box::pin(async move {
            let mut builder = Request::builder().method(method(request.method)).uri(request.path_and_query).extension(OnBehalf(self.scope));
            if let Some(kind) = self.headers.get(RUN_KIND) {
                builder = builder.header(RUN_KIND, kind);
            }
            let body = match request.body {
                Some(body) => {
                    builder = builder.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                    Body::from(body.to_string())
                }
                None => Body::empty(),
            };
            let request = builder.body(body).map_err(|_| NoRoute)?;
            let response = match self.router.clone().oneshot(mount::normalise(request)).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
            if response.extensions().get::<Unrouted>().is_some() {
                return Err(NoRoute);
            }
            let status = response.status().as_u16();
            let Ok(body) = axum::body::to_bytes(response.into_body(), MAX_ANSWER).await else {
                let detail = Bytes::from_static(b"{\"detail\": \"The answer is larger than 4 MiB. Ask for less.\"}");
                return Ok((StatusCode::BAD_GATEWAY.as_u16(), detail));
            };
            Ok((status, body))
        })
    }
}

/// Our own routes for runs that have no request of their own.
#[derive(Debug)]
pub(crate) struct OwnFor {
    pub(crate) router: Router<App>,
    pub(crate) app: kernel::WeakShared<Parts>,
}

impl RoutesFor for OwnFor {
    fn routes(&self, scope: Scope) -> Box<dyn OwnRoutes> {
        let router = App::upgrade(&self.app).map_or_else(Router::new, |app| self.router.clone().with_state(app));
        Box::new(Own { scope, router, headers: HeaderMap::new() })
    }
}

fn method(method: Method) -> http::Method {
    match method {
        Method::Get => http::Method::GET,
        Method::Post => http::Method::POST,
        Method::Put => http::Method::PUT,
        Method::Delete => http::Method::DELETE,
    }
}

/// A request to call an op.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallOp {
    /// What the model said; `GET /tools/ops` has the schema.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub arguments: Map<String, Value>,
    /// What the run decides, for example `{"workflow": {"variant": {"id": "…"}}}`. The model never chooses these values.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub context: Map<String, Value>,
    /// Comes back as `tool_call_id`.
    #[serde(default)]
    pub id: Option<String>,
    /// The caller's own word, `ask` or `deny`, where it wants more care than the project does.
    #[serde(default)]
    #[schema(value_type = Option<crate::shapes::PermissionWord>)]
    pub permission: Option<String>,
}

/// One op.
#[derive(Debug, Serialize, ToSchema)]
pub struct OpBody {
    pub op: &'static str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub aliases: &'static [String],
    pub description: &'static str,
    pub read_only: bool,
    /// What happens when the project says nothing: `allow` or `ask`.
    #[schema(value_type = String)]
    pub permission: Verdict,
    /// What the model sees.
    #[schema(value_type = Object)]
    pub input_schema: Value,
    /// What the run fills in, by field.
    #[schema(value_type = Object)]
    pub context_bindings: Value,
}

/// Every op.
#[derive(Debug, Serialize, ToSchema)]
pub struct OpsAnswer {
    pub count: usize,
    pub ops: Vec<OpBody>,
}

/// List platform ops
#[document::path(get, path = "/tools/ops", operation_id = "list_platform_ops", tag = "Tools", security(("key" = ["view_tools"])),
    responses((status = 200, body = OpsAnswer)))]
pub(crate) async fn list(_: Scoped<ViewTools>, _: QueryOf<NoFilters>) -> Json<OpsAnswer> {
    let body = |op: &'static ops::Op| OpBody {
        op: &op.op,
        aliases: &op.aliases,
        description: &op.description,
        read_only: op.read_only,
        permission: op.default_permission(),
        input_schema: ops::visible_schema(op),
        context_bindings: serde_json::json!(op.context_bindings),
    };
    let ops: Vec<OpBody> = ops::all().iter().map(body).collect();
    Json(OpsAnswer { count: ops.len(), ops })
}

/// Call a platform op
///
/// Arguments are checked against the op's closed schema and bound to `context`. The op acts with the caller's key. Reads run; what changes
/// something answers 202 with an approval, unless the project's permissions allow it.
#[document::path(post, path = "/tools/ops/{op}", operation_id = "call_platform_op", tag = "Tools", security(("key" = ["run_tools"])),
    params(("op" = String, Path)), request_body = CallOp,
    responses((status = 200, body = CallAnswer), (status = 202, body = super::call::WaitingAnswer, description = "Waits for a person"),
        (status = 400, description = "Bad arguments, or a value of the run is missing"), (status = 403, description = "Denied"), (status = 404, description = "No such op"), (status = 429, description = "The project keeps as many runs or approvals as it may")))]
pub(crate) async fn call(
    Scoped(scope, _): Scoped<RunTools>,
    State(app): State<App>,
    Extension(Inside(router)): Extension<Inside>,
    PathOf(op): PathOf<String>,
    headers: HeaderMap,
    OptionalPayload(body): OptionalPayload<CallOp>,
) -> ApiResult<CallOutcome> {
    let permission = read_permission(body.permission.as_deref())?;
    let context = Value::Object(body.context);
    let limit = time_limit(&app, &op.clone().into());
    let request = OpRequest {
        op,
        arguments: body.arguments,
        context,
        permission,
        in_test: is_test(&headers),
        limit: Some(run_limit(limit)),
        ..OpRequest::default()
    };
    let own = Own { scope, router, headers };
    let reply = within(limit, Box::pin(app.calls.op(scope, request, &own))).await?;
    CallOutcome::of(&app, scope, reply, body.id.unwrap_or_else(|| Uuid::now_v7().to_string())).await
}
