//! `/tools/ops` and `/tools/specs`.

use std::time::Duration;

use http::Method;
use kernel::{Permission, Role};
use serde_json::{Value, json};

use crate::reserved::workflow;
use crate::support::{Database, Fake, Test, call_body, document, on_both};
use crate::triggers::change_a_thing;

/// What the calls of ops are made with: the ids of rows that are there.
struct Rows {
    connection: Value,
    revision: String,
    schedule: Value,
    subscription: Value,
}

fn arguments(op: &str, rows: &Rows) -> Value {
    let watched = |place: &str| json!({"event_key": "THING_CHANGED", "trigger_config": {"box": place}});
    match op {
        "discover_tools" | "discover_triggers" => json!({"use_cases": ["make a fake thing"]}),
        "query_workflows" | "list_schedules" | "list_subscriptions" | "list_deliveries" | "list_connections" => json!({}),
        "read_config" => json!({"target": {"path": ["parameters"]}}),
        "commit_revision" => {
            let set = json!({"operation": "set", "target": ["parameters", "agent", "instructions"], "value": {"agents_md": "Be kind."}});
            json!({"workflow_revision": {"base_revision_id": rows.revision, "delta": {"operations": [set]}}})
        }
        "query_connected_tools" => json!({"query": "make a fake thing"}),
        "test_run" => json!({"inputs": {"messages": [{"role": "user", "content": "x"}]}}),
        "rename_agent" => json!({"name": "Ada"}),
        "create_schedule" => json!({"name": "s", "data": {"event_key": "tick", "schedule": "0 8 * * *"}}),
        "create_subscription" => json!({"name": "s", "connection_id": rows.connection, "data": watched("b")}),
        "test_subscription" => json!({"connection_id": rows.connection, "data": watched("c")}),
        "pause_schedule" | "resume_schedule" | "remove_schedule" => json!({"id": rows.schedule}),
        "pause_subscription" | "resume_subscription" | "remove_subscription" => json!({"id": rows.subscription}),
        other => panic!("{other} is new: say what it is called with"),
    }
}

/// Routes that are not there.
struct Nowhere;

impl calls::OwnRoutes for Nowhere {
    fn send(&self, _: definitions::ops::Assembled) -> futures_util::future::BoxFuture<'_, Result<(u16, bytes::Bytes), calls::NoRoute>> {
        Box::pin(async { Err(calls::NoRoute) })
    }
}

