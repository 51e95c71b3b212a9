//! The audit trail holds what goes out: before it goes out, with a full disk, and after a kill.

use std::process::Stdio;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use store::{Db, args};
use tempfile::TempDir;
use tokio::process::Command;
use toolyard::yard::Yard;

use crate::approvals::{ask_before, decide, waiting};
use crate::binary::{Server, run_in};
use crate::reserved::workflow;
use crate::support::{Database, Fake, Test, call_body, fake_connection, on_both, postgres_schema, until};

const MAKE: &str = "tools.native.fake.MAKE_A_THING.main";
const GET: &str = "tools.native.fake.GET_A_THING.main";
const SLOWLY: &str = "tools.native.fake.SLOWLY.main";

/// Has the database take no more rows, as one that was made read-only or whose disk is full.
async fn refuse_writes(db: &Db) {
    if let Db::Sqlite(_) = db {
        db.execute("pragma query_only = on", args![]).await.unwrap();
        return;
    }
    db.execute(
        "create function refuse() returns trigger language plpgsql as 'begin raise exception using errcode = ''53100''; end'",
        args![],
    )
    .await
    .unwrap();
    db.execute("create trigger refuse before insert or update on tool_calls execute function refuse()", args![]).await.unwrap();
    db.execute("create trigger refuse before insert or update on settings execute function refuse()", args![]).await.unwrap();
}

async fn take_writes(db: &Db) {
    if let Db::Sqlite(_) = db {
        db.execute("pragma query_only = off", args![]).await.unwrap();
        return;
    }
    db.execute("drop function refuse cascade", args![]).await.unwrap();
}

fn thing() -> Value {
    json!({"owner": "a", "path": "b"})
}

/// Outcome, tool and message of every call, oldest first.
async fn rows(test: &Test) -> Vec<(String, String, String)> {
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let calls = test.get("/tools/calls").await.expect(200)["calls"].take();
    calls.as_array().unwrap().iter().rev().map(|row| (text(row, "outcome"), text(row, "tool"), text(row, "message"))).collect()
}

on_both! {
    async fn a_call_that_cannot_be_recorded_is_not_made(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        workflow(test, "echo", json!({"kind": "echo"})).await;
        test.call(MAKE, json!({"title": "first"})).await.expect(200);
        test.get("/ready").await.expect(200);
        assert_eq!(rows(test).await.len(), 1, "it is written by now");
        refuse_writes(&test.yard.db).await;

        let why = if test.yard.db.kind() == "sqlite" { "it is read-only" } else { "its disk is full" };
        for name in [MAKE, "workflow.variant.echo"] {
            let said = test.call(name, json!({"title": "second"})).await.detail(503);
            assert_eq!(said, format!("The call was not made, because it could not be recorded first: the database cannot be written: {why}."));
        }
        test.call(GET, thing()).await.expect(200);
        assert_eq!((fake.seen_at("/echo/things").len(), fake.seen_at("/echo/a").len()), (1, 1), "nothing was sent that changes something");
        // A write that went well a moment ago is not tried again at once.
        let database = async || test.get("/ready").await.json()["detail"]["parts"]["database"].take();
        until("it is not ready", async || database().await == format!("cannot be written: {why}")).await;
        assert_eq!(test.get("/ready").await.expect(503)["detail"]["parts"]["audit"], "3 calls could not be recorded yet");
        let metrics = test.request(Method::GET, "/metrics", None, None).await.text;
        assert!(metrics.contains("toolyard_tool_calls_unwritten 3"), "{metrics}");
        assert_eq!(rows(test).await.len(), 1, "and the record can still be read");

        take_writes(&test.yard.db).await;
        until("it is ready again", async || test.get("/ready").await.status == 200).await;
        test.call(MAKE, json!({"title": "third"})).await.expect(200);
        let rows = rows(test).await;
        let outcomes: Vec<&str> = rows.iter().map(|(outcome, ..)| outcome.as_str()).collect();
        assert_eq!(outcomes, ["ok", "failed", "failed", "ok", "ok"], "what waited was written: {rows:?}");
        assert!(rows[1].2.contains("was not made"), "{rows:?}");
        let left = test.yard.db.all("select name from settings where name like 'write-test%'", args![]).await.unwrap();
        assert!(left.is_empty(), "the test of a write leaves nothing behind");
    }

    async fn an_approval_is_not_used_up_by_a_call_that_was_not_made(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        ask_before(test, MAKE, "ask").await;
        let id = waiting(test, &test.owner, json!({"title": "x"})).await;
        decide(test, &id, "approve").await;
        test.yard.db.execute("alter table tool_calls rename to calls_aside", args![]).await.unwrap();
        test.call(MAKE, json!({"title": "x"})).await.expect(503);
        test.yard.db.execute("alter table calls_aside rename to tool_calls", args![]).await.unwrap();
        test.call(MAKE, json!({"title": "x"})).await.expect(200);
        assert_eq!(fake.seen_at("/echo/things").len(), 1);
    }
}

#[tokio::test]
async fn reads_wait_for_their_row_where_the_operator_wants_it() {
    for database in [Database::Sqlite, Database::Postgres] {
        let fake = Fake::start().await;
        let test = Test::with(database, |config| (config.audit.reads_first, config.audit.sync) = (true, true)).await;
        test.connect_fake(&fake, "main").await;
        test.call(GET, thing()).await.expect(200);
        refuse_writes(&test.yard.db).await;
        test.call(GET, thing()).await.expect(503);
        assert_eq!(fake.seen_at("/echo/a").len(), 1);
    }
}

