//! For whoever runs the server: projects and their keys, OAuth apps of all projects, and how the server does.

mod oauth_apps;
mod projects;
mod status;

use askama::Template;
use axum::Router;
use axum::extract::FromRequestParts;
use http::request::Parts;

use crate::frame::{Frame, Link, Section, show_refused};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::visit::Visit;

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().merge(projects::routes()).merge(oauth_apps::routes()).merge(status::routes())
}

/// A visit of the operator. For others these pages are not there.
#[derive(Debug)]
struct Operator(Visit);

impl<S: Sync> FromRequestParts<S> for Operator {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let visit = Visit::from_request_parts(parts, state).await?;
        if visit.is_operator() { Ok(Self(visit)) } else { Err(Refusal::not_found()) }
    }
}

/// The pages of the operator, in the order of their tabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tab {
    Projects,
    OAuthApps,
    Status,
}

impl Tab {
    const ALL: [(Self, &'static str); 3] = [(Self::Projects, "Projects"), (Self::OAuthApps, "OAuth apps"), (Self::Status, "Status")];

    fn here(self) -> Path {
        Path::new(match self {
            Self::Projects => "/app/-/operator",
            Self::OAuthApps => "/app/-/operator/oauth-apps",
            Self::Status => "/app/-/operator/status",
        })
    }

    fn links(self) -> Vec<Link> {
        Self::ALL.map(|(tab, label)| Link { href: tab.here().into(), label: label.to_owned(), is_current: tab == self }).into()
    }

    fn frame(self, visit: &Visit) -> Frame {
        let label = Self::ALL.iter().find(|(tab, _)| *tab == self).map_or("Operator", |(_, label)| label);
        Frame::new(visit, Section::Operator, label)
    }
}

#[derive(Template)]
#[template(path = "operator_refused.html")]
struct RefusedTab {
    frame: Frame,
    tabs: Vec<Link>,
}

/// A tab that cannot be shown says why, between the tabs that can.
fn show_refused_tab(visit: &Visit, tab: Tab, refusal: &Refusal) -> PageResult {
    let page = RefusedTab { frame: tab.frame(visit).refused(Some(refusal)), tabs: tab.links() };
    show_refused(Some(refusal), &page)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::Arc;

    use http::StatusCode;

    use super::*;
    use crate::api::{Answer, Api, Request};
    use crate::visit::Via;

    #[derive(Debug)]
    struct NoApi;

    impl Api for NoApi {
        fn send(&self, _: Request) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
            Box::pin(async { Answer { status: StatusCode::NOT_FOUND, body: bytes::Bytes::new() } })
        }
    }

    #[tokio::test]
    async fn the_pages_are_there_for_the_operator_alone() {
        for (via, is_there) in [(Via::Person, false), (Via::Key, false), (Via::Operator, true)] {
            let (api, text) = (Arc::new(NoApi), String::new);
            let visit = Visit {
                acts_as: None,
                api,
                name: text(),
                via,
                projects: Vec::new(),
                project: None,
                permissions: Vec::new(),
                csrf: text(),
                public_url: text(),
            };
            let (mut parts, ()) = http::Request::builder().extension(visit).body(()).unwrap().into_parts();
            let found = Operator::from_request_parts(&mut parts, &()).await;
            assert_eq!(found.is_ok(), is_there, "{via:?}");
            assert!(found.is_ok() || found.is_err_and(|refusal| refusal.is_missing()));
        }
    }
}
