//! `/tools/connections` and `/triggers/connections`: keys and the life of a row.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::support::{Database, Fake, Reply, Test, fake_connection, on_both, until};

async fn patch(test: &Test, path: &str, change: Value) -> Reply {
    test.request(Method::PATCH, path, Some(format!("ApiKey {}", test.owner)), Some(json!({"connection": change}))).await
}

on_both! {
    async fn a_connection_is_called_as_people_like(test: &Test) {
        let fake = Fake::start().await;
        let made = test.connect_fake(&fake, "main").await;
        let id = made["id"].as_str().unwrap();
        let (tools, triggers) = (format!("/tools/connections/{id}"), format!("/triggers/connections/{id}"));
        let named = patch(test, &tools, json!({"name": "Ann's", "description": "for reports"})).await.expect(200);
        assert_eq!((&named["count"], &named["connection"]["name"]), (&json!(1), &json!("Ann's")));
        let kept = patch(test, &triggers, json!({"name": null})).await.expect(200)["connection"].take();
        assert_eq!((&kept["name"], &kept["description"], &kept["slug"]), (&Value::Null, &json!("for reports"), &json!("main")));
        assert_eq!(patch(test, &tools, json!({})).await.expect(200)["connection"], kept, "what is left out stays");
        for (change, words) in [
            (json!({"name": ""}), "send null to clear it"),
            (json!({"name": "x".repeat(256)}), "more than 255"),
            (json!({"name": "a\nb"}), "cannot be shown"),
            (json!({"description": "x".repeat(2001)}), "more than 2000"),
            (json!({"name": 7}), "name"),
            (json!({"slug": "other"}), "slug"),
            (json!({"name": "a\u{0}b"}), ""),
        ] {
            let told = patch(test, &tools, change.clone()).await.detail(422);
            assert!(told.contains(words), "{change}: {told}");
        }
        assert_eq!(test.get(&tools).await.expect(200)["connection"], kept, "what was refused changed nothing");
        // It still works as it did.
        test.call("tools.native.fake.GET_A_THING.main", json!({"owner": "o", "path": "p"})).await.expect(200);
        let nobody = format!("/tools/connections/{}", uuid::Uuid::now_v7());
        assert_eq!(patch(test, &nobody, json!({"name": "x"})).await.expect(404)["code"], "connection_not_found");
    }

    async fn a_connection_says_when_it_was_last_used(test: &Test) {
        let fake = Fake::start().await;
        let made = test.connect_fake(&fake, "main").await;
        let path = format!("/tools/connections/{}", made["id"].as_str().unwrap());
        let last = async || test.get(&path).await.expect(200)["connection"]["last_used_at"].as_str().map(str::to_owned);
        let used = async || test.call("tools.native.fake.GET_A_THING.main", json!({"owner": "o", "path": "p"})).await.expect(200);
        assert_eq!(last().await, None);
        used().await;
        until("it is noted", async || last().await.is_some()).await;
        let first = last().await;
        test.clock.advance(Duration::from_mins(59));
        used().await;
        test.clock.advance(Duration::from_mins(1));
        assert_eq!(last().await, first, "noted once an hour at most");
        used().await;
        until("it is noted again", async || last().await > first).await;
        assert_eq!(test.get(&path).await.expect(200)["connection"]["updated_at"], made["updated_at"], "nobody changed it");
    }

    async fn a_key_is_proven_sealed_and_never_shown(test: &Test) {
        let fake = Fake::start().await;
        let made = test.connect_fake(&fake, "main").await;
        assert_eq!(made["flags"], json!({"is_active": true, "is_valid": true}));
        assert_eq!(made["meta"]["account"], json!({"id": "7", "label": "ann"}));
        assert_eq!(made["data"], json!({"auth_scheme": "api_key"}));
        assert_eq!(fake.seen()[0]["headers"]["x-api-key"], "sk-fake-123456");
        let id = made["id"].as_str().unwrap();
        for path in [format!("/tools/connections/{id}"), format!("/triggers/connections/{id}")] {
            let read = test.get(&path).await;
            assert!(!read.text.contains("sk-fake") && !read.text.contains(&fake.url), "{}", read.text);
            assert_eq!(read.expect(200)["connection"], made);
        }
        let listed = test.post("/triggers/connections/query?provider_key=native&integration_key=fake", json!({"ignored": true})).await.expect(200);
        assert_eq!(listed["connections"], json!([made]));
        assert_eq!(test.post("/tools/connections/query?integration_key=github", json!({})).await.expect(200)["count"], 0);
        assert_eq!(test.request(Method::POST, "/tools/connections/query", Some(test.owner.clone()), None).await.expect(200)["count"], 1);
    }

    async fn what_is_refused_leaves_no_row(test: &Test) {
        let fake = Fake::start().await;
        let with = |data: serde_json::Value| fake_connection("main", &data);
        let key = json!({"base": fake.url, "api_key": "k-12345678"});
        let create = "/tools/connections/";
        for (body, status, words) in [
            (json!({"connection": {"slug": "a.b", "provider_key": "native", "integration_key": "fake"}}), 422, "must not contain dots or consecutive underscores"),
            (json!({"connection": {"slug": "a__b", "provider_key": "native", "integration_key": "fake"}}), 422, "must not contain dots"),
            (json!({"connection": {"slug": "a b", "provider_key": "native", "integration_key": "fake"}}), 422, "'slug' must be URL-safe."),
            (json!({"connection": {"slug": null, "provider_key": "native", "integration_key": "fake"}}), 422, "slug"),
            (json!({"connection": {"provider_key": "native", "integration_key": "fake"}}), 422, "slug"),
            (json!({"connection": {"slug": "x", "provider_key": "agenta", "integration_key": "fake"}}), 404, "Provider not found: agenta"),
            (json!({"connection": {"slug": "x", "provider_key": "native", "integration_key": "nope"}}), 404, "Integration 'nope' not found"),
            (with(json!({"auth_scheme": "magic"})), 422, "has no auth scheme 'magic'"),
            (with(json!({"auth_scheme": "oauth"})), 422, "has no auth scheme 'oauth'"),
            (with(json!({"auth_scheme": "api_key", "credentials": {"base": fake.url, "api_key": ""}})), 422, "`api_key` is required"),
            (with(json!({"auth_scheme": "api_key", "credentials": {"base": "http://169.254.169.254", "api_key": "k"}})), 422, "does not have the expected form"),
            (with(json!({"auth_scheme": "api_key", "credentials": {"base": fake.url, "api_key": "k", "extra": "1"}})), 422, "`extra` is not a field"),
            (with(json!({"auth_scheme": "api_key", "credentials": {"base": fake.url, "api_key": "a\nb"}})), 422, "control characters"),
            (with(json!({"auth_scheme": "api_key", "credentials": {"base": "http://127.0.0.1:1", "api_key": "k"}})), 424, "Fake"),
        ] {
            let reply = test.post(create, body.clone()).await;
            let detail = reply.detail(status);
            assert!(detail.contains(words), "{body}: {detail}");
        }
        for (status, answer) in [(401, 422), (403, 422), (202, 422), (500, 502)] {
            fake.answer_me(status);
            let refused = test.post(create, with(json!({"auth_scheme": "api_key", "credentials": key}))).await;
            assert!(!refused.text.contains("k-12345678"), "what a service repeats of a key is not printed: {}", refused.text);
            refused.expect(answer);
        }
        assert_eq!(test.post("/tools/connections/query", json!({})).await.expect(200)["count"], 0);
        fake.answer_me(404);
        test.post(create, with(json!({"auth_scheme": "api_key", "credentials": key}))).await.expect(200);
        let calls = fake.seen().len();
        let taken = test.post(create, with(json!({"auth_scheme": "api_key", "credentials": key}))).await.expect(409);
        assert_eq!(taken["detail"]["conflict"], json!({"provider_key": "native", "integration_key": "fake", "slug": "main"}));
        assert_eq!(fake.seen().len(), calls, "the provider is not asked when the slug is taken");
    }

    async fn the_scheme_follows_from_what_is_given(test: &Test) {
        let fake = Fake::start().await;
        let basic = json!({"credentials": {"base": fake.url, "username": "ann", "password": "secret-123"}});
        test.post("/tools/connections", fake_connection("basic", &basic)).await.expect(200);
        test.call("tools.native.fake.MAKE_A_THING.basic", json!({"title": "x"})).await.expect(200);
        assert_eq!(fake.seen().last().unwrap()["headers"]["authorization"], "Basic YW5uOnNlY3JldC0xMjM=");
        let bearer = json!({"credentials": {"base": fake.url, "token": "tok-12345678"}});
        test.post("/tools/connections", fake_connection("bearer", &bearer)).await.expect(200);
        test.call("tools.native.fake.MAKE_A_THING.bearer", json!({"title": "x"})).await.expect(200);
        assert_eq!(fake.seen().last().unwrap()["headers"]["authorization"], "Bearer tok-12345678");
    }

    async fn a_connection_without_auth_is_ready_at_once(test: &Test) {
        let body = json!({"connection": {"slug": "hn", "provider_key": "native", "integration_key": "hacker-news"}});
        let made = test.post("/tools/connections", body).await.expect(200);
        assert_eq!(made["connection"]["flags"]["is_valid"], true);
        assert_eq!(made["connection"]["data"], json!({"auth_scheme": null, "no_auth": true}));
        let id = made["connection"]["id"].as_str().unwrap();
        let refreshed = test.post(&format!("/tools/connections/{id}/refresh"), json!({})).await.expect(200);
        assert_eq!(refreshed["connection"], made["connection"]);
        test.post(&format!("/tools/connections/{id}/revoke"), json!({})).await.expect(200);
        let again = test.post(&format!("/tools/connections/{id}/refresh"), json!({})).await.expect(200);
        assert_eq!(again["connection"]["flags"]["is_valid"], true);
    }

    async fn a_scheme_is_found_by_its_name_before_the_first_that_is_typed(test: &Test) {
        let connect = async |slug: &str, scheme: &str| {
            let connection = json!({"slug": slug, "provider_key": "native", "integration_key": "cloudflare", "data": {"auth_scheme": scheme}});
            let made = test.post("/tools/connections", json!({"connection": connection})).await.expect(200);
            let link: url::Url = made["connection"]["data"]["redirect_url"].as_str().unwrap().parse().unwrap();
            test.request(http::Method::GET, link.path(), None, None).await.text
        };
        assert!(connect("named", "api_key").await.contains("Account e-mail"), "a token comes first in its manifest");
        assert!(!connect("token", "bearer").await.contains("Account e-mail"));
    }

    async fn revoking_is_final_and_repeatable(test: &Test) {
        let fake = Fake::start().await;
        let id = test.connect_fake(&fake, "main").await["id"].as_str().unwrap().to_owned();
        for _ in 0..2 {
            let revoked = test.post(&format!("/tools/connections/{id}/revoke"), json!({})).await.expect(200);
            assert_eq!(revoked["connection"]["flags"], json!({"is_active": true, "is_valid": false}));
        }
        let calls = fake.seen().len();
        let refused = test.call("tools.native.fake.MAKE_A_THING.main", json!({"title": "x"})).await.detail(400);
        assert!(refused.starts_with("Connection credentials not established: main - Please refresh the connection."), "{refused}");
        assert_eq!(fake.seen().len(), calls);
        let again = test.post(&format!("/tools/connections/{id}/refresh"), json!({})).await.expect(200);
        assert!(again["connection"]["data"]["redirect_url"].as_str().unwrap().contains("/connect/"));
        test.delete(&format!("/tools/connections/{id}")).await.expect(204);
        test.delete(&format!("/tools/connections/{id}")).await.expect(404);
        test.get(&format!("/tools/connections/{id}")).await.expect(404);
        test.post(&format!("/tools/connections/{id}/revoke"), json!({})).await.expect(404);
        test.post(&format!("/triggers/connections/{id}/refresh"), json!({})).await.expect(404);
    }

    async fn usage_counts_real_consumers(test: &Test) {
        let fake = Fake::start().await;
        let id = test.connect_fake(&fake, "main").await["id"].as_str().unwrap().to_owned();
        assert_eq!(test.get(&format!("/tools/connections/{id}/usage")).await.expect(200)["usage"], json!({"agents": 0, "tools": 0, "triggers": 0}));
        test.call("tools.native.fake.MAKE_A_THING.main", json!({"title": "x"})).await.expect(200);
        assert_eq!(test.get(&format!("/tools/connections/{id}/usage")).await.expect(200)["usage"], json!({"agents": 0, "tools": 1, "triggers": 0}));
    }

    async fn client_credentials_are_exchanged_and_renewed(test: &Test) {
        let fake = Fake::start().await;
        let data = json!({"auth_scheme": "client_credentials", "credentials": {"base": fake.url, "client_id": "id", "client_secret": "s:cret"}});
        test.post("/tools/connections", fake_connection("cc", &data)).await.expect(200);
        let token = &fake.seen()[0];
        assert_eq!(token["headers"]["authorization"], "Basic aWQ6cyUzQWNyZXQ=");
        assert_eq!(token["body"], "grant_type=client_credentials&scope=one+two");
        test.call("tools.native.fake.MAKE_A_THING.cc", json!({"title": "x"})).await.expect(200);
        assert_eq!(fake.seen().last().unwrap()["headers"]["authorization"], "Bearer token-1-abcdef");
        test.clock.advance(std::time::Duration::from_secs(90));
        test.call("tools.native.fake.MAKE_A_THING.cc", json!({"title": "x"})).await.expect(200);
        assert_eq!(fake.seen().last().unwrap()["headers"]["authorization"], "Bearer token-2-abcdef");
        assert_eq!(fake.token_requests(), 2);
    }

    async fn oauth_apps_are_kept_replaced_and_deleted(test: &Test) {
        let set = |id: &str| json!({"oauth_app": {"integration_key": "github", "client_id": id, "client_secret": "very-secret-1", "scopes": ["repo"]}});
        let first = test.post("/tools/oauth-apps", set("one")).await;
        assert!(!first.text.contains("very-secret"));
        assert!(first.expect(200)["oauth_app"]["redirect_url"].as_str().unwrap().contains("/tools/connections/callback/"));
        let second = test.post("/tools/oauth-apps", set("two")).await.expect(200);
        let listed = test.get("/tools/oauth-apps").await.expect(200);
        assert_eq!((listed["count"].as_u64(), &listed["oauth_apps"][0]["client_id"]), (Some(1), &json!("two")));
        test.post("/tools/oauth-apps", json!({"oauth_app": {"integration_key": "nope", "client_id": "x"}})).await.expect(404);
        test.post("/tools/oauth-apps", json!({"oauth_app": {"integration_key": "github", "client_id": " "}})).await.expect(422);
        let body = json!({"connection": {"slug": "gh", "provider_key": "native", "integration_key": "github"}});
        let started = test.post("/tools/connections", body).await.expect(200);
        let url: url::Url = started["connection"]["data"]["redirect_url"].as_str().unwrap().parse().unwrap();
        let query: std::collections::BTreeMap<_, _> = url.query_pairs().into_owned().collect();
        assert_eq!((query["client_id"].as_str(), query["scope"].as_str(), query["code_challenge_method"].as_str()), ("two", "repo", "S256"));
        let id = second["oauth_app"]["id"].as_str().unwrap();
        test.delete(&format!("/tools/oauth-apps/{id}")).await.expect(204);
        test.delete(&format!("/tools/oauth-apps/{id}")).await.expect(404);
        let body = json!({"connection": {"slug": "gh2", "provider_key": "native", "integration_key": "github", "data": {"auth_scheme": "oauth"}}});
        let missing = test.post("/tools/connections", body.clone()).await.detail(422);
        assert!(missing.contains("needs an OAuth app") && missing.contains("/tools/connections/callback"), "{missing}");
        test.admin(Method::POST, "/admin/oauth-apps", Some(set("everywhere"))).await.expect(200);
        let started = test.post("/tools/connections", body).await.expect(200);
        assert!(started["connection"]["data"]["redirect_url"].as_str().unwrap().contains("client_id=everywhere"));
    }
}
