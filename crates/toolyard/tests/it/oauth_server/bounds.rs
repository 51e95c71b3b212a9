//! How many grants and clients there may be, and how long what has ended is kept.

use std::time::Duration;

use grants::Limits;

use super::*;
use crate::support::{Database, on_both};

async fn small(database: Database) -> Test {
    Test::with(database, |config| config.quotas.grants = Limits { of_granter: 2, of_project: 3, clients: 4 }).await
}

/// A consent that is refused because there are as many as may be: the page.
async fn refused(browser: &mut Browser<'_>, client: &str) -> String {
    let page = browser.get(&authorize_url(client, &[])).await;
    let reply = submit(browser, "/oauth/authorize", &filled(&page.text, "allow", &offered(&page.text))).await;
    let text = reply.text.clone();
    reply.expect_page(409);
    text
}

async fn what_people_let_in_is_bounded(database: Database) {
    let test = &small(database).await;
    let client = register(test, "Desk").await;
    let (mut ada, _) = with_person(test, "ada@example.com", "default", Role::Viewer).await;
    tokens(test, &mut ada, &client, &[]).await;
    // A code that waits is as good as a grant.
    let waiting = consent(&mut ada, &client, &[]).await;
    let said = refused(&mut ada, &client).await;
    assert!(said.contains("2 grants of one person") && said.contains("grants_per_person") && said.contains("/account"), "{said}");
    redeem(test, &client, &waiting, &[]).await.expect(200);
    refused(&mut ada, &client).await;

    // Somebody else has room, until the project has none.
    let mut owner = with_key(test, &test.owner).await;
    tokens(test, &mut owner, &client, &[]).await;
    let said = refused(&mut owner, &client).await;
    assert!(said.contains("3 grants") && said.contains("grants_per_project"), "{said}");
    let device = post(test, "/oauth/device", &[("client_id", &client)]).await.expect(200);
    let path = format!("/device?user_code={}", text(&device["user_code"]));
    let page = owner.get(&path).await;
    submit(&mut owner, "/device", &filled(&page.text, "allow", &offered(&page.text))).await.expect_page(409);
    // Another project is another matter.
    let (mut bob, _) = with_person(test, "bob@example.com", "other", Role::Viewer).await;
    tokens(test, &mut bob, &client, &[]).await;

    // What is revoked or over makes room.
    let listed = test.get("/grants").await.expect(200);
    test.delete(&format!("/grants/{}", text(&listed["grants"][0]["id"]))).await.expect(200);
    tokens(test, &mut owner, &client, &[]).await;
    refused(&mut owner, &client).await;
    test.clock.advance(Duration::from_hours(30 * 24));
    let mut owner = with_key(test, &test.owner).await;
    tokens(test, &mut owner, &client, &[]).await;
}

async fn clients_that_register_are_bounded(database: Database) {
    let test = &small(database).await;
    let first = register(test, "first").await;
    register(test, "second").await;
    let body = json!({"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"});
    let attempt = async || test.request(Method::POST, "/oauth/register", None, Some(body.clone())).await;
    let said = attempt().await.expect(429);
    assert_eq!(said["error"], "too_many_clients");
    assert!(text(&said["error_description"]).contains("`registered_clients`"), "{said}");
    let mut owner = with_key(test, &test.owner).await;
    tokens(test, &mut owner, &first, &[]).await;
    attempt().await.expect(201);
    attempt().await.expect(429);
    test.clock.advance(Duration::from_hours(25));
    test.yard.forget().await.unwrap();
    attempt().await.expect(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_people_let_in_is_bounded_on_sqlite() {
    Box::pin(what_people_let_in_is_bounded(Database::Sqlite)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_people_let_in_is_bounded_on_postgres() {
    Box::pin(what_people_let_in_is_bounded(Database::Postgres)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_register_are_bounded_on_sqlite() {
    Box::pin(clients_that_register_are_bounded(Database::Sqlite)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_register_are_bounded_on_postgres() {
    Box::pin(clients_that_register_are_bounded(Database::Postgres)).await;
}

on_both! {
    async fn grants_go_with_what_names_them(test: &Test) {
        let client = register(test, "Desk").await;
        let mut owner = with_key(test, &test.owner).await;
        let gone = tokens(test, &mut owner, &client, &[]).await;
        let asked = [("scope", "view_triggers edit_triggers view_workflows run_workflows")];
        let acts = tokens(test, &mut owner, &client, &asked).await;
        let grants = test.get("/grants").await.expect(200)["grants"].take();
        let (acting, ended) = (text(&grants[0]["id"]).to_owned(), text(&grants[1]["id"]).to_owned());
        test.post("/simple/workflows/", json!({"workflow": {"slug": "say", "data": {"kind": "echo"}}})).await.expect(200);
        let data = json!({"event_key": "tick", "schedule": "0 9 * * *", "references": {"workflow": {"slug": "say"}}});
        let made = test.post_as(text(&acts["access_token"]), "/triggers/schedules/", json!({"schedule": {"data": data}})).await.expect(200);
        as_bearer(test, text(&gone["access_token"]), "/tools/calls").await.expect(200);
        let left = async || {
            test.yard.forget().await.unwrap();
            let mut left: Vec<String> = test.yard.db.all("select id from oauth_grants", []).await.unwrap().iter()
                .map(|row| row.get::<GrantId>("id").unwrap().to_string()).collect();
            let clients = test.yard.db.all("select id from oauth_clients", []).await.unwrap().len();
            left.sort();
            (left, clients)
        };
        let both = vec![ended.clone().min(acting.clone()), ended.clone().max(acting.clone())];

        // Over, but the record still names them; their client is asked for no more and goes a month later.
        test.clock.advance(Duration::from_hours(59 * 24));
        assert_eq!(left().await, (both.clone(), 1));
        test.clock.advance(Duration::from_hours(3 * 24));
        assert_eq!(left().await, (both.clone(), 0));
        // What was done through it is forgotten by now. The other still acts, as a schedule.
        test.clock.advance(Duration::from_hours(340 * 24));
        assert_eq!(left().await.0, std::slice::from_ref(&acting));
        let project = test.yard.accounts.find_project("default").await.unwrap().id;
        let key = kernel::KeyId::from(acting.parse::<uuid::Uuid>().unwrap());
        assert!(test.yard.accounts.acting(project, key, None).await.unwrap().is_some_and(|scope| !scope.may(Permission::RunTools)));
        test.delete(&format!("/triggers/schedules/{}", text(&made["schedule"]["id"]))).await.expect(204);
        assert_eq!(left().await.0, [acting], "what the schedule did is still on record");
        test.clock.advance(Duration::from_hours(366 * 24));
        assert!(left().await.0.is_empty());
    }
}
