//! OAuth2 against a real server that we did not write.

use std::time::Duration;

use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use url::Url;

use crate::support::{Database, Oidc, Reply, Test, on_both};

async fn provider(test: &Test, access_ttl: u32) -> Oidc {
    let app = json!({"oauth_app": {"integration_key": "oidc", "client_id": "yard", "client_secret": "yard-secret"}});
    let made = test.post("/tools/oauth-apps", app).await.expect(200);
    // The one that apps from before they had one each go on with is registered too.
    let registered = format!("{},{}", made["oauth_app"]["redirect_url"].as_str().unwrap(), test.yard.connections.callback_url());
    Oidc::start(&registered, access_ttl).await
}

async fn begin(test: &Test, oidc: &Oidc, slug: &str) -> (String, String) {
    let body = json!({"connection": {"slug": slug, "provider_key": "native", "integration_key": "oidc", "data": {"auth_scheme": "oauth", "credentials": {"base": oidc.issuer}}}});
    let started = test.post("/tools/connections/", body).await.expect(200)["connection"].take();
    assert_eq!(started["flags"], json!({"is_active": true, "is_valid": false}));
    (started["id"].as_str().unwrap().to_owned(), started["data"]["redirect_url"].as_str().unwrap().to_owned())
}

async fn come_back(test: &Test, url: &Url) -> Reply {
    test.request(Method::GET, &format!("{}?{}", url.path(), url.query().unwrap_or_default()), None, None).await
}

async fn connected(test: &Test, oidc: &Oidc, slug: &str) -> String {
    let (id, authorize) = begin(test, oidc, slug).await;
    let back = oidc.browse(&authorize, "ann", true).await;
    let page = come_back(test, &back).await;
    assert_eq!(page.status, 200, "{}", page.text);
    id
}

async fn read(test: &Test, id: &str) -> Value {
    test.get(&format!("/tools/connections/{id}")).await.expect(200)["connection"].take()
}

/// The same address with another value of a parameter, or without it.
fn with(url: &Url, name: &str, value: Option<&str>) -> Url {
    let kept: Vec<(String, String)> =
        url.query_pairs().filter(|(key, _)| key != name).map(|(k, v)| (k.into_owned(), v.into_owned())).collect();
    let mut url = url.clone();
    url.query_pairs_mut().clear().extend_pairs(kept).extend_pairs(value.map(|value| (name, value)));
    url
}

