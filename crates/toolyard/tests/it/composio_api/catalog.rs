//! Toolkits and tools: slugs, pages, schemas, running one, errors.

use http::{Method, Request};
use kernel::Role;
use serde_json::{Value, json};

use super::{ask, ask_as, read, refused};
use crate::approvals::ask_before;
use crate::support::{Database, Fake, Test, on_both, with_body};

const THING: &str = "/tools/execute/FAKE_GET_A_THING";

fn thing() -> Value {
    json!({"owner": "o", "path": "p"})
}

async fn execute(test: &Test, slug: &str, body: Value) -> Value {
    ask(test, Method::POST, &format!("/tools/execute/{slug}"), Some(body)).await.expect(200)
}

/// Connects the fake service for a user; the id of the account as Composio writes it, from the list of accounts.
async fn connect_for(test: &Test, fake: &Fake, user: Option<&str>, key: &str) -> String {
    let data = json!({"auth_scheme": "api_key", "credentials": {"base": fake.url, "api_key": key}});
    let connection = json!({"provider_key": "native", "integration_key": "fake", "end_user": user, "data": data, "slug": key});
    let made = test.post("/tools/connections", json!({"connection": connection})).await.expect(200);
    let id = made["connection"]["id"].as_str().unwrap().parse().unwrap();
    composio_api::ids::ACCOUNT.show(id)
}

fn key_used(fake: &Fake) -> String {
    fake.seen().last().unwrap()["headers"]["x-api-key"].as_str().unwrap().to_owned()
}

fn slugs(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["slug"].as_str().unwrap()).collect()
}

