//! Sessions: what opens them, what they open, and what ends them.

use std::time::Duration;

use axum::body::Body;
use http::{Method, Request};
use kernel::{Permission, Role};
use serde_json::{Value, json};
use store::args;

use super::{PASSWORD, person, project_id, signed_in};
use crate::support::{Browser, Database, Fake, Test, call_body, hidden, on_both, sent_to};

const GET: &str = "tools.native.fake.GET_A_THING.main";

on_both! {
    async fn a_key_that_is_pasted_opens_what_it_may_and_no_more(test: &Test) {
        let viewer = test.key("default", Role::Viewer, None).await;
        let mut browser = Browser::new(test);
        let reply = browser.sign_in(&[("key", &viewer)]).await;
        assert_eq!(sent_to(&reply), "/app");
        let me = browser.me().await.expect(200);
        assert_eq!((&me["via"], &me["name"], &me["projects"][0]["role"]), (&json!("key"), &json!("test"), &json!("viewer")));
        assert!(me["user_id"].is_null());
        browser.get("/tools/calls").await.expect(200);
        let refused = browser.api(Method::POST, "/tools/call", None, Some(call_body(GET, &json!({})))).await.detail(403);
        assert!(refused.contains("`run_tools`"), "{refused}");
        browser.get("/account").await.expect_page(200);

        // It ends with the key.
        let key = test.yard.accounts.list_keys(None).await.unwrap().into_iter().find(|key| key.name == "test").unwrap();
        test.yard.accounts.revoke_key(key.id).await.unwrap();
        browser.me().await.expect(401);
        assert_eq!(sent_to(&browser.get("/account").await), "/sign-in?return_to=%2Faccount");

        let mut browser = Browser::new(test);
        for key in ["wrong", "", viewer.as_str()] {
            let reply = browser.sign_in(&[("key", key)]).await;
            assert_eq!(reply.status, 400, "{}", reply.text);
            assert!(reply.text.contains("That did not work."), "{}", reply.text);
        }
        browser.me().await.expect(401);
    }

    async fn the_operator_acts_in_any_project_that_is_named(test: &Test) {
        test.key("second", Role::Owner, None).await;
        let mut browser = Browser::new(test);
        sent_to(&browser.sign_in(&[("key", test.yard.operator_key.expose())]).await);
        assert_eq!(browser.me().await.expect(200)["via"], "operator");
        let said = browser.get("/tools/calls").await.detail(400);
        assert!(said.contains("`X-Toolyard-Project`"), "{said}");
        browser.api(Method::GET, "/tools/calls", Some("second"), None).await.expect(200);
        browser.api(Method::GET, "/tools/calls", Some("nowhere"), None).await.expect(404);
        browser.api(Method::POST, "/mcp", Some("second"), Some(json!({}))).await.expect(401);
    }

    async fn the_operators_session_opens_admin_and_nobody_elses(test: &Test) {
        let mut operator = Browser::new(test);
        sent_to(&operator.sign_in(&[("key", test.yard.operator_key.expose())]).await);
        operator.get("/admin/projects").await.expect(200);
        let blue = json!({"project": {"slug": "blue"}});
        operator.api(Method::POST, "/admin/projects", None, Some(blue.clone())).await.expect(200);

        // Without the token of the session, and from pages of others, nothing changes and nothing is shown.
        let green = json!({"project": {"slug": "green"}}).to_string();
        let cookie = format!("toolyard-session={}", operator.cookies["toolyard-session"]);
        let bare = Request::post("/admin/projects").header("content-type", "application/json").header("cookie", &cookie);
        assert_eq!(test.send(bare.body(Body::from(green)).unwrap()).await.expect(403)["code"], "csrf_invalid");
        operator.site = "cross-site";
        assert_eq!(operator.get("/admin/projects").await.expect(403)["code"], "origin_not_allowed");
        operator.site = "same-origin";
        assert_eq!(operator.get("/admin/projects").await.expect(200)["count"], 2, "there is no green project");

        // Anybody else who is signed in is told so.
        person(test, "ada@example.com", Some(("default", Role::Owner))).await;
        let mut ada = signed_in(test, "ada@example.com").await;
        let mut owner = Browser::new(test);
        sent_to(&owner.sign_in(&[("key", &test.owner)]).await);
        for browser in [&mut ada, &mut owner] {
            let refused = browser.api(Method::GET, "/admin/projects", None, None).await.expect(403);
            assert_eq!(refused["code"], "operator_only");
            assert!(refused["detail"].as_str().unwrap().contains("operator key"), "{refused}");
            browser.api(Method::POST, "/admin/projects", None, Some(blue.clone())).await.expect(403);
        }

        // A header decides alone.
        let with = |authorization: &str, cookie: &str| {
            let request = Request::get("/admin/projects").header("authorization", authorization).header("cookie", cookie);
            request.body(Body::empty()).unwrap()
        };
        for header in ["Access wrong", "Basic eDp5", "Access", &format!("ApiKey {}", test.owner)] {
            test.send(with(header, &cookie)).await.expect(401);
        }
        let adas = format!("toolyard-session={}", ada.cookies["toolyard-session"]);
        test.send(with(&format!("Access {}", test.yard.operator_key.expose()), &adas)).await.expect(200);

        let page = operator.get("/account").await;
        sent_to(&operator.answer("/sign-out", &page, &[]).await);
        let ended = Request::get("/admin/projects").header("cookie", &cookie).body(Body::empty()).unwrap();
        assert_eq!(test.send(ended).await.expect(401)["code"], "not_signed_in");
    }

    async fn a_person_does_what_the_role_says_at_that_moment(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let user = person(test, "ada@example.com", Some(("default", Role::Annotator))).await;
        project_id(test, "other").await;
        let mut ada = signed_in(test, "Ada@Example.com").await;
        let me = ada.me().await.expect(200);
        assert_eq!((&me["via"], &me["email"], &me["user_id"]), (&json!("person"), &json!("ada@example.com"), &json!(user)));
        assert_eq!(me["projects"].as_array().unwrap().len(), 1);

        let call = call_body(GET, &json!({"owner": "o", "path": "p"}));
        ada.api(Method::POST, "/tools/call", Some("default"), Some(call.clone())).await.expect(200);
        let row = test.get("/tools/calls").await.expect(200)["calls"][0].take();
        assert_eq!((&row["via"], &row["user_id"], &row["user_name"]), (&json!("person"), &json!(user), &json!("ada@example.com")));
        assert!(row["key_name"].is_null());
        test.call(GET, json!({"owner": "o", "path": "p"})).await.expect(200);
        let row = test.get("/tools/calls").await.expect(200)["calls"][0].take();
        assert_eq!((&row["via"], &row["key_name"]), (&json!("key"), &json!("first key")));

        // An op acts with what the person may do.
        let op = json!({"arguments": {"use_cases": ["read a fake thing"]}});
        ada.api(Method::POST, "/tools/ops/discover_tools", None, Some(op)).await.expect(200);

        // Another project is unknown, not forbidden.
        ada.api(Method::GET, "/tools/calls", Some("other"), None).await.expect(404);
        ada.api(Method::GET, "/people/invitations", None, None).await.expect(200);
        ada.api(Method::POST, "/people/invitations", None, Some(json!({"invitation": {"role": "viewer"}}))).await.expect(403);

        let members = test.get("/people/members").await.expect(200);
        let member = format!("/people/members/{}", members["members"][0]["id"].as_str().unwrap());
        let lower = json!({"member": {"role": "viewer"}});
        test.request(Method::PUT, &member, Some(format!("ApiKey {}", test.owner)), Some(lower)).await.expect(200);
        ada.api(Method::POST, "/tools/call", Some("default"), Some(call.clone())).await.expect(403);

        // Removed, and still signed in.
        test.delete(&member).await.expect(204);
        ada.api(Method::GET, "/tools/calls", Some("default"), None).await.expect(404);
        assert_eq!(ada.me().await.expect(200)["projects"], json!([]));
        test.delete(&member).await.expect(404);
        let row = test.get("/tools/calls").await.expect(200)["calls"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(row["user_name"], "ada@example.com", "the record still names who acted");

        // Disabled, and signed in nowhere.
        test.yard.people.set_disabled(user, true).await.unwrap();
        ada.me().await.expect(401);
        let refused = Browser::new(test).sign_in(&[("email", "ada@example.com"), ("password", PASSWORD)]).await;
        assert!(refused.status == 400 && refused.text.contains("That did not work."), "{}", refused.text);
    }

    async fn a_session_ends_by_idleness_by_age_and_by_hand(test: &Test) {
        person(test, "ada@example.com", Some(("default", Role::Viewer))).await;
        let hour = Duration::from_hours(1);
        let mut idle = signed_in(test, "ada@example.com").await;
        let mut busy = signed_in(test, "ada@example.com").await;
        for _ in 0..3 {
            test.clock.advance(30 * hour);
            busy.me().await.expect(200);
        }
        idle.me().await.expect(401);
        for _ in 0..20 {
            test.clock.advance(30 * hour);
            busy.me().await.expect(200);
        }
        test.clock.advance(8 * 24 * hour);
        busy.me().await.expect(401);

        let (mut one, mut two, mut three) =
            (signed_in(test, "ada@example.com").await, signed_in(test, "ada@example.com").await, signed_in(test, "ada@example.com").await);
        let listed = one.get("/people/sessions").await.expect(200);
        assert_eq!((&listed["count"], &listed["sessions"][2]["is_current"]), (&json!(3), &json!(true)), "the old ones are not listed");
        let second = format!("/people/sessions/{}", listed["sessions"][1]["id"].as_str().unwrap());
        let mut stranger = Browser::new(test);
        sent_to(&stranger.sign_in(&[("key", &test.owner)]).await);
        stranger.api(Method::DELETE, &second, None, None).await.expect(404);
        one.api(Method::DELETE, &second, None, None).await.expect(204);
        two.me().await.expect(401);
        one.api(Method::DELETE, &second, None, None).await.expect(404);
        three.me().await.expect(200);
        assert_eq!(one.api(Method::DELETE, "/people/sessions", None, None).await.expect(200)["count"], 1);
        three.me().await.expect(401);

        // Whoever kept the cookie of somebody who signed out has nothing.
        let kept = one.cookies.clone();
        let page = one.get("/account").await;
        assert_eq!(sent_to(&one.answer("/sign-out", &page, &[]).await), "/sign-in");
        assert!(!one.cookies.keys().any(|name| name.contains("session")));
        one.cookies = kept;
        one.me().await.expect(401);

        test.yard.people.forget().await.unwrap();
        let left = test.yard.db.all("select id from sessions where user_id is not null", args![]).await.unwrap();
        assert!(left.is_empty(), "what ended is dropped");
    }

    async fn nothing_that_opens_a_session_is_kept(test: &Test) {
        person(test, "ada@example.com", None).await;
        let browser = signed_in(test, "ada@example.com").await;
        let token = &browser.cookies["toolyard-session"];
        assert!(token.len() > 40);
        let row = test.yard.db.optional("select hash from sessions", args![]).await.unwrap().unwrap();
        assert_eq!(row.get::<Vec<u8>>("hash").unwrap(), kernel::key::KeyHash::of(token).as_bytes());
        let row = test.yard.db.optional("select password from users", args![]).await.unwrap().unwrap();
        assert!(row.get::<String>("password").unwrap().starts_with("$argon2id$"));
    }

    async fn a_session_is_never_the_one_that_was_there_before(test: &Test) {
        person(test, "ada@example.com", None).await;
        let mut browser = Browser::new(test);
        browser.get("/sign-in").await;
        // A session that somebody planted is not taken up.
        browser.cookies.insert("toolyard-session".to_owned(), "tys_planted".to_owned());
        sent_to(&browser.sign_in(&[("email", "ada@example.com"), ("password", PASSWORD)]).await);
        let first = browser.cookies["toolyard-session"].clone();
        assert_ne!(first, "tys_planted");
        // Somebody else who signs in in the same browser ends what was there.
        let other = Browser { cookies: browser.cookies.clone(), ..Browser::new(test) };
        let mut fresh = Browser::new(test);
        fresh.get("/sign-in").await;
        browser.cookies.extend(fresh.cookies.clone());
        browser.cookies.insert("toolyard-session".to_owned(), first.clone());
        let form = fresh.get("/sign-in").await;
        let token = hidden(&form.text, "csrf");
        sent_to(&browser.post("/sign-in", &[("key", &test.owner), ("csrf", &token)]).await);
        assert_ne!(browser.cookies["toolyard-session"], first);
        assert_eq!(browser.me().await.expect(200)["via"], "key");
        let mut other = other;
        other.me().await.expect(401);
    }

    async fn pages_of_others_can_do_nothing_with_a_session(test: &Test) {
        person(test, "ada@example.com", Some(("default", Role::Owner))).await;
        let mut ada = signed_in(test, "ada@example.com").await;
        let invitation = json!({"invitation": {"role": "viewer"}});
        // A script of another origin: with everything but the right word of the browser.
        let token = ada.me().await.expect(200)["csrf_token"].as_str().unwrap().to_owned();
        for site in ["cross-site", "same-site"] {
            ada.site = site;
            assert_eq!(ada.get("/tools/calls").await.expect(403)["code"], "origin_not_allowed");
            assert_eq!(ada.me().await.expect(403)["code"], "origin_not_allowed");
            let page = ada.post("/account", &[("csrf", &token), ("action", "password"), ("current", PASSWORD), ("new", "another password")]).await;
            assert_eq!(page.status, 400);
            ada.post("/sign-out", &[("csrf", &token)]).await.expect(403);
        }
        ada.site = "same-origin";
        ada.me().await.expect(200);
        // Our own origin without the token, or with that of another session.
        let mut other = signed_in(test, "ada@example.com").await;
        let others = other.me().await.expect(200)["csrf_token"].as_str().unwrap().to_owned();
        for token in ["", "x", &others] {
            let request = Request::post("/people/invitations").header("content-type", "application/json").header("x-toolyard-csrf", token);
            let request = request.header("cookie", format!("toolyard-session={}", ada.cookies["toolyard-session"]));
            let reply = test.send(request.body(Body::from(invitation.to_string())).unwrap()).await;
            assert_eq!(reply.expect(403)["code"], "csrf_invalid");
            ada.post("/sign-out", &[("csrf", token)]).await.expect(403);
        }
        ada.api(Method::POST, "/people/invitations", None, Some(invitation)).await.expect(200);
        // Older browsers say the origin alone.
        let old = async |origin: &str| {
            let request = Request::get("/people/me").header("host", "127.0.0.1:8665").header("origin", origin);
            let request = request.header("cookie", format!("toolyard-session={}", ada.cookies["toolyard-session"]));
            test.send(request.body(Body::empty()).unwrap()).await.status
        };
        assert_eq!(old("http://127.0.0.1:8665").await, 200);
        for origin in ["null", "http://evil.example", "http://127.0.0.1:8666", "https://127.0.0.1:8665.evil.example"] {
            assert_eq!(old(origin).await, 403, "{origin}");
        }
        // A header that names no key is not forgiven because of the cookie.
        let request = Request::get("/tools/calls").header("authorization", "Basic eDp5");
        let request = request.header("cookie", format!("toolyard-session={}", ada.cookies["toolyard-session"]));
        test.send(request.body(Body::empty()).unwrap()).await.expect(401);
    }

    async fn a_form_is_taken_from_the_browser_that_it_was_given_to(test: &Test) {
        person(test, "eve@example.com", None).await;
        // Eve lets somebody sign in as Eve, with a form of hers.
        let mut eve = Browser::new(test);
        let form = eve.get("/sign-in").await;
        let token = hidden(&form.text, "csrf");
        let fields = [("email", "eve@example.com"), ("password", PASSWORD), ("csrf", token.as_str())];
        let mut victim = Browser::new(test);
        victim.get("/sign-in").await;
        for site in ["same-origin", "cross-site"] {
            victim.site = site;
            let reply = victim.post("/sign-in", &fields).await;
            assert!(reply.status == 400 && reply.text.contains("opened in another browser"), "{}", reply.text);
        }
        eve.site = "cross-site";
        assert_eq!(eve.post("/sign-in", &fields).await.status, 400, "from a page of another origin, even with the right token");
        victim.site = "same-origin";
        victim.me().await.expect(401);
    }

    async fn nobody_is_sent_away_to_another_site(test: &Test) {
        for (asked, goes) in [
            ("/docs?a=b", "/docs?a=b"),
            ("https://evil.example/", "/app"),
            ("//evil.example", "/app"),
            ("/\\evil.example", "/app"),
            ("/%09/evil.example", "/%09/evil.example"),
            ("/\t/evil.example", "/app"),
            ("javascript:alert(1)", "/app"),
            ("/..//evil.example", "/app"),
        ] {
            let mut browser = Browser::new(test);
            let query: String = url::form_urlencoded::byte_serialize(asked.as_bytes()).collect();
            let form = browser.get(&format!("/sign-in?return_to={query}")).await;
            let asked_in_form = hidden(&form.text, "return_to").replace("&#38;", "&");
            assert_eq!(asked_in_form, goes, "{asked}");
            let reply = browser.answer("/sign-in", &form, &[("key", &test.owner), ("return_to", asked)]).await;
            assert_eq!(sent_to(&reply), goes, "{asked}");
            let again = browser.get(&format!("/sign-in?return_to={query}")).await;
            assert_eq!(sent_to(&again), goes, "{asked}");
        }
    }

    async fn a_key_narrowed_to_members_gives_nobody_more_than_it_has(test: &Test) {
        let narrow = test.key("default", Role::Owner, Some(vec![Permission::ViewMembers, Permission::EditMembers])).await;
        let invite = async |role: &str| test.post_as(&narrow, "/people/invitations", json!({"invitation": {"role": role}})).await;
        for role in ["viewer", "editor", "owner"] {
            assert_eq!(invite(role).await.expect(403)["code"], "role_too_high", "{role}");
        }
        person(test, "ada@example.com", Some(("default", Role::Owner))).await;
        let members = test.get_as(&narrow, "/people/members").await.expect(200);
        let path = format!("/people/members/{}", members["members"][0]["id"].as_str().unwrap());
        let as_narrow = Some(format!("ApiKey {narrow}"));
        test.request(Method::DELETE, &path, as_narrow.clone(), None).await.expect(403);
        test.request(Method::PUT, &path, as_narrow, Some(json!({"member": {"role": "viewer"}}))).await.expect(403);

        // A project keeps an owner among its people.
        let owner = Some(format!("ApiKey {}", test.owner));
        let lower: Value = json!({"member": {"role": "editor"}});
        assert_eq!(test.request(Method::PUT, &path, owner.clone(), Some(lower.clone())).await.expect(409)["code"], "last_owner");
        assert_eq!(test.delete(&path).await.expect(409)["code"], "last_owner");
        person(test, "bob@example.com", Some(("default", Role::Owner))).await;
        test.request(Method::PUT, &path, owner, Some(lower)).await.expect(200);
    }
}

#[tokio::test]
async fn under_https_cookies_are_bound_to_the_host() {
    let test = Test::with(Database::Sqlite, |config| config.public_url = "https://yard.example".to_owned()).await;
    let mut browser = Browser::new(&test);
    let form = browser.get("/sign-in").await;
    let reply = browser.answer("/sign-in", &form, &[("key", &test.owner)]).await;
    let cookie = reply.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.starts_with("__Host-toolyard-session=tys_") && cookie.ends_with("; Secure"), "{cookie}");
    browser.me().await.expect(200);
    let policy = form.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'") && policy.contains("form-action 'self'"));
}
