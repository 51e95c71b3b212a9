//! `/mcp`: the tools of a project over the Model Context Protocol.

use std::time::{Duration, Instant};

use axum::body::Body;
use futures_util::StreamExt;
use http::{Method, Request};
use kernel::Role;
use serde_json::{Value, json};

use crate::support::{Database, Fake, Reply, Test, on_both};

const GET: &str = "tools__native__fake__GET_A_THING__main";
const MAKE: &str = "tools__native__fake__MAKE_A_THING__main";
const SLOWLY: &str = "tools__native__fake__SLOWLY__main";
const NEWEST: &str = "2026-07-28";

/// A request of the newest revision.
pub(crate) fn newest(method: &str, params: &Value, capabilities: &Value) -> (Value, Vec<(String, String)>) {
    let mut params = params.clone();
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(NEWEST);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    let mut headers = vec![("mcp-protocol-version".to_owned(), NEWEST.to_owned()), ("mcp-method".to_owned(), method.to_owned())];
    if let Some(name) = params["name"].as_str() {
        headers.push(("mcp-name".to_owned(), name.to_owned()));
    }
    (json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), headers)
}

pub(crate) fn request(path: &str, key: &str, headers: &[(String, String)], message: &Value) -> Request<Body> {
    let mut request = Request::builder().method(Method::POST).uri(path).header("authorization", format!("Bearer {key}"));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request.header("accept", "application/json, text/event-stream").body(Body::from(message.to_string())).unwrap()
}

async fn ask(test: &Test, path: &str, key: &str, method: &str, params: Value, capabilities: Value) -> Reply {
    let (message, headers) = newest(method, &params, &capabilities);
    let mut reply = test.send(request(path, key, &headers, &message)).await;
    // What takes longer than a moment comes as a stream that ends with the answer.
    if reply.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream") {
        reply.text = events(&reply.text).pop().unwrap().to_string();
    }
    reply
}

/// The result of a request of the newest revision, by the owner.
pub(crate) async fn result(test: &Test, path: &str, method: &str, params: Value) -> Value {
    let reply = ask(test, path, &test.owner, method, params, json!({})).await;
    // On a busy machine an answer can take more than a second, and is a stream then that ends with it.
    match events(&reply.text).pop() {
        Some(mut last) => last["result"].take(),
        None => reply.expect(200)["result"].take(),
    }
}

pub(crate) async fn call(test: &Test, name: &str, arguments: Value) -> Value {
    result(test, "/mcp", "tools/call", json!({"name": name, "arguments": arguments})).await
}

/// Begins a session of an older revision: its headers.
async fn session(test: &Test, version: &str, capabilities: Value) -> Vec<(String, String)> {
    let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}});
    let reply =
        test.send(request("/mcp", &test.owner, &[], &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))).await;
    let session = reply.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let result = reply.expect(200)["result"].take();
    assert_eq!(result["protocolVersion"], version);
    assert_eq!((&result["serverInfo"]["name"], &result["capabilities"]["tools"]["listChanged"]), (&json!("toolyard"), &json!(true)));
    vec![("mcp-session-id".to_owned(), session), ("mcp-protocol-version".to_owned(), version.to_owned())]
}

pub(crate) fn events(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| line.strip_prefix("data: ")).map(|data| serde_json::from_str(data).unwrap()).collect()
}

async fn ask_before(test: &Test, permission: &str) {
    let policy = json!({"permissions": {"rules": [{"pattern": "tools.native.fake.MAKE_*", "permission": permission}]}});
    test.request(Method::PUT, "/tools/permissions", Some(format!("ApiKey {}", test.owner)), Some(policy)).await.expect(200);
}

