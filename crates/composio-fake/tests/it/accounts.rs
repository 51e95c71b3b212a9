//! Auth configs and connected accounts.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::support::{World, pluck};

#[tokio::test]
async fn auth_configs_are_made_as_the_toolkit_allows() {
    let world = World::new().await;
    let config = |toolkit: &str, wish: Value| json!({"toolkit": {"slug": toolkit}, "auth_config": wish});
    let managed = json!({"type": "use_composio_managed_auth"});
    let custom = |scheme: &str, credentials: Value| json!({"type": "use_custom_auth", "authScheme": scheme, "credentials": credentials});
    for (order, status) in [
        (config("github", managed.clone()), 201),
        (json!({"toolkit": {"slug": "github"}}), 201),
        (config("telegram", custom("API_KEY", json!({}))), 201),
        (config("gmail", custom("BEARER_TOKEN", json!({}))), 201),
        (config("orbit_desk", custom("OAUTH2", json!({"client_id": "i", "client_secret": "s"}))), 201),
        (config("orbit_desk", custom("OAUTH2", json!({"client_id": "i"}))), 400),
        (config("orbit_desk", managed.clone()), 400),
        (config("telegram", managed.clone()), 400),
        (config("hackernews", managed.clone()), 400),
        (config("github", custom("API_KEY", json!({}))), 400),
        (config("nope", managed), 404),
        (config("github", json!({"type": "use_magic"})), 400),
        (json!({}), 400),
    ] {
        assert_eq!(world.post("/auth_configs", order.clone()).await.0, status, "{order}");
    }
    assert_eq!(world.fake.auth_configs().len(), 5);
    let orbit = world.get("/auth_configs?toolkit_slug=orbit_desk").await;
    assert_eq!(orbit["items"][0]["credentials"], json!({"client_id": "REDACTED", "client_secret": "REDACTED"}));
    assert_eq!(world.get("/auth_configs?is_composio_managed=true").await["total_items"], 2);
    assert_eq!(world.get("/auth_configs?limit=2").await["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn an_auth_config_that_is_off_or_gone_takes_its_accounts_along() {
    let world = World::new().await;
    let account = world.account("github", "u").await;
    let config = world.fake.auth_configs()[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/auth_configs/{config}");
    assert_eq!(world.get(&path).await["no_of_connections"], 1);

    assert_eq!(world.patch(&format!("{path}/DISABLED"), json!({})).await.0, 200);
    let off = world.get(&format!("/connected_accounts/{account}")).await;
    assert_eq!((&off["status"], &off["is_disabled"], &off["auth_config"]["is_disabled"]), (&json!("INACTIVE"), &json!(true), &json!(true)));
    assert_eq!(world.post("/connected_accounts/link", json!({"auth_config_id": config, "user_id": "u"})).await.0, 400);
    assert_eq!(world.get("/auth_configs").await["total_items"], 0);
    assert_eq!(world.get("/auth_configs?show_disabled=true").await["total_items"], 1);
    assert_eq!(world.patch(&format!("{path}/ENABLED"), json!({})).await.0, 200);
    assert_eq!(world.fake.accounts()[0]["status"], "ACTIVE");
    assert_eq!(world.patch(&format!("{path}/ASLEEP"), json!({})).await.0, 400);

    assert_eq!(world.delete(&path).await.1["success"], true);
    assert_eq!((world.fake.accounts().len(), world.delete(&path).await.0), (0, 404));
}

#[tokio::test]
async fn a_person_allows_on_the_page_and_is_sent_back() {
    let world = World::new().await;
    let config = world.auth_config("github", None).await;
    let link = world.link(&config, "u").await;
    let account = link["connected_account_id"].as_str().unwrap();
    let page = link["redirect_url"].as_str().unwrap();
    assert_eq!(world.get(&format!("/connected_accounts/{account}")).await["state"]["val"]["redirectUrl"], page);

    let html = world.client.get(page).send().await.unwrap().text().await.unwrap();
    assert!(html.contains("Connect GitHub") && html.contains("Allow") && html.contains("Deny"), "{html}");
    let answer =
        world.client.post(page).header("content-type", "application/x-www-form-urlencoded").body("answer=allow").send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 303);
    assert_eq!(answer.headers()["location"], format!("https://app.example/back?state=s&connected_account_id={account}&status=success"));
    let active = world.get(&format!("/connected_accounts/{account}")).await;
    assert_eq!((&active["status"], &active["state"]["val"]["access_token"]), (&json!("ACTIVE"), &json!("REDACTED")));
    assert_eq!(world.client.get(page).send().await.unwrap().status().as_u16(), 410, "a link is good once");
}

#[tokio::test]
async fn a_person_denies_or_types_a_key() {
    let world = World::new().await;
    let submit = async |link: &Value, body: &'static str| {
        let request = world.client.post(link["redirect_url"].as_str().unwrap()).header("content-type", "application/x-www-form-urlencoded");
        request.body(body).send().await.unwrap()
    };
    let config = world.auth_config("github", None).await;
    let denied = world.link(&config, "u").await;
    let back = submit(&denied, "answer=deny").await.headers()["location"].to_str().unwrap().to_owned();
    assert!(back.contains("status=failed&error_message="), "{back}");
    assert_eq!(world.fake.accounts()[0]["status"], "FAILED");

    let config = world.auth_config("acme_crm", Some("API_KEY")).await;
    let link = world.link(&config, "u").await;
    let html = world.client.get(link["redirect_url"].as_str().unwrap()).send().await.unwrap().text().await.unwrap();
    assert!(html.contains("name=\"subdomain\" type=\"text\"") && html.contains("name=\"generic_api_key\" type=\"password\""), "{html}");
    assert_eq!(submit(&link, "answer=allow&subdomain=shop").await.status().as_u16(), 422);
    assert_eq!(submit(&link, "answer=allow&subdomain=shop&generic_api_key=k-123").await.status().as_u16(), 303);
    let account = world.fake.accounts().pop().unwrap();
    assert_eq!((&account["status"], &account["state"]["val"]["generic_api_key"]), (&json!("ACTIVE"), &json!("REDACTED")));
}

#[tokio::test]
async fn a_link_lapses_after_ten_minutes() {
    let world = World::new().await;
    let config = world.auth_config("github", None).await;
    let link = world.link(&config, "u").await;
    world.fake.advance(Duration::from_secs(599));
    assert_eq!(world.fake.accounts()[0]["status"], "INITIATED");
    world.fake.advance(Duration::from_secs(2));
    assert_eq!(world.client.get(link["redirect_url"].as_str().unwrap()).send().await.unwrap().status().as_u16(), 410);
    let account = &world.fake.accounts()[0];
    assert_eq!((&account["status"], account["status_reason"].is_string()), (&json!("EXPIRED"), true));
}

#[tokio::test]
async fn accounts_with_credentials_are_made_at_once_but_not_managed_ones() {
    let world = World::new().await;
    let create = |config: &str, val: Value| json!({"auth_config": {"id": config}, "connection": {"user_id": "u", "state": {"val": val}}});
    let managed = world.auth_config("github", None).await;
    let (status, refused) = world.post("/connected_accounts", create(&managed, json!({}))).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!(600)));

    let telegram = world.auth_config("telegram", Some("API_KEY")).await;
    let (status, missing) = world.post("/connected_accounts", create(&telegram, json!({}))).await;
    assert_eq!((status, &missing["error"]["errors"]), (400, &json!(["generic_api_key is missing"])));
    let (status, made) = world.post("/connected_accounts", create(&telegram, json!({"generic_api_key": "k"}))).await;
    assert_eq!((status, &made["status"], &made["connectionData"]["authScheme"]), (201, &json!("ACTIVE"), &json!("API_KEY")));
    assert_eq!(world.run("TELEGRAM_GET_ME", json!({"user_id": "u", "arguments": {}})).await.1["successful"], true);

    let own_app = json!({"type": "use_custom_auth", "authScheme": "OAUTH2", "credentials": {"client_id": "i", "client_secret": "s"}});
    let (_, orbit) = world.post("/auth_configs", json!({"toolkit": {"slug": "orbit_desk"}, "auth_config": own_app})).await;
    let (status, waits) = world.post("/connected_accounts", create(orbit["auth_config"]["id"].as_str().unwrap(), json!({}))).await;
    assert_eq!((status, &waits["status"], waits["redirect_url"].is_string()), (201, &json!("INITIATED"), true));
}

