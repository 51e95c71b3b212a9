//! What needs a person now, and how things go.

mod activity;
mod needs;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::get;
use serde::Deserialize;

use self::activity::{Activity, Span};
use self::needs::Needs;
use crate::frame::{Frame, Section, see_other, show};
use crate::path::Path;
use crate::refusal::PageResult;
use crate::ui;
use crate::visit::Visit;

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/", get(start)).route("/{project}", get(home))
}

#[derive(Template)]
#[template(path = "start.html")]
struct StartPage {
    frame: Frame,
    /// Address, name and role.
    projects: Vec<(String, String, String)>,
}

/// The one project there is, or a choice of them.
async fn start(visit: Visit) -> PageResult {
    if let [one] = &visit.projects[..] {
        return see_other(Path::new("/app").at(&one.slug));
    }
    let projects =
        visit.projects.iter().map(|project| (Path::new("/app").at(&project.slug).into(), project.name.clone(), project.role.clone()));
    show(&StartPage { frame: Frame::new(&visit, Section::None, "Projects"), projects: projects.collect() })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HomeQuery {
    over: Option<String>,
}

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    frame: Frame,
    needs: Needs,
    activity: Activity,
    tabs: Vec<(&'static str, String, bool)>,
    mcp_address: String,
}

async fn home(visit: Visit, Query(query): Query<HomeQuery>) -> PageResult {
    let span = Span::of(query.over.as_deref());
    let (activity, seen) = tokio::join!(activity::look(&visit, span), needs::look(&visit));
    let needs = seen.needs(&visit, activity.failing(), span.since());
    let here = visit.page("");
    let tabs = Span::ALL.map(|tab| (tab.label(), format!("{}#activity", here.clone().with("over", tab.word())), tab == span));
    let page = HomePage {
        frame: Frame::new(&visit, Section::Home, "Home").waiting(needs.approvals),
        needs,
        activity: activity.shown(),
        tabs: tabs.into(),
        mcp_address: format!("{}/mcp", visit.public_url),
    };
    show(&page)
}
