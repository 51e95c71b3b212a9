//! The messages: JSON-RPC, and the revisions of the protocol that are spoken here.

use serde_json::{Map, Value, json};
use tools::Step;

use super::fault::Fault;

/// The revision whose requests say everything themselves.
pub(super) const STATELESS: &str = "2026-07-28";
/// The revisions that begin with `initialize`, the newest first.
pub(super) const SESSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The largest message.
pub(super) const MAX_MESSAGE: usize = 8 << 20;
const MAX_WORDS: usize = 500;
const NO_METHOD: i64 = -32601;

/// A message of a server.
#[derive(Debug)]
pub(super) enum Heard {
    Answer {
        id: u64,
        result: Result<Value, Fault>,
    },
    /// The server asks something.
    Question {
        id: Value,
        method: String,
    },
    Progress {
        token: u64,
        step: Step,
    },
    ToolsChanged,
    Other,
}

pub(super) fn read(mut message: Value) -> Heard {
    let method = message["method"].as_str().map(str::to_owned);
    let id = message.get("id").cloned();
    match (method, id) {
        (Some(method), Some(id)) => Heard::Question { id, method },
        (Some(method), None) => match method.as_str() {
            "notifications/tools/list_changed" => Heard::ToolsChanged,
            "notifications/progress" => progress(&message["params"]).unwrap_or(Heard::Other),
            _ => Heard::Other,
        },
        (None, Some(id)) => match (id.as_u64(), message.get("error")) {
            (None, _) => Heard::Other,
            (Some(id), Some(error)) => Heard::Answer { id, result: Err(refusal(error)) },
            (Some(id), None) => Heard::Answer { id, result: Ok(message["result"].take()) },
        },
        (None, None) => Heard::Other,
    }
}

fn progress(params: &Value) -> Option<Heard> {
    let step = Step {
        done: params["progress"].as_f64()?,
        total: params["total"].as_f64(),
        message: params["message"].as_str().map(|words| bounded(words, MAX_WORDS)),
    };
    Some(Heard::Progress { token: params["progressToken"].as_u64()?, step })
}

pub(super) fn refusal(error: &Value) -> Fault {
    let message = error["message"].as_str().unwrap_or("the server refused without a word");
    Fault::Rpc { code: error["code"].as_i64().unwrap_or_default(), message: bounded(message, MAX_WORDS) }
}

/// Words of a server for people: one line, not too long.
pub(super) fn bounded(words: &str, most: usize) -> String {
    let words: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).take(most).collect();
    words.trim().to_owned()
}

pub(super) fn request(id: u64, method: &str, params: Map<String, Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(super) fn notification(method: &str, params: Value) -> Value {
    match params {
        Value::Null => json!({"jsonrpc": "2.0", "method": method}),
        params => json!({"jsonrpc": "2.0", "method": method, "params": params}),
    }
}

pub(super) fn cancelled(id: u64) -> Value {
    notification("notifications/cancelled", json!({"requestId": id, "reason": "nobody waits for it any more"}))
}

/// What a server that asks is told: that we are here, and nothing else, because nothing else was offered.
pub(super) fn answer(id: Value, method: &str) -> Value {
    if method == "ping" {
        return json!({"jsonrpc": "2.0", "id": id, "result": {}});
    }
    let error = json!({"code": NO_METHOD, "message": format!("`{}` is not offered here", bounded(method, 80))});
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

/// Who we are.
pub(super) fn client_info() -> Value {
    json!({"name": "toolyard", "version": env!("CARGO_PKG_VERSION")})
}

/// What every request of the stateless revision says.
pub(super) fn envelope(params: &mut Map<String, Value>) {
    let meta = params.entry("_meta").or_insert_with(|| json!({}));
    meta["io.modelcontextprotocol/protocolVersion"] = STATELESS.into();
    meta["io.modelcontextprotocol/clientInfo"] = client_info();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
}

/// The id of an answer that is too long to be read whole, from its first and its last bytes.
pub(super) fn id_of_long(head: &[u8], tail: &[u8]) -> Option<u64> {
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
        assert!(matches!(refused, Heard::Answer { result: Err(Fault::Rpc { code: -32602, message }), .. } if message == "no such tool"));
        assert!(matches!(read(json!({"id": "x", "method": "ping"})), Heard::Question { .. }));
        assert!(matches!(read(json!({"method": "notifications/tools/list_changed"})), Heard::ToolsChanged));
        let progress = json!({"method": "notifications/progress", "params": {"progressToken": 3, "progress": 1, "total": 4}});
        assert!(matches!(read(progress), Heard::Progress { token: 3, step: Step { total: Some(total), .. } } if (total - 4.0).abs() < 0.1));
        for odd in [json!({}), json!(7), json!([1]), json!({"id": "x", "result": 1}), json!({"method": "notifications/progress"})] {
            assert!(matches!(read(odd), Heard::Other));
        }
    }

    #[test]
    fn only_a_ping_is_answered() {
        assert_eq!(answer(json!(1), "ping")["result"], json!({}));
        assert_eq!(answer(json!(1), "sampling/createMessage")["error"]["code"], NO_METHOD);
    }

    #[test]
    fn long_answers_tell_their_id_at_either_end() {
        assert_eq!(id_of_long(br#"{"jsonrpc":"2.0","id":12,"result":{"content":["#, b"aaaa\"]}}"), Some(12));
        assert_eq!(id_of_long(br#"{"result":{"id": 4,"#, br#"aaa"}]},"jsonrpc":"2.0","id":7}"#), Some(7));
        assert_eq!(id_of_long(br#"{"result":{"id": 4,"#, br#"aaa"id":9, "more": "and more and more and more"}"#), None);
        assert_eq!(id_of_long(b"", b""), None);
    }
}
