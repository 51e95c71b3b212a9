//! Invitations: a link makes one member, once, with the role that it says.

use std::time::Duration;

use http::Method;
use kernel::Role;
use serde_json::{Value, json};

use super::{PASSWORD, person, signed_in};
use crate::support::{Browser, Database, Test, on_both, sent_to};

/// The path of a new invitation.
async fn invite(test: &Test, body: Value) -> String {
    let made = test.post("/people/invitations", json!({"invitation": body})).await.expect(200);
    let link: url::Url = made["link"].as_str().unwrap().parse().unwrap();
    link.path().to_owned()
}

on_both! {
    async fn the_first_start_invites_the_owner(test: &Test) {
        let token = test.yard.first_invitation.as_ref().unwrap();
        let path = format!("/invitations/{}", token.expose());
        let mut browser = Browser::new(test);
        let page = browser.get(&path).await;
        assert!(page.status == 200 && page.text.contains("Join Default") && page.text.contains("<b>owner</b>"), "{}", page.text);
        let fields = [("email", "Grace@Example.com"), ("name", "Grace <b>"), ("password", PASSWORD)];
        assert_eq!(sent_to(&browser.answer(&path, &page, &fields).await), "/app");
        let me = browser.me().await.expect(200);
        assert_eq!((&me["email"], &me["projects"][0]["role"], &me["name"]), (&json!("grace@example.com"), &json!("owner"), &json!("Grace <b>")));
        let account = browser.get("/account").await;
        assert!(account.text.contains("Grace &#60;b&#62;") && !account.text.contains("Grace <b>"), "{}", account.text);
        assert_eq!(browser.get(&path).await.status, 400, "it is used up");
        // The owner invites others.
        browser.api(Method::POST, "/people/invitations", None, Some(json!({"invitation": {"role": "owner"}}))).await.expect(200);
    }

    async fn an_invitation_is_used_once_and_in_time(test: &Test) {
        let path = invite(test, json!({"role": "editor"})).await;
        let (mut one, mut two) = (Browser::new(test), Browser::new(test));
        let (page_one, page_two) = (one.get(&path).await, two.get(&path).await);
        let (a, b) = tokio::join!(
            one.answer(&path, &page_one, &[("email", "one@example.com"), ("password", PASSWORD)]),
            two.answer(&path, &page_two, &[("email", "two@example.com"), ("password", PASSWORD)]),
        );
        let mut statuses = [a.status.as_u16(), b.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [303, 400], "two at the same time are one");
        assert_eq!(test.get("/people/members").await.expect(200)["count"], 1);
        let users = test.yard.accounts.list_users().await.unwrap();
        assert_eq!(users.len(), 1, "whoever was refused left no account behind");

        let late = invite(test, json!({"role": "editor"})).await;
        test.clock.advance(Duration::from_hours(7 * 24));
        let mut browser = Browser::new(test);
        assert_eq!(browser.get(&late).await.status, 400);
        let form = browser.get("/sign-in").await;
        assert_eq!(browser.answer(&late, &form, &[("email", "late@example.com"), ("password", PASSWORD)]).await.status, 400);

        let taken_back = invite(test, json!({"role": "viewer"})).await;
        let listed = test.get("/people/invitations?limit=1").await.expect(200);
        assert_eq!((&listed["invitations"][0]["state"], &listed["count"]), (&json!("open"), &json!(1)));
        assert!(listed["cursor"].is_string());
        let id = listed["invitations"][0]["id"].as_str().unwrap();
        for _ in 0..2 {
            let revoked = test.delete(&format!("/people/invitations/{id}")).await.expect(200);
            assert_eq!(revoked["invitation"]["state"], "revoked");
        }
        assert_eq!(browser.get(&taken_back).await.status, 400);
        let rest = test.get(&format!("/people/invitations?cursor={}", listed["cursor"].as_str().unwrap())).await.expect(200);
        let states: Vec<&str> = rest["invitations"].as_array().unwrap().iter().map(|one| one["state"].as_str().unwrap()).collect();
        assert_eq!(states, ["expired", "accepted", "expired"]);
    }

    async fn an_invitation_for_somebody_is_for_nobody_else(test: &Test) {
        person(test, "eve@example.com", None).await;
        let path = invite(test, json!({"role": "owner", "email": "Ada@Example.com"})).await;
        let mut eve = signed_in(test, "eve@example.com").await;
        let reply = eve.submit(&path, &[]).await;
        assert!(reply.status == 400 && reply.text.contains("for another address"), "{}", reply.text);
        assert_eq!(eve.me().await.expect(200)["projects"], json!([]));
        // What Eve types does not matter: the account that is made has the address of the invitation.
        let mut ada = Browser::new(test);
        sent_to(&ada.submit(&path, &[("email", "eve2@example.com"), ("password", PASSWORD)]).await);
        assert_eq!(ada.me().await.expect(200)["email"], "ada@example.com");
    }

    async fn somebody_with_an_account_joins_with_it(test: &Test) {
        person(test, "ada@example.com", Some(("first", Role::Viewer))).await;
        let path = invite(test, json!({"role": "editor"})).await;
        let mut stranger = Browser::new(test);
        let reply = stranger.submit(&path, &[("email", "ada@example.com"), ("password", "another password")]).await;
        assert!(reply.status == 400 && reply.text.contains("Sign in to it first"), "{}", reply.text);
        let mut ada = signed_in(test, "ada@example.com").await;
        // A form of somebody who is not signed in is none of hers.
        assert_eq!(ada.post(&path, &[("csrf", "x")]).await.status, 400);
        assert_eq!(sent_to(&ada.submit(&path, &[]).await), "/app");
        let projects = ada.me().await.expect(200)["projects"].take();
        let roles: Vec<_> = projects.as_array().unwrap().iter().map(|one| one["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["editor", "viewer"]);
        // Less than what somebody has takes nothing away.
        let lower = invite(test, json!({"role": "viewer"})).await;
        sent_to(&ada.submit(&lower, &[]).await);
        assert_eq!(ada.me().await.expect(200)["projects"][0]["role"], "editor");
    }

    async fn what_cannot_be_invited_is_refused_in_words(test: &Test) {
        test.post("/people/invitations", json!({"invitation": {"role": "boss"}})).await.expect(422);
        let said = test.post("/people/invitations", json!({"invitation": {"role": "viewer", "email": "nobody"}})).await.detail(422);
        assert!(said.contains("`nobody` is not a usable e-mail address"), "{said}");
        let path = invite(test, json!({"role": "viewer"})).await;
        let mut browser = Browser::new(test);
        for (email, password, word) in
            [("nobody", PASSWORD, "usable e-mail address"), ("a@b.c", "short", "10 characters"), ("", "", "usable e-mail address")]
        {
            let reply = browser.submit(&path, &[("email", email), ("password", password)]).await;
            assert!(reply.status == 400 && reply.text.contains(word), "{email}: {}", reply.text);
        }
        for odd in ["/invitations/x", "/invitations/%00", "/sign-in/link/%FF", "/sign-in/with/nobody", "/sign-in/with/nobody/callback?state=x"] {
            let reply = browser.get(odd).await;
            assert!(matches!(reply.status.as_u16(), 400 | 422), "{odd}: {} {}", reply.status, reply.text);
        }
    }
}
