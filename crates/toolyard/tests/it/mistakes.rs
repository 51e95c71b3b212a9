//! What people get wrong, each with the words that must come back. The tables are `mistakes/requests.txt` and `mistakes/commands.txt`.

use http::{Method, Request};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{Server, run_in};
use crate::support::{Database, Fake, Test, fake_connection};

const REQUESTS: &str = include_str!("mistakes/requests.txt");
const COMMANDS: &str = include_str!("mistakes/commands.txt");

fn rows(table: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(" => ").unwrap_or_else(|| panic!("no `=>` in {line}")))
}

/// The words of a row that are not in the text.
fn lacking<'a>(words: &'a str, text: &str) -> Vec<&'a str> {
    let text = text.to_lowercase();
    words.split('|').filter(|word| !text.contains(&word.to_lowercase())).collect()
}

#[tokio::test]
async fn wrong_requests_are_refused_in_words() {
    let test = Test::start(Database::Sqlite).await;
    let fake = Fake::start().await;
    test.connect_fake(&fake, "main").await;
    let topic = json!({"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]});
    for (slug, data) in [("hello", json!({"kind": "echo"})), ("buzz", json!({"kind": "echo", "schemas": {"inputs": topic}}))] {
        test.post("/simple/workflows", json!({"workflow": {"slug": slug, "data": data}})).await.expect(200);
    }
    let agent = test.post("/agents", json!({"name": "reader", "agent_type": "research", "tools": []})).await;
    assert!(agent.status.is_success(), "{}", agent.text);
    let project = test.yard.accounts.find_project("default").await.unwrap().id.to_string();
    let before = fingerprint(&test).await;

    let mut wrong = Vec::new();
    for (request, expected) in rows(REQUESTS) {
        let request = request.replace("{agent}", &agent.json()["id"].to_string()).replace("{project}", &project);
        let (status, words) = expected.split_once(' ').unwrap();
        let reply = send(&test, &request).await;
        let missing = lacking(words, &reply.text);
        if reply.status.as_str() != status || !missing.is_empty() {
            wrong.push(format!("{request}\n    wanted {expected}\n    got {} {}", reply.status, reply.text));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows(REQUESTS).count(), wrong.join("\n"));
    assert_eq!(fingerprint(&test).await, before, "a refused request leaves nothing behind");
}

/// What there is of every kind that the rows try to make.
async fn fingerprint(test: &Test) -> Vec<Value> {
    let mut seen = Vec::new();
    for path in ["/tools/permissions", "/tools/connected", "/tools/imports", "/triggers/subscriptions", "/triggers/schedules", "/agents"] {
        seen.push(test.get(path).await.expect(200));
    }
    for path in ["/tools/connections/query", "/workflows/query", "/workflows/revisions/query"] {
        seen.push(test.post(path, json!({})).await.expect(200)["count"].clone());
    }
    seen
}

async fn send(test: &Test, line: &str) -> crate::support::Reply {
    let (key, line) = match line.strip_prefix("ACCESS ") {
        Some(rest) => (format!("Access {}", test.yard.operator_key.expose()), rest),
        None => (format!("ApiKey {}", test.owner), line),
    };
    let mut parts = line.splitn(3, ' ');
    let method: Method = parts.next().unwrap().parse().unwrap();
    let path = parts.next().unwrap();
    let body = parts.next().unwrap_or_default().to_owned();
    let request = Request::builder().method(method).uri(path).header("authorization", key);
    test.send(request.header("content-type", "application/json").body(body.into()).unwrap()).await
}

#[tokio::test]
async fn wrong_commands_are_refused_in_words() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), |_| {}).await;
    let fake = Fake::start().await;
    let credentials = json!({"base": fake.url, "api_key": "sk-fake-123456"});
    server.post("/tools/connections/", fake_connection("main", &json!({"auth_scheme": "api_key", "credentials": credentials}))).await;
    server.post("/simple/workflows", json!({"workflow": {"slug": "hello", "data": {"kind": "echo"}}})).await;

    let mut wrong = Vec::new();
    for (line, words) in rows(COMMANDS) {
        let (code, out, err) = run_in(dir.path(), &server.url, &arguments(line)).await;
        let missing = lacking(words, &err);
        if code == 0 || !missing.is_empty() || err.contains("panicked") {
            wrong.push(format!("toolyard {line}\n    wanted {words}\n    got {code}: {err}{out}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows(COMMANDS).count(), wrong.join("\n"));
}

/// The words of a command; one that holds blanks stands in quotes.
fn arguments(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (index, part) in line.split('"').enumerate() {
        if index % 2 == 1 { words.push(part) } else { words.extend(part.split_whitespace()) }
    }
    words
}
