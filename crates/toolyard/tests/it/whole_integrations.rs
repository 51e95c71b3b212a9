//! Configs that give an agent a whole integration: resolved, searched and run, with rules, approvals and a record as any call.

use kernel::{Permission, Role};
use serde_json::{Value, json};

use crate::approvals::ask_before;
use crate::support::{Database, Fake, Reply, Test, on_both};

fn whole(policy: Value) -> Value {
    json!({"type": "gateway_connection", "connection": {"provider": "native", "integration": "fake", "slug": "main"}, "policy": policy})
}

async fn run(test: &Test, arguments: Value, context: Option<Value>) -> Reply {
    let mut body = crate::support::call_body("gateway.run", &arguments);
    if let Some(context) = context {
        body["context"] = context;
    }
    test.post("/tools/call", body).await
}

fn get(arguments: Value) -> Value {
    json!({"integration": "fake", "tool": "GET_A_THING", "arguments": arguments})
}

/// What a refused call says to the model.
#[track_caller]
fn refusal(reply: Reply) -> Value {
    let answer = reply.expect(200);
    assert_eq!(answer["call"]["status"]["code"], "STATUS_CODE_ERROR", "{answer}");
    serde_json::from_str(answer["call"]["data"]["content"].as_str().unwrap()).unwrap()
}

