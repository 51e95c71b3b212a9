//! The OpenAPI document tells the truth: schemathesis makes requests from it, valid ones and others, and holds every answer against it.

use std::process::Stdio;

use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::composio::NOT_SERVED;
use super::{Figures, is_long};
use crate::binary::Server;
use crate::support::repository;

/// They end the key that asks, so they come last.
const LAST: [&str; 3] = ["delete_project", "revoke_key", "revoke_project_key"];
/// It answers with a stream that does not end.
const STREAMS: [&str; 4] = ["mcp_changes", "mcp_agent_changes", "mcp_session_changes", "mcp_tool_router_changes"];

struct Run<'a> {
    server: &'a Server,
    dir: &'a TempDir,
}

impl Run<'_> {
    fn key(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join("data").join(name)).unwrap().trim().to_owned()
    }

    /// What it printed, if it found nothing.
    async fn schemathesis(&self, args: &[&str]) -> String {
        let folder = repository().canonicalize().unwrap();
        let (program, python) = (folder.join("target/test-venv/bin/schemathesis"), folder.join("tests/python"));
        assert!(program.exists(), "schemathesis is missing; `./test` installs it");
        let mut command = Command::new(program);
        command.arg("--config-file").arg(python.join("schemathesis.toml")).arg("run").arg(format!("{}/openapi.json", self.server.url));
        command.args(["--url", &self.server.url, "--seed", "1", "--generation-deterministic"]);
        command.args(["--checks", "all", "--continue-on-failure", "--warnings", "off", "--no-color"]).args(args);
        command.env("TOOLYARD_KEY", self.key("owner.key")).env("TOOLYARD_OPERATOR_KEY", self.key("operator.key"));
        command.env("TOOLYARD_HOOKS", python.join("schemathesis_hooks.py")).env("PYTHONDONTWRITEBYTECODE", "1");
        command.current_dir(self.dir.path()).stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}");
        told
    }
}

/// How many answers of each kind there were.
fn answers(told: &str) -> Value {
    let line = told.lines().find_map(|line| line.strip_prefix("answers: ")).expect("the hooks count");
    serde_json::from_str(line).unwrap()
}

fn generated(told: &str) -> u64 {
    let line = told.lines().find(|line| line.contains(" generated,")).expect("the summary counts");
    line.trim().split(' ').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_nothing() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), |command| {
        command.env("TOOLYARD_SENTENCE_MODEL", "false");
    })
    .await;
    let run = Run { server: &server, dir: &dir };
    // What is not served answers 501, and nothing else does.
    let left_out: Vec<&str> = LAST.into_iter().chain(STREAMS).chain(NOT_SERVED).flat_map(|id| ["--exclude-operation-id", id]).collect();
    let size: &[&str] =
        if is_long() { &["--phases", "examples,coverage,fuzzing", "-n", "200"] } else { &["--phases", "examples,coverage"] };
    let told = run.schemathesis(&[size, &left_out].concat()).await;
    let (made, counted) = (generated(&told), answers(&told));
    assert_eq!(server.send(Method::GET, "/tools/calls", None).await.0, 200, "the key is still good, so nothing was hidden behind a 401");
    let taken = counted["2xx"].as_u64().unwrap_or_default();
    assert!(taken > 500, "only {taken} of {made} requests were taken: {counted}");
    assert_eq!(counted["5xx"].as_u64().unwrap_or_default(), 0, "{counted}");
    let last: Vec<&str> = LAST.into_iter().flat_map(|id| ["--include-operation-id", id]).collect();
    run.schemathesis(&[&["--phases", "examples,coverage"], last.as_slice()].concat()).await;
    Figures::new("document").add("requests from it", made).add("taken", taken).add("answers or refusals that it does not say", 0).print();
}

#[test]
fn the_configuration_names_operations_that_are_there() {
    let text = std::fs::read_to_string(repository().join("tests/python/schemathesis.toml")).unwrap();
    let ids: Vec<String> = super::operations::all().into_iter().map(|operation| operation.id).collect();
    let words = text.lines().filter(|line| !line.starts_with('#')).flat_map(|line| line.split('"').skip(1).step_by(2).collect::<Vec<_>>());
    let named: Vec<&str> = words.filter(|word| word.contains('_') && word.chars().all(|c| c.is_ascii_lowercase() || c == '_')).collect();
    assert!(named.len() > 40, "{named:?}");
    for name in named.into_iter().chain(LAST).chain(STREAMS) {
        assert!(ids.iter().any(|id| id == name), "there is no operation `{name}`: {}", json!(ids));
    }
}
