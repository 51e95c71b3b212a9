//! An agent narrows what its caller may do, and opens nothing.

use kernel::{Permission, Role};
use serde_json::{Value, json};

use crate::mcp::{newest, request};
use crate::support::{Database, Fake, Reply, Test, call_body, on_both};

const GET: &str = "tools.native.fake.GET_A_THING.main";

async fn key(test: &Test, only: &[Permission]) -> String {
    test.key("default", Role::Editor, Some(only.to_vec())).await
}

async fn call(test: &Test, key: &str) -> Reply {
    test.post_as(key, "/agents/1/call", call_body(GET, &json!({"owner": "a", "path": "p"}))).await
}

/// A request to the tools of the agent over MCP.
async fn ask(test: &Test, key: &str, method: &str, params: Value) -> Reply {
    let (message, headers) = newest(method, &params, &json!({}));
    test.send(request("/mcp/agents/1", key, &headers, &message)).await
}

on_both! {
    async fn calling_as_an_agent_needs_to_run_tools_too(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        test.post("/agents", json!({"name": "a", "agent_type": "custom", "tool_ids": ["fake"]})).await.expect(200);
        let agents = key(test, &[Permission::RunAgents, Permission::EditAgents, Permission::ViewAgents]).await;
        let asked = fake.seen().len();
        let told = call(test, &agents).await.detail(403);
        assert!(told.contains("This key lacks `run_tools`") && told.ends_with("This needs `run_agents` and `run_tools` together."), "{told}");
        let tool = json!({"name": "tools__native__fake__GET_A_THING__main", "arguments": {"owner": "a", "path": "p"}});
        for (method, params) in [("tools/call", tool), ("tools/list", json!({}))] {
            assert!(ask(test, &agents, method, params).await.detail(403).contains("`run_agents` and `run_tools` together"));
        }
        assert!(call(test, &key(test, &[Permission::RunTools]).await).await.detail(403).contains("This key lacks `run_agents`"));
        assert_eq!(fake.seen().len(), asked, "nothing reached the service");
        let both = key(test, &[Permission::RunAgents, Permission::RunTools]).await;
        call(test, &both).await.expect(200);
        ask(test, &both, "tools/list", json!({})).await.expect(200);
        let (annotator, scopes) = (test.key("default", Role::Annotator, None).await, "/.well-known/oauth-protected-resource/mcp/agents/1");
        call(test, &annotator).await.expect(200);
        assert_eq!(test.get(scopes).await.expect(200)["scopes_supported"], json!(["run_agents", "run_tools"]));
    }

    async fn giving_tools_to_an_agent_needs_to_run_them(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        test.post("/agents", json!({"name": "a", "agent_type": "custom", "tool_ids": ["fake"]})).await.expect(200);
        let editor = key(test, &[Permission::EditAgents, Permission::ViewAgents, Permission::EditTools]).await;
        let put = async |body: Value| test.request(http::Method::PUT, "/agents/1", Some(format!("ApiKey {editor}")), Some(body)).await;
        let config = json!([{"type": "gateway", "integration": "fake", "action": "GET_A_THING", "connection": "main"}]);
        let before = test.get("/agents/1").await.expect(200);
        for body in [
            json!({"tool_ids": ["fake", "hacker-news"]}),
            json!({"tool_ids": [{"id": "fake", "config": {"permission": "allow"}}]}),
            json!({"tool_mode": "inherit"}),
            json!({"tool_configs": config}),
        ] {
            let told = put(body.clone()).await.detail(403);
            assert!(told.contains("this key lacks `run_tools`"), "{body}: {told}");
        }
        test.post_as(&editor, "/agents/1/tools", json!({"id": "hacker-news"})).await.expect(403);
        for rest in [json!({"tool_ids": ["fake"]}), json!({"tool_mode": "inherit"}), json!({"tool_configs": config})] {
            let mut body = json!({"name": "b", "agent_type": "custom"});
            body.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            test.post_as(&editor, "/agents", body.clone()).await.expect(403);
            test.post_as(&editor, "/agents/bulk", json!([body])).await.expect(403);
        }
        assert_eq!(test.get("/agents/1").await.expect(200), before, "nothing was changed");
        let connections = test.post("/tools/connections/query", json!({})).await.expect(200);
        assert_eq!(connections["count"], 1, "no app was connected on the way");
        // What gives nothing is open to it.
        test.post_as(&editor, "/agents", json!({"name": "b", "agent_type": "custom"})).await.expect(200);
        put(json!({"description": "x", "tool_ids": ["fake"], "tool_configs": [], "tool_mode": "explicit"})).await.expect(200);
        put(json!({"tool_ids": []})).await.expect(200);
        put(json!({"tool_ids": ["fake"]})).await.expect(403);
    }
}