on_both! {
    async fn the_answer_of_another_provider_is_refused(test: &Test) {
        let oidc = provider(test, 600).await;
        let (id, authorize) = begin(test, &oidc, "main").await;
        let back = oidc.browse(&authorize, "ann", true).await;
        assert_eq!(back.query_pairs().find(|(name, _)| name == "iss").unwrap().1, oidc.issuer, "the provider says who it is");
        let other = come_back(test, &with(&back, "iss", Some("https://evil.example"))).await;
        assert!(other.status == 400 && other.text.contains("not from the provider that was asked") && !other.text.contains("evil"), "{}", other.text);
        let mut elsewhere = back.clone();
        elsewhere.set_path("/tools/connections/callback/0123456789abcdef");
        assert_eq!(come_back(test, &elsewhere).await.status, 400, "another app's address");
        elsewhere.set_path("/tools/connections/callback");
        assert_eq!(come_back(test, &elsewhere).await.status, 400, "the address that is no app's own");
        assert_eq!(oidc.counters().await["code_exchanges"], 0, "no code was handed on");
        assert_eq!(read(test, &id).await["flags"]["is_valid"], false);
        let page = come_back(test, &back).await;
        assert_eq!(page.status, 200, "the attempt is still open: {}", page.text);
    }

    async fn apps_from_before_keep_the_redirect_url_that_they_registered(test: &Test) {
        let oidc = provider(test, 600).await;
        test.yard.db.execute("update oauth_apps set own_redirect = $1", store::args![false]).await.unwrap();
        let app = json!({"oauth_app": {"integration_key": "oidc", "client_id": "yard", "client_secret": "yard-secret"}});
        let saved = test.post("/tools/oauth-apps", app).await.expect(200);
        assert_eq!(saved["oauth_app"]["redirect_url"], test.yard.connections.callback_url(), "saved again, it is the same app");
        let (_, authorize) = begin(test, &oidc, "main").await;
        let back = oidc.browse(&authorize, "ann", true).await;
        assert_eq!(back.path(), "/tools/connections/callback");
        assert_eq!(come_back(test, &back).await.status, 200);
        let app = json!({"oauth_app": {"integration_key": "oidc", "client_id": "another", "client_secret": "yard-secret"}});
        let another = test.post("/tools/oauth-apps", app).await.expect(200);
        assert!(another["oauth_app"]["redirect_url"].as_str().unwrap().contains("/tools/connections/callback/"), "{another}");
    }

    async fn a_person_agrees_and_the_account_works(test: &Test) {
        let oidc = provider(test, 600).await;
        let (id, authorize) = begin(test, &oidc, "main").await;
        let back = oidc.browse(&authorize, "ann", true).await;
        let page = come_back(test, &back).await;
        assert!(page.status == 200 && page.text.contains("Oidc is connected as ann"), "{}", page.text);
        assert!(page.text.contains("\"type\":\"tools:oauth:complete\"") && page.text.contains("\"slug\":\"main\""));
        let made = read(test, &id).await;
        assert_eq!((&made["flags"]["is_valid"], &made["meta"]["account"]["label"]), (&json!(true), &json!("ann")));
        let asked = authorize.parse::<Url>().unwrap().query_pairs().find(|(name, _)| name == "scope").unwrap().1.into_owned();
        let mut asked: Vec<&str> = asked.split(' ').collect();
        let mut granted: Vec<&str> = made["scopes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        asked.sort_unstable();
        granted.sort_unstable();
        assert_eq!(granted, asked);
        let me = Test::content(test.call("tools.native.oidc.GET_ME.main", json!({})).await);
        assert_eq!(me["data"]["login"], "ann");
        let replayed = come_back(test, &back).await;
        assert_eq!(replayed.status, 400, "a state is used once");
        test.post(&format!("/tools/connections/{id}/revoke"), json!({})).await.expect(200);
        assert_eq!(come_back(test, &back).await.status, 400);
        let revoked = read(test, &id).await;
        assert_eq!(revoked["flags"]["is_valid"], false, "a replay does not bring a revoked connection back");
        assert!(revoked["scopes"].is_null(), "{revoked}");
    }

    async fn looking_at_the_address_does_not_use_up_the_state(test: &Test) {
        let oidc = provider(test, 600).await;
        let (_, authorize) = begin(test, &oidc, "main").await;
        let back = oidc.browse(&authorize, "ann", true).await;
        let looked = test.request(Method::HEAD, &format!("{}?{}", back.path(), back.query().unwrap()), None, None).await;
        assert_eq!((looked.status.as_u16(), looked.headers["allow"].to_str().unwrap()), (405, "GET"));
        assert_eq!(come_back(test, &back).await.status, 200);
    }

    async fn a_state_activates_only_its_own_row_in_time(test: &Test) {
        let oidc = provider(test, 600).await;
        let (id, authorize) = begin(test, &oidc, "late").await;
        let back = oidc.browse(&authorize, "ann", true).await;
        test.clock.advance(Duration::from_secs(3601));
        assert_eq!(come_back(test, &back).await.status, 400);
        let (denied, authorize) = begin(test, &oidc, "denied").await;
        let back = oidc.browse(&authorize, "ann", false).await;
        let page = come_back(test, &back).await;
        assert!(page.status == 400 && page.text.contains("the user said no") && page.text.contains("\"success\":false"), "{}", page.text);
        let (forged, authorize) = begin(test, &oidc, "forged").await;
        let mut back = oidc.browse(&authorize, "ann", true).await;
        let query: Vec<(String, String)> = back.query_pairs().map(|(k, v)| (k.to_string(), if k == "state" { format!("{v}x") } else { v.to_string() })).collect();
        back.query_pairs_mut().clear().extend_pairs(query);
        assert_eq!(come_back(test, &back).await.status, 400);
        let (wrong, authorize) = begin(test, &oidc, "wrong-code").await;
        let authorize = authorize.parse::<Url>().unwrap();
        let part = |name: &str| authorize.query_pairs().find(|(found, _)| found == name).unwrap().1.into_owned();
        let redirect = part("redirect_uri").parse::<Url>().unwrap();
        let page = test.request(Method::GET, &format!("{}?code=nope&state={}", redirect.path(), part("state")), None, None).await;
        assert_eq!(page.status, 424, "{}", page.text);
        for id in [id, denied, forged, wrong] {
            assert_eq!(read(test, &id).await["flags"]["is_valid"], false);
        }
        assert_eq!(test.request(Method::GET, "/tools/connections/callback", None, None).await.status, 400);
        assert_eq!(test.request(Method::GET, "/tools/connections/callback?code=1&state=a.b", None, None).await.status, 400);
    }

    async fn fifty_calls_on_an_expired_token_refresh_once(test: &Test) {
        let oidc = provider(test, 600).await;
        connected(test, &oidc, "main").await;
        oidc.control("expire-access-tokens").await;
        test.clock.advance(Duration::from_secs(601));
        let replies = join_all((0..50).map(|_| test.call("tools.native.oidc.GET_ME.main", json!({})))).await;
        assert!(replies.iter().all(|reply| reply.status == 200), "{}", replies.iter().find(|reply| reply.status != 200).unwrap().text);
        assert_eq!(oidc.counters().await["refreshes"], 1);
    }

    async fn tokens_are_renewed_where_the_manifest_says(test: &Test) {
        let oidc = provider(test, 600).await;
        connected(test, &oidc, "main").await;
        assert_eq!(oidc.counters().await["refreshed_at"], Value::Null);
        test.clock.advance(Duration::from_secs(601));
        test.call("tools.native.oidc.GET_ME.main", json!({})).await.expect(200);
        assert_eq!(oidc.counters().await["refreshed_at"], "/token?renew");
    }

    async fn fifty_calls_after_a_401_refresh_once(test: &Test) {
        let oidc = provider(test, 600).await;
        connected(test, &oidc, "main").await;
        oidc.control("expire-access-tokens").await;
        let replies = join_all((0..50).map(|_| test.call("tools.native.oidc.GET_ME.main", json!({})))).await;
        assert!(replies.iter().all(|reply| reply.status == 200), "{}", replies.iter().find(|reply| reply.status != 200).unwrap().text);
        assert_eq!(oidc.counters().await["refreshes"], 1);
        test.call("tools.native.oidc.GET_ME.main", json!({})).await.expect(200);
        assert_eq!(oidc.counters().await["refreshes"], 1);
    }

    async fn tokens_rotate_again_and_again(test: &Test) {
        let oidc = provider(test, 600).await;
        let id = connected(test, &oidc, "main").await;
        for round in 1..=3 {
            test.clock.advance(Duration::from_secs(601));
            test.call("tools.native.oidc.GET_ME.main", json!({})).await.expect(200);
            assert_eq!(oidc.counters().await["refreshes"], round);
        }
        let refreshed = test.post(&format!("/tools/connections/{id}/refresh"), json!({})).await.expect(200);
        assert!(refreshed["connection"]["data"].get("redirect_url").is_none());
        assert_eq!(oidc.counters().await["refreshes"], 4);
    }

    async fn a_passing_failure_breaks_nothing(test: &Test) {
        let oidc = provider(test, 600).await;
        let id = connected(test, &oidc, "main").await;
        test.clock.advance(Duration::from_secs(550));
        oidc.control("fail-token?status=503&times=1").await;
        test.call("tools.native.oidc.GET_ME.main", json!({})).await.expect(200);
        test.clock.advance(Duration::from_mins(1));
        oidc.control("fail-token?status=503&times=1").await;
        test.call("tools.native.oidc.GET_ME.main", json!({})).await.expect(502);
        assert_eq!(read(test, &id).await["flags"]["is_valid"], true);
        test.call("tools.native.oidc.GET_ME.main", json!({})).await.expect(200);
    }

    async fn a_grant_that_is_gone_says_so(test: &Test) {
        let oidc = provider(test, 600).await;
        let id = connected(test, &oidc, "main").await;
        oidc.control("revoke-grants").await;
        oidc.control("expire-access-tokens").await;
        let detail = test.call("tools.native.oidc.GET_ME.main", json!({})).await.detail(400);
        assert!(detail.contains("no longer accepts this grant") && detail.contains("Connect the account again"), "{detail}");
        let broken = read(test, &id).await;
        assert_eq!(broken["flags"]["is_valid"], false);
        assert!(broken["status"]["message"].as_str().unwrap().contains("invalid_grant"));
        let again = test.post(&format!("/tools/connections/{id}/refresh"), json!({})).await.expect(200);
        let back = oidc.browse(again["connection"]["data"]["redirect_url"].as_str().unwrap(), "ann", true).await;
        assert_eq!(come_back(test, &back).await.status, 200);
        test.call("tools.native.oidc.GET_ME.main", json!({})).await.expect(200);
    }

    async fn a_revoked_or_restarted_connection_is_not_brought_back_by_a_late_grant(test: &Test) {
        let oidc = provider(test, 600).await;
        for restart in [false, true] {
            let (id, authorize) = begin(test, &oidc, if restart { "restarted" } else { "revoked" }).await;
            let back = oidc.browse(&authorize, "ann", true).await;
            oidc.control("delay-token?ms=600").await;
            let action = if restart { "refresh" } else { "revoke" };
            let (page, ()) = tokio::join!(come_back(test, &back), async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                test.post(&format!("/tools/connections/{id}/{action}"), json!({})).await.expect(200);
            });
            assert_eq!(page.status, 400, "{}", page.text);
            assert_eq!(read(test, &id).await["flags"]["is_valid"], false);
            oidc.control("delay-token?ms=0").await;
        }
    }

    async fn a_refresh_goes_only_to_the_app_that_was_granted(test: &Test) {
        let oidc = provider(test, 600).await;
        let id = connected(test, &oidc, "main").await;
        let again = |client: &str| json!({"oauth_app": {"integration_key": "oidc", "client_id": client, "client_secret": "yard-secret"}});
        test.post("/tools/oauth-apps", again("yard")).await.expect(200);
        test.clock.advance(Duration::from_secs(601));
        test.call("tools.native.oidc.GET_ME.main", json!({})).await.expect(200);
        test.post("/tools/oauth-apps", again("yard-basic")).await.expect(200);
        test.clock.advance(Duration::from_secs(601));
        let detail = test.call("tools.native.oidc.GET_ME.main", json!({})).await.detail(424);
        assert!(detail.contains("OAuth app"), "{detail}");
        assert_eq!(read(test, &id).await["flags"]["is_valid"], true);
        assert_eq!(oidc.counters().await["refreshes"], 1);
        let again = test.post(&format!("/tools/connections/{id}/refresh"), json!({})).await.expect(200);
        assert!(again["connection"]["data"]["redirect_url"].as_str().unwrap().contains("client_id=yard-basic"));
    }

    async fn callers_share_the_failure_they_waited_for(test: &Test) {
        let oidc = provider(test, 600).await;
        connected(test, &oidc, "main").await;
        oidc.control("delay-token?ms=300").await;
        oidc.control("fail-token?status=503&times=20").await;
        test.clock.advance(Duration::from_secs(601));
        let before = oidc.counters().await["token_requests"].as_u64().unwrap();
        let replies = join_all((0..10).map(|_| test.call("tools.native.oidc.GET_ME.main", json!({})))).await;
        assert!(replies.iter().all(|reply| reply.status == 502));
        assert!(oidc.counters().await["token_requests"].as_u64().unwrap() - before <= 2);
    }

    async fn the_deployments_secret_never_goes_where_a_project_says(test: &Test) {
        let app = json!({"oauth_app": {"integration_key": "oidc", "client_id": "everywhere", "client_secret": "deployment-secret"}});
        test.admin(Method::POST, "/admin/oauth-apps", Some(app)).await.expect(200);
        let data = json!({"auth_scheme": "oauth", "credentials": {"base": "http://127.0.0.1:9"}});
        let body = json!({"connection": {"slug": "evil", "provider_key": "native", "integration_key": "oidc", "data": data}});
        assert!(test.post("/tools/connections/", body).await.detail(422).contains("needs an OAuth app of yours"));
    }

    async fn a_ticket_is_good_at_its_own_counter_only(test: &Test) {
        let oidc = provider(test, 600).await;
        let (_, authorize) = begin(test, &oidc, "oauth").await;
        let state = authorize.parse::<Url>().unwrap().query_pairs().find(|(k, _)| k == "state").unwrap().1.into_owned();
        assert_eq!(test.request(Method::GET, &format!("/connect/{state}"), None, None).await.status, 400);
        let form = test.post("/tools/connections", crate::support::fake_connection("form", &json!({"auth_scheme": "api_key"}))).await.expect(200);
        let link = form["connection"]["data"]["redirect_url"].as_str().unwrap().to_owned();
        let ticket = link.rsplit('/').next().unwrap();
        assert_eq!(test.request(Method::GET, &format!("/tools/connections/callback?code=x&state={ticket}"), None, None).await.status, 400);
        assert_eq!(test.request(Method::GET, &format!("/connect/{ticket}"), None, None).await.status, 200, "the link is still open");
        assert_eq!(test.request(Method::GET, "/tools/connections/callback?state=a&state=b&code=%ff", None, None).await.status, 400);
    }

    async fn a_new_grant_replaces_the_old_one_only_when_proven(test: &Test) {
        let oidc = provider(test, 600).await;
        let id = connected(test, &oidc, "main").await;
        let forced = test.post(&format!("/tools/connections/{id}/refresh?force=true"), json!({})).await.expect(200)["connection"].take();
        assert_eq!(forced["flags"]["is_valid"], true);
        let back = oidc.browse(forced["data"]["redirect_url"].as_str().unwrap(), "ann", false).await;
        assert_eq!(come_back(test, &back).await.status, 400);
        test.call("tools.native.oidc.GET_ME.main", json!({})).await.expect(200);
        let forced = test.post(&format!("/tools/connections/{id}/refresh?force=true"), json!({})).await.expect(200)["connection"].take();
        let back = oidc.browse(forced["data"]["redirect_url"].as_str().unwrap(), "bob", true).await;
        assert_eq!(come_back(test, &back).await.status, 200);
        assert_eq!(Test::content(test.call("tools.native.oidc.GET_ME.main", json!({})).await)["data"]["login"], "bob");
        assert_eq!(read(test, &id).await["meta"]["account"]["label"], "bob");
    }

    async fn deleting_tells_the_provider_and_works_without_it(test: &Test) {
        let oidc = provider(test, 600).await;
        let id = connected(test, &oidc, "main").await;
        let other = connected(test, &oidc, "other").await;
        test.delete(&format!("/tools/connections/{id}")).await.expect(204);
        for _ in 0..100 {
            if oidc.counters().await["revocations"] == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(oidc.counters().await["revocations"], 1);
        drop(oidc);
        test.delete(&format!("/tools/connections/{other}")).await.expect(204);
        test.get(&format!("/tools/connections/{other}")).await.expect(404);
    }
}
