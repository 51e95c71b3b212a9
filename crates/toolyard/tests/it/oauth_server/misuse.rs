//! Codes and tokens in the wrong hands, at the wrong time or twice.

use std::time::Duration;

use grants::ClientSecret;
use toolyard::yard::Yard;

use super::*;
use crate::support::{Database, on_both};

async fn owner(test: &Test) -> (String, Browser<'_>) {
    (register(test, "Desk").await, with_key(test, &test.owner).await)
}

on_both! {
    async fn a_code_is_good_once_and_a_second_time_ends_what_it_gave(test: &Test) {
        let (client, mut browser) = owner(test).await;
        let code = consent(&mut browser, &client, &[]).await;
        let given = redeem(test, &client, &code, &[]).await.expect(200);
        as_bearer(test, text(&given["access_token"]), "/tools/calls").await.expect(200);
        assert_eq!(error(redeem(test, &client, &code, &[]).await, 400), "invalid_grant");
        as_bearer(test, text(&given["access_token"]), "/tools/calls").await.expect(401);
        assert_eq!(error(refresh(test, &client, text(&given["refresh_token"])).await, 400), "invalid_grant");
        assert_eq!(test.get("/grants").await.expect(200)["grants"][0]["state"], "code_reused");
    }

    async fn of_two_who_redeem_a_code_at_once_neither_keeps_it(test: &Test) {
        let (client, mut browser) = owner(test).await;
        let code = consent(&mut browser, &client, &[]).await;
        let (one, two) = tokio::join!(redeem(test, &client, &code, &[]), redeem(test, &client, &code, &[]));
        let given: Vec<Value> = [one, two].into_iter().filter(|reply| reply.status == 200).map(|reply| reply.json()).collect();
        assert_eq!(given.len(), 1);
        as_bearer(test, text(&given[0]["access_token"]), "/tools/calls").await.expect(401);
        assert_eq!(test.get("/grants").await.expect(200)["count"], 1);
    }

    async fn a_code_is_for_its_client_and_its_verifier(test: &Test) {
        let (client, mut browser) = owner(test).await;
        let thief = register(test, "Thief").await;
        let code = consent(&mut browser, &client, &[]).await;
        let long = "a".repeat(2000);
        for change in [
            [("client_id", thief.as_str())],
            [("client_id", "toolyard-cli")],
            [("code_verifier", "")],
            [("code_verifier", "wrong-wrong-wrong-wrong-wrong-wrong-wrong-wr")],
            [("code_verifier", &challenge())],
            [("code_verifier", &long)],
            [("redirect_uri", "https://client.example/cb/")],
            [("redirect_uri", "https://evil.example/cb")],
            [("code", "tyx_00000000000000000000000000000000")],
            [("code", "\0")],
        ] {
            assert_eq!(error(redeem(test, &client, &code, &change).await, 400), "invalid_grant", "{change:?}");
        }
        let elsewhere = format!("{}/mcp", public(test));
        for resource in [elsewhere.as_str(), "https://evil.example/mcp"] {
            assert_eq!(error(redeem(test, &client, &code, &[("resource", resource)]).await, 400), "invalid_target");
        }
        // None of that used it up.
        redeem(test, &client, &code, &[]).await.expect(200);
        let late = consent(&mut browser, &client, &[]).await;
        test.clock.advance(Duration::from_secs(121));
        assert_eq!(error(redeem(test, &client, &late, &[]).await, 400), "invalid_grant");
    }

    async fn a_refresh_token_that_comes_twice_ends_the_family(test: &Test) {
        let (client, mut browser) = owner(test).await;
        let given = tokens(test, &mut browser, &client, &[]).await;
        let first = text(&given["refresh_token"]);
        let next = refresh(test, &client, first).await.expect(200);
        assert_eq!(error(refresh(test, &client, first).await, 400), "invalid_grant");
        for token in [&given, &next] {
            as_bearer(test, text(&token["access_token"]), "/tools/calls").await.expect(401);
        }
        assert_eq!(error(refresh(test, &client, text(&next["refresh_token"])).await, 400), "invalid_grant");
        assert_eq!(test.get("/grants").await.expect(200)["grants"][0]["state"], "refresh_reused");
    }

    async fn a_refresh_token_on_two_nodes_at_once_ends_the_family(test: &Test) {
        let (client, mut browser) = owner(test).await;
        let given = tokens(test, &mut browser, &client, &[]).await;
        let other = Yard::open_at(test.yard.config.clone(), test.clock.clone()).await.unwrap();
        let known = test.yard.grants.prove(&client, &ClientSecret::new(None)).await.unwrap();
        let token = text(&given["refresh_token"]);
        let here = test.yard.grants.refresh(&known, token, None, None);
        let there = other.grants.refresh(&known, token, None, None);
        let (here, there) = tokio::join!(here, there);
        assert_eq!(u8::from(here.is_ok()) + u8::from(there.is_ok()), 1, "one update decides: {here:?} {there:?}");
        let kept = here.or(there).unwrap();
        assert_eq!(as_bearer(test, kept.access.expose(), "/tools/calls").await.status, 401, "and the other use ends it");
        assert_eq!(test.get("/grants").await.expect(200)["grants"][0]["state"], "refresh_reused");
        other.close().await;
    }

    async fn tokens_of_others_are_of_no_use(test: &Test) {
        let (client, mut browser) = owner(test).await;
        let thief = register(test, "Thief").await;
        let given = tokens(test, &mut browser, &client, &[]).await;
        let (access, renewal) = (text(&given["access_token"]), text(&given["refresh_token"]));
        assert_eq!(error(refresh(test, &thief, renewal).await, 400), "invalid_grant");
        assert_eq!(error(refresh(test, &client, access).await, 400), "invalid_grant", "an access token refreshes nothing");
        assert_eq!(as_bearer(test, renewal, "/tools/calls").await.expect(401)["code"], "invalid_key", "a refresh token opens nothing");
        for token in [access, renewal, "nonsense"] {
            post(test, "/oauth/revoke", &[("client_id", &thief), ("token", token)]).await.expect(200);
            let seen = post(test, "/oauth/introspect", &[("client_id", &thief), ("token", token)]).await.expect(200);
            assert_eq!(seen, json!({"active": false}));
        }
        as_bearer(test, access, "/tools/calls").await.expect(200);
        let wide = [("grant_type", "refresh_token"), ("client_id", &client), ("refresh_token", renewal), ("scope", "view_tools edit_tools")];
        assert_eq!(error(post(test, "/oauth/token", &wide).await, 400), "invalid_scope");
        let narrow = [wide[0], wide[1], wide[2], ("scope", "view_tools")];
        let narrowed = post(test, "/oauth/token", &narrow).await.expect(200);
        assert_eq!(narrowed["scope"], "view_tools");
        let called = test.post_as(text(&narrowed["access_token"]), "/tools/call", json!({})).await;
        assert_eq!(called.status, 403, "{}", called.text);
        let wider = refresh(test, &client, text(&narrowed["refresh_token"])).await.expect(200);
        assert_eq!(wider["scope"], "view_tools run_tools", "the grant itself was not narrowed");
    }

    async fn a_client_has_no_more_than_the_person_at_this_moment(test: &Test) {
        let client = register(test, "Desk").await;
        let (mut browser, user) = with_person(test, "eve@example.com", "default", Role::Editor).await;
        let given = tokens(test, &mut browser, &client, &[("scope", "view_tools edit_tools")]).await;
        let access = text(&given["access_token"]);
        let learn = async || test.request(Method::PUT, "/tools/discover/learned", Some(format!("Bearer {access}")), Some(json!({"learns": true}))).await;
        learn().await.expect(200);
        join(test, user, "default", Role::Viewer).await;
        assert_eq!(learn().await.status, 403, "she may not any more, so it may not");
        as_bearer(test, access, "/tools/calls").await.expect(200);
        let seen = post(test, "/oauth/introspect", &[("client_id", &client), ("token", access)]).await.expect(200);
        assert_eq!(seen["scope"], "view_tools");
        let project = test.yard.accounts.find_project("default").await.unwrap().id;
        let members = test.yard.accounts.members(project, None, store::PageSize::default()).await.unwrap();
        let member = members.rows.iter().find(|member| member.user == user).unwrap().id;
        test.yard.accounts.remove_member(project, member).await.unwrap();
        assert_eq!(as_bearer(test, access, "/tools/calls").await.expect(401)["code"], "invalid_token");
        join(test, user, "default", Role::Owner).await;
        as_bearer(test, access, "/tools/calls").await.expect(401);
        assert_eq!(error(refresh(test, &client, text(&given["refresh_token"])).await, 400), "invalid_grant", "she decides anew");
        assert_eq!(test.get("/grants").await.expect(200)["grants"][0]["state"], "granter_gone");
    }

    async fn a_grant_of_a_key_ends_with_the_key(test: &Test) {
        let client = register(test, "Desk").await;
        let key = test.key("default", Role::Editor, None).await;
        let mut browser = with_key(test, &key).await;
        let given = tokens(test, &mut browser, &client, &[]).await;
        let access = text(&given["access_token"]);
        as_bearer(test, access, "/tools/calls").await.expect(200);
        let id = test.yard.accounts.authenticator().authenticate(&key).await.unwrap().unwrap().key;
        test.yard.accounts.revoke_key(id).await.unwrap();
        as_bearer(test, access, "/tools/calls").await.expect(401);
    }

    async fn grants_are_listed_and_revoked_where_they_belong(test: &Test) {
        let client = register(test, "Desk").await;
        let (mut ada, _) = with_person(test, "ada@example.com", "default", Role::Viewer).await;
        let (mut bob, _) = with_person(test, "bob@example.com", "other", Role::Viewer).await;
        let hers = tokens(test, &mut ada, &client, &[]).await;
        let his = tokens(test, &mut bob, &client, &[]).await;
        let listed = test.get("/grants").await.expect(200);
        assert_eq!((&listed["count"], &listed["grants"][0]["user_name"]), (&json!(1), &json!("ada@example.com")));
        let id = text(&listed["grants"][0]["id"]).to_owned();
        let own = bob.get("/people/grants").await.expect(200);
        let other = text(&own["grants"][0]["id"]).to_owned();
        test.get(&format!("/grants/{id}")).await.expect(200);
        test.get(&format!("/grants/{other}")).await.expect(404);
        test.delete(&format!("/grants/{other}")).await.expect(404);
        assert_eq!(ada.api(Method::DELETE, &format!("/people/grants/{other}"), None, None).await.expect(404)["code"], "grant_not_found");
        let key = test.key("default", Role::Editor, None).await;
        let refused = test.request(Method::DELETE, &format!("/grants/{id}"), Some(format!("ApiKey {key}")), None).await;
        assert!(refused.detail(403).contains("edit_members"));
        assert_eq!(test.delete(&format!("/grants/{id}")).await.expect(200)["grant"]["state"], "revoked");
        as_bearer(test, text(&hers["access_token"]), "/tools/calls").await.expect(401);
        as_bearer(test, text(&his["access_token"]), "/tools/calls").await.expect(200);
        assert_eq!(bob.api(Method::DELETE, &format!("/people/grants/{other}"), None, None).await.expect(200)["grant"]["state"], "revoked");
        as_bearer(test, text(&his["access_token"]), "/tools/calls").await.expect(401);
        let again = tokens(test, &mut ada, &client, &[]).await;
        let page = ada.get("/account").await;
        assert!(page.text.contains("Clients that act for you") && page.text.contains("Desk"), "{}", page.text);
        for (id, words) in [(other, "There is no such client."), ("x".to_owned(), "There is no such client."), (field(&page.text, "grant"), "turned away")] {
            let reply = ada.answer("/account", &page, &[("action", "revoke_grant"), ("grant", &id)]).await;
            assert!(reply.text.contains(words), "{}", reply.text);
        }
        as_bearer(test, text(&again["access_token"]), "/tools/calls").await.expect(401);
    }

    async fn what_a_client_makes_is_held_to_its_grant(test: &Test) {
        let client = register(test, "Desk").await;
        let (mut ada, user) = with_person(test, "ada@example.com", "default", Role::Owner).await;
        tokens(test, &mut ada, &client, &[("scope", "view_triggers edit_triggers")]).await;
        let project = test.yard.accounts.find_project("default").await.unwrap().id;
        let grant = test.yard.grants.list(project, grants::GrantFilter::default()).await.unwrap().rows.remove(0);
        let key = kernel::KeyId::from(grant.id.uuid());
        let acting = async || test.yard.accounts.acting(project, key, Some(user)).await.unwrap();
        let scope = acting().await.unwrap();
        assert!(scope.may(kernel::Permission::EditTriggers) && !scope.may(kernel::Permission::RunWorkflows), "{scope:?}");
        test.yard.grants.end(project, grant.id, grants::EndedWhy::Revoked).await.unwrap();
        assert!(!acting().await.unwrap().may(kernel::Permission::RunWorkflows), "nor does its end widen it");
    }

    async fn streams_of_a_client_end_with_its_grant(test: &Test) {
        let client = register(test, "Desk").await;
        let mut browser = with_key(test, &test.owner).await;
        let given = tokens(test, &mut browser, &client, &[]).await;
        let (message, headers) = crate::mcp::newest("subscriptions/listen", &json!({"notifications": {"toolsListChanged": true}}), &json!({}));
        let stream = test.open(crate::mcp::request("/mcp", text(&given["access_token"]), &headers, &message)).await;
        let id = test.get("/grants").await.expect(200)["grants"][0]["id"].clone();
        test.delete(&format!("/grants/{}", text(&id))).await.expect(200);
        let count = futures_util::StreamExt::count(stream);
        assert!(tokio::time::timeout(Duration::from_secs(3), count).await.is_ok());
    }
}
