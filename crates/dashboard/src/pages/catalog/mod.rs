//! What there is to connect to: providers, integrations, their actions and events.

mod body;
mod integration;
mod oauth_app;
mod parameters;
mod tool;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::{get, post};
use serde::Deserialize;

use crate::frame::{Frame, Section, show};
use crate::pages::connections::{self, Connection};
use crate::refusal::PageResult;
use crate::ui;
use crate::visit::Visit;

pub(crate) use body::{
    Auth, AuthField, Category, Integration, Provider, Wanted, categories, integration, integration_page, integrations, providers,
    scheme_words, web_address,
};
pub(crate) use oauth_app::{AppForm, OAuthApp, oauth_apps};

/// How many integrations a page shows.
const SHOWN: u32 = 48;
/// The provider that every server has.
const FIRST: &str = "native";

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/{project}/catalog", get(list))
        .route("/{project}/catalog/{provider}/{integration}", get(integration::one))
        .route("/{project}/catalog/{provider}/{integration}/oauth-app", post(oauth_app::set))
        .route("/{project}/catalog/{provider}/{integration}/oauth-app/{app}/delete", get(oauth_app::ask_delete).post(oauth_app::delete))
        .route("/{project}/catalog/{provider}/{integration}/actions/{action}", get(tool::action))
        .route("/{project}/catalog/{provider}/{integration}/events/{event}", get(tool::event))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListQuery {
    provider: Option<String>,
    q: Option<String>,
    category: Option<String>,
    cursor: Option<String>,
}

/// An integration in the list.
#[derive(Debug)]
struct Row {
    href: String,
    integration: Integration,
    connections: usize,
}

#[derive(Template)]
#[template(path = "catalog.html")]
struct ListPage {
    frame: Frame,
    here: String,
    /// The provider without a search.
    clear: String,
    imports: String,
    /// Name, address, and whether it is the one that is shown.
    providers: Vec<(String, String, bool)>,
    provider: String,
    about: String,
    q: String,
    category: String,
    categories: Vec<Category>,
    total: u64,
    rows: Vec<Row>,
    next: Option<String>,
}

impl ListPage {
    fn is_narrowed(&self) -> bool {
        !self.q.is_empty() || !self.category.is_empty()
    }

    fn is_imported(&self) -> bool {
        self.provider == "openapi" || self.provider == "mcp"
    }
}

async fn list(visit: Visit, Query(query): Query<ListQuery>) -> PageResult {
    let provider = query.provider.as_deref().filter(|provider| !provider.is_empty()).unwrap_or(FIRST);
    let wanted =
        Wanted { provider, search: query.q.as_deref(), category: query.category.as_deref(), cursor: query.cursor.as_deref(), limit: SHOWN };
    let found = integrations(&visit, wanted).await?;
    let all = providers(&visit).await?;
    let connected = connections::query(&visit, connections::Seen::WithTools, None).await.unwrap_or_default();
    let here = visit.page("catalog");
    let narrowed =
        here.clone().with("provider", provider).with_some("q", query.q.as_deref()).with_some("category", query.category.as_deref());
    let page = ListPage {
        frame: Frame::new(&visit, Section::Catalog, "Catalog"),
        clear: here.clone().with("provider", provider).into(),
        imports: visit.page("imports").into(),
        providers: all.iter().map(|one| tab(&visit, one, provider, query.q.as_deref())).collect(),
        about: all.iter().find(|one| one.key == provider).map(|one| one.description.clone()).unwrap_or_default(),
        categories: categories(&visit, provider).await.unwrap_or_default(),
        next: found.cursor.map(|cursor| narrowed.with("cursor", cursor).into()),
        rows: found.integrations.into_iter().map(|integration| row(&visit, provider, integration, &connected)).collect(),
        total: found.total,
        here: here.into(),
        provider: provider.to_owned(),
        q: query.q.unwrap_or_default(),
        category: query.category.unwrap_or_default(),
    };
    show(&page)
}

fn tab(visit: &Visit, provider: &Provider, current: &str, q: Option<&str>) -> (String, String, bool) {
    let label = format!("{} ({})", provider.name, provider.integrations_count);
    let href = visit.page("catalog").with("provider", &provider.key).with_some("q", q);
    (label, href.into(), provider.key == current)
}

fn row(visit: &Visit, provider: &str, integration: Integration, connected: &[Connection]) -> Row {
    Row {
        href: integration_page(visit, provider, &integration.key).into(),
        connections: connected.iter().filter(|one| one.is_of(provider, &integration.key)).count(),
        integration,
    }
}
