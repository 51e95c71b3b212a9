//! `/agents`: who may use what.

use axum::body::Body;
use http::{Method, Request};
use kernel::Role;
use serde_json::{Value, json};

use crate::support::{Database, Fake, Reply, Test, call_body, on_both};

/// The contract's ids of these names are in the unit tests of the hash; these are the same function's.
const FAKE: i64 = -2_150_229;

async fn put(test: &Test, path: &str, body: Value, version: Option<&str>) -> Reply {
    let mut request = Request::builder().method(Method::PUT).uri(path).header("authorization", format!("ApiKey {}", test.owner));
    request = request.header("content-type", "application/json");
    if let Some(version) = version {
        request = request.header("if-match", version);
    }
    test.send(request.body(Body::from(body.to_string())).unwrap()).await
}

async fn make(test: &Test, name: &str, rest: Value) -> Value {
    let mut body = json!({"name": name, "agent_type": "custom"});
    body.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    test.post("/api/agents/", body).await.expect(200)
}

/// `[(change, app)]`, the oldest first.
async fn history(test: &Test, agent: &str) -> Vec<(String, String)> {
    let page = test.get(&format!("/agents/{agent}/history?limit=500")).await.expect(200);
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    page["history"].as_array().unwrap().iter().rev().map(|line| (word(&line["change"]), word(&line["app_name"]))).collect()
}

async fn toolset(test: &Test, agent: &str, body: Value) -> Value {
    test.post(&format!("/agents/{agent}/toolset"), body).await.expect(200)
}

fn refs(toolset: &Value) -> Vec<String> {
    toolset["tools"].as_array().unwrap().iter().map(|tool| tool["call_ref"].as_str().unwrap().to_owned()).collect()
}

fn tools(agent: &Value) -> Vec<(String, bool, Option<String>)> {
    let tool = |tool: &Value| {
        (
            tool["app_name"].as_str().unwrap().to_owned(),
            tool["usable"].as_bool().unwrap(),
            tool["reason"]["code"].as_str().map(str::to_owned),
        )
    };
    agent["tools"].as_array().unwrap().iter().map(tool).collect()
}

async fn call(test: &Test, agent: &str, name: &str, arguments: Value) -> Reply {
    test.post(&format!("/agents/{agent}/call"), call_body(name, &arguments)).await
}

/// Puts a rule, or none, in place of the project's policy.
async fn project_says(test: &Test, rules: Value) {
    put(test, "/tools/permissions", json!({"permissions": {"rules": rules}}), None).await.expect(200);
}

/// How an app stands with an agent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    NotAssigned,
    Active,
    Inactive,
    Deleted,
}

/// What is done to it.
enum Step {
    List(Value),
    Nothing,
    Add(Value),
    Remove,
    Delete,
}