on_both! {
    async fn a_whole_integration_resolves_to_all_that_it_can_do(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let policy = json!({"permissions": {"default": "allow_reads", "tools": {"MAKE_A_THING": "deny", "GONE": "allow"}}});
        let resolved = test.post("/tools/resolve", json!({"tools": [whole(policy.clone())]})).await.expect(200);
        let slice = &resolved["gateway_connections"][0];
        assert_eq!((&resolved["count"], &slice["integration"], &slice["connection"], &slice["policy"]), (&json!(1), &json!("fake"), &json!("main"), &policy));
        let version = slice["toolkit_version"].as_str().unwrap();
        assert!(version.len() == 12 && version != "latest", "{version}");
        let reads = |key: &str| slice["tools"].as_array().unwrap().iter().find(|tool| tool["key"] == key).unwrap()["read_only"].clone();
        assert_eq!((reads("GET_A_THING"), reads("MAKE_A_THING")), (json!(true), json!(false)));

        let specs = test.post("/tools/specs", json!({"tools": [whole(policy)]})).await.expect(200);
        let refs: Vec<&str> = specs["customTools"].as_array().unwrap().iter().map(|tool| tool["callRef"].as_str().unwrap()).collect();
        assert_eq!(refs, ["gateway.search", "gateway.run"]);
        assert!(specs["toolCallback"]["endpoint"].as_str().unwrap().ends_with("/tools/call"));
        let tools = specs["gatewayConnections"][0]["tools"].as_array().unwrap();
        let said = |key: &str| tools.iter().find(|tool| tool["key"] == key).unwrap()["permission"].clone();
        assert_eq!((said("MAKE_A_THING"), said("GET_A_THING")), (json!("deny"), json!("allow_reads")));
        assert!(specs["warnings"][0].as_str().unwrap().contains("`GONE`"), "{specs}");
    }

    async fn what_cannot_be_resolved_says_why(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        test.post("/tools/connections", crate::support::fake_connection("waiting", &json!({"auth_scheme": "api_key"}))).await.expect(200);
        let named = |provider: &str, integration: &str, slug: &str| json!({"type": "gateway_connection", "connection": {"provider": provider, "integration": integration, "slug": slug}});
        let wrong = |permissions: Value| whole(json!({"permissions": permissions}));
        for (tools, status, words) in [
            (json!([named("native", "fake", "nope")]), 404, "Connection not found: native/fake/nope"),
            (json!([named("native", "nope", "main")]), 404, "Integration not found: native/nope"),
            (json!([named("nope", "fake", "main")]), 404, "Provider not found: nope"),
            (json!([named("composio", "github", "main")]), 503, "composio is not configured"),
            (json!([named("native", "fake", "waiting")]), 400, "not established"),
            (json!([wrong(json!({"default": "sometimes"}))]), 422, "`policy.permissions.default` must be `inherit`, `allow`, `ask`, `deny` or `allow_reads`"),
            (json!([wrong(json!({"tools": {"X": "never"}}))]), 422, "`policy.permissions.tools`"),
            (json!([wrong(json!({"defualt": "ask"}))]), 422, "`defualt` is not a field"),
            (json!([{"type": "gateway_connection", "connection": {"integration": "x"}, "permission": "deny"}]), 422, "`permission` is not a field"),
            (json!([{"type": "gateway_connection"}]), 422, "`connection` is required"),
            (json!([whole(json!(null)), whole(json!(null))]), 422, "The whole integration `native/fake` is configured twice"),
        ] {
            let detail = test.post("/tools/resolve", json!({"tools": tools})).await.detail(status);
            assert!(detail.contains(words), "{tools}: {detail}");
        }
    }

    async fn a_search_finds_what_is_connected(test: &Test) {
        let fake = Fake::start().await;
        let search = async |arguments: Value| Test::content(test.call("gateway.search", arguments).await);
        assert_eq!(search(json!({"query": "read a fake thing"})).await["results"], json!([]), "nothing is connected");
        test.connect_fake(&fake, "main").await;
        for arguments in [json!({"query": "make a thing"}), json!({"query": "make a thing", "integration": "fake"})] {
            let found = search(arguments).await;
            let results = found["results"].as_array().unwrap();
            assert!((1..=5).contains(&results.len()), "{found}");
            assert_eq!((&results[0]["integration"], &results[0]["tool"], &results[0]["provider"]), (&json!("fake"), &json!("MAKE_A_THING"), &json!("native")), "{found}");
            assert_eq!((&results[0]["input_schema"]["type"], &found["connected_integrations"]), (&json!("object"), &json!(["fake"])));
        }
        assert_eq!(refusal(test.call("gateway.search", json!({"query": "x", "integration": "fakes"})).await)["code"], "integration_not_connected");
        assert_eq!(refusal(test.call("gateway.search", json!({"query": ""})).await)["code"], "invalid_arguments");
        // An agent has what its configs name, not all that the project has.
        let mut body = crate::support::call_body("gateway.search", &json!({"query": "make a thing"}));
        body["context"] = json!({"provider": "native", "toolkit_versions": {"other": "1"}});
        assert_eq!(Test::content(test.post("/tools/call", body).await)["results"], json!([]));
        let blind = test.key("default", Role::Owner, Some(vec![Permission::RunTools])).await;
        assert!(test.call_as(&blind, "gateway.search", json!({"query": "x"})).await.detail(403).contains("view_tools"));
        let calls = test.get("/tools/calls").await.expect(200);
        assert!(calls["calls"].as_array().unwrap().iter().any(|call| call["call_ref"] == "gateway.search" && call["tool"] == "tools.agenta.query_connected_tools"), "{calls}");
    }

    async fn a_run_is_the_call_of_what_it_names(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let resolved = test.post("/tools/resolve", json!({"tools": [whole(json!(null))]})).await.expect(200);
        let version = &resolved["gateway_connections"][0]["toolkit_version"];
        let context = json!({"provider": "native", "integration": "fake", "connection": "main", "tool": "GET_A_THING", "toolkit_version": version});
        for context in [None, Some(context.clone())] {
            let content = Test::content(run(test, get(json!({"owner": "o", "path": "p"})), context).await);
            assert_eq!((&content["successful"], &content["error"]), (&json!(true), &Value::Null), "{content}");
        }
        let calls = test.get("/tools/calls?tool=tools.native.fake.GET_A_THING.main").await.expect(200);
        assert_eq!((&calls["count"], &calls["calls"][0]["connection_id"].is_string()), (&json!(2), &true), "{calls}");
        run(test, get(json!({"nope": 1})), None).await.expect(400);

        let with = |name: &str, value: Value| {
            let mut context = context.clone();
            context[name] = value;
            Some(context)
        };
        let fine = || get(json!({"owner": "o", "path": "p"}));
        for (arguments, context, code) in [
            (fine(), with("toolkit_version", json!("000000000000")), "toolkit_changed"),
            (fine(), with("tool", json!("MAKE_A_THING")), "invalid_arguments"),
            (json!({"integration": "fake", "tool": "GET_A_THNG", "arguments": {}}), None, "tool_not_found"),
            (json!({"integration": "fakes", "tool": "GET_A_THING", "arguments": {}}), None, "integration_not_connected"),
            (json!({"integration": "fake", "tool": "GET_A_THING", "arguments": []}), None, "invalid_arguments"),
            (json!({"integration": "fake", "tool": "GET_A_THING"}), None, "invalid_arguments"),
            (json!({"integration": "fake", "tool": "GET_A_THING", "arguments": {}, "owner": "o"}), None, "invalid_arguments"),
        ] {
            assert_eq!(refusal(run(test, arguments.clone(), context).await)["code"], code, "{arguments}");
        }
        let near = refusal(run(test, json!({"integration": "fake", "tool": "GET_A_THNG", "arguments": {}}), None).await);
        assert_eq!(near["details"]["suggestions"][0], "GET_A_THING", "{near}");
        assert!(run(test, fine(), Some(json!({"connection": "nope", "provider": "native"}))).await.detail(404).contains("Connection not found: native/fake/nope"));
        run(test, fine(), Some(json!({"other": 1}))).await.expect(422);

        test.connect_fake(&fake, "second").await;
        let several = refusal(run(test, fine(), None).await);
        assert_eq!((&several["code"], several["details"].as_array().unwrap().len()), (&json!("connection_ambiguous"), 2), "{several}");
        run(test, fine(), Some(context)).await.expect(200);
    }

    async fn rules_approvals_and_keys_hold_for_a_run(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        ask_before(test, "tools.native.fake.MAKE_*", "ask").await;
        let make = json!({"integration": "fake", "tool": "MAKE_A_THING", "arguments": {"title": "x"}});
        let waiting = run(test, make.clone(), None).await.expect(202);
        assert_eq!(waiting["approval"]["call_ref"], "tools.native.fake.MAKE_A_THING.main");
        let path = format!("/tools/approvals/{}", waiting["approval"]["id"].as_str().unwrap());
        test.post(&path, json!({"decision": "approve"})).await.expect(200);
        let made = || fake.seen_at("/echo/things").len();
        let before = made();
        for _ in 0..2 {
            let request = http::Request::post("/tools/call")
                .header("authorization", format!("ApiKey {}", test.owner))
                .header("content-type", "application/json")
                .header("idempotency-key", "once");
            let body = crate::support::call_body("gateway.run", &make).to_string();
            test.send(request.body(axum::body::Body::from(body)).unwrap()).await.expect(200);
        }
        assert_eq!(made(), before + 1, "a repeated call returns the first result");
        ask_before(test, "tools.native.fake.GET_*", "deny").await;
        run(test, get(json!({"owner": "o", "path": "p"})), None).await.expect(403);
        let viewer = test.key("default", Role::Viewer, None).await;
        test.call_as(&viewer, "gateway.run", get(json!({}))).await.expect(403);
    }

    async fn an_agent_uses_a_whole_integration_within_its_policy(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let config = whole(json!({"permissions": {"default": "deny", "tools": {"GET_A_THING": "allow", "MAKE_A_THING": "ask"}}}));
        let agent = json!({"name": "whole", "agent_type": "custom", "tool_configs": [config]});
        let id = test.post("/agents", agent).await.expect(200)["public_id"].as_str().unwrap().to_owned();
        let toolset = test.post(&format!("/agents/{id}/toolset"), json!({})).await.expect(200);
        let mut tools: Vec<(&str, &str)> = toolset["tools"].as_array().unwrap().iter().map(|tool| (tool["call_ref"].as_str().unwrap(), tool["permission"].as_str().unwrap())).collect();
        tools.sort_unstable();
        assert_eq!(tools, [("tools.native.fake.GET_A_THING.main", "allow"), ("tools.native.fake.MAKE_A_THING.main", "ask")], "{toolset}");
        let call = |name: &str, arguments: Value| crate::support::call_body(name, &arguments);
        test.post(&format!("/agents/{id}/call"), call("tools.native.fake.GET_A_THING.main", json!({"owner": "o", "path": "p"}))).await.expect(200);
        test.post(&format!("/agents/{id}/call"), call("tools.native.fake.MAKE_A_THING.main", json!({"title": "x"}))).await.expect(202);
        test.post(&format!("/agents/{id}/call"), call("tools.native.fake.QUERY_THINGS.main", json!({}))).await.expect(403);
    }
}
