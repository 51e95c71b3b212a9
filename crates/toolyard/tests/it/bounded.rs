//! Work of unknown size: refused in words where it is too much, within a project's share where it is much, and never in the way of others.

use std::time::{Duration, Instant};

use kernel::Role;
use serde_json::{Value, json};
use work::WorkError;

use crate::reserved::workflow;
use crate::support::{Database, Fake, Test, on_both};
use crate::triggers::webhook;

/// An event of 200,000 values.
fn many() -> Value {
    json!({"list": vec![json!([1]); 100_000]})
}

/// A mapping that looks at each of them again and again.
fn costly() -> Value {
    json!({"x": vec!["$..*..[?@.a==1]"; 16]})
}

/// How often a small request of another project is answered until `work` is done, and the longest that it took.
async fn beside<T>(test: &Test, work: impl Future<Output = T>) -> (T, usize, Duration) {
    let other = test.key("other", Role::Viewer, None).await;
    let (mut answered, mut longest) = (0, Duration::ZERO);
    let asking = async {
        loop {
            let started = Instant::now();
            test.get_as(&other, "/tools/calls?limit=1").await.expect(200);
            (answered, longest) = (answered + 1, longest.max(started.elapsed()));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let done = tokio::select! {
        biased;
        done = work => done,
        () = asking => unreachable!(),
    };
    (done, answered, longest)
}

#[tokio::test]
async fn a_costly_mapping_is_refused_and_nobody_waits_for_it() {
    let test = Test::start(Database::Sqlite).await;
    let started = Instant::now();
    let preview = test.post("/triggers/preview", json!({"inputs_fields": costly(), "event": many()}));
    let (reply, answered, longest) = beside(&test, preview).await;
    let told = reply.detail(422);
    assert!(told.contains("too much work"), "{told}");
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    assert!(answered > 10 && longest < Duration::from_secs(1), "{answered} answers, the longest after {longest:?}");
    let one = test.post("/triggers/preview", json!({"inputs_fields": {"x": "$.event.attributes.list[0][0]"}, "event": many()})).await;
    assert_eq!(one.expect(200)["inputs"], json!({"x": 1}));
}

#[tokio::test]
async fn a_project_with_too_much_at_once_is_told_so() {
    let test = Test::start(Database::Sqlite).await;
    let project = test.yard.accounts.find_project("default").await.unwrap().id;
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Arc::new(std::sync::Mutex::new(gate));
    let started = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let hold = || {
        let (workers, gate, started) = (test.yard.workers.clone(), gate.clone(), started.clone());
        tokio::spawn(async move {
            let wait = move |_: &work::Budget| {
                started.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                let _ = gate.lock().unwrap().recv();
                Ok::<_, WorkError>(())
            };
            workers.run(project, work::LARGE, wait).await
        })
    };
    // The project's threads first, so that none of them makes room in the queue later.
    let mut held: Vec<_> = (0..64).map(|_| hold()).collect();
    let at_work = || started.load(std::sync::atomic::Ordering::SeqCst);
    loop {
        let before = at_work();
        tokio::time::sleep(Duration::from_millis(300)).await;
        if before > 0 && before == at_work() {
            break;
        }
    }
    held.extend((0..200).map(|_| hold()));
    let large = json!({"inputs_fields": {"x": "$.event.event_id"}, "event": many()});
    tokio::time::timeout(Duration::from_secs(10), async {
        while !held.iter().any(tokio::task::JoinHandle::is_finished) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("more wait than may wait");
    let told = test.post("/triggers/preview", large.clone()).await.detail(429);
    assert!(told.contains("Too much is going on in this project at once"), "{told}");
    test.post("/triggers/preview", json!({"inputs_fields": "$", "event": {"a": 1}})).await.expect(200);
    let other = test.key("other", Role::Viewer, None).await;
    test.post_as(&other, "/triggers/preview", large.clone()).await.expect(200);
    drop(open);
    for work in held {
        let _ = work.await;
    }
    test.post("/triggers/preview", large).await.expect(200);
}

#[tokio::test]
async fn a_body_of_too_many_values_is_refused_before_it_is_read() {
    let test = Test::with(Database::Sqlite, |config| config.body_limit = 8 << 20).await;
    let told = test.post("/triggers/preview", json!({"event": {"x": vec![0; 2_000_000]}})).await.detail(422);
    assert!(told.contains("too many values"), "{told}");
    test.post("/triggers/preview", json!({"inputs_fields": "$.event.event_id", "event": {"x": "0".repeat(4_000_000)}})).await.expect(200);
}

#[tokio::test]
async fn an_answer_of_too_many_values_is_a_failure_in_words() {
    let test = Test::start(Database::Sqlite).await;
    let fake = Fake::start().await;
    test.connect_fake(&fake, "main").await;
    fake.answer_echo(format!("[{}0]", "0,".repeat(2_000_000)));
    let told = test.call("tools.native.fake.GET_A_THING.main", json!({"owner": "o", "path": "p"})).await.detail(424);
    assert!(told.contains("too many values") && told.contains("smaller page"), "{told}");
    fake.answer_echo(format!("[\"{}\"]", "0".repeat(4_000_000)));
    test.call("tools.native.fake.GET_A_THING.main", json!({"owner": "o", "path": "p"})).await.expect(200);
}

on_both! {
    async fn large_data_is_committed_once(test: &Test) {
        let (variant, _) = workflow(test, "large", json!({"kind": "echo"})).await;
        let data = json!({"kind": "echo", "parameters": {"texts": vec!["x".repeat(1000); 300]}});
        let commit = json!({"workflow_revision": {"workflow_variant_id": variant, "data": data}});
        let first = test.post("/workflows/revisions/commit", commit.clone()).await.expect(200);
        assert_eq!((&first["status"], &first["workflow_revision"]["data"]), (&json!("committed"), &data), "{}", first["status"]);
        assert_eq!(test.post("/workflows/revisions/commit", commit).await.expect(200)["status"], "no_change");
        let delta = json!({"workflow_revision": {"workflow_variant_id": variant, "delta": {"set": {"parameters": {"more": 1}}}}});
        let second = test.post("/workflows/revisions/commit", delta).await.expect(200);
        assert_eq!(second["workflow_revision"]["data"]["parameters"]["more"], 1);
    }

    async fn steps_work_on_large_inputs(test: &Test) {
        let inner = json!({"kind": "echo", "schemas": {"inputs": {"type": "object", "properties": {"text": {"type": "string", "maxLength": 500_000}}}}});
        workflow(test, "inner", inner).await;
        let steps = json!([{"name": "a", "call": "workflow.variant.inner", "arguments": {"text": "{{ inputs.text }}", "n": "{{ inputs.text | length }}"}}]);
        workflow(test, "outer", json!({"steps": steps, "result": {"n": "{{ steps.a.result.n }}"}})).await;
        let invoke = |length: usize| json!({"references": {"workflow": {"slug": "outer"}}, "data": {"inputs": {"text": "x".repeat(length)}}});
        assert_eq!(test.post("/workflows/invoke", invoke(400_000)).await.expect(200)["data"]["outputs"], json!({"n": 400_000}));
        let refused = test.post("/workflows/invoke", invoke(600_000)).await;
        assert!(refused.text.contains("Invalid inputs"), "{:.300}", refused.text);
    }

    async fn a_list_ends_where_its_rows_are_large(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let (variant, _) = workflow(test, "listed", json!({"kind": "echo"})).await;
        let hook = webhook(test, "listed", json!({})).await;
        crate::approvals::ask_before(test, "tools.native.fake.MAKE_*", "ask").await;
        for number in 0..ROWS {
            let invoke = json!({"references": {"workflow": {"slug": "listed"}}, "data": {"inputs": {"n": number}}});
            test.post("/workflows/invoke", invoke).await.expect(200);
            crate::approvals::waiting(test, &test.owner, json!({"title": format!("t{number}")})).await;
            crate::triggers::send(test, hook["url"].as_str().unwrap(), &[], &format!("{{\"n\": {number}}}")).await.expect(202);
            let parameters = json!({"n": number});
            let commit = json!({"workflow_revision": {"workflow_variant_id": variant, "data": {"kind": "echo", "parameters": parameters}}});
            test.post("/workflows/revisions/commit", commit).await.expect(200);
            if number > 0 {
                workflow(test, &format!("listed-{number}"), json!({"kind": "echo"})).await;
                webhook(test, &format!("listed-{number}"), json!({})).await;
            }
            let plan = json!({"schedule": "0 9 * * *", "event_key": "tick", "references": {"workflow": {"slug": "listed"}}});
            test.post("/triggers/schedules", json!({"schedule": {"name": format!("s{number}"), "data": plan}})).await.expect(200);
        }
        // Reading the record waits for its rows.
        test.get("/tools/calls").await.expect(200);
        let large = json!({"kind": "echo", "parameters": {"text": "x".repeat(1_500_000)}});
        for (sql, path, rows) in [
            ("update workflow_runs set inputs = $1", "/workflows/runs", "runs"),
            ("update tool_approvals set arguments = $1", "/tools/approvals", "approvals"),
            ("update tool_calls set message = $1", "/tools/calls", "calls"),
            ("update trigger_deliveries set data = $1", "/triggers/deliveries", "deliveries"),
            ("update trigger_subscriptions set meta = $1", "/triggers/subscriptions", "subscriptions"),
            ("update trigger_schedules set meta = $1", "/triggers/schedules", "schedules"),
        ] {
            assert!(test.yard.db.execute(sql, store::args![&large]).await.unwrap() >= ROWS as u64, "{sql}");
            let found = walk(path, rows, async |cursor| {
                let cursor = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
                test.get(&format!("{path}?limit=200{cursor}")).await
            })
            .await;
            assert!(found >= ROWS, "{path}: {found}");
        }
        for (sql, path, rows) in [
            ("update revisions set data = $1 where data is not null", "/workflows/revisions/query", "workflow_revisions"),
            ("update artifacts set meta = $1", "/workflows/query", "workflows"),
        ] {
            test.yard.db.execute(sql, store::args![&large]).await.unwrap();
            let found = walk(path, rows, async |next| test.post(path, json!({"windowing": {"limit": 200, "next": next}})).await).await;
            assert!(found >= ROWS, "{path}: {found}");
        }
        let log = json!({"workflow_revision": {"workflow_variant_id": variant}});
        let first = test.post("/workflows/revisions/log", log).await.expect(200);
        let rows = first["workflow_revisions"].as_array().unwrap();
        assert_eq!((rows.len(), &first["windowing"]["next"]), (3, &rows[2]["id"]));
    }
}

const ROWS: usize = 6;

/// Walks through all pages of a list: how many rows there are. Pages are small, and there are several.
async fn walk(path: &str, rows: &str, page: impl AsyncFn(Option<String>) -> crate::support::Reply) -> usize {
    let (mut ids, mut cursor, mut pages) = (std::collections::BTreeSet::new(), None, 0);
    loop {
        let reply = page(cursor).await;
        assert!(reply.text.len() < 8 << 20, "{path}: {} bytes", reply.text.len());
        let answer = reply.expect(200);
        let found = answer[rows].as_array().unwrap_or_else(|| panic!("{path}: {:.200}", answer.to_string()));
        assert!(!found.is_empty(), "{path}: a page holds at least one row");
        for row in found {
            assert!(ids.insert(row["id"].as_str().unwrap().to_owned()), "{path}: a row comes once");
        }
        pages += 1;
        let next = answer["cursor"].as_str().or(answer["windowing"]["next"].as_str());
        match next {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert!(pages > 1, "{path}: {} rows on one page", ids.len());
    ids.len()
}
