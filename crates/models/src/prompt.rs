//! What a model is asked, in words of no API in particular.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{anthropic, chat, responses};

/// How a model is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Api {
    #[serde(rename = "openai_chat")]
    OpenaiChat,
    #[serde(rename = "openai_responses")]
    OpenaiResponses,
    #[serde(rename = "anthropic")]
    Anthropic,
}

/// A name that is no API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a model API: use `openai_chat`, `openai_responses` or `anthropic`")]
pub struct UnknownApi(String);

impl Api {
    /// Every API.
    pub const ALL: [Self; 3] = [Self::OpenaiChat, Self::OpenaiResponses, Self::Anthropic];

    /// The API's name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai_chat",
            Self::OpenaiResponses => "openai_responses",
            Self::Anthropic => "anthropic",
        }
    }

    /// The base URL of whoever made the API.
    pub fn default_url(self) -> &'static str {
        match self {
            Self::OpenaiChat | Self::OpenaiResponses => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com/v1",
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Api {
    type Err = UnknownApi;

    fn from_str(name: &str) -> Result<Self, UnknownApi> {
        Self::ALL.into_iter().find(|api| api.name() == name).ok_or_else(|| UnknownApi(name.to_owned()))
    }
}

/// One question to a model: everything that it is told.
#[derive(Clone, Copy, Debug)]
pub struct Prompt<'a> {
    pub model: &'a str,
    pub system: &'a str,
    pub messages: &'a [Message],
    pub tools: &'a [Tool],
    /// What the answer must fit. Where the API cannot hold the model to it, the model is told; the caller checks the answer either way.
    pub output_schema: Option<&'a Value>,
    pub max_output_tokens: Option<u32>,
    pub stream: bool,
    /// Fields of the API that are passed on, such as `temperature`. What a prompt says itself wins over them.
    pub extras: Option<&'a Map<String, Value>>,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    User {
        text: String,
    },
    Assistant {
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        /// What the API must get back unchanged, such as signed thinking; another API ignores it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Value>,
    },
    Tool {
        call_id: String,
        name: String,
        content: String,
        #[serde(default)]
        is_error: bool,
    },
}

/// A tool that the model wants to be called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// JSON as the model wrote it, which may not be JSON at all.
    pub arguments: String,
}

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// A JSON Schema of type `object`.
    pub parameters: Value,
}

/// What is to be posted to the API, below its base URL (which ends in `/v1` with most) and without a credential.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub path: &'static str,
    pub headers: Vec<(&'static str, String)>,
    pub body: Value,
}

/// The request that asks a model.
pub fn request(api: Api, prompt: &Prompt<'_>) -> Request {
    let mut headers = vec![
        ("content-type", "application/json".to_owned()),
        ("accept", if prompt.stream { "text/event-stream" } else { "application/json" }.to_owned()),
    ];
    let (path, body) = match api {
        Api::OpenaiChat => ("/chat/completions", chat::body(prompt)),
        Api::OpenaiResponses => ("/responses", responses::body(prompt)),
        Api::Anthropic => {
            headers.push(("anthropic-version", anthropic::VERSION.to_owned()));
            ("/messages", anthropic::body(prompt))
        }
    };
    Request { path, headers, body: Value::Object(body) }
}

/// The arguments as an object: servers refuse, or break on, a conversation in which they are not one.
pub(crate) fn argument_object(arguments: &str) -> Map<String, Value> {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(map)) => map,
        _ if arguments.trim().is_empty() => Map::new(),
        _ => Map::from_iter([("INVALID_JSON".to_owned(), Value::from(arguments))]),
    }
}

/// The same as text; what the model wrote stays as it is where it can.
pub(crate) fn argument_text(arguments: &str) -> String {
    match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(_) => arguments.to_owned(),
        Err(_) => Value::Object(argument_object(arguments)).to_string(),
    }
}

/// The body with the extras that the prompt does not say itself.
pub(crate) fn with_extras(prompt: &Prompt<'_>) -> Map<String, Value> {
    prompt.extras.cloned().unwrap_or_default()
}

/// Puts a value under a field of an object in the body, beside what extras put there.
pub(crate) fn set_inside(body: &mut Map<String, Value>, outer: &str, inner: &str, value: Value) {
    let place = body.entry(outer).or_insert_with(|| json!({}));
    if !place.is_object() {
        *place = json!({});
    }
    place[inner] = value;
}

/// What the model is told where the API cannot hold it to a schema.
pub(crate) fn told_schema(system: &str, schema: &Value) -> String {
    let told = format!("When you are done, answer with JSON alone, without code fences, that fits this JSON Schema: {schema}");
    if system.trim().is_empty() { told } else { format!("{system}\n\n{told}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_apis_are_the_ones_on_the_wire() {
        for api in Api::ALL {
            assert_eq!(serde_json::to_value(api).unwrap(), json!(api.name()));
            assert_eq!(api.name().parse(), Ok(api));
        }
        assert!("openai".parse::<Api>().unwrap_err().to_string().contains("`openai_chat`"));
    }

    #[test]
    fn arguments_become_an_object_whatever_was_written() {
        assert_eq!(argument_text(r#"{"a":  1}"#), r#"{"a":  1}"#);
        assert_eq!(argument_text(" "), "{}");
        assert_eq!(argument_text("[1]"), r#"{"INVALID_JSON":"[1]"}"#);
        assert_eq!(argument_text(r#"{"a":"#), r#"{"INVALID_JSON":"{\"a\":"}"#);
    }

    #[test]
    fn messages_are_kept_as_json() {
        let messages = vec![
            Message::User { text: "Hi".into() },
            Message::Assistant { text: String::new(), calls: vec![ToolCall::default()], opaque: Some(json!({"api": "anthropic"})) },
            Message::Tool { call_id: "1".into(), name: "a".into(), content: "{}".into(), is_error: true },
        ];
        let kept = serde_json::to_string(&messages).unwrap();
        assert!(kept.contains(r#"{"role":"user","text":"Hi"}"#));
        assert_eq!(serde_json::from_str::<Vec<Message>>(&kept).unwrap(), messages);
    }
}
