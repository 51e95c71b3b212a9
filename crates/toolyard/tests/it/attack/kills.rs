//! Servers that are killed in the middle of everything, and databases that go away. What was acknowledged is there afterwards, nothing is
//! half made, and nobody is answered with a failure of ours. (Events and schedules under kills are in `chaos`, a full disk and calls
//! without an end in `audit`.)

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use sqlx::{Connection, Executor, PgConnection};
use tempfile::TempDir;
use tokio::process::Command;

use super::{Figures, is_long};
use crate::binary::Server;
use crate::reserved::workflow;
use crate::support::{Database, Fake, Test, call_body, fake_connection, postgres_schema};

const MAKE: &str = "tools.native.fake.MAKE_A_THING.main";
const ASKED: &str = "tools.native.fake.SHAPE_A_THING.main";

/// What a server said that it did, in order of saying.
#[derive(Default)]
struct Acknowledged {
    calls: Vec<String>,
    runs: Vec<String>,
    imports: Vec<String>,
    decided: Vec<String>,
    used: Vec<u64>,
    refreshed: usize,
}

/// One round of work of every kind, until nobody answers.
async fn work(server: &Server, fake: &Fake, round: u64, said: &mut Acknowledged) -> Option<()> {
    for step in 0..1000_u64 {
        let number = round * 1000 + step;
        let name = format!("k{number}");
        let (status, reply) = server.try_send(Method::POST, "/tools/call", Some(call_body(MAKE, &json!({"title": name})))).await?;
        assert_eq!(status, 200, "{reply}");
        said.calls.push(name.clone());
        let run = json!({"references": {"workflow": {"slug": "steps"}}, "data": {"inputs": {"title": format!("r{number}")}}});
        let (status, reply) = server.try_send(Method::POST, "/workflows/invoke", Some(run)).await?;
        assert_eq!(status, 200, "{reply}");
        said.runs.push(reply["meta"]["run_id"].as_str().unwrap().to_owned());
        let document = json!({"openapi": "3.1.0", "info": {"title": name}, "servers": [{"url": format!("{}/echo", fake.url)}],
            "paths": {"/x": {"get": {"operationId": "look"}}, "/y": {"get": {"operationId": "see"}}}});
        let import = json!({"import": {"key": name, "document": document}});
        let (status, reply) = server.try_send(Method::POST, "/tools/imports/openapi", Some(import)).await?;
        assert_eq!(status, 200, "{reply}");
        said.imports.push(name);
        // A call that must ask, the person's word, and the call again.
        let asked = call_body(ASKED, &json!({"id": number, "text": "x"}));
        let (status, reply) = server.try_send(Method::POST, "/tools/call", Some(asked.clone())).await?;
        assert_eq!(status, 202, "{reply}");
        let id = reply["approval"]["id"].as_str().unwrap().to_owned();
        let decision = json!({"decision": "approve"});
        let (status, reply) = server.try_send(Method::POST, &format!("/tools/approvals/{id}"), Some(decision)).await?;
        assert_eq!(status, 200, "{reply}");
        said.decided.push(id);
        let (status, reply) = server.try_send(Method::POST, "/tools/call", Some(asked)).await?;
        assert_eq!(status, 200, "{reply}");
        said.used.push(number);
        let (status, reply) = server.try_send(Method::POST, "/tools/connections/query?integration_key=fake", None).await?;
        assert_eq!(status, 200, "{reply}");
        let renewed = reply["connections"].as_array().unwrap().iter().find(|row| row["slug"] == "token").unwrap()["id"].clone();
        let path = format!("/tools/connections/{}/refresh", renewed.as_str().unwrap());
        let (status, reply) = server.try_send(Method::POST, &path, None).await?;
        assert_eq!(status, 200, "{reply}");
        said.refreshed += 1;
    }
    None
}

