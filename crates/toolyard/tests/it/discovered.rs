//! What discovery returns goes on as it is: into tool configs, into calls, and to the catalog of events.

use discovery::FoundTool;
use serde_json::{Value, json};
use store::args;

use crate::support::{Database, Fake, Test, on_both};

/// Every integration with its actions, connected by a row that needs no credential.
async fn connect_everything(test: &Test) {
    let me = test.yard.accounts.authenticator().authenticate(&test.owner).await.unwrap().unwrap();
    for integration in test.yard.catalog.source("native").unwrap().integrations(me.project) {
        let sql = "insert into gateway_connections (project_id, id, slug, provider_key, integration_key, is_active, is_valid, auth_scheme, generation, \
                   asked, created_at, updated_at) values ($1, $2, $3, 'native', $4, $5, $5, 'none', 1, '{}', 0, 0)";
        let (id, slug) = (kernel::ConnectionId::new(), format!("{}-main", integration.key));
        test.yard.db.execute(sql, args![me.project, id, slug.as_str(), integration.key.as_str(), true]).await.unwrap();
    }
}

on_both! {
    async fn every_tool_that_discovery_can_return_is_a_tool_config(test: &Test) {
        let me = test.yard.accounts.authenticator().authenticate(&test.owner).await.unwrap().unwrap();
        let integrations = test.yard.catalog.source("native").unwrap().integrations(me.project);
        let sentence = |name: &str, action: &catalog::Action| format!("{} {name}", action.use_cases.first().unwrap_or(&action.name));
        let sentences: Vec<String> = integrations.iter().flat_map(|one| one.actions.iter().map(|action| sentence(&one.name, action))).collect();
        let mut returned: Vec<Value> = Vec::new();
        for some in sentences.chunks(50).take(4) {
            let answer = test.post("/tools/discover", json!({"use_cases": some, "limit_alternatives": 2})).await.expect(200);
            for capability in answer["capabilities"].as_array().unwrap() {
                returned.extend(capability.get("tool").cloned());
                returned.extend(capability["alternatives"].as_array().unwrap().iter().cloned());
            }
        }
        assert!(returned.len() > 300 && returned.iter().any(|tool| tool.get("connection").is_none()), "{}", returned.len());
        connect_everything(test).await;
        accepted(test, returned).await;

        let all = integrations.iter().flat_map(|one| {
            let slug = format!("{}-main", one.key);
            one.actions.iter().map(move |action| json!(FoundTool::new(one, action, Some(slug.clone()))))
        });
        let all: Vec<Value> = all.collect();
        assert!(all.len() > 1000, "{}", all.len());
        accepted(test, all).await;
    }
}

