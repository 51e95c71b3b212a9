//! OAuth apps that every project can connect with.

use askama::Template;
use axum::Router;
use axum::extract::{Path as Segments, Query};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::Value;

use super::{Operator, Tab, show_refused_tab};
use crate::form::Form;
use crate::frame::{Frame, Link, see_other, show_refused};
use crate::pages::settings::{APPS_TOLD, AppForm, OAuthApp, OAuthApps};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

const API: &str = "/admin/oauth-apps";

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/-/operator/oauth-apps", get(list).post(set)).route("/-/operator/oauth-apps/{app}/delete", post(delete))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PageQuery {
    told: Option<String>,
}

#[derive(Template)]
#[template(path = "operator_oauth_apps.html")]
struct ListPage {
    frame: Frame,
    tabs: Vec<Link>,
    here: String,
    apps: Vec<OAuthApp>,
    may_edit: bool,
    form: AppForm,
}

async fn list(Operator(visit): Operator, Query(query): Query<PageQuery>) -> PageResult {
    show_list(&visit, query.told.as_deref(), None, AppForm::default()).await
}

async fn show_list(visit: &Visit, told: Option<&str>, refusal: Option<&Refusal>, form: AppForm) -> PageResult {
    let answer: OAuthApps = match visit.get(API).await {
        Ok(answer) => answer,
        Err(unseen) => return show_refused_tab(visit, Tab::OAuthApps, refusal.unwrap_or(&unseen)),
    };
    let page = ListPage {
        frame: Tab::OAuthApps.frame(visit).told(told, &APPS_TOLD).refused(refusal),
        tabs: Tab::OAuthApps.links(),
        here: Tab::OAuthApps.here().into(),
        apps: answer.oauth_apps,
        may_edit: true,
        form,
    };
    show_refused(refusal, &page)
}

async fn set(Operator(visit): Operator, form: Form) -> PageResult {
    match visit.post::<Value>(API, AppForm::body(&form)).await {
        Ok(_) => see_other(Tab::OAuthApps.here().with("told", "set")),
        Err(refusal) => show_list(&visit, None, Some(&refusal), AppForm::new(&form)).await,
    }
}

async fn delete(Operator(visit): Operator, Segments(id): Segments<String>) -> PageResult {
    match visit.delete(Path::new(API).at(id)).await {
        Ok(()) => see_other(Tab::OAuthApps.here().with("told", "deleted")),
        Err(refusal) => show_list(&visit, None, Some(&refusal), AppForm::default()).await,
    }
}
