//! End users: whose account a call uses, sessions, and forgetting somebody.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::{Method, Request};
use kernel::Role;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::approvals::{ask_before, decide};
use crate::reserved::workflow;
use crate::support::{Database, Fake, Reply, Test, call_body, on_both, with_body};

const GET: &str = "tools.native.fake.GET_A_THING";
const MAKE: &str = "tools.native.fake.MAKE_A_THING";

fn thing() -> Value {
    json!({"owner": "o", "path": "p"})
}

/// Connects the fake service for an end user, with a key that says whose it is.
pub async fn connect_for(test: &Test, fake: &Fake, end_user: &str, alias: Option<&str>, key: &str) -> Value {
    let data = json!({"auth_scheme": "api_key", "credentials": {"base": fake.url, "api_key": key}});
    let connection = json!({"provider_key": "native", "integration_key": "fake", "end_user": end_user, "alias": alias, "data": data});
    test.post("/tools/connections", json!({"connection": connection})).await.expect(200)["connection"].take()
}

async fn call_for(test: &Test, end_user: &str, name: &str, arguments: Value) -> Reply {
    let mut body = call_body(name, &arguments);
    body["end_user"] = json!(end_user);
    test.post("/tools/call", body).await
}

/// The key that the last call showed to the service.
pub fn key_used(fake: &Fake) -> String {
    fake.seen().last().unwrap()["headers"]["x-api-key"].as_str().unwrap().to_owned()
}

async fn session(test: &Test, new: Value) -> Value {
    test.post("/sessions", json!({"session": new})).await.expect(200)["session"].take()
}

async fn bearer(test: &Test, method: Method, token: &str, path: &str, body: Option<Value>) -> Reply {
    test.request(method, path, Some(format!("Bearer {token}")), body).await
}

