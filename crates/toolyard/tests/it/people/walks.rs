//! People sign in and let clients in, in Chromium: see `tests/npm/people.mjs`.

use std::net::TcpListener;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::binary::Server;
use crate::support::{Fake, Oidc, fake_connection, repository};

/// The walks of a section, with a server and an identity provider of its own.
async fn walk(section: &str) {
    let dir = TempDir::new().unwrap();
    // The provider must know our address, and we must know the provider's.
    let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let oidc = Oidc::start(&format!("http://{listen}/sign-in/with/corp/callback"), 60).await;
    let rules = json!([{"group": "eng", "project": "default", "role": "editor"}, {"group": "ops", "project": "default", "role": "viewer"}]);
    let corp = json!([{"name": "corp", "label": "The corp", "issuer": oidc.issuer, "client_id": "yard-basic", "client_secret": "yard-secret",
        "scopes": ["groups"], "rules": rules}]);
    let server = Server::start(dir.path(), |command| {
        command.env("TOOLYARD_LISTEN", listen.to_string()).env("TOOLYARD_SIGN_IN", corp.to_string());
    })
    .await;
    let fake = Fake::start().await;
    let credentials = json!({"base": fake.url, "api_key": "sk-fake-123456"});
    server.post("/tools/connections/", fake_connection("main", &json!({"auth_scheme": "api_key", "credentials": credentials}))).await;
    let facts = json!({
        "url": server.url,
        "key": server.key,
        "operator_key": std::fs::read_to_string(dir.path().join("data/operator.key")).unwrap().trim(),
        "link": server.invitation().await,
        "issuer": oidc.issuer,
        "dir": dir.path(),
        "program": env!("CARGO_BIN_EXE_toolyard"),
        "python": repository().join("target/test-venv/bin/python"),
        "python_script": repository().join("tests/python/oauth_clients.py"),
    });
    let mut command = Command::new("node");
    command.arg(repository().join("tests/npm/people.mjs")).args([section, &facts.to_string()]).current_dir(dir.path());
    let output = command.kill_on_drop(true).output().await.expect("node runs; `./test` installs it");
    let said = format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    let counts: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert!(counts["walks"].as_u64() > Some(0) && counts["looks"].as_u64() > Some(0), "{said}");
}

macro_rules! sections {
    ($($name:ident $section:literal),* $(,)?) => {
        const SECTIONS: &[&str] = &[$($section),*];

        $(#[tokio::test]
        async fn $name() {
            walk($section).await;
        })*
    };
}

sections! {
    clients_are_let_in_and_turned_away "clients",
    groups_of_a_provider_decide "providers",
    links_passwords_and_codes "sign-in",
}

#[test]
fn every_section_is_walked_through() {
    let files = std::fs::read_dir(repository().join("tests/npm/people")).unwrap();
    let mut names: Vec<String> = files.map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, SECTIONS);
}
