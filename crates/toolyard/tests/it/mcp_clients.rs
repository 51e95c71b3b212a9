//! Other people's MCP software against the program itself: the conformance suite, and the official clients over HTTP and stdio.

use std::path::PathBuf;
use std::process::Output;

use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
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
