//! Credentials that a service refuses.

use http::Method;
use serde_json::{Value, json};

use crate::support::{Database, Fake, Test, on_both};

const FAIL: &str = "tools.native.fake.FAIL_A_THING";
const GET: &str = "tools.native.fake.GET_A_THING";

async fn connection(test: &Test, made: &Value) -> Value {
    test.get(&format!("/tools/connections/{}", made["id"].as_str().unwrap())).await.expect(200)["connection"].take()
}

/// What discovery says about the fake service: state, connection, why not.
async fn discovered(test: &Test) -> (Value, Value, Value) {
    let answer = test.post("/tools/discover", json!({"use_cases": ["read a fake thing"], "provider": "native"})).await.expect(200);
    let state = &answer["capabilities"][0]["connection"];
    (state["state"].clone(), state["slug"].clone(), state["failure"].clone())
}

async fn broken(test: &Test, state: &str) -> String {
    let metrics = test.request(Method::GET, "/metrics", None, None).await.text;
    let name = format!("toolyard_broken_connections{{state=\"{state}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or_else(|| panic!("{metrics}")).to_owned()
}

async fn refuse(test: &Test, slug: &str) {
    assert!(test.call(&format!("{FAIL}.{slug}"), json!({"code": 401})).await.detail(424).contains("refused the credential"));
}

on_both! {
    async fn a_refused_credential_is_told_and_not_picked(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "older").await;
        test.clock.advance(std::time::Duration::from_mins(1));
        let newer = test.connect_fake(&fake, "newer").await;
        let agent = test.post("/agents", json!({"name": "clerk", "agent_type": "custom", "tool_ids": ["fake"]})).await.expect(200);
        let toolset = async || test.post(&format!("/agents/{}/toolset", agent["id"]), json!({})).await.expect(200)["tools"].take();
        assert_eq!((discovered(test).await.1, &toolset().await[0]["connection"]), (json!("newer"), &json!("newer")), "the newest is picked");

        test.call(&format!("{FAIL}.newer"), json!({"code": 403})).await.expect(200);
        assert_eq!(connection(test, &newer).await["flags"], json!({"is_active": true, "is_valid": true}), "a 403 is no refusal of the credential");
        refuse(test, "newer").await;
        let failing = connection(test, &newer).await;
        assert_eq!(failing["flags"], json!({"is_active": true, "is_valid": true, "is_failing": true}));
        let why = failing["status"]["message"].as_str().unwrap();
        assert!(why.contains("Fake refused the credential of `newer`") && why.contains("Connect the account again"), "{why}");
        assert_eq!((discovered(test).await, &toolset().await[0]["connection"]), ((json!("ready"), json!("older"), Value::Null), &json!("older")));
        let listed = crate::mcp::result(test, "/mcp", "tools/list", json!({})).await;
        let described = |name: &str| listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap()["description"].to_string();
        assert!(described("tools__native__fake__GET_A_THING__newer").contains("refused the credential"));
        assert!(!described("tools__native__fake__GET_A_THING__older").contains("refused the credential"));
        assert_eq!(broken(test, "failing").await, "1");

        // By name it is still called, and what works is not failing.
        test.call(&format!("{GET}.newer"), json!({"owner": "o", "path": "p"})).await.expect(200);
        assert_eq!(connection(test, &newer).await["flags"], json!({"is_active": true, "is_valid": true}));
        assert_eq!((discovered(test).await.1, broken(test, "failing").await), (json!("newer"), "0".to_owned()));
    }

    async fn where_there_is_no_other_it_is_said(test: &Test) {
        let fake = Fake::start().await;
        let made = test.connect_fake(&fake, "main").await;
        let agent = test.post("/agents", json!({"name": "clerk", "agent_type": "custom", "tool_ids": ["fake"]})).await.expect(200);
        refuse(test, "main").await;
        let (state, slug, why) = discovered(test).await;
        assert_eq!((state, slug), (json!("needs_input"), json!("main")));
        assert!(why.as_str().unwrap().contains("refused the credential"), "{why}");
        let tools = test.post(&format!("/agents/{}/toolset", agent["id"]), json!({"format": "openai"})).await.expect(200);
        assert!(tools["tools"][0]["description"].as_str().unwrap().contains("refused the credential"), "{tools}");
        assert!(tools["definitions"][0].to_string().contains("refused the credential"));

        // The check by which an account is connected clears it, or asks a person.
        let refresh = format!("/tools/connections/{}/refresh", made["id"].as_str().unwrap());
        fake.answer_me(401);
        let asked = test.post(&refresh, json!({})).await.expect(200)["connection"].take();
        assert!(asked["data"]["redirect_url"].as_str().unwrap().contains("/connect/"), "{asked}");
        fake.answer_me(200);
        let fresh = test.post(&refresh, json!({})).await.expect(200)["connection"].take();
        assert_eq!((&fresh["flags"], fresh.get("status")), (&json!({"is_active": true, "is_valid": true}), None));
        test.post(&format!("/tools/connections/{}/revoke", made["id"].as_str().unwrap()), json!({})).await.expect(200);
        assert_eq!((broken(test, "failing").await, broken(test, "not_valid").await), ("0".to_owned(), "1".to_owned()));
    }

    async fn a_token_is_renewed_before_it_counts_as_refused(test: &Test) {
        let fake = Fake::start().await;
        let credentials = json!({"base": fake.url, "client_id": "c", "client_secret": "s-12345678"});
        let body = crate::support::fake_connection("main", &json!({"auth_scheme": "client_credentials", "credentials": credentials}));
        let made = test.post("/tools/connections/", body).await.expect(200)["connection"].take();
        let tokens = fake.token_requests();
        refuse(test, "main").await;
        assert_eq!(fake.token_requests(), tokens + 1, "it was renewed, and refused again");
        assert_eq!(connection(test, &made).await["flags"]["is_failing"], true);
    }

    async fn a_credential_that_nothing_checks_is_said_to_be_unchecked(test: &Test) {
        let fake = Fake::start().await;
        test.post("/tools/imports/openapi", crate::imports::order(&crate::imports::pets(&fake))).await.expect(200);
        let data = json!({"credentials": {"api_key": "pet-12345678"}});
        let body = json!({"connection": {"slug": "main", "provider_key": "openapi", "integration_key": "pets", "data": data}});
        let made = test.post("/tools/connections", body).await.expect(200)["connection"].take();
        assert!(made["status"]["message"].as_str().unwrap().contains("not checked"), "{made}");
        assert_eq!(connection(test, &made).await.get("status"), None, "it is said once, when connecting");
        assert_eq!(test.connect_fake(&fake, "main").await.get("status"), None);
    }
}
