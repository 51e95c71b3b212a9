//! What an API writes for one turn.

use std::time::Duration;

use serde_json::{Value, json};

use crate::conversation::{Api, Call, Conversation};
use crate::script::{Ending, Turn};
use crate::{anthropic, chat, responses};

/// A turn with everything that is decided when it is played.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) id: u64,
    pub(crate) model: String,
    pub(crate) reasoning: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) ending: Ending,
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) output: u64,
    pub(crate) pace: Duration,
}

impl Played {
    pub(crate) fn new(id: u64, conversation: &Conversation, turn: Turn) -> Self {
        let calls: Vec<Call> = (0..).zip(turn.calls).map(|(index, planned)| planned_call(id, index, planned)).collect();
        let written = turn.text.len() + turn.reasoning.len() + calls.iter().map(|call| call.arguments.len()).sum::<usize>();
        let input = conversation.size();
        Self {
            id,
            model: conversation.model.clone(),
            reasoning: turn.reasoning,
            text: turn.text,
            calls,
            ending: turn.ending,
            input,
            cached: turn.cached.min(input),
            output: (written / 4 + 1) as u64,
            pace: Duration::from_millis(turn.pace_ms),
        }
    }

    /// The body of an answer in one piece.
    pub(crate) fn whole(&self, api: Api) -> Value {
        match api {
            Api::Chat => chat::whole(self),
            Api::Responses => responses::whole(self),
            Api::Anthropic => anthropic::whole(self),
        }
    }

    /// The events of a stream, as they are written.
    pub(crate) fn events(&self, api: Api) -> Vec<String> {
        match api {
            Api::Chat => chat::events(self).iter().map(|data| format!("data: {data}\n\n")).chain(["data: [DONE]\n\n".to_owned()]).collect(),
            Api::Responses => named(&responses::events(self)),
            Api::Anthropic => named(&anthropic::events(self)),
        }
    }
}

fn planned_call(id: u64, index: u64, planned: crate::script::PlannedCall) -> Call {
    let arguments = match planned.arguments {
        Value::String(text) => text,
        value => value.to_string(),
    };
    Call { id: format!("call_{id}_{index}"), name: planned.name, arguments }
}

fn named(events: &[Value]) -> Vec<String> {
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())).collect()
}

/// A text in the pieces in which a model writes it.
pub(crate) fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(12).map(|piece| piece.iter().collect()).collect()
}

/// The error of an API.
pub(crate) fn error(api: Api, status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    match (api, status) {
        (Api::Anthropic, _) => json!({"type": "error", "error": {"type": kind, "message": message}}),
        (_, 429) => json!({"error": {"message": message, "type": "requests", "param": null, "code": "rate_limit_exceeded"}}),
        (_, 500..) => json!({"error": {"message": message, "type": "server_error", "param": null, "code": null}}),
        _ => json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": null}}),
    }
}

/// An error as it is written in the middle of a stream.
pub(crate) fn error_event(api: Api) -> String {
    match api {
        Api::Chat => format!("data: {}\n\n", error(api, 500, "The server had an error while writing.")),
        Api::Responses => {
            named(&[json!({"type": "error", "code": "server_error", "message": "The server had an error.", "param": null})]).concat()
        }
        Api::Anthropic => named(&[error(api, 529, "Overloaded")]).concat(),
    }
}
