//! `/project/connect-links`: where connect links may lead people in the end, and whose sites may show their pages.

use accounts::{ConnectLinks, SiteOrigin};
use axum::extract::State;
use document::ToSchema;
use serde::{Deserialize, Serialize};

use crate::App;
use crate::edge::auth::{EditTools, ViewTools};
use crate::edge::{ApiResult, Json, Payload, Scoped};

/// What a project allows. What is absent is nothing.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectLinksBody {
    /// Addresses that people may be sent to when they are done; one that ends in `/*` stands for all below it.
    #[serde(default)]
    #[schema(max_items = 50, example = json!(["https://app.example.com/connected"]))]
    pub return_to: Vec<String>,
    /// Sites that may show the pages in a frame, and that are told by `postMessage` how a link ended which they opened.
    #[serde(default)]
    #[schema(max_items = 50, example = json!(["https://app.example.com"]))]
    pub origins: Vec<String>,
}

impl From<ConnectLinks> for ConnectLinksBody {
    fn from(links: ConnectLinks) -> Self {
        Self {
            return_to: links.return_to.iter().map(ToString::to_string).collect(),
            origins: links.origins.iter().map(SiteOrigin::as_str).map(str::to_owned).collect(),
        }
    }
}

/// Read where the project's connect links may lead
#[document::path(get, path = "/project/connect-links", operation_id = "fetch_connect_links", tag = "Project", security(("key" = ["view_tools"])),
    responses((status = 200, body = ConnectLinksBody)))]
pub(crate) async fn fetch(Scoped(scope, _): Scoped<ViewTools>, State(app): State<App>) -> ApiResult<Json<ConnectLinksBody>> {
    Ok(Json(app.accounts.connect_links(scope.project).await?.into()))
}

/// Say where the project's connect links may lead
///
/// It takes the place of what was said before. What is taken away no longer holds for links that are open, but for the address that they
/// return to.
#[document::path(put, path = "/project/connect-links", operation_id = "set_connect_links", tag = "Project", security(("key" = ["edit_tools"])),
    request_body = ConnectLinksBody, responses((status = 200, body = ConnectLinksBody), (status = 422, description = "An address or an origin that cannot be taken")))]
pub(crate) async fn set(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    Payload(body): Payload<ConnectLinksBody>,
) -> ApiResult<Json<ConnectLinksBody>> {
    let links = ConnectLinks::read(&body.return_to, &body.origins)?;
    app.accounts.set_connect_links(scope, &links).await?;
    Ok(Json(links.into()))
}
