//! `POST /tools/call` and `GET /tools/calls`.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use crate::reserved::workflow;
use crate::support::{Database, Fake, Reply, Test, call_body, on_both};
use crate::triggers::settled;

async fn call_with_key(test: &Test, key: &str, name: &str, arguments: Value) -> Reply {
    let request = Request::post("/tools/call").header("authorization", format!("ApiKey {}", test.owner)).header("idempotency-key", key);
    test.send(request.header("content-type", "application/json").body(Body::from(call_body(name, &arguments).to_string())).unwrap()).await
}

on_both! {
    async fn the_record_says_who_did_it(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let configs = json!([{"type": "reference", "slug": "flow"}, {"type": "platform", "op": "find_capabilities"}]);
        let steps = json!({"steps": [{"name": "make", "call": "tools.native.fake.MAKE_A_THING.main", "arguments": {"title": "x"}}]});
        workflow(test, "flow", steps).await;
        let agent = test.post("/agents", json!({"name": "a", "agent_type": "x", "tool_configs": configs})).await.expect(200);
        let agent_id = agent["public_id"].clone();

        // One name, however it is called.
        for name in ["workflow.variant.flow", "workflow__variant__flow", "workflow.variant.flow.1"] {
            test.call(name, json!({})).await.expect(200);
        }
        test.post("/agents/1/call", call_body("flow", &json!({}))).await.expect(200);
        test.post("/agents/1/call", call_body("find_capabilities", &json!({"use_cases": ["make a fake thing"]}))).await.expect(200);
        let rows = |query: &str| {
            let path = format!("/tools/calls?limit=100{query}");
            async move { test.get(&path).await.expect(200)["calls"].as_array().unwrap().clone() }
        };
        let flows = rows("&tool=workflow.variant.flow.1").await;
        assert_eq!((flows.len(), rows("&tool=workflow__variant__flow").await.len(), rows("&tool=workflow.*").await.len()), (4, 4, 4));
        assert!(flows.iter().all(|row| row["tool"] == "workflow.variant.flow" && row["key_name"].is_string()), "{flows:?}");
        let op = rows("&tool=tools.agenta.discover_tools").await;
        assert_eq!((&op[0]["agent_id"], &op[0]["call_ref"]), (&agent_id, &json!("tools.agenta.discover_tools")));

        // The steps say which run and step they are, and whose.
        let made = rows("&tool=tools.native.fake.*").await;
        assert_eq!((made.len(), rows("&agent_id=1").await.len(), rows(&format!("&agent_id={}", agent_id.as_str().unwrap())).await.len()), (4, 3, 3));
        assert!(made.iter().all(|row| row["step"] == "make" && row["run_id"].is_string()), "{made:?}");
        assert_eq!(made.iter().filter(|row| row["agent_id"] == agent_id).count(), 1);
        let run = test.get(&format!("/workflows/runs/{}", made[0]["run_id"].as_str().unwrap())).await.expect(200);
        assert_eq!(run["run"]["id"], made[0]["run_id"]);
        let hook = json!({"name": "h", "data": {"event_key": "WEBHOOK_RECEIVED", "references": {"workflow": {"slug": "flow"}}}});
        let hook = test.post("/triggers/subscriptions/", json!({"subscription": hook})).await.expect(200)["subscription"].take();
        let path = hook["url"].as_str().unwrap().split_once("/triggers/").unwrap().1.to_owned();
        test.post(&format!("/triggers/{path}"), json!({"n": 1})).await.expect(202);
        let done = settled(test, json!({"subscription_id": hook["id"]}), 1).await;
        assert_eq!(rows("&tool=tools.native.fake.*").await[0]["delivery_id"], done[0]["id"]);

        // By time, as people say it.
        test.clock.advance(std::time::Duration::from_hours(48));
        test.call("workflow.variant.flow", json!({})).await.expect(200);
        assert_eq!((rows("&since=yesterday").await.len(), rows("&since=2h&outcome=ok").await.len(), rows("&since=3d&tool=workflow.*").await.len()), (2, 2, 5));
        for (query, part) in [
            ("since=soon", "not a time"),
            ("tool=hacker-news", "did you mean `*.hacker-news.*`?"),
            ("outcome=fail", "Did you mean `failed`?"),
            ("tol=x", "Did you mean `tool`?"),
        ] {
            let refused = test.get(&format!("/tools/calls?{query}")).await.expect(422).to_string();
            assert!(refused.contains(part), "{query}: {refused}");
        }
        test.get("/tools/calls?agent_id=99").await.expect(404);
        let metrics = test.send(Request::get("/metrics").body(Body::empty()).unwrap()).await;
        assert!(metrics.text.contains("toolyard_tool_calls_total{outcome=\"ok\"} 12\n"), "{}", metrics.text);
        assert!(metrics.text.contains("toolyard_tool_calls_total{outcome=\"failed\"} 0"), "{}", metrics.text);
    }

    async fn every_kind_of_request_is_built_as_the_manifest_says(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let get = json!({"owner": "a b/c", "path": "src/ü.rs", "kind": "bug", "tags": ["x", "y"], "ids": [1, 2], "parts": ["p"], "filter": {"a": {"b": 1}}, "trace": "t-1"});
        let seen = Test::content(test.call("tools.native.fake.GET_A_THING.main", get).await)["data"].clone();
        assert_eq!(seen["path"], "/echo/a%20b%2Fc/files/src/%C3%BC.rs");
        assert_eq!(seen["query"], "fixed=1&flag=true&label=kind%3Abug&tags=x&tags=y&ids=1%2C2&part%5B%5D=p&filter%5Ba%5D%5Bb%5D=1&size=10&sig=…");
        assert_eq!((&seen["headers"]["x-trace"], &seen["headers"]["x-always"], &seen["headers"]["x-team"]), (&json!("t-1"), &json!("yes"), &json!("red")));
        assert!(seen["headers"].get("content-type").is_none());

        let bare = Test::content(test.call("tools.native.fake.GET_A_THING.main", json!({"owner": "a", "path": "b"})).await)["data"].clone();
        assert_eq!(bare["query"], "fixed=1&flag=true&size=10&sig=…");

        let make = json!({"title": "T", "note": null, "dry": true});
        let seen = Test::content(test.call("tools.native.fake.MAKE_A_THING.main", make).await)["data"].clone();
        assert_eq!((&seen["body"], &seen["query"]), (&json!({"title": "T", "note": null}), &json!("dry=true&sig=…")));

        let shape = json!({"id": 5, "text": "hi", "to": ["a@x"]});
        let seen = Test::content(test.call("tools.native.fake.SHAPE_A_THING.main", shape).await)["data"].clone();
        assert_eq!(seen["body"], json!({"thing": {"id": 5, "text": "aGk=", "summary": "about hi"}, "to": [{"address": "a@x"}]}));

        let form = json!({"amount": 5, "meta": {"k": "v w"}, "items": [{"p": 1}, {"p": 2}], "names": ["n1", "n2"]});
        let seen = Test::content(test.call("tools.native.fake.FORM_A_THING.main", form).await)["data"].clone();
        assert_eq!(seen["body"], "amount=5&meta%5Bk%5D=v+w&items%5B0%5D%5Bp%5D=1&items%5B1%5D%5Bp%5D=2&names%5B%5D=n1&names%5B%5D=n2");

        let query = Test::content(test.call("tools.native.fake.QUERY_THINGS.main", json!({"first": 2})).await);
        assert_eq!(query["data"][0]["variables"], json!({"first": 2}));
        let refused = Test::content(test.call("tools.native.fake.QUERY_THINGS.main", json!({"first": 0})).await);
        assert_eq!((&refused["successful"], &refused["error"]), (&json!(false), &json!("first must be positive")));
    }

    async fn the_envelope_is_the_contracts(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let answer = test.call("tools__native__fake__SLOWLY__main", json!("{\"ms\": 0}")).await.expect(200);
        assert_eq!(answer["call"]["status"]["code"], "STATUS_CODE_OK");
        assert_eq!((&answer["call"]["data"]["role"], &answer["call"]["data"]["tool_call_id"]), (&json!("tool"), &json!("t1")));
        assert_eq!(answer["call"]["data"]["content"], "{\"data\":{\"waited\":0},\"error\":null,\"successful\":true}");
        let failed = test.call("tools.native.fake.FAIL_A_THING.main", json!({"code": 404})).await.expect(200);
        assert_eq!(failed["call"]["status"]["code"], "STATUS_CODE_ERROR");
        assert_eq!(failed["call"]["status"]["message"], "404: status 404 as asked");
    }

    async fn what_the_service_answers_becomes_the_right_status(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        for (code, status) in [(200, 200), (404, 200), (422, 200), (299, 200), (298, 200), (297, 200), (401, 424), (429, 424), (301, 424), (500, 502), (503, 502)] {
            let reply = test.call("tools.native.fake.FAIL_A_THING.main", json!({"code": code})).await;
            assert_eq!(reply.status.as_u16(), status, "{code}: {}", reply.text);
        }
        let hidden = Test::content(test.call("tools.native.fake.FAIL_A_THING.main", json!({"code": 299})).await);
        assert_eq!((&hidden["successful"], &hidden["error"]), (&json!(false), &json!("not_today")));
        let text = Test::content(test.call("tools.native.fake.FAIL_A_THING.main", json!({"code": 298})).await);
        assert_eq!(text["data"], "not json at all");
        let cut = Test::content(test.call("tools.native.fake.FAIL_A_THING.main", json!({"code": 297})).await);
        assert_eq!(cut["data"]["truncated"], true);
        let down = json!({"auth_scheme": "bearer", "credentials": {"base": fake.url, "token": "t-12345678"}});
        test.post("/tools/connections", crate::support::fake_connection("down", &down)).await.expect(200);
    }

    async fn malformed_calls_run_nothing(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let before = fake.seen().len();
        let make = "tools.native.fake.MAKE_A_THING.main";
        for (name, arguments, status, words) in [
            ("nonsense", json!({}), 400, "Invalid tool slug format: nonsense."),
            ("tools.native.fake.MAKE_A_THING", json!({}), 400, "Invalid tool slug format"),
            ("tools.native.fake.MAKE A THING.main", json!({}), 400, "Invalid characters in tool slug segment: 'MAKE A THING'"),
            ("tools.native.fake.MAKE_A_THING.main\n", json!({}), 400, "Invalid characters"),
            ("workflow.variant.", json!({}), 400, "Invalid workflow tool call_ref"),
            ("workflow.variant.x", json!({}), 404, "Workflow `x` not found"),
            ("tools.agenta.nope", json!({}), 404, "Unknown reserved Agenta tool handler: tools.agenta.nope"),
            ("tools.nope.fake.MAKE_A_THING.main", json!({}), 404, "Connection not found: nope/fake/main"),
            ("tools.native.fake.MAKE_A_THING.other", json!({}), 404, "Connection not found: native/fake/other"),
            ("tools.native.fake.NOPE.main", json!({}), 404, "Action not found: native/fake/NOPE"),
            (make, json!("{broken"), 400, "Invalid arguments: the string is not JSON"),
            (make, json!("[1]"), 400, "not an object"),
            (make, json!([1]), 400, "give an object"),
            (make, json!(null), 400, "give an object"),
            (make, json!({}), 400, "\"title\" is a required property"),
            (make, json!({"title": "x", "labels": ["a", 5]}), 400, "`/labels/1`"),
            (make, json!({"title": "x", "other": 1}), 400, "'other' was unexpected"),
            ("tools.native.fake.GET_A_THING.main", json!({"owner": "..", "path": "x"}), 400, "`owner` may not be empty"),
            ("tools.native.fake.GET_A_THING.main", json!({"owner": "a", "path": "x/../y"}), 400, "`path` may not be empty"),
            ("tools.native.fake.GET_A_THING.main", json!({"owner": "a", "path": "x", "trace": "a\r\nb: c"}), 400, "cannot be sent in a header"),
        ] {
            let detail = test.call(name, arguments).await.detail(status);
            assert!(detail.contains(words), "{name}: {detail}");
        }
        test.post("/tools/call", json!({"data": {"id": "x", "function": {"name": make}}})).await.expect(422);
        test.post("/tools/call", json!({"data": {"id": "x", "type": "tool", "function": {"name": make, "arguments": {}}}})).await.expect(422);
        assert_eq!(fake.seen().len(), before);
    }

    async fn an_idempotency_key_runs_a_call_once(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let make = "tools.native.fake.MAKE_A_THING.main";
        let before = fake.seen().len();
        let first = call_with_key(test, "k1", make, json!({"title": "x"})).await.expect(200);
        let again = call_with_key(test, "k1", make, json!({"title": "x"})).await.expect(200);
        assert_eq!(first, again);
        assert_eq!(fake.seen().len(), before + 1);
        call_with_key(test, "k1", make, json!({"title": "y"})).await.expect(422);
        call_with_key(test, &"x".repeat(256), make, json!({"title": "y"})).await.expect(400);
        call_with_key(test, "k2", make, json!({})).await.expect(400);
        call_with_key(test, "k2", make, json!({"title": "now right"})).await.expect(200);
        let slow = "tools.native.fake.SLOWLY.main";
        let (one, two) = tokio::join!(call_with_key(test, "k3", slow, json!({"ms": 400})), async {
            tokio::time::sleep(std::time::Duration::from_millis(150)).await;
            call_with_key(test, "k3", slow, json!({"ms": 400})).await
        });
        assert_eq!((one.status.as_u16(), two.status.as_u16()), (200, 409));
        call_with_key(test, "k4", "tools.native.fake.FAIL_A_THING.main", json!({"code": 500})).await.expect(502);
        let unknown = call_with_key(test, "k4", "tools.native.fake.FAIL_A_THING.main", json!({"code": 500})).await.expect(409);
        assert!(unknown["detail"]["message"].as_str().unwrap().contains("not known"));
        test.clock.advance(std::time::Duration::from_hours(25));
        call_with_key(test, "k1", make, json!({"title": "a day later"})).await.expect(200);
    }

    async fn every_call_leaves_a_row_without_secrets(test: &Test) {
        let fake = Fake::start().await;
        let id = test.connect_fake(&fake, "main").await["id"].clone();
        test.call("tools.native.fake.MAKE_A_THING.main", json!({"title": "top secret title"})).await.expect(200);
        test.call("tools.native.fake.FAIL_A_THING.main", json!({"code": 404})).await.expect(200);
        test.call("tools.native.fake.FAIL_A_THING.main", json!({"code": 500})).await.expect(502);
        let listed = test.get("/tools/calls").await;
        assert!(!listed.text.contains("top secret") && !listed.text.contains("sk-fake"), "{}", listed.text);
        let listed = listed.expect(200);
        let outcomes: Vec<&str> = listed["calls"].as_array().unwrap().iter().map(|call| call["outcome"].as_str().unwrap()).collect();
        assert_eq!(outcomes, ["failed", "error", "ok"]);
        assert_eq!(listed["calls"][2]["connection_id"], id);
        assert_eq!(test.get("/tools/calls?outcome=ok").await.expect(200)["count"], 1);
        test.get("/tools/calls?outcome=fine").await.expect(422);
        let first = test.get("/tools/calls?limit=2").await.expect(200);
        let rest = test.get(&format!("/tools/calls?limit=2&cursor={}", first["cursor"].as_str().unwrap())).await.expect(200);
        assert_eq!((rest["count"].as_u64(), rest.get("cursor")), (Some(1), None));
        test.get("/tools/calls?cursor=x").await.expect(422);
        test.call("nonsense", json!({})).await.expect(400);
        assert_eq!(test.get("/tools/calls?limit=1").await.expect(200)["calls"][0]["call_ref"], "nonsense");
        test.call(&"x".repeat(100_000), json!({})).await.expect(400);
        assert_eq!(test.get("/tools/calls?limit=1").await.expect(200)["calls"][0]["call_ref"].as_str().unwrap().len(), 300);
    }

    async fn one_call_shows_where_its_time_went(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let make = "tools.native.fake.MAKE_A_THING.main";
        let shown = async |row: &Value| test.get(&format!("/tools/calls/{}", row["id"].as_str().unwrap())).await.expect(200)["call"].take();
        let newest = async || test.get("/tools/calls?limit=1").await.expect(200)["calls"][0].take();
        test.call("tools.native.fake.SLOWLY.main", json!({"ms": 60})).await.expect(200);
        let (row, call) = (newest().await, shown(&newest().await).await);
        for (name, value) in row.as_object().unwrap() {
            assert_eq!(&call[name], value, "{name}");
        }
        let timings = call["timings"].as_object().unwrap();
        assert_eq!(timings.keys().collect::<Vec<_>>(), ["upstream_ms"], "{call}");
        let (upstream, whole) = (timings["upstream_ms"].as_f64().unwrap(), call["duration_ms"].as_f64().unwrap());
        assert!((60.0..=whole).contains(&upstream), "{call}");

        // A call that got the answer of another says whose, a refusal too.
        for (name, arguments) in [(make, json!({"title": "x"})), ("tools.native.fake.FAIL_A_THING.main", json!({"code": 404}))] {
            call_with_key(test, name, name, arguments.clone()).await.expect(200);
            let first = newest().await["id"].clone();
            call_with_key(test, name, name, arguments).await.expect(200);
            let again = shown(&newest().await).await;
            assert_eq!((&again["repeats_id"], &again["timings"]), (&first, &json!({})), "{again}");
        }

        // How long a person took lies before the call.
        crate::approvals::ask_before(test, make, "ask").await;
        let id = crate::approvals::waiting(test, &test.owner, json!({"title": "y"})).await;
        let waits = newest().await;
        assert_eq!((&waits["outcome"], &waits["approval_id"]), (&json!("waiting"), &json!(id)), "{waits}");
        test.clock.advance(std::time::Duration::from_secs(90));
        crate::approvals::decide(test, &id, "approve").await;
        test.call(make, json!({"title": "y"})).await.expect(200);
        let made = shown(&newest().await).await;
        assert_eq!((&made["timings"]["approval_wait_ms"], &made["approval_id"]), (&json!(90_000.0), &json!(id)), "{made}");

        let stranger = test.key("elsewhere", kernel::Role::Owner, None).await;
        let path = format!("/tools/calls/{}", newest().await["id"].as_str().unwrap());
        assert_eq!(test.get_as(&stranger, &path).await.detail(404), "Call not found");
        test.get("/tools/calls/nonsense").await.expect(422);
    }

    async fn what_a_project_keeps_is_sealed_and_dropped(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let (path, owner) = ("/tools/calls/keeping", Some(format!("ApiKey {}", test.owner)));
        let keep = async |days: i64| test.request(http::Method::PUT, path, owner.clone(), Some(json!({"days": days}))).await;
        let newest = async || test.get("/tools/calls?limit=1").await.expect(200)["calls"][0]["id"].as_str().unwrap().to_owned();
        let kept = async |id: &str| test.get(&format!("/tools/calls/{id}")).await.expect(200)["call"]["kept"].take();
        let make = "tools.native.fake.MAKE_A_THING.main";
        assert_eq!(test.get(path).await.expect(200), json!({"days": 0}));
        test.call(make, json!({"title": "before"})).await.expect(200);
        let before = newest().await;
        for days in [-1, 91] {
            assert!(keep(days).await.detail(422).contains("between 0 and 90"));
        }
        assert_eq!(keep(2).await.expect(200), json!({"days": 2}));
        assert_eq!(test.get(path).await.expect(200), json!({"days": 2}));
        assert_eq!(kept(&before).await, Value::Null);

        test.call(make, json!({"title": "top secret title"})).await.expect(200);
        let id = newest().await;
        let found = kept(&id).await;
        assert_eq!((&found["arguments"], &found["result"]["body"]["title"]), (&json!({"title": "top secret title"}), &json!("top secret title")), "{found}");
        assert!(!found.to_string().contains("sk-fake"), "{found}");
        let viewer = test.key("default", kernel::Role::Viewer, None).await;
        let shown = test.get_as(&viewer, &format!("/tools/calls/{id}")).await.expect(200);
        assert!(shown["call"].get("kept").is_none() && shown["call"]["outcome"] == "ok", "{shown}");
        test.request(http::Method::PUT, path, Some(format!("ApiKey {viewer}")), Some(json!({"days": 1}))).await.expect(403);
        let stored: Vec<u8> = test.yard.db.all("select content from kept_calls", store::args![]).await.unwrap()[0].get("content").unwrap();
        assert!(!String::from_utf8_lossy(&stored).contains("secret"), "sealed");

        // A call that failed keeps what it was made with, and too much is a note.
        test.call("tools.native.fake.FAIL_A_THING.main", json!({"code": 500})).await.expect(502);
        let failed = kept(&newest().await).await;
        assert_eq!((&failed["arguments"], &failed["result"]), (&json!({"code": 500}), &Value::Null));
        test.call(make, json!({"title": "x".repeat(300 << 10)})).await.expect(200);
        let large = kept(&newest().await).await;
        assert!(large["arguments"]["note"].is_string() && large["result"]["note"].is_string(), "{large}");

        // Sealed again with a new key, it still opens.
        let ring = kernel::seal::KeyRing::parse(&std::fs::read_to_string(test.yard.config.data_dir.join("sealing.key")).unwrap()).unwrap();
        let sealer = kernel::seal::Sealer::new(ring.with_new_key());
        assert_eq!((calls::reseal(&test.yard.db, &sealer).await.unwrap(), calls::reseal(&test.yard.db, &sealer).await.unwrap()), (3, 0));

        // Dropped when the days are over, or when nothing is to be kept.
        let rows = async || test.yard.db.all("select id from kept_calls", store::args![]).await.unwrap().len();
        test.clock.advance(std::time::Duration::from_hours(47));
        test.yard.forget().await.unwrap();
        assert_eq!(rows().await, 3);
        test.clock.advance(std::time::Duration::from_hours(1));
        assert_eq!(kept(&id).await, Value::Null, "also before it is dropped");
        test.yard.forget().await.unwrap();
        assert_eq!(rows().await, 0);
        test.call(make, json!({"title": "y"})).await.expect(200);
        keep(0).await.expect(200);
        test.yard.forget().await.unwrap();
        assert_eq!((rows().await, kept(&newest().await).await), (0, Value::Null));
    }

    async fn calls_are_found_by_key_run_and_time(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let steps = json!({"steps": [{"name": "make", "call": "tools.native.fake.MAKE_A_THING.main", "arguments": {"title": "x"}}]});
        workflow(test, "flow", steps).await;
        let other = test.key("default", kernel::Role::Owner, None).await;
        for key in [&test.owner, &other] {
            test.call_as(key, "workflow.variant.flow", json!({})).await.expect(200);
            test.clock.advance(std::time::Duration::from_hours(1));
        }
        let rows = async |query: &str| test.get(&format!("/tools/calls?{query}")).await.expect(200)["calls"].as_array().unwrap().clone();
        let all = rows("").await;
        assert_eq!(all.len(), 4);
        let step = all.iter().find(|row| row["step"] == "make").unwrap();
        let of_run = rows(&format!("run_id={}", step["run_id"].as_str().unwrap())).await;
        assert_eq!((of_run.len(), &of_run[0]["id"]), (1, &step["id"]));
        assert_eq!(rows(&format!("run_id={}&delivery_id={}", step["run_id"].as_str().unwrap(), uuid::Uuid::now_v7())).await.len(), 0);
        assert_eq!(rows(&format!("delivery_id={}", uuid::Uuid::now_v7())).await.len(), 0);
        let of_key = rows(&format!("key_id={}", all[0]["key_id"].as_str().unwrap())).await;
        assert!(of_key.len() == 2 && of_key.iter().all(|row| row["key_id"] == all[0]["key_id"]), "{of_key:?}");
        assert_eq!((rows("until=90m").await.len(), rows("since=90m").await.len(), rows("since=3h&until=1h").await.len()), (2, 2, 2));
        test.get("/tools/calls?until=soon").await.expect(422);
        test.get("/tools/calls?key_id=me").await.expect(422);
    }

    async fn calls_are_counted_over_a_time(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let empty = test.get("/tools/calls/stats").await.expect(200);
        assert_eq!((&empty["calls"], &empty["errors"], empty.get("p50_ms"), &empty["failing"]), (&json!(0), &json!(0), None, &json!([])));
        assert_eq!(empty["buckets"].as_array().unwrap().len(), 24);
        let fail = "tools.native.fake.FAIL_A_THING.main";
        for code in [404, 500, 404] {
            test.call(fail, json!({"code": code})).await;
        }
        test.clock.advance(std::time::Duration::from_hours(2));
        for ms in [0, 0, 60] {
            test.call("tools.native.fake.SLOWLY.main", json!({"ms": ms})).await.expect(200);
        }
        test.call("nonsense", json!({})).await.expect(400);
        test.clock.advance(std::time::Duration::from_secs(1));
        let stats = test.get("/tools/calls/stats?since=3h&buckets=3").await.expect(200);
        assert_eq!((&stats["calls"], &stats["errors"]), (&json!(7), &json!(4)), "{stats}");
        let counts: Vec<_> = stats["buckets"].as_array().unwrap().iter().map(|bucket| (bucket["calls"].as_i64().unwrap(), bucket["errors"].as_i64().unwrap())).collect();
        assert_eq!(counts, [(3, 3), (0, 0), (4, 1)], "{stats}");
        assert!(stats["buckets"][1].get("p50_ms").is_none() && stats["buckets"][2]["p95_ms"].as_f64().unwrap() > 50.0, "{stats}");
        assert!(stats["p50_ms"].as_f64().unwrap() <= stats["p95_ms"].as_f64().unwrap());
        let message = "404: status 404 as asked";
        assert_eq!(stats["failing"], json!([{"tool": fail, "calls": 3, "errors": 3, "last_message": message}]));
        let narrow = test.get("/tools/calls/stats?since=3h&until=1h&buckets=1").await.expect(200);
        assert_eq!((&narrow["calls"], narrow["buckets"].as_array().unwrap().len()), (&json!(3), 1));
        for query in ["buckets=0", "buckets=201", "buckets=x", "since=soon", "since=1h&until=2h", "bucket=2"] {
            test.get(&format!("/tools/calls/stats?{query}")).await.expect(422);
        }
        let stranger = test.key("elsewhere", kernel::Role::Owner, None).await;
        assert_eq!(test.get_as(&stranger, "/tools/calls/stats").await.expect(200)["calls"], 0);
    }

    async fn a_call_that_waits_has_not_failed(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let make = "tools.native.fake.MAKE_A_THING.main";
        crate::approvals::ask_before(test, make, "ask").await;
        let step = json!({"name": "make", "call": make, "arguments": {"title": "x"}});
        crate::reserved::workflow(test, "makes", json!({"kind": "steps", "steps": [step]})).await;
        crate::approvals::waiting(test, &test.owner, json!({"title": "y"})).await;
        test.call("workflow.variant.makes", json!({})).await;
        test.call("tools.native.fake.FAIL_A_THING.main", json!({"code": 404})).await.expect(200);
        let rows = async |filter: &str| test.get(&format!("/tools/calls{filter}")).await.expect(200)["calls"].as_array().unwrap().clone();
        let outcomes: Vec<_> = rows("").await.iter().map(|row| row["outcome"].as_str().unwrap().to_owned()).collect();
        assert_eq!(outcomes, ["error", "waiting", "waiting", "waiting"], "the call, the run and its step");
        let waiting = rows("?outcome=waiting").await;
        assert!(waiting.len() == 3 && waiting.iter().all(|row| row["message"].as_str().unwrap().contains("approval")), "{waiting:?}");
        assert_eq!(rows("?outcome=failed").await.len(), 0);
        test.clock.advance(std::time::Duration::from_secs(1));
        let stats = test.get("/tools/calls/stats").await.expect(200);
        assert_eq!((&stats["calls"], &stats["errors"], stats["failing"].as_array().unwrap().len()), (&json!(1), &json!(1), 1), "{stats}");
        let metrics = test.send(Request::get("/metrics").body(Body::empty()).unwrap()).await.text;
        assert!(metrics.contains("toolyard_tool_calls_total{outcome=\"waiting\"} 3\n") && metrics.contains("{outcome=\"failed\"} 0\n"), "{metrics}");

        // So has a run that stopped for an approval.
        let runs = test.get("/workflows/runs?state=waiting").await.expect(200);
        assert_eq!((&runs["count"], &runs["runs"][0]["state"]), (&json!(1), &json!("waiting")), "{runs}");
        assert!(runs["runs"][0]["approval_id"].is_string());
        let counted = test.get("/workflows/runs/stats").await.expect(200);
        assert_eq!(counted["states"], json!({"cancelled": 0, "failed": 0, "succeeded": 0, "waiting": 1}));
    }

    async fn many_calls_at_once_are_all_recorded(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let calls = (0..150).map(|_| test.call("tools.native.fake.MAKE_A_THING.main", json!({"title": "x"})));
        assert!(futures_util::future::join_all(calls).await.iter().all(|reply| reply.status == 200));
        assert_eq!(test.get("/tools/calls?limit=500").await.expect(200)["count"], 150);
    }

    async fn a_caller_that_goes_away_does_not_lose_the_record(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let call = test.call("tools.native.fake.SLOWLY.main", json!({"ms": 300}));
        assert!(tokio::time::timeout(std::time::Duration::from_millis(100), call).await.is_err());
        for _ in 0..100 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            if test.get("/tools/calls?outcome=ok").await.expect(200)["count"] == 1 {
                return;
            }
        }
        panic!("the call was not recorded");
    }
}

#[tokio::test]
async fn private_addresses_are_out_of_reach_unless_allowed() {
    let fake = Fake::start().await;
    let test = Test::with(Database::Sqlite, |config| config.egress_allow = String::new()).await;
    let data = json!({"auth_scheme": "api_key", "credentials": {"base": fake.url, "api_key": "k-1234567"}});
    let detail = test.post("/tools/connections", crate::support::fake_connection("main", &data)).await.detail(424);
    assert!(detail.contains("127.0.0.1"), "{detail}");
    assert!(fake.seen().is_empty());
}
