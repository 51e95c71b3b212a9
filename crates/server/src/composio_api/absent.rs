//! Parts of Composio's API that are not served here, each with the reason and what to do instead. Other unknown paths are a 404.

use composio_api::Refusal;

use super::{ApiAnswer, ByKey, Failure};
use crate::edge::auth::{RunTools, ViewTriggers};
use crate::edge::{Json, PathOf};

/// Read arguments out of a text
///
/// It needs a model, so it is not served here.
#[document::path(post, path = "/v3.1/tools/execute/{slug}/input", operation_id = "composio_read_tool_input", tag = "Composio's API",
    security(("key" = ["run_tools"]), ("composio_key" = [])), params(("slug" = String, Path)),
    responses((status = 501, description = "Not served here")))]
pub(crate) async fn input(ByKey(..): ByKey<RunTools>, PathOf(_): PathOf<String>) -> ApiAnswer<Json<()>> {
    Err(Refusal::not_served("This needs a model to read the text, which is not here. Have your own model write the arguments.").into())
}

/// Send a request of your own with an account's credential
///
/// It would go around what a project allows of its tools, so it is not served here.
#[document::path(post, path = "/v3.1/tools/execute/proxy", operation_id = "composio_proxy", tag = "Composio's API",
    security(("key" = ["run_tools"]), ("composio_key" = [])), responses((status = 501, description = "Not served here")))]
pub(crate) async fn proxy(ByKey(..): ByKey<RunTools>) -> ApiAnswer<Json<()>> {
    let message = "A request of your own with an account's credential would go around what the project allows of its tools and records of \
        calls, so it is not served. Run a tool; an API that has none can be imported as OpenAPI.";
    Err(Refusal::not_served(message).fix("Run a tool at `/api/v3.1/tools/execute/{slug}`.").into())
}

/// Ask for a place for a file
///
/// Files are not kept here.
#[document::path(post, path = "/v3.1/files/upload/request", operation_id = "composio_request_upload", tag = "Composio's API",
    security(("key" = ["run_tools"]), ("composio_key" = [])), responses((status = 501, description = "Not served here")))]
pub(crate) async fn upload(ByKey(..): ByKey<RunTools>) -> ApiAnswer<Json<()>> {
    Err(Refusal::not_served("Files are not kept here. Give a tool its file as it takes it: as text, as base64 or by its address.").into())
}

/// Credentials for events over a socket
///
/// The SDKs take these events from another company's servers, which cannot be replaced by a base URL.
#[document::path(get, path = "/v3.1/internal/sdk/realtime/credentials", operation_id = "composio_realtime_credentials", tag = "Composio's API",
    security(("key" = ["view_triggers"]), ("composio_key" = [])), responses((status = 501, description = "Not served here")))]
pub(crate) async fn realtime(ByKey(..): ByKey<ViewTriggers>) -> ApiAnswer<Json<()>> {
    Err(no_realtime())
}

/// Access to a channel of events over a socket
#[document::path(post, path = "/v3.1/internal/sdk/realtime/auth", operation_id = "composio_realtime_auth", tag = "Composio's API",
    security(("key" = ["view_triggers"]), ("composio_key" = [])), responses((status = 501, description = "Not served here")))]
pub(crate) async fn realtime_auth(ByKey(..): ByKey<ViewTriggers>) -> ApiAnswer<Json<()>> {
    Err(no_realtime())
}

fn no_realtime() -> Failure {
    let message = "`triggers.subscribe()` opens a socket to another company's servers, so it cannot work here. Take events by a webhook.";
    Refusal::not_served(message).fix("Create a webhook subscription at `/api/v3.1/webhook_subscriptions`.").into()
}
