use models::{Api, Delta, ErrorKind, Message, Stop, Usage};
use serde_json::{Value, json};

use crate::support::{body, call, conversation, prompt, read, streamed, weather};

const ANTHROPIC: Api = Api::Anthropic;

fn named(events: &[Value]) -> String {
    events.iter().map(|event| format!("event: {}\r\ndata: {event}\r\n\r\n", event["type"].as_str().unwrap_or_default())).collect()
}

fn content() -> Value {
    json!([
        {"type": "thinking", "thinking": "Two cities.", "signature": "EqQB"},
        {"type": "text", "text": "Lööking."},
        {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Paris"}},
        {"type": "tool_use", "id": "call_2", "name": "weather", "input": {}},
    ])
}

fn beginning() -> Vec<Value> {
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    let usage = json!({"input_tokens": 10, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 16, "output_tokens": 1});
    vec![
        json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "stop_reason": null, "usage": usage}}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "Two "})),
        delta(0, json!({"type": "thinking_delta", "thinking": "cities."})),
        delta(0, json!({"type": "signature_delta", "signature": "EqQB"})),
        stop(0),
        start(1, json!({"type": "text", "text": ""})),
        json!({"type": "ping"}),
        delta(1, json!({"type": "text_delta", "text": "Lööking."})),
        stop(1),
        start(2, json!({"type": "tool_use", "id": "call_1", "name": "weather", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"city\": "})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "\"Paris\"}"})),
        stop(2),
        start(3, json!({"type": "tool_use", "id": "call_2", "name": "weather", "input": {}})),
        stop(3),
    ]
}

fn ended(reason: &str) -> Vec<Value> {
    let mut sent = beginning();
    sent.push(json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 12}}));
    sent.push(json!({"type": "message_stop"}));
    sent
}

pub(crate) fn parallel() -> String {
    named(&ended("tool_use"))
}

#[test]
fn asks_with_all_results_of_a_turn_in_one_message() {
    let (messages, tools) = (conversation(), weather());
    let asked = models::request(ANTHROPIC, &prompt(&messages, &tools));
    assert_eq!(asked.path, "/messages");
    assert!(asked.headers.contains(&("anthropic-version", "2023-06-01".to_owned())));
    let expected = json!({
        "model": "some-model", "max_tokens": 8192, "stream": false,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "weather", "description": "The weather of a city.", "input_schema": tools[0].parameters}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Paris and Rome?"}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Paris"}},
                {"type": "tool_use", "id": "call_2", "name": "weather", "input": {"INVALID_JSON": "{\"city\":"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "12 degrees"},
                {"type": "tool_result", "tool_use_id": "call_2", "content": "no JSON", "is_error": true},
                {"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}},
            ]},
        ],
    });
    assert_eq!(asked.body, expected);
}

#[test]
fn leaves_out_what_the_api_refuses() {
    let messages = [
        Message::User { text: " \n".into() },
        Message::User { text: "Hi".into() },
        Message::Assistant { text: String::new(), calls: Vec::new(), opaque: None },
        Message::User { text: "Are you there?".into() },
        Message::Assistant { text: String::new(), calls: vec![call("functions.weather:0", "{}")], opaque: None },
        Message::Tool { call_id: "functions.weather:0".into(), name: "weather".into(), content: String::new(), is_error: false },
    ];
    let extras = json!({"max_tokens": 50});
    let asked = body(ANTHROPIC, &models::Prompt { system: "", extras: extras.as_object(), ..prompt(&messages, &[]) });
    assert_eq!((asked.get("system"), &asked["max_tokens"]), (None, &json!(50)));
    assert_eq!(
        asked["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "Are you there?"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "functions_weather_0", "name": "weather", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "functions_weather_0", "content": ""}]},
        ])
    );
}

#[test]
fn holds_the_model_to_a_schema_where_it_can() {
    let schema = json!({"type": "object", "properties": {"label": {"type": "string"}}});
    let extras = json!({"output_config": {"effort": "low"}});
    let asked = body(ANTHROPIC, &models::Prompt { output_schema: Some(&schema), extras: extras.as_object(), ..prompt(&[], &[]) });
    assert_eq!(asked["output_config"]["effort"], "low");
    assert_eq!(asked["output_config"]["format"]["schema"]["additionalProperties"], false);
    let free = json!({"type": "object"});
    let asked = body(ANTHROPIC, &models::Prompt { output_schema: Some(&free), ..prompt(&[], &[]) });
    assert!(asked.get("output_config").is_none());
    assert!(asked["system"][0]["text"].as_str().unwrap().contains(r#"{"type":"object"}"#));
}

#[test]
fn reads_the_same_from_a_stream_and_in_one_piece() {
    let usage = json!({"input_tokens": 10, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 16, "output_tokens": 12});
    let whole = read(ANTHROPIC, &json!({"type": "message", "content": content(), "stop_reason": "tool_use", "usage": usage})).unwrap();
    let (deltas, mut reply) = streamed(ANTHROPIC, &parallel()).unwrap();
    assert_eq!(reply.calls, [call("call_1", r#"{"city": "Paris"}"#), call("call_2", "{}")]);
    assert_eq!(reply.usage, Usage { input: 29, output: 12, cached_input: 16, cache_write: 3, reasoning: 0 });
    // In one piece the arguments are a value, which is written without spaces.
    reply.calls[0].arguments = r#"{"city":"Paris"}"#.into();
    assert_eq!(whole, reply);
    assert_eq!(deltas[..2], [Delta::Reasoning("Two ".into()), Delta::Reasoning("cities.".into())]);
    assert_eq!(deltas[3], Delta::CallBegins { index: 0, id: "call_1".into(), name: "weather".into() });
    assert_eq!(deltas.last(), Some(&Delta::CallBegins { index: 1, id: "call_2".into(), name: "weather".into() }));
}

#[test]
fn gives_back_thinking_where_it_stood() {
    let reply = streamed(ANTHROPIC, &parallel()).unwrap().1;
    let messages = [Message::Assistant { text: reply.text, calls: reply.calls, opaque: reply.opaque }];
    assert_eq!(body(ANTHROPIC, &prompt(&messages, &[]))["messages"][0]["content"], content());
}

#[test]
fn reads_why_the_model_stopped() {
    let stop = |reason: &str| streamed(ANTHROPIC, &named(&ended(reason))).unwrap().1.stop;
    assert_eq!(stop("end_turn"), Stop::ToolCalls);
    assert_eq!(stop("max_tokens"), Stop::Length);
    assert_eq!(stop("model_context_window_exceeded"), Stop::Length);
    assert_eq!(stop("pause_turn"), Stop::Other);
    let refusal = json!({"content": [], "stop_reason": "refusal", "stop_details": {"type": "refusal", "explanation": "Not this."}});
    let reply = read(ANTHROPIC, &refusal).unwrap();
    assert_eq!((reply.text.as_str(), reply.stop), ("Not this.", Stop::Refusal));
}

#[test]
fn a_stream_may_end_too_early_or_with_an_error() {
    assert_eq!(streamed(ANTHROPIC, &named(&beginning())).unwrap_err().kind, ErrorKind::CutOff);
    let mut sent = beginning();
    sent.push(json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}));
    let error = streamed(ANTHROPIC, &named(&sent)).unwrap_err();
    assert_eq!((error.kind, error.is_retryable()), (ErrorKind::Overloaded, true));
    assert_eq!(read(ANTHROPIC, &json!({"type": "message"})).unwrap_err().kind, ErrorKind::Malformed);
}