/// What Standard Webhooks say is the signature of a post.
fn signature(secret: &str, signed: &str) -> String {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(signed.as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

async fn rpc(test: &Test, token: &str, id: &str, method: &str, params: Value) -> Value {
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("/mcp/sessions/{id}"))
        .header("authorization", format!("Bearer {token}"))
        .header("accept", "application/json, text/event-stream");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let reply = test.send(with_body(request, Some(body))).await;
    // What takes longer than a second comes as a stream.
    let last = reply.text.lines().filter_map(|line| line.strip_prefix("data:")).next_back();
    last.map_or_else(|| reply.json(), |data| serde_json::from_str(data.trim()).unwrap())
}

on_both! {
    async fn a_call_for_a_user_uses_an_account_of_theirs_and_no_other(test: &Test) {
        let fake = Fake::start().await;
        let own = test.connect_fake(&fake, "main").await;
        let alice = connect_for(test, &fake, "alice", None, "sk-alice-123456").await;
        assert_eq!((&alice["end_user"], own.get("end_user")), (&json!("alice"), None));

        let answer = call_for(test, "alice", &format!("{GET}.auto"), thing()).await.expect(200);
        assert_eq!(answer["call"]["account"], json!({"connection_id": alice["id"], "slug": alice["slug"]}));
        assert_eq!(key_used(&fake), "sk-alice-123456");
        for name in [text(&alice["slug"]), text(&alice["id"])] {
            call_for(test, "alice", &format!("{GET}.{name}"), thing()).await.expect(200);
        }

        // Somebody without an account gets nobody's, whatever they name.
        let before = fake.seen().len();
        for name in ["auto", "only", "main", text(&alice["slug"]), text(&alice["id"]), text(&own["id"])] {
            call_for(test, "bob", &format!("{GET}.{name}"), thing()).await.expect(404);
        }
        call_for(test, "alice", &format!("{GET}.main"), thing()).await.expect(404);
        // Nor does the project's own call reach an account of a user.
        test.call(&format!("{GET}.{}", text(&alice["slug"])), thing()).await.expect(404);
        assert_eq!(fake.seen().len(), before, "nothing went out");
        // Refs as they are go on working.
        let answer = test.call(&format!("{GET}.main"), thing()).await.expect(200);
        assert_eq!((answer["call"].get("account"), key_used(&fake).as_str()), (None, "sk-fake-123456"));

        let calls = test.get("/tools/calls?end_user=alice").await.expect(200);
        assert!(calls["calls"].as_array().unwrap().iter().all(|call| call["end_user"] == "alice"), "{calls}");
        assert_eq!(calls["count"], 4);
        assert_eq!(test.get("/tools/calls?end_user=nobody").await.expect(200)["count"], 0);
    }

    async fn an_account_is_chosen_by_name_or_the_caller_is_told_of_all(test: &Test) {
        let fake = Fake::start().await;
        let work = connect_for(test, &fake, "alice", Some("work"), "sk-work-123456").await;
        call_for(test, "alice", &format!("{GET}.only"), thing()).await.expect(200);
        let home = connect_for(test, &fake, "alice", Some("home"), "sk-home-123456").await;
        call_for(test, "alice", &format!("{GET}.work"), thing()).await.expect(200);
        assert_eq!(key_used(&fake), "sk-work-123456");
        let answer = call_for(test, "alice", &format!("{GET}.auto"), thing()).await.expect(200);
        assert_eq!((&answer["call"]["account"]["alias"], key_used(&fake).as_str()), (&json!("home"), "sk-home-123456"), "the newest");
        let several = call_for(test, "alice", &format!("{GET}.only"), thing()).await.expect(409);
        assert_eq!((&several["code"], &several["detail"]["conflict"]["accounts"]), (&json!("several_accounts"), &json!(["home", "work"])));
        // One that is revoked is not chosen, and is refused by name.
        test.post(&format!("/tools/connections/{}/revoke", text(&home["id"])), json!({})).await.expect(200);
        call_for(test, "alice", &format!("{GET}.auto"), thing()).await.expect(200);
        assert_eq!(key_used(&fake), "sk-work-123456");
        call_for(test, "alice", &format!("{GET}.home"), thing()).await.expect(400);

        let taken = json!({"connection": {"provider_key": "native", "integration_key": "fake", "end_user": "alice", "alias": "work"}});
        test.post("/tools/connections", taken.clone()).await.expect(409);
        let words = json!({"connection": {"provider_key": "native", "integration_key": "fake", "end_user": "alice", "alias": "auto"}});
        test.post("/tools/connections", words).await.expect(422);
        let own = json!({"connection": {"slug": "auto", "provider_key": "native", "integration_key": "fake", "alias": "only"}});
        test.post("/tools/connections", own).await.expect(422);
        // The project's own accounts have aliases of their own.
        let data = json!({"auth_scheme": "api_key", "credentials": {"base": fake.url, "api_key": "sk-own-123456"}});
        let own = json!({"connection": {"slug": "x", "provider_key": "native", "integration_key": "fake", "alias": "work", "data": data}});
        test.post("/tools/connections", own).await.expect(200);
        test.call(&format!("{GET}.work"), thing()).await.expect(200);
        assert_eq!(key_used(&fake), "sk-own-123456");
        test.call(&format!("{GET}.home"), thing()).await.expect(404);
        let unnamed = json!({"connection": {"provider_key": "native", "integration_key": "fake"}});
        test.post("/tools/connections", unnamed).await.expect(422);
        assert_eq!(text(&work["alias"]), "work");
    }

    async fn lists_show_and_filter_whose_accounts_they_are(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        for user in ["alice", "bob", "carol"] {
            connect_for(test, &fake, user, None, "sk-some-123456").await;
        }
        let list = async |query: &str| test.post(&format!("/tools/connections/query{query}"), json!({})).await.expect(200);
        assert_eq!(list("").await["count"], 1, "the project's own");
        assert_eq!(list("?end_user=alice").await["connections"][0]["end_user"], "alice");
        assert_eq!(list("?end_user=nobody").await["count"], 0);
        let page = list("?accounts=everybody&limit=3").await;
        assert_eq!((&page["count"], page["cursor"].is_string()), (&json!(3), true));
        let rest = list(&format!("?accounts=everybody&limit=3&cursor={}", text(&page["cursor"]))).await;
        assert_eq!((&rest["count"], rest.get("cursor")), (&json!(1), None));
        test.post("/tools/connections/query?accounts=all", json!({})).await.expect(422);
        assert_eq!(list("?accounts=project&end_user=alice").await["count"], 0);
        let users = test.get("/end-users?name=o").await.expect(200);
        assert_eq!(users["count"], 2, "{users}");
    }

    async fn the_header_makes_a_request_one_for_a_user(test: &Test) {
        let fake = Fake::start().await;
        let alice = connect_for(test, &fake, "alice", None, "sk-alice-123456").await;
        let bob = connect_for(test, &fake, "bob", None, "sk-bob-123456").await;
        let as_alice = async |method: Method, path: &str, body: Option<Value>| {
            let request = Request::builder().method(method).uri(path).header("authorization", format!("ApiKey {}", test.owner)).header("toolyard-end-user", "alice");
            test.send(with_body(request, body)).await
        };
        let path = |row: &Value| format!("/tools/connections/{}", text(&row["id"]));
        as_alice(Method::GET, &path(&alice), None).await.expect(200);
        as_alice(Method::GET, &path(&bob), None).await.expect(404);
        as_alice(Method::DELETE, &path(&bob), None).await.expect(404);
        as_alice(Method::POST, &format!("{}/revoke", path(&bob)), Some(json!({}))).await.expect(404);
        as_alice(Method::POST, &format!("{}/refresh", path(&bob)), Some(json!({}))).await.expect(404);
        as_alice(Method::PATCH, &path(&bob), Some(json!({"connection": {"name": "mine"}}))).await.expect(404);
        let listed = as_alice(Method::POST, "/tools/connections/query?end_user=bob", Some(json!({}))).await.expect(200);
        assert_eq!(listed["count"], 0);
        as_alice(Method::POST, "/tools/call", Some(call_body(&format!("{GET}.auto"), &thing()))).await.expect(200);
        assert_eq!(key_used(&fake), "sk-alice-123456");
        let mut other = call_body(&format!("{GET}.auto"), &thing());
        other["end_user"] = json!("bob");
        as_alice(Method::POST, "/tools/call", Some(other)).await.expect(422);
        as_alice(Method::GET, "/agents", None).await.expect(422);
        test.get(&path(&bob)).await.expect(200);
    }

    async fn an_approval_holds_for_the_user_it_was_asked_for(test: &Test) {
        let fake = Fake::start().await;
        connect_for(test, &fake, "alice", None, "sk-alice-123456").await;
        connect_for(test, &fake, "bob", None, "sk-bob-123456").await;
        ask_before(test, "tools.native.fake.MAKE_*", "ask").await;
        let name = format!("{MAKE}.auto");
        let waits = call_for(test, "alice", &name, json!({"title": "a"})).await.expect(202);
        let id = text(&waits["approval"]["id"]).to_owned();
        assert!(text(&waits["approval"]["call_ref"]).starts_with(&format!("{MAKE}.fake-")), "the account that is meant, not `auto`: {waits}");
        assert_eq!(decide(test, &id, "approve").await["end_user"], "alice");
        call_for(test, "bob", &name, json!({"title": "a"})).await.expect(202);
        call_for(test, "alice", &name, json!({"title": "a"})).await.expect(200);
        assert_eq!(test.get("/tools/approvals?end_user=bob").await.expect(200)["count"], 1);
        // What was answered to one is not repeated to another.
        let keyed = async |user: &str| {
            let mut body = call_body(&format!("{GET}.auto"), &thing());
            body["end_user"] = json!(user);
            let request = Request::builder().method(Method::POST).uri("/tools/call").header("authorization", format!("ApiKey {}", test.owner)).header("idempotency-key", "k");
            test.send(with_body(request, Some(body))).await.expect(200)["call"]["id"].take()
        };
        assert_ne!(keyed("alice").await, keyed("bob").await);
        assert_eq!(keyed("alice").await, keyed("alice").await);
    }

    async fn a_run_for_a_user_reaches_their_accounts_in_its_steps(test: &Test) {
        let fake = Fake::start().await;
        connect_for(test, &fake, "alice", None, "sk-alice-123456").await;
        let steps = json!([{"name": "get", "call": format!("{GET}.auto"), "arguments": thing()}]);
        workflow(test, "look", json!({"steps": steps})).await;
        let run = async |user: &str| {
            let mut body = call_body("workflow.variant.look", &json!({}));
            body["end_user"] = json!(user);
            test.post("/tools/call", body).await.expect(200)["call"]["status"]["code"].take()
        };
        assert_eq!(run("alice").await, "STATUS_CODE_OK");
        assert_eq!(key_used(&fake), "sk-alice-123456");
        assert_eq!(run("bob").await, "STATUS_CODE_ERROR");
        assert_eq!(test.get("/workflows/runs?end_user=alice").await.expect(200)["count"], 1);
    }

    async fn a_session_opens_its_users_tools_and_nothing_else(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        connect_for(test, &fake, "alice", None, "sk-alice-123456").await;
        let made = session(test, json!({"end_user": "alice", "tools": [GET]})).await;
        let (id, token) = (text(&made["id"]), text(&made["token"]));
        assert!(text(&made["mcp_url"]).ends_with(&format!("/mcp/sessions/{id}")), "{made}");
        assert!(test.get(&format!("/sessions/{id}")).await.expect(200)["session"].get("token").is_none());
        let row = test.yard.db.optional("select token_hash from user_sessions", store::args![]).await.unwrap().unwrap();
        assert!(!String::from_utf8_lossy(&row.get::<Vec<u8>>("token_hash").unwrap()).contains(token));

        for format in ["openai", "anthropic", "gemini", "mcp"] {
            let tools = bearer(test, Method::GET, token, &format!("/sessions/{id}/tools?format={format}"), None).await.expect(200);
            assert_eq!(tools["count"], 1, "{tools}");
        }
        let call = async |token: &str, name: &str| bearer(test, Method::POST, token, &format!("/sessions/{id}/call"), Some(call_body(name, &thing()))).await;
        let answer = call(token, &format!("{GET}.auto")).await.expect(200);
        assert_eq!((answer["call"]["account"]["connection_id"].is_string(), key_used(&fake).as_str()), (true, "sk-alice-123456"));
        call(token, "tools__native__fake__GET_A_THING__auto").await.expect(200);
        call(token, &format!("{MAKE}.auto")).await.expect(404);
        call(token, &format!("{GET}.main")).await.expect(404);
        call(token, "tools.agenta.find_capabilities").await.expect(404);
        call(token, "workflow.variant.look").await.expect(404);

        // The protocol shows the same.
        let listed = rpc(test, token, id, "tools/list", json!({})).await;
        let names: Vec<&str> = listed["result"]["tools"].as_array().unwrap().iter().map(|tool| text(&tool["name"])).collect();
        assert_eq!(names, ["tools__native__fake__GET_A_THING__auto", "connect"]);
        let called = rpc(test, token, id, "tools/call", json!({"name": names[0], "arguments": thing()})).await;
        assert!(called["result"].get("isError").is_none(), "{called}");

        // The token opens no other session and no other route; nor does another's open this one.
        let other = session(test, json!({"end_user": "bob"})).await;
        bearer(test, Method::GET, token, &format!("/sessions/{}", text(&other["id"])), None).await.expect(401);
        call(text(&other["token"]), &format!("{GET}.auto")).await.expect(401);
        for path in ["/sessions", "/tools/connections/query", "/tools/calls", "/end-users", "/mcp", "/keys", "/agents"] {
            bearer(test, if path.ends_with("query") { Method::POST } else { Method::GET }, token, path, None).await.expect(401);
        }
        bearer(test, Method::DELETE, token, &format!("/sessions/{id}"), None).await.expect(401);
        let calls = test.get("/tools/calls?end_user=alice").await.expect(200);
        assert!(calls["calls"].as_array().unwrap().iter().all(|call| call["key_id"] == json!(id) && call["via"] == "session"), "{calls}");
    }

    async fn a_missing_account_answers_with_a_link_for_the_user(test: &Test) {
        let fake = Fake::start().await;
        let made = session(test, json!({"end_user": "alice", "apps": ["fake"]})).await;
        let (id, token) = (text(&made["id"]), text(&made["token"]));
        let path = format!("/sessions/{id}/call");
        let body = call_body(&format!("{GET}.auto"), &thing());
        let missing = bearer(test, Method::POST, token, &path, Some(body.clone())).await.expect(409);
        assert_eq!(missing["code"], "account_missing");
        let link = text(&missing["detail"]["conflict"]["redirect_url"]).to_owned();
        let told = rpc(test, token, id, "tools/call", json!({"name": "tools__native__fake__GET_A_THING__auto", "arguments": thing()})).await;
        assert_eq!((&told["result"]["isError"], &told["result"]["structuredContent"]["status"]), (&json!(true), &json!("account_missing")));
        let again = text(&told["result"]["structuredContent"]["url"]).to_owned();
        assert_ne!(again, link, "the newer link takes the place of the older");
        let rows = test.post("/tools/connections/query?end_user=alice", json!({})).await.expect(200);
        assert_eq!(rows["count"], 1, "and no second row");

        // The person opens the link, types the key, and the call goes through.
        let page = again.split_once("/connect/").unwrap().1;
        let form = format!("base={}&api_key=sk-alice-123456", url::form_urlencoded::byte_serialize(fake.url.as_bytes()).collect::<String>());
        let request = Request::builder().method(Method::POST).uri(format!("/connect/{page}")).header("content-type", "application/x-www-form-urlencoded");
        let done = test.send(request.body(form.into()).unwrap()).await;
        assert_eq!(done.status, 200, "{}", done.text);
        bearer(test, Method::POST, token, &path, Some(body)).await.expect(200);
        assert_eq!(key_used(&fake), "sk-alice-123456");
        let accounts = bearer(test, Method::GET, token, &format!("/sessions/{id}/accounts"), None).await.expect(200);
        assert_eq!((&accounts["count"], &accounts["connections"][0]["end_user"]), (&json!(1), &json!("alice")));
        bearer(test, Method::POST, token, &format!("/sessions/{id}/connect"), Some(json!({"integration": "github"}))).await.expect(404);
    }

    async fn a_session_is_narrowed_by_pins_and_rules_and_ends(test: &Test) {
        let fake = Fake::start().await;
        connect_for(test, &fake, "alice", Some("work"), "sk-work-123456").await;
        connect_for(test, &fake, "alice", Some("home"), "sk-home-123456").await;
        connect_for(test, &fake, "bob", Some("his"), "sk-bob-123456").await;
        let refuse = async |new: Value, status: u16| test.post("/sessions", json!({"session": new})).await.expect(status);
        refuse(json!({"end_user": "alice", "accounts": {"fake": "his"}}), 404).await;
        refuse(json!({"end_user": "alice", "apps": ["fak"]}), 404).await;
        refuse(json!({"end_user": "alice", "tools": ["tools.native.fake.NO_SUCH"]}), 404).await;
        refuse(json!({"end_user": "alice", "lifetime_seconds": 0}), 422).await;
        refuse(json!({"end_user": " alice"}), 422).await;
        let rules = json!({"rules": [{"pattern": "tools.native.fake.MAKE_*", "permission": "ask"}, {"pattern": "tools.native.fake.FORM_*", "permission": "deny"}]});
        let new = json!({"end_user": "alice", "apps": ["fake"], "accounts": {"fake": "work"}, "permissions": rules, "may_approve": true, "lifetime_seconds": 60});
        let made = session(test, new).await;
        let (id, token) = (text(&made["id"]), text(&made["token"]));
        let call = async |name: &str, arguments: Value| bearer(test, Method::POST, token, &format!("/sessions/{id}/call"), Some(call_body(name, &arguments))).await;
        call(&format!("{GET}.auto"), thing()).await.expect(200);
        assert_eq!(key_used(&fake), "sk-work-123456");
        call(&format!("{GET}.home"), thing()).await.expect(404);

        let waits = call(&format!("{MAKE}.auto"), json!({"title": "a"})).await.expect(202);
        let approval = format!("/sessions/{id}/approvals/{}", text(&waits["approval"]["id"]));
        let other = session(test, json!({"end_user": "alice", "may_approve": true})).await;
        let theirs = format!("/sessions/{}/approvals/{}", text(&other["id"]), text(&waits["approval"]["id"]));
        bearer(test, Method::POST, text(&other["token"]), &theirs, Some(json!({"decision": "approve"}))).await.expect(404);
        bearer(test, Method::POST, token, &approval, Some(json!({"decision": "approve"}))).await.expect(200);
        call(&format!("{MAKE}.auto"), json!({"title": "a"})).await.expect(200);

        // It ends with its time, when it is revoked, and with the key that made it.
        test.clock.advance(std::time::Duration::from_secs(61));
        call(&format!("{GET}.auto"), thing()).await.expect(401);
        test.delete(&format!("/sessions/{}", text(&other["id"]))).await.expect(200);
        bearer(test, Method::GET, text(&other["token"]), &format!("/sessions/{}", text(&other["id"])), None).await.expect(401);
        let key = test.key("default", Role::Annotator, None).await;
        let made = test.post_as(&key, "/sessions", json!({"session": {"end_user": "alice"}})).await.expect(200)["session"].take();
        let path = format!("/sessions/{}", text(&made["id"]));
        bearer(test, Method::GET, text(&made["token"]), &path, None).await.expect(200);
        let keys = test.get("/keys").await.expect(200);
        let newest = text(&keys["keys"][0]["id"]).to_owned();
        test.delete(&format!("/keys/{newest}")).await.expect(204);
        bearer(test, Method::GET, text(&made["token"]), &path, None).await.expect(401);
        assert_eq!(test.get("/sessions?end_user=alice&open=true").await.expect(200)["count"], 1);
        assert_eq!(test.get("/sessions?end_user=alice").await.expect(200)["count"], 3);
    }

    async fn a_user_is_forgotten_whole(test: &Test) {
        let fake = Fake::start().await;
        test.post("/tools/calls/keeping", json!({"days": 7})).await;
        connect_for(test, &fake, "alice", None, "sk-alice-123456").await;
        connect_for(test, &fake, "bob", None, "sk-bob-123456").await;
        ask_before(test, "tools.native.fake.MAKE_*", "ask").await;
        call_for(test, "alice", &format!("{GET}.auto"), thing()).await.expect(200);
        call_for(test, "alice", &format!("{MAKE}.auto"), json!({"title": "a"})).await.expect(202);
        let made = session(test, json!({"end_user": "alice"})).await;
        let export = test.get("/end-users/alice").await.expect(200);
        assert_eq!((export["data"]["connections"].as_array().unwrap().len(), export["data"]["sessions"].as_array().unwrap().len()), (1, 1));
        assert!(!export.to_string().contains("sk-alice"), "{export}");
        let forgotten = test.delete("/end-users/alice").await.expect(200)["forgotten"].take();
        assert_eq!((&forgotten["connections"], &forgotten["sessions"], &forgotten["approvals"]), (&json!(1), &json!(1), &json!(1)), "{forgotten}");
        assert!(forgotten["calls"].as_i64().unwrap() >= 2);
        bearer(test, Method::GET, text(&made["token"]), &format!("/sessions/{}", text(&made["id"])), None).await.expect(401);
        test.get("/end-users/alice").await.expect(404);
        test.delete("/end-users/alice").await.expect(404);
        assert_eq!(test.post("/tools/connections/query?accounts=everybody", json!({})).await.expect(200)["count"], 1);
        let calls = test.get("/tools/calls").await.expect(200);
        assert!(calls["calls"].as_array().unwrap().iter().all(|call| call.get("end_user").is_none_or(|user| user != "alice")), "{calls}");
        // Somebody of the same name later is somebody else.
        call_for(test, "alice", &format!("{GET}.auto"), thing()).await.expect(404);
        assert_eq!(test.get("/tools/calls?end_user=alice").await.expect(200)["count"], 1);
        call_for(test, "bob", &format!("{GET}.auto"), thing()).await.expect(200);
    }

    async fn hooks_hear_what_happens_to_accounts(test: &Test) {
        let fake = Fake::start().await;
        let made = test.post("/tools/connections/hooks", json!({"hook": {"url": format!("{}/target", fake.url)}})).await.expect(200)["hook"].take();
        let (path, secret) = (format!("/tools/connections/hooks/{}/messages", text(&made["id"])), text(&made["secret"]).to_owned());
        assert!(test.get("/tools/connections/hooks").await.expect(200)["hooks"][0].get("secret").is_none());
        let send = async || test.yard.connections.send_due().await.unwrap();
        let alice = connect_for(test, &fake, "alice", Some("work"), "sk-alice-123456").await;
        // It is a row before it is sent, and is sent once.
        assert_eq!(test.get(&path).await.expect(200)["messages"][0]["state"], "waiting");
        assert_eq!((send().await, send().await), (1, 0));
        let post = fake.seen_at("/target").remove(0);
        assert_eq!((&post["body"]["type"], &post["body"]["data"]["end_user"]), (&json!("connection.connected"), &json!("alice")), "{post}");
        assert_eq!(post["body"]["data"]["connection_id"], alice["id"]);
        let signed = format!("{}.{}.{}", text(&post["headers"]["webhook-id"]), text(&post["headers"]["webhook-timestamp"]), post["body"]);
        assert_eq!(text(&post["headers"]["webhook-signature"]), signature(&secret, &signed));

        // A receiver that fails is asked again, later and later, until nobody tries any more.
        fake.answer_target(&[500; 8]);
        test.post(&format!("/tools/connections/{}/revoke", text(&alice["id"])), json!({})).await.expect(200);
        for tries in 1..=8 {
            assert_eq!(send().await, 1, "try {tries}");
            assert_eq!(send().await, 0, "not at once again");
            test.clock.advance(std::time::Duration::from_hours(13));
        }
        let told = test.get(&path).await.expect(200)["messages"][0].clone();
        assert_eq!((&told["state"], &told["attempts"], &told["status"], &told["event"]), (&json!("dead"), &json!(8), &json!(500), &json!("connection.removed")));
        test.post(&format!("{path}/{}/retry", text(&told["id"])), json!({})).await.expect(204);
        test.post(&format!("{path}/{}/retry", text(&told["id"])), json!({})).await.expect(404);
        assert_eq!(send().await, 1);
        assert_eq!(test.get(&path).await.expect(200)["messages"][0]["state"], "done");

        // A credential that its service refuses is told once.
        let own = test.connect_fake(&fake, "main").await;
        send().await;
        for _ in 0..2 {
            test.call("tools.native.fake.FAIL_A_THING.main", json!({"code": 401})).await;
        }
        send().await;
        let events: Vec<Value> = fake.seen_at("/target").iter().map(|post| post["body"]["type"].clone()).collect();
        assert_eq!(events.iter().filter(|event| **event == json!("connection.broken")).count(), 1, "{events:?}");
        test.delete(&format!("/tools/connections/{}", text(&own["id"]))).await.expect(204);
        test.delete("/end-users/alice").await.expect(200);
        let left = test.get(&path).await.expect(200);
        assert!(left["messages"].as_array().unwrap().iter().all(|message| message["event"] == "connection.removed" || message["body"]["data"].get("end_user").is_none()), "{left}");

        test.post("/tools/connections/hooks", json!({"hook": {"url": "http://10.0.0.1/"}})).await.expect(422);
        test.delete(&format!("/tools/connections/hooks/{}", text(&made["id"]))).await.expect(204);
        test.get(&path).await.expect(404);
    }
}
