//! The record of calls: who called what, how it ended, and where its time went.

mod export;
mod filters;
mod list;
mod live;
mod names;
mod one;

use axum::Router;
use axum::routing::get;
use serde::Deserialize;

use crate::ui::{Markup, Tone, badge, duration_ms};

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/{project}/calls", get(list::list))
        .route("/{project}/calls/live", get(live::live))
        .route("/{project}/calls/export", get(export::export))
        .route("/{project}/calls/{call}", get(one::one))
}

#[derive(Debug, Deserialize)]
struct Answer {
    calls: Vec<Call>,
    cursor: Option<String>,
}

/// How a call ended, as everybody shows it.
pub(crate) fn outcome_badge(outcome: &str) -> Markup {
    let tone = match outcome {
        "ok" => Tone::Good,
        "error" | "failed" => Tone::Bad,
        "unknown" | "waiting" => Tone::Wait,
        _ => Tone::Plain,
    };
    badge(tone, outcome)
}

/// A call for the record.
#[derive(Debug, Default, Deserialize)]
struct Call {
    id: String,
    #[serde(rename = "call_ref")]
    called_as: String,
    /// The one name of what was called.
    tool: Option<String>,
    connection_id: Option<String>,
    via: Option<String>,
    key_id: Option<String>,
    key_name: Option<String>,
    client_name: Option<String>,
    user_name: Option<String>,
    agent_id: Option<String>,
    run_id: Option<String>,
    step: Option<String>,
    delivery_id: Option<String>,
    approval_id: Option<String>,
    end_user: Option<String>,
    outcome: String,
    message: Option<String>,
    duration_ms: f64,
    created_at: String,
}

impl Call {
    fn name(&self) -> &str {
        self.tool.as_deref().unwrap_or(&self.called_as)
    }

    fn state(&self) -> Markup {
        outcome_badge(&self.outcome)
    }

    fn is_running(&self) -> bool {
        self.outcome == "running"
    }

    /// How long it took; a call that runs has taken no time yet.
    fn took(&self) -> String {
        if self.is_running() { String::new() } else { duration_ms(self.duration_ms) }
    }

    /// Whoever made it, in a few words.
    fn who(&self) -> String {
        let person = self.user_name.as_deref();
        match (self.via.as_deref(), person) {
            (Some("client"), person) => {
                let client = self.client_name.as_deref().unwrap_or("a client");
                person.map_or_else(|| client.to_owned(), |person| format!("{client} for {person}"))
            }
            (Some("person"), person) => person.unwrap_or("a person").to_owned(),
            (Some("operator"), _) => "operator".to_owned(),
            _ => self.key_name.as_deref().or(person).unwrap_or("not on record").to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_called_has_a_name() {
        let call = |via: &str, key: &str, client: &str, user: &str| {
            let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            Call { via: some(via), key_name: some(key), client_name: some(client), user_name: some(user), ..Call::default() }.who()
        };
        assert_eq!(call("client", "", "Cursor", "Ann"), "Cursor for Ann");
        assert_eq!(call("client", "", "", ""), "a client");
        assert_eq!(call("person", "", "", "Ann"), "Ann");
        assert_eq!(call("key", "first key", "", "Ann"), "first key");
        assert_eq!(call("operator", "", "", ""), "operator");
        assert_eq!(call("", "", "", ""), "not on record");
    }
}
