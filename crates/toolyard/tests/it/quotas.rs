//! How much a project may keep, and for how long.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use store::args;

use crate::support::{Database, Fake, Test, on_both};

const MAKE: &str = "tools.native.fake.MAKE_A_THING.main";

/// Writes a test once and runs it on both databases, with small bounds.
async fn small(database: Database) -> Test {
    Test::with(database, |config| {
        config.quotas.runs.quota.rows = 5;
        config.quotas.calls.approvals.rows = 3;
        config.quotas.calls.approvals.bytes = 10_000;
        config.triggers.schedules.rows = 2;
        config.triggers.schedules.bytes = 4_000;
        config.quotas.imports.rows = 1;
        config.quotas.connections.rows = 2;
        config.quotas.connections.bytes = 5_000;
    })
    .await
}

async fn run(test: &Test, inputs: Value) -> crate::support::Reply {
    test.post("/workflows/invoke", json!({"references": {"workflow": {"slug": "say"}}, "data": {"inputs": inputs}})).await
}

async fn rows(test: &Test, sql: &'static str) -> i64 {
    test.yard.db.optional(sql, args![]).await.unwrap().unwrap().get("many").unwrap()
}

fn names_all(detail: &str, parts: &[&str]) {
    for part in parts {
        assert!(detail.contains(part), "`{part}` is not in: {detail}");
    }
}