/// Puts tools into all three places as they are, each once.
async fn accepted(test: &Test, mut tools: Vec<Value>) {
    let name = |tool: &Value| (tool["integration"].to_string(), tool["action"].to_string());
    tools.sort_by_key(name);
    tools.dedup_by_key(|tool| name(tool));
    for some in tools.chunks(200) {
        let resolved = test.post("/tools/resolve", json!({"tools": some})).await.expect(200);
        assert_eq!(resolved["count"], some.len());
        for (tool, resolved) in some.iter().zip(resolved["custom"].as_array().unwrap()) {
            assert!(resolved["call_ref"].as_str().unwrap().contains(tool["action"].as_str().unwrap()));
            assert!(tool.get("input_schema").is_none_or(|schema| *schema == resolved["input_schema"]), "{tool}");
        }
        let specs = test.post("/tools/specs", json!({"tools": some})).await.expect(200);
        assert_eq!(specs["customTools"].as_array().unwrap().len(), some.len());
        let agent = json!({"name": "wired", "agent_type": "custom", "tool_configs": some});
        let agent = test.post("/agents", agent).await.expect(200);
        let toolset = test.post(&format!("/agents/{}/toolset", agent["id"]), json!({"excluded": true})).await.expect(200);
        assert_eq!(toolset["tools"].as_array().unwrap().len(), some.len(), "{}", toolset["excluded"]);
        test.delete(&format!("/agents/{}", agent["id"])).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_event_that_discovery_can_return_is_in_the_catalog_and_is_no_tool() {
    let test = Test::with(Database::Sqlite, |config| config.integrations_dir = None).await;
    let me = test.yard.accounts.authenticator().authenticate(&test.owner).await.unwrap().unwrap();
    let integrations = test.yard.catalog.source("native").unwrap().integrations(me.project);
    let sentences: Vec<String> =
        integrations.iter().flat_map(|one| one.events.iter().map(|event| format!("{} {}", event.name, one.name))).collect();
    let mut seen = 0;
    for some in sentences.chunks(50) {
        let answer = test.post("/triggers/discover", json!({"use_cases": some, "limit_alternatives": 1})).await.expect(200);
        for event in answer["capabilities"].as_array().unwrap().iter().filter_map(|capability| capability.get("event")) {
            let text = |key: &str| event[key].as_str().unwrap();
            let path = format!(
                "/triggers/catalog/providers/{}/integrations/{}/events/{}",
                text("provider"),
                text("integration"),
                text("event_key")
            );
            let known = test.get(&path).await.expect(200);
            assert_eq!(known["event"]["trigger_config"], event["trigger_config"], "{path}");
            let detail = test.post("/tools/resolve", json!({"tools": [event]})).await.detail(422);
            assert!(detail.contains("is an event, not a tool"), "{detail}");
            seen += 1;
        }
    }
    assert!(seen > 150, "{seen}");
}

/// A service without accounts, at the address of the fake.
fn sundial(fake: &Fake) -> Value {
    let read = json!({"operationId": "readTheShadow", "summary": "Read the shadow of the sundial", "description": "Tells which hour the shadow falls on."});
    json!({"openapi": "3.1.0", "info": {"title": "Sundial", "version": "1"}, "servers": [{"url": fake.url}], "paths": {"/echo/shadow": {"get": read}}})
}

on_both! {
    async fn an_app_without_accounts_is_found_and_called_without_a_connection(test: &Test) {
        let fake = Fake::start().await;
        test.post("/tools/imports/openapi", json!({"import": {"document": sundial(&fake)}})).await.expect(200);
        let ask = || async {
            let body = json!({"use_cases": ["read the shadow of the sundial"]});
            test.post("/tools/discover", body).await.expect(200)
        };
        let found = ask().await;
        let tool = &found["capabilities"][0]["tool"];
        assert_eq!((&found["ready"], &tool["connection"]), (&json!(true), &json!("sundial-main")), "{found}");
        assert_eq!(found["connections"][0].get("connect"), None, "there is nothing to connect: {found}");
        assert!(!found["guidance"]["plan_steps"].to_string().contains("Connect"), "{found}");

        let resolved = test.post("/tools/resolve", json!({"tools": [tool]})).await.expect(200);
        let call_ref = resolved["custom"][0]["call_ref"].as_str().unwrap();
        assert_eq!(call_ref, "tools.openapi.sundial.read_the_shadow.sundial-main");
        assert_eq!(test.post("/tools/specs", json!({"tools": [tool]})).await.expect(200)["customTools"][0]["callRef"], call_ref);
        assert_eq!(Test::content(test.call(call_ref, json!({})).await)["data"]["path"], "/echo/shadow");
        let calls = test.get("/tools/calls").await.expect(200);
        assert_eq!((&calls["calls"][0]["call_ref"], calls["calls"][0].get("connection_id")), (&json!(call_ref), None), "{calls}");
        test.call("tools.openapi.sundial.read_the_shadow.other", json!({})).await.expect(404);
        assert_eq!(test.post("/tools/connections/query", json!({})).await.expect(200)["count"], 0, "no row was made");

        let made = json!({"name": "clerk", "agent_type": "custom", "tool_configs": [tool]});
        let agent = test.post("/agents", made).await.expect(200);
        let body = json!({"data": {"id": "1", "function": {"name": call_ref, "arguments": {}}}});
        let called = test.post(&format!("/agents/{}/call", agent["id"]), body).await.expect(200);
        assert_eq!(called["call"]["status"]["code"], "STATUS_CODE_OK", "{called}");

        let name = call_ref.replace('.', "__");
        let by_name = crate::mcp::result(test, "/mcp", "tools/call", json!({"name": name, "arguments": {}})).await;
        assert_eq!(by_name["structuredContent"]["path"], "/echo/shadow", "{by_name}");
        let find = json!({"name": "find_tools", "arguments": {"use_cases": ["read the shadow of the sundial"]}});
        let searched = crate::mcp::result(test, "/mcp?mode=search", "tools/call", find).await;
        assert_eq!(searched["structuredContent"]["results"][0]["tools"][0]["name"], name, "{searched}");

        let row = json!({"connection": {"slug": "sundial-main", "provider_key": "openapi", "integration_key": "sundial"}});
        let row = test.post("/tools/connections", row).await.expect(200);
        test.post(&format!("/tools/connections/{}/revoke", row["connection"]["id"].as_str().unwrap()), json!({})).await.expect(200);
        test.call(call_ref, json!({})).await.expect(400);
        let found = ask().await;
        assert_eq!(found["ready"], false, "what a person revoked is not opened again: {found}");
        assert!(found["connections"][0]["connect"].is_object(), "{found}");
    }
}
