//! Agenta's own Python SDK, unmodified, against a server that listens: what it was written for and what is newest.

use std::process::Output;
use std::time::{Duration, Instant};

use kernel::{Permission, Role};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::reserved::workflow;
use crate::support::{Composed, Database, repository};

const VERSIONS: [(&str, Database); 2] = [("0.113.0", Database::Sqlite), ("0.125.1", Database::Postgres)];

/// A Python that has one version of the SDK, and where it shall go.
fn python(version: &str, url: &str, key: &str, script: &str) -> Command {
    let venv = repository().join("target/agenta-venv");
    let mut command = Command::new(venv.join("bin/python"));
    command.arg(repository().join("tests/python").join(script)).kill_on_drop(true);
    command.env("PYTHONPATH", venv.join(format!("agenta-{version}"))).env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
    command.env("AGENTA_HOST", url).env("AGENTA_API_URL", format!("{url}/api")).env("AGENTA_API_KEY", key);
    command
}

fn said(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Waits for a service; Python takes its time to read all that the SDK needs.
async fn listening(port: u16) {
    let started = Instant::now();
    while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        assert!(started.elapsed() < Duration::from_mins(2), "the service does not take connections");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn secret(test: &Composed, slug: &str, value: &str, hosts: Value) {
    let content = json!({"kind": "custom_secret", "data": {"secret": {"format": "text", "content": value}}});
    test.post("/secrets", json!({"slug": slug, "hosts": hosts, "secret": content})).await.expect(200);
}

/// A yard with a GitHub account, a workflow and secrets, and a key that may do everything.
async fn arranged(database: Database) -> (Composed, String) {
    let test = Composed::start(database).await;
    test.connect("github", "main").await;
    workflow(&test, "lookup", json!({"kind": "echo"})).await;
    secret(&test, "crm_key", "s3cr3t-of-the-crm", json!([])).await;
    let key = test.key("default", Role::Owner, Some(Permission::ALL.to_vec())).await;
    secret(&test, "service_key", &key, json!(["127.0.0.1"])).await;
    (test, key)
}

async fn run(part: &str) {
    for (version, database) in VERSIONS {
        let (test, key) = arranged(database).await;
        let url = test.yard.config.public_url.clone();
        let output = python(version, &url, &key, "agenta_sdk.py").arg(part).output().await.expect("`./test` installs the SDK");
        assert!(output.status.success(), "{version}: {}", said(&output));
        let text = said(&output);
        let seen: Value = serde_json::from_str(String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default()).expect(&text);
        assert_eq!(seen["version"], version);
        if part == "tools" {
            assert_eq!((&seen["resolver"]["lookup"], &seen["secrets"]), (&json!("workflow.variant.lookup"), &json!(3)), "{seen}");
            assert_eq!(seen["whole_integration"].is_object(), version != "0.113.0", "{seen}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_resolves_tools_reads_secrets_and_calls() {
    run("tools").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_managers_create_commit_deploy_fetch_and_delete() {
    run("managers").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_with_its_authentication_on_is_a_tool() {
    for (version, database) in VERSIONS {
        let (test, key) = arranged(database).await;
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let url = test.yard.config.public_url.clone();
        let mut service =
            python(version, &url, &key, "agenta_service.py").arg(port.to_string()).spawn().expect("`./test` installs the SDK");
        listening(port).await;
        let data = |headers: Value| json!({"url": format!("http://127.0.0.1:{port}"), "headers": headers});
        workflow(&test, "greet", data(json!({"Authorization": "ApiKey {{secrets.service_key}}"}))).await;
        workflow(&test, "stranger", data(json!({"Authorization": "ApiKey wrong"}))).await;
        let called = test.call("workflow.variant.greet", json!({"name": "Ada"})).await.expect(200);
        let message = &called["call"]["status"]["message"];
        assert_eq!(called["call"]["status"]["code"], "STATUS_CODE_OK", "{version}: {message} {called}");
        assert_eq!(called["call"]["data"]["content"], json!({"greeting": "Hello, Ada"}).to_string());
        assert!(!called.to_string().contains(&key));
        let refused = test.call("workflow.variant.stranger", json!({"name": "Eve"})).await.expect(200);
        assert_eq!(refused["call"]["status"]["code"], "STATUS_CODE_ERROR", "a service asks whether its caller may");
        service.kill().await.unwrap();
    }
}

#[test]
fn the_versions_that_are_tried_are_those_that_the_page_names() {
    let page = std::fs::read_to_string(repository().join("docs/agenta.md")).unwrap();
    for (version, _) in VERSIONS {
        assert!(page.contains(version), "docs/agenta.md does not name {version}");
        let test = std::fs::read_to_string(repository().join("test")).unwrap();
        assert!(test.contains(version), "./test does not install {version}");
    }
}
