//! The page: what it refuses, where it sends people, and who may press its buttons.

use super::*;
use crate::people::{person, signed_in};
use crate::support::{Database, on_both};

on_both! {
    async fn nobody_is_sent_to_an_address_that_the_client_did_not_name(test: &Test) {
        let client = register(test, "Desk").await;
        let mut browser = with_key(test, &test.owner).await;
        let long = format!("https://client.example/{}", "a".repeat(9000));
        for uri in [
            "",
            "https://evil.example/cb",
            "https://client.example.evil.example/cb",
            "https://client.example@evil.example/cb",
            "https://user@client.example/cb",
            "https://client.example/cb#x",
            "https://client.example/cb?next=https://evil.example",
            "https://client.example:444/cb",
            "https://client.example:443/cb",
            "https://CLIENT.example/cb",
            "https://client.example./cb",
            "https://client.example/c%62",
            "https://client.example/cb/../cb",
            "https://client.example/cb/",
            "http://client.example/cb",
            "//client.example/cb",
            "javascript:alert(1)",
            "data:text/html,x",
            &long,
        ] {
            let reply = browser.get(&authorize_url(&client, &[("redirect_uri", uri)])).await;
            assert!(reply.headers.get("location").is_none(), "{uri}");
            reply.expect_page(400);
        }
        for (name, value) in [("client_id", "tyc_unknown"), ("client_id", ""), ("client_id", "\0"), ("client_id", "toolyard-cli")] {
            browser.get(&authorize_url(&client, &[(name, value)])).await.expect_page(400);
        }
        let twice = format!("{}&redirect_uri=https%3A%2F%2Fevil.example", authorize_url(&client, &[]));
        browser.get(&twice).await.expect_page(400);
    }

    async fn a_client_that_is_known_is_told_what_is_wrong(test: &Test) {
        let client = register(test, "Desk").await;
        let mut browser = with_key(test, &test.owner).await;
        for (name, value, expected) in [
            ("response_type", "token", "unsupported_response_type"),
            ("response_type", "", "invalid_request"),
            ("response_mode", "fragment", "invalid_request"),
            ("code_challenge", "", "invalid_request"),
            ("code_challenge", "short", "invalid_request"),
            ("code_challenge_method", "plain", "invalid_request"),
            ("code_challenge_method", "", "invalid_request"),
            ("scope", "run_everything", "invalid_scope"),
            ("scope", "openid", "invalid_scope"),
            ("resource", "https://evil.example/mcp", "invalid_target"),
            ("resource", "not an address", "invalid_target"),
            ("resource", &format!("{}/tools", public(test)), "invalid_target"),
            ("resource", &format!("{}/mcp/agents/99", public(test)), "invalid_target"),
        ] {
            let back = location(&browser.get(&authorize_url(&client, &[(name, value)])).await);
            assert!(back.as_str().starts_with("https://client.example/cb?error="), "{back}");
            assert_eq!(query(&back, "error").as_deref(), Some(expected), "{name}={value}: {back}");
            assert_eq!((query(&back, "state").as_deref(), query(&back, "iss")), (Some("s&1"), Some(public(test))));
        }
        let page = browser.get(&authorize_url(&client, &[])).await;
        let back = location(&submit(&mut browser, "/oauth/authorize", &filled(&page.text, "deny", &[])).await);
        assert_eq!((query(&back, "error").as_deref(), query(&back, "code")), (Some("access_denied"), None));
    }

    async fn only_our_own_page_lets_a_client_in(test: &Test) {
        let client = register(test, "Desk").await;
        let mut browser = with_key(test, &test.owner).await;
        let mut stranger = with_key(test, &test.key("elsewhere", Role::Owner, None).await).await;
        let page = browser.get(&authorize_url(&client, &[])).await;
        let good = filled(&page.text, "allow", &offered(&page.text));
        let change = |name: &str, value: &str| {
            let mut fields: Vec<(String, String)> = good.iter().filter(|(known, _)| known != name).cloned().collect();
            if !value.is_empty() {
                fields.push((name.to_owned(), value.to_owned()));
            }
            fields
        };
        let theirs = stranger.get(&authorize_url(&client, &[])).await;
        for csrf in ["", "wrong", &field(&theirs.text, "csrf")] {
            let reply = submit(&mut browser, "/oauth/authorize", &change("csrf", csrf)).await;
            assert!(reply.text.contains("Nobody was let in"), "{}", reply.text);
            reply.expect_page(400);
        }
        browser.site = "cross-site";
        submit(&mut browser, "/oauth/authorize", &good).await.expect_page(400);
        browser.site = "same-origin";
        let elsewhere = test.yard.accounts.find_project("elsewhere").await.unwrap().id.to_string();
        for project in [elsewhere.as_str(), "nonsense"] {
            assert_eq!(submit(&mut browser, "/oauth/authorize", &change("project", project)).await.status, 404);
        }
        submit(&mut browser, "/oauth/authorize", &change("request", "")).await.expect_page(400);
        submit(&mut browser, "/oauth/authorize", &change("request", "client_id=x&redirect_uri=https://evil.example")).await.expect_page(400);
        let out = submit(&mut Browser::new(test), "/oauth/authorize", &good).await;
        assert!(out.headers["location"].to_str().unwrap().starts_with("/sign-in?return_to=%2Foauth%2Fauthorize"));
        let large = change("request", &"a".repeat(40_000));
        assert_eq!(submit(&mut browser, "/oauth/authorize", &large).await.status, 413);
        assert_eq!(test.get("/grants").await.expect(200)["count"], 0);
        location(&submit(&mut browser, "/oauth/authorize", &good).await);
    }

    async fn a_viewer_gives_what_a_viewer_has(test: &Test) {
        let client = register(test, "Desk").await;
        let (mut viewer, user) = with_person(test, "vic@example.com", "default", Role::Viewer).await;
        let asked = [("scope", "view_tools run_tools edit_tools edit_members")];
        let page = viewer.get(&authorize_url(&client, &asked)).await;
        assert_eq!(offered(&page.text), ["view_tools"]);
        assert!(page.text.contains("what you cannot give"), "{}", page.text);
        let all: Vec<String> = ["view_tools", "run_tools", "edit_tools", "edit_members", "run_agents"].map(str::to_owned).to_vec();
        let back = location(&submit(&mut viewer, "/oauth/authorize", &filled(&page.text, "allow", &all)).await);
        let given = redeem(test, &client, &query(&back, "code").unwrap(), &[]).await.expect(200);
        assert_eq!(given["scope"], "view_tools");
        let none = viewer.get(&authorize_url(&client, &[("scope", "edit_tools")])).await;
        assert!(none.text.contains("none of the permissions") && !none.text.contains("value=\"allow\""), "{}", none.text);
        let forced = submit(&mut viewer, "/oauth/authorize", &filled(&none.text, "allow", &all)).await;
        forced.expect_page(422);

        // In another project the same person is an owner, and the page says what that changes.
        join(test, user, "second", Role::Owner).await;
        let page = viewer.get(&authorize_url(&client, &asked)).await;
        let second = test.yard.accounts.find_project("second").await.unwrap().id.to_string();
        let mut fields = filled(&page.text, "project", &[]);
        fields.push(("project".to_owned(), second));
        let page = submit(&mut viewer, "/oauth/authorize", &fields).await;
        assert_eq!((page.status.as_u16(), offered(&page.text).len()), (200, 4), "{}", page.text);
    }

    async fn who_has_no_project_can_let_nobody_in(test: &Test) {
        let client = register(test, "Desk").await;
        person(test, "new@example.com", None).await;
        let mut nobody = signed_in(test, "new@example.com").await;
        let mut operator = with_key(test, test.yard.operator_key.expose()).await;
        for browser in [&mut nobody, &mut operator] {
            let back = location(&browser.get(&authorize_url(&client, &[])).await);
            assert_eq!(query(&back, "error").as_deref(), Some("access_denied"), "{back}");
        }
    }

    async fn what_clients_say_of_themselves_stays_text(test: &Test) {
        let name = "<script>alert(1)</script>\u{202e}";
        let body = json!({"client_name": name, "redirect_uris": ["cursor://x.y/cb?a=\u{27}"], "token_endpoint_auth_method": "none"});
        let made = test.request(Method::POST, "/oauth/register", None, Some(body)).await.expect(201);
        let mut browser = with_key(test, &test.owner).await;
        let page = browser.get(&authorize_url(text(&made["client_id"]), &[("redirect_uri", "cursor://x.y/cb?a='"), ("state", "\"><b>")])).await;
        assert_eq!(page.status, 200, "{}", page.text);
        assert!(!page.text.contains("<script>") && !page.text.contains("><b>\"") && !page.text.contains('\u{202e}'), "{}", page.text);
        assert!(page.headers["content-security-policy"].to_str().unwrap().contains("form-action 'self' cursor: https:"));
        let back = location(&submit(&mut browser, "/oauth/authorize", &filled(&page.text, "allow", &offered(&page.text))).await);
        assert!(back.as_str().starts_with("cursor://x.y/cb?a='&code="), "{back}");
        assert_eq!(query(&back, "state").as_deref(), Some("\"><b>"));
    }
}
