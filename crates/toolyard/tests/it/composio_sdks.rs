//! Composio's own SDKs, unmodified, against the program: only their base URL is Toolyard's.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::binary::{Server, program, run};
use crate::support::{Database, Fake, postgres_schema, repository};

/// Python with the SDK, its providers and pytest.
fn python() -> PathBuf {
    repository().join("target/test-venv/bin/python")
}

/// Walks through one part of an SDK: `tests/python/composio_sdk/PART.py` or `tests/npm/composio-sdk/PART.mjs`.
async fn walk(program: PathBuf, script: &str, part: &str, database: Database) -> Value {
    let dir = TempDir::new().unwrap();
    let postgres = match database {
        Database::Postgres => Some(postgres_schema().await),
        Database::Sqlite => None,
    };
    let server = Server::start(dir.path(), |command| {
        if let Some(url) = &postgres {
            command.env("TOOLYARD_DATABASE_URL", url);
        }
    })
    .await;
    let fake = Fake::start().await;
    let mut command = Command::new(program);
    command.arg(repository().join(script)).args([part, &server.url, &server.key, &fake.url]).current_dir(dir.path());
    let output = command.kill_on_drop(true).output().await.expect("`./test` installs the SDKs");
    let said = format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{part}: {said}");
    serde_json::from_str(String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default()).expect(&said)
}

async fn in_python(part: &str, database: Database) -> Value {
    walk(python(), "tests/python/composio_sdk.py", part, database).await
}

async fn in_typescript(part: &str, database: Database) -> Value {
    walk("node".into(), "tests/npm/composio-sdk.mjs", part, database).await
}

/// One test for each part and SDK; between them they run on both databases.
macro_rules! parts {
    ($($part:ident),* $(,)?) => {$(
        mod $part {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn python() {
                in_python(stringify!($part), Database::Sqlite).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn typescript() {
                in_typescript(stringify!($part), Database::Postgres).await;
            }
        }
    )*};
}

parts!(tools, accounts, triggers, sessions);

/// Whoever comes from Composio sees which of their tools are here, without a server or a database.
#[tokio::test]
async fn a_programs_tools_are_compared_with_those_here() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("agent.py");
    let code = "tools = ['FAKE_GET_A_THING', \"GITHUB_CREATE_ISSUE\", 'NOSUCHKIT_DO_IT']\nGMAIL_SEND_EMAIL\nother = NOT_QUOTED";
    std::fs::write(&file, code).unwrap();
    let compare = async |args: &[&str]| {
        let mut command = program(dir.path());
        command.args(["composio", "compare"]).args(args);
        run(command).await
    };
    let (code, text, errors) = compare(&["agent.py", "--json"]).await;
    assert_eq!(code, 0, "{errors}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    let found = |slug: &str| answer["tools"].as_array().unwrap().iter().find(|tool| tool["composio"] == slug).unwrap()["here"].clone();
    assert_eq!(answer["count"], 4);
    assert_eq!(found("FAKE_GET_A_THING")["found"], "same");
    assert_eq!(found("GITHUB_CREATE_ISSUE"), json!({"found": "likely", "slug": "GITHUB_CREATE_AN_ISSUE", "about": "Create an issue"}));
    assert_eq!(found("GMAIL_SEND_EMAIL")["slug"], "GMAIL_SEND_AN_EMAIL");
    assert_eq!(found("NOSUCHKIT_DO_IT")["found"], "no_toolkit");
    let (code, text, errors) = compare(&["agent.py"]).await;
    assert!(code == 0 && text.contains("GITHUB_CREATE_AN_ISSUE") && errors.contains("4 tools: 1 of the same slug"), "{text}{errors}");
    std::fs::write(&file, "nothing").unwrap();
    for file in ["agent.py", "missing.py"] {
        let (code, _, errors) = compare(&[file]).await;
        assert!(code == 1 && errors.starts_with("error: "), "{errors}");
    }
}

/// Live tests that the Python package ships and that cannot pass here, by what they need.
const NOT_HERE: [(&str, &[&str]); 2] = [
    (
        "MCP servers of the older kind, which sessions replaced",
        &[
            "test_create_mcp_config",
            "test_generate_method_directly",
            "test_create_with_string_toolkits",
            "test_create_with_mixed_toolkits",
            "test_create_response_structure",
            "test_mcp_with_no_auth_toolkits",
            "test_mcp_with_string_toolkits",
            "test_full_workflow_with_no_auth_toolkits",
        ],
    ),
    (
        "requests of one's own with an account's credential",
        &["test_proxy_execute_option_round_trip", "test_proxy_execute_false_conflicts_with_sandbox_helper"],
    ),
];

#[tokio::test]
async fn the_packages_own_live_tests_pass() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), |_| {}).await;
    let names: Vec<&str> = NOT_HERE.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let mut command = Command::new(python());
    command.args(["-m", "pytest", "--pyargs", "composio.integration_test", "-q", "-p", "no:cacheprovider"]);
    command.args(["-k", &format!("not ({})", names.join(" or "))]).current_dir(dir.path());
    command.env("COMPOSIO_API_KEY", &server.key).env("COMPOSIO_BASE_URL", &server.url);
    let output = command.kill_on_drop(true).output().await.expect("`./test` installs the SDK");
    let said = format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains(" passed"), "{said}");
}
