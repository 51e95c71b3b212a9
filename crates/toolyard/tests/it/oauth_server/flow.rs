//! The way that is meant: registration, consent, code, calls, refresh, introspection, revocation.

use std::time::Duration;

use super::*;
use crate::mcp::{newest, request};
use crate::support::{Database, Fake, on_both};

on_both! {
    async fn a_person_lets_a_client_in(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let (mut browser, user) = with_person(test, "ada@example.com", "default", Role::Editor).await;
        let client = register(test, "Desk").await;
        let resource = format!("{}/mcp", public(test));
        let page = browser.get(&authorize_url(&client, &[("resource", &resource)])).await;
        assert_eq!(page.status, 200, "{}", page.text);
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("form-action 'self' https://client.example"), "{policy}");
        for shown in ["Desk", "ada@example.com", "https://client.example", "Default", "the tools of the project (MCP)", "Call tools with the connected accounts"] {
            assert!(page.text.contains(shown), "{shown}: {}", page.text);
        }
        assert_eq!(offered(&page.text), ["view_tools", "run_tools"]);

        let fields = filled(&page.text, "allow", &["run_tools".to_owned()]);
        let back = location(&submit(&mut browser, "/oauth/authorize", &fields).await);
        assert!(back.as_str().starts_with("https://client.example/cb?code="), "{back}");
        assert_eq!((query(&back, "state").as_deref(), query(&back, "iss")), (Some("s&1"), Some(public(test))));
        let reply = redeem(test, &client, &query(&back, "code").unwrap(), &[("resource", &resource)]).await;
        assert_eq!(reply.headers["cache-control"], "no-store");
        let given = reply.expect(200);
        assert_eq!((&given["token_type"], &given["scope"], &given["expires_in"]), (&json!("Bearer"), &json!("run_tools"), &json!(3600)));

        let access = text(&given["access_token"]);
        let (message, headers) = newest("tools/call", &json!({"name": "tools__native__fake__GET_A_THING__main", "arguments": {"owner": "o", "path": "p"}}), &json!({}));
        let called = test.send(request("/mcp", access, &headers, &message)).await.expect(200);
        assert!(called["result"]["isError"].as_bool() != Some(true), "{called}");
        let calls = test.get("/tools/calls").await.expect(200);
        let record = &calls["calls"][0];
        assert_eq!(record["via"], "client");
        assert_eq!((&record["client_name"], &record["user_name"], &record["user_id"]), (&json!("Desk"), &json!("ada@example.com"), &json!(user)), "{record}");

        let grants = test.get("/grants").await.expect(200);
        let grant = &grants["grants"][0];
        assert_eq!((&grant["id"], &grant["state"], &grant["permissions"], &grant["resource"]), (&record["grant_id"], &json!("active"), &json!(["run_tools"]), &json!(resource)));
        assert_eq!((&grant["user_name"], grant["last_used_at"].is_string()), (&json!("ada@example.com"), true), "{grant}");

        let seen = post(test, "/oauth/introspect", &[("client_id", &client), ("token", access)]).await.expect(200);
        assert_eq!((&seen["active"], &seen["scope"], &seen["aud"], &seen["sub"]), (&json!(true), &json!("run_tools"), &json!(resource), &json!(user)));
        let next = refresh(test, &client, text(&given["refresh_token"])).await.expect(200);
        assert_ne!(next["access_token"], given["access_token"]);
        test.send(request("/mcp", text(&next["access_token"]), &headers, &message)).await.expect(200);

        post(test, "/oauth/revoke", &[("client_id", &client), ("token", text(&next["access_token"]))]).await.expect(200);
        assert_eq!(test.send(request("/mcp", text(&next["access_token"]), &headers, &message)).await.status, 401);
        test.send(request("/mcp", access, &headers, &message)).await.expect(200);
        post(test, "/oauth/revoke", &[("client_id", &client), ("token", text(&next["refresh_token"]))]).await.expect(200);
        assert_eq!(test.send(request("/mcp", access, &headers, &message)).await.status, 401, "the grant is gone");
        let seen = post(test, "/oauth/introspect", &[("client_id", &client), ("token", access)]).await.expect(200);
        assert_eq!(seen, json!({"active": false}));
        assert_eq!(test.get("/grants?active=true").await.expect(200)["count"], 0);
    }

    async fn whoever_is_not_signed_in_signs_in_first(test: &Test) {
        let client = register(test, "Desk").await;
        let asked = authorize_url(&client, &[]);
        let reply = Browser::new(test).get(&asked).await;
        let to = reply.headers["location"].to_str().unwrap();
        let query: String = url::form_urlencoded::Serializer::new(String::new()).append_pair("return_to", &asked).finish();
        assert_eq!((reply.status.as_u16(), to), (303, format!("/sign-in?{query}").as_str()));
        let mut browser = Browser::new(test);
        let page = browser.get(to).await;
        let fields = [("key", test.owner.as_str()), ("return_to", &field(&page.text, "return_to"))];
        let entered = browser.answer("/sign-in", &page, &fields).await;
        assert_eq!(entered.headers["location"].to_str().unwrap(), asked);
        let given = tokens(test, &mut browser, &client, &[]).await;
        as_bearer(test, text(&given["access_token"]), "/tools/connections").await;
        let listed = test.get("/grants").await.expect(200);
        assert_eq!((&listed["grants"][0]["key_name"], &listed["grants"][0]["user_id"]), (&json!("first key"), &json!(null)));
    }

    async fn a_token_is_good_for_one_surface(test: &Test) {
        let agent = test.post("/agents", json!({"name": "helper", "agent_type": "custom"})).await.expect(200);
        let (id, mut browser) = (text(&agent["public_id"]).to_owned(), with_key(test, &test.owner).await);
        let client = register(test, "Desk").await;
        let address = |path: &str| format!("{}{path}", public(test));
        let (mcp, of_agent) = (address("/mcp"), address(&format!("/mcp/agents/{id}")));
        let asked = [("scope", "run_tools run_agents view_tools view_agents")];
        let api = tokens(test, &mut browser, &client, &asked).await;
        let one = tokens(test, &mut browser, &client, &[asked[0], ("resource", &mcp)]).await;
        let page = browser.get(&authorize_url(&client, &[asked[0], ("resource", &of_agent)])).await;
        assert!(page.text.contains("the tools of the agent helper (MCP)"), "{}", page.text);
        let other = tokens(test, &mut browser, &client, &[asked[0], ("resource", &of_agent)]).await;
        let (message, headers) = newest("tools/list", &json!({}), &json!({}));
        let agents = format!("/mcp/agents/{id}");
        for (token, path, status) in [
            (&api, "/mcp", 200),
            (&api, agents.as_str(), 200),
            (&one, "/mcp", 200),
            (&one, "/api/mcp/", 200),
            (&one, agents.as_str(), 401),
            (&one, "/mcp/agents/1", 401),
            (&other, agents.as_str(), 200),
            (&other, "/mcp", 401),
        ] {
            let reply = test.send(request(path, text(&token["access_token"]), &headers, &message)).await;
            assert_eq!(reply.status.as_u16(), status, "{path}: {}", reply.text);
            if status == 401 {
                assert_eq!(reply.json()["code"], "token_for_another_surface");
                let challenge = reply.headers["www-authenticate"].to_str().unwrap();
                let metadata = format!("resource_metadata=\"{}\"", address(&format!("/.well-known/oauth-protected-resource{path}")));
                assert!(challenge.contains("error=\"invalid_token\"") && challenge.contains(&metadata), "{challenge}");
            }
        }
        as_bearer(test, text(&api["access_token"]), "/agents").await.expect(200);
        for token in [&one, &other] {
            let reply = as_bearer(test, text(&token["access_token"]), "/agents").await;
            assert!(reply.headers["www-authenticate"].to_str().unwrap().contains("invalid_token"));
            assert_eq!(reply.expect(401)["code"], "token_for_another_surface");
        }
    }

    async fn what_is_missing_is_said_to_the_client(test: &Test) {
        let (message, headers) = newest("tools/list", &json!({}), &json!({}));
        let client = register(test, "Desk").await;
        let mut browser = with_key(test, &test.owner).await;
        let narrow = tokens(test, &mut browser, &client, &[("scope", "view_tools")]).await;
        let reply = test.send(request("/mcp", text(&narrow["access_token"]), &headers, &message)).await;
        let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", public(test));
        let expected = format!("Bearer realm=\"toolyard\", error=\"insufficient_scope\", scope=\"run_tools\", resource_metadata=\"{metadata}\"");
        assert_eq!((reply.status.as_u16(), reply.headers["www-authenticate"].to_str().unwrap()), (403, expected.as_str()));
        let nobody = test.request(Method::POST, "/api/mcp", None, Some(message)).await;
        let expected = "/.well-known/oauth-protected-resource/api/mcp\"";
        assert!(nobody.headers["www-authenticate"].to_str().unwrap().ends_with(expected));
        let found = test.get("/.well-known/oauth-protected-resource/api/mcp").await.expect(200);
        assert_eq!((&found["resource"], &found["authorization_servers"]), (&json!(format!("{}/api/mcp", public(test))), &json!([public(test)])));
    }

    async fn the_metadata_says_where_everything_is(test: &Test) {
        let found = test.request(Method::GET, "/.well-known/oauth-authorization-server", None, None).await.expect(200);
        let at = |path: &str| json!(format!("{}{path}", public(test)));
        assert_eq!((&found["issuer"], &found["token_endpoint"]), (&at(""), &at("/oauth/token")));
        assert_eq!((&found["code_challenge_methods_supported"], &found["client_id_metadata_document_supported"]), (&json!(["S256"]), &json!(true)));
        for same in ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server/mcp", "/.well-known/openid-configuration/mcp/agents/7"] {
            assert_eq!(test.request(Method::GET, same, None, None).await.expect(200), found, "{same}");
        }
        assert_eq!(test.request(Method::GET, "/.well-known/oauth-protected-resource/tools", None, None).await.status, 404);
    }

    async fn tokens_end_with_time(test: &Test) {
        let client = register(test, "Desk").await;
        let mut browser = with_key(test, &test.owner).await;
        let given = tokens(test, &mut browser, &client, &[]).await;
        as_bearer(test, text(&given["access_token"]), "/tools/calls").await.expect(200);
        test.clock.advance(Duration::from_hours(1));
        assert_eq!(as_bearer(test, text(&given["access_token"]), "/tools/calls").await.expect(401)["code"], "invalid_token");
        let next = refresh(test, &client, text(&given["refresh_token"])).await.expect(200);
        as_bearer(test, text(&next["access_token"]), "/tools/calls").await.expect(200);
        test.clock.advance(Duration::from_hours(30 * 24));
        assert_eq!(error(refresh(test, &client, text(&next["refresh_token"])).await, 400), "invalid_grant");
        assert_eq!(test.get("/grants").await.expect(200)["grants"][0]["state"], "expired");
        test.clock.advance(Duration::from_hours(48));
        test.yard.forget().await.unwrap();
        for (table, left) in [("oauth_tokens", 0), ("oauth_codes", 0), ("oauth_grants", 1)] {
            assert_eq!(rows(test, table).await, left, "{table}");
        }
    }
}

async fn rows(test: &Test, table: &str) -> i64 {
    let sql = match table {
        "oauth_tokens" => "select count(*) as found from oauth_tokens",
        "oauth_codes" => "select count(*) as found from oauth_codes",
        _ => "select count(*) as found from oauth_grants",
    };
    test.yard.db.optional(sql, []).await.unwrap().unwrap().get("found").unwrap()
}
