//! `POST /workflows/invoke` and `GET /workflows/runs`.

use std::time::{Duration, Instant};

use axum::body::Body;
use hmac::{Hmac, KeyInit, Mac};
use http::Request;
use kernel::Role;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::support::{Database, Fake, Reply, Test, on_both};

async fn workflow(test: &Test, slug: &str, data: Value) -> Value {
    test.post("/simple/workflows/", json!({"workflow": {"slug": slug, "data": data}})).await.expect(200)["workflow"].take()
}

fn body(slug: &str, inputs: &Value) -> Value {
    json!({"references": {"workflow": {"slug": slug}}, "data": {"inputs": inputs}})
}

async fn run(test: &Test, slug: &str, inputs: Value) -> Reply {
    test.post("/workflows/invoke", body(slug, &inputs)).await
}

async fn run_with(test: &Test, headers: &[(&str, &str)], body: Value) -> Reply {
    let mut request = Request::post("/workflows/invoke").header("authorization", format!("ApiKey {}", test.owner));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    test.send(request.header("content-type", "application/json").body(Body::from(body.to_string())).unwrap()).await
}

async fn last_run(test: &Test) -> Value {
    test.get("/workflows/runs?limit=1").await.expect(200)["runs"][0].take()
}

on_both! {
    async fn an_echo_is_answered_and_recorded(test: &Test) {
        let made = workflow(test, "say", json!({"kind": "echo"})).await;
        let reply = run_with(test, &[("x-ag-session-id", "s:1"), ("accept", "application/json")], body("say", &json!({"a": [1]}))).await;
        assert_eq!((reply.headers["x-ag-version"].as_bytes(), reply.headers["x-ag-session-id"].as_bytes()), (&b"2025.07.14"[..], &b"s:1"[..]));
        let answer = reply.expect(200);
        assert_eq!(answer["version"], "2025.07.14");
        assert_eq!(answer["status"], json!({"code": 200, "message": "Success"}));
        assert_eq!((&answer["data"]["outputs"], &answer["session_id"]), (&json!({"a": [1]}), &json!("s:1")));
        assert_eq!(answer["references"]["workflow_revision"]["id"], made["revision_id"]);
        let record = test.get(&format!("/workflows/runs/{}", answer["meta"]["run_id"].as_str().unwrap())).await.expect(200)["run"].take();
        assert_eq!((&record["workflow_id"], &record["workflow_revision_id"]), (&made["id"], &made["revision_id"]));
        assert_eq!((&record["inputs"], &record["outputs"], &record["status"]["code"]), (&json!({"a": [1]}), &json!({"a": [1]}), &json!(200)));
        assert!(record["duration_ms"].is_number());

        let bare = test.post("/workflows/invoke", json!({"references": {"workflow": {"id": made["id"]}}})).await.expect(200);
        assert_eq!((&bare["data"]["outputs"], bare.get("session_id")), (&json!({}), None));
        let other = workflow(test, "other", json!({"uri": "agenta:builtin:echo:v0"})).await;
        run(test, "other", json!({})).await.expect(200);
        let listed = test.get("/workflows/runs?limit=2").await.expect(200);
        assert_eq!((&listed["count"], &listed["runs"][0]["workflow_id"]), (&json!(2), &other["id"]));
        let rest = test.get(&format!("/workflows/runs?limit=2&cursor={}", listed["cursor"].as_str().unwrap())).await.expect(200);
        assert_eq!((&rest["count"], rest.get("cursor")), (&json!(1), None));
        let of_one = test.get(&format!("/workflows/runs?workflow_id={}", made["id"].as_str().unwrap())).await.expect(200);
        assert_eq!(of_one["count"], 2);
        test.get("/workflows/runs?cursor=x").await.expect(422);
        let told = test.get("/workflows/runs?state=succeded").await.detail(422);
        assert!(told.contains("Did you mean `succeeded`?"), "{told}");

        workflow(test, "fails", json!({"kind": "echo", "schemas": {"inputs": {"type": "object", "required": ["a"]}}})).await;
        run(test, "fails", json!({})).await;
        let states = async |filter: &str| {
            let runs = test.get(&format!("/workflows/runs?{filter}")).await.expect(200)["runs"].take();
            runs.as_array().unwrap().iter().map(|run| run["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(states("").await, ["failed", "succeeded", "succeeded", "succeeded"]);
        assert_eq!((states("state=failed").await.len(), states("state=cancelled").await.len()), (1, 0));
        assert_eq!(states(&format!("state=failed&workflow_id={}", made["id"].as_str().unwrap())).await.len(), 0);
        assert_eq!(states("state=succeeded&limit=2").await.len(), 2);
        test.clock.advance(std::time::Duration::from_mins(90));
        run(test, "say", json!({})).await.expect(200);
        test.clock.advance(std::time::Duration::from_mins(1));
        let stats = test.get("/workflows/runs/stats?since=2h&buckets=2").await.expect(200);
        assert_eq!((&stats["runs"], &stats["states"]), (&json!(5), &json!({"succeeded": 4, "failed": 1, "waiting": 0, "cancelled": 0})), "{stats}");
        let counts: Vec<_> = stats["buckets"].as_array().unwrap().iter().map(|part| (part["runs"].clone(), part["failed"].clone())).collect();
        assert_eq!(counts, [(json!(4), json!(1)), (json!(1), json!(0))]);
        test.get("/workflows/runs/stats?buckets=0").await.expect(422);
        let stranger = test.key("elsewhere", kernel::Role::Owner, None).await;
        assert_eq!(test.get_as(&stranger, "/workflows/runs/stats").await.expect(200)["runs"], 0);
        test.get(&format!("/workflows/runs/{}", uuid::Uuid::now_v7())).await.expect(404);
    }

    async fn what_does_not_fit_is_refused(test: &Test) {
        workflow(test, "say", json!({"kind": "echo"})).await;
        let named = json!({"workflow": {"slug": "say"}});
        for (request, status, words) in [
            (json!({}), 400, "Name the workflow"),
            (json!({"references": {"workflow": {"slug": "say"}, "application": {"slug": "say"}}}), 400, "not several"),
            (json!({"references": {"workflow": {"slug": "nobody"}}}), 404, "Workflow `nobody` not found"),
            (json!({"references": named, "data": {"inputs": [1]}}), 422, "inputs"),
            (json!({"references": named, "data": {"inputs": "{}"}}), 422, "inputs"),
            (json!({"references": named, "session_id": "a b"}), 422, "session_id"),
            (json!({"references": named, "session_id": ""}), 422, "session_id"),
            (json!({"references": named, "selector": {"path": "x"}}), 400, "selector.path"),
            (json!({"references": named, "data": {"parameters": {}}}), 400, "data.parameters"),
            (json!({"references": named, "flags": {"stream": true}}), 406, "application/json"),
        ] {
            let detail = test.post("/workflows/invoke", request.clone()).await.detail(status);
            assert!(detail.contains(words), "{request}: {detail}");
        }
        run_with(test, &[("accept", "text/event-stream")], json!({"references": named})).await.expect(406);
        run_with(test, &[("accept", "text/event-stream, application/json")], json!({"references": named})).await.expect(200);
        run_with(test, &[("idempotency-key", &"x".repeat(256))], json!({"references": named})).await.expect(400);
        let runner = test.key("default", Role::Annotator, None).await;
        test.post_as(&runner, "/workflows/invoke", json!({"references": named, "data": {"inputs": {"a": 1}}})).await.expect(200);
        let inline = json!({"references": named, "data": {"revision": {"data": {"kind": "echo", "schemas": {"inputs": {"required": ["x"]}}}}}});
        let detail = test.post_as(&runner, "/workflows/invoke", inline.clone()).await.detail(403);
        assert!(detail.contains("may edit workflows"), "{detail}");
        let tried = test.post("/workflows/invoke", inline).await.expect(400);
        assert!(tried["status"]["message"].as_str().unwrap().contains("\"x\" is a required property"), "{tried}");
    }

    async fn inputs_are_checked_and_nothing_to_run_is_said(test: &Test) {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
        workflow(test, "strict", json!({"kind": "echo", "schemas": {"inputs": schema}})).await;
        for inputs in [json!({}), json!({"n": "1"}), json!({"n": 1, "m": 2})] {
            let answer = run(test, "strict", inputs.clone()).await.expect(400);
            assert!(answer["status"]["message"].as_str().unwrap().starts_with("Invalid inputs: "), "{inputs}: {answer}");
        }
        assert_eq!(run(test, "strict", json!({"n": 1})).await.expect(200)["data"]["outputs"], json!({"n": 1}));
        test.post("/simple/workflows/", json!({"workflow": {"slug": "empty"}})).await.expect(200);
        let answer = run(test, "empty", json!({})).await.expect(400);
        assert_eq!(answer["status"], json!({"code": 400, "message": "Revision 0 of 'empty' has no data, so there is nothing to run."}));
        workflow(test, "vague", json!({"parameters": {}})).await;
        let answer = run(test, "vague", json!({})).await.expect(400);
        assert_eq!(answer["status"]["message"], "Workflow revision has no runnable service URL.");
        assert_eq!(last_run(test).await["status"]["code"], 400);
    }

    async fn a_service_gets_a_signed_post(test: &Test) {
        let fake = Fake::start().await;
        workflow(test, "hook", json!({"kind": "http", "url": format!("{}/echo/hook", fake.url), "headers": {"x-mine": "1", "x-toolyard-run-id": "no"}, "parameters": {"p": 1}})).await;
        let answer = run_with(test, &[("idempotency-key", "k-1")], body("hook", &json!({"q": "ü"}))).await.expect(200);
        let seen = fake.seen().pop().unwrap();
        assert_eq!((&seen["method"], &seen["path"]), (&json!("POST"), &json!("/echo/hook")));
        let (headers, sent) = (&seen["headers"], &seen["body"]);
        assert_eq!((&headers["x-mine"], &headers["idempotency-key"], &headers["x-toolyard-run-id"]), (&json!("1"), &json!("k-1"), &answer["meta"]["run_id"]));
        assert!(headers.get("authorization").is_none(), "a key of the project is not for an address of the author's");
        assert_eq!((&sent["data"]["inputs"], &sent["data"]["parameters"], &sent["meta"]["run_id"]), (&json!({"q": "ü"}), &json!({"p": 1}), &answer["meta"]["run_id"]));
        assert_eq!(answer["data"]["outputs"]["path"], "/echo/hook", "an answer that is no envelope is the output");

        let secret = test.get("/workflows/signing-secret").await.expect(200)["secret"].as_str().unwrap().to_owned();
        assert!(secret.starts_with("whs_"), "{secret}");
        let signature = headers["x-toolyard-signature"].as_str().unwrap();
        let (time, given) = signature.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(format!("{time}.{sent}").as_bytes());
        let expected: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(given, expected);
        let elsewhere = test.key("elsewhere", Role::Owner, None).await;
        assert_ne!(test.get_as(&elsewhere, "/workflows/signing-secret").await.expect(200)["secret"], secret.as_str());
        let viewer = test.key("default", Role::Annotator, None).await;
        test.get_as(&viewer, "/workflows/signing-secret").await.expect(403);

        workflow(test, "service", json!({"url": format!("{}/echo/agent/v0/", fake.url)})).await;
        run(test, "service", json!({})).await.expect(200);
        assert_eq!(fake.seen().pop().unwrap()["path"], "/echo/agent/v0/invoke");
        let inline = json!({"references": {"workflow": {"slug": "service"}}, "data": {"revision": {"data": {"kind": "http", "url": format!("{}/echo/draft", fake.url)}}, "parameters": {"p": 2}}});
        test.post("/workflows/invoke", inline).await.expect(200);
        let draft = fake.seen().pop().unwrap();
        assert_eq!((&draft["path"], &draft["body"]["data"]["parameters"]), (&json!("/echo/draft"), &json!({"p": 2})));
    }

    async fn a_service_that_fails_is_not_our_failure(test: &Test) {
        let fake = Fake::start().await;
        for (code, status) in [(500, 502), (503, 503), (404, 404), (422, 422), (401, 424), (429, 424), (301, 424), (204, 200)] {
            let slug = format!("s-{code}");
            workflow(test, &slug, json!({"kind": "http", "url": format!("{}/status/{code}", fake.url)})).await;
            let answer = run(test, &slug, json!({})).await.expect(status);
            assert_eq!(last_run(test).await["status"]["code"], answer["status"]["code"], "{code}");
            assert_eq!(answer["meta"]["run_id"], last_run(test).await["id"], "{code}");
        }
        workflow(test, "gone", json!({"kind": "http", "url": "http://127.0.0.1:1/"})).await;
        let answer = run(test, "gone", json!({})).await.expect(424);
        assert!(answer["status"]["message"].as_str().unwrap().contains("could not be reached"), "{answer}");
        workflow(test, "inside", json!({"kind": "http", "url": "http://169.254.169.254/latest"})).await;
        run(test, "inside", json!({})).await.expect(424);
        workflow(test, "nameless", json!({"kind": "http", "url": "https://agents.internal.invalid/run"})).await;
        for slug in ["gone", "inside", "nameless"] {
            let answer = run(test, slug, json!({})).await.expect(424);
            for said in [&answer["status"], &last_run(test).await["status"]] {
                let words = said["message"].as_str().unwrap();
                assert!(words.contains("could not be reached"), "{words}");
                assert!(!["127.0.0.1", "169.254", "internal"].iter().any(|host| words.contains(host)), "{words}");
            }
        }
        workflow(test, "slow", json!({"kind": "http", "url": format!("{}/slow", fake.url), "timeout_ms": 150})).await;
        let started = Instant::now();
        assert_eq!(run(test, "slow", json!({"ms": 20_000})).await.expect(504)["status"]["code"], 504);
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    }

    async fn what_cannot_be_read_whole_is_no_success(test: &Test) {
        let fake = Fake::start().await;
        workflow(test, "large", json!({"kind": "http", "url": format!("{}/status/297", fake.url)})).await;
        let answer = run(test, "large", json!({})).await.expect(424);
        assert!(answer["status"]["message"].as_str().unwrap().contains("more than can be read"), "{answer}");
    }

    async fn what_is_nested_too_deep_is_never_stored(test: &Test) {
        let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        workflow(test, "say", json!({"kind": "echo"})).await;
        workflow(test, "wrap", json!({"steps": [{"name": "a", "call": "workflow.variant.say", "arguments": {"x": "{{ inputs.x }}"}}],
            "result": [[[["{{ steps.a.result }}"]]]]})).await;
        run(test, "say", json!({"x": nested(99)})).await.expect(200);
        run(test, "say", json!({"x": nested(100)})).await.expect(424);
        run(test, "wrap", json!({"x": nested(95)})).await.expect(200);
        run(test, "wrap", json!({"x": nested(96)})).await.expect(424);
        run(test, "wrap", json!({"x": nested(110)})).await.expect(400);
        let text = format!("{{\"x\": {}}}", nested(110));
        test.call("workflow.variant.say", json!(text)).await.expect(400);
        test.call("workflow.variant.say", json!({"x": nested(99)})).await.expect(200);
        assert_eq!(test.get("/workflows/runs").await.expect(200)["runs"].as_array().unwrap().len(), 8);
    }

    async fn what_is_missing_at_a_run_is_an_error_in_words(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let step = |more: Value| {
            let mut step = json!({"name": "orders", "call": "tools.native.fake.GET_A_THING.main", "arguments": {"owner": "o", "path": "p"}});
            step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"steps": [step]})
        };
        let before = fake.seen().len();
        for (slug, data) in [
            ("argument", step(json!({"arguments": {"owner": "o", "path": "p", "kind": "{{ inputs.custmer }}"}}))),
            ("condition", step(json!({"when": "inputs.custmer"}))),
        ] {
            workflow(test, slug, data).await;
            let answer = run(test, slug, json!({"customer": "c"})).await.expect(400);
            let words = answer["status"]["message"].as_str().unwrap();
            assert!(words.contains("`inputs.custmer` is missing") && words.contains("Did you mean `customer`?"), "{words}");
        }
        assert_eq!(fake.seen().len(), before, "nothing was fetched");
        workflow(test, "result", json!({"steps": step(json!({}))["steps"], "result": "{{ steps.orders.result.nope }}"})).await;
        let answer = run(test, "result", json!({})).await.expect(400);
        assert!(answer["status"]["message"].as_str().unwrap().contains("`steps.orders.result.nope` is missing"), "{answer}");
        workflow(test, "said", step(json!({"arguments": {"owner": "o", "path": "p", "kind": "{{ inputs.kind | default(omit) }}"}}))).await;
        run(test, "said", json!({})).await.expect(200);
    }

    async fn the_failure_of_a_step_keeps_its_code(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let fail = |code: u16| json!({"steps": [{"name": "ask", "call": "tools.native.fake.FAIL_A_THING.main", "arguments": {"code": code}}]});
        let made = workflow(test, "arguments", json!({"steps": [{"name": "ask", "call": "tools.native.fake.FAIL_A_THING.main", "arguments": {"code": "x"}}]})).await;
        run(test, "arguments", json!({})).await.expect(400);
        let unknown = json!({"steps": [{"name": "ask", "call": "tools.native.fake.NOPE.main"}]});
        let body = json!({"references": {"workflow": {"id": made["id"]}}, "data": {"revision": {"data": unknown}}});
        test.post("/workflows/invoke", body).await.expect(404);
        for (code, expected) in [(404, 404), (422, 422), (409, 409), (503, 502), (403, 424), (429, 424), (401, 424)] {
            workflow(test, &format!("s-{code}"), fail(code)).await;
            workflow(test, &format!("o-{code}"), json!({"steps": [{"name": "inner", "call": format!("workflow.variant.s-{code}")}]})).await;
            for slug in ["s", "o"] {
                let answer = run(test, &format!("{slug}-{code}"), json!({})).await.expect(expected);
                assert_eq!((&answer["status"]["code"], &last_run(test).await["status"]["code"]), (&json!(expected), &json!(expected)), "{code}");
                assert!(answer["status"]["message"].as_str().unwrap().starts_with("step `"), "{answer}");
            }
        }
    }

    async fn a_run_shows_what_its_steps_did(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let call = |name: &str| format!("tools.native.fake.{name}.main");
        workflow(test, "many", json!({"steps": [
            {"name": "made", "call": call("MAKE_A_THING"), "arguments": {"title": "{{ inputs.title }}"}},
            {"name": "left", "call": call("MAKE_A_THING"), "when": "inputs.title == 'other'"},
            {"name": "broke", "call": call("FAIL_A_THING"), "arguments": {"code": 404}, "on_error": "continue"},
            {"name": "large", "call": call("MAKE_A_THING"), "arguments": {"title": "{{ inputs.large }}"}, "on_error": "continue"},
            {"name": "last", "call": call("FAIL_A_THING"), "arguments": {"code": 422}},
            {"name": "never", "call": call("FAIL_A_THING"), "arguments": {"code": 200}},
        ]})).await;
        let answer = run(test, "many", json!({"title": "secret title", "large": "x".repeat(40_000)})).await.expect(422);
        let path = format!("/workflows/runs/{}", answer["meta"]["run_id"].as_str().unwrap());
        let steps = test.get(&path).await.expect(200)["run"]["steps"].take();
        let states: Vec<(&str, &str)> = steps.as_array().unwrap().iter().map(|step| (step["name"].as_str().unwrap(), step["state"].as_str().unwrap())).collect();
        assert_eq!(states, [("made", "done"), ("left", "skipped"), ("broke", "failed"), ("large", "done"), ("last", "failed")]);
        assert_eq!((&steps[0]["call"], &steps[0]["arguments"]), (&json!(call("MAKE_A_THING")), &json!({"title": "secret title"})));
        assert_eq!(steps[0]["result"]["body"]["title"], "secret title");
        assert!(steps[0]["duration_ms"].as_f64().unwrap() > 0.0 && steps[0]["started_at"].is_string() && steps[0].get("note").is_none());
        assert_eq!((steps[1].get("arguments"), &steps[2]["status"]["code"], &steps[4]["status"]["code"]), (None, &json!(404), &json!(422)));
        assert!(steps[4]["status"]["message"].as_str().unwrap().contains("422"), "{steps}");
        assert!(steps[3]["note"].as_str().unwrap().starts_with("`arguments` is cut: the first 16384 of 40"), "{}", steps[3]["note"]);
        assert!(steps[3]["arguments"].as_str().unwrap().starts_with("{\"title\":\"xxx"));
        assert!(last_run(test).await.get("steps").is_none(), "a list is without steps");
        let elsewhere = test.key("elsewhere", Role::Owner, None).await;
        test.get_as(&elsewhere, &path).await.expect(404);

        let row = test.yard.db.optional("select steps from workflow_runs", store::args![]).await.unwrap().unwrap();
        assert!(!String::from_utf8_lossy(&row.get::<Vec<u8>>("steps").unwrap()).contains("secret title"), "sealed at rest");
        let ring = toolyard::vault::key_ring(&test.yard.config).unwrap().with_new_key();
        assert_eq!(workflows::reseal(&test.yard.db, &kernel::seal::Sealer::new(ring.clone())).await.unwrap(), 1);
        assert_eq!(workflows::reseal(&test.yard.db, &kernel::seal::Sealer::new(ring.current_only())).await.unwrap(), 0);
        assert_ne!(test.yard.db.optional("select steps from workflow_runs", store::args![]).await.unwrap().unwrap().get::<Vec<u8>>("steps").unwrap(), row.get::<Vec<u8>>("steps").unwrap());
    }

    async fn a_run_that_is_cut_off_shows_the_step_it_was_at(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        workflow(test, "slow", json!({"timeout_ms": 200, "steps": [{"name": "wait", "call": "tools.native.fake.SLOWLY.main", "arguments": {"ms": 20_000}}]})).await;
        let answer = run(test, "slow", json!({})).await.expect(504);
        let path = format!("/workflows/runs/{}", answer["meta"]["run_id"].as_str().unwrap());
        let step = test.get(&path).await.expect(200)["run"]["steps"][0].take();
        assert_eq!((&step["state"], &step["arguments"]), (&json!("unfinished"), &json!({"ms": 20_000})));
        assert!(step["duration_ms"].as_f64().unwrap() >= 100.0, "{step}");
    }

    async fn steps_have_keys_of_their_own(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        workflow(test, "make", json!({"steps": [{"name": "a_step_with_a_name", "call": "tools.native.fake.MAKE_A_THING.main", "arguments": {"title": "x"}}]})).await;
        let before = fake.seen().len();
        let key = "k".repeat(250);
        for _ in 0..2 {
            run_with(test, &[("idempotency-key", &key)], body("make", &json!({}))).await.expect(200);
        }
        assert_eq!(fake.seen().len(), before + 1);
    }

    async fn a_caller_that_goes_away_cancels_the_run(test: &Test) {
        let fake = Fake::start().await;
        let made = workflow(test, "slow", json!({"kind": "http", "url": format!("{}/slow", fake.url)})).await;
        let call = run(test, "slow", json!({"ms": 20_000}));
        assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if test.get("/workflows/runs").await.expect(200)["count"] == 1 {
                break;
            }
        }
        let record = last_run(test).await;
        assert_eq!(record["status"], json!({"code": 499, "message": "The caller went away."}));
        assert_eq!((&record["workflow_id"], &record["inputs"]), (&made["id"], &json!({"ms": 20_000})));
    }
}

