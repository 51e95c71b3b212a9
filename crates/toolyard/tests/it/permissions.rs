//! `/tools/permissions`: what would happen to a call, and rules about arguments that no tool has.

use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{Server, run_in};
use crate::support::{Database, Reply, Test, on_both};

const MAKE: &str = "tools.native.fake.MAKE_A_THING.main";

async fn set(test: &Test, permissions: Value) -> Reply {
    let body = Some(json!({"permissions": permissions}));
    test.request(Method::PUT, "/tools/permissions", Some(format!("ApiKey {}", test.owner)), body).await
}

async fn explain(test: &Test, name: &str, arguments: Value) -> Reply {
    test.post("/tools/permissions/explain", json!({"name": name, "arguments": arguments})).await
}

on_both! {
    async fn a_call_is_explained_by_its_rule_and_argument(test: &Test) {
        let silent = explain(test, MAKE, json!({})).await.expect(200);
        assert_eq!((&silent["permission"], &silent["decided_by"], &silent["rules"]), (&json!("allow"), &json!("default"), &json!([])));
        set(test, json!({"default": "allow_reads", "rules": [
            {"pattern": "tools.native.fake.MAKE_*", "permission": "allow"},
            {"pattern": "tools.native.fake.MAKE_A_THING.*(labels=secret*)", "permission": "ask"},
            {"pattern": "tools.native.fake.*(title=danger*)", "permission": "deny"},
        ]})).await.expect(200);
        let allowed = explain(test, MAKE, json!({"title": "fine"})).await.expect(200);
        assert_eq!((&allowed["permission"], &allowed["rules"][0]["index"], &allowed["rules"][0]["argument"]), (&json!("allow"), &json!(0), &Value::Null));
        let asked = explain(test, MAKE, json!({"title": "fine", "labels": ["open", "secret-1"]})).await.expect(200);
        assert_eq!((&asked["permission"], asked["rules"].as_array().unwrap().len()), (&json!("ask"), 2));
        assert_eq!(asked["rules"][0], json!({"index": 1, "pattern": "tools.native.fake.MAKE_A_THING.*(labels=secret*)", "permission": "ask",
            "argument": {"name": "labels.1", "value": "secret-1"}}));
        let denied = explain(test, MAKE, json!({"note": "x", "title": "danger"})).await.expect(200);
        assert_eq!((&denied["permission"], &denied["rules"][0]["argument"]["name"]), (&json!("deny"), &json!("title")));
        assert!(denied["why"].as_str().unwrap().contains("is refused by rule 2") && denied["why"].as_str().unwrap().contains("`title` = `danger`"), "{denied}");
        let read = explain(test, "tools.native.fake.GET_A_THING.main", json!({})).await.expect(200);
        assert_eq!((&read["permission"], &read["read_only"], &read["decided_by"]), (&json!("allow"), &json!(true), &json!("default")));

        test.post("/simple/workflows/", json!({"workflow": {"slug": "pay", "data": {"kind": "echo"}}})).await.expect(200);
        let run = explain(test, "workflow.variant.pay", json!({})).await.expect(200);
        assert_eq!((&run["permission"], &run["tool"], run.get("read_only")), (&json!("ask"), &json!("workflow.variant.pay"), None));
        let op = explain(test, "tools.agenta.rename_agent", json!({})).await.expect(200);
        assert_eq!(op["permission"], "ask");
        explain(test, "tools.native.fake.NOPE.main", json!({})).await.expect(404);
        explain(test, "workflow.variant.nope", json!({})).await.expect(404);
        explain(test, "nonsense", json!({})).await.expect(400);
        assert_eq!(test.get("/tools/approvals").await.expect(200)["count"], 0, "nobody was asked");
        assert_eq!(test.get("/tools/calls").await.expect(200)["count"], 0, "nothing was called");
    }

    async fn a_rule_about_an_argument_that_no_tool_has_is_refused(test: &Test) {
        let rule = |pattern: &str| json!({"rules": [{"pattern": pattern, "permission": "deny"}]});
        let told = set(test, rule("tools.native.fake.MAKE_A_THING.*(titel=x*)")).await.detail(422);
        assert!(told.contains("`titel`") && told.contains("Did you mean `title`?"), "{told}");
        assert_eq!(test.get("/tools/permissions").await.expect(200)["permissions"]["rules"], json!([]), "nothing was saved");
        set(test, rule("tools.native.fake.*(owner=x*)")).await.expect(200);
    }
}

#[tokio::test]
async fn the_command_says_which_rule_and_which_argument() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), |_| {}).await;
    let command = |args: &'static [&'static str]| run_in(dir.path(), &server.url, args);
    let (code, _, err) = command(&["permissions", "deny", "tools.native.fake.*(title=danger*)"]).await;
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = command(&["permissions", "explain", MAKE, "--arg", "title=dangerous"]).await;
    assert!(code == 0 && out.starts_with("deny: ") && out.contains("`title` = `dangerous`"), "{out}{err}");
    let (code, out, _) = command(&["permissions", "explain", MAKE, "--arg", "title=fine", "--json"]).await;
    assert_eq!((code, &serde_json::from_str::<Value>(&out).unwrap()["permission"]), (0, &json!("allow")));
    let (code, _, err) = command(&["permissions", "deny", "tools.native.fake.*(titl=x)"]).await;
    assert!(code == 1 && err.contains("Did you mean `title`?"), "{err}");
}