async fn what_a_project_keeps_is_bounded(database: Database) {
    let test = &small(database).await;
    test.post("/simple/workflows/", json!({"workflow": {"slug": "say", "data": {"kind": "echo"}}})).await.expect(200);
    for number in 0..5 {
        run(test, json!({"number": number})).await.expect(200);
    }
    names_all(&run(test, json!({})).await.detail(429), &["5 runs", "`runs_per_project`", "try again", "ask the operator"]);
    test.call("workflow.variant.say", json!({})).await.expect(429);
    test.yard.forget().await.unwrap();
    let kept = test.get("/workflows/runs").await.expect(200);
    assert_eq!((&kept["count"], &kept["runs"][0]["inputs"]["number"]), (&json!(4), &json!(4)), "the oldest made room: {kept}");
    run(test, json!({})).await.expect(200);

    let fake = Fake::start().await;
    test.connect_fake(&fake, "main").await;
    let rules = json!({"permissions": {"rules": [{"pattern": "tools.native.fake.MAKE_*", "permission": "ask"}]}});
    test.request(Method::PUT, "/tools/permissions", Some(format!("ApiKey {}", test.owner)), Some(rules)).await.expect(200);
    names_all(
        &test.call(MAKE, json!({"title": "x".repeat(20_000)})).await.detail(429),
        &["10000 bytes of approvals", "`approval_bytes_per_project`"],
    );
    for number in 0..3 {
        test.call(MAKE, json!({"title": number.to_string()})).await.expect(202);
    }
    names_all(&test.call(MAKE, json!({"title": "3"})).await.detail(429), &["3 approvals", "`approvals_per_project`"]);
    test.call(MAKE, json!({"title": "0"})).await.expect(202);
    test.yard.forget().await.unwrap();
    assert_eq!(test.get("/tools/approvals").await.expect(200)["count"], 3, "those that wait are never dropped");
    test.clock.advance(Duration::from_hours(25));
    test.yard.forget().await.unwrap();
    test.call(MAKE, json!({"title": "3"})).await.expect(202);

    let schedule = |note: &str| {
        let data = json!({"event_key": "tick", "schedule": "0 9 * * *", "references": {"workflow": {"slug": "say"}}, "inputs_fields": {"note": note}});
        json!({"schedule": {"data": data}})
    };
    names_all(
        &test.post("/triggers/schedules/", schedule(&"x".repeat(5_000))).await.detail(409),
        &["4000 bytes of schedules", "`schedule_bytes_per_project`"],
    );
    let first = test.post("/triggers/schedules/", schedule("a")).await.expect(200);
    test.post("/triggers/schedules/", schedule("b")).await.expect(200);
    names_all(
        &test.post("/triggers/schedules/", schedule("c")).await.detail(409),
        &["2 schedules", "`schedules_per_project`", "Delete some"],
    );
    test.delete(&format!("/triggers/schedules/{}", first["schedule"]["id"].as_str().unwrap())).await.expect(204);
    test.post("/triggers/schedules/", schedule("c")).await.expect(200);

    let import = |key: &str| {
        let document = json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "servers": [{"url": "https://example.com"}],
            "paths": {"/things": {"get": {"operationId": "list", "summary": "List things", "responses": {"200": {"description": "ok"}}}}}});
        json!({"import": {"key": key, "document": document}})
    };
    test.post("/tools/imports/openapi", import("one")).await.expect(200);
    names_all(
        &test.post("/tools/imports/openapi", import("two")).await.detail(409),
        &["1 imports", "`imports_per_project`", "Delete some"],
    );
    test.post("/tools/imports/openapi", import("one")).await.expect(200);

    let connection = |slug: &str, note: &str| {
        let row = json!({"slug": slug, "provider_key": "native", "integration_key": "fake", "description": note,
            "data": {"auth_scheme": "api_key"}});
        json!({"connection": row})
    };
    names_all(
        &test.post("/tools/connections/", connection("second", &"x".repeat(6_000))).await.detail(409),
        &["5000 bytes of connections", "`connection_bytes_per_project`"],
    );
    test.post("/tools/connections/", connection("second", "")).await.expect(200);
    names_all(
        &test.post("/tools/connections/", connection("third", "")).await.detail(409),
        &["2 connections", "`connections_per_project`", "Delete some"],
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_project_keeps_is_bounded_on_sqlite() {
    what_a_project_keeps_is_bounded(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_project_keeps_is_bounded_on_postgres() {
    what_a_project_keeps_is_bounded(Database::Postgres).await;
}

on_both! {
    async fn what_is_old_is_dropped_and_what_is_in_use_stays(test: &Test) {
        test.post("/simple/workflows/", json!({"workflow": {"slug": "say", "data": {"kind": "echo"}}})).await.expect(200);
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        for number in 0..3 {
            run(test, json!({"number": number})).await.expect(200);
            test.call(MAKE, json!({"title": number.to_string()})).await.expect(200);
        }
        let rules = json!({"permissions": {"rules": [{"pattern": "tools.native.fake.MAKE_*", "permission": "ask"}]}});
        test.request(Method::PUT, "/tools/permissions", Some(format!("ApiKey {}", test.owner)), Some(rules)).await.expect(200);
        test.call(MAKE, json!({"title": "old"})).await.expect(202);
        test.get("/tools/calls").await.expect(200);
        let calls = rows(test, "select count(*) as many from tool_calls").await;

        test.clock.advance(Duration::from_hours(89 * 24));
        test.yard.forget().await.unwrap();
        assert_eq!(rows(test, "select count(*) as many from workflow_runs").await, 3, "not before their time");
        // A call that was under way all the time, whatever its age.
        test.yard.db.execute("update tool_calls set node_id = $1 where id = (select id from tool_calls order by id limit 1)", args![uuid::Uuid::now_v7()]).await.unwrap();
        test.clock.advance(Duration::from_hours(2 * 24));
        run(test, json!({"number": 3})).await.expect(200);
        test.call(MAKE, json!({"title": "new"})).await.expect(202);
        test.yard.forget().await.unwrap();
        let kept = test.get("/workflows/runs").await.expect(200);
        assert_eq!((&kept["count"], &kept["runs"][0]["inputs"]["number"]), (&json!(1), &json!(3)));
        let approvals = test.get("/tools/approvals").await.expect(200);
        assert_eq!((&approvals["count"], &approvals["approvals"][0]["arguments"]["title"]), (&json!(1), &json!("new")));
        // Reading the record waits for the rows on their way.
        test.get("/tools/calls").await.expect(200);
        assert_eq!(rows(test, "select count(*) as many from tool_calls").await, calls + 1, "calls are kept for a year");
        assert_eq!(rows(test, "select cast(row_count as bigint) as many from project_usage where kind = 'runs'").await, 1, "the count follows");

        test.clock.advance(Duration::from_hours(366 * 24));
        test.yard.forget().await.unwrap();
        assert_eq!(rows(test, "select count(*) as many from tool_calls").await, 1, "one is under way");
        assert_eq!(rows(test, "select cast(sum(row_count + byte_count) as bigint) as many from project_usage").await, 0);
    }
}