async fn allow_everything(test: &Test) {
    let allow = json!({"permissions": {"default": "allow"}});
    test.request(Method::PUT, "/tools/permissions", Some(format!("ApiKey {}", test.owner)), Some(allow)).await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_as_an_op_outlasts_other_requests() {
    let test = &Test::with(Database::Sqlite, |config| config.request_timeout = Duration::from_millis(200)).await;
    test.yard.triggers.start().await.unwrap();
    let fake = Fake::start().await;
    let connection = test.connect_fake(&fake, "main").await["id"].clone();
    allow_everything(test).await;
    let data = json!({"event_key": "THING_CHANGED", "trigger_config": {"box": "a"}});
    let arguments = json!({"connection_id": connection, "data": data});
    let waiting = test.post("/tools/ops/test_subscription", json!({"arguments": arguments}));
    let (found, ()) = tokio::join!(waiting, change_a_thing(test, &fake, 0, Duration::from_millis(500)));
    assert_eq!(Test::content(found)["count"], 1);

    let agent = json!({"name": "a", "agent_type": "x", "tool_configs": [{"type": "platform", "op": "test_subscription"}]});
    test.post("/agents", agent).await.expect(200);
    let waiting = test.post("/agents/1/call", call_body("test_subscription", &arguments));
    let (found, ()) = tokio::join!(waiting, change_a_thing(test, &fake, 1, Duration::from_millis(500)));
    assert_eq!(Test::content(found)["count"], 1);
}

/// An op may only offer what its route reads.
#[test]
fn every_field_of_an_op_is_a_field_of_its_route() {
    let document = document();
    let followed = |schema: &Value| match schema["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap().clone(),
        None => schema.clone(),
    };
    let properties = |schema: &Value| -> serde_json::Map<String, Value> {
        let schema = followed(schema);
        let parts = ["allOf", "oneOf"].iter().filter_map(|name| schema[name].as_array()).flatten().map(&followed).chain([schema.clone()]);
        parts.filter_map(|part| part["properties"].as_object().cloned()).flatten().collect()
    };
    for op in definitions::ops::all() {
        let definitions::ops::OpTarget::Endpoint { method, path } = &op.target else { continue };
        let method = json!(method).as_str().unwrap().to_lowercase();
        if !["post", "put"].contains(&method.as_str()) {
            continue;
        }
        let trim = |path: &str| path.trim_end_matches('/').to_owned();
        // Parameters of the path have other names in the document.
        let shape =
            |path: &str| trim(path).split('/').map(|part| if part.starts_with('{') { "{}" } else { part }.to_owned()).collect::<Vec<_>>();
        let (_, route) = document["paths"].as_object().unwrap().iter().find(|(known, _)| shape(known) == shape(path)).unwrap();
        let mut known = properties(&route[&method]["requestBody"]["content"]["application/json"]["schema"]);
        if let Some(into) = &op.args_into {
            known = properties(&known[into]);
        }
        for (field, schema) in op.input_schema["properties"].as_object().unwrap() {
            if path.contains(&format!("{{{field}}}")) {
                continue;
            }
            assert!(known.contains_key(field), "{}: {field}", op.op);
            let inner = properties(&known[field]);
            for name in schema["properties"].as_object().into_iter().flat_map(serde_json::Map::keys).filter(|_| !inner.is_empty()) {
                assert!(inner.contains_key(name), "{}: {field}.{name}", op.op);
            }
        }
    }
}

on_both! {
    async fn every_op_can_be_called(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        let fake = Fake::start().await;
        let connection = test.connect_fake(&fake, "main").await["id"].clone();
        let (variant, revision) = workflow(test, "agent", json!({"kind": "echo", "parameters": {"agent": {}}})).await;
        let artifact = test.get(&format!("/workflows/variants/{variant}")).await.expect(200)["workflow_variant"]["workflow_id"].take();
        let context = json!({"workflow": {"artifact": {"id": artifact}, "variant": {"id": variant}, "is_draft": false}});
        allow_everything(test).await;
        let mut rows = Rows { connection, revision, schedule: Value::Null, subscription: Value::Null };
        let call = async |op: &str, rows: &Rows| {
            let path = format!("/tools/ops/{op}");
            let waiting = test.post(&path, json!({"arguments": arguments(op, rows), "context": context}));
            let hooks = fake.seen_at("/hooks").iter().filter(|seen| seen["method"] == "POST").count();
            let reply = match op {
                "test_subscription" => tokio::join!(waiting, change_a_thing(test, &fake, hooks, Duration::from_millis(50))).0,
                _ => waiting.await,
            };
            let answer = reply.expect(200);
            assert_eq!(answer["call"]["status"]["code"], "STATUS_CODE_OK", "{op}: {answer}");
            serde_json::from_str::<Value>(answer["call"]["data"]["content"].as_str().unwrap()).unwrap()
        };
        rows.schedule = call("create_schedule", &rows).await["schedule"]["id"].take();
        rows.subscription = call("create_subscription", &rows).await["subscription"]["id"].take();
        let made = |op: &&definitions::ops::Op| !op.op.starts_with("create_") && !op.op.starts_with("remove_");
        let mut called: Vec<&str> = vec!["create_schedule", "create_subscription"];
        for op in definitions::ops::all().iter().filter(made) {
            call(&op.op, &rows).await;
            called.push(&op.op);
        }
        for op in ["remove_schedule", "remove_subscription"] {
            call(op, &rows).await;
            called.push(op);
        }
        assert!(definitions::ops::all().iter().all(|op| called.contains(&op.op.as_str())), "{called:?}");
    }

    async fn a_call_that_leads_nowhere_uses_up_nothing(test: &Test) {
        let context = json!({"workflow": {"artifact": {"id": uuid::Uuid::now_v7()}}});
        let rename = json!({"arguments": {"name": "Ada"}, "context": context});
        let waits = test.post("/tools/ops/rename_agent", rename).await.expect(202)["approval"].take();
        let path = format!("/tools/approvals/{}", waits["id"].as_str().unwrap());
        test.post(&path, json!({"decision": "approve"})).await.expect(200);
        let scope = test.yard.accounts.authenticator().authenticate(&test.owner).await.unwrap().unwrap();
        let request = calls::OpRequest {
            op: "rename_agent".to_owned(),
            arguments: serde_json::from_value(json!({"name": "Ada"})).unwrap(),
            context,
            ..calls::OpRequest::default()
        };
        assert!(test.yard.calls.op(scope, request, &Nowhere).await.is_err());
        assert_eq!(test.get(&path).await.expect(200)["approval"]["status"], "approved");
    }

    async fn nobody_is_asked_what_the_key_may_not_do(test: &Test) {
        let (variant, _) = workflow(test, "agent", json!({"kind": "echo"})).await;
        let context = json!({"workflow": {"artifact": {"id": uuid::Uuid::now_v7()}, "variant": {"id": variant}}});
        let only = test.key("default", Role::Owner, Some(vec![Permission::RunTools])).await;
        for (op, arguments, needs) in [
            ("rename_agent", json!({"name": "Ada"}), "edit_workflows"),
            ("query_workflows", json!({}), "view_workflows"),
            ("test_run", json!({"inputs": {"messages": [{"role": "user", "content": "x"}]}}), "run_workflows"),
        ] {
            let body = json!({"arguments": arguments, "context": context});
            let detail = test.post_as(&only, &format!("/tools/ops/{op}"), body).await.detail(403);
            assert!(detail.contains(needs), "{op}: {detail}");
        }
        assert_eq!(test.get("/tools/approvals").await.expect(200)["count"], 0);
    }

    async fn rules_know_an_op_by_every_name_and_see_the_models_words(test: &Test) {
        let policy = json!({"permissions": {"rules": [
            {"pattern": "tools.agenta.find_capabilities", "permission": "deny"},
            {"pattern": "tools.agenta.rename_agent(Evil:*)", "permission": "deny"},
        ]}});
        test.request(Method::PUT, "/tools/permissions", Some(format!("ApiKey {}", test.owner)), Some(policy)).await.expect(200);
        let look = json!({"use_cases": ["make a thing"]});
        for op in ["discover_tools", "find_capabilities"] {
            test.post(&format!("/tools/ops/{op}"), json!({"arguments": look})).await.expect(403);
            test.call(&format!("tools.agenta.{op}"), look.clone()).await.expect(403);
        }
        let rename = |name: &str| json!({"arguments": {"name": name}, "context": {"workflow": {"artifact": {"id": uuid::Uuid::now_v7()}}}});
        test.post("/tools/ops/rename_agent", rename("Evil twin")).await.expect(403);
        test.post("/tools/ops/rename_agent", rename("Ada")).await.expect(202);
    }

    async fn reads_run_and_changes_ask(test: &Test) {
        let (variant, _) = workflow(test, "agent", json!({"kind": "echo"})).await;
        let variants = test.get(&format!("/workflows/variants/{variant}")).await.expect(200);
        let id = variants["workflow_variant"]["workflow_id"].as_str().unwrap().to_owned();
        let context = json!({"workflow": {"artifact": {"id": id}, "variant": {"id": variant}}});

        let listed = Test::content(test.post("/tools/ops/query_workflows", json!({"arguments": {}})).await);
        assert_eq!(listed["workflows"][0]["slug"], "agent");

        let rename = json!({"arguments": {"name": "Ada"}, "context": context});
        let waits = test.post("/tools/ops/rename_agent", rename.clone()).await.expect(202);
        assert_eq!(waits["approval"]["call_ref"], "tools.agenta.rename_agent");
        let approval = waits["approval"]["id"].as_str().unwrap();
        test.post(&format!("/tools/approvals/{approval}"), json!({"decision": "approve"})).await.expect(200);
        let renamed = Test::content(test.post("/tools/ops/rename_agent", rename.clone()).await);
        assert_eq!(renamed["workflow"]["name"], "Ada");
        test.post("/tools/ops/rename_agent", rename.clone()).await.expect(202);

        let allow = json!({"permissions": {"rules": [{"pattern": "tools.agenta.rename_agent", "permission": "allow"}]}});
        test.request(Method::PUT, "/tools/permissions", Some(format!("ApiKey {}", test.owner)), Some(allow)).await.expect(200);
        test.post("/tools/ops/rename_agent", rename.clone()).await.expect(200);

        // An op can do no more than its caller.
        let only = test.key("default", Role::Owner, Some(vec![Permission::RunTools])).await;
        test.post_as(&only, "/tools/ops/rename_agent", rename).await.expect(403);
    }

    async fn what_is_bound_cannot_be_chosen(test: &Test) {
        let context = json!({"workflow": {"artifact": {"id": ".."}}});
        for (body, part) in [
            (json!({"arguments": {"name": "x", "id": "y"}, "context": context}), "id"),
            (json!({"arguments": {"name": "x", "workflow_id": "y"}, "context": context}), "workflow_id"),
            (json!({"arguments": {}, "context": context}), "name"),
            (json!({"arguments": {"name": "x"}}), "missing run-context value"),
            (json!({"arguments": {"name": "x"}, "context": context}), "may not be `.` or `..`"),
            (json!({"arguments": {"name": "x"}, "context": {"workflow": {"artifact": {"id": ""}}}}), "is empty"),
        ] {
            let detail = test.post("/tools/ops/rename_agent", body.clone()).await.detail(400);
            assert!(detail.contains(part), "{body}: {detail}");
        }
        test.post("/tools/ops/nope", json!({})).await.expect(404);
        assert!(test.post("/tools/ops/query_spans", json!({})).await.detail(404).contains("keeps no spans"));
        assert_eq!(test.get("/tools/approvals").await.expect(200)["count"], 0);
        let ops = test.get("/tools/ops").await.expect(200);
        assert!(ops["ops"].as_array().unwrap().iter().all(|op| op["input_schema"]["additionalProperties"] == false));
    }

    async fn an_embedded_tool_is_put_in_place(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let schema = json!({"type": "object", "properties": {"history": {"x-ag-type-ref": "messages", "description": "So far."}}});
        let tool = json!({"type": "gateway", "provider": "native", "integration": "fake", "action": "MAKE_A_THING", "connection": "main", "name": "make", "permission": "ask"});
        workflow(test, "kit", json!({"kind": "echo", "schemas": {"inputs": schema}, "parameters": {"tool": tool}})).await;
        let embed = |path: &str| json!({"@ag.embed": {"@ag.references": {"workflow": {"slug": "kit"}}, "@ag.selector": {"path": path}}});
        let configs = json!([embed("parameters.tool"), {"type": "reference", "slug": "kit"}]);
        let specs = test.post("/tools/specs", json!({"tools": configs})).await.expect(200);
        let (make, kit) = (&specs["customTools"][0], &specs["customTools"][1]);
        assert_eq!((&make["callRef"], &make["permission"]), (&json!("tools.native.fake.MAKE_A_THING.main"), &json!("ask")));
        let history = &kit["inputSchema"]["properties"]["history"];
        assert_eq!((&history["type"], &history["description"], history.get("x-ag-type-ref")), (&json!("array"), &json!("So far."), None));
        let resolved = test.post("/tools/resolve", json!({"tools": [embed("parameters.tool")]})).await.expect(200);
        assert_eq!(resolved["custom"][0]["name"], "make");

        test.post("/tools/specs", json!({"tools": [embed("parameters.nope")]})).await.expect(400);
        let mut denied = embed("parameters.tool");
        denied["permission"] = json!("deny");
        assert!(test.post("/tools/specs", json!({"tools": [denied]})).await.detail(422).contains("`permission` beside `@ag.embed` would be lost"));
        let only = test.key("default", Role::Owner, Some(vec![Permission::ViewTools])).await;
        test.post_as(&only, "/tools/specs", json!({"tools": [embed("parameters.tool")]})).await.expect(403);
        let stored = json!({"name": "a", "agent_type": "x", "tool_configs": [embed("parameters.tool")]});
        assert!(test.post("/agents", stored).await.detail(422).contains("write the tool itself"));
    }

    async fn an_agents_tools_become_specs(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
        workflow(test, "lookup", json!({"kind": "echo", "schemas": {"inputs": schema}})).await;
        let configs = json!([
            "read",
            {"type": "client", "name": "pick", "render": {"kind": "connect"}},
            {"type": "code", "name": "sum", "script": "print(1)", "runtime": "node"},
            {"type": "reference", "slug": "lookup", "permission": "ask"},
            {"type": "reference", "slug": "lookup", "version": "1", "name": "lookup_old", "input_schema": {"type": "object", "properties": {"x": {}}}},
            {"type": "platform", "op": "discover_tools"},
            {"type": "platform", "op": "test_run"},
            {"type": "gateway", "provider": "native", "integration": "fake", "action": "MAKE_A_THING", "connection": "main", "name": "make"},
        ]);
        let answer = test.post("/tools/specs", json!({"tools": configs})).await.expect(200);
        let specs = answer["customTools"].as_array().unwrap();
        let names: Vec<&str> = specs.iter().map(|spec| spec["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["make", "discover_tools", "test_run", "lookup", "lookup_old", "sum", "pick"]);
        let of = |name: &str| specs.iter().find(|spec| spec["name"] == name).unwrap();
        assert_eq!((&of("make")["callRef"], &of("make")["readOnly"]), (&json!("tools.native.fake.MAKE_A_THING.main"), &json!(false)));
        assert_eq!((&of("lookup")["callRef"], &of("lookup")["inputSchema"], &of("lookup")["permission"]), (&json!("workflow.variant.lookup"), &schema, &json!("ask")));
        assert_eq!(of("lookup_old")["inputSchema"]["properties"], json!({"x": {}}));
        assert_eq!(of("discover_tools")["call"], json!({"method": "POST", "path": "/api/tools/discover"}));
        assert_eq!((&of("test_run")["timeoutMs"], &of("test_run")["ephemeralArgs"]), (&json!(120_000), &json!(["description"])));
        assert_eq!((&of("sum")["code"], &of("sum")["runtime"]), (&json!("print(1)"), &json!("node")));
        assert_eq!((&of("pick")["kind"], &of("pick")["render"]), (&json!("client"), &json!({"kind": "connect"})));
        assert!(answer["toolCallback"]["endpoint"].as_str().unwrap().ends_with("/api/tools/call"));
        assert_eq!(answer["warnings"].as_array().unwrap().len(), 1);

        for format in ["openai", "anthropic", "gemini", "mcp"] {
            let defined = test.post(&format!("/tools/specs?format={format}"), json!({"tools": configs})).await.expect(200);
            assert_eq!((defined["definitions"].as_array().unwrap().len(), &defined["names"]["make"]), (7, &json!("tools.native.fake.MAKE_A_THING.main")));
            assert_eq!((&defined["names"]["discover_tools"], &defined["names"]["test_run"]), (&json!("POST /tools/ops/discover_tools"), &json!("tools.agenta.test_run")));
        }
        for (config, status) in [
            (json!({"type": "platform", "op": "nope"}), 422),
            (json!({"type": "reference", "slug": "gone"}), 404),
            (json!({"type": "reference", "slug": "lookup", "version": "7"}), 404),
            (json!({"type": "reference", "slug": "lookup", "ref_by": "environment", "environment": "staging"}), 404),
            (json!({"type": "code", "name": "x", "script": "y", "secrets": ["s"]}), 403),
            (json!({"type": "client", "name": "Bash"}), 422),
            (json!({"type": "gateway", "provider": "native", "integration": "fake", "action": "NOPE", "connection": "main"}), 404),
        ] {
            let reply = test.post("/tools/specs", json!({"tools": [config]})).await;
            assert_eq!(reply.status.as_u16(), status, "{config}: {}", reply.text);
        }
        let twice: Value = json!([{"type": "client", "name": "a"}, {"type": "client", "name": "a"}]);
        test.post("/tools/specs", json!({"tools": twice})).await.expect(422);
    }
}