#[tokio::test]
async fn accounts_are_filtered_refreshed_switched_revoked_and_deleted() {
    let world = World::new().await;
    let github = world.account("github", "ann").await;
    let slack = world.account("slack", "bob").await;
    for (query, expected) in [
        ("", vec![slack.as_str(), &github]),
        ("?order_direction=asc", vec![&github, &slack]),
        ("?user_ids=ann", vec![&github]),
        ("?toolkit_slugs=slack&toolkit_slugs=gmail", vec![&slack]),
        ("?statuses=EXPIRED", vec![]),
        (&format!("?connected_account_ids={github}"), vec![&github]),
    ] {
        assert_eq!(pluck(&world.get(&format!("/connected_accounts{query}")).await, "id"), expected, "{query}");
    }
    let path = format!("/connected_accounts/{github}");
    assert_eq!(world.post(&format!("{path}/refresh"), json!({})).await.1, json!({"id": github, "status": "ACTIVE", "redirect_url": null}));
    world.fake.expire(&github).await.unwrap();
    let (_, again) = world.post(&format!("{path}/refresh"), json!({"redirect_url": "https://app.example/back"})).await;
    assert_eq!((&again["status"], again["redirect_url"].is_string()), (&json!("INITIATED"), true));
    assert!(world.fake.finish(&github));

    assert_eq!(world.patch(&format!("{path}/status"), json!({"enabled": false})).await.1, json!({"success": true}));
    assert_eq!(world.fake.accounts()[0]["status"], "INACTIVE");
    assert_eq!(world.patch(&format!("{path}/status"), json!({"enabled": true})).await.0, 200);
    assert_eq!(world.patch(&path, json!({"alias": "work"})).await.1["success"], true);
    assert_eq!(world.fake.accounts()[0]["alias"], "work");
    let (_, revoked) = world.post(&format!("{path}/revoke"), json!({})).await;
    assert_eq!(revoked["connected_account"], json!({"id": github, "status": "REVOKED"}));
    assert!(world.delete(&format!("{path}?revoke_on_delete=true")).await.1["revoke_job_id"].is_string());
    assert_eq!((world.delete(&path).await.0, world.send(Method::GET, &path, None).await.0), (404, 404));

    let link = world.link(world.fake.auth_configs()[0]["id"].as_str().unwrap(), "ann").await;
    assert!(world.fake.fail(link["connected_account_id"].as_str().unwrap()));
    assert_eq!(world.client.get(link["redirect_url"].as_str().unwrap()).send().await.unwrap().status().as_u16(), 410);
    assert!(world.fake.remove_account(link["connected_account_id"].as_str().unwrap()));
    assert!(world.fake.fail(&slack) && world.fake.remove_account(&slack) && !world.fake.remove_account(&slack));
    assert!(world.fake.accounts().is_empty());
}
