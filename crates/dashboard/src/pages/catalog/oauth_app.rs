//! The OAuth app of a project for an integration: the client id and secret that the service gave out.

use askama::Template;
use axum::extract::Path as Segments;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::{Integration, integration, integration_page};
use super::integration::show_again;
use crate::form::Form;
use crate::frame::{Frame, Section, see_other, show};
use crate::pages::connections::{self, Connection, words_of};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::visit::Visit;

const APPS: &str = "/tools/oauth-apps";

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct OAuthApp {
    pub(crate) id: String,
    provider_key: String,
    integration_key: String,
    pub(crate) client_id: String,
    pub(crate) scopes: Option<Vec<String>>,
    /// The address to register at the service.
    pub(crate) redirect_url: String,
    pub(crate) created_at: String,
}

impl OAuthApp {
    pub(crate) fn is_of(&self, provider: &str, integration: &str) -> bool {
        self.provider_key == provider && self.integration_key == integration
    }
}

pub(crate) async fn oauth_apps(visit: &Visit) -> Result<Vec<OAuthApp>, Refusal> {
    #[derive(Deserialize)]
    struct Answer {
        oauth_apps: Vec<OAuthApp>,
    }
    visit.get::<Answer>(Path::new(APPS)).await.map(|answer| answer.oauth_apps)
}

/// What an app of the project is registered with at the service, whether there is one or not.
pub(super) async fn redirect_url(visit: &Visit, provider: &str, key: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Answer {
        redirect_url: String,
    }
    let path = Path::new(APPS).at("redirect").at(provider).at(key);
    visit.get::<Answer>(path).await.ok().map(|answer| answer.redirect_url)
}

/// What `integration_oauth_form.html` shows.
#[derive(Clone, Debug)]
pub(crate) struct AppForm {
    pub(crate) action: String,
    pub(crate) client_id: String,
    pub(crate) scopes: String,
}

impl AppForm {
    /// With what was typed, else with what is kept; the secret is never sent back.
    pub(crate) fn new(integration_page: &Path, app: Option<&OAuthApp>, typed: Option<&Form>) -> Self {
        let kept = |app: &OAuthApp| (app.client_id.clone(), app.scopes.as_deref().unwrap_or_default().join("\n"));
        let (client_id, scopes) = match typed {
            Some(form) => (form.text("client_id").to_owned(), form.text("app_scopes").to_owned()),
            None => app.map(kept).unwrap_or_default(),
        };
        Self { action: integration_page.clone().at("oauth-app").into(), client_id, scopes }
    }
}

pub(super) async fn set(visit: Visit, Segments((_, provider, key)): Segments<(String, String, String)>, form: Form) -> PageResult {
    let scopes = words_of(form.text("app_scopes"));
    let app = json!({
        "provider_key": provider,
        "integration_key": key,
        "client_id": form.text("client_id"),
        "client_secret": form.text("client_secret"),
        "scopes": (!scopes.is_empty()).then_some(scopes),
    });
    match visit.post::<Value>(Path::new(APPS), json!({"oauth_app": app})).await {
        Ok(_) => see_other(integration_page(&visit, &provider, &key).with("told", "app-kept")),
        Err(refusal) if refusal.is_missing() => Err(refusal),
        Err(refusal) => show_again(&visit, &provider, &key, &refusal, &form).await,
    }
}

#[derive(Template)]
#[template(path = "integration_oauth_delete.html")]
struct DeletePage {
    frame: Frame,
    here: String,
    back: String,
    integration: Integration,
    app: OAuthApp,
    connections: Vec<Connection>,
}

pub(super) async fn ask_delete(visit: Visit, Segments((_, provider, key, id)): Segments<(String, String, String, String)>) -> PageResult {
    let integration = integration(&visit, &provider, &key).await?;
    let app =
        oauth_apps(&visit).await?.into_iter().find(|app| app.id == id && app.is_of(&provider, &key)).ok_or_else(Refusal::not_found)?;
    let mut connected = connections::query(&visit, connections::Seen::WithTools, Some((&provider, &key))).await?;
    connected.retain(Connection::is_oauth);
    let back = integration_page(&visit, &provider, &key);
    let page = DeletePage {
        frame: Frame::new(&visit, Section::Catalog, "Delete the OAuth app"),
        here: back.clone().at("oauth-app").at(&id).at("delete").into(),
        back: back.into(),
        integration,
        app,
        connections: connected,
    };
    show(&page)
}

pub(super) async fn delete(
    visit: Visit,
    Segments((_, provider, key, id)): Segments<(String, String, String, String)>,
    _: Form,
) -> PageResult {
    visit.delete(Path::new(APPS).at(&id)).await?;
    see_other(integration_page(&visit, &provider, &key).with("told", "app-deleted"))
}
