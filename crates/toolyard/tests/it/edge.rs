//! What every request passes through.

use axum::body::Body;
use http::{HeaderValue, Method, Request};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{Database, Test, document, on_both};

on_both! {
    async fn every_mount_and_slash_is_the_same_path(test: &Test) {
        for path in ["/tools/calls", "/tools/calls/", "/api/tools/calls", "/preview/tools/calls/", "/api/api/tools/calls", "/api/preview/tools/calls?limit=1"] {
            test.get(path).await.expect(200);
        }
    }

    async fn keys_are_taken_in_every_form(test: &Test) {
        let key = &test.owner;
        for value in [format!("ApiKey {key}"), format!("Bearer {key}"), key.clone(), format!("apikey {key}")] {
            test.request(Method::GET, "/tools/calls", Some(value), None).await.expect(200);
        }
        let missing = test.request(Method::GET, "/tools/calls", None, None).await;
        assert_eq!(missing.headers["www-authenticate"], "Bearer realm=\"toolyard\"");
        let missing = missing.expect(401);
        assert_eq!((&missing["detail"]["reason"], &missing["code"]), (&json!("missing_key"), &json!("missing_key")));
        assert!(missing["detail"]["hint"].as_str().unwrap().contains("toolyard key create"));
        let wrong = test.request(Method::GET, "/tools/calls", Some("ApiKey nope".to_owned()), None).await.expect(401);
        assert_eq!((&wrong["detail"]["reason"], &wrong["code"]), (&json!("invalid_key"), &json!("invalid_key")));
        for value in ["", "ApiKey", "ApiKey ", "Basic abc", "Secret x"] {
            test.request(Method::GET, "/tools/calls", Some(value.to_owned()), None).await.expect(401);
        }
    }

    async fn an_id_that_is_none_is_refused_in_our_words(test: &Test) {
        for path in ["/tools/calls/nonsense", "/tools/connections/nonsense", "/workflows/runs/nonsense", "/triggers/deliveries/nonsense"] {
            let told = test.get(path).await.detail(422);
            assert!(told.contains("`nonsense` is no id") && !told.contains("UUID parsing"), "{path}: {told}");
        }
    }

    async fn a_filter_that_a_list_does_not_have_is_refused_with_the_nearest(test: &Test) {
        for (path, nearest) in [
            ("/tools/calls?outcom=ok", "`outcome`"),
            ("/tools/approvals?sttus=pending", "`status`"),
            ("/agents?skpi=1", "`skip`"),
            ("/agents?status=activ", "`active`"),
            ("/workflows/runs?workflow=x", "`workflow_id`"),
            ("/triggers/deliveries?limt=1", "`limit`"),
            ("/tools/catalog/providers/native/integrations?sort_by=alphabeticaly", "`alphabetically`"),
            ("/tools/catalog/providers/native/integrations/github/actions?categorys=x", "`categories`"),
        ] {
            let told = test.get(path).await.detail(422);
            assert!(told.contains(&format!("Did you mean {nearest}?")), "{path}: {told}");
        }
        assert!(test.get("/tools/imports?provider=mcp").await.detail(422).contains("unknown field `provider`"));
        for (path, told) in [
            ("/tools/connections/query?integration_key=githb", "Integration not found. Did you mean `github`?"),
            ("/tools/connections/query?provider_key=nativ", "Provider not found: nativ. Did you mean `native`?"),
        ] {
            assert_eq!(test.post(path, json!({})).await.detail(404), told);
        }
        for (path, told) in [
            ("/tools/catalog/providers/native/integrations/githb", "Integration not found. Did you mean `github`?"),
            ("/tools/catalog/providers/native/integrations/github/actions/CREATE_AN_ISUE", "Action not found. Did you mean `CREATE_AN_ISSUE`?"),
            ("/tools/catalog/providers/native/integrations/zzz", "Integration not found"),
        ] {
            assert_eq!(test.get(path).await.detail(404), told);
        }
    }

    async fn a_member_that_a_body_does_not_have_is_refused_with_the_nearest(test: &Test) {
        let connection = json!({"slug": "a", "provider_key": "native", "integration_key": "fake", "data": {"auth_schema": "api_key"}});
        let told = test.post("/tools/connections", json!({"connection": connection})).await.expect(422);
        assert_eq!(told["detail"][0]["loc"], json!(["body", "connection", "data", "auth_schema"]));
        assert!(told["detail"][0]["msg"].as_str().unwrap().contains("Did you mean `auth_scheme`?"), "{told}");
        for (path, body, nearest) in [
            ("/agents", json!({"name": "a", "agent_type": "x", "tool_mod": "inherit"}), "tool_mode"),
            ("/triggers/schedules", json!({"schedule": {"data": {}, "flag": {"is_active": false}}}), "flags"),
            ("/triggers/schedules", json!({"schedule": {"data": {}, "flags": {"is_activ": false}}}), "is_active"),
            ("/triggers/deliveries/query", json!({"delivery": {"stat": "dead"}}), "state"),
            ("/tools/discover", json!({"use_cases": ["x"], "providr": "native"}), "provider"),
            ("/tools/resolve", json!({"tool": []}), "tools"),
        ] {
            let told = test.post(path, body).await.detail(422);
            assert!(told.contains(&format!("Did you mean `{nearest}`?")), "{path}: {told}");
        }
        let made = test.admin(Method::POST, "/admin/keys", Some(json!({"key": {"project_id": uuid::Uuid::nil(), "permission": ["run_tools"]}}))).await;
        assert!(made.detail(422).contains("Did you mean `permissions`?"));
        let made = test.admin(Method::POST, "/admin/keys", Some(json!({"key": {"project_id": uuid::Uuid::nil(), "role": "editr"}}))).await;
        assert!(made.detail(422).contains("Did you mean `editor`?"));
    }

    async fn an_array_is_no_object(test: &Test) {
        let made = test.post("/simple/workflows", json!({"workflow": {"slug": "w", "data": {"kind": "echo"}}})).await.expect(200)["workflow"].take();
        let (id, key) = (made["id"].as_str().unwrap(), Some(format!("ApiKey {}", test.owner)));
        for body in [json!([]), json!([{"name": "x"}]), json!({"workflow": ["x"]})] {
            let told = test.request(Method::PUT, &format!("/workflows/{id}"), key.clone(), Some(body)).await.detail(422);
            assert!(told.contains("invalid type: sequence, expected an object"), "{told}");
        }
        for (path, body) in [
            ("/tools/connections", json!([["a", "native", "fake"]])),
            ("/tools/connections", json!({"connection": ["a", "native", "fake", null, null, null, null, null]})),
            ("/tools/connections", json!({"connection": {"slug": "a", "provider_key": "native", "integration_key": "fake", "data": []}})),
            ("/agents", json!(["a", "custom"])),
            ("/tools/call", json!({"data": ["t1", "function", {"name": "x", "arguments": {}}]})),
            ("/workflows/query", json!([])),
            ("/workflows/runs/query", json!({"windowing": [1]})),
            ("/triggers/schedules", json!({"schedule": {"data": {}, "flags": [false]}})),
        ] {
            let reply = test.post(path, body.clone()).await;
            assert!([404, 405, 422].contains(&reply.status.as_u16()), "{path} {body}: {} {}", reply.status, reply.text);
        }
    }

    async fn what_clients_of_other_systems_send_is_taken_and_named(test: &Test) {
        let listed = test.get("/agents?project_id=x&include_workspace_system=true").await;
        assert_eq!(listed.headers["warning"], "299 toolyard \"ignored: include_workspace_system, project_id\"");
        listed.expect(200);
        let made = test.post("/agents", json!({"name": "a", "agent_type": "x", "voice_profile_id": 7, "plugins": []})).await;
        assert_eq!(made.headers["warning"], "299 toolyard \"ignored: voice_profile_id, plugins\"");
        made.expect(200);
        let workflow = json!({"workflow": {"slug": "w", "created_at": "2026-01-01", "x": {"y": 1}}});
        let made = test.post("/workflows", workflow).await;
        assert_eq!(made.headers["warning"], "299 toolyard \"ignored: workflow.created_at, workflow.x\"");
        made.expect(200);
        assert!(!test.get("/agents?skip=0").await.headers.contains_key("warning"));
    }

    async fn a_trigger_is_changed_by_what_was_read_of_it(test: &Test) {
        test.post("/simple/workflows", json!({"workflow": {"slug": "w", "data": {"kind": "echo"}}})).await.expect(200);
        let data = json!({"event_key": "tick", "schedule": "0 9 * * *", "references": {"workflow": {"slug": "w"}}});
        let made = test.post("/triggers/schedules", json!({"schedule": {"name": "s", "data": data}})).await.expect(200)["schedule"].take();
        let path = format!("/triggers/schedules/{}", made["id"].as_str().unwrap());
        let key = Some(format!("ApiKey {}", test.owner));
        let changed = test.request(Method::PUT, &path, key, Some(json!({"schedule": made}))).await;
        assert!(changed.headers["warning"].to_str().unwrap().contains("schedule.created_at"));
        assert_eq!(changed.expect(200)["schedule"]["name"], "s");
    }

    async fn a_missing_permission_is_named_with_who_has_it(test: &Test) {
        let viewer = test.key("default", kernel::Role::Viewer, None).await;
        let told = test.post_as(&viewer, "/tools/oauth-apps", json!({})).await.detail(403);
        let documented = "You do not have access to perform this action. Please contact your organization admin.";
        assert_eq!(told, format!("{documented} This key lacks `edit_tools`, which the roles `editor`, `owner` have."));
    }

    async fn times_are_taken_as_people_say_them(test: &Test) {
        for said in ["yesterday", "2h", "2026-11-16"] {
            test.post("/triggers/deliveries/query", json!({"windowing": {"oldest": said}})).await.expect(200);
            test.post("/triggers/subscriptions/query", json!({"windowing": {"newest": said}})).await.expect(200);
        }
        let told = test.post("/triggers/deliveries/query", json!({"windowing": {"oldest": "soon"}})).await.detail(422);
        assert!(told.starts_with("`windowing.oldest`: `soon` is not a time; use ISO 8601"), "{told}");
    }
}

