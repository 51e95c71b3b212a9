//! JSON-RPC messages, read once into what they are.

use serde_json::{Map, Value};

use crate::Fault;

/// The id of a request: a string or an integer.
pub type RequestId = Value;

/// One message of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    Request(Request),
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// The answer to a request of ours: the result, or nothing where the client failed.
    Answer {
        id: RequestId,
        result: Option<Value>,
    },
}

/// What is no message, and the id that it has all the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Unreadable {
    pub fault: Fault,
    pub id: Option<RequestId>,
}

/// A request that wants an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub id: RequestId,
    pub method: String,
    pub params: Map<String, Value>,
}

impl Request {
    pub fn meta(&self, key: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(key)
    }
}

impl Message {
    /// Reads a message; what is wrong with it is told with its id, where it has one.
    pub fn read(value: Value) -> Result<Self, Box<Unreadable>> {
        let refused = |fault, id| Err(Box::new(Unreadable { fault, id }));
        let Value::Object(mut fields) = value else { return refused(Fault::Request("a message is an object".to_owned()), None) };
        let id = fields.remove("id");
        let known = id.as_ref().filter(|id| is_id(id)).cloned();
        let refuse = |why: &str| refused(Fault::Request(why.to_owned()), known.clone());
        if fields.get("jsonrpc").is_none_or(|version| version != "2.0") {
            return refuse("`jsonrpc` must be \"2.0\"");
        }
        if id.is_some() && known.is_none() {
            return refuse("`id` must be a string or an integer");
        }
        let method = match (fields.remove("method"), id) {
            (Some(Value::String(method)), _) => method,
            (None, Some(id)) if fields.contains_key("result") || fields.contains_key("error") => {
                return Ok(Self::Answer { id, result: fields.remove("result") });
            }
            _ => return refuse("`method` must be a string"),
        };
        let params = match fields.remove("params") {
            None => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return refused(Fault::Params("`params` must be an object".to_owned()), known),
        };
        Ok(match known {
            Some(id) => Self::Request(Request { id, method, params }),
            None => Self::Notification { method, params },
        })
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_told_apart_by_what_they_hold() {
        let request = Message::read(json!({"jsonrpc": "2.0", "id": 0, "method": "ping"})).unwrap();
        assert_eq!(request, Message::Request(Request { id: json!(0), method: "ping".to_owned(), params: Map::new() }));
        let notification = Message::read(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).unwrap();
        assert!(matches!(notification, Message::Notification { .. }));
        let answer = Message::read(json!({"jsonrpc": "2.0", "id": "a", "result": {"action": "accept"}})).unwrap();
        assert_eq!(answer, Message::Answer { id: json!("a"), result: Some(json!({"action": "accept"})) });
    }

    #[test]
    fn malformed_messages_keep_the_id_they_have() {
        for (message, id) in [
            (json!(1), None),
            (json!([]), None),
            (json!({"id": 7, "method": "ping"}), Some(json!(7))),
            (json!({"jsonrpc": "2.0", "id": 7}), Some(json!(7))),
            (json!({"jsonrpc": "2.0", "id": 7, "method": 1}), Some(json!(7))),
            (json!({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": []}), Some(json!(7))),
            (json!({"jsonrpc": "2.0", "id": null, "method": "ping"}), None),
            (json!({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}), None),
        ] {
            assert_eq!(Message::read(message.clone()).unwrap_err().id, id, "{message}");
        }
    }
}
