//! How the server does: version, nodes, queues, and the settings in force.

use askama::Template;
use axum::Router;
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Operator, Tab, show_refused_tab};
use crate::frame::{Frame, Link, show};
use crate::refusal::PageResult;
use crate::ui::{self, Markup, folded};

/// Values longer than this are folded.
const SHOWN: usize = 200;

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/-/operator/status", get(one))
}

#[derive(Debug, Deserialize)]
struct Status {
    version: String,
    started_at: Option<String>,
    database: Option<String>,
    #[serde(default)]
    nodes: Vec<Node>,
    /// By name, so that one more queue needs no change here.
    #[serde(default)]
    queues: Map<String, Value>,
    #[serde(default)]
    settings: Vec<Setting>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: Value,
    seen_at: String,
}

#[derive(Debug, Deserialize)]
struct Setting {
    name: String,
    #[serde(default)]
    value: Value,
    source: String,
}

impl Node {
    fn name(&self) -> String {
        plain(&self.id)
    }
}

impl Setting {
    fn shown(&self) -> Markup {
        folded(&plain(&self.value), SHOWN)
    }
}

impl Status {
    fn queues(&self) -> Vec<(String, String)> {
        self.queues.iter().map(|(name, depth)| (queue_words(name), plain(depth))).collect()
    }
}

/// Texts as they are, nothing for null, other values as JSON writes them.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// `deliveries_ready` as "Deliveries ready".
fn queue_words(name: &str) -> String {
    let words = name.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[derive(Template)]
#[template(path = "operator_status.html")]
struct StatusPage {
    frame: Frame,
    tabs: Vec<Link>,
    status: Status,
}

async fn one(Operator(visit): Operator) -> PageResult {
    match visit.get::<Status>("/admin/status").await {
        Ok(status) => show(&StatusPage { frame: Tab::Status.frame(&visit), tabs: Tab::Status.links(), status }),
        Err(refusal) => show_refused_tab(&visit, Tab::Status, &refusal),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_values_are_words() {
        assert_eq!(queue_words("deliveries_ready"), "Deliveries ready");
        assert_eq!(queue_words(""), "");
        assert_eq!([json!("a"), json!(null), json!(3), json!(true)].map(|value| plain(&value)), ["a", "", "3", "true"]);
    }
}
