use models::{Api, Delta, Message, ModelError, Prompt, Reply, StreamReader, Tool, ToolCall};
use serde_json::{Value, json};

pub(crate) fn prompt<'a>(messages: &'a [Message], tools: &'a [Tool]) -> Prompt<'a> {
    Prompt {
        model: "some-model",
        system: "Be brief.",
        messages,
        tools,
        output_schema: None,
        max_output_tokens: None,
        stream: false,
        extras: None,
    }
}

pub(crate) fn weather() -> Vec<Tool> {
    vec![Tool {
        name: "weather".into(),
        description: "The weather of a city.".into(),
        parameters: json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
    }]
}

pub(crate) fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: "weather".into(), arguments: arguments.into() }
}

/// A conversation in which two tools were called at once, and one of them failed.
pub(crate) fn conversation() -> Vec<Message> {
    vec![
        Message::User { text: "Paris and Rome?".into() },
        Message::Assistant {
            text: "Looking.".into(),
            calls: vec![call("call_1", r#"{"city": "Paris"}"#), call("call_2", r#"{"city":"#)],
            opaque: None,
        },
        Message::Tool { call_id: "call_1".into(), name: "weather".into(), content: "12 degrees".into(), is_error: false },
        Message::Tool { call_id: "call_2".into(), name: "weather".into(), content: "no JSON".into(), is_error: true },
        Message::User { text: "Go on.".into() },
    ]
}

pub(crate) fn body(api: Api, prompt: &Prompt<'_>) -> Value {
    models::request(api, prompt).body
}

pub(crate) fn read(api: Api, body: &Value) -> Result<Reply, ModelError> {
    models::reply(api, 200, None, body.to_string().as_bytes())
}

/// Reads a stream that arrives in these pieces.
pub(crate) fn pieces<'a>(api: Api, pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<(Vec<Delta>, Reply), ModelError> {
    let mut reader = StreamReader::new(api);
    let mut deltas = Vec::new();
    for piece in pieces {
        deltas.extend(reader.push(piece)?);
    }
    Ok((deltas, reader.end()?))
}

pub(crate) fn streamed(api: Api, stream: &str) -> Result<(Vec<Delta>, Reply), ModelError> {
    pieces(api, [stream.as_bytes()])
}

/// Server-sent events with this data.
pub(crate) fn events(data: &[Value]) -> String {
    data.iter().map(|data| format!("data: {data}\n\n")).collect()
}