on_both! {
    async fn a_project_lists_and_calls_its_tools(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let schema = json!({"type": "object", "properties": {"who": {"type": "string"}}});
        let data = json!({"kind": "echo", "schemas": {"inputs": schema}});
        test.post("/simple/workflows", json!({"workflow": {"slug": "greet", "description": "Greets somebody.", "data": data}})).await.expect(200);
        let listed = result(test, "/mcp", "tools/list", json!({})).await;
        let tools = listed["tools"].as_array().unwrap();
        let named = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
        assert_eq!((&named(GET)["title"], &named(GET)["annotations"]["openWorldHint"]), (&json!("Fake: Get a thing"), &json!(true)));
        assert!(named(GET)["inputSchema"]["properties"]["owner"].is_object());
        let greet = named("workflow__variant__greet");
        assert_eq!((&greet["description"], &greet["inputSchema"]["properties"]), (&json!("Greets somebody."), &schema["properties"]));
        assert_eq!((&listed["resultType"], &listed["cacheScope"]), (&json!("complete"), &json!("private")));

        let read = call(test, GET, json!({"owner": "o", "path": "p"})).await;
        assert!(read.get("isError").is_none() && read["structuredContent"].is_object(), "{read}");
        let text: Value = serde_json::from_str(read["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, read["structuredContent"]);
        let greeted = call(test, "workflow__variant__greet", json!({"who": "you"})).await;
        assert_eq!(greeted["structuredContent"], json!({"who": "you"}));
        assert_eq!(test.get("/tools/calls").await.expect(200)["count"], 2, "calls over MCP are recorded like any other");
    }

    async fn an_agent_lists_and_calls_exactly_its_tools(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let config = json!({"deny": ["FAIL_A_THING"], "access": "full"});
        let made = json!({"name": "clerk", "agent_type": "custom", "tool_ids": [{"app_name": "FAKE", "config": config}]});
        let agent = test.post("/agents", made).await.expect(200);
        let path = format!("/mcp/agents/{}", agent["id"]);
        let listed = result(test, &path, "tools/list", json!({})).await;
        let names: Vec<&str> = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        let toolset = test.post(&format!("/agents/{}/toolset", agent["id"]), json!({})).await.expect(200);
        let expected: Vec<&str> = toolset["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected);
        let name = |part: &str| names.iter().find(|name| name.contains(part)).copied();
        assert_eq!(name("FAIL_A_THING"), None);

        let get = json!({"name": name("GET_A_THING").unwrap(), "arguments": {"owner": "o", "path": "p"}});
        let read = result(test, &path, "tools/call", get).await;
        assert!(read.get("isError").is_none() && read["structuredContent"].is_object(), "{read}");
        let fail = json!({"name": "tools.native.fake.FAIL_A_THING.main", "arguments": {"code": 404}});
        assert_eq!(result(test, &path, "tools/call", fail).await["isError"], true, "what was denied cannot be called either");
        let found = result(test, &format!("{path}?mode=search"), "tools/list", json!({})).await;
        assert_eq!(found["tools"].as_array().unwrap().len(), 3);

        let other = test.key("other", Role::Owner, None).await;
        assert_eq!(ask(test, &path, &other, "tools/list", json!({}), json!({})).await.status, 404);
        assert_eq!(ask(test, "/mcp/agents/999", &test.owner, "tools/list", json!({}), json!({})).await.status, 404);
    }

    async fn ops_that_need_a_run_are_not_offered_to_clients_without_one(test: &Test) {
        let ops = ["list_schedules", "create_schedule", "rename_agent", "test_run"].map(|op| json!({"type": "platform", "op": op}));
        let agent = test.post("/agents", json!({"name": "clerk", "agent_type": "custom", "tool_configs": ops})).await.expect(200);
        let path = format!("/mcp/agents/{}", agent["id"]);
        let listed = result(test, &path, "tools/list", json!({})).await;
        let names: Vec<&str> = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["list_schedules"]);
        let read = result(test, &path, "tools/call", json!({"name": "list_schedules", "arguments": {}})).await;
        assert_eq!(read["structuredContent"]["count"], 0, "{read}");
        let found = json!({"name": "find_tools", "arguments": {"use_cases": ["rename_agent"]}});
        let found = result(test, &format!("{path}?mode=search"), "tools/call", found).await;
        assert!(!found["structuredContent"].to_string().contains("rename_agent\",\"title"), "{found}");
    }

    async fn every_revision_is_spoken(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
            let headers = session(test, version, json!({})).await;
            let send = |message: Value| test.send(request("/mcp", &test.owner, &headers, &message));
            assert_eq!(send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await.status, 202);
            let read = json!({"name": GET, "arguments": {"owner": "o", "path": "p"}});
            let read = send(json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": read})).await.expect(200);
            assert!(read["id"] == "a" && read["result"]["structuredContent"].is_object() && read["result"].get("resultType").is_none(), "{read}");
            let unknown = send(json!({"jsonrpc": "2.0", "id": 2, "method": "server/discover"})).await.expect(200);
            assert_eq!(unknown["error"]["code"], -32601);
        }
        let found = result(test, "/mcp", "server/discover", json!({})).await;
        assert_eq!(found["supportedVersions"], json!([NEWEST, "2025-11-25", "2025-06-18", "2025-03-26"]));
        // The oldest knows batches, and needs not say which it is.
        let ping = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        let batch = test.send(request("/mcp", &test.owner, &[], &json!([ping(1), {"jsonrpc": "2.0", "method": "notifications/x"}, ping(2)]))).await;
        assert_eq!(batch.expect(200), json!([{"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": 2, "result": {}}]));
        let none = [("mcp-protocol-version".to_owned(), "2024-11-05".to_owned())];
        let refused = test.send(request("/mcp", &test.owner, &none, &ping(1))).await.expect(400);
        assert_eq!((&refused["error"]["code"], &refused["error"]["data"]["requested"]), (&json!(-32022), &json!("2024-11-05")));
    }

    async fn what_is_wrong_is_told_where_it_belongs(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let raw = |body: &'static str| {
            let request = Request::builder().method(Method::POST).uri("/mcp").header("authorization", format!("Bearer {}", test.owner));
            test.send(request.body(Body::from(body)).unwrap())
        };
        for (body, code) in [("{", -32700), ("[]", -32600), ("1", -32600), ("{}", -32600), (r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#, -32600)] {
            assert_eq!(raw(body).await.expect(400)["error"]["code"], code, "{body}");
        }
        for name in ["nothing", "tools__native__fake__NOTHING__main", "tools__native__fake__GET_A_THING__other", "tools__native__nothing__X__main", "workflow__variant__nothing", ""] {
            let refused = ask(test, "/mcp", &test.owner, "tools/call", json!({"name": name}), json!({})).await.expect(400);
            assert_eq!(refused["error"]["code"], -32602, "{name}: {refused}");
        }
        ask(test, "/mcp", &test.owner, "resources/list", json!({}), json!({})).await.expect(404);
        ask(test, "/mcp", &test.owner, "tools/list", json!({"cursor": "x"}), json!({})).await.expect(400);
        let wrong = call(test, GET, json!({"owner": 1})).await;
        assert!(wrong["isError"] == true && wrong["content"][0]["text"].as_str().unwrap().contains("path"), "{wrong}");
        test.post("/mcp?mode=other", json!({})).await.expect(422);
        let viewer = test.key("default", Role::Viewer, None).await;
        ask(test, "/mcp", &viewer, "tools/list", json!({}), json!({})).await.expect(403);
    }

    async fn pages_of_others_may_not_speak_and_strangers_are_shown_the_way(test: &Test) {
        let (message, mut headers) = newest("tools/list", &json!({}), &json!({}));
        headers.push(("origin".to_owned(), "https://evil.example".to_owned()));
        test.send(request("/mcp", &test.owner, &headers, &message)).await.expect(403);
        for origin in ["http://localhost:3000", "http://127.0.0.1:8665"] {
            headers.last_mut().unwrap().1 = origin.to_owned();
            test.send(request("/mcp", &test.owner, &headers, &message)).await.expect(200);
        }
        let refused = test.send(request("/mcp", "wrong", &[], &message)).await;
        let challenge = refused.headers["www-authenticate"].to_str().unwrap().to_owned();
        let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", test.yard.config.public_url);
        assert_eq!((refused.status.as_u16(), challenge), (401, format!("Bearer realm=\"toolyard\", error=\"invalid_token\", scope=\"run_tools\", resource_metadata=\"{metadata}\"")));
        for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
            let described = test.request(Method::GET, path, None, None).await.expect(200);
            assert_eq!(described["resource"], format!("{}/mcp", test.yard.config.public_url));
            assert_eq!(described["authorization_servers"], json!([test.yard.config.public_url]));
        }
    }

    async fn a_person_is_asked_where_the_client_can(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        ask_before(test, "ask").await;
        let before = fake.seen().len();
        let forms = json!({"elicitation": {}});
        let make = |title: &str, more: Value| {
            let mut params = json!({"name": MAKE, "arguments": {"title": title}});
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            ask(test, "/mcp", &test.owner, "tools/call", params, forms.clone())
        };
        let asked = make("a", json!({})).await.expect(200)["result"].take();
        let question = &asked["inputRequests"]["approval"];
        assert_eq!((&asked["resultType"], &question["method"]), (&json!("input_required"), &json!("elicitation/create")));
        assert!(question["params"]["message"].as_str().unwrap().contains(r#"{"title":"a"}"#), "{question}");
        assert_eq!(fake.seen().len(), before, "nothing runs while it waits");

        let answer = |action: &str, state: &Value| json!({"inputResponses": {"approval": {"action": action, "content": {"note": "go"}}}, "requestState": state});
        let state = &asked["requestState"];
        let forged = json!(format!("{}x", state.as_str().unwrap()));
        assert_eq!(make("a", answer("accept", &forged)).await.expect(400)["error"]["code"], -32602);
        let other = test.key("default", Role::Owner, None).await;
        let mut stolen = json!({"name": MAKE, "arguments": {"title": "a"}});
        stolen.as_object_mut().unwrap().extend(answer("accept", state).as_object().unwrap().clone());
        ask(test, "/mcp", &other, "tools/call", stolen, forms.clone()).await.expect(400);
        let later = make("a", answer("cancel", state)).await.expect(200)["result"].take();
        assert!(later["isError"] == true && later["structuredContent"]["status"] == "pending", "{later}");

        let made = make("a", answer("accept", state)).await.expect(200)["result"].take();
        assert!(made.get("isError").is_none(), "{made}");
        assert_eq!(fake.seen().len(), before + 1);
        let kept = test.get("/tools/approvals?status=used").await.expect(200);
        assert_eq!((&kept["count"], &kept["approvals"][0]["note"]), (&json!(1), &json!("go")));

        let asked = make("b", json!({})).await.expect(200)["result"].take();
        let denied = make("b", answer("decline", &asked["requestState"])).await.expect(200)["result"].take();
        assert!(denied["isError"] == true && denied["content"][0]["text"].as_str().unwrap().contains("denied"), "{denied}");
        assert_eq!(fake.seen().len(), before + 1);
    }

    async fn a_client_that_cannot_ask_is_told_whom_to_turn_to(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        ask_before(test, "ask").await;
        // The first cannot ask, the second may not approve.
        let runner = test.key("default", Role::Annotator, None).await;
        for (key, capabilities) in [(test.owner.clone(), json!({})), (runner, json!({"elicitation": {}}))] {
            let params = json!({"name": MAKE, "arguments": {"title": "a"}});
            let waits = ask(test, "/mcp", &key, "tools/call", params.clone(), capabilities.clone()).await.expect(200)["result"].take();
            let id = waits["structuredContent"]["approval_id"].as_str().unwrap().to_owned();
            let text = waits["content"][0]["text"].as_str().unwrap();
            assert!(waits["isError"] == true && text.contains(&format!("/tools/approvals/{id}")), "{waits}");
            test.post(&format!("/tools/approvals/{id}"), json!({"decision": "approve"})).await.expect(200);
            let made = ask(test, "/mcp", &key, "tools/call", params, capabilities).await.expect(200)["result"].take();
            assert!(made.get("isError").is_none(), "{made}");
        }
    }

    async fn three_tools_stand_for_all_in_search_mode(test: &Test) {
        let fake = Fake::start().await;
        let search = |name: &'static str, arguments: Value| async move {
            result(test, "/mcp?mode=search", "tools/call", json!({"name": name, "arguments": arguments})).await
        };
        let listed = result(test, "/mcp?mode=search", "tools/list", json!({})).await;
        let names: Vec<&str> = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["find_tools", "call_tool", "connect"]);

        let found = search("find_tools", json!({"use_cases": ["make a fake thing"]})).await;
        let first = &found["structuredContent"]["results"][0];
        assert!(first["tools"].as_array().unwrap().is_empty() && first["connect"][0]["integration"] == "fake", "{found}");
        let free = search("find_tools", json!({"use_cases": ["search hacker news"]})).await["structuredContent"].take();
        assert_eq!(free["results"][0]["tools"][0]["name"], "tools__native__hacker-news__SEARCH__hacker-news-main", "it needs no account");
        let link = search("connect", json!({"integration": "fake"})).await["structuredContent"].take();
        assert!(link["status"] == "waiting" && link["url"].as_str().unwrap().contains("/connect/"), "{link}");
        assert_eq!(search("connect", json!({"integration": "nothing"})).await["isError"], true);
        let runner = test.key("default", Role::Annotator, None).await;
        let connect = json!({"name": "connect", "arguments": {"integration": "fake"}});
        assert_eq!(ask(test, "/mcp?mode=search", &runner, "tools/call", connect, json!({})).await.expect(200)["result"]["isError"], true);

        test.connect_fake(&fake, "main").await;
        let found = search("find_tools", json!({"use_cases": ["make a fake thing", "read a fake thing"]})).await["structuredContent"].take();
        let (make, get) = (&found["results"][0]["tools"][0], &found["results"][1]["tools"][0]);
        assert_eq!((&make["name"], &get["name"]), (&json!(MAKE), &json!(GET)));
        assert!(make["input_schema"]["properties"]["title"].is_object());
        let made = search("call_tool", json!({"name": MAKE, "arguments": {"title": "x"}})).await;
        assert!(made.get("isError").is_none() && made["structuredContent"].is_object(), "{made}");
        assert_eq!(search("call_tool", json!({"name": "nothing"})).await["isError"], true);
        assert_eq!(search("connect", json!({"integration": "fake"})).await["structuredContent"]["status"], "ready");
        ask_before(test, "ask").await;
        let params = json!({"name": "call_tool", "arguments": {"name": MAKE, "arguments": {"title": "y"}}});
        let asked = ask(test, "/mcp?mode=search", &test.owner, "tools/call", params, json!({"elicitation": {}})).await.expect(200);
        assert_eq!(asked["result"]["resultType"], "input_required", "approvals reach through");
    }

    async fn a_long_list_has_pages(test: &Test) {
        let fake = Fake::start().await;
        for number in 0..29 {
            test.connect_fake(&fake, &format!("c{number:02}")).await;
        }
        let first = result(test, "/mcp", "tools/list", json!({})).await;
        let second = result(test, "/mcp", "tools/list", json!({"cursor": first["nextCursor"]})).await;
        let tools: Vec<&Value> = [&first, &second].into_iter().flat_map(|page| page["tools"].as_array().unwrap()).collect();
        let names: std::collections::HashSet<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!((first["tools"].as_array().unwrap().len(), tools.len(), names.len()), (200, 203, 203));
        assert!(second.get("nextCursor").is_none());
        assert!(tools[0]["description"].as_str().unwrap().ends_with("(connection `c00`)"), "which of several accounts it is");
    }

    async fn changes_are_announced(test: &Test) {
        let fake = Fake::start().await;
        let (message, headers) = newest("subscriptions/listen", &json!({"notifications": {"toolsListChanged": true}}), &json!({}));
        let old = session(test, "2025-06-18", json!({})).await;
        let mut get = request("/mcp", &test.owner, &old, &Value::Null);
        *get.method_mut() = Method::GET;
        let mut streams = [test.open(request("/mcp", &test.owner, &headers, &message)).await, test.open(get).await];
        let first = streams[0].next().await.unwrap();
        assert_eq!(events(&first)[0]["method"], "notifications/subscriptions/acknowledged");
        streams[1].next().await.unwrap();
        test.connect_fake(&fake, "main").await;
        for (number, stream) in streams.iter_mut().enumerate() {
            let told = tokio::time::timeout(Duration::from_secs(20), stream.next()).await.unwrap().unwrap();
            let told = events(&told).remove(0);
            assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
            assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], if number == 0 { json!(1) } else { Value::Null });
        }
        let mut more = Vec::new();
        for _ in 2..16 {
            more.push(test.open(request("/mcp", &test.owner, &headers, &message)).await);
        }
        assert_eq!(test.send(request("/mcp", &test.owner, &headers, &message)).await.status, 429);
        drop(more);
        let mut again = test.open(request("/mcp", &test.owner, &headers, &message)).await;
        assert!(again.next().await.is_some(), "a stream that is closed makes room");
    }

    async fn a_long_call_says_that_it_goes_on_and_can_be_ended(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let headers = session(test, "2025-11-25", json!({})).await;
        let slow = |id: u32, ms: u32| {
            let params = json!({"name": SLOWLY, "arguments": {"ms": ms}, "_meta": {"progressToken": "p"}});
            request("/mcp", &test.owner, &headers, &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
        };
        let reply = test.send(slow(1, 1500)).await;
        assert_eq!(reply.headers["content-type"], "text/event-stream");
        let told = events(&reply.text);
        assert_eq!((&told[0]["method"], &told[0]["params"]["progressToken"]), (&json!("notifications/progress"), &json!("p")));
        assert!(told.last().unwrap()["id"] == 1 && told.last().unwrap()["result"]["content"].is_array(), "{told:?}");

        let begun = Instant::now();
        let cancel = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
            // Another client of the same key may use the same id; it ends nothing of ours.
            test.send(request("/mcp", &test.owner, &session(test, "2025-11-25", json!({})).await, &message)).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            test.send(request("/mcp", &test.owner, &headers, &message)).await
        };
        let (reply, taken) = tokio::join!(test.send(slow(2, 20_000)), cancel);
        assert_eq!(taken.status, 202);
        assert!(begun.elapsed() > Duration::from_millis(1200) && begun.elapsed() < Duration::from_secs(15));
        assert!(events(&reply.text).iter().all(|event| event.get("result").is_none()), "{}", reply.text);
    }
}
