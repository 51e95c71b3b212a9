//! Other people's MCP software against the program itself: the conformance suite, and the official clients over HTTP and stdio.

use std::path::PathBuf;
use std::process::{Output, Stdio};

use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::binary::Server;
use crate::support::{Fake, fake_connection, repository};

#[tokio::test]
async fn the_conformance_suite_passes() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), |command| {
        command.env("TOOLYARD_MCP_CONFORMANCE", "true");
    })
    .await;
    let folder = repository().join("tests/npm");
    let mut command = Command::new("node");
    command.arg(folder.join("mcp-conformance.mjs")).arg(format!("{}/mcp/conformance", server.url));
    let output = command.kill_on_drop(true).output().await.expect("node runs");
    assert!(output.status.success(), "{}", said(&output));
}

#[tokio::test]
async fn there_are_no_fixtures_unless_they_are_asked_for() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), |_| {}).await;
    assert_eq!(server.send(Method::POST, "/mcp/conformance", Some(json!({}))).await.0, 404);
}

#[tokio::test]
async fn the_official_typescript_clients_list_and_call_tools() {
    let script = repository().join("tests/npm/mcp-clients.mjs");
    let seen = clients("node".into(), script).await;
    let versions: Vec<(&str, &str)> =
        seen.iter().map(|seen| (seen["name"].as_str().unwrap(), seen["version"].as_str().unwrap_or_default())).collect();
    assert_eq!((versions[0], versions[1]), (("old-http", "2025-11-25"), ("new-http", "2026-07-28")));
    assert_eq!((versions[2].0, versions[3]), ("old-stdio", ("new-stdio", "2026-07-28")));
}

#[tokio::test]
async fn the_official_python_client_lists_and_calls_tools() {
    let script = repository().join("tests/python/mcp_clients.py");
    let seen = clients(repository().join("target/test-venv/bin/python"), script).await;
    let versions: Vec<&str> = seen.iter().map(|seen| seen["version"].as_str().unwrap()).collect();
    assert_eq!(versions, ["2026-07-28", "2026-07-28", "2025-11-25", "2025-11-25"]);
}

#[tokio::test]
async fn over_stdio_every_request_is_answered_whatever_goes_wrong() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), |_| {}).await;
    for (url, words) in [("http://127.0.0.1:1", "is `toolyard serve` running?"), (&server.url, "Unauthorized")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolyard"));
        command.args(["mcp", "--url", url, "--key", "wrong"]).current_dir(dir.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let lines = "nonsense\n\n{\"jsonrpc\": \"2.0\", \"method\": \"notifications/x\"}\n{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"ping\"}\n";
        child.stdin.take().unwrap().write_all(lines.as_bytes()).await.unwrap();
        let output = child.wait_with_output().await.unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let answers: Vec<Value> = String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&answers[0]["error"]["code"], &answers[1]["id"], answers.len()), (&json!(-32700), &json!(7), 2), "{}", said(&output));
        assert!(answers[1]["error"]["message"].as_str().unwrap().contains(words), "{}", said(&output));
    }
}

/// Runs a script of four clients, each of which reads, calls wrongly, and makes a thing that a person is asked about.
async fn clients(program: PathBuf, script: PathBuf) -> Vec<Value> {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), |_| {}).await;
    let fake = Fake::start().await;
    let credentials = json!({"base": fake.url, "api_key": "sk-fake-123456"});
    server.post("/tools/connections/", fake_connection("main", &json!({"auth_scheme": "api_key", "credentials": credentials}))).await;
    let policy = json!({"permissions": {"rules": [{"pattern": "tools.native.fake.MAKE_*", "permission": "ask"}]}});
    assert_eq!(server.send(Method::PUT, "/tools/permissions", Some(policy)).await.0, 200);
    let key = std::fs::read_to_string(dir.path().join("data/owner.key")).unwrap();
    let mut command = Command::new(program);
    command.arg(script).args([&server.url, key.trim(), env!("CARGO_BIN_EXE_toolyard")]).current_dir(dir.path());
    let output = command.kill_on_drop(true).output().await.expect("the script runs; `./test` installs what it needs");
    assert!(output.status.success(), "{}", said(&output));
    let seen: Vec<Value> = String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(seen.len(), 4, "{}", said(&output));
    for seen in &seen {
        assert_eq!((&seen["tools"], &seen["wrong"], &seen["asked"]), (&json!(7), &json!(true), &json!(1)), "{seen}");
        assert!(seen["read"].is_object() && seen["made"].is_object(), "{seen}");
    }
    seen
}

fn said(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
