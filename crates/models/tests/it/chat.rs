use models::{Api, Delta, ErrorKind, Message, Stop, Usage};
use serde_json::{Value, json};

use crate::support::{body, call, conversation, events, prompt, read, streamed, weather};

const CHAT: Api = Api::OpenaiChat;

fn chunk(delta: Value, finish: Value) -> Value {
    json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": null})
}

/// Two calls at once, interleaved, with the usage in a chunk of its own.
pub(crate) fn parallel() -> String {
    let piece = |index: u64, arguments: &str| json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]});
    let begin = |index: u64, id: &str| json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": "weather", "arguments": ""}}]});
    let usage = json!({"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42,
        "prompt_tokens_details": {"cached_tokens": 16, "cache_write_tokens": 3}, "completion_tokens_details": {"reasoning_tokens": 4}});
    let chunks = [
        chunk(json!({"role": "assistant", "content": "Lööking."}), Value::Null),
        chunk(begin(0, "call_1"), Value::Null),
        chunk(piece(0, r#"{"city": "#), Value::Null),
        chunk(begin(1, "call_2"), Value::Null),
        chunk(piece(1, r#"{"city":"Rome"}"#), Value::Null),
        chunk(piece(0, r#""Paris"}"#), Value::Null),
        chunk(json!({}), json!("tool_calls")),
        json!({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": usage}),
    ];
    format!(": keep alive\n\n{}data: [DONE]\n\n", events(&chunks))
}

#[test]
fn asks_with_a_conversation_and_tools() {
    let (messages, tools) = (conversation(), weather());
    let extras = json!({"temperature": 0.2, "model": "another", "stream_options": {"x": 1}});
    let asked =
        body(CHAT, &models::Prompt { extras: extras.as_object(), max_output_tokens: Some(100), stream: true, ..prompt(&messages, &tools) });
    let function = json!({"name": "weather", "description": "The weather of a city.", "parameters": tools[0].parameters});
    let expected = json!({
        "temperature": 0.2, "model": "some-model", "stream": true, "stream_options": {"include_usage": true}, "max_completion_tokens": 100,
        "tools": [{"type": "function", "function": function}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Paris and Rome?"},
            {"role": "assistant", "content": "Looking.", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Paris\"}"}},
                {"id": "call_2", "type": "function", "function": {"name": "weather", "arguments": "{\"INVALID_JSON\":\"{\\\"city\\\":\"}"}},
            ]},
            {"role": "tool", "tool_call_id": "call_1", "content": "12 degrees"},
            {"role": "tool", "tool_call_id": "call_2", "content": "no JSON"},
            {"role": "user", "content": "Go on."},
        ],
    });
    assert_eq!(asked, expected);
    let old = json!({"max_tokens": null});
    let asked = body(CHAT, &models::Prompt { extras: old.as_object(), max_output_tokens: Some(7), ..prompt(&messages, &[]) });
    assert_eq!((&asked["max_tokens"], asked.get("max_completion_tokens"), asked.get("tools")), (&json!(7), None, None));
}

#[test]
fn holds_the_model_to_a_schema() {
    let messages = [Message::User { text: "Hi".into() }];
    let schema = json!({"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]});
    let asked = body(CHAT, &models::Prompt { output_schema: Some(&schema), ..prompt(&messages, &[]) });
    assert_eq!(asked["response_format"]["type"], "json_schema");
    assert_eq!(asked["response_format"]["json_schema"]["strict"], true);
    assert_eq!(asked["response_format"]["json_schema"]["schema"]["additionalProperties"], false);
    let own = json!({"response_format": {"type": "json_object"}});
    let asked = body(CHAT, &models::Prompt { output_schema: Some(&schema), extras: own.as_object(), ..prompt(&messages, &[]) });
    assert_eq!(asked["response_format"], json!({"type": "json_object"}));
    assert!(asked["messages"][0]["content"].as_str().unwrap().contains(r#""label""#));
    let list = json!({"type": "array", "items": {"type": "string"}});
    let asked = body(CHAT, &models::Prompt { output_schema: Some(&list), ..prompt(&messages, &[]) });
    assert!(asked.get("response_format").is_none() && asked["messages"][0]["content"].as_str().unwrap().contains(r#""array""#));
}

#[test]
fn reads_an_answer_in_one_piece() {
    let answer = json!({"id": "c", "object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop", "message": {
        "role": "assistant", "content": "Hello!", "refusal": null}}], "usage": {"prompt_tokens": 9, "completion_tokens": 3}});
    let reply = read(CHAT, &answer).unwrap();
    assert_eq!((reply.text.as_str(), reply.stop, reply.opaque), ("Hello!", Stop::End, None));
    assert_eq!(reply.usage, Usage { input: 9, output: 3, ..Usage::default() });
}

#[test]
fn reads_parallel_calls_from_a_stream() {
    let (deltas, reply) = streamed(CHAT, &parallel()).unwrap();
    assert_eq!(reply.calls, [call("call_1", r#"{"city": "Paris"}"#), call("call_2", r#"{"city":"Rome"}"#)]);
    assert_eq!((reply.text.as_str(), reply.stop), ("Lööking.", Stop::ToolCalls));
    assert_eq!(reply.usage, Usage { input: 30, output: 12, cached_input: 16, cache_write: 3, reasoning: 4 });
    assert_eq!(deltas[0], Delta::Text("Lööking.".into()));
    assert_eq!(deltas[1], Delta::CallBegins { index: 0, id: "call_1".into(), name: "weather".into() });
    assert_eq!(deltas.last(), Some(&Delta::CallArguments { index: 0, text: r#""Paris"}"#.into() }));
}

#[test]
fn calls_without_numbers_ids_or_text_are_told_apart() {
    let all = |calls: Value| {
        let stream = events(&[chunk(json!({"tool_calls": calls}), Value::Null), chunk(json!({}), json!("stop"))]);
        streamed(CHAT, &stream).unwrap().1
    };
    let one = |extra: Value, city: &str| {
        let mut call = json!({"function": {"name": "weather", "arguments": {"city": city}}});
        call.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        call
    };
    for (calls, ids) in [
        (json!([one(json!({"index": 0, "id": "a"}), "P"), one(json!({"index": 0, "id": "b"}), "R")]), ["a", "b"]),
        (json!([one(json!({"id": "a"}), "P"), one(json!({"id": "b"}), "R")]), ["a", "b"]),
        (json!([one(json!({}), "P"), one(json!({}), "R")]), ["call_0", "call_1"]),
    ] {
        let reply = all(calls);
        assert_eq!(reply.calls, [call(ids[0], r#"{"city":"P"}"#), call(ids[1], r#"{"city":"R"}"#)]);
        assert_eq!(reply.stop, Stop::ToolCalls);
    }
}

#[test]
fn reads_refusals_filters_and_answers_that_are_too_long() {
    let ending = |delta: Value, finish: &str| {
        let reply = streamed(CHAT, &events(&[chunk(delta, Value::Null), chunk(json!({}), json!(finish))])).unwrap().1;
        (reply.text, reply.stop)
    };
    assert_eq!(ending(json!({"refusal": "I can't help with that."}), "stop"), ("I can't help with that.".into(), Stop::Refusal));
    assert_eq!(ending(json!({"content": "Once"}), "content_filter"), ("Once".into(), Stop::Refusal));
    assert_eq!(ending(json!({"content": "Once"}), "length"), ("Once".into(), Stop::Length));
    assert_eq!(ending(json!({"content": [{"type": "text", "text": "Once"}]}), "eos"), ("Once".into(), Stop::Other));
}

#[test]
fn gives_back_what_a_server_wants_to_see_again() {
    let answer = json!({"choices": [{"finish_reason": "tool_calls", "message": {"content": null, "reasoning_content": "Hm.", "tool_calls": [
        {"id": "call_1", "extra_content": {"google": {"thought_signature": "sig"}}, "function": {"name": "weather", "arguments": "{}"}}]}}]});
    let reply = read(CHAT, &answer).unwrap();
    let messages = [Message::Assistant { text: reply.text, calls: reply.calls, opaque: reply.opaque }];
    let written = body(CHAT, &prompt(&messages, &[]))["messages"][1].clone();
    assert_eq!(written["reasoning_content"], "Hm.");
    assert_eq!(written["tool_calls"][0]["extra_content"]["google"]["thought_signature"], "sig");
    assert_eq!(written["content"], Value::Null);
    let elsewhere = body(Api::Anthropic, &prompt(&messages, &[]))["messages"][0].clone();
    assert_eq!(elsewhere["content"], json!([{"type": "tool_use", "id": "call_1", "name": "weather", "input": {}}]));
}

#[test]
fn a_stream_may_end_too_early_or_with_an_error() {
    let text = events(&[chunk(json!({"content": "Once"}), Value::Null)]);
    assert_eq!(streamed(CHAT, &text).unwrap_err().kind, ErrorKind::CutOff);
    assert_eq!(streamed(CHAT, &format!("{text}data: [DONE]")).unwrap().1.stop, Stop::End);
    let error = json!({"error": {"message": "slow down", "code": "rate_limit_exceeded"}});
    assert_eq!(streamed(CHAT, &format!("{text}data: {error}\n\n")).unwrap_err().kind, ErrorKind::RateLimited);
    assert_eq!(streamed(CHAT, &format!("{text}data: <html>\n\n")).unwrap_err().kind, ErrorKind::Malformed);
    assert_eq!(streamed(CHAT, "<html>no stream</html>").unwrap_err().kind, ErrorKind::Malformed);
    assert_eq!(read(CHAT, &json!({"choices": []})).unwrap_err().kind, ErrorKind::Malformed);
    assert_eq!(models::reply(CHAT, 200, None, b"<html>").unwrap_err().kind, ErrorKind::Malformed);
}

#[test]
fn a_server_that_does_not_stream_is_read_all_the_same() {
    let answer = json!({"choices": [{"finish_reason": "stop", "message": {"content": "Hello!"}}]});
    assert_eq!(streamed(CHAT, &format!(" \n{answer}")).unwrap().1.text, "Hello!");
}
