//! One connection: how it stands, who uses it, and what can be done about it.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::body::{CONNECTIONS, Connection, ConnectionAnswer, Seen, connection};
use crate::form::Form;
use crate::frame::{Frame, Section, see_other, show, show_refused};
use crate::pages::catalog::{integration_page, web_address};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

const TOLD: [(&str, &str); 6] = [
    ("connected", "Connected."),
    ("unchecked", "Connected. The service names no call to check the credential with, so it was taken as it is."),
    ("fresh", "The connection is fresh."),
    ("renamed", "Saved."),
    ("revoked", "Revoked. Its credential is forgotten; reconnect it to use it again."),
    ("waiting", "Not connected yet."),
];

/// Somebody or something that uses the connection.
#[derive(Debug, Deserialize)]
pub(super) struct Consumer {
    kind: String,
    #[serde(default)]
    name: String,
    id: String,
}

#[derive(Debug, Deserialize)]
struct Consumers {
    consumers: Vec<Consumer>,
}

#[derive(Debug, Deserialize)]
struct Usage {
    usage: Map<String, Value>,
}

/// Who uses a connection: by name where the API says it, else in numbers.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// Each with its page.
    consumers: Option<Vec<(Consumer, Option<String>)>>,
    counts: Vec<(String, u64)>,
}

impl Consumer {
    /// Its own page, where the dashboard has one.
    fn page(&self, visit: &Visit) -> Option<String> {
        let section = match self.kind.as_str() {
            "agent" => "agents",
            "subscription" => "triggers",
            "workflow" => "workflows",
            _ => return None,
        };
        Some(visit.page(section).at(&self.id).into())
    }

    fn with_page(self, visit: &Visit) -> (Self, Option<String>) {
        let page = self.page(visit);
        (self, page)
    }

    fn title(&self) -> &str {
        if self.name.is_empty() { &self.id } else { &self.name }
    }
}

impl Uses {
    fn is_empty(&self) -> bool {
        self.consumers.as_ref().is_none_or(Vec::is_empty) && self.counts.iter().all(|(_, count)| *count == 0)
    }
}

async fn uses(visit: &Visit, id: &str) -> Uses {
    let path = Path::new(CONNECTIONS).at(id);
    if let Ok(answer) = visit.get::<Consumers>(path.clone().at("consumers")).await {
        let consumers = answer.consumers.into_iter().map(|consumer| consumer.with_page(visit)).collect();
        return Uses { consumers: Some(consumers), counts: Vec::new() };
    }
    let usage = visit.get::<Usage>(path.at("usage")).await.ok();
    Uses { consumers: None, counts: usage.map(|answer| counts(&answer.usage)).unwrap_or_default() }
}

