use models::{Api, Delta, ErrorKind, Message, Stop, Usage};
use serde_json::{Value, json};

use crate::support::{body, call, conversation, events, prompt, read, streamed, weather};

const RESPONSES: Api = Api::OpenaiResponses;

fn output() -> Value {
    json!([
        {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Two cities."}], "encrypted_content": "gAAA"},
        {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Lööking."}]},
        {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{\"city\":\"Paris\"}", "status": "completed"},
        {"id": "fc_2", "type": "function_call", "call_id": "call_2", "name": "weather", "arguments": "{\"city\":\"Rome\"}", "status": "completed"},
    ])
}

fn response(status: &str, output: Value) -> Value {
    json!({"id": "resp_1", "object": "response", "status": status, "error": null, "incomplete_details": null, "output": output,
        "usage": {"input_tokens": 30, "input_tokens_details": {"cached_tokens": 16}, "output_tokens": 12,
            "output_tokens_details": {"reasoning_tokens": 4}, "total_tokens": 42}})
}

/// The events up to the one that ends the response.
fn beginning() -> Vec<Value> {
    let output = output();
    let mut sent = vec![json!({"type": "response.created", "response": {"status": "in_progress", "output": []}})];
    sent.push(json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Two cities."}));
    sent.push(json!({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Lööking."}));
    for index in [2, 3] {
        let mut begun = output[index].clone();
        begun["arguments"] = "".into();
        sent.push(json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
    }
    for (index, city) in [(3, "Rome"), (2, "Paris")] {
        sent.push(json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": "{\"city\":"}));
        sent.push(json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": format!("\"{city}\"}}")}));
    }
    let done = |(index, item): (usize, &Value)| json!({"type": "response.output_item.done", "output_index": index, "item": item});
    sent.extend(output.as_array().into_iter().flatten().enumerate().map(done));
    sent
}

pub(crate) fn parallel() -> String {
    let mut sent = beginning();
    sent.push(json!({"type": "response.completed", "response": response("completed", output())}));
    events(&sent)
}

#[test]
fn asks_without_leaving_anything_behind() {
    let (messages, tools) = (conversation(), weather());
    let extras = json!({"reasoning": {"effort": "low"}, "store": true});
    let asked = body(RESPONSES, &models::Prompt { extras: extras.as_object(), max_output_tokens: Some(100), ..prompt(&messages, &tools) });
    let expected = json!({
        "reasoning": {"effort": "low"}, "store": false, "model": "some-model", "instructions": "Be brief.", "stream": false,
        "include": ["reasoning.encrypted_content"], "max_output_tokens": 100,
        "tools": [{"type": "function", "name": "weather", "description": "The weather of a city.", "parameters": tools[0].parameters, "strict": false}],
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Paris and Rome?"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]},
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{\"city\": \"Paris\"}"},
            {"type": "function_call", "call_id": "call_2", "name": "weather", "arguments": "{\"INVALID_JSON\":\"{\\\"city\\\":\"}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "12 degrees"},
            {"type": "function_call_output", "call_id": "call_2", "output": "no JSON"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on."}]},
        ],
    });
    assert_eq!(asked, expected);
    let older = body(RESPONSES, &models::Prompt { model: "gpt-4.1", ..prompt(&messages, &[]) });
    assert!(older.get("include").is_none());
}

#[test]
fn holds_the_model_to_a_schema() {
    let schema = json!({"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]});
    let extras = json!({"text": {"verbosity": "low"}});
    let asked = body(RESPONSES, &models::Prompt { output_schema: Some(&schema), extras: extras.as_object(), ..prompt(&[], &[]) });
    assert_eq!(asked["text"]["verbosity"], "low");
    assert_eq!(asked["text"]["format"]["type"], "json_schema");
    assert_eq!((&asked["text"]["format"]["name"], &asked["text"]["format"]["strict"]), (&json!("answer"), &json!(true)));
}

#[test]
fn reads_the_same_from_a_stream_and_in_one_piece() {
    let whole = read(RESPONSES, &response("completed", output())).unwrap();
    let (deltas, reply) = streamed(RESPONSES, &parallel()).unwrap();
    assert_eq!(whole, reply);
    assert_eq!(reply.calls, [call("call_1", r#"{"city":"Paris"}"#), call("call_2", r#"{"city":"Rome"}"#)]);
    assert_eq!((reply.text.as_str(), reply.stop), ("Lööking.", Stop::ToolCalls));
    assert_eq!(reply.usage, Usage { input: 30, output: 12, cached_input: 16, cache_write: 0, reasoning: 4 });
    assert_eq!(deltas[0], Delta::Reasoning("Two cities.".into()));
    assert_eq!(deltas[3], Delta::CallBegins { index: 1, id: "call_2".into(), name: "weather".into() });
    assert_eq!(deltas[4], Delta::CallArguments { index: 1, text: "{\"city\":".into() });
}

#[test]
fn gives_back_encrypted_reasoning_where_it_stood() {
    let reply = read(RESPONSES, &response("completed", output())).unwrap();
    let messages = [Message::Assistant { text: reply.text, calls: reply.calls, opaque: reply.opaque }];
    assert_eq!(body(RESPONSES, &prompt(&messages, &[]))["input"], output());
}

#[test]
fn an_output_that_is_left_out_at_the_end_was_sent_before() {
    let mut sent = beginning();
    sent.push(json!({"type": "response.completed", "response": response("completed", json!([]))}));
    assert_eq!(streamed(RESPONSES, &events(&sent)).unwrap().1.calls.len(), 2);
}

#[test]
fn reads_refusals_and_answers_that_are_too_long() {
    let refused = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]);
    let reply = read(RESPONSES, &response("completed", refused)).unwrap();
    assert_eq!((reply.text.as_str(), reply.stop), ("No.", Stop::Refusal));
    for (reason, stop) in [("max_output_tokens", Stop::Length), ("content_filter", Stop::Refusal), ("steered", Stop::Other)] {
        let mut cut = response("incomplete", output());
        cut["incomplete_details"] = json!({"reason": reason});
        let mut sent = beginning();
        sent.push(json!({"type": "response.incomplete", "response": cut}));
        assert_eq!(streamed(RESPONSES, &events(&sent)).unwrap().1.stop, stop);
    }
}

#[test]
fn a_stream_may_end_too_early_or_with_an_error() {
    assert_eq!(streamed(RESPONSES, &events(&beginning())).unwrap_err().kind, ErrorKind::CutOff);
    let ends = |event: Value| streamed(RESPONSES, &events(&[event])).unwrap_err().kind;
    let mut failed = response("failed", json!([]));
    failed["error"] = json!({"code": "server_error", "message": "The model failed."});
    assert_eq!(ends(json!({"type": "response.failed", "response": failed})), ErrorKind::Server);
    assert_eq!(read(RESPONSES, &failed).unwrap_err().kind, ErrorKind::Server);
    assert_eq!(ends(json!({"type": "error", "code": "rate_limit_exceeded", "message": "x", "param": null})), ErrorKind::RateLimited);
    assert_eq!(ends(json!({"type": "error", "error": {"code": "context_length_exceeded", "message": "x"}})), ErrorKind::TooLong);
    assert_eq!(read(RESPONSES, &json!({"choices": []})).unwrap_err().kind, ErrorKind::Malformed);
}
