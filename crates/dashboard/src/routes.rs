//! The table of pages. Each file in `pages` has the routes of its section.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::frame::{Frame, RefusedPage, Section, show_with};
use crate::refusal::Refusal;
use crate::visit::Visit;
use crate::{assets, pages};

/// Every page below `/app`. Whoever serves them puts a [`Visit`] into each request, and the fields of what was posted as a [`crate::Form`].
pub fn page_routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let pages = Router::new()
        .merge(pages::home::routes())
        .merge(pages::approvals::routes())
        .merge(pages::connections::routes())
        .merge(pages::end_users::routes())
        .merge(pages::calls::routes())
        .merge(pages::try_tool::routes())
        .merge(pages::triggers::routes())
        .merge(pages::deliveries::routes())
        .merge(pages::catalog::routes())
        .merge(pages::imports::routes())
        .merge(pages::agents::routes())
        .merge(pages::workflows::routes())
        .merge(pages::permissions::routes())
        .merge(pages::settings::routes())
        .merge(pages::operator::routes());
    Router::new().nest("/app", pages).layer(middleware::from_fn(refusals_as_pages))
}

/// What pages are shown with, for everybody.
pub fn asset_routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/app/-/{name}", get(assets::serve))
}

/// The project that the address of a page names.
pub fn project_of(path: &str) -> Option<&str> {
    let project = path.strip_prefix("/app/")?.split('/').next()?;
    (!project.is_empty() && project != "-").then_some(project)
}

async fn refusals_as_pages(request: Request, next: Next) -> Response {
    let visit = request.extensions().get::<Visit>().cloned();
    let response = next.run(request).await;
    match (visit, response.extensions().get::<Refusal>()) {
        (Some(visit), Some(refusal)) => {
            let title = if refusal.is_missing() { "Not found" } else { "That did not work" };
            let page = RefusedPage { frame: Frame::new(&visit, Section::None, title), words: &refusal.words };
            show_with(refusal.status, &page).unwrap_or_else(IntoResponse::into_response)
        }
        _ => response,
    }
}

#[cfg(test)]
mod tests {
    use super::project_of;

    #[test]
    fn the_project_is_the_first_segment() {
        assert_eq!(project_of("/app/default/calls"), Some("default"));
        assert_eq!(project_of("/app/default"), Some("default"));
        assert_eq!(project_of("/app"), None);
        assert_eq!(project_of("/app/-/style.css"), None);
    }
}
