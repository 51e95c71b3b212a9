//! OAuth apps of the project. The operator's pages have the same for all projects.

use askama::Template;
use axum::Router;
use axum::extract::{Path as Segments, Query};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Tab, show_refused_tab};
use crate::form::Form;
use crate::frame::{Frame, Link, see_other, show_refused};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui::{self, Markup, copyable};
use crate::visit::Visit;

pub(crate) const TOLD: [(&str, &str); 2] = [
    ("set", "Kept. Register its redirect address at the provider if you have not yet."),
    ("deleted", "Deleted. Connections made with it work until their tokens expire."),
];

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/{project}/settings/oauth-apps", get(list).post(set))
        .route("/{project}/settings/oauth-apps/{app}/delete", post(delete))
}

#[derive(Debug, Deserialize)]
pub(crate) struct OAuthApps {
    pub(crate) oauth_apps: Vec<OAuthApp>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct OAuthApp {
    pub(crate) id: String,
    provider_key: String,
    integration_key: String,
    pub(crate) client_id: String,
    pub(crate) scopes: Option<Vec<String>>,
    redirect_url: String,
    pub(crate) created_at: String,
}

impl OAuthApp {
    /// The integration as it is typed into the form.
    pub(crate) fn integration(&self) -> String {
        match self.provider_key.as_str() {
            "native" => self.integration_key.clone(),
            provider => format!("{provider}/{}", self.integration_key),
        }
    }

    pub(crate) fn redirect(&self) -> Markup {
        copyable(&self.redirect_url)
    }
}

/// What was typed about an app, but for its secret. `setting_oauth_form.html` shows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct AppForm {
    pub(crate) integration: String,
    pub(crate) client_id: String,
    pub(crate) scopes: String,
}

impl AppForm {
    pub(crate) fn new(form: &Form) -> Self {
        Self {
            integration: form.text("integration").to_owned(),
            client_id: form.text("client_id").to_owned(),
            scopes: form.text("scopes").to_owned(),
        }
    }

    /// What the API takes.
    pub(crate) fn body(form: &Form) -> Value {
        let (provider, integration) = form.text("integration").split_once('/').unwrap_or(("native", form.text("integration")));
        let scopes: Vec<&str> = form.text("scopes").split([' ', ',', '\n', '\r', '\t']).filter(|scope| !scope.is_empty()).collect();
        let mut app = json!({
            "provider_key": provider.trim(), "integration_key": integration.trim(), "client_id": form.text("client_id"), "client_secret": form.text("client_secret")
        });
        if !scopes.is_empty() {
            app["scopes"] = json!(scopes);
        }
        json!({"oauth_app": app})
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListQuery {
    told: Option<String>,
}

#[derive(Template)]
#[template(path = "setting_oauth_apps.html")]
struct ListPage {
    frame: Frame,
    tabs: Vec<Link>,
    here: String,
    apps: Vec<OAuthApp>,
    may_edit: bool,
    form: AppForm,
}

async fn list(visit: Visit, Query(query): Query<ListQuery>) -> PageResult {
    show_list(&visit, query.told.as_deref(), None, AppForm::default()).await
}

async fn show_list(visit: &Visit, told: Option<&str>, refusal: Option<&Refusal>, form: AppForm) -> PageResult {
    let answer: OAuthApps = match visit.get("/tools/oauth-apps").await {
        Ok(answer) => answer,
        Err(unseen) => return show_refused_tab(visit, Tab::OAuthApps, refusal.unwrap_or(&unseen)),
    };
    let page = ListPage {
        frame: Tab::OAuthApps.frame(visit).told(told, &TOLD).refused(refusal),
        tabs: Tab::OAuthApps.links(visit),
        here: Tab::OAuthApps.here(visit).into(),
        apps: answer.oauth_apps,
        may_edit: visit.may("edit_tools"),
        form,
    };
    show_refused(refusal, &page)
}

async fn set(visit: Visit, form: Form) -> PageResult {
    match visit.post::<Value>("/tools/oauth-apps", AppForm::body(&form)).await {
        Ok(_) => see_other(Tab::OAuthApps.here(&visit).with("told", "set")),
        Err(refusal) => show_list(&visit, None, Some(&refusal), AppForm::new(&form)).await,
    }
}

async fn delete(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    match visit.delete(Path::new("/tools/oauth-apps").at(id)).await {
        Ok(()) => see_other(Tab::OAuthApps.here(&visit).with("told", "deleted")),
        Err(refusal) => show_list(&visit, None, Some(&refusal), AppForm::default()).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_is_named_with_its_provider_or_without() {
        let form = |integration: &str, scopes: &str| {
            Form(vec![
                ("integration".to_owned(), integration.to_owned()),
                ("client_id".to_owned(), "id".to_owned()),
                ("scopes".to_owned(), scopes.to_owned()),
            ])
        };
        let app = |provider: &str, integration: &str| json!({"provider_key": provider, "integration_key": integration, "client_id": "id", "client_secret": ""});
        assert_eq!(AppForm::body(&form(" github ", ""))["oauth_app"], app("native", "github"));
        assert_eq!(AppForm::body(&form("openapi/orders", ""))["oauth_app"], app("openapi", "orders"));
        assert_eq!(AppForm::body(&form("github", "repo, user\r\nemail"))["oauth_app"]["scopes"], json!(["repo", "user", "email"]));
    }
}
