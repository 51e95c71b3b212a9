//! JSON-RPC messages: read once into what they are, and written.

use serde_json::{Map, Value, json};

/// The id of a request: a string or an integer.
pub type RequestId = Value;

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    Request(Request),
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// The answer to a request: its result, or the error object.
    Answer {
        id: RequestId,
        result: Result<Value, Value>,
    },
}

/// What is no message, and the id that it has all the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Unreadable {
    pub why: Malformed,
    pub id: Option<RequestId>,
}

/// Why a value is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It is not of JSON-RPC's shape.
    Message(&'static str),
    /// Its `params` are not of MCP's shape.
    Params(&'static str),
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
        let refused = |why, id| Err(Box::new(Unreadable { why, id }));
        let Value::Object(mut fields) = value else { return refused(Malformed::Message("a message is an object"), None) };
        let id = fields.remove("id");
        let known = id.as_ref().filter(|id| is_id(id)).cloned();
        let refuse = |why: &'static str| refused(Malformed::Message(why), known.clone());
        if fields.get("jsonrpc").is_none_or(|version| version != "2.0") {
            return refuse("`jsonrpc` must be \"2.0\"");
        }
        if id.is_some() && known.is_none() {
            return refuse("`id` must be a string or an integer");
        }
        let method = match (fields.remove("method"), id) {
            (Some(Value::String(method)), _) => method,
            (None, Some(id)) if fields.contains_key("result") || fields.contains_key("error") => {
                return Ok(Self::Answer { id, result: answered(&mut fields) });
            }
            _ => return refuse("`method` must be a string"),
        };
        let params = match fields.remove("params") {
            None => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return refused(Malformed::Params("`params` must be an object"), known),
        };
        Ok(match known {
            Some(id) => Self::Request(Request { id, method, params }),
            None => Self::Notification { method, params },
        })
    }

    /// Reads what can be read of a message of somebody who keeps fewer rules; nothing where it is no message at all.
    pub fn read_loosely(value: Value) -> Option<Self> {
        let Value::Object(mut fields) = value else { return None };
        let id = fields.remove("id");
        let Some(Value::String(method)) = fields.remove("method") else {
            return id.map(|id| Self::Answer { id, result: answered(&mut fields) });
        };
        let params = match fields.remove("params") {
            Some(Value::Object(params)) => params,
            None | Some(_) => Map::new(),
        };
        Some(match id {
            Some(id) => Self::Request(Request { id, method, params }),
            None => Self::Notification { method, params },
        })
    }
}

fn answered(fields: &mut Map<String, Value>) -> Result<Value, Value> {
    match fields.remove("error") {
        Some(error) => Err(error),
        None => Ok(fields.remove("result").unwrap_or_default()),
    }
}

/// A request.
pub fn request(id: impl Into<RequestId>, method: &str, params: Map<String, Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

/// A message that wants no answer; params of `null` are left out.
pub fn notification(method: &str, params: Value) -> Value {
    match params {
        Value::Null => json!({"jsonrpc": "2.0", "method": method}),
        params => json!({"jsonrpc": "2.0", "method": method, "params": params}),
    }
}

/// The answer to a request that has a result.
pub fn result(id: &RequestId, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// The answer to a request that has none, or to something whose id could not be read.
pub fn error(id: Option<&RequestId>, code: i64, message: &str, data: Option<Value>) -> Value {
    let mut error = json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = data;
    }
    json!({"jsonrpc": "2.0", "id": id, "error": error})
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
        assert_eq!(answer, Message::Answer { id: json!("a"), result: Ok(json!({"action": "accept"})) });
        let failed = Message::read(json!({"jsonrpc": "2.0", "id": "a", "error": {"code": 1}})).unwrap();
        assert_eq!(failed, Message::Answer { id: json!("a"), result: Err(json!({"code": 1})) });
    }

    #[test]
    fn others_may_keep_fewer_rules() {
        let request = Message::read_loosely(json!({"id": 1.5, "method": "ping", "params": [1]})).unwrap();
        assert_eq!(request, Message::Request(Request { id: json!(1.5), method: "ping".to_owned(), params: Map::new() }));
        let answer = Message::read_loosely(json!({"id": 7, "method": 1, "result": {"a": 1}})).unwrap();
        assert_eq!(answer, Message::Answer { id: json!(7), result: Ok(json!({"a": 1})) });
        assert_eq!(Message::read_loosely(json!({"id": 7})).unwrap(), Message::Answer { id: json!(7), result: Ok(Value::Null) });
        for odd in [json!(7), json!([1]), json!({}), json!({"result": 1})] {
            assert_eq!(Message::read_loosely(odd), None);
        }
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