async fn raw(test: &Test, content_type: Option<&str>, body: impl Into<Body>) -> crate::support::Reply {
    let mut request = Request::post("/tools/connections").header("authorization", format!("ApiKey {}", test.owner));
    if let Some(kind) = content_type {
        request = request.header("content-type", kind);
    }
    test.send(request.body(body.into()).unwrap()).await
}

#[tokio::test]
async fn bodies_that_do_not_fit_are_refused_with_a_reason() {
    let test = Test::start(Database::Sqlite).await;
    let json = Some("application/json");
    let broken = raw(&test, json, "{\"connection\": ").await.expect(422);
    assert_eq!((&broken["detail"][0]["type"], &broken["code"]), (&json!("json_invalid"), &json!("json_invalid")));
    raw(&test, json, "").await.expect(422);
    raw(&test, json, "{} {}").await.expect(422);
    raw(&test, json, vec![b'"', 0xff, 0xfe, b'"']).await.expect(422);
    raw(&test, json, "[".repeat(100_000)).await.expect(422);
    assert_eq!(raw(&test, Some("text/plain"), "{}").await.expect(415)["code"], "body_not_json");
    raw(&test, Some("application/xml"), "<a/>").await.expect(415);
    let typed = raw(&test, Some("application/json; charset=utf-8"), r#"{"connection": {"slug": 7}}"#).await.expect(422);
    assert_eq!((&typed["detail"][0]["loc"], &typed["code"]), (&json!(["body", "connection", "slug"]), &json!("body_invalid")));
    assert_eq!(raw(&test, json, " ".repeat((1 << 20) + 1)).await.expect(413)["code"], "body_too_large");
    let undeclared = Body::from_stream(futures_util::stream::iter((0..40).map(|_| Ok::<_, std::io::Error>(vec![b' '; 64 << 10]))));
    raw(&test, json, undeclared).await.expect(413);
    test.get("/tools/connections/not-a-uuid").await.expect(422);
    test.get("/tools/connections/%ff").await.expect(422);
    assert_eq!(test.get("/tools/calls?limit=many").await.expect(422)["code"], "query_invalid");
}

#[tokio::test]
async fn unknown_paths_and_methods_answer_in_json() {
    let test = Test::start(Database::Sqlite).await;
    assert_eq!(test.get("/nowhere").await.detail(404), "Not Found");
    assert_eq!(test.get("/tools//calls").await.detail(404), "Not Found");
    assert_eq!(test.get("/nowhere").await.expect(404), json!({"detail": "Not Found", "code": "route_not_found"}));
    let wrong = test.delete("/tools/call").await;
    assert!(wrong.headers.contains_key("allow"));
    assert_eq!(wrong.detail(405), "Method Not Allowed");
}

#[tokio::test]
async fn request_ids_go_in_and_out() {
    let test = Test::start(Database::Sqlite).await;
    let ask = |id: &str| Request::get("/health").header("x-request-id", id).body(Body::empty()).unwrap();
    assert_eq!(test.send(ask("abc-1.2")).await.headers["x-request-id"], "abc-1.2");
    let made = test.send(ask("no spaces please")).await.headers["x-request-id"].clone();
    assert_eq!(made.len(), 36);
    let long = "x".repeat(200);
    assert_eq!(test.send(ask(&long)).await.headers["x-request-id"].len(), 36);
}

#[tokio::test]
async fn cors_is_off_unless_configured() {
    let ask = || Request::get("/health").header("origin", "https://app.example.com").body(Body::empty()).unwrap();
    let test = Test::start(Database::Sqlite).await;
    assert!(!test.send(ask()).await.headers.contains_key("access-control-allow-origin"));
    let test = Test::with(Database::Sqlite, |config| config.cors_origins = vec!["https://app.example.com".to_owned()]).await;
    assert_eq!(test.send(ask()).await.headers["access-control-allow-origin"], "https://app.example.com");
}

#[tokio::test]
async fn answers_are_compressed_on_request() {
    let test = Test::start(Database::Sqlite).await;
    for (path, is_large) in [("/tools/catalog/providers/native/integrations/?limit=20", false), ("/openapi.json", true)] {
        let ask = |encoding: &str| {
            let request = Request::get(path).header("authorization", format!("ApiKey {}", test.owner)).header("accept-encoding", encoding);
            test.send(request.body(Body::empty()).unwrap())
        };
        let (plain, short) = (ask("identity").await, ask("gzip").await);
        assert_eq!((plain.headers.get("content-encoding"), &short.headers["content-encoding"]), (None, &HeaderValue::from_static("gzip")));
        assert_eq!(plain.text.len() > work::SMALL, is_large, "{path}");
        assert!(short.text.len() < plain.text.len() && !short.text.is_empty(), "{path}");
    }
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_ended() {
    let fake = crate::support::Fake::start().await;
    let test = Test::with(Database::Sqlite, |config| config.request_timeout = std::time::Duration::from_millis(300)).await;
    test.connect_fake(&fake, "slow").await;
    test.call("tools.native.fake.SLOWLY.slow", json!({"ms": 2000})).await.expect(504);
}

#[tokio::test]
async fn operations_tell_how_it_is() {
    let test = Test::start(Database::Sqlite).await;
    assert_eq!(test.request(Method::GET, "/health", None, None).await.expect(200)["status"], "ok");
    test.request(Method::GET, "/ready", None, None).await.expect(200);
    let metrics = test.request(Method::GET, "/metrics", None, None).await;
    assert!(metrics.text.contains("toolyard_http_requests_total{method=\"GET\",route=\"/health\",status=\"200\"} 1"), "{}", metrics.text);
    let docs = test.request(Method::GET, "/docs", None, None).await;
    assert!(docs.text.contains("<title>Toolyard API</title>") && !docs.text.contains("//cdn"));
    test.yard.db.close().await;
    let away = test.request(Method::GET, "/ready", None, None).await.expect(503);
    assert_eq!(away["detail"]["parts"], json!({"database": "does not answer"}));
    assert_eq!(test.get("/tools/calls").await.detail(503), "The database does not answer. Try again in a moment.");
}

#[tokio::test]
async fn the_first_page_leads_on() {
    let test = Test::start(Database::Sqlite).await;
    let root = test.request(Method::GET, "/", None, None).await.expect(200);
    assert_eq!((root["name"].as_str(), root["docs"].as_str()), (Some("toolyard"), Some("http://127.0.0.1:8665/docs")));
    let request = Request::get("/").header("accept", "text/html,*/*;q=0.8").body(Body::empty()).unwrap();
    let page = test.send(request).await;
    assert_eq!((page.status.as_u16(), page.headers["location"].to_str().unwrap()), (303, "/app"));
}

/// A way to a server that can be cut.
struct Wire {
    url: String,
    open: tokio::task::JoinHandle<()>,
}

impl Wire {
    async fn to(url: &str) -> Self {
        let target = url.split_once('@').unwrap().1.split('/').next().unwrap().to_owned();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = url.replace(&target, &listener.local_addr().unwrap().to_string());
        let open = tokio::spawn(async move {
            let mut streams = tokio::task::JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                let mut far = tokio::net::TcpStream::connect(&target).await.unwrap();
                streams.spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
            }
        });
        Self { url, open }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_away_is_a_503_within_a_second() {
    let wire = Wire::to(&crate::support::postgres_schema().await).await;
    let test = Test::with(Database::Sqlite, |config| config.database_url.clone_from(&wire.url)).await;
    test.get("/tools/calls").await.expect(200);
    wire.open.abort();
    for path in ["/ready", "/tools/calls", "/agents", "/tools/connections/018f0000-0000-7000-8000-000000000000"] {
        let asked = std::time::Instant::now();
        test.get(path).await.expect(503);
        // A second, and as much again for a machine that is busy with other tests.
        assert!(asked.elapsed() < std::time::Duration::from_secs(2), "{path}: {:?}", asked.elapsed());
    }
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        ".{0,20}".prop_map(Into::into),
        prop_oneof!["native", "fake", "github", "default", "\u{0}", "tools.native.fake.X.y", "workflow.variant.a"].prop_map(Into::into),
    ];
    let keys = prop_oneof![
        "connection",
        "slug",
        "provider_key",
        "integration_key",
        "data",
        "credentials",
        "auth_scheme",
        "function",
        "name",
        "arguments",
        "id",
        "type",
        "oauth_app",
        "client_id",
        "accounts",
        "user",
        "email",
        "project",
        "key",
        "tags",
        "meta",
        ".{0,6}"
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            proptest::collection::btree_map(keys.clone(), inner, 0..6).prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Whatever is thrown at the edge, it never fails by itself.
#[test]
fn nothing_a_caller_sends_is_a_500() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let test = runtime.block_on(Test::start(Database::Sqlite));
    let document = document();
    let operations: Vec<(String, String)> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| methods.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone())))
        .collect();
    let mut runner =
        proptest::test_runner::TestRunner::new(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() });
    let strategy =
        (0..operations.len(), any_json(), "[^#]{0,30}", ".{0,12}", any::<bool>(), proptest::collection::vec(any::<u8>(), 0..60), 0..10_u8);
    let outcome = runner.run(&strategy, |(index, body, query, segment, operator, noise, kind)| {
        let (method, path) = &operations[index];
        let encoded: String = segment.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let id = uuid::Uuid::now_v7().to_string();
        let filled = path
            .split('/')
            .map(|part| if part.starts_with('{') { if kind % 2 == 0 { encoded.clone() } else { id.clone() } } else { part.to_owned() });
        let target = format!(
            "{}?{}",
            filled.collect::<Vec<_>>().join("/"),
            query
                .bytes()
                .map(|byte| if byte.is_ascii_alphanumeric() || b"=&%".contains(&byte) {
                    (byte as char).to_string()
                } else {
                    format!("%{byte:02X}")
                })
                .collect::<String>()
        );
        let secret = if operator { format!("Access {}", test.yard.operator_key.expose()) } else { format!("ApiKey {}", test.owner) };
        let request = Request::builder()
            .method(method.as_str())
            .uri(&target)
            .header("authorization", secret)
            .header("content-type", "application/json");
        let request = match http::HeaderValue::from_bytes(&noise) {
            Ok(value) => request.header("idempotency-key", value.clone()).header("x-request-id", value),
            Err(_) => request,
        };
        let payload = if kind == 9 { noise.clone() } else { body.to_string().into_bytes() };
        let Ok(request) = request.body(Body::from(payload)) else { return Ok(()) };
        let reply = runtime.block_on(test.send(request));
        // 501 says that a part of somebody else's API is not served.
        prop_assert!(reply.status.as_u16() < 500 || reply.status == 501, "{method} {target} {body}: {} {}", reply.status, reply.text);
        Ok(())
    });
    outcome.unwrap();
}
