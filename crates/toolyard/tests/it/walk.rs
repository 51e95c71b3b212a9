//! Every documented route, found in the document itself, so that later routes are covered too.

use std::collections::BTreeMap;

use http::Method;
use kernel::Role;
use serde_json::{Value, json};

use crate::support::{Database, Fake, Test, on_both};

struct Operation {
    method: Method,
    path: String,
    /// What the document says is needed: a permission, `operator`, or nothing.
    needs: Option<String>,
}

fn operations() -> Vec<Operation> {
    let document = serde_json::to_value(server::openapi()).unwrap();
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let needs = operation["security"].get(0).and_then(|security| security.as_object()).and_then(|security| {
                let (name, scopes) = security.iter().next()?;
                Some(scopes.get(0).and_then(Value::as_str).unwrap_or(name).to_owned())
            });
            found.push(Operation { method: method.to_uppercase().parse().unwrap(), path: path.clone(), needs });
        }
    }
    found
}

/// Rows of the default project, by the name that paths have for their ids.
async fn rows(test: &Test, connection: &str) -> BTreeMap<String, String> {
    let id = |value: &Value| value.as_str().unwrap().to_owned();
    let workflow = json!({"workflow": {"slug": "walked", "data": {"kind": "echo"}}});
    let workflow = test.post("/simple/workflows", workflow).await.expect(200)["workflow"].take();
    let environment = json!({"environment": {"slug": "walked"}});
    let environment = test.post("/simple/environments", environment).await.expect(200)["environment"].take();
    let run = test.post("/workflows/invoke", json!({"references": {"workflow": {"slug": "walked"}}})).await.expect(200);
    let agent = test.post("/agents", json!({"name": "walked", "agent_type": "custom", "tool_ids": ["fake"]})).await.expect(200);
    let document =
        json!({"openapi": "3.1.0", "info": {"title": "Walked"}, "servers": [{"url": "https://example.com"}], "paths": {"/x": {"get": {}}}});
    let import = test.post("/tools/imports/openapi", json!({"import": {"document": document}})).await.expect(200)["import"].take();
    [
        ("{connection_id}", connection.to_owned()),
        ("{import_id}", id(&import["id"])),
        ("{workflow_id}", id(&workflow["id"])),
        ("{workflow_variant_id}", id(&workflow["variant_id"])),
        ("{workflow_revision_id}", id(&workflow["revision_id"])),
        ("{environment_id}", id(&environment["id"])),
        ("{environment_variant_id}", id(&environment["variant_id"])),
        ("{environment_revision_id}", id(&environment["revision_id"])),
        ("{run_id}", id(&run["meta"]["run_id"])),
        ("{agent_id}", id(&agent["public_id"])),
    ]
    .map(|(name, id)| (name.to_owned(), id))
    .into()
}

/// The path with ids that exist in the default project.
fn filled(path: &str, rows: &BTreeMap<String, String>) -> String {
    let path = rows.iter().fold(path.to_owned(), |path, (name, id)| path.replace(name, id));
    path.replace("{provider_key}", "native")
        .replace("{integration_key}", "fake")
        .replace("{action_key}", "GET_A_THING")
        .replace("{event_key}", "THING_MADE")
        .replace("{ticket}", "x")
        .split('/')
        .map(|part| if part.starts_with('{') { uuid::Uuid::now_v7().to_string() } else { part.to_owned() })
        .collect::<Vec<_>>()
        .join("/")
}

/// What every project has something of: the catalog, the default environments, a secret of its own.
fn shows_more(path: &str) -> bool {
    path.contains("/catalog/")
        || path.starts_with("/environments/")
        || [
            "/tools/schema",
            "/tools/ops",
            "/tools/permissions",
            "/tools/marketplace",
            "/tools/stats",
            "/agents/types",
            "/workflows/signing-secret",
        ]
        .contains(&path)
}

/// Whether an answer holds no rows: a list says so itself, anything else by its count.
fn is_empty(body: &Value) -> bool {
    let counted = ["count", "total", "total_agents"].iter().any(|count| body[*count] == 0);
    // Days are there whether something happened or not.
    let idle = |day: &Value| day["assigned"] == 0 && day["active"] == 0;
    let idle = body["days"].as_array().is_some_and(|days| days.iter().all(idle));
    body.as_array().map_or(counted || idle, Vec::is_empty)
}

