//! Sessions of the tool router: their config, what is inside and outside of it, meta tools, accounts, and their MCP address.

use std::time::Duration;

use http::{Method, Request};
use kernel::Role;
use serde_json::{Value, json};

use super::{ask, ask_as, read, refused};
use crate::approvals::ask_before;
use crate::support::{Database, Fake, Reply, Test, on_both, with_body};

const GET: &str = "FAKE_GET_A_THING";
const MAKE: &str = "FAKE_MAKE_A_THING";

fn thing() -> Value {
    json!({"owner": "o", "path": "p"})
}

/// An account of the fake service; its id as Composio writes it.
async fn account(test: &Test, fake: &Fake, user: &str, alias: Option<&str>) -> String {
    let key = format!("sk-{user}-{}-123456", alias.unwrap_or("only"));
    let data = json!({"auth_scheme": "api_key", "credentials": {"base": fake.url, "api_key": key}});
    let mut connection = json!({"provider_key": "native", "integration_key": "fake", "alias": alias, "data": data});
    if user == "default" {
        connection["slug"] = json!(alias.unwrap_or("own"));
        connection["alias"] = Value::Null;
    } else {
        connection["end_user"] = json!(user);
    }
    let made = test.post("/tools/connections", json!({"connection": connection})).await.expect(200);
    composio_api::ids::ACCOUNT.show(made["connection"]["id"].as_str().unwrap().parse().unwrap())
}

async fn create(test: &Test, new: Value) -> Value {
    ask(test, Method::POST, "/tool_router/session", Some(new)).await.expect(201)
}

fn id(session: &Value) -> &str {
    session["session_id"].as_str().unwrap()
}

async fn within(test: &Test, session: &Value, method: Method, rest: &str, body: Option<Value>) -> Reply {
    ask(test, method, &format!("/tool_router/session/{}{rest}", id(session)), body).await
}

async fn execute(test: &Test, session: &Value, slug: &str, arguments: Value) -> Reply {
    within(test, session, Method::POST, "/execute", Some(json!({"tool_slug": slug, "arguments": arguments}))).await
}

async fn meta(test: &Test, session: &Value, slug: &str, arguments: Value) -> Value {
    within(test, session, Method::POST, "/execute_meta", Some(json!({"slug": slug, "arguments": arguments}))).await.expect(200)
}

/// The key that the last call showed to the service.
fn key_used(fake: &Fake) -> String {
    fake.seen().last().unwrap()["headers"]["x-api-key"].as_str().unwrap().to_owned()
}

fn slugs(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|tool| tool["slug"].as_str().unwrap()).collect()
}

async fn rpc(test: &Test, key: Option<&str>, session: &str, method: &str, params: Value) -> Reply {
    let mut request = Request::builder().method(Method::POST).uri(format!("/tool_router/{session}/mcp"));
    request = request.header("accept", "application/json, text/event-stream");
    if let Some(key) = key {
        request = request.header("x-api-key", key);
    }
    test.send(with_body(request, Some(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})))).await
}

/// What a message of the protocol came to.
fn answered(reply: Reply) -> Value {
    let last = reply.text.lines().filter_map(|line| line.strip_prefix("data:")).next_back();
    last.map_or_else(|| reply.json(), |data| serde_json::from_str(data.trim()).unwrap())
}