fn counts(usage: &Map<String, Value>) -> Vec<(String, u64)> {
    usage.iter().filter_map(|(kind, count)| Some((kind.clone(), count.as_u64()?))).collect()
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OneQuery {
    told: Option<String>,
}

#[derive(Template)]
#[template(path = "connection.html")]
struct OnePage {
    frame: Frame,
    all: String,
    here: String,
    integration: String,
    calls: String,
    /// The name and the page of the end user whose account it is.
    owner: Option<(String, String)>,
    may_edit: bool,
    uses: Uses,
    name: String,
    description: String,
    connection: Connection,
}

pub(super) async fn one(visit: Visit, Segments((_, id)): Segments<(String, String)>, Query(query): Query<OneQuery>) -> PageResult {
    show_one(&visit, &id, query.told.as_deref(), None, None).await
}

async fn show_one(visit: &Visit, id: &str, told: Option<&str>, refusal: Option<&Refusal>, typed: Option<&Form>) -> PageResult {
    let found = connection(visit, Seen::WithTools, id).await?;
    let all = visit.page("connections");
    let typed_or = |field: &str, kept: Option<&String>| match typed {
        Some(form) => form.raw(field).to_owned(),
        None => kept.cloned().unwrap_or_default(),
    };
    let page = OnePage {
        frame: Frame::new(visit, Section::Connections, &found.slug).told(told, &TOLD).refused(refusal),
        here: all.clone().at(id).into(),
        all: all.into(),
        integration: integration_page(visit, &found.provider_key, &found.integration_key).into(),
        calls: visit.page("calls").with("connection_id", &found.id).into(),
        owner: found.end_user.clone().map(|name| (name.clone(), visit.page("users").at(name).into())),
        may_edit: visit.may("edit_tools"),
        uses: uses(visit, id).await,
        name: typed_or("name", found.name.as_ref()),
        description: typed_or("description", found.description.as_ref()),
        connection: found,
    };
    show_refused(refusal, &page)
}

pub(super) async fn rename(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let body = json!({"connection": {"name": form.some("name"), "description": form.some("description")}});
    match visit.patch::<Value>(Path::new(CONNECTIONS).at(&id), body).await {
        Ok(_) => see_other(visit.page("connections").at(&id).with("told", "renamed")),
        Err(refusal) if refusal.is_missing() => Err(refusal),
        Err(refusal) => show_one(&visit, &id, None, Some(&refusal), Some(&form)).await,
    }
}

pub(super) async fn reconnect(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let force = form.has("force").then_some("true");
    let path = Path::new(CONNECTIONS).at(&id).at("refresh").with_some("force", force);
    match visit.post::<ConnectionAnswer>(path, json!({})).await {
        Ok(answer) => show_made(&visit, &answer.connection, "fresh"),
        Err(refusal) if refusal.is_missing() => Err(refusal),
        Err(refusal) => show_one(&visit, &id, None, Some(&refusal), None).await,
    }
}

#[derive(Template)]
#[template(path = "connection_link.html")]
struct LinkPage<'a> {
    frame: Frame,
    connection: &'a Connection,
    here: String,
    link: &'a str,
    /// The same, where a browser may go there.
    target: Option<&'a str>,
}

/// What connecting came to: the connection, or the link to go to, which the API says only this once.
pub(super) fn show_made(visit: &Visit, made: &Connection, word: &str) -> PageResult {
    let here = made.page(visit);
    let Some(link) = made.redirect_url() else {
        let word = if made.is_valid() { word } else { "waiting" };
        return see_other(Path::new(&here).with("told", word));
    };
    let frame = Frame::new(visit, Section::Connections, format!("Connect {}", made.slug));
    show(&LinkPage { frame, connection: made, here, link, target: web_address(link) })
}

/// A question before something stops.
#[derive(Template)]
#[template(path = "connection_stop.html")]
struct StopPage {
    frame: Frame,
    connection: Connection,
    uses: Uses,
    back: String,
    here: String,
    is_delete: bool,
}

async fn ask(visit: &Visit, id: &str, what: &str) -> PageResult {
    let found = connection(visit, Seen::WithTools, id).await?;
    let back = visit.page("connections").at(id);
    let is_delete = what == "delete";
    let title = if is_delete { format!("Delete {}?", found.slug) } else { format!("Revoke {}?", found.slug) };
    let page = StopPage {
        frame: Frame::new(visit, Section::Connections, title),
        uses: uses(visit, id).await,
        here: back.clone().at(what).into(),
        back: back.into(),
        is_delete,
        connection: found,
    };
    show(&page)
}

pub(super) async fn ask_revoke(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    ask(&visit, &id, "revoke").await
}

pub(super) async fn revoke(visit: Visit, Segments((_, id)): Segments<(String, String)>, _: Form) -> PageResult {
    visit.post::<Value>(Path::new(CONNECTIONS).at(&id).at("revoke"), json!({})).await?;
    see_other(visit.page("connections").at(&id).with("told", "revoked"))
}

pub(super) async fn ask_delete(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    ask(&visit, &id, "delete").await
}

pub(super) async fn delete(visit: Visit, Segments((_, id)): Segments<(String, String)>, _: Form) -> PageResult {
    visit.delete(Path::new(CONNECTIONS).at(&id)).await?;
    see_other(visit.page("connections").with("told", "deleted"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_unused_when_nothing_is_counted() {
        let usage = json!({"agents": 1, "tools": 0, "odd": "x"});
        let counts = counts(usage.as_object().unwrap());
        assert_eq!(counts, [("agents".to_owned(), 1), ("tools".to_owned(), 0)]);
        assert!(!Uses { consumers: None, counts }.is_empty());
        assert!(Uses { consumers: Some(Vec::new()), counts: vec![("tools".to_owned(), 0)] }.is_empty());
    }
}
