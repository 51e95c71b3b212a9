//! What is said to servers, and what is heard of them.

use calls::ProgressStep;
use mcp_wire::{Message, Request, Version, code, meta, notification};
use serde_json::{Map, Value, json};

use crate::fault::ServerError;

/// The largest message.
pub(crate) const MAX_MESSAGE: usize = 8 << 20;
const MAX_WORDS: usize = 500;

/// A message of a server.
#[derive(Debug)]
pub(crate) enum Heard {
    Answer {
        id: u64,
        result: Result<Value, ServerError>,
    },
    /// The server asks something.
    Question {
        id: Value,
        method: String,
    },
    Progress {
        token: u64,
        step: ProgressStep,
    },
    ToolsChanged,
    Other,
}

pub(crate) fn read(message: Value) -> Heard {
    match Message::read_loosely(message) {
        Some(Message::Request(Request { id, method, .. })) => Heard::Question { id, method },
        Some(Message::Notification { method, params }) => match method.as_str() {
            "notifications/tools/list_changed" => Heard::ToolsChanged,
            "notifications/progress" => progress(&Value::Object(params)).unwrap_or(Heard::Other),
            _ => Heard::Other,
        },
        Some(Message::Answer { id, result }) => match id.as_u64() {
            Some(id) => Heard::Answer { id, result: result.map_err(|error| refusal(&error)) },
            None => Heard::Other,
        },
        None => Heard::Other,
    }
}

fn progress(params: &Value) -> Option<Heard> {
    let step = ProgressStep {
        done: params["progress"].as_f64()?,
        total: params["total"].as_f64(),
        message: params["message"].as_str().map(|words| bounded(words, MAX_WORDS)),
    };
    Some(Heard::Progress { token: params["progressToken"].as_u64()?, step })
}

pub(crate) fn refusal(error: &Value) -> ServerError {
    let message = error["message"].as_str().unwrap_or("the server refused without a word");
    ServerError::Rpc { code: error["code"].as_i64().unwrap_or_default(), message: bounded(message, MAX_WORDS) }
}

/// Words of a server for people: one line, not too long.
pub(crate) fn bounded(words: &str, most: usize) -> String {
    let words: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).take(most).collect();
    words.trim().to_owned()
}

pub(crate) fn cancelled(id: u64) -> Value {
    notification("notifications/cancelled", json!({"requestId": id, "reason": "nobody waits for it any more"}))
}

/// What a server that asks is told: that we are here, and nothing else, because nothing else was offered.
pub(crate) fn answer(id: Value, method: &str) -> Value {
    if method == "ping" {
        return mcp_wire::result(&id, json!({}));
    }
    mcp_wire::error(Some(&id), code::METHOD_NOT_FOUND, &format!("`{}` is not offered here", bounded(method, 80)), None)
}

/// Who we are.
pub(crate) fn client_info() -> Value {
    json!({"name": "toolyard", "version": env!("CARGO_PKG_VERSION")})
}

/// What every request of the stateless revision says.
pub(crate) fn envelope(params: &mut Map<String, Value>) {
    let said = params.entry("_meta").or_insert_with(|| json!({}));
    said[meta::PROTOCOL_VERSION] = Version::STATELESS.name().into();
    said[meta::CLIENT_INFO] = client_info();
    said[meta::CLIENT_CAPABILITIES] = json!({});
}

/// The id of an answer that is too long to be read whole, from its first and its last bytes.
pub(crate) fn id_of_long(head: &[u8], tail: &[u8]) -> Option<u64> {
    let digits = |bytes: &[u8]| {
        let text: String = bytes
            .iter()
            .skip_while(|byte| byte.is_ascii_whitespace())
            .take_while(|byte| byte.is_ascii_digit())
            .map(|&b| char::from(b))
            .collect();
        text.parse().ok()
    };
    let find = |bytes: &[u8], from_end: bool| {
        let mark = b"\"id\":";
        let mut places = bytes.windows(mark.len()).enumerate().filter(|(_, window)| window == mark).map(|(at, _)| at);
        let at = if from_end { places.next_back() } else { places.next() }?;
        Some(at + mark.len())
    };
    // At the front it stands before the result; at the end it is the last thing but the brace.
    let first = find(head, false).filter(|at| !head[..*at].windows(8).any(|window| window == b"\"result\""));
    let last = find(tail, true).filter(|at| tail[*at..].iter().filter(|byte| !byte.is_ascii_whitespace()).count() <= 21);
    first.and_then(|at| digits(&head[at..])).or_else(|| last.and_then(|at| digits(&tail[at..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        assert!(matches!(read(json!({"id": 1, "result": {"a": 1}})), Heard::Answer { id: 1, result: Ok(_) }));
        let refused = read(json!({"id": 1, "error": {"code": -32602, "message": "no\nsuch tool"}}));
        assert!(
            matches!(refused, Heard::Answer { result: Err(ServerError::Rpc { code: -32602, message }), .. } if message == "no such tool")
        );
        assert!(matches!(read(json!({"id": "x", "method": "ping"})), Heard::Question { .. }));
        assert!(matches!(read(json!({"method": "notifications/tools/list_changed"})), Heard::ToolsChanged));
        let progress = json!({"method": "notifications/progress", "params": {"progressToken": 3, "progress": 1, "total": 4}});
        assert!(
            matches!(read(progress), Heard::Progress { token: 3, step: ProgressStep { total: Some(total), .. } } if (total - 4.0).abs() < 0.1)
        );
        for odd in [json!({}), json!(7), json!([1]), json!({"id": "x", "result": 1}), json!({"method": "notifications/progress"})] {
            assert!(matches!(read(odd), Heard::Other));
        }
    }

    #[test]
    fn only_a_ping_is_answered() {
        assert_eq!(answer(json!(1), "ping")["result"], json!({}));
        assert_eq!(answer(json!(1), "sampling/createMessage")["error"]["code"], code::METHOD_NOT_FOUND);
    }

    #[test]
    fn long_answers_tell_their_id_at_either_end() {
        assert_eq!(id_of_long(br#"{"jsonrpc":"2.0","id":12,"result":{"content":["#, b"aaaa\"]}}"), Some(12));
        assert_eq!(id_of_long(br#"{"result":{"id": 4,"#, br#"aaa"}]},"jsonrpc":"2.0","id":7}"#), Some(7));
        assert_eq!(id_of_long(br#"{"result":{"id": 4,"#, br#"aaa"id":9, "more": "and more and more and more"}"#), None);
        assert_eq!(id_of_long(b"", b""), None);
    }
}
