//! Workflows and our own tools at `/tools/call`.

use http::Request;
use kernel::{Permission, Role};
use serde_json::{Value, json};

use crate::support::{Database, Fake, Reply, Test, call_body, on_both};

/// Makes a workflow and hands back the ids of its variant and newest revision.
pub async fn workflow(test: &Test, slug: &str, data: Value) -> (String, String) {
    let answer = test.post("/simple/workflows/", json!({"workflow": {"slug": slug, "name": slug, "data": data}})).await.expect(200);
    let id = |name: &str| answer["workflow"][name].as_str().unwrap_or_else(|| panic!("{name} in {answer}")).to_owned();
    (id("variant_id"), id("revision_id"))
}

pub async fn commit(test: &Test, variant: &str, data: Value) {
    let body = json!({"workflow_revision": {"workflow_variant_id": variant, "data": data}});
    test.post("/workflows/revisions/commit", body).await.expect(200);
}

async fn as_test_run(test: &Test, name: &str, arguments: &Value) -> Reply {
    let request =
        Request::post("/tools/call").header("authorization", format!("ApiKey {}", test.owner)).header("x-agenta-run-kind", "test");
    test.send(request.header("content-type", "application/json").body(call_body(name, arguments).to_string().into()).unwrap()).await
}

/// Answers with a constant, so that revisions can be told apart.
fn says(word: &str) -> Value {
    json!({"steps": [{"name": "call", "call": "workflow.variant.echo"}], "result": word})
}