on_both! {
    async fn a_session_is_made_changed_and_ended(test: &Test) {
        let made = create(test, json!({
            "user_id": "alice",
            "toolkits": {"enable": ["FAKE", "HackerNews"]},
            "tools": {"fake": {"disable": ["fake_make_a_thing"]}},
            "tags": ["readOnlyHint"],
            "manage_connections": {"enable": true, "callback_url": "https://app.example/done"},
            "workbench": {"enable": true},
            "preload": {"tools": ["fake_get_a_thing"]},
        })).await;
        assert!(id(&made).starts_with("trs_"), "{made}");
        assert_eq!((&made["config_version"], &made["mcp"]["type"]), (&json!(1), &json!("http")));
        assert_eq!(made["mcp"]["url"], format!("{}/tool_router/{}/mcp", test.yard.config.public_url.trim_end_matches('/'), id(&made)));
        let config = &made["config"];
        assert_eq!(config["user_id"], "alice");
        assert_eq!(config["toolkits"], json!({"enabled": ["fake", "hackernews"]}));
        assert_eq!(config["tools"], json!({"fake": {"disabled": [MAKE]}}));
        assert_eq!(config["tags"], json!({"enabled": ["readOnlyHint"]}));
        assert_eq!(config["preload"], json!({"tools": [GET]}));
        assert_eq!((&config["workbench"], &config["instant"]), (&json!({"enable": false}), &json!(false)));
        assert_eq!(config["manage_connections"]["callback_url"], "https://app.example/done");
        assert_eq!(made["tool_router_tools"].as_array().unwrap().last().unwrap(), GET);
        assert!(made["experimental"]["assistive_prompt"].as_str().unwrap().contains("COMPOSIO_MANAGE_CONNECTIONS"));
        let read_again = within(test, &made, Method::GET, "", None).await.expect(200);
        assert_eq!(read_again, made);

        // Only what is given changes, and null removes.
        let patch = json!({"tags": null, "manage_connections": {"callback_url": null, "enable_wait_for_connections": true}, "search": {"enable": false}});
        let changed = within(test, &made, Method::PATCH, "", Some(patch)).await.expect(200);
        assert_eq!((&changed["config_version"], &changed["config"]["toolkits"]), (&json!(2), &config["toolkits"]));
        assert_eq!((changed["config"].get("tags"), changed["config"]["manage_connections"].get("callback_url")), (None, None));
        assert_eq!(
            changed["tool_router_tools"],
            json!(["COMPOSIO_MULTI_EXECUTE_TOOL", "COMPOSIO_MANAGE_CONNECTIONS", "COMPOSIO_WAIT_FOR_CONNECTIONS", GET])
        );
        let late = json!({"expected_config_version": 1, "search": {"enable": true}});
        refused(within(test, &made, Method::PATCH, "", Some(late)).await, 409);
        let in_time = json!({"expected_config_version": 2, "search": {"enable": true}});
        assert_eq!(within(test, &made, Method::PATCH, "", Some(in_time)).await.expect(200)["config_version"], 3);
        // Changes at the same time all happen.
        let off = within(test, &made, Method::PATCH, "", Some(json!({"execute": {"enable_multi_execute": false}})));
        let pinned = within(test, &made, Method::PATCH, "", Some(json!({"preload": {"tools": "all"}})));
        let (off, pinned) = tokio::join!(off, pinned);
        assert_eq!((off.status.as_u16(), pinned.status.as_u16()), (200, 200), "{} {}", off.text, pinned.text);
        let both = within(test, &made, Method::GET, "", None).await.expect(200);
        assert_eq!((&both["config_version"], &both["config"]["preload"]["tools"]), (&json!(5), &json!("all")));
        assert_eq!(both["config"]["execute"]["enable_multi_execute"], false);

        let history = within(test, &made, Method::GET, "/config_history?limit=2", None).await.expect(200);
        assert_eq!((&history["total_items"], history["items"].as_array().unwrap().len()), (&json!(5), 2));
        assert_eq!((&history["items"][0]["version"], &history["items"][0]["is_current"]), (&json!(5), &json!(true)));

        // It is one of our user sessions, and ends for good.
        let listed = test.get("/sessions?end_user=alice").await.expect(200);
        assert_eq!((&listed["count"], &listed["sessions"][0]["is_tool_router"]), (&json!(1), &json!(true)), "{listed}");
        let native = listed["sessions"][0]["id"].as_str().unwrap();
        for path in [format!("/sessions/{native}"), format!("/sessions/{native}/tools"), format!("/sessions/{native}/accounts")] {
            test.get(&path).await.expect(404);
        }
        assert_eq!(within(test, &made, Method::DELETE, "", None).await.expect(200), json!({"session_id": id(&made), "deleted": true}));
        for (method, rest, body) in [
            (Method::GET, "", None),
            (Method::DELETE, "", None),
            (Method::PATCH, "", Some(json!({"search": null}))),
            (Method::GET, "/tools", None),
            (Method::GET, "/toolkits", None),
            (Method::GET, "/config_history", None),
            (Method::POST, "/search", Some(json!({"queries": [{"use_case": "x"}]}))),
            (Method::POST, "/execute", Some(json!({"tool_slug": GET}))),
            (Method::POST, "/execute_meta", Some(json!({"slug": "COMPOSIO_SEARCH_TOOLS"}))),
            (Method::POST, "/link", Some(json!({"toolkit": "fake"}))),
            (Method::POST, "/attach", Some(json!({"experimental": {}}))),
        ] {
            refused(within(test, &made, method, rest, body).await, 404);
        }
    }

    async fn what_a_config_names_must_be_there(test: &Test) {
        let fake = Fake::start().await;
        let of_bob = account(test, &fake, "bob", None).await;
        let of_project = account(test, &fake, "default", None).await;
        for (blocks, says) in [
            (json!({"toolkits": {"enable": ["fakee"]}}), "fake"),
            (json!({"tools": {"fake": {"enable": ["FAKE_GET_THING"]}}}), GET),
            (json!({"tags": ["createHint"]}), "createHint"),
            (json!({"preload": {"tools": "all"}}), "`all`"),
            (json!({"preload": {"tools": ["HACKERNEWS_NOTHING"]}}), "HACKERNEWS"),
            (json!({"auth_configs": {"fake": "ac_0000000000000000000000"}}), "auth_configs.fake"),
            (json!({"connected_accounts": {"fake": [of_bob]}}), "no connected account"),
            (json!({"connected_accounts": {"fake": of_project}}), "no connected account"),
            (json!({"connected_accounts": {"fake": ["ca_x"]}}), "no connected account"),
            (json!({"multi_account": {"enable": true, "max_accounts_per_toolkit": 99}}), "2 to 10"),
            (json!({"user_id": " "}), "user_id"),
            (json!({"user_id": 7}), "user_id"),
            (json!({"tools": {"fake": {"enable": (0..2100).map(|_| GET).collect::<Vec<_>>()}}}), "2000"),
        ] {
            let mut new = json!({"user_id": "alice"});
            new.as_object_mut().unwrap().extend(blocks.as_object().unwrap().clone());
            let error = refused(ask(test, Method::POST, "/tool_router/session", Some(new)).await, 400);
            assert!(error["message"].as_str().unwrap().contains(says), "{blocks}: {error}");
        }
        refused(ask(test, Method::POST, "/tool_router/session", Some(json!({}))).await, 400);
        // What is refused leaves nothing behind.
        assert_eq!(test.get("/sessions").await.expect(200)["count"], 0);
        let viewer = test.key("default", Role::Viewer, None).await;
        refused(ask_as(test, &viewer, Method::POST, "/tool_router/session", Some(json!({"user_id": "alice"}))).await, 403);
    }

    async fn a_session_is_a_fence(test: &Test) {
        let fake = Fake::start().await;
        account(test, &fake, "alice", None).await;
        let session = create(test, json!({"user_id": "alice", "toolkits": {"enable": ["fake"]}, "tools": {"fake": {"enable": [GET]}}})).await;
        assert_eq!(execute(test, &session, GET, thing()).await.expect(200)["result_type"], "completed");
        let before = fake.seen().len();
        for outside in [MAKE, "HACKERNEWS_GET_A_STORY", "GITHUB_CREATE_AN_ISSUE"] {
            let reply = execute(test, &session, outside, json!({"title": "x"})).await;
            let status = if outside.starts_with("HACKER") { reply.status.as_u16() } else { 403 };
            assert!(matches!(status, 403 | 404), "{outside}");
            refused(reply, status);
            let several = meta(test, &session, "COMPOSIO_MULTI_EXECUTE_TOOL", json!({"tools": [{"tool_slug": outside, "arguments": {"title": "x"}}]})).await;
            assert_eq!((&several["result_type"], &several["data"]["error_count"]), (&json!("failed"), &json!(1)), "{several}");
            let schemas = meta(test, &session, "COMPOSIO_GET_TOOL_SCHEMAS", json!({"tool_slugs": [outside, GET]})).await;
            assert_eq!(schemas["data"]["tool_schemas"].as_object().unwrap().keys().collect::<Vec<_>>(), [GET]);
            let called = answered(rpc(test, Some(&test.owner), id(&session), "tools/call", json!({"name": outside, "arguments": {}})).await);
            assert!(called["error"]["message"].is_string(), "{called}");
        }
        refused(within(test, &session, Method::POST, "/link", Some(json!({"toolkit": "github"}))).await, 403);
        let managed = meta(test, &session, "COMPOSIO_MANAGE_CONNECTIONS", json!({"toolkits": ["github", "fake"]})).await;
        let results = &managed["data"]["results"];
        assert_eq!((&results["github"]["status"], &results["fake"]["status"]), (&json!("failed"), &json!("active")), "{managed}");
        assert_eq!(fake.seen().len(), before, "nothing went out");
        // Nor is it found, in whatever words.
        for use_case in ["make a fake thing", "create an issue on github", "read a fake thing"] {
            let found = within(test, &session, Method::POST, "/search", Some(json!({"queries": [{"use_case": use_case}]}))).await.expect(200);
            let schemas: Vec<&String> = found["tool_schemas"].as_object().unwrap().keys().collect();
            assert!(schemas.iter().all(|slug| *slug == GET), "{use_case}: {schemas:?}");
            assert_eq!((&found["success"], &found["error"]), (&json!(true), &Value::Null));
        }
        let toolkits = within(test, &session, Method::GET, "/toolkits", None).await.expect(200);
        assert_eq!(slugs(&toolkits), ["fake"]);
        // What was inside is outside once the config says so.
        within(test, &session, Method::PATCH, "", Some(json!({"toolkits": {"disable": ["fake"]}}))).await.expect(200);
        refused(execute(test, &session, GET, thing()).await, 403);
    }

    async fn a_call_goes_through_an_account_of_the_sessions_user(test: &Test) {
        let fake = Fake::start().await;
        let of_bob = account(test, &fake, "bob", None).await;
        let of_project = account(test, &fake, "default", None).await;
        let alice = create(test, json!({"user_id": "alice"})).await;
        // Somebody without an account gets nobody's, whatever they name.
        let before = fake.seen().len();
        assert_eq!(refused(execute(test, &alice, GET, thing()).await, 400)["code"], 1803);
        for name in [of_bob.as_str(), of_project.as_str(), "own", "auto", "only", "main"] {
            let body = json!({"tool_slug": GET, "arguments": thing(), "account": name});
            assert_eq!(refused(within(test, &alice, Method::POST, "/execute", Some(body)).await, 400)["code"], 1803, "{name}");
            let tools = json!({"tools": [{"tool_slug": GET, "arguments": thing(), "account": name}]});
            assert_eq!(meta(test, &alice, "COMPOSIO_MULTI_EXECUTE_TOOL", tools).await["result_type"], "failed");
        }
        assert_eq!(fake.seen().len(), before, "nothing went out");
        // Nor does a session of the project itself reach an account of a user.
        let own = create(test, json!({"user_id": "default"})).await;
        assert_eq!(own["config"]["user_id"], "default");
        execute(test, &own, GET, thing()).await.expect(200);
        assert_eq!(key_used(&fake), "sk-default-only-123456");
        let body = json!({"tool_slug": GET, "arguments": thing(), "account": of_bob});
        refused(within(test, &own, Method::POST, "/execute", Some(body)).await, 400);

        // By id, by alias, pinned, and the newest.
        let work = account(test, &fake, "alice", Some("work")).await;
        let home = account(test, &fake, "alice", Some("home")).await;
        for (name, key) in [("work", "work"), (work.as_str(), "work"), (home.as_str(), "home")] {
            let body = json!({"tool_slug": GET, "arguments": thing(), "account": name});
            within(test, &alice, Method::POST, "/execute", Some(body)).await.expect(200);
            assert_eq!(key_used(&fake), format!("sk-alice-{key}-123456"));
        }
        execute(test, &alice, GET, thing()).await.expect(200);
        assert_eq!(key_used(&fake), "sk-alice-home-123456");
        let pinned = create(test, json!({"user_id": "alice", "connected_accounts": {"fake": work}})).await;
        assert_eq!(pinned["config"]["connected_accounts"], json!({"fake": [work]}));
        execute(test, &pinned, GET, thing()).await.expect(200);
        assert_eq!(key_used(&fake), "sk-alice-work-123456");
        let body = json!({"tool_slug": GET, "arguments": thing(), "account": "home"});
        refused(within(test, &pinned, Method::POST, "/execute", Some(body)).await, 400);
        let toolkits = within(test, &pinned, Method::GET, "/toolkits?toolkits=fake", None).await.expect(200);
        let shown = &toolkits["items"][0]["connected_account"];
        assert_eq!((&shown["id"], &shown["user_id"], &shown["status"]), (&json!(work), &json!("alice"), &json!("ACTIVE")), "{toolkits}");
        assert_eq!(shown["auth_config"]["auth_scheme"], "API_KEY");
        // A pin does not open another's account once it is somebody else's, nor one that was removed.
        let connection = composio_api::ids::ACCOUNT.read(&work).unwrap();
        test.delete(&format!("/tools/connections/{connection}")).await.expect(204);
        let before = fake.seen().len();
        refused(execute(test, &pinned, GET, thing()).await, 400);
        assert_eq!(fake.seen().len(), before);

        // Who has to choose is told among what.
        account(test, &fake, "alice", Some("spare")).await;
        let choosing = json!({"user_id": "alice", "multi_account": {"enable": true, "require_explicit_selection": true}});
        let choosing = create(test, choosing).await;
        let error = refused(execute(test, &choosing, GET, thing()).await, 400);
        assert!(error["message"].as_str().unwrap().contains("`spare`, `home`"), "{error}");
        let found = within(test, &choosing, Method::POST, "/search", Some(json!({"queries": [{"use_case": "read a fake thing"}]}))).await.expect(200);
        let status = found["toolkit_connection_statuses"].as_array().unwrap().iter().find(|kit| kit["toolkit"] == "fake").unwrap();
        assert_eq!((&status["account_selection"], status["accounts"].as_array().unwrap().len()), (&json!("required"), 2), "{status}");
    }

    async fn meta_tools_find_read_call_and_connect(test: &Test) {
        let fake = Fake::start().await;
        let session = create(test, json!({"user_id": "alice", "toolkits": {"enable": ["fake", "hackernews"]}})).await;
        let tools = within(test, &session, Method::GET, "/tools", None).await.expect(200);
        assert_eq!(
            slugs(&tools),
            ["COMPOSIO_SEARCH_TOOLS", "COMPOSIO_GET_TOOL_SCHEMAS", "COMPOSIO_MULTI_EXECUTE_TOOL", "COMPOSIO_MANAGE_CONNECTIONS"]
        );
        for tool in tools["items"].as_array().unwrap() {
            assert_eq!((&tool["toolkit"]["slug"], &tool["input_parameters"]["type"]), (&json!("composio"), &json!("object")), "{tool}");
            assert_eq!(read(test, &format!("/tools/{}", tool["slug"].as_str().unwrap())).await["slug"], tool["slug"]);
        }
        let found = meta(test, &session, "COMPOSIO_SEARCH_TOOLS", json!({"queries": [{"use_case": "read a fake thing"}]})).await;
        assert_eq!((&found["result_type"], &found["error"]), (&json!("completed"), &Value::Null), "{found}");
        assert_eq!(found["data"]["results"][0]["primary_tool_slugs"][0], GET);
        assert_eq!(found["data"]["tool_schemas"][GET]["input_schema"]["type"], "object");
        let status = &found["data"]["toolkit_connection_statuses"][0];
        assert_eq!((&status["toolkit"], &status["has_active_connection"]), (&json!("fake"), &json!(false)), "{status}");
        let said = found["data"]["next_steps_guidance"].to_string();
        assert!(said.contains("COMPOSIO_MANAGE_CONNECTIONS"), "{said}");

        // A link for the user, and the account once they were there.
        let managed = meta(test, &session, "COMPOSIO_MANAGE_CONNECTIONS", json!({"toolkits": ["FAKE", "hackernews", "nothing"]})).await;
        let results = &managed["data"]["results"];
        assert_eq!(
            (&results["fake"]["status"], &results["hackernews"]["status"], &results["nothing"]["status"]),
            (&json!("initiated"), &json!("active"), &json!("failed")),
            "{managed}"
        );
        assert!(results["fake"]["redirect_url"].as_str().unwrap().contains("/connect/"), "{managed}");
        assert_eq!(managed["data"]["summary"]["initiated_connections"], 1);
        let waiting = results["fake"]["connected_account_id"].as_str().unwrap();
        let id_of_row = composio_api::ids::ACCOUNT.read(waiting).unwrap();
        let row = test.get(&format!("/tools/connections/{id_of_row}")).await.expect(200);
        assert_eq!(row["connection"]["end_user"], "alice");
        let toolkits = within(test, &session, Method::GET, "/toolkits", None).await.expect(200);
        let shown = toolkits["items"].as_array().unwrap().iter().find(|kit| kit["slug"] == "fake").unwrap();
        assert_eq!((&shown["connected_account"]["id"], &shown["connected_account"]["status"]), (&json!(waiting), &json!("INITIATED")));
        account(test, &fake, "alice", None).await;
        let connected = within(test, &session, Method::GET, "/toolkits?is_connected=true", None).await.expect(200);
        assert_eq!(slugs(&connected), ["fake"]);
        let managed = meta(test, &session, "COMPOSIO_MANAGE_CONNECTIONS", json!({"toolkits": ["fake"]})).await;
        assert_eq!(managed["data"]["results"]["fake"]["status"], "active", "{managed}");

        // Several at once, in the order in which they were asked for; one that fails does not stop the others.
        let slow = json!({"tool_slug": "FAKE_SLOWLY", "arguments": {"ms": 300}});
        let tools = json!([slow, {"tool_slug": GET, "arguments": thing()}, {"tool_slug": "fake_get_a_thing", "arguments": "{\"owner\": \"o\", \"path\": \"q\"}"},
            {"tool_slug": GET, "arguments": {}}, {"tool_slug": "COMPOSIO_SEARCH_TOOLS", "arguments": {}}, {"tool_slug": "NOTHING_HERE"}]);
        let several = meta(test, &session, "COMPOSIO_MULTI_EXECUTE_TOOL", json!({"tools": tools})).await;
        let data = &several["data"];
        assert_eq!((&data["total_count"], &data["success_count"], &data["error_count"]), (&json!(6), &json!(3), &json!(3)), "{data}");
        assert_eq!((&several["result_type"], several["error"].is_string()), (&json!("failed"), true));
        let successful: Vec<&Value> = data["results"].as_array().unwrap().iter().map(|one| &one["response"]["successful"]).collect();
        assert_eq!(successful, [true, true, true, false, false, false]);
        assert_eq!(data["results"][2]["index"], 2);
        assert!(data["results"][3]["error"].as_str().unwrap().contains("owner"), "{data}");
        for (slug, arguments) in [
            ("COMPOSIO_MULTI_EXECUTE_TOOL", json!({})),
            ("COMPOSIO_MULTI_EXECUTE_TOOL", json!({"tools": [{}]})),
            ("COMPOSIO_MULTI_EXECUTE_TOOL", json!({"tools": vec![json!({"tool_slug": GET}); 51]})),
            ("COMPOSIO_SEARCH_TOOLS", json!({})),
            ("COMPOSIO_SEARCH_TOOLS", json!({"queries": [{"use_case": " "}]})),
            ("COMPOSIO_GET_TOOL_SCHEMAS", json!({"tool_slugs": [7]})),
            ("COMPOSIO_MANAGE_CONNECTIONS", json!({"toolkits": []})),
            ("COMPOSIO_REMOTE_WORKBENCH", json!({"code_to_execute": "1"})),
            ("COMPOSIO_PROXY_EXECUTE", json!({})),
        ] {
            let said = meta(test, &session, slug, arguments).await;
            assert_eq!((&said["result_type"], said["error"].as_str().unwrap().is_empty()), (&json!("failed"), false), "{slug}: {said}");
        }
        refused(within(test, &session, Method::POST, "/execute_meta", Some(json!({"slug": "COMPOSIO_NOTHING"}))).await, 400);
        let body = json!({"slug": GET, "arguments": thing()});
        refused(within(test, &session, Method::POST, "/execute_meta", Some(body)).await, 400);
        refused(within(test, &session, Method::POST, "/execute_meta", Some(json!({"slug": "COMPOSIO_WAIT_FOR_CONNECTIONS"}))).await, 403);
        // Without a session they are for everything that there is.
        let body = json!({"user_id": "alice", "arguments": {"queries": [{"use_case": "create an issue on github"}]}});
        let anywhere = ask(test, Method::POST, "/tools/execute/COMPOSIO_SEARCH_TOOLS", Some(body)).await.expect(200);
        assert_eq!((&anywhere["successful"], &anywhere["data"]["success"]), (&json!(true), &json!(true)), "{anywhere}");

        // Direct tools and no meta tool at all.
        let direct = json!({"user_id": "alice", "toolkits": {"enable": ["fake"]}, "preload": {"tools": "all"}, "search": {"enable": false},
            "execute": {"enable_multi_execute": false}, "manage_connections": {"enable": false}, "workbench": {"enable": false}});
        let direct = create(test, direct).await;
        let listed = within(test, &direct, Method::GET, "/tools?limit=3", None).await.expect(200);
        assert!(slugs(&listed).iter().all(|slug| slug.starts_with("FAKE_")) && listed["next_cursor"].is_string(), "{listed}");
        let wanted = json!({"queries": [{"use_case": "x"}]});
        refused(within(test, &direct, Method::POST, "/search", Some(wanted.clone())).await, 403);
        refused(execute(test, &direct, "COMPOSIO_SEARCH_TOOLS", wanted).await, 403);
        refused(execute(test, &direct, "COMPOSIO_MANAGE_CONNECTIONS", json!({"toolkits": ["fake"]})).await, 403);
    }

    async fn waiting_for_a_person_ends(test: &Test) {
        let fake = Fake::start().await;
        let new = json!({"user_id": "alice", "toolkits": {"enable": ["fake", "hackernews"]}, "manage_connections": {"enable_wait_for_connections": true}});
        let session = create(test, new).await;
        let any = meta(test, &session, "COMPOSIO_WAIT_FOR_CONNECTIONS", json!({"toolkits": ["fake", "hackernews"], "mode": "any"})).await;
        assert_eq!((&any["data"]["timed_out"], &any["data"]["results"]["fake"]["status"]), (&json!(false), &json!("initiated")), "{any}");
        let connecting = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            account(test, &fake, "alice", None).await
        };
        let arguments = json!({"toolkits": ["fake"]});
        let (all, _) = tokio::join!(meta(test, &session, "COMPOSIO_WAIT_FOR_CONNECTIONS", arguments), connecting);
        assert_eq!((&all["data"]["timed_out"], &all["data"]["results"]["fake"]["status"]), (&json!(false), &json!("active")), "{all}");
    }

    async fn a_session_asks_a_person_where_it_says_so(test: &Test) {
        let fake = Fake::start().await;
        account(test, &fake, "alice", None).await;
        let session = create(test, json!({"user_id": "alice", "tools": {"fake": {"require_approval": [MAKE]}}})).await;
        let arguments = json!({"title": "x"});
        let asked = execute(test, &session, MAKE, arguments.clone()).await.expect(200);
        assert_eq!((&asked["result_type"], &asked["input_requests"]["approval"]["type"]), (&json!("input_required"), &json!("elicitation")), "{asked}");
        let before = fake.seen().len();
        let answer = |decision: Value, state: Value| {
            json!({"tool_slug": MAKE, "arguments": {"title": "x"}, "input_responses": {"approval": decision}, "request_state": state})
        };
        let (yes, no) = (json!({"action": "accept", "content": {"decision": "approve"}}), json!({"action": "decline"}));
        // Only whoever was asked can answer, and only what was asked.
        let elsewhere = create(test, json!({"user_id": "bob"})).await;
        let annotator = test.key("default", Role::Annotator, None).await;
        let path = format!("/tool_router/session/{}/execute", id(&session));
        for (reply, status) in [
            (within(test, &elsewhere, Method::POST, "/execute", Some(answer(yes.clone(), asked["request_state"].clone()))).await, 400),
            (within(test, &session, Method::POST, "/execute", Some(answer(yes.clone(), json!("x")))).await, 400),
            (within(test, &session, Method::POST, "/execute", Some(answer(json!({"action": "accept"}), asked["request_state"].clone()))).await, 400),
            (ask_as(test, &annotator, Method::POST, &path, Some(answer(yes.clone(), asked["request_state"].clone()))).await, 400),
        ] {
            refused(reply, status);
        }
        assert_eq!(fake.seen().len(), before, "nothing went out");
        let done = within(test, &session, Method::POST, "/execute", Some(answer(yes, asked["request_state"].clone()))).await.expect(200);
        assert_eq!((&done["result_type"], fake.seen().len()), (&json!("completed"), before + 1), "{done}");
        let again = execute(test, &session, MAKE, arguments.clone()).await.expect(200);
        assert_eq!(again["result_type"], "input_required", "an approval is good once");
        let denied = within(test, &session, Method::POST, "/execute", Some(answer(no, again["request_state"].clone()))).await.expect(200);
        assert_eq!((&denied["result_type"], fake.seen().len()), (&json!("failed"), before + 1), "{denied}");
        // A session that does not ask itself is told of the project's approval in words.
        ask_before(test, "tools.native.fake.MAKE_*", "ask").await;
        let plain = create(test, json!({"user_id": "alice"})).await;
        let waits = execute(test, &plain, MAKE, json!({"title": "y"})).await.expect(200);
        assert!(waits["result_type"] == "failed" && waits["error"].as_str().unwrap().contains("approval"), "{waits}");
        // The project's word counts whatever the session says.
        ask_before(test, "tools.native.fake.MAKE_*", "deny").await;
        let never = execute(test, &session, MAKE, json!({"title": "z"})).await.expect(200);
        assert_eq!((&never["result_type"], fake.seen().len()), (&json!("failed"), before + 1), "{never}");
    }

    async fn the_mcp_address_shows_exactly_the_sessions_tools(test: &Test) {
        let fake = Fake::start().await;
        account(test, &fake, "alice", None).await;
        let session = create(test, json!({"user_id": "alice", "toolkits": {"enable": ["fake"]}, "preload": {"tools": [GET]}})).await;
        let owner = test.owner.clone();
        assert_eq!(rpc(test, None, id(&session), "tools/list", json!({})).await.status, 401);
        assert_eq!(rpc(test, Some("nonsense"), id(&session), "tools/list", json!({})).await.status, 401);
        let other = test.key("other", Role::Owner, None).await;
        assert_eq!(rpc(test, Some(&other), id(&session), "tools/list", json!({})).await.status, 404);
        let viewer = test.key("default", Role::Viewer, None).await;
        assert_eq!(rpc(test, Some(&viewer), id(&session), "tools/list", json!({})).await.status, 403);
        let begun = answered(rpc(test, Some(&owner), id(&session), "initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}})).await);
        assert_eq!(begun["result"]["protocolVersion"], "2025-06-18", "{begun}");
        let list = answered(rpc(test, Some(&owner), id(&session), "tools/list", json!({})).await);
        let names: Vec<&str> = list["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(json!(names), session["tool_router_tools"]);
        let called = answered(rpc(test, Some(&owner), id(&session), "tools/call", json!({"name": GET, "arguments": thing()})).await);
        assert_eq!((called["result"].get("isError"), key_used(&fake).as_str()), (None, "sk-alice-only-123456"), "{called}");
        let wrong = answered(rpc(test, Some(&owner), id(&session), "tools/call", json!({"name": GET, "arguments": {}})).await);
        assert_eq!(wrong["result"]["isError"], true, "{wrong}");
        let arguments = json!({"queries": [{"use_case": "read a fake thing"}]});
        let found = answered(rpc(test, Some(&owner), id(&session), "tools/call", json!({"name": "COMPOSIO_SEARCH_TOOLS", "arguments": arguments})).await);
        assert_eq!(found["result"]["structuredContent"]["results"][0]["primary_tool_slugs"][0], GET, "{found}");
        // The list follows the config, and the address ends with the session.
        within(test, &session, Method::PATCH, "", Some(json!({"preload": null, "search": {"enable": false}}))).await.expect(200);
        let list = answered(rpc(test, Some(&owner), id(&session), "tools/list", json!({})).await);
        assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 2, "{list}");
        within(test, &session, Method::DELETE, "", None).await.expect(200);
        assert_eq!(rpc(test, Some(&owner), id(&session), "tools/list", json!({})).await.status, 404);
        for wrong in ["trs_x", "x"] {
            assert_eq!(rpc(test, Some(&owner), wrong, "tools/list", json!({})).await.status, 404);
        }
    }

    async fn custom_tools_have_names_and_are_found(test: &Test) {
        let tool = json!({"slug": "grep", "name": "Grep", "description": "Searches local files for a text", "input_schema": {"type": "object", "properties": {}}});
        let kit = json!({"slug": "dev-tools", "name": "Dev", "description": "", "tools": [tool]});
        let experimental = json!({"custom_tools": [tool], "custom_toolkits": [kit]});
        let session = create(test, json!({"user_id": "alice", "experimental": experimental})).await;
        let shown = &session["experimental"];
        assert_eq!(shown["custom_tools"][0]["slug"], "LOCAL_GREP");
        assert_eq!((&shown["custom_toolkits"][0]["tools"][0]["slug"], &shown["custom_tools"][0]["original_slug"]), (&json!("LOCAL_DEV-TOOLS_GREP"), &json!("grep")));
        let attached = within(test, &session, Method::POST, "/attach", Some(json!({"experimental": {"custom_tools": [tool]}}))).await.expect(200);
        assert_eq!(attached["experimental"]["custom_tools"][0]["slug"], "LOCAL_GREP");
        let search = json!({"queries": [{"use_case": "grep the local files for a text"}], "experimental": experimental});
        let found = within(test, &session, Method::POST, "/search", Some(search)).await.expect(200);
        assert!(found["results"][0]["primary_tool_slugs"].to_string().contains("LOCAL_GREP"), "{found}");
        assert!(found["tool_schemas"]["LOCAL_GREP"]["input_schema"].is_object());
        let taken = json!({"experimental": {"custom_toolkits": [{"slug": "fake", "name": "", "description": "", "tools": []}]}});
        refused(within(test, &session, Method::POST, "/attach", Some(taken)).await, 400);
        // They run in the caller's process, never here.
        refused(execute(test, &session, "LOCAL_GREP", json!({})).await, 404);
    }

    async fn sessions_end_when_nobody_uses_them_and_with_their_user(test: &Test) {
        let session = create(test, json!({"user_id": "alice"})).await;
        let days = |days: u64| Duration::from_hours(24 * days);
        for _ in 0..3 {
            test.clock.advance(days(80));
            within(test, &session, Method::GET, "", None).await.expect(200);
        }
        test.clock.advance(days(91));
        refused(within(test, &session, Method::GET, "", None).await, 404);
        assert_eq!(rpc(test, Some(&test.owner), id(&session), "tools/list", json!({})).await.status, 404);
        assert_eq!(test.get("/sessions?open=true").await.expect(200)["count"], 0);

        let session = create(test, json!({"user_id": "alice"})).await;
        let exported = test.get("/end-users/alice").await.expect(200);
        assert_eq!(exported["data"]["sessions"][0]["configs"].as_array().unwrap().len(), 1, "{exported}");
        assert_eq!(test.delete("/end-users/alice").await.expect(200)["forgotten"]["sessions"], 2);
        refused(within(test, &session, Method::GET, "", None).await, 404);
        let left = test.yard.db.all("select version from session_configs", store::args![]).await.unwrap();
        assert!(left.is_empty());

        // Those that were not used for the longest make room.
        let first = create(test, json!({"user_id": "default"})).await;
        test.clock.advance(days(2));
        for _ in 0..2 {
            create(test, json!({"user_id": "default"})).await;
        }
        let made = test.get("/sessions?limit=500").await.expect(200);
        assert_eq!((&made["count"], made["sessions"][0].get("end_user")), (&json!(3), None), "{made}");
        within(test, &first, Method::GET, "", None).await.expect(200);
    }
}
