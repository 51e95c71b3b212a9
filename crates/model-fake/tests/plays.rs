//! What our codecs make of the scripted model, over the wire.

use std::time::Duration;

use model_fake::{Fault, ModelServer, Said, Script, Turn};
use models::{Api, ErrorKind, Message, ModelError, Prompt, Reply, Stop, StreamReader, Tool};
use serde_json::json;

/// Asks as the loop does.
async fn ask(server: &ModelServer, api: Api, messages: &[Message], stream: bool) -> Result<Reply, ModelError> {
    let tools = [Tool { name: "weather".into(), description: "x".into(), parameters: json!({"type": "object"}) }];
    let prompt = Prompt {
        model: "scripted",
        system: "Be brief.",
        messages,
        tools: &tools,
        output_schema: None,
        max_output_tokens: None,
        stream,
        extras: None,
    };
    let request = models::request(api, &prompt);
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut post = reqwest::Client::new().post(format!("{}{}", server.url(), request.path));
    for (name, value) in request.headers {
        post = post.header(name, value);
    }
    let mut answer = post.body(request.body.to_string()).send().await.expect("the server is there");
    let status = answer.status().as_u16();
    let wait = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()).map(str::to_owned);
    if !stream || status != 200 {
        let body = answer.bytes().await.unwrap_or_default();
        return models::reply(api, status, wait.as_deref(), &body);
    }
    let mut reader = StreamReader::new(api);
    while let Ok(Some(piece)) = answer.chunk().await {
        reader.push(&piece)?;
    }
    reader.end()
}

fn hello() -> Vec<Message> {
    vec![Message::User { text: "Hello".into() }]
}

async fn each(script: Script, check: impl AsyncFn(&ModelServer, Api, bool)) {
    for api in Api::ALL {
        for stream in [false, true] {
            let server = ModelServer::start(script.clone()).await;
            check(&server, api, stream).await;
        }
    }
}

#[tokio::test]
async fn plays_a_conversation_with_parallel_calls() {
    let calls = Turn::call("weather", json!({"city": "Paris"})).and_call("weather", json!({"city": "Zürich"})).thinking("Two cities.");
    each(Script::turns([calls, Turn::say("Cold in both.").cached(2)]), async |server, api, stream| {
        let mut messages = hello();
        let first = ask(server, api, &messages, stream).await.unwrap();
        assert_eq!((first.stop, first.calls.len()), (Stop::ToolCalls, 2), "{api} {stream}");
        assert_eq!(first.calls[1].arguments, r#"{"city":"Zürich"}"#);
        assert_ne!(first.calls[0].id, first.calls[1].id);
        let ids: Vec<String> = first.calls.iter().map(|call| call.id.clone()).collect();
        messages.push(Message::Assistant { text: first.text, calls: first.calls, opaque: first.opaque });
        let unanswered = ask(server, api, &messages, stream).await.unwrap_err();
        assert_eq!(unanswered.kind, ErrorKind::Invalid, "{unanswered}");
        for id in ids {
            messages.push(Message::Tool { call_id: id, name: "weather".into(), content: "2 degrees".into(), is_error: false });
        }
        let second = ask(server, api, &messages, stream).await.unwrap();
        assert_eq!((second.text.as_str(), second.stop), ("Cold in both.", Stop::End), "{api} {stream}");
        assert_eq!(second.usage.cached_input, 2);
        assert!(second.usage.input > 2 && second.usage.output > 0);
        let asked = server.asked();
        assert_eq!(asked[1].conversation.last_results(), ["2 degrees", "2 degrees"]);
        assert_eq!(asked[1].conversation.messages[0], Said::User("Hello".into()));
        assert_eq!((asked[1].conversation.system.as_str(), asked[1].conversation.turns()), ("Be brief.", 1));
    })
    .await;
}

#[tokio::test]
async fn goes_wrong_on_request() {
    let storm = Turn::say("At last.")
        .failing(1, Fault::rate_limited(2))
        .failing(1, Fault::overloaded())
        .failing(1, Fault::Cut)
        .failing(1, Fault::MidStream)
        .failing(1, Fault::NotJson);
    each(Script::turns([storm]), async |server, api, stream| {
        let limited = ask(server, api, &hello(), stream).await.unwrap_err();
        assert_eq!((limited.kind, limited.retry_after), (ErrorKind::RateLimited, Some(Duration::from_secs(2))));
        assert_eq!(ask(server, api, &hello(), stream).await.unwrap_err().kind, ErrorKind::Overloaded);
        let cut = ask(server, api, &hello(), stream).await.unwrap_err().kind;
        assert_eq!(cut, if stream { ErrorKind::CutOff } else { ErrorKind::Malformed }, "{api}");
        let failed = ask(server, api, &hello(), stream).await.unwrap_err();
        assert!(failed.is_retryable(), "{api} {failed:?}");
        assert_eq!(ask(server, api, &hello(), stream).await.unwrap_err().kind, ErrorKind::Malformed);
        assert_eq!(ask(server, api, &hello(), stream).await.unwrap().text, "At last.");
    })
    .await;
}

#[tokio::test]
async fn ends_early_and_writes_what_is_no_json() {
    let script = Script::function(|conversation| match conversation.last_user() {
        "long" => Turn::say("Once upon").too_long(),
        "bad" => Turn::say("No.").refused(),
        _ => Turn::call("weather", json!("{\"city\": ")),
    });
    each(script, async |server, api, stream| {
        let say = async |text: &str| ask(server, api, &[Message::User { text: text.into() }], stream).await.unwrap();
        assert_eq!(say("long").await.stop, Stop::Length);
        let refused = say("bad").await;
        assert_eq!((refused.stop, refused.text.as_str()), (Stop::Refusal, "No."), "{api} {stream}");
        let arguments = say("wrong").await.calls.remove(0).arguments;
        let expected = if api == Api::Anthropic && !stream { "{}" } else { "{\"city\": " };
        assert_eq!(arguments, expected, "{api} {stream}");
    })
    .await;
}
