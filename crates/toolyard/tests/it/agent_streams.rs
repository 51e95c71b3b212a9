//! Agents as others see them: clients that we did not write follow their runs and talk to them as to models, and people in a terminal.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use http::Method;
use model_fake::{Conversation, Fault, ModelServer, Script, Turn};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::agent_runs::agent;
use crate::binary::Server;
use crate::support::{Fake, fake_connection, repository, until};

const MAKE: &str = "tools__native__fake__MAKE_A_THING__main";
const GET: &str = "tools__native__fake__GET_A_THING__main";

/// What the model makes of what it is told.
fn play(conversation: &Conversation) -> Turn {
    let first = conversation.turns_since_user() == 0;
    match conversation.last_user() {
        "plain" => Turn::say("Hello from the agent."),
        "tool" if first => Turn::say("Let me see.").thinking("Where is it?").and_call(GET, json!({"owner": "o", "path": "p"})),
        "tool" => Turn::say("It is there."),
        "mine" if first => Turn::call("client_weather", json!({"city": "Paris"})),
        "mine" => Turn::say(format!("You told me: {}", conversation.last_results().join(" "))),
        "both" if first => Turn::say("One moment.")
            .and_call(GET, json!({"owner": "o", "path": "both"}))
            .and_call("client_weather", json!({"city": "Rome"})),
        "both" => Turn::say(format!("I know {}: {}", conversation.last_results().len(), conversation.last_results().join(" "))),
        "and before?" => Turn::say(format!("{} messages", conversation.messages.len())),
        said if said.starts_with("approve") => match conversation.last_results().first() {
            None => Turn::call(MAKE, json!({"title": format!("paid, {said}")})),
            Some(result) if result.contains("denied") => Turn::say("As you wish."),
            Some(_) => Turn::say("Made it."),
        },
        "fail" => Turn::fails(Fault::status(400)),
        other => Turn::say(format!("You said: {other}")),
    }
}

struct House {
    dir: TempDir,
    server: Server,
    key: String,
    fake: Fake,
    _model: ModelServer,
}

/// A server with one agent, `maker`, whose calls that make something a person has to allow.
async fn house() -> House {
    house_with(|_| {}).await
}

async fn house_with(change: impl Fn(&mut Command)) -> House {
    let (dir, fake, model) = (TempDir::new().unwrap(), Fake::start().await, ModelServer::start(Script::function(play)).await);
    let server = Server::start(dir.path(), change).await;
    let credentials = json!({"base": fake.url, "api_key": "sk-fake-123456"});
    server.post("/tools/connections/", fake_connection("main", &json!({"auth_scheme": "api_key", "credentials": credentials}))).await;
    let policy = json!({"permissions": {"rules": [{"pattern": "tools.native.fake.MAKE_*", "permission": "ask"}]}});
    assert_eq!(server.send(Method::PUT, "/tools/permissions", Some(policy)).await.0, 200);
    server.post("/simple/workflows/", json!({"workflow": {"slug": "maker", "name": "maker", "data": agent(&model, |_| {})}})).await;
    let key = std::fs::read_to_string(dir.path().join("data/owner.key")).unwrap().trim().to_owned();
    House { dir, server, key, fake, _model: model }
}

async fn clients(program: PathBuf, script: &str) {
    let house = house().await;
    let mut command = Command::new(program);
    command.arg(repository().join(script)).args([&house.server.url, &house.key]).current_dir(house.dir.path());
    let output = command.kill_on_drop(true).output().await.expect("the script runs; `./test` installs what it needs");
    let (said, cried) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.trim() == "ok", "{said}\n{cried}");
}

#[tokio::test]
async fn javascript_clients_read_the_streams_of_agents() {
    clients("node".into(), "tests/npm/agent-streams.mjs").await;
}

#[tokio::test]
async fn the_official_python_client_talks_to_an_agent_as_to_a_model() {
    clients(repository().join("target/test-venv/bin/python"), "tests/python/agent_models.py").await;
}

#[tokio::test]
async fn opentelemetry_reads_the_traces_of_runs() {
    let got: Arc<Mutex<Vec<Value>>> = Arc::default();
    let take = {
        let got = got.clone();
        move |axum::Json(request): axum::Json<Value>| async move { got.lock().unwrap().push(request) }
    };
    let router = axum::Router::new().route("/v1/traces", axum::routing::post(take));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let house = house_with(|command| {
        command.env("TOOLYARD_OTLP_ENDPOINT", &endpoint);
    })
    .await;
    for said in ["tool", "plain", "fail"] {
        let body = json!({"references": {"workflow": {"slug": "maker"}}, "data": {"inputs": {"message": said}}, "session_id": "s-1"});
        house.server.send(Method::POST, "/workflows/invoke", Some(body)).await;
    }
    until("the traces come", async || got.lock().unwrap().len() == 3).await;
    let lines: String = got.lock().unwrap().iter().take(2).map(|request| format!("{request}\n")).collect();
    assert!(!lines.contains("Hello from the agent"), "nothing that was said is told: {lines}");
    let failed = got.lock().unwrap()[2].to_string();
    assert!(failed.contains(r#"{"key":"error.type","value":{"stringValue":"424"}}"#), "{failed}");
    let mut command = Command::new(repository().join("target/test-venv/bin/python"));
    command.arg(repository().join("tests/python/otlp.py")).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().expect("the script runs; `./test` installs what it needs");
    child.stdin.take().unwrap().write_all(lines.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    let (said, cried) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.trim() == "ok", "{said}\n{cried}\n{lines}");
}

/// What `toolyard agent chat` says to these lines.
async fn chat(house: &House, name: &str, lines: &str) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolyard"));
    command.args(["agent", "chat", name, "--url", &house.server.url, "--key", &house.key]).current_dir(house.dir.path());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    (output.status.success(), format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

#[tokio::test]
async fn an_agent_is_talked_to_from_the_shell() {
    let house = house().await;
    let made = || house.fake.seen().iter().filter(|seen| format!("{seen:?}").contains("paid")).count();
    let (fine, said) = chat(&house, "maker", "plain\n\ntool\napprove this\ny\napprove that\nn\n/exit\nplain\n").await;
    assert!(fine, "{said}");
    assert_eq!(made(), 1, "{said}");
    let order = [
        "Hello from the agent.\n",
        "Let me see.\n",
        &format!("→ {GET} "),
        "← ",
        "It is there.\n",
        "allow this call? [y/N] y\n",
        "Made it.\n",
        "[y/N] n\n",
        "As you wish.\n",
    ];
    let mut rest = said.as_str();
    for part in order {
        let at = rest.find(part).unwrap_or_else(|| panic!("no {part:?} in {rest:?} of {said}"));
        rest = &rest[at + part.len()..];
    }
    assert!(!rest.contains("Hello"), "nothing is read after /exit: {said}");
    // Without anybody who could decide, the run is left to wait.
    let (fine, said) = chat(&house, "maker", "approve more\n").await;
    assert!(fine && said.contains("the run waits; decide at http"), "{said}");
    let (fine, said) = chat(&house, "fail", "x\n").await;
    assert!(!fine && said.contains("fail"), "{said}");
    let (fine, said) = chat(&house, "maker", "fail\nplain\n").await;
    assert!(fine && said.contains("the run failed: ") && said.ends_with("Hello from the agent.\n"), "{said}");
}
