//! When Composio is slow, wrong or away: the documented status, nothing half-made, and nobody who waits for nothing.

use std::time::{Duration, Instant};

use composio_fake::{Fault, Kind, On};
use serde_json::{Value, json};

use crate::support::{Composed, Database, until, with_composio};

const ISSUE: &str = "tools.composio.github.CREATE_AN_ISSUE.main";

fn issue() -> Value {
    json!({"owner": "o", "repo": "r", "title": "t"})
}

with_composio! {
    async fn a_connection_that_cannot_be_begun_leaves_nothing(test: &Composed) {
        test.get("/tools/catalog/providers/composio/integrations/github").await.expect(200);
        let kinds = [
            (Kind::Status(400), 424),
            (Kind::Status(401), 424),
            (Kind::Status(429), 424),
            (Kind::RateLimited { retry_after: 3600 }, 424),
            (Kind::Status(500), 502),
            (Kind::Status(503), 502),
            (Kind::MalformedJson, 424),
            (Kind::WrongTypes, 424),
            (Kind::LoseAnswer, 424),
            (Kind::Refuse, 424),
        ];
        for path in ["/auth_configs", "/connected_accounts/link"] {
            for (number, (kind, status)) in kinds.into_iter().enumerate() {
                // A toolkit of its own for each, so that no upstream rests.
                test.composio.fault(Fault { on: On::Request("POST", path), times: 10, kind });
                let reply = test.ask_for(["github", "slack", "gmail", "notion"][number % 4], &format!("s{number}"), json!({})).await;
                assert_eq!(reply.status.as_u16(), status, "{path} {kind:?}: {}", reply.text);
                assert!(!reply.text.contains(test.composio.key()));
                test.composio.clear_faults();
                assert_eq!(test.post("/tools/connections/query", json!({})).await.expect(200)["count"], 0);
                until(&format!("{path} {kind:?}: no account is left"), async || test.composio.accounts().is_empty()).await;
                // One that works in between: failures in a row would let Composio rest.
                test.yard.composio.as_ref().unwrap().sync().await.unwrap();
            }
        }
        test.connect("github", "main").await;
    }

    async fn every_fault_of_a_call_has_its_status(test: &Composed) {
        test.connect("github", "main").await;
        let runs = || test.asked().iter().filter(|asked| asked.ends_with("/tools/execute/GITHUB_CREATE_AN_ISSUE")).count();
        for (kind, status, tries) in [
            (Kind::Status(400), 424, 1),
            (Kind::Status(403), 424, 1),
            (Kind::Status(404), 424, 1),
            (Kind::Status(410), 424, 1),
            (Kind::Status(429), 424, 1),
            (Kind::RateLimited { retry_after: 1 }, 200, 2),
            (Kind::RateLimited { retry_after: 3600 }, 424, 1),
            (Kind::Status(500), 502, 1),
            (Kind::Status(503), 502, 1),
            (Kind::MalformedJson, 424, 1),
            (Kind::TooManyValues, 424, 1),
            (Kind::WrongTypes, 424, 1),
            (Kind::LoseAnswer, 424, 1),
        ] {
            test.composio.forget_requests();
            test.composio.fault(Fault { on: On::Path("/tools/execute/"), times: 1, kind });
            let reply = test.call(ISSUE, issue()).await;
            assert_eq!((reply.status.as_u16(), runs()), (status, tries), "{kind:?}: {}", reply.text);
            test.composio.clear_faults();
            test.call(ISSUE, issue()).await.expect(200);
        }
        let recorded = test.get("/tools/calls?limit=100").await.expect(200);
        assert_eq!(recorded["count"], 26);
    }

    async fn an_answer_of_too_many_values_is_a_failure_in_words(test: &Composed) {
        test.connect("github", "main").await;
        test.composio.fault(Fault { on: On::Path("/tools/execute/"), times: 1, kind: Kind::TooManyValues });
        let told = test.call(ISSUE, issue()).await.detail(424);
        assert!(told.contains("too many values") && told.contains("Check whether the call took effect"), "{told}");
        test.call(ISSUE, issue()).await.expect(200);
    }

    async fn a_broken_account_is_marked(test: &Composed) {
        let connection = test.connect("github", "main").await;
        let account = test.composio.accounts()[0]["id"].as_str().unwrap().to_owned();
        test.composio.fail(&account);
        test.call(ISSUE, issue()).await.expect(400);
        let marked = test.get(&format!("/tools/connections/{}", connection["id"].as_str().unwrap())).await.expect(200)["connection"].take();
        assert_eq!(marked["flags"]["is_valid"], false, "{marked:#}");
    }

    async fn an_upstream_that_keeps_failing_is_left_alone(test: &Composed) {
        test.connect("github", "main").await;
        test.connect("slack", "main").await;
        test.composio.fault(Fault { on: On::Path("/tools/execute/GITHUB"), times: 1000, kind: Kind::Status(500) });
        for _ in 0..5 {
            test.call(ISSUE, issue()).await.expect(502);
        }
        test.composio.forget_requests();
        let started = Instant::now();
        let resting = test.call(ISSUE, issue()).await.detail(424);
        assert!(resting.contains("nothing was sent"), "{resting}");
        assert!(started.elapsed() < Duration::from_secs(2) && test.asked().is_empty());
        let other = test.call("tools.composio.slack.FIND_CHANNELS.main", json!({"query": "general"})).await;
        assert_eq!(other.status.as_u16(), 200, "another toolkit is another upstream: {}", other.text);
        test.composio.clear_faults();
        until("it is tried again", async || test.call(ISSUE, issue()).await.status == 200).await;
    }

    async fn deleting_works_when_composio_is_away(test: &Composed) {
        let connection = test.connect("github", "main").await;
        test.composio.fault(Fault { on: On::Path("/"), times: 1000, kind: Kind::Refuse });
        test.delete(&format!("/tools/connections/{}", connection["id"].as_str().unwrap())).await.expect(204);
        test.composio.clear_faults();
        assert_eq!(test.post("/tools/connections/query", json!({})).await.expect(200)["count"], 0);
        test.clock.advance(Duration::from_mins(20));
        until("what was left is found", async || {
            let _ = test.yard.tidy_composio().await;
            test.composio.accounts().is_empty()
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_tool_ends_before_the_request_does() {
    let composio = std::sync::Arc::new(composio_fake::Fake::start().await);
    let test = Composed::quiet(Database::Sqlite, composio, |config| config.request_timeout = Duration::from_secs(4)).await;
    test.yard.start_composio();
    test.connect("github", "main").await;
    test.composio.fault(Fault { on: On::Path("/tools/execute/"), times: 1, kind: Kind::Delay(Duration::from_secs(20)) });
    let started = Instant::now();
    let detail = test.call(ISSUE, issue()).await.detail(424);
    assert!(detail.contains("within") && started.elapsed() < Duration::from_secs(4), "{detail}");
}

/// Everything that the adapter sends fits Composio's public document. What came with v3.1 is not in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a copy of Composio's document, which COMPOSIO_OPENAPI names"]
async fn requests_fit_the_public_document() {
    let document = std::env::var_os("COMPOSIO_OPENAPI").expect("COMPOSIO_OPENAPI names no file");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(document).unwrap()).unwrap();
    let test = Composed::start(Database::Sqlite).await;
    let connection = test.connect("github", "main").await;
    test.ask_for("telegram", "bot", json!({})).await.expect(200);
    test.call(ISSUE, issue()).await.expect(200);
    test.post("/tools/discover", json!({"use_cases": ["create an issue"], "provider": "composio"})).await.expect(200);
    let data = json!({"event_key": "GITHUB_COMMIT_EVENT", "trigger_config": {"owner": "o", "repo": "r"}});
    let made =
        test.post("/triggers/subscriptions/", json!({"subscription": {"connection_id": connection["id"], "data": data}})).await.expect(200);
    test.delete(&format!("/triggers/subscriptions/{}", made["subscription"]["id"].as_str().unwrap())).await.expect(204);
    test.delete(&format!("/tools/connections/{}", connection["id"].as_str().unwrap())).await.expect(204);
    until("the account is gone", async || test.composio.accounts().len() == 1).await;
    test.yard.tidy_composio().await.unwrap();

    let mut checked = std::collections::BTreeSet::new();
    for request in test.composio.requests() {
        let Some((path, operation)) = operation(&document, &request.method, &request.path) else {
            assert!(request.path.starts_with("/webhook_subscriptions"), "not in the document: {} {}", request.method, request.path);
            continue;
        };
        let known: Vec<&str> =
            operation["parameters"].as_array().into_iter().flatten().filter_map(|given| given["name"].as_str()).collect();
        for (name, _) in &request.query {
            assert!(
                known.contains(&name.as_str()) || name == "user_ids",
                "{} {path}: `{name}` is no parameter of {known:?}",
                request.method
            );
        }
        if let Some(body) = &request.body {
            let mut body = body.clone();
            // Since v3.1.
            body.as_object_mut().map(|body| body.remove("alias"));
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let whole = json!({"allOf": [schema], "components": document["components"]});
            let problems = kernel::schema::check(&whole, &body);
            assert!(problems.is_ok(), "{} {path}: {problems:?}\n{body:#}", request.method);
        }
        checked.insert(format!("{} {path}", request.method));
    }
    assert!(checked.len() >= 12, "{checked:#?}");
}

/// The operation of the document that a request is for.
fn operation<'a>(document: &'a Value, method: &str, path: &str) -> Option<(&'a str, &'a Value)> {
    let given: Vec<&str> = path.split('/').collect();
    let fits = |template: &str| {
        let parts: Vec<&str> = template.trim_start_matches("/api/v3").split('/').collect();
        parts.len() == given.len() && parts.iter().zip(&given).all(|(part, given)| part.starts_with('{') || part == given)
    };
    let mut fitting: Vec<_> = document["paths"].as_object().unwrap().iter().filter(|(template, _)| fits(template)).collect();
    fitting.sort_by_key(|(template, _)| template.matches('{').count());
    fitting.into_iter().find_map(|(template, item)| Some((template.as_str(), item.get(method.to_lowercase())?)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_tools_are_mirrored_and_found() {
    let composio = std::sync::Arc::new(composio_fake::Fake::start().await);
    composio.add_toolkits(150, 20);
    let test = Composed::quiet(Database::Sqlite, composio, |_| {}).await;
    let status = test.yard.composio.as_ref().unwrap().sync().await.unwrap();
    assert!(status.tools >= 3000, "{status:?}");
    let page = test.get("/tools/catalog/providers/composio/integrations?limit=1000").await.expect(200);
    assert_eq!(page["total"], status.toolkits);
}