#[tokio::test]
async fn a_run_that_outlives_the_request_is_still_answered_as_a_run() {
    let fake = Fake::start().await;
    let test = Test::with(Database::Sqlite, |config| config.request_timeout = Duration::from_millis(800)).await;
    workflow(&test, "slow", json!({"kind": "http", "url": format!("{}/slow", fake.url)})).await;
    let answer = run(&test, "slow", json!({"ms": 20_000})).await.expect(504);
    assert_eq!(answer["status"]["code"], 504);
    assert_eq!(last_run(&test).await["id"], answer["meta"]["run_id"]);
}

#[tokio::test]
async fn a_workflow_called_as_a_tool_has_the_same_time() {
    let fake = Fake::start().await;
    let test = Test::with(Database::Sqlite, |config| config.request_timeout = Duration::from_millis(800)).await;
    let made = workflow(&test, "slow", json!({"kind": "http", "url": format!("{}/slow", fake.url)})).await;
    let answer = test.call("workflow.variant.slow", json!({"ms": 20_000})).await.expect(200);
    assert_eq!(answer["call"]["status"]["code"], "STATUS_CODE_ERROR", "{answer}");
    let inputs = json!({"messages": [{"role": "user", "content": "x"}], "ms": 20_000});
    let tried = test
        .call("tools.agenta.test_run", json!({"target": {"workflow_variant_id": made["variant_id"]}, "inputs": inputs}))
        .await
        .expect(200);
    assert_eq!(tried["call"]["status"]["code"], "STATUS_CODE_ERROR", "{tried}");
}