on_both! {
    async fn every_failure_is_in_the_envelope(test: &Test) {
        let slugs = read(test, "/tools/enum").await;
        assert!(slugs.as_array().unwrap().contains(&json!("FAKE_GET_A_THING")), "{slugs}");

        let unknown = refused(ask(test, Method::GET, "/nothing/here", None).await, 404);
        assert_eq!(unknown["slug"], "route_not_found");
        refused(ask(test, Method::DELETE, "/tools/enum", None).await, 405);
        refused(ask_as(test, "nonsense", Method::GET, "/tools/enum", None).await, 401);
        let viewer = test.key("default", Role::Viewer, None).await;
        refused(ask_as(test, &viewer, Method::POST, THING, Some(json!({"arguments": thing()}))).await, 403);
        let request = Request::builder().uri("/api/v3/tools/enum").header("x-request-id", "req-1");
        let reply = test.send(with_body(request, None)).await;
        assert_eq!(reply.headers["x-request-id"], "req-1");
        assert_eq!(refused(reply, 401)["request_id"], "req-1");

        for path in ["/tools?limit=0", "/tools?cursor=9", "/tools?toolkit_versions=%7B", "/toolkits?sort_by=x", "/toolkits?managed_by=x"] {
            refused(ask(test, Method::GET, path, None).await, 400);
        }
        let odd = ask(test, Method::POST, THING, Some(json!({"arguments": "text"}))).await;
        assert_eq!(odd.headers["x-should-retry"], "false");
        refused(odd, 400);
        let huge = "x".repeat(test.yard.config.body_limit + 1);
        refused(ask(test, Method::POST, THING, Some(json!({"arguments": {"owner": huge}}))).await, 413);
        for path in ["/tools/execute/proxy", "/tools/execute/X/input", "/files/upload/request", "/internal/sdk/realtime/auth"] {
            refused(ask(test, Method::POST, path, Some(json!({}))).await, 501);
        }
        let realtime = refused(ask(test, Method::GET, "/internal/sdk/realtime/credentials", None).await, 501);
        assert!(realtime["suggested_fix"].as_str().unwrap().contains("webhook_subscriptions"), "{realtime}");
        // Elsewhere errors are as they were.
        assert!(test.get("/nothing/here").await.expect(404)["detail"].is_string());
    }

    async fn toolkits_are_listed_and_described(test: &Test) {
        let first = read(test, "/toolkits?limit=2.0").await;
        assert_eq!((first["items"].as_array().unwrap().len(), &first["current_page"]), (2, &json!(1)));
        let mut all = 0;
        let mut cursor = String::new();
        loop {
            let page = read(test, &format!("/toolkits?limit=30&cursor={cursor}")).await;
            all += page["items"].as_array().unwrap().len();
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = next.to_owned();
        }
        assert_eq!(json!(all), first["total_items"]);

        let item = read(test, "/toolkits?search=GOOGLE%20calendar").await["items"][0].take();
        assert_eq!((&item["slug"], &item["type"], &item["no_auth"]), (&json!("googlecalendar"), &json!("native"), &json!(false)));
        assert_eq!(item["composio_managed_auth_schemes"], json!([]), "nobody has an OAuth app for it");
        let app = json!({"oauth_app": {"integration_key": "google-calendar", "client_id": "id", "client_secret": "secret"}});
        test.post("/tools/oauth-apps", app).await.expect(200);
        let kit = read(test, "/toolkits/GoogleCalendar").await;
        assert_eq!(kit["composio_managed_auth_schemes"], json!(["OAUTH2"]));
        let fields = &kit["auth_config_details"][0]["fields"]["auth_config_creation"]["required"];
        assert_eq!((&fields[0]["name"], &fields[1]["name"]), (&json!("client_id"), &json!("client_secret")));

        let fake = read(test, "/toolkits/fake").await;
        let needed = &fake["auth_config_details"][0]["fields"]["connected_account_initiation"];
        assert_eq!((&needed["required"][0]["name"], &needed["optional"][0]["default"]), (&json!("api_key"), &json!("red")));
        let version = fake["meta"]["version"].as_str().unwrap();
        read(test, &format!("/toolkits/fake?version={version}")).await;
        refused(ask(test, Method::GET, "/toolkits/fake?version=19990101_00", None).await, 404);
        let unknown = refused(ask(test, Method::GET, "/toolkits/gogle-calendar", None).await, 404);
        assert!(unknown["message"].as_str().unwrap().contains("Did you mean"), "{unknown}");
        let several = ask(test, Method::POST, "/toolkits/multi", Some(json!({"toolkits": ["FAKE", "github"], "limit": 5}))).await.expect(200);
        assert_eq!(several["total_items"], 2);
        assert!(read(test, "/toolkits/categories").await["items"].as_array().unwrap().len() > 3);
    }

    async fn tools_are_found_and_described(test: &Test) {
        let named = read(test, "/tools?tool_slugs=fake_make_a_thing,FAKE_NOTHING,FAKE_GET_A_THING&limit=9999").await;
        assert_eq!(slugs(&named), ["FAKE_MAKE_A_THING", "FAKE_GET_A_THING"]);
        let found = read(test, "/tools?query=read+a+fake+thing&limit=3").await;
        assert_eq!((slugs(&found)[0], slugs(&found).len()), ("FAKE_GET_A_THING", 3));
        let within = read(test, "/tools?search=create+a+thing&toolkit_slug=GITHUB,fake").await;
        assert!(slugs(&within).iter().all(|slug| slug.starts_with("FAKE_") || slug.starts_with("GITHUB_")), "{:?}", slugs(&within));
        let all = read(test, "/tools?toolkit_slug=fake&important=true&limit=100").await;
        assert_eq!(slugs(&all).len(), read(test, "/toolkits/fake").await["meta"]["tools_count"], "it marks none as important");
        let reading = read(test, "/tools?toolkit_slug=fake&tags=readOnlyHint&limit=100").await;
        assert!(slugs(&reading).contains(&"FAKE_GET_A_THING") && !slugs(&reading).contains(&"FAKE_MAKE_A_THING"));
        refused(ask(test, Method::GET, "/tools?toolkit_slug=nothing", None).await, 404);

        let tool = read(test, "/tools/Fake_Get_A_Thing").await;
        assert_eq!((&tool["slug"], &tool["toolkit"]["slug"]), (&json!("FAKE_GET_A_THING"), &json!("fake")));
        assert_eq!(tool["input_parameters"]["type"], "object");
        let version = tool["version"].as_str().unwrap();
        read(test, &format!("/tools/FAKE_GET_A_THING?toolkit_versions[fake]={version}")).await;
        read(test, "/tools/FAKE_GET_A_THING?toolkit_versions[github]=19990101_00").await;
        let gone = refused(ask(test, Method::GET, "/tools/FAKE_GET_A_THING?toolkit_versions[fake]=19990101_00", None).await, 404);
        assert_eq!(gone["code"], 2401);
        let unknown = refused(ask(test, Method::GET, "/tools/FAKE_GET_A_THINGS", None).await, 404);
        assert!(unknown["message"].as_str().unwrap().ends_with("Did you mean `FAKE_GET_A_THING`?"), "{unknown}");
    }

    async fn a_tool_runs_for_its_user_and_nobody_else(test: &Test) {
        let fake = Fake::start().await;
        let own = connect_for(test, &fake, None, "sk-own-123456").await;
        let old = connect_for(test, &fake, Some("alice"), "sk-alice-old").await;
        connect_for(test, &fake, Some("alice"), "sk-alice-new").await;
        let bobs = connect_for(test, &fake, Some("bob"), "sk-bob-123456").await;

        for (who, key) in [
            (json!({}), "sk-own-123456"),
            (json!({"user_id": "default"}), "sk-own-123456"),
            (json!({"user_id": "alice"}), "sk-alice-new"),
            (json!({"entity_id": "bob"}), "sk-bob-123456"),
            (json!({"user_id": "alice", "connected_account_id": old}), "sk-alice-old"),
            (json!({"connected_account_id": old}), "sk-alice-old"),
            (json!({"connected_account_id": own}), "sk-own-123456"),
        ] {
            let mut body = who.clone();
            body["arguments"] = thing();
            let done = execute(test, "fake_get_a_thing", body).await;
            assert_eq!((&done["successful"], &done["error"]), (&json!(true), &Value::Null), "{who}: {done}");
            assert!(done["log_id"].as_str().unwrap().starts_with("log_"), "{done}");
            assert_eq!(key_used(&fake), key, "{who}");
        }
        let before = fake.seen().len();
        for (who, status, code) in [
            (json!({"user_id": "carol"}), 400, 1803),
            (json!({"user_id": "alice", "connected_account_id": bobs}), 400, 1803),
            (json!({"user_id": "default", "connected_account_id": bobs}), 400, 1803),
            (json!({"user_id": "alice", "connected_account_id": "ca_nothing"}), 400, 1803),
            (json!({"user_id": "alice", "version": "19990101_00"}), 404, 2401),
            (json!({"user_id": " "}), 400, 10400),
            (json!({"user_id": "alice", "text": "do it"}), 501, 10501),
            (json!({"user_id": "alice", "custom_auth_params": {}}), 501, 10501),
        ] {
            let mut body = who.clone();
            body["arguments"] = thing();
            let error = refused(ask(test, Method::POST, THING, Some(body)).await, status);
            assert_eq!(error["code"], code, "{who}: {error}");
        }
        let other = test.key("other", Role::Owner, None).await;
        let body = json!({"connected_account_id": old, "arguments": thing()});
        assert_eq!(refused(ask_as(test, &other, Method::POST, THING, Some(body)).await, 400)["code"], 1803, "of another project");
        let of_github = json!({"user_id": "alice", "connected_account_id": old, "arguments": {"owner": "o", "repo": "r"}});
        let error = refused(ask(test, Method::POST, "/tools/execute/GITHUB_GET_A_REPOSITORY", Some(of_github)).await, 400);
        assert_eq!(error["code"], 1803, "an account of another toolkit");
        assert_eq!(fake.seen().len(), before, "nothing was called");
    }

    async fn what_goes_wrong_with_a_tool_is_told_to_the_model(test: &Test) {
        let fake = Fake::start().await;
        connect_for(test, &fake, None, "sk-own-123456").await;
        let wrong = execute(test, "FAKE_GET_A_THING", json!({"arguments": {"owner": "o"}})).await;
        assert_eq!(wrong["successful"], false);
        assert!(wrong["error"].as_str().unwrap().contains("path") && wrong["data"] == json!({}), "{wrong}");

        fake.answer_echo(json!([1, 2]).to_string());
        let list = execute(test, "FAKE_GET_A_THING", json!({"arguments": thing()})).await;
        assert_eq!(list["data"], json!({"result": [1, 2]}));

        ask_before(test, "tools.native.fake.MAKE_*", "ask").await;
        let waits = execute(test, "FAKE_MAKE_A_THING", json!({"arguments": {"title": "t"}})).await;
        let approval = test.get("/tools/approvals").await.expect(200)["approvals"][0]["id"].take();
        assert!(waits["error"].as_str().unwrap().contains(approval.as_str().unwrap()), "{waits}");
        assert_eq!(waits["successful"], false);
    }
}