/// The rows of a list, page by page.
async fn all(server: &Server, path: &str, list: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let (status, page) = server.send(Method::GET, &format!("{path}?limit=500{cursor}"), None).await;
        assert_eq!(status, 200, "{page}");
        found.extend(page[list].as_array().unwrap().iter().cloned());
        match page["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

async fn prepare(server: &Server, fake: &Fake) {
    let key = json!({"base": fake.url, "api_key": "sk-fake-123456"});
    server.post("/tools/connections", fake_connection("main", &json!({"auth_scheme": "api_key", "credentials": key}))).await;
    let client = json!({"base": fake.url, "client_id": "c", "client_secret": "s"});
    server.post("/tools/connections", fake_connection("token", &json!({"auth_scheme": "client_credentials", "credentials": client}))).await;
    let steps = json!([{"name": "a", "call": MAKE, "arguments": {"title": "{{ inputs.title }}"}}]);
    server.post("/simple/workflows", json!({"workflow": {"slug": "steps", "data": {"steps": steps}}})).await;
    let policy = json!({"permissions": {"rules": [{"pattern": "tools.native.fake.SHAPE_*", "permission": "ask"}]}});
    assert_eq!(server.send(Method::PUT, "/tools/permissions", Some(policy)).await.0, 200);
}

/// Everything that was acknowledged is there, once, and what is there is whole.
async fn check(server: &Server, fake: &Fake, said: &Acknowledged) {
    let calls = all(server, "/tools/calls", "calls").await;
    assert!(calls.iter().all(|call| call["outcome"] != "running"), "what was under way is marked by now");
    let sent: Vec<String> =
        fake.seen_at("/echo/things").iter().filter_map(|seen| seen["body"]["title"].as_str().map(str::to_owned)).collect();
    for name in &said.calls {
        assert_eq!(sent.iter().filter(|title| *title == name).count(), 1, "{name} was sent once");
    }
    let recorded =
        calls.iter().filter(|call| call["call_ref"] == MAKE && ["ok", "unknown"].contains(&call["outcome"].as_str().unwrap())).count();
    assert!(recorded >= sent.len(), "{} went out, {recorded} have a row", sent.len());
    let runs: BTreeSet<String> =
        all(server, "/workflows/runs", "runs").await.iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect();
    for id in &said.runs {
        assert!(runs.contains(id), "run {id} is gone");
    }
    let (_, imports) = server.send(Method::GET, "/tools/imports", None).await;
    let imports = imports["imports"].as_array().unwrap().clone();
    for name in &said.imports {
        assert!(imports.iter().any(|import| import["integration_key"] == name.as_str()), "import {name} is gone");
    }
    for import in &imports {
        assert_eq!(import["actions_count"], 2, "{import} is half made");
    }
    if let Some(import) = imports.last() {
        let key = import["integration_key"].as_str().unwrap();
        let name = format!("tools.openapi.{key}.look.{key}-main");
        let (status, reply) = server.send(Method::POST, "/tools/call", Some(call_body(&name, &json!({})))).await;
        assert_eq!(status, 200, "{reply}");
    }
    for id in &said.decided {
        let (_, approval) = server.send(Method::GET, &format!("/tools/approvals/{id}"), None).await;
        assert!(["approved", "used"].contains(&approval["approval"]["status"].as_str().unwrap()), "{approval}");
    }
    let shaped = fake.seen_at("/echo/shape/");
    for number in &said.used {
        let times = shaped.iter().filter(|seen| seen["path"] == format!("/echo/shape/{number}")).count();
        assert_eq!(times, 1, "an approval let a call through {times} times");
    }
    let started = Instant::now();
    let name = "tools.native.fake.GET_A_THING.token";
    let (status, reply) = server.send(Method::POST, "/tools/call", Some(call_body(name, &json!({"owner": "o", "path": "p"})))).await;
    assert_eq!(status, 200, "{reply}");
    assert!(started.elapsed() < Duration::from_secs(30), "the call after a killed refresh took {:?}", started.elapsed());
}

async fn kill_in_the_middle(database: Option<String>) {
    let kills: u64 = if is_long() { 60 } else { 4 };
    let (dir, fake) = (TempDir::new().unwrap(), Fake::start().await);
    let settings = |command: &mut Command| {
        command.env("TOOLYARD_SENTENCE_MODEL", "false").env("TOOLYARD_TRIGGER_LEASE", "2");
        if let Some(database) = &database {
            command.env("TOOLYARD_DATABASE_URL", database);
        }
    };
    let mut server = Server::start(dir.path(), settings).await;
    prepare(&server, &fake).await;
    let mut said = Acknowledged::default();
    for round in 0..kills {
        // A different moment each time, in the middle of another kind of work.
        let moment = Duration::from_millis(300 + round * 137 % 400);
        let id = server.child.id().unwrap().to_string();
        let killing = async {
            tokio::time::sleep(moment).await;
            Command::new("kill").args(["-9", &id]).status().await.unwrap();
        };
        tokio::join!(work(&server, &fake, round, &mut said), killing);
        server.child.wait().await.unwrap();
        server = Server::start(dir.path(), settings).await;
    }
    let deadline = Instant::now() + Duration::from_secs(40);
    while all(&server, "/tools/calls", "calls").await.iter().any(|call| call["outcome"] == "running") {
        assert!(Instant::now() < deadline, "calls of killed servers are never marked");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    check(&server, &fake, &said).await;
    assert!(said.calls.len() as u64 >= kills, "{} calls in {kills} rounds", said.calls.len());
    Figures::new("kills")
        .add("kills", kills)
        .add("calls", said.calls.len())
        .add("runs", said.runs.len())
        .add("imports", said.imports.len())
        .add("approvals", said.decided.len())
        .add("refreshes acknowledged", said.refreshed)
        .add("lost or done twice", 0)
        .print();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_on_sqlite() {
    kill_in_the_middle(None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_on_postgres() {
    kill_in_the_middle(Some(postgres_schema().await)).await;
}

/// PostgreSQL ends every connection again and again, as at a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_restarts_is_found_again() {
    let restarts = if is_long() { 40 } else { 6 };
    let name = format!("toolyard-{}", uuid::Uuid::new_v4().simple());
    let (test, fake) = (Test::with_postgres_as(&name).await, Fake::start().await);
    test.connect_fake(&fake, "main").await;
    workflow(&test, "echo", json!({"kind": "echo"})).await;
    let ended = Arc::new(AtomicBool::new(false));
    let (taken, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let calling = async {
        while !ended.load(Ordering::SeqCst) {
            let number = taken.load(Ordering::SeqCst) + refused.load(Ordering::SeqCst);
            let reply = match number % 3 {
                0 => test.call(MAKE, json!({"title": format!("d{number}")})).await,
                1 => test.post("/workflows/invoke", json!({"references": {"workflow": {"slug": "echo"}}})).await,
                _ => test.get("/tools/calls?limit=1").await,
            };
            match reply.status.as_u16() {
                200 => taken.fetch_add(1, Ordering::SeqCst),
                503 => refused.fetch_add(1, Ordering::SeqCst),
                other => panic!("{other}: {}", reply.text),
            };
        }
    };
    let restarting = async {
        let mut own = PgConnection::connect(&std::env::var("TOOLYARD_TEST_POSTGRES").unwrap()).await.unwrap();
        for _ in 0..restarts {
            tokio::time::sleep(Duration::from_millis(150)).await;
            let sql = format!("select pg_terminate_backend(pid) from pg_stat_activity where application_name = '{name}'");
            own.execute(sqlx::AssertSqlSafe(sql)).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        ended.store(true, Ordering::SeqCst);
    };
    tokio::join!(calling, restarting);
    let taken = taken.into_inner();
    assert!(taken > restarts, "{taken} requests were answered");
    test.call(MAKE, json!({"title": "after"})).await.expect(200);
    assert_eq!(test.get("/ready").await.status, 200);
    let sent = fake.seen_at("/echo/things").len();
    let rows = test.get("/tools/calls?limit=500").await.expect(200)["calls"].as_array().unwrap().len();
    assert!(rows >= sent.min(500), "{sent} calls went out, {rows} have a row");
    Figures::new("restarts")
        .add("ends of every connection", restarts)
        .add("requests answered", taken)
        .add("refused with 503", refused.into_inner())
        .add("other failures", 0)
        .print();
}

/// A clock that jumps ahead by years and back: what has a time limit ends, nothing else does, and nothing fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_jumps_breaks_nothing() {
    for database in [Database::Sqlite, Database::Postgres] {
        let (test, fake) = (Test::start(database).await, Fake::start().await);
        test.connect_fake(&fake, "main").await;
        workflow(&test, "echo", json!({"kind": "echo"})).await;
        let start = test.clock.now();
        let data = json!({"event_key": "tick", "schedule": "*/10 * * * *", "references": {"workflow": {"slug": "echo"}}});
        test.post("/triggers/schedules", json!({"schedule": {"data": data}})).await.expect(200);
        let jumps = [Duration::from_hours(1), Duration::from_hours(24 * 365 * 20), Duration::ZERO, Duration::from_mins(5)];
        for jump in jumps {
            let at = start.plus(jump);
            test.clock.set(at);
            test.call(MAKE, json!({"title": "x"})).await.expect(200);
            test.post("/workflows/invoke", json!({"references": {"workflow": {"slug": "echo"}}})).await.expect(200);
            let fired = test.yard.triggers.fire_due(at).await.unwrap();
            assert!(fired <= 1, "{fired} runs of one schedule at {at}");
            for path in ["/tools/calls", "/workflows/runs", "/triggers/schedules", "/tools/approvals", "/agents/assignments"] {
                test.get(path).await.expect(200);
            }
        }
    }
    Figures::new("clock").add("jumps on two databases", 4).add("failures", 0).print();
}
