//! Other people's OAuth clients against the program itself: `openid-client`, authlib, the official MCP clients, the conformance suite; and our
//! own command line, which is a device like others.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::binary::Server;
use crate::support::{Fake, fake_connection, repository};

async fn start(dir: &Path) -> (Server, Fake) {
    let server = Server::start(dir, |_| {}).await;
    let fake = Fake::start().await;
    let credentials = json!({"base": fake.url, "api_key": "sk-fake-123456"});
    server.post("/tools/connections/", fake_connection("main", &json!({"auth_scheme": "api_key", "credentials": credentials}))).await;
    (server, fake)
}

/// What a script's clients saw, a line each.
async fn seen(program: PathBuf, script: &str) -> Vec<Value> {
    let dir = TempDir::new().unwrap();
    let (server, _fake) = start(dir.path()).await;
    let mut command = Command::new(program);
    command.arg(repository().join(script)).args([&server.url, &server.key]).current_dir(dir.path());
    let output = command.kill_on_drop(true).output().await.expect("the script runs; `./test` installs what it needs");
    let said = format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[tokio::test]
async fn javascript_clients_sign_in_from_the_address_alone() {
    let seen = seen("node".into(), "tests/npm/oauth-clients.mjs").await;
    assert_eq!(seen.len(), 4, "{seen:?}");
    for library in &seen[..2] {
        assert_eq!((&library["called"], &library["used"]), (&json!(200), &json!(200)), "{library}");
        assert_eq!((&library["scope"], &library["device"]), (&json!("view_tools run_tools"), &json!("view_tools")), "{library}");
        assert_eq!((&library["active"], &library["after"]), (&json!(true), &json!(false)), "{library}");
    }
    for client in &seen[2..] {
        for done in ["refused", "called", "refreshed", "revoked"] {
            assert_eq!(client[done], true, "{done}: {client}");
        }
        assert_eq!(client["scope"], "run_tools", "the surface said what it needs: {client}");
        assert!(client["resource"].as_str().is_some_and(|resource| resource.ends_with("/mcp")), "{client}");
    }
}

#[tokio::test]
async fn python_clients_sign_in_from_the_address_alone() {
    let seen = seen(repository().join("target/test-venv/bin/python"), "tests/python/oauth_clients.py").await;
    let library = &seen[0];
    assert_eq!((&library["called"], &library["renewed"], &library["used"]), (&json!(200), &json!(200), &json!(200)), "{library}");
    assert_eq!((&library["rotated"], &library["active"], &library["after"]), (&json!(true), &json!(true), &json!(false)), "{library}");
    let mcp = &seen[1];
    assert_eq!(
        (&mcp["called"], &mcp["scope"], &mcp["times"], &mcp["asked_anew"]),
        (&json!(true), &json!("run_tools"), &json!(1), &json!(true)),
        "{mcp}"
    );
}

#[tokio::test]
async fn the_conformance_suites_authorization_scenarios_pass() {
    let dir = TempDir::new().unwrap();
    let (server, _fake) = start(dir.path()).await;
    let mut command = Command::new("node");
    command.arg(repository().join("tests/npm/oauth-conformance.mjs")).args([&server.url, &server.key]).current_dir(dir.path());
    let output = command.kill_on_drop(true).output().await.expect("node runs");
    let said = format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && !said.contains("WARNING"), "{said}");
}

/// A certificate for `localhost` that signs itself.
async fn certificate(dir: &Path) -> (PathBuf, PathBuf) {
    let (cert, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    let mut command = Command::new("openssl");
    command.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]);
    command
        .args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&cert);
    let made = command.output().await.expect("openssl runs; `./test` installs it");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    (cert, key)
}

