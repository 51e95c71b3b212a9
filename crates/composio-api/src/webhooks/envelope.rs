//! Messages as Composio writes them, in each of its versions. Functions of values.

use kernel::Timestamp;
use serde_json::{Map, Value, json};

use super::TRIGGER_MESSAGE;

/// How a message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
    V3,
}

impl Version {
    pub(crate) const ALL: [Self; 3] = [Self::V1, Self::V2, Self::V3];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V1 => "V1",
            Self::V2 => "V2",
            Self::V3 => "V3",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }
}

/// An event of a trigger. What there is none of is empty: SDKs take a message without one of these for another kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct TriggerMessage {
    /// The same for every try.
    pub(crate) id: String,
    pub(crate) log_id: String,
    pub(crate) trigger_slug: String,
    pub(crate) trigger_id: String,
    pub(crate) trigger_uuid: String,
    pub(crate) account_id: String,
    pub(crate) account_uuid: String,
    pub(crate) auth_config_id: String,
    pub(crate) user_id: String,
    pub(crate) at: Option<Timestamp>,
    pub(crate) data: Value,
}

/// The body of an event of a trigger.
pub(crate) fn trigger_body(version: Version, message: TriggerMessage) -> Value {
    let timestamp = message.at.map(|at| at.to_string()).unwrap_or_default();
    let data = object(message.data);
    match version {
        Version::V1 => json!({
            "trigger_name": message.trigger_slug, "connection_id": message.account_id, "trigger_id": message.trigger_id,
            "payload": data, "log_id": message.log_id,
        }),
        Version::V2 => {
            let mut all = data;
            for (name, value) in [
                ("trigger_nano_id", message.trigger_id),
                ("trigger_id", message.trigger_uuid),
                ("connection_nano_id", message.account_id),
                ("connection_id", message.account_uuid),
                ("user_id", message.user_id),
            ] {
                all.insert(name.to_owned(), json!(value));
            }
            json!({"type": message.trigger_slug.to_lowercase(), "timestamp": timestamp, "log_id": message.log_id, "data": all})
        }
        Version::V3 => json!({
            "id": message.id,
            "timestamp": timestamp,
            "type": TRIGGER_MESSAGE,
            "metadata": {
                "log_id": message.log_id, "trigger_slug": message.trigger_slug, "trigger_id": message.trigger_id,
                "connected_account_id": message.account_id, "auth_config_id": message.auth_config_id, "user_id": message.user_id,
            },
            "data": data,
        }),
    }
}

/// A message that no trigger sent; they exist in the newest version only.
pub(crate) fn other_body(event: &str, id: &str, at: Timestamp, metadata: &Value, data: &Value) -> Value {
    json!({"id": id, "timestamp": at.to_string(), "type": event, "metadata": metadata, "data": data})
}

/// Data is always an object.
fn object(data: Value) -> Map<String, Value> {
    match data {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(data: Value) -> TriggerMessage {
        let text = |text: &str| text.to_owned();
        TriggerMessage {
            id: text("msg_1"),
            log_id: text("log_1"),
            trigger_slug: text("GITHUB_ISSUE_OPENED"),
            trigger_id: text("ti_1"),
            trigger_uuid: text("t-1"),
            account_id: text("ca_1"),
            account_uuid: text("c-1"),
            auth_config_id: text("ac_1"),
            user_id: text("ann"),
            at: Some(Timestamp::from_micros(1_800_000_000_000_000)),
            data,
        }
    }

    #[test]
    fn each_version_is_written_as_sdks_read_it() {
        let v3 = trigger_body(Version::V3, message(json!({"title": "x"})));
        assert_eq!(v3["type"], "composio.trigger.message");
        assert_eq!((&v3["id"], &v3["data"]), (&json!("msg_1"), &json!({"title": "x"})));
        assert_eq!(v3["metadata"].as_object().unwrap().len(), 6);
        assert!(v3["metadata"].as_object().unwrap().values().all(Value::is_string));
        let v2 = trigger_body(Version::V2, message(json!({"title": "x", "user_id": "somebody else"})));
        assert_eq!((&v2["type"], &v2["log_id"]), (&json!("github_issue_opened"), &json!("log_1")));
        let data = json!({"title": "x", "user_id": "ann", "trigger_nano_id": "ti_1", "trigger_id": "t-1", "connection_nano_id": "ca_1", "connection_id": "c-1"});
        assert_eq!(v2["data"], data);
        let v1 = trigger_body(Version::V1, message(json!([1])));
        let expected = json!({"trigger_name": "GITHUB_ISSUE_OPENED", "connection_id": "ca_1", "trigger_id": "ti_1", "payload": {"value": [1]}, "log_id": "log_1"});
        assert_eq!(v1, expected);
    }

    #[test]
    fn what_there_is_none_of_is_an_empty_text() {
        let v3 = trigger_body(Version::V3, TriggerMessage::default());
        assert!(v3["metadata"].as_object().unwrap().values().all(|value| value == ""));
        assert_eq!(v3["data"], json!({}));
    }
}
