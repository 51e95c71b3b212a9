//! The agent loops of `docs/examples`, run as they are: with the model vendors' own packages, against a model that always calls the
//! first tool once and then repeats what the tool said.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::binary::Server;
use crate::support::{Fake, fake_connection, repository};

#[tokio::test]
async fn the_openai_loop_calls_a_tool_and_ends() {
    let seen = run("openai_loop.py", "allow").await;
    assert_eq!(seen.requests[0]["tools"][0]["type"], "function");
    assert!(seen.said.contains("p1") && seen.said.contains("successful"), "{}", seen.said);
}

#[tokio::test]
async fn the_anthropic_loop_calls_a_tool_and_ends() {
    let seen = run("anthropic_loop.py", "allow").await;
    assert!(seen.requests[0]["tools"][0]["input_schema"].is_object());
    assert!(seen.said.contains("p1") && seen.said.contains("successful"), "{}", seen.said);
}

#[tokio::test]
async fn the_loops_tell_the_model_that_a_call_waits_for_a_person() {
    for example in ["openai_loop.py", "anthropic_loop.py"] {
        let seen = run(example, "ask").await;
        assert!(seen.said.contains("approval"), "{}", seen.said);
    }
}

struct Seen {
    /// What the loop printed at its end.
    said: String,
    /// What the model was asked.
    requests: Vec<Value>,
}

/// Runs an example with an agent that has the one tool `GET_A_THING`.
async fn run(example: &str, permission: &str) -> Seen {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), |_| {}).await;
    let fake = Fake::start().await;
    let credentials = json!({"base": fake.url, "api_key": "sk-fake-123456"});
    server.post("/tools/connections/", fake_connection("main", &json!({"auth_scheme": "api_key", "credentials": credentials}))).await;
    let tool = json!({"type": "gateway", "provider": "native", "integration": "fake", "action": "GET_A_THING", "connection": "main"});
    let agent = json!({"name": "reader", "agent_type": "research", "tool_configs": [tool]});
    let (status, agent) = server.send(Method::POST, "/agents", Some(agent)).await;
    assert!(status == 200 || status == 201, "{agent}");
    let rules = json!({"permissions": {"rules": [{"pattern": "tools.native.fake.GET_A_THING.main", "permission": permission}]}});
    assert_eq!(server.send(Method::PUT, "/tools/permissions", Some(rules)).await.0, 200);

    let model = Model::start().await;
    let key = std::fs::read_to_string(dir.path().join("data/owner.key")).unwrap();
    let mut command = Command::new(repository().join("target/test-venv/bin/python"));
    command.arg(repository().join("docs/examples").join(example)).arg("get the thing p1");
    command.env("TOOLYARD_URL", &server.url).env("TOOLYARD_KEY", key.trim()).env("TOOLYARD_AGENT", agent["id"].to_string());
    command.env("OPENAI_BASE_URL", format!("{}/v1", model.url)).env("OPENAI_API_KEY", "sk-none");
    command.env("ANTHROPIC_BASE_URL", &model.url).env("ANTHROPIC_API_KEY", "sk-none");
    let output = command.kill_on_drop(true).output().await.expect("the example runs; `./test` installs what it needs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let requests = model.requests.lock().unwrap().clone();
    assert_eq!(requests.len(), 2, "the model calls once and then ends");
    Seen { said: String::from_utf8_lossy(&output.stdout).into_owned(), requests }
}

/// A stand-in for the model APIs, with the fields that their documents require.
struct Model {
    url: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    async fn start() -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let router = Router::new()
            .route("/v1/chat/completions", post(chat_completions))
            .route("/v1/messages", post(messages))
            .with_state(requests.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, requests }
    }
}

async fn chat_completions(State(requests): State<Arc<Mutex<Vec<Value>>>>, Json(request): Json<Value>) -> Json<Value> {
    let last = request["messages"].as_array().unwrap().last().unwrap().clone();
    let (message, reason) = if last["role"] == "tool" {
        assert_eq!(last["tool_call_id"], "call_1");
        (json!({"role": "assistant", "content": last["content"]}), "stop")
    } else {
        let function = json!({"name": request["tools"][0]["function"]["name"], "arguments": "{\"owner\": \"ann\", \"path\": \"p1\"}"});
        let calls = json!([{"id": "call_1", "type": "function", "function": function}]);
        (json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls")
    };
    requests.lock().unwrap().push(request);
    let choice = json!({"index": 0, "message": message, "finish_reason": reason, "logprobs": null});
    Json(json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "stand-in", "choices": [choice]}))
}

async fn messages(State(requests): State<Arc<Mutex<Vec<Value>>>>, Json(request): Json<Value>) -> Json<Value> {
    let last = request["messages"].as_array().unwrap().last().unwrap()["content"][0].clone();
    let (content, reason) = if last["type"] == "tool_result" {
        assert_eq!(last["tool_use_id"], "toolu_1");
        (json!([{"type": "text", "text": last["content"]}]), "end_turn")
    } else {
        let input = json!({"owner": "ann", "path": "p1"});
        (json!([{"type": "tool_use", "id": "toolu_1", "name": request["tools"][0]["name"], "input": input}]), "tool_use")
    };
    requests.lock().unwrap().push(request);
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    Json(json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "stand-in", "content": content,
        "stop_reason": reason, "stop_sequence": null, "usage": usage}))
}