on_both! {
    async fn a_pinned_revision_and_a_deployed_one_each_run_their_own(test: &Test) {
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let (variant, _) = workflow(test, "greet", says("first")).await;
        commit(test, &variant, says("second")).await;
        let deploy = json!({"workflow_ref": {"slug": "greet"}, "environment_ref": {"slug": "staging"}});
        test.post("/workflows/revisions/deploy", deploy).await.expect(200);
        commit(test, &variant, says("third")).await;
        for (name, expected) in [
            ("workflow.variant.greet.1", "first"),
            ("workflow__variant__greet__1", "first"),
            ("workflow.environment.staging.greet", "second"),
            ("workflow.variant.greet", "third"),
        ] {
            assert_eq!(Test::content(test.call(name, json!({})).await), json!(expected), "{name}");
        }
        for (name, status) in [
            ("workflow.variant.greet.9", 404),
            ("workflow.environment.production.greet", 404),
            ("workflow.environment.nowhere.greet", 404),
            ("workflow.variant.nope", 404),
        ] {
            test.call(name, json!({})).await.expect(status);
        }
        let empty = test.call("workflow.variant.greet.0", json!({})).await.expect(200);
        assert_eq!(empty["call"]["status"]["code"], "STATUS_CODE_ERROR");
        assert!(empty["call"]["status"]["message"].as_str().unwrap().contains("has no data"));
    }

    async fn a_workflow_that_fails_says_why_to_a_model(test: &Test) {
        let fake = Fake::start().await;
        workflow(test, "broken", json!({"kind": "http", "url": format!("{}/status/422", fake.url)})).await;
        let agent = json!({"name": "a", "agent_type": "custom", "tool_configs": [{"type": "reference", "slug": "broken"}]});
        test.post("/agents", agent).await.expect(200);
        let words = "The workflow's service answered 422.";
        for reply in [
            test.call("workflow.variant.broken", json!({})).await,
            test.post("/agents/1/call", call_body("workflow.variant.broken", &json!({}))).await,
        ] {
            let answer = reply.expect(200)["call"].take();
            assert_eq!((&answer["status"]["code"], &answer["status"]["message"]), (&json!("STATUS_CODE_ERROR"), &json!(words)));
            assert_eq!(serde_json::from_str::<Value>(answer["data"]["content"].as_str().unwrap()).unwrap(), json!({"error": words}));
        }
        let result = crate::mcp::call(test, "workflow__variant__broken", json!({})).await;
        assert_eq!((&result["isError"], &result["content"][0]["text"]), (&json!(true), &json!(words)));
    }

    async fn malformed_workflow_refs_run_nothing(test: &Test) {
        workflow(test, "a", json!({"kind": "echo"})).await;
        for name in [
            "workflow.", "workflow", "workflow.variant", "workflow.variant.", "workflow.variant.a.b.c", "workflow.variant.a.", "workflow.variant..a",
            "workflow.variant.a\n", "workflow.variant.a b", "workflow.variant.ä", "workflow.environment.a", "workflow.environment.a.b.c",
            "workflow.revision.a", "workflow.variant.a/..", "",
        ] {
            test.call(name, json!({})).await.expect(400);
        }
        assert_eq!(test.get("/workflows/runs").await.expect(200)["count"], 0);
    }

    async fn steps_call_tools_and_see_their_results(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        workflow(test, "make", json!({
            "schemas": {"inputs": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"], "additionalProperties": false}},
            "steps": [
                {"name": "made", "call": "tools.native.fake.MAKE_A_THING.main", "arguments": {"title": "{{ inputs.title }}"}},
                {"name": "seen", "call": "tools.native.fake.GET_A_THING.main", "arguments": {"owner": "{{ steps.made.result.body.title }}", "path": "p"}},
                {"name": "never", "call": "tools.native.fake.MAKE_A_THING.main", "when": "steps.made.result.body.title == 'x'"},
            ],
            "result": {"path": "{{ steps.seen.result.path }}", "skipped": "{{ steps.never.skipped }}"},
        })).await;
        let made = Test::content(test.call("workflow.variant.make", json!({"title": "t1"})).await);
        assert_eq!(made, json!({"path": "/echo/t1/files/p", "skipped": true}));
        let refused = test.call("workflow.variant.make", json!({"nope": 1})).await.expect(200);
        assert!(refused["call"]["status"]["message"].as_str().unwrap().starts_with("Invalid inputs"), "{refused}");
        let calls = test.get("/tools/calls").await.expect(200);
        let refs: Vec<&str> = calls["calls"].as_array().unwrap().iter().map(|call| call["call_ref"].as_str().unwrap()).collect();
        assert!(refs.contains(&"workflow.variant.make") && refs.contains(&"tools.native.fake.GET_A_THING.main"), "{refs:?}");
    }

    async fn a_step_needs_the_permission_to_call(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        workflow(test, "make", json!({"steps": [{"name": "a", "call": "tools.native.fake.MAKE_A_THING.main", "arguments": {"title": "x"}}]})).await;
        let before = fake.seen().len();
        let only = test.key("default", Role::Owner, Some(vec![Permission::RunWorkflows])).await;
        let reply = test.post_as(&only, "/workflows/invoke", json!({"references": {"workflow": {"slug": "make"}}})).await;
        assert!(reply.text.contains("run_tools"), "{}", reply.text);
        assert_eq!(fake.seen().len(), before);
    }

    async fn workflows_that_call_themselves_end(test: &Test) {
        workflow(test, "again", json!({"steps": [{"name": "me", "call": "workflow.variant.again"}]})).await;
        let reply = test.call("workflow.variant.again", json!({})).await.expect(200);
        assert!(reply["call"]["status"]["message"].as_str().unwrap().contains("8 deep"), "{reply}");
        assert_eq!(test.get("/workflows/runs").await.expect(200)["count"], 9);
    }

    async fn an_agent_that_tries_itself_in_a_step_ends(test: &Test) {
        let (variant, _) = workflow(test, "again", json!({"kind": "echo"})).await;
        let arguments = json!({"target": {"workflow_variant_id": variant}, "inputs": {"messages": [{"role": "user", "content": "x"}]}});
        commit(test, &variant, json!({"steps": [{"name": "me", "call": "tools.agenta.test_run", "arguments": arguments}]})).await;
        let reply = test.call("workflow.variant.again", json!({})).await.expect(200);
        assert!(reply["call"]["status"]["message"].as_str().unwrap().contains("may not start another test run"), "{reply}");
        assert_eq!(test.get("/workflows/runs").await.expect(200)["count"], 2);
        test.yard.calls.drain().await;
    }

    async fn a_run_only_key_learns_and_commits_nothing(test: &Test) {
        let (variant, revision) = workflow(test, "agent", json!({"parameters": {"agent": {"tools": []}}})).await;
        let only = test.key("default", Role::Owner, Some(vec![Permission::RunTools])).await;
        let target = json!({"workflow_variant_id": variant, "run_is_draft": false});
        let delta = json!({"set": {"parameters": {"agent": {"x": 1}}}});
        for (op, arguments, needs) in [
            ("find_capabilities", json!({"use_cases": ["make a thing"]}), "view_tools"),
            ("discover_tools", json!({"use_cases": ["make a thing"]}), "view_tools"),
            ("find_triggers", json!({"use_cases": ["a thing is made"]}), "view_triggers"),
            ("read_config", json!({"target": target}), "view_workflows"),
            ("commit_revision", json!({"workflow_revision": {"workflow_variant_id": variant, "base_revision_id": revision, "delta": delta}}), "edit_workflows"),
            ("test_run", json!({"target": {"workflow_variant_id": variant}, "inputs": {"messages": [{"role": "user", "content": "x"}]}, "delta": delta}), "run_workflows"),
        ] {
            let detail = test.call_as(&only, &format!("tools.agenta.{op}"), arguments).await.detail(403);
            assert!(detail.contains(needs), "{op}: {detail}");
        }
        assert_eq!(test.get(&format!("/workflows/revisions/{revision}")).await.expect(200)["workflow_revision"]["version"], "1");
        test.call("tools.agenta.nope", json!({})).await.expect(404);
        test.call("tools.agenta.rename_agent", json!({})).await.expect(404);
    }

    async fn discovery_is_a_tool(test: &Test) {
        let fake = Fake::start().await;
        let found = Test::content(test.call("tools.agenta.find_capabilities", json!({"use_cases": "make a fake thing"})).await);
        assert_eq!((&found["capabilities"][0]["tool"]["action"], &found["ready"]), (&json!("MAKE_A_THING"), &json!(false)));
        let connect = &found["connections"][0]["connect"];
        assert_eq!((&connect["endpoint"], &connect["body"]["connection"]["slug"]), (&json!("POST /tools/connections/"), &json!("fake-main")));
        test.connect_fake(&fake, "fake-main").await;
        let found = Test::content(test.call("tools__agenta__discover_tools", json!({"use_cases": ["make a fake thing"]})).await);
        assert_eq!((&found["capabilities"][0]["tool"]["connection"], &found["ready"]), (&json!("fake-main"), &json!(true)));
        let wrong = test.call("tools.agenta.find_capabilities", json!({"use_cases": [7]})).await.expect(200);
        assert_eq!(wrong["call"]["status"]["code"], "STATUS_CODE_ERROR");
        let content: Value = serde_json::from_str(wrong["call"]["data"]["content"].as_str().unwrap()).unwrap();
        assert_eq!((&content["code"], &content["retryable"]), (&json!("invalid_arguments"), &json!(false)));
    }

    async fn what_a_model_gets_wrong_comes_back_as_a_result(test: &Test) {
        for op in ["find_capabilities", "find_triggers", "discover_tools"] {
            for arguments in [
                json!("open an issue"), json!(7), json!(null), json!([]), json!(true), json!("[1]"), json!("{\"use_cases\""), json!({}),
                json!({"use_cases": []}), json!({"use_cases": [" "]}), json!({"use_cases": 7}), json!({"use_cases": null}), json!({"use_cases": {}}),
                json!({"use_case": "open an issue"}), json!({"use_cases": ["open an issue"], "limit": 3}),
                json!({"use_cases": ["open an issue"], "limit_alternatives": "3"}), json!({"use_cases": ["open an issue"], "limit_alternatives": -1}),
                json!({"use_cases": ["open an issue"], "provider": "nope"}), json!({"use_cases": ["open an issue"], "provider": "composio"}),
                json!({"use_cases": vec!["open an issue"; 51]}), json!({"use_cases": ["x".repeat(20_001)]}),
            ] {
                let wrong = test.call(&format!("tools.agenta.{op}"), arguments.clone()).await.expect(200);
                assert_eq!(wrong["call"]["status"]["code"], "STATUS_CODE_ERROR", "{op} {arguments}");
                let told: Value = serde_json::from_str(wrong["call"]["data"]["content"].as_str().unwrap()).unwrap();
                assert!(told["code"].is_string() && told["message"].is_string() && told["next_step"].is_string(), "{op} {arguments}: {told}");
                assert_eq!(wrong["call"]["status"]["message"], told["message"]);
            }
        }
        for op in ["read_config", "commit_revision", "test_run"] {
            let wrong = test.call(&format!("tools.agenta.{op}"), json!("not an object")).await.expect(200);
            assert_eq!(wrong["call"]["status"]["code"], "STATUS_CODE_ERROR", "{op}");
        }
        test.call("tools.agenta.nope", json!("x")).await.expect(400);
    }

    async fn an_agent_reads_and_changes_itself(test: &Test) {
        let data = json!({"kind": "echo", "parameters": {"agent": {"instructions": {"agents_md": "Be kind."}, "tools": [], "runner": {"permissions": {"default": "ask"}}}}});
        let (variant, revision) = workflow(test, "agent", data).await;
        let target = json!({"workflow_variant_id": variant, "run_is_draft": false, "path": ["parameters", "agent", "instructions"]});
        let read = Test::content(test.call("tools.agenta.read_config", json!({"target": target, "description": "look"})).await);
        assert_eq!((&read["value"]["agents_md"], &read["base_revision_id"]), (&json!("Be kind."), &json!(revision)));

        let change = |base: &str, operations: Value| json!({"workflow_revision": {"workflow_variant_id": variant, "base_revision_id": base, "delta": {"operations": operations}}});
        let edit = json!([{"operation": "edit_text", "target": ["parameters", "agent", "instructions", "agents_md"], "edits": [{"old_text": "kind", "new_text": "brief"}]}]);
        let done = Test::content(test.call("tools.agenta.commit_revision", change(&revision, edit.clone())).await);
        assert_eq!(done["status"], "committed", "{done}");
        assert_eq!(done["workflow_revision"]["version"], "2");

        let code = |reply: Value| {
            assert_eq!(reply["call"]["status"]["code"], "STATUS_CODE_ERROR", "{reply}");
            serde_json::from_str::<Value>(reply["call"]["data"]["content"].as_str().unwrap()).unwrap()["code"].clone()
        };
        let stale = test.call("tools.agenta.commit_revision", change(&revision, edit.clone())).await.expect(200);
        assert_eq!(code(stale), "revision_conflict");
        let head = done["workflow_revision"]["id"].as_str().unwrap();
        let loosen = json!([{"operation": "set", "target": ["parameters", "agent", "runner", "permissions", "default"], "value": "allow"}]);
        assert_eq!(code(test.call("tools.agenta.commit_revision", change(head, loosen)).await.expect(200)), "outside_scope");
        let whole = json!({"workflow_revision": {"workflow_variant_id": variant, "data": {}}});
        assert_eq!(code(test.call("tools.agenta.commit_revision", whole).await.expect(200)), "invalid_arguments");
        assert_eq!(code(test.call("tools.agenta.commit_revision", change(head, edit)).await.expect(200)), "text_not_found");
        test.call("tools.agenta.commit_revision", json!({"workflow_revision": {"delta": {}}})).await.expect(400);
        let read = Test::content(test.call("tools.agenta.read_config", json!({"target": {"workflow_variant_id": variant, "path": ["parameters", "agent", "runner"]}})).await);
        assert_eq!(read["value"]["permissions"]["default"], "ask");
    }

    async fn an_agent_tries_itself(test: &Test) {
        let (variant, _) = workflow(test, "agent", json!({"kind": "echo", "parameters": {"a": 1}})).await;
        let messages = json!([{"role": "user", "content": "hi"}]);
        let arguments = json!({"target": {"workflow_variant_id": variant}, "inputs": {"messages": messages}, "expectations": {"terminal_tool": "send"}});
        let tried = Test::content(test.call("tools.agenta.test_run", arguments.clone()).await);
        assert_eq!((&tried["verdict"], &tried["output"]["messages"]), (&json!("incomplete"), &messages));
        as_test_run(test, "tools.agenta.test_run", &arguments).await.expect(400);
        let mut unexpected = arguments.clone();
        unexpected.as_object_mut().unwrap().remove("expectations");
        assert_eq!(Test::content(test.call("tools.agenta.test_run", unexpected).await)["verdict"], "unconfirmed");
        let mut outside = arguments;
        outside["delta"] = json!({"set": {"url": "https://example.com"}});
        let refused = test.call("tools.agenta.test_run", outside).await.expect(200);
        assert!(refused["call"]["data"]["content"].as_str().unwrap().contains("outside_scope"));
    }
}