on_both! {
    async fn every_state_of_an_assignment_and_every_way_between_them(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        use State::{Active, Deleted, Inactive, NotAssigned};
        let settings = json!({"id": "fake", "priority": 7, "config": {"access": "read_only"}});
        // From, what is done, to, and the line that it leaves.
        let table = [
            (NotAssigned, Step::Nothing, NotAssigned, None),
            (NotAssigned, Step::List(json!([])), NotAssigned, None),
            (NotAssigned, Step::List(json!([FAKE])), Active, Some("assigned")),
            (NotAssigned, Step::Add(json!({"id": "FAKE"})), Active, Some("assigned")),
            (NotAssigned, Step::Remove, NotAssigned, None),
            (NotAssigned, Step::Delete, Deleted, None),
            (Active, Step::Nothing, Active, None),
            (Active, Step::List(json!(["fake"])), Active, None),
            (Active, Step::List(json!([settings])), Active, Some("adjusted")),
            (Active, Step::List(json!([])), Inactive, Some("unassigned")),
            (Active, Step::Add(json!({"id": FAKE})), Active, None),
            (Active, Step::Add(settings.clone()), Active, Some("adjusted")),
            (Active, Step::Remove, Inactive, Some("unassigned")),
            (Active, Step::Delete, Deleted, None),
            (Inactive, Step::Nothing, Inactive, None),
            (Inactive, Step::List(json!([])), Inactive, None),
            (Inactive, Step::List(json!(["native.fake"])), Active, Some("reassigned")),
            (Inactive, Step::List(json!([settings])), Active, Some("reassigned")),
            (Inactive, Step::Add(json!({"app_name": "Fake"})), Active, Some("reassigned")),
            (Inactive, Step::Remove, Inactive, None),
            (Inactive, Step::Delete, Deleted, None),
        ];
        for (number, (from, step, to, line)) in table.into_iter().enumerate() {
            let at = format!("{number}: {from:?}");
            let agent = make(test, &format!("agent {number}"), json!({})).await;
            let id = agent["id"].to_string();
            let path = format!("/api/agents/{id}");
            let mut lines = vec![("created".to_owned(), "-".to_owned())];
            let mut row = Value::Null;
            if from != NotAssigned {
                let on = put(test, &path, json!({"tool_ids": [{"id": "fake", "priority": 3, "config": {"deny": ["SLOWLY"]}}]}), None).await.expect(200);
                row = on["tools"][0]["assignment_id"].clone();
                lines.push(("assigned".to_owned(), "FAKE".to_owned()));
            }
            if from == Inactive {
                put(test, &path, json!({"tool_ids": []}), None).await.expect(200);
                lines.push(("unassigned".to_owned(), "FAKE".to_owned()));
            }
            assert_eq!(history(test, &id).await, lines, "{at}");
            let before = test.get(&path).await.expect(200);
            let (reply, expected) = match step {
                Step::Nothing => (put(test, &path, json!({"tool_ids": null}), None).await, 200),
                Step::List(list) => (put(test, &path, json!({"tool_ids": list}), None).await, 200),
                Step::Add(item) => (test.post(&format!("{path}/tools"), item).await, 200),
                Step::Remove => (test.delete(&format!("{path}/tools/{FAKE}")).await, if from == Active { 200 } else { 404 }),
                Step::Delete => (test.delete(&path).await, 200),
            };
            let after = reply.expect(expected);
            if to == Deleted {
                lines.push(("deleted".to_owned(), "-".to_owned()));
                test.get(&path).await.expect(404);
            } else {
                let now = test.get(&path).await.expect(200);
                assert_eq!(now["tools"].as_array().unwrap().len(), usize::from(to == Active), "{at}: {after}");
                let moved = i64::from(line.is_some());
                assert_eq!(now["version"].as_i64(), before["version"].as_i64().map(|version| version + moved), "{at}");
                if from != NotAssigned && to == Active {
                    assert_eq!(now["tools"][0]["assignment_id"], row, "{at}: the same row");
                    let kept = now["tools"][0]["priority"] == 3 && now["tools"][0]["configuration"] == json!({"deny": ["SLOWLY"]});
                    let set = now["tools"][0]["priority"] == 7 && now["tools"][0]["permissions"]["access"] == "read_only";
                    assert!(kept || set, "{at}: {now}");
                }
                let left = toolset(test, &id, json!({})).await;
                let off = left["left_out"].as_array().unwrap().iter().any(|left| left["reason"]["code"] == "switched_off");
                assert_eq!(off, to == Inactive, "{at}: {left}");
            }
            lines.extend(line.map(|line| (line.to_owned(), "FAKE".to_owned())));
            assert_eq!(history(test, &id).await, lines, "{at}");
        }
        let page = test.get("/agents/3/history?limit=1").await.expect(200);
        let line = &page["history"][0];
        assert_eq!((&line["change"], &line["before"], &line["after"]["is_active"]), (&json!("assigned"), &Value::Null, &json!(true)));
        let next = test.get(&format!("/agents/3/history?limit=1&cursor={}", page["cursor"].as_str().unwrap())).await.expect(200);
        assert_eq!((&next["history"][0]["change"], &next["cursor"]), (&json!("created"), &Value::Null));
    }

    async fn a_list_that_does_not_resolve_changes_nothing(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let agent = make(test, "a", json!({"tool_ids": ["fake"]})).await;
        assert_eq!(agent["tools"][0]["id"], FAKE);
        let before = test.get("/agents/1").await.expect(200);
        let body = json!({"name": "b", "configuration": {"x": 1}, "tool_ids": [FAKE, -12345, 17, "github", "nothing", {"id": "fake", "config": {"deny": ["NO_SUCH"]}}]});
        let refused = put(test, "/agents/1", body, None).await.expect(422);
        let rejected: Vec<(Value, &str)> = refused["detail"]["rejected"].as_array().unwrap().iter()
            .map(|problem| (problem["id"].clone(), problem["reason"].as_str().unwrap())).collect();
        assert_eq!(rejected, [
            (json!(-12345), "unknown_app"),
            (json!(17), "unknown_app"),
            (json!("github"), "not_connected"),
            (json!("nothing"), "unknown_app"),
            (json!("fake"), "invalid_config"),
        ]);
        assert_eq!(test.get("/agents/1").await.expect(200), before);
        test.post("/agents/1/tools", json!({"id": "github"})).await.expect(422);
        test.post("/agents", json!({"name": "c", "agent_type": "x", "tool_ids": ["github"]})).await.expect(422);
        let bulk = json!([{"name": "d", "agent_type": "x", "tool_ids": ["fake"]}, {"name": "e", "agent_type": "x", "tool_ids": ["github"]}]);
        test.post("/agents/bulk", bulk).await.expect(422);
        let bulk = json!([{"name": "d", "agent_type": "x"}, {"name": "a", "agent_type": "x"}]);
        test.post("/agents/bulk", bulk).await.expect(409);
        assert_eq!(test.get("/agents").await.expect(200).as_array().unwrap().len(), 1);
        for bad in [
            json!({"name": ""}), json!({"status": "asleep"}), json!({"tool_mode": "all"}), json!({"tool_ids": 1}), json!({"max_concurrent_tasks": 0}),
            json!({"tool_configs": [{"type": "gateway"}]}), json!({"tool_ids": [null]}), json!({"tool_ids": [{"id": "fake", "config": []}]}),
        ] {
            put(test, "/agents/1", bad, None).await.expect(422);
        }
        put(test, "/agents/1", json!({"skill_ids": [3]}), None).await.expect(404);
        assert_eq!(test.get("/agents/1").await.expect(200), before);
        assert_eq!(history(test, "1").await.len(), 2);
    }

    async fn of_two_changes_of_one_version_one_wins(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        make(test, "a", json!({})).await;
        for round in 0..5 {
            let read = test.get("/agents/1").await;
            let version = read.headers["etag"].to_str().unwrap().to_owned();
            let list = if round % 2 == 0 { json!(["fake"]) } else { json!([]) };
            let changes = (0..6).map(|number| put(test, "/agents/1", json!({"tool_ids": list, "description": format!("{round} {number}")}), Some(&version)));
            let replies = futures_util::future::join_all(changes).await;
            let statuses: Vec<u16> = replies.iter().map(|reply| reply.status.as_u16()).collect();
            assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
            assert!(statuses.iter().all(|status| [200, 412].contains(status)), "{statuses:?}");
        }
        // Without a version the last one wins, and none fails.
        let changes = (0..6).map(|number| put(test, "/agents/1", json!({"tool_ids": [{"id": "fake", "priority": number + 1}]}), None));
        let replies = futures_util::future::join_all(changes).await;
        assert!(replies.iter().all(|reply| reply.status == 200));
        let stale = put(test, "/agents/1", json!({"name": "z"}), Some("\"1\"")).await.expect(412);
        assert!(stale["detail"]["version"].as_i64().unwrap() > 5, "{stale}");
        put(test, "/agents/1", json!({"name": "z"}), Some("*")).await.expect(200);
        put(test, "/agents/1", json!({"name": "y"}), Some("nonsense")).await.expect(412);
    }

    async fn an_app_whose_authorization_failed_is_refused(test: &Test) {
        let fake = Fake::start().await;
        let waiting = test.post("/tools/connections", crate::support::fake_connection("main", &json!({"auth_scheme": "api_key"}))).await.expect(200);
        make(test, "a", json!({"tool_ids": ["fake"]})).await;
        let id: uuid::Uuid = waiting["connection"]["id"].as_str().unwrap().parse().unwrap();
        let sql = "update gateway_connections set reason = 'The person declined.' where id = $1";
        test.yard.db.execute(sql, store::args![id]).await.unwrap();
        let tool = test.get("/agents/1").await.expect(200)["tools"][0].take();
        assert_eq!((&tool["status"], &tool["reason"]["code"], &tool["app_type"]), (&json!("failed"), &json!("failed"), &json!("EXTERNAL")));
        assert!(tool["reason"]["message"].as_str().unwrap().ends_with("Reason: The person declined."), "{tool}");
        let refused = test.post("/agents", json!({"name": "b", "agent_type": "x", "tool_ids": ["fake"]})).await.expect(422);
        assert_eq!(refused["detail"]["rejected"][0]["reason"], "failed");
        put(test, "/agents/1", json!({"tool_ids": ["fake"]}), None).await.expect(200);
        test.delete(&format!("/tools/connections/{id}")).await.expect(204);
        test.connect_fake(&fake, "main").await;
        assert_eq!(test.get("/agents/1").await.expect(200)["tools"][0]["status"], "active");
    }

    async fn assignments_are_told_by_day(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let day = std::time::Duration::from_hours(24);
        make(test, "a", json!({"tool_ids": ["fake"]})).await;
        make(test, "b", json!({"tool_ids": ["fake"]})).await;
        test.clock.advance(day);
        put(test, "/agents/2", json!({"tool_ids": []}), None).await.expect(200);
        test.clock.advance(day);
        test.delete("/agents/1").await.expect(200);
        let told = test.get("/agents/assignments?since=3d").await.expect(200);
        let totals: Vec<Value> = told["days"].as_array().unwrap().iter().map(|day| json!([day["assigned"], day["unassigned"], day["active"]])).collect();
        assert_eq!(totals, [json!([0, 0, 0]), json!([2, 0, 2]), json!([0, 1, 1]), json!([0, 1, 0])]);
        assert_eq!(told["days"][1]["by_app"], json!([{"app_name": "FAKE", "assigned": 2, "unassigned": 0, "active": 2}]));
        assert_eq!(told["days"][2]["by_agent"][1], json!({"agent_id": 2, "assigned": 0, "unassigned": 1, "active": 0}));
        let of_one = test.get("/agents/assignments?since=2d&agent_id=2&app_name=fake").await.expect(200);
        assert_eq!(of_one["days"][0]["active"], 1);
        test.get("/agents/assignments?app_name=nothing").await.expect(404);
        test.get("/agents/assignments?agent_id=9").await.expect(404);
        test.get("/agents/assignments?since=9999d").await.expect(422);
    }

    async fn a_key_for_one_agent_opens_nothing_else(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        make(test, "ours", json!({"tool_ids": ["fake"]})).await;
        make(test, "theirs", json!({"tool_ids": ["fake"]})).await;
        let project = test.yard.accounts.find_project("default").await.unwrap().id;
        let order = |agents: Value| json!({"key": {"project_id": project, "role": "owner", "agents": agents}});
        let missing = test.admin(Method::POST, "/admin/keys", Some(order(json!(["our"])))).await.detail(404);
        assert_eq!(missing, "Agent `our` not found. Did you mean `ours`?");
        test.admin(Method::POST, "/admin/keys", Some(order(json!([])))).await.expect(422);
        let made = test.admin(Method::POST, "/admin/keys", Some(order(json!(["ours"])))).await.expect(200);
        assert_eq!(made["key"]["agents"], json!(["ours"]));
        let listed = test.admin(Method::GET, "/admin/keys", None).await.expect(200);
        assert_eq!((listed["count"].clone(), listed["keys"][1]["agents"].clone()), (json!(2), json!(["ours"])));
        let key = made["secret"].as_str().unwrap();

        let list = "tools.native.fake.QUERY_THINGS.main";
        test.post_as(key, "/agents/1/call", crate::support::call_body(list, &json!({"first": 1}))).await.expect(200);
        test.post_as(key, "/agents/1/toolset", json!({})).await.expect(200);
        let seen = test.get_as(key, "/agents").await.expect(200);
        assert_eq!(seen.as_array().unwrap().iter().map(|agent| &agent["name"]).collect::<Vec<_>>(), ["ours"]);
        test.get_as(key, "/agents/1/history").await.expect(200);
        assert_eq!(test.get_as(key, "/agents/assignments").await.expect(200)["days"][29]["active"], 1);
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let speak = async |path: &str| {
            let request = http::Request::post(path).header("authorization", format!("Bearer {key}"));
            let request = request.header("content-type", "application/json").header("accept", "application/json, text/event-stream");
            test.send(request.body(hello.to_string().into()).unwrap()).await.status.as_u16()
        };
        assert_ne!(speak("/mcp/agents/1").await, 404);

        for path in ["/agents/2", "/agents/2/status", "/agents/2/history"] {
            test.get_as(key, path).await.expect(404);
        }
        test.post_as(key, "/agents/2/toolset", json!({})).await.expect(404);
        test.post_as(key, "/agents/2/call", crate::support::call_body(list, &json!({"first": 1}))).await.expect(404);
        assert_eq!(speak("/mcp/agents/2").await, 404);
        assert_eq!(speak("/mcp").await, 403);
        for path in ["/tools/calls", "/tools/connected", "/triggers/deliveries", "/workflows/runs"] {
            assert!(test.get_as(key, path).await.detail(403).starts_with("This key acts for its agents only"), "{path}");
        }
        test.call_as(key, list, json!({"first": 1})).await.expect(403);
        test.post_as(key, "/tools/ops/list_connections", json!({})).await.expect(403);
        test.post_as(key, "/agents", json!({"name": "more", "agent_type": "x"})).await.expect(403);
        let own = json!({"tool_mode": "inherit"});
        test.request(Method::PUT, "/agents/1", Some(format!("ApiKey {key}")), Some(own)).await.expect(403);

        // A platform op among the agent's tools is asked of us by ourselves.
        put(test, "/agents/1", json!({"tool_configs": [{"type": "platform", "op": "list_connections", "permission": "allow"}]}), None).await.expect(200);
        let called = test.post_as(key, "/agents/1/call", crate::support::call_body("list_connections", &json!({}))).await.expect(200);
        assert_eq!(called["call"]["status"]["code"], "STATUS_CODE_OK", "{called}");
        test.delete("/agents/1").await.expect(200);
        assert_eq!(test.get_as(key, "/agents").await.expect(200), json!([]));
    }

    async fn what_is_disconnected_is_suspended_and_comes_back(test: &Test) {
        let fake = Fake::start().await;
        let first = test.connect_fake(&fake, "main").await["id"].as_str().unwrap().to_owned();
        make(test, "a", json!({"tool_ids": ["fake"]})).await;
        let list = "tools.native.fake.QUERY_THINGS.main";
        let state = async |name: &str, status: u16| {
            let agent = test.get("/agents/1").await.expect(200);
            let listed = refs(&toolset(test, "1", json!({})).await);
            assert_eq!(listed.contains(&name.to_owned()), status == 200, "{listed:?}");
            call(test, "1", name, json!({"first": 1})).await.expect(status);
            tools(&agent)
        };
        let lines = history(test, "1").await;
        assert_eq!(state(list, 200).await, [("FAKE".to_owned(), true, None)]);
        test.post(&format!("/tools/connections/{first}/revoke"), json!({})).await.expect(200);
        assert_eq!(state(list, 403).await, [("FAKE".to_owned(), false, Some("disabled".to_owned()))]);
        let apps = test.get("/api/tools/connected").await.expect(200);
        assert_eq!((&apps["apps"][0]["app_name"], &apps["apps"][0]["status"], &apps["apps"][0]["id"]), (&json!("FAKE"), &json!("disabled"), &json!(FAKE)));
        // Suspended is still assigned: saving the same list keeps it. Nobody else is given it.
        put(test, "/agents/1", json!({"tool_ids": [FAKE]}), None).await.expect(200);
        let refused = test.post("/agents", json!({"name": "late", "agent_type": "x", "tool_ids": [FAKE]})).await.expect(422);
        assert_eq!(refused["detail"]["rejected"][0]["reason"], "disabled");
        test.delete(&format!("/tools/connections/{first}")).await.expect(204);
        assert_eq!(state(list, 403).await, [("FAKE".to_owned(), false, Some("not_connected".to_owned()))]);
        assert_eq!(test.get("/tools/connected").await.expect(200)["total"], 0);
        let refused = put(test, "/agents/1", json!({"tool_ids": [FAKE]}), None).await.expect(422);
        assert_eq!(refused["detail"]["rejected"][0]["reason"], "not_connected");
        assert_eq!(test.get("/agents/1").await.expect(200)["tools"].as_array().unwrap().len(), 1);

        // A form that waits for a person is pending.
        let waiting = test.post("/tools/connections", crate::support::fake_connection("second", &json!({"auth_scheme": "api_key"}))).await.expect(200);
        assert_eq!(state(list, 403).await, [("FAKE".to_owned(), false, Some("pending".to_owned()))]);
        assert_eq!(test.get("/tools/connected").await.expect(200)["apps"][0]["status"], "pending");
        put(test, "/agents/1", json!({"tool_ids": [FAKE]}), None).await.expect(200);
        test.delete(&format!("/tools/connections/{}", waiting["connection"]["id"].as_str().unwrap())).await.expect(204);
        let again = test.connect_fake(&fake, "main").await["id"].as_str().unwrap().to_owned();
        assert_eq!(state(list, 200).await, [("FAKE".to_owned(), true, None)]);
        assert_eq!(history(test, "1").await, lines, "nothing was written");
        assert_eq!(test.get(&format!("/tools/connections/{again}/usage")).await.expect(200)["usage"]["agents"], 1);
    }

    async fn what_is_listed_is_what_runs(test: &Test) {
        let fake = Fake::start().await;
        let actions = [
            ("GET_A_THING", json!({"owner": "o", "path": "p"})),
            ("MAKE_A_THING", json!({"title": "t"})),
            ("SHAPE_A_THING", json!({"id": 1, "text": "t"})),
            ("FORM_A_THING", json!({"amount": 1})),
            ("QUERY_THINGS", json!({"first": 1})),
        ];
        make(test, "a", json!({})).await;
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % below).unwrap()
        };
        let (mut ran, mut refused) = (0, 0);
        for round in 0..30 {
            for row in test.post("/tools/connections/query", json!({})).await.expect(200)["connections"].as_array().unwrap() {
                test.delete(&format!("/tools/connections/{}", row["id"].as_str().unwrap())).await.expect(204);
            }
            for slug in ["main", "other"] {
                let made = if next(4) > 0 { Some(test.connect_fake(&fake, slug).await) } else { None };
                if let Some(made) = made.filter(|_| next(4) == 0) {
                    test.post(&format!("/tools/connections/{}/revoke", made["id"].as_str().unwrap()), json!({})).await.expect(200);
                }
            }
            let mut some = |of: &[&str]| -> Vec<String> { of.iter().filter(|_| next(3) == 0).map(|key| (*key).to_owned()).collect() };
            let keys: Vec<&str> = actions.iter().map(|(key, _)| *key).collect();
            let (allow, deny, denied, asked, configured) = (some(&keys), some(&keys), some(&keys), some(&keys), some(&keys));
            let mut config = json!({"deny": deny});
            if next(3) == 0 { config["allow"] = json!(allow); }
            if next(3) == 0 { config["access"] = json!("read_only"); }
            if next(3) == 0 { config["connection"] = json!(["main", "other"][next(2)]); }
            config["permission"] = [json!(null), json!("ask"), json!("deny"), json!(null), json!("allow")][next(5)].clone();
            let permissions = ["allow", "ask", "deny"];
            let configs: Vec<Value> = configured.iter().map(|key| {
                let (slug, permission) = (["main", "other"][next(2)], permissions[next(3)]);
                json!({"type": "gateway", "provider": "native", "integration": "fake", "action": key, "connection": slug, "permission": permission})
            }).collect();
            let (mode, status) = (["explicit", "inherit"][next(2)], if next(8) == 0 { "inactive" } else { "active" });
            let body = json!({"tool_mode": mode, "status": status, "tool_configs": configs});
            put(test, "/agents/1", body, None).await.expect(200);
            if next(3) > 0 && test.get("/tools/connected").await.expect(200)["total"] != 0 {
                put(test, "/agents/1", json!({"tool_ids": [{"id": "fake", "config": config}]}), None).await.expect(200);
            } else if next(2) > 0 {
                put(test, "/agents/1", json!({"tool_ids": []}), None).await.expect(200);
            }
            let rules: Vec<Value> = denied.iter().map(|key| json!({"pattern": format!("*.{key}.*"), "permission": "deny"}))
                .chain(asked.iter().map(|key| json!({"pattern": format!("*.{key}.*"), "permission": "ask"}))).collect();
            project_says(test, json!(rules)).await;

            let listed = toolset(test, "1", json!({})).await;
            let word = |name: &str| listed["tools"].as_array().unwrap().iter().find(|tool| tool["call_ref"] == name).map(|tool| tool["permission"].clone());
            for (key, arguments) in &actions {
                for slug in ["main", "other"] {
                    let name = format!("tools.native.fake.{key}.{slug}");
                    let before = fake.seen().len();
                    let mut arguments = arguments.clone();
                    if *key == "MAKE_A_THING" { arguments["title"] = json!(format!("{round} {slug}")); }
                    let reply = call(test, "1", &name, arguments).await;
                    let status = reply.status.as_u16();
                    let at = format!("round {round}, {name}: {status} {}\n{listed:#}", reply.text);
                    match word(&name) {
                        Some(word) if word == "allow" => assert_eq!((status, fake.seen().len()), (200, before + 1), "{at}"),
                        Some(_) => assert_eq!((status, fake.seen().len()), (202, before), "{at}"),
                        None => assert_eq!((status, fake.seen().len()), (403, before), "{at}"),
                    }
                    if status == 403 { refused += 1 } else { ran += 1 }
                }
            }
        }
        assert!(ran > 20 && refused > 20, "{ran} ran, {refused} were refused: the states are too much alike");
    }

    async fn a_name_that_cannot_be_read_back_is_found_in_the_list(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "long-".repeat(12).trim_end_matches('-')).await;
        make(test, "a", json!({"tool_ids": ["fake"]})).await;
        let found = toolset(test, "1", json!({"format": "openai"})).await;
        let names = found["names"].as_object().unwrap();
        let (name, _) = names.iter().find(|(_, call_ref)| call_ref.as_str().unwrap().contains(".GET_A_THING.")).unwrap();
        assert!(name.len() <= 64 && !name.ends_with("long"), "{name}");
        assert_eq!(Test::content(call(test, "1", name, json!({"owner": "o", "path": "p"})).await)["successful"], true);
        let forged = format!("{}0000000000000000", &name[..name.len() - 16]);
        assert_eq!(call(test, "1", &forged, json!({})).await.expect(403)["detail"]["reason"], "other_connection");
    }

    async fn an_agent_calls_by_ref_and_by_name_and_leaves_its_mark(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        test.post("/simple/workflows/", json!({"workflow": {"slug": "say", "data": {"kind": "echo"}}})).await.expect(200);
        let configs = json!([
            {"type": "reference", "slug": "say", "name": "tell"},
            {"type": "reference", "slug": "gone"},
            {"type": "platform", "op": "find_capabilities"},
            {"type": "platform", "op": "create_schedule"},
            {"type": "platform", "op": "query_spans"},
            {"type": "client", "name": "pick"},
            {"type": "gateway", "provider": "native", "integration": "fake", "action": "MAKE_A_THING", "connection": "main", "permission": "ask"},
        ]);
        let config = json!({"allow": ["GET_A_THING", "MAKE_A_THING"]});
        make(test, "a", json!({"tool_configs": configs, "tool_ids": [{"id": "fake", "config": config}]})).await;
        let found = toolset(test, "1", json!({"format": "anthropic"})).await;
        assert_eq!(refs(&found), [
            "workflow.variant.say", "tools.agenta.discover_tools", "tools.agenta.create_schedule",
            "tools.native.fake.MAKE_A_THING.main", "tools.native.fake.GET_A_THING.main",
        ]);
        assert_eq!((&found["definitions"][0]["name"], &found["names"]["tell"]), (&json!("tell"), &json!("workflow.variant.say")));
        let left: Vec<(&str, &str)> = found["left_out"].as_array().unwrap().iter()
            .map(|left| (left["tool"].as_str().unwrap(), left["reason"]["code"].as_str().unwrap())).collect();
        assert_eq!(left[..3], [("workflow.variant.gone", "unknown_workflow"), ("tools.agenta.query_spans", "unknown_op"), ("pick", "runs_elsewhere")]);
        assert!(left[3..].iter().all(|(_, reason)| *reason == "not_allowed"), "{left:?}");

        for name in ["tell", "workflow.variant.say", "workflow__variant__say"] {
            assert_eq!(Test::content(call(test, "1", name, json!({"x": 1})).await), json!({"x": 1}), "{name}");
        }
        let capabilities = Test::content(call(test, "1", "tools.agenta.find_capabilities", json!({"use_cases": ["make a fake thing"]})).await);
        assert_eq!(capabilities["capabilities"][0]["tool"]["action"], "MAKE_A_THING");
        assert_eq!(call(test, "1", "tools.agenta.list_schedules", json!({})).await.expect(403)["detail"]["reason"], "not_a_tool");
        assert_eq!(call(test, "1", "tools.agenta.query_spans", json!({})).await.expect(404)["detail"]["reason"], "unknown_op");
        assert_eq!(call(test, "1", "workflow.variant.gone", json!({})).await.expect(404)["detail"]["reason"], "unknown_workflow");
        assert_eq!(call(test, "1", "tools.native.fake.NO_SUCH.main", json!({})).await.expect(404)["detail"]["reason"], "unknown_action");
        assert_eq!(call(test, "1", "tools.native.github.X.main", json!({})).await.expect(403)["detail"]["reason"], "not_assigned");
        call(test, "1", "nonsense", json!({})).await.expect(400);

        let made = "tools.native.fake.MAKE_A_THING.main";
        let waiting = call(test, "1", made, json!({"title": "x"})).await.expect(202);
        let id = waiting["approval"]["id"].as_str().unwrap();
        test.post(&format!("/tools/approvals/{id}"), json!({"decision": "approve"})).await.expect(200);
        let seen = fake.seen().len();
        assert_eq!(Test::content(call(test, "1", made, json!({"title": "x"})).await)["successful"], true);
        assert_eq!(fake.seen().len(), seen + 1);
        // Without the agent the project's own word holds, which says nothing.
        test.call(made, json!({"title": "x"})).await.expect(200);
        let calls = test.get("/tools/calls?limit=100").await.expect(200);
        let refused = calls["calls"].as_array().unwrap().iter().filter(|call| call["message"].as_str().is_some_and(|text| text.contains("not assigned"))).count();
        assert_eq!(refused, 1, "{calls}");
        // Of two names of one op the stricter word holds for both.
        let op = |op: &str, permission: &str| json!({"type": "platform", "op": op, "permission": permission});
        put(test, "/agents/1", json!({"tool_configs": [op("find_capabilities", "allow"), op("discover_tools", "deny")]}), None).await.expect(200);
        assert_eq!(call(test, "1", "find_capabilities", json!({})).await.expect(403)["detail"]["reason"], "denied_by_agent");
        let denied = put(test, "/agents/1", json!({"tool_ids": [{"id": "fake", "config": {"permission": "deny"}}]}), None).await.expect(200);
        assert_eq!(tools(&denied), [("FAKE".to_owned(), false, Some("denied_by_agent".to_owned()))]);
        put(test, "/agents/1", json!({"status": "inactive", "tool_configs": configs}), None).await.expect(200);
        assert_eq!(call(test, "1", "tell", json!({})).await.expect(403)["detail"]["reason"], "agent_not_active");
        assert_eq!(toolset(test, "1", json!({})).await["count"], 0);
    }

    async fn inherited_apps_follow_the_connections(test: &Test) {
        let fake = Fake::start().await;
        make(test, "a", json!({"tool_mode": "inherit"})).await;
        make(test, "b", json!({})).await;
        assert_eq!(toolset(test, "1", json!({})).await["total"], 0);
        test.connect_fake(&fake, "main").await;
        assert_eq!(toolset(test, "1", json!({})).await["total"], 7);
        assert_eq!(toolset(test, "2", json!({})).await["total"], 0, "an explicit agent without apps has no tools");
        // Switching off the last app does not bring all of them back.
        put(test, "/agents/1", json!({"tool_ids": ["fake"]}), None).await.expect(200);
        put(test, "/agents/1", json!({"tool_ids": []}), None).await.expect(200);
        let off = toolset(test, "1", json!({})).await;
        assert_eq!((&off["total"], &off["left_out"][0]["reason"]["code"]), (&json!(0), &json!("switched_off")));
        assert_eq!(call(test, "1", "tools.native.fake.GET_A_THING.main", json!({})).await.expect(403)["detail"]["reason"], "switched_off");
    }

    async fn a_prompt_picks_and_a_name_is_always_kept(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        // An app that needs no account is connected by assigning it.
        let agent = make(test, "a", json!({"tool_ids": [{"id": "fake", "priority": 1}, "hacker-news"]})).await;
        assert_eq!(tools(&agent), [("FAKE".to_owned(), true, None), ("HACKER-NEWS".to_owned(), true, None)]);
        let found = toolset(test, "1", json!({"prompt": "send the form", "limit": 1})).await;
        assert_eq!(refs(&found), ["tools.native.fake.FORM_A_THING.main"]);
        assert!(found["tools"][0]["score"].as_f64().unwrap() > 0.0);
        let found = toolset(test, "1", json!({"prompt": "send the form, then FAKE_SLOWLY and hacker-news.SEARCH", "limit": 1, "excluded": true})).await;
        let mut kept = refs(&found);
        kept.sort();
        assert_eq!(kept, ["tools.native.fake.SLOWLY.main", "tools.native.hacker-news.SEARCH.hacker-news-main"]);
        assert_eq!(found["total"], json!(found["left_out"].as_array().unwrap().len() + 2));
        assert_eq!(found["left_out"][0]["reason"]["code"], "over_limit");
        assert!(refs(&toolset(test, "1", json!({"limit": 7})).await).iter().all(|name| name.contains(".fake.")), "priority comes first");
        for format in ["openai", "anthropic", "gemini", "mcp"] {
            let found = toolset(test, "1", json!({"limit": 3, "format": format})).await;
            for definition in found["definitions"].as_array().unwrap() {
                definitions::format::validate(format.parse().unwrap(), definition).unwrap();
            }
        }
        test.post("/agents/1/toolset", json!({"format": "x"})).await.expect(422);
        // A key that may change agents and not connections cannot connect by assigning.
        let narrow = test.key("default", Role::Editor, Some(vec![kernel::Permission::EditAgents, kernel::Permission::ViewAgents])).await;
        let refused = test.post_as(&narrow, "/agents/1/tools", json!({"id": "wikipedia"})).await.expect(422);
        assert!(refused["detail"]["rejected"][0]["message"].as_str().unwrap().contains("edit_tools"), "{refused}");
    }

    async fn agents_are_made_found_and_counted(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let bulk = json!([
            {"name": "Ann", "agent_type": "support", "description": "Answers 100% of mails", "tool_ids": [FAKE], "tags": ["x"], "configuration": {"a": 1, "b": {"c": 2}}},
            {"name": "Bob", "agent_type": "sales", "priority_level": "high", "job_title": "Seller", "auto_start": true, "max_concurrent_tasks": 2},
            {"name": "Tmp", "agent_type": "ephemeral"},
        ]);
        let made = test.post("/api/agents/bulk", bulk).await.expect(200);
        assert_eq!((&made[0]["id"], &made[2]["id"], tools(&made[0]).len()), (&json!(1), &json!(3), 1));
        let names = async |query: &str| {
            let found = test.get(&format!("/api/agents/{query}")).await.expect(200);
            found.as_array().unwrap().iter().map(|agent| agent["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("").await, ["Ann", "Bob"]);
        assert_eq!(names("?agent_type=ephemeral").await, ["Tmp"]);
        assert_eq!(names("?search=ann").await, ["Ann"]);
        assert_eq!(names("?search=100%25").await, ["Ann"]);
        assert_eq!(names("?search=%25").await, ["Ann"]);
        assert!(names("?search=_nn").await.is_empty());
        assert_eq!(names("?priority_level=high").await, ["Bob"]);
        assert_eq!(names("?skip=1&limit=1").await, ["Bob"]);
        assert_eq!(names("?status=active&agent_type=sales").await, ["Bob"]);
        test.get("/agents?limit=0").await.expect(422);
        test.get("/agents?skip=-1").await.expect(422);
        let listed = test.get("/agents").await.expect(200);
        assert_eq!(listed[0], test.get("/agents/1").await.expect(200));
        assert_eq!(listed[0], test.get(&format!("/agents/{}", listed[0]["public_id"].as_str().unwrap())).await.expect(200));

        let changed = put(test, "/agents/1", json!({"configuration": {"b": 3}, "description": "Reads", "status": "training"}), None).await.expect(200);
        assert_eq!((&changed["configuration"], &changed["status"], &changed["version"]), (&json!({"a": 1, "b": 3}), &json!("training"), &json!(2)));
        assert_eq!(put(test, "/agents/1", json!({"name": "Bob"}), None).await.expect(409)["detail"]["conflict"]["name"], "Bob");
        test.post("/agents", json!({"name": "Ann", "agent_type": "x"})).await.expect(409);
        let line = test.get("/agents/1/history?limit=1").await.expect(200)["history"][0].take();
        assert_eq!((&line["before"]["status"], &line["after"]["status"], &line["after"]["name"]), (&json!("active"), &json!("training"), &Value::Null));
        let status = test.get("/agents/2/status").await.expect(200);
        assert_eq!((&status["agent_id"], &status["auto_start"], &status["max_concurrent_tasks"]), (&json!(2), &json!(true), &json!(2)));
        let stats = test.get("/agents/stats").await.expect(200);
        assert_eq!((&stats["total_agents"], &stats["active_agents"], &stats["agents_by_type"]["sales"]), (&json!(2), &json!(1), &json!(1)));
        assert_eq!(test.get("/agents/types").await.expect(200)["data"].as_array().unwrap().len(), 8);

        test.delete("/agents/2").await.expect(200);
        test.delete("/agents/2").await.expect(404);
        assert_eq!(make(test, "Bob", json!({})).await["id"], 4, "a number is never given twice");
        assert_eq!(history(test, "2").await, [("created".to_owned(), "-".to_owned()), ("deleted".to_owned(), "-".to_owned())]);
        test.get("/agents/x").await.expect(422);
        test.get("/agents/99").await.expect(404);
        let stranger = test.key("elsewhere", Role::Owner, None).await;
        test.get_as(&stranger, "/agents/1").await.expect(404);
        test.get_as(&stranger, "/agents/1/history").await.expect(404);
    }

    async fn apps_are_added_listed_and_removed(test: &Test) {
        let fake = Fake::start().await;
        assert_eq!(test.post("/api/tools/add-to-workspace", json!({"app_name": "fake"})).await.expect(200)["status"], "success");
        assert_eq!(test.post("/api/tools/add-to-workspace", json!({"app_name": "Fake"})).await.expect(200)["status"], "already_added");
        test.post("/tools/add-to-workspace", json!({"app_name": "nothing"})).await.expect(404);
        let agent = make(test, "a", json!({"tool_ids": ["fake"]})).await;
        assert_eq!(tools(&agent), [("FAKE".to_owned(), false, Some("not_connected".to_owned()))]);
        assert_eq!(test.get("/tools/workspace").await.expect(200)["apps"][0]["status"], "added");
        test.connect_fake(&fake, "main").await;
        let apps = test.get("/tools/connected").await.expect(200);
        let app = &apps["apps"][0];
        assert_eq!((&app["status"], &app["catalog_id"], &app["action_count"], &app["trigger_count"]), (&json!("active"), &json!("native.fake"), &json!(7), &json!(2)));
        let found = test.get("/tools/marketplace?search=made-up&limit=5").await.expect(200);
        assert_eq!((&found["total_apps"], &found["apps"][0]["is_connected"], &found["categories"]["data"]), (&json!(1), &json!(true), &json!(1)));
        assert!(test.get("/tools/marketplace?category=data").await.expect(200)["total_apps"].as_u64().unwrap() >= 1);
        test.get("/tools/marketplace?limit=0").await.expect(422);
        assert_eq!(test.get("/tools/stats").await.expect(200)["connected_apps"], 1);
        project_says(test, json!([{"pattern": "*.SLOWLY.*", "permission": "deny"}])).await;
        let actions = test.get("/api/tools/FAKE/actions?search=thing").await.expect(200);
        assert!(actions.as_array().unwrap().iter().all(|action| action["enabled"] == json!(action["name"] != "SLOWLY")), "{actions}");
        assert_eq!(test.get("/tools/github/actions?limit=1").await.expect(200)[0]["enabled"], false);
        assert_eq!(test.get("/tools/fake/triggers").await.expect(200).as_array().unwrap().len(), 2);
        test.get("/tools/nothing/actions").await.expect(404);
        test.delete("/tools/remove-from-workspace/fake").await.expect(200);
        test.delete("/tools/remove-from-workspace/fake").await.expect(404);
        assert_eq!(test.post("/tools/connections/query", json!({})).await.expect(200)["count"], 0);
        assert_eq!(tools(&test.get("/agents/1").await.expect(200)), [("FAKE".to_owned(), false, Some("not_connected".to_owned()))]);
    }
}