#[test]
fn only_what_must_be_public_is_public() {
    let public: Vec<String> =
        operations().into_iter().filter(|operation| operation.needs.is_none()).map(|operation| operation.path).collect();
    assert_eq!(
        public,
        [
            "/",
            "/health",
            "/ready",
            "/metrics",
            "/openapi.json",
            "/docs",
            "/tools/connections/callback",
            "/triggers/native/{integration_key}/{token}",
            "/triggers/native/{integration_key}/{token}",
            "/triggers/composio/events",
            "/connect/{ticket}",
            "/connect/{ticket}",
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-protected-resource/mcp",
            "/.well-known/oauth-protected-resource/mcp/agents/{agent_id}"
        ]
    );
}

on_both! {
    async fn without_a_key_nothing_opens(test: &Test) {
        for operation in operations().into_iter().filter(|operation| operation.needs.is_some()) {
            let path = filled(&operation.path, &BTreeMap::new());
            for authorization in [None, Some("ApiKey wrong".to_owned()), Some("Access wrong".to_owned())] {
                let reply = test.request(operation.method.clone(), &path, authorization, Some(json!({}))).await;
                assert_eq!(reply.status, 401, "{} {path}: {}", operation.method, reply.text);
            }
        }
    }

    async fn a_viewer_changes_nothing(test: &Test) {
        let fake = Fake::start().await;
        let connection = test.connect_fake(&fake, "main").await["id"].as_str().unwrap().to_owned();
        let rows = rows(test, &connection).await;
        let viewer = format!("ApiKey {}", test.key("default", Role::Viewer, None).await);
        for operation in operations() {
            let Some(needs) = operation.needs.filter(|needs| needs != "operator") else { continue };
            let path = filled(&operation.path, &rows);
            let reply = test.request(operation.method.clone(), &path, Some(viewer.clone()), Some(json!({}))).await;
            if needs.starts_with("view_") {
                assert_ne!(reply.status, 403, "{} {path}", operation.method);
            } else {
                assert_eq!(reply.status, 403, "{} {path}: {}", operation.method, reply.text);
            }
        }
        assert_eq!(test.get(&format!("/tools/connections/{connection}")).await.expect(200)["connection"]["flags"]["is_valid"], true);
    }

    async fn another_project_sees_nothing(test: &Test) {
        let fake = Fake::start().await;
        let connection = test.connect_fake(&fake, "main").await["id"].as_str().unwrap().to_owned();
        test.call("tools.native.fake.MAKE_A_THING.main", json!({"title": "x"})).await.expect(200);
        test.post("/tools/oauth-apps", json!({"oauth_app": {"integration_key": "oidc", "client_id": "c", "client_secret": "s"}})).await.expect(200);
        let rows = rows(test, &connection).await;
        let secret = test.get("/workflows/signing-secret").await.text;
        let stranger = format!("ApiKey {}", test.key("elsewhere", Role::Owner, None).await);
        for operation in operations() {
            if operation.needs.as_deref().is_none_or(|needs| needs == "operator") {
                continue;
            }
            let path = filled(&operation.path, &rows);
            let reply = test.request(operation.method.clone(), &path, Some(stranger.clone()), Some(json!({}))).await;
            let at = format!("{} {path}: {} {}", operation.method, reply.status, reply.text);
            if operation.path.contains("_id}") {
                // A body that lacks something is refused before the row is looked for.
                assert!(matches!(reply.status.as_u16(), 404 | 422), "{at}");
            } else if reply.status == 200 && !shows_more(&operation.path) {
                assert!(is_empty(&reply.json()), "{at}");
            }
            assert_ne!(reply.text, secret, "{at}");
            assert!(!rows.values().any(|id| reply.text.contains(id)) || operation.path.contains("_id}"), "{at}");
        }
        let reply = test.request(Method::POST, "/tools/call", Some(stranger), Some(crate::support::call_body("tools.native.fake.MAKE_A_THING.main", &json!({"title": "x"})))).await;
        assert_eq!(reply.detail(404), "Connection not found: native/fake/main");
        assert_eq!(test.get(&format!("/tools/connections/{connection}")).await.expect(200)["count"], 1);
    }
}
