//! Devices: a code here, a person there.

use std::time::Duration;

use super::*;
use crate::support::{Database, on_both};

const DEVICE: &str = "urn:ietf:params:oauth:grant-type:device_code";

async fn begin(test: &Test, client: &str) -> Value {
    post(test, "/oauth/device", &[("client_id", client), ("scope", "view_tools run_tools")]).await.expect(200)
}

async fn poll(test: &Test, client: &str, device: &Value) -> Reply {
    post(test, "/oauth/token", &[("grant_type", DEVICE), ("client_id", client), ("device_code", text(&device["device_code"]))]).await
}

on_both! {
    async fn a_person_lets_a_device_in(test: &Test) {
        let client = "toolyard-cli";
        let device = begin(test, client).await;
        assert_eq!(device["verification_uri"], format!("{}/device", public(test)));
        assert_eq!(error(poll(test, client, &device).await, 400), "authorization_pending");
        assert_eq!(error(poll(test, client, &device).await, 400), "slow_down");
        test.clock.advance(Duration::from_secs(8));
        assert_eq!(error(poll(test, client, &device).await, 400), "authorization_pending");
        let (mut browser, _) = with_person(test, "ada@example.com", "default", Role::Annotator).await;
        let code = text(&device["user_code"]);
        let typed = browser.get("/device").await;
        let page = browser.answer("/device", &typed, &[("user_code", &code.to_lowercase().replace('-', " "))]).await;
        assert!(page.status == 200 && page.text.contains("Toolyard command line") && page.text.contains("only if you began this yourself"), "{}", page.text);
        let opened = browser.get(&format!("/device?user_code={code}&decision=allow&allow_run_tools=on")).await;
        assert_eq!(offered(&opened.text), ["view_tools", "run_tools"], "an address alone decides nothing");
        let done = submit(&mut browser, "/device", &filled(&opened.text, "allow", &["view_tools".to_owned()])).await;
        assert!(done.status == 200 && done.text.contains("The device is signed in"), "{}", done.text);
        test.clock.advance(Duration::from_secs(8));
        let given = poll(test, client, &device).await.expect(200);
        assert_eq!(given["scope"], "view_tools");
        as_bearer(test, text(&given["access_token"]), "/tools/calls").await.expect(200);
        assert_eq!(error(poll(test, client, &device).await, 400), "invalid_grant", "once");
        as_bearer(test, text(&given["access_token"]), "/tools/calls").await.expect(200);
        refresh(test, client, text(&given["refresh_token"])).await.expect(200);
    }

    async fn what_does_not_lead_to_a_token(test: &Test) {
        let client = register(test, "TV").await;
        let other = register(test, "Other").await;
        let mut browser = with_key(test, &test.owner).await;
        let denied = begin(test, &client).await;
        assert_eq!(error(poll(test, &other, &denied).await, 400), "invalid_grant", "the device of another client");
        let page = browser.get(&format!("/device?user_code={}", text(&denied["user_code"]))).await;
        let mut forged = filled(&page.text, "allow", &offered(&page.text));
        forged.retain(|(name, _)| name != "csrf");
        submit(&mut browser, "/device", &forged).await.expect_page(400);
        submit(&mut browser, "/device", &filled(&page.text, "deny", &[])).await.expect_page(200);
        assert_eq!(error(poll(test, &client, &denied).await, 400), "access_denied");
        let again = submit(&mut browser, "/device", &filled(&page.text, "allow", &offered(&page.text))).await;
        assert!(again.text.contains("No device waits"), "a decision stays: {}", again.text);

        let late = begin(test, &client).await;
        let page = browser.get(&format!("/device?user_code={}", text(&late["user_code"]))).await;
        test.clock.advance(Duration::from_mins(10));
        let decided = submit(&mut browser, "/device", &filled(&page.text, "allow", &offered(&page.text))).await;
        assert!(decided.text.contains("No device waits"), "{}", decided.text);
        assert_eq!(error(poll(test, &client, &late).await, 400), "expired_token");
        for code in ["", "AAAA-AAAA", "BCDF-GHJK", "%3Cscript%3E", &"B".repeat(5000)] {
            let shown = browser.get(&format!("/device?user_code={code}")).await;
            assert!(!shown.text.contains("<script>") && !shown.status.is_server_error(), "{}", shown.text);
        }
        for (fields, status, expected) in [
            (vec![("client_id", client.as_str()), ("scope", "root")], 400, "invalid_scope"),
            (vec![("client_id", &client), ("resource", "https://evil.example")], 400, "invalid_target"),
            (vec![("client_id", "nobody")], 401, "invalid_client"),
        ] {
            assert_eq!(error(post(test, "/oauth/device", &fields).await, status), expected);
        }
        let unknown = json!({"device_code": "tyd_0"});
        assert_eq!(error(poll(test, &client, &unknown).await, 400), "invalid_grant");
        assert_eq!(test.get("/grants").await.expect(200)["count"], 0);
        let out = Browser::new(test).get("/device?user_code=BCDF-GHJK").await;
        assert_eq!(out.headers["location"], "/sign-in?return_to=%2Fdevice%3Fuser_code%3DBCDF-GHJK");
    }
}
