//! Accounts at services: which work, which need somebody, and how to connect more.

mod body;
mod connect;
mod one;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::{get, post};
use serde::Deserialize;

use crate::frame::{Frame, Section, show};
use crate::pages::catalog::integration_page;
use crate::path::Path;
use crate::refusal::PageResult;
use crate::ui;
use crate::visit::Visit;
use body::State;

pub(crate) use body::{Connection, Seen, connection, of_end_user, query, words_of};

const TOLD: [(&str, &str); 1] = [("deleted", "The connection is deleted.")];

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/{project}/connections", get(list))
        .route("/{project}/connections/new", get(connect::begin).post(connect::connect))
        .route("/{project}/connections/{connection}", get(one::one).post(one::rename))
        .route("/{project}/connections/{connection}/reconnect", post(one::reconnect))
        .route("/{project}/connections/{connection}/revoke", get(one::ask_revoke).post(one::revoke))
        .route("/{project}/connections/{connection}/delete", get(one::ask_delete).post(one::delete))
}

/// The page where an account of an integration is connected.
pub(crate) fn connect_page(visit: &Visit, provider: &str, integration: &str) -> Path {
    visit.page("connections").at("new").with("provider", provider).with("integration", integration)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListQuery {
    state: Option<String>,
    q: Option<String>,
    told: Option<String>,
}

#[derive(Debug)]
struct Row {
    connection: Connection,
    href: String,
    integration: String,
}

#[derive(Template)]
#[template(path = "connections.html")]
struct ListPage {
    frame: Frame,
    here: String,
    new: String,
    may_edit: bool,
    /// Words, address, and whether it is the one that is shown.
    states: Vec<(String, String, bool)>,
    state: Option<State>,
    q: String,
    has_any: bool,
    rows: Vec<Row>,
}

async fn list(visit: Visit, Query(asked): Query<ListQuery>) -> PageResult {
    let all = query(&visit, Seen::WithTools, None).await?;
    let state = State::ALL.into_iter().find(|state| asked.state.as_deref() == Some(state.key()));
    let wanted = asked.q.as_deref().unwrap_or_default().trim().to_lowercase();
    let here = visit.page("connections");
    let count = |wanted: Option<State>| all.iter().filter(|one| wanted.is_none_or(|state| one.state() == state)).count();
    let tab = |words: &str, one: Option<State>| {
        let href = here.clone().with_some("state", one.map(State::key)).with_some("q", asked.q.as_deref());
        (format!("{words} ({})", count(one)), href.into(), one == state)
    };
    let states = std::iter::once(tab("All", None)).chain(State::ALL.map(|one| tab(one.words(), Some(one)))).collect();
    let attention = count(Some(State::Attention));
    let has_any = !all.is_empty();
    let mut rows: Vec<Row> = all
        .into_iter()
        .filter(|one| state.is_none_or(|state| one.state() == state) && one.fits(&wanted))
        .map(|connection| Row {
            href: connection.page(&visit),
            integration: integration_page(&visit, &connection.provider_key, &connection.integration_key).into(),
            connection,
        })
        .collect();
    rows.sort_by_key(|row| row.connection.state());
    let page = ListPage {
        frame: Frame::new(&visit, Section::Connections, "Connections").told(asked.told.as_deref(), &TOLD).waiting(attention),
        new: here.clone().at("new").into(),
        here: here.into(),
        may_edit: visit.may("edit_tools"),
        states,
        state,
        q: asked.q.unwrap_or_default(),
        has_any,
        rows,
    };
    show(&page)
}