/// Nodes share a PostgreSQL; the calls of one that lives are its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_calls_of_a_living_node_are_left_alone() {
    let fake = Fake::start().await;
    let test = Test::start(Database::Postgres).await;
    test.connect_fake(&fake, "main").await;
    let other = Yard::open_at(test.yard.config.clone(), test.clock.clone()).await.unwrap();
    let (called, ()) = tokio::join!(test.call(SLOWLY, json!({"ms": 1500})), async {
        until("the call is under way", async || fake.seen_at("/slow").len() == 1).await;
        assert_eq!(rows(&test).await.last().unwrap().0, "running");
        assert_eq!(other.calls.mark_lost().await.unwrap(), 0);
        // It said nothing for too long, so nobody can know.
        test.clock.advance(Duration::from_secs(31));
        assert_eq!(other.calls.mark_lost().await.unwrap(), 1);
        assert_eq!(rows(&test).await.last().unwrap().0, "unknown");
        let (_, counted) = other.calls.call_counts().into_iter().find(|(outcome, _)| outcome.name() == "unknown").unwrap();
        assert_eq!(counted, 1);
    });
    called.expect(200);
    assert_eq!(rows(&test).await.last().unwrap().0, "ok", "it was only slow, and its end is the truth");
}

/// A server whose files may not grow beyond so many blocks of 512 bytes: to it, the disk is full.
fn limited(command: &mut Command, blocks: u32) {
    let plain = command.as_std();
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"")).arg(plain.get_program()).args(plain.get_args());
    shell.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(plain.get_current_dir().unwrap());
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    *command = shell;
}

#[tokio::test]
async fn with_a_full_disk_nothing_goes_out_without_a_row() {
    let (dir, fake) = (TempDir::new().unwrap(), Fake::start().await);
    let quiet = |command: &mut Command| {
        command.env("TOOLYARD_SENTENCE_MODEL", "false");
    };
    let server = Server::start(dir.path(), quiet).await;
    let credentials = json!({"base": fake.url, "api_key": "sk-fake-123456"});
    server.post("/tools/connections/", fake_connection("main", &json!({"auth_scheme": "api_key", "credentials": credentials}))).await;
    server.terminate().await;

    let mut server = Server::start(dir.path(), |command| {
        quiet(command);
        limited(command, 2000);
    })
    .await;
    let (mut made, mut refused) = (0, 0);
    while refused < 5 {
        let (status, reply) = server.send(Method::POST, "/tools/call", Some(call_body(MAKE, &json!({"title": "x"})))).await;
        match status {
            200 => made += 1,
            503 => refused += 1,
            _ => panic!("{status} {reply}"),
        }
        assert!(made < 2000, "the disk never was full");
    }
    let (status, ready) = server.send(Method::GET, "/ready", None).await;
    assert_eq!((status, &ready["detail"]["parts"]["database"]), (503, &json!("cannot be written: its disk fails")));
    assert_eq!(fake.seen_at("/echo/things").len(), made, "what was refused was not sent");
    server.child.kill().await.unwrap();

    let server = Server::start(dir.path(), quiet).await;
    let mut found = 0;
    let mut cursor = String::new();
    loop {
        let (_, page) = server.send(Method::GET, &format!("/tools/calls?limit=500{cursor}"), None).await;
        let went_out = |row: &&Value| ["ok", "unknown"].contains(&row["outcome"].as_str().unwrap());
        found += page["calls"].as_array().unwrap().iter().filter(went_out).count();
        match page["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert!(found >= made, "{made} calls went out, and {found} have a row");
}

async fn killed_in_the_middle(database: Option<String>) {
    let (dir, fake) = (TempDir::new().unwrap(), Fake::start().await);
    let settings = |command: &mut Command| {
        command.env("TOOLYARD_SENTENCE_MODEL", "false").env("TOOLYARD_TRIGGER_LEASE", "2");
        if let Some(database) = &database {
            command.env("TOOLYARD_DATABASE_URL", database);
        }
    };
    let mut server = Server::start(dir.path(), settings).await;
    let credentials = json!({"base": fake.url, "api_key": "sk-fake-123456"});
    server.post("/tools/connections/", fake_connection("main", &json!({"auth_scheme": "api_key", "credentials": credentials}))).await;
    server.post("/tools/call", call_body(MAKE, &json!({"title": "before"}))).await;
    // Reading waits for what is on its way to the record: a kill would leave the end of this call unknown too.
    assert_eq!(server.send(Method::GET, "/tools/calls?outcome=ok", None).await.1["count"], 1);
    tokio::select! {
        reply = server.send(Method::POST, "/tools/call", Some(call_body(SLOWLY, &json!({"ms": 60_000})))) => panic!("{reply:?}"),
        () = until("the call is under way", async || fake.seen_at("/slow").len() == 1) => {}
    }
    server.child.kill().await.unwrap();

    let server = Server::start(dir.path(), settings).await;
    let unknown = async || server.send(Method::GET, "/tools/calls?outcome=unknown", None).await.1["calls"].take();
    until("what was under way is marked", async || unknown().await.as_array().unwrap().len() == 1).await;
    let found = unknown().await;
    assert_eq!((&found[0]["call_ref"], found[0]["connection_id"].is_string()), (&json!(SLOWLY), true), "{found}");
    let (code, out, err) = run_in(dir.path(), &server.url, &["calls", "--outcome", "unknown"]).await;
    assert!(code == 0 && out.contains("unknown") && out.contains("Look whether it took effect"), "{out} {err}");
    assert_eq!(server.send(Method::GET, "/tools/calls?outcome=ok", None).await.1["count"], 1);
}

#[tokio::test]
async fn what_was_in_flight_at_a_kill_has_an_unknown_outcome_on_sqlite() {
    killed_in_the_middle(None).await;
}

#[tokio::test]
async fn what_was_in_flight_at_a_kill_has_an_unknown_outcome_on_postgres() {
    killed_in_the_middle(Some(postgres_schema().await)).await;
}