#[tokio::test]
async fn a_client_may_describe_itself_at_its_own_address() {
    let dir = TempDir::new().unwrap();
    let (cert, key) = certificate(dir.path()).await;
    let server = Server::start(dir.path(), |command| {
        command.env("TOOLYARD_EGRESS_ALLOW", "localhost").env("SSL_CERT_FILE", &cert);
    })
    .await;
    server
        .post("/tools/connections/", json!({"connection": {"slug": "news", "provider_key": "native", "integration_key": "hacker-news"}}))
        .await;
    let mut command = Command::new("node");
    command.arg(repository().join("tests/npm/oauth-document.mjs")).args([&server.url, &server.key]).arg(&cert).arg(&key);
    let output = command.kill_on_drop(true).output().await.expect("node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (document, why) in [
        ("other", "its `client_id` is not its address"),
        ("secret", "it holds a secret"),
        ("large", "it is larger than"),
        ("page", "what is there is not JSON"),
        ("moved", "its address answers 302"),
        ("missing", "its address answers 404"),
    ] {
        assert!(seen[document].as_str().unwrap().starts_with(why), "{document}: {seen}");
    }
    assert!(seen["slow"].as_str().unwrap() != "taken", "{seen}");
    assert_eq!((&seen["tools"], &seen["id"], &seen["read"]), (&json!(true), &json!(true), &json!(1)), "{seen}");
}

/// The command line on another machine: a home of its own, and no data directory.
fn elsewhere(home: &Path, server: &Server, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolyard"));
    command
        .args(args)
        .args(["--url", &server.url])
        .current_dir(home)
        .env("HOME", home)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("TOOLYARD_KEY");
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

async fn run(home: &Path, server: &Server, args: &[&str]) -> (bool, String) {
    let output = elsewhere(home, server, args).output().await.unwrap();
    (output.status.success(), format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

#[tokio::test]
async fn the_command_line_signs_in_without_a_key() {
    let (dir, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (server, _fake) = start(dir.path()).await;
    let (worked, said) = run(home.path(), &server, &["connections"]).await;
    assert!(!worked && said.contains("toolyard login"), "{said}");

    let mut login = elsewhere(home.path(), &server, &["login"]).spawn().unwrap();
    let mut lines = BufReader::new(login.stderr.take().unwrap()).lines();
    let opened = lines.next_line().await.unwrap().unwrap();
    let address = opened.strip_prefix("Open ").unwrap();
    let person = format!(
        "import {{ Person }} from {}; await new Person({}, {}).allow({});",
        json!(repository().join("tests/npm/person.mjs").canonicalize().unwrap()),
        json!(server.url),
        json!(server.key),
        json!(address)
    );
    let allowed = Command::new("node").args(["--input-type=module", "-e", &person]).output().await.unwrap();
    assert!(allowed.status.success(), "{}", String::from_utf8_lossy(&allowed.stderr));
    let ended = tokio::time::timeout(Duration::from_secs(30), login.wait()).await.unwrap().unwrap();
    assert!(ended.success());

    let file = home.path().join(".config/toolyard/logins.json");
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions()) & 0o777, 0o600);
    let (worked, said) = run(home.path(), &server, &["connections"]).await;
    assert!(worked && said.contains("main"), "{said}");
    let (worked, said) = run(home.path(), &server, &["grants"]).await;
    assert!(worked && said.contains("Toolyard command line") && said.contains("active"), "{said}");

    // A token that has expired is renewed, once, however many commands find it so.
    let mut kept: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let before = kept[format!("{}/", server.url)]["refresh_token"].clone();
    kept[format!("{}/", server.url)]["expires_at"] = json!(1);
    std::fs::write(&file, kept.to_string()).unwrap();
    let (one, two) = tokio::join!(run(home.path(), &server, &["connections"]), run(home.path(), &server, &["agent"]));
    assert!(one.0 && two.0, "{one:?} {two:?}");
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_ne!(kept[format!("{}/", server.url)]["refresh_token"], before);

    let (worked, said) = run(home.path(), &server, &["logout"]).await;
    assert!(worked && said.contains("signed out"), "{said}");
    assert_eq!(server.send(Method::GET, "/grants?active=true", None).await.1["count"], 0);
    let (worked, said) = run(home.path(), &server, &["logout"]).await;
    assert!(!worked && said.contains("nobody is signed in"), "{said}");
}
