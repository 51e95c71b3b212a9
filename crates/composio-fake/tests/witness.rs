//! Composio's own client, which takes the stand-in for the real thing.

use std::path::Path;

use composio_fake::Fake;
use serde_json::{Value, json};
use tokio::process::Command;

#[tokio::test]
async fn the_official_client_connects_runs_tools_and_hears_triggers() {
    let fake = Fake::start().await;
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(repository.join("target/test-venv/bin/python"));
    command.arg(repository.join("tests/python/composio_witness.py")).arg(fake.url().trim_end_matches("/api/v3.1")).arg(fake.key());
    // Whatever would leave this machine meets a closed port.
    for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
        command.env(proxy, "http://127.0.0.1:1");
    }
    command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    let output = command.kill_on_drop(true).output().await.expect("python runs; `./test` makes its venv");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));

    let seen: Value = serde_json::from_str(said.trim()).unwrap();
    assert_eq!((&seen["webhooks"], &seen["account"]), (&json!(["V3", "V2", "V1"]), &fake.accounts()[0]["id"]));
    let paths: Vec<String> = fake.requests().into_iter().map(|request| format!("{} {}", request.method, request.path)).collect();
    for path in ["GET /tools", "POST /tools/execute/GITHUB_CREATE_AN_ISSUE", "GET /connected_accounts", "POST /webhook_subscriptions"] {
        assert!(paths.iter().any(|seen| seen == path), "{path} in {paths:?}");
    }
}
