//! Auth configs and connected accounts: made, listed, connected by a link or at once, changed, and whose they are.

use std::time::Duration;

use axum::body::Body;
use http::{Method, Request};
use kernel::Role;
use serde_json::{Value, json};
use url::Url;

use super::{ask, ask_as, read, refused};
use crate::support::{Database, Fake, Oidc, Reply, Test, on_both};

const THING: &str = "/tools/execute/FAKE_GET_A_THING";

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

async fn post(test: &Test, path: &str, body: Value) -> Reply {
    ask(test, Method::POST, path, Some(body)).await
}

async fn patch(test: &Test, path: &str, body: Value) -> Reply {
    ask(test, Method::PATCH, path, Some(body)).await
}

/// An auth config of the fake service whose accounts share its address.
async fn fake_config(test: &Test, fake: &Fake) -> String {
    let choice = json!({"type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {"base": fake.url}});
    let made = post(test, "/auth_configs", json!({"toolkit": {"slug": "FAKE"}, "auth_config": choice})).await.expect(201);
    assert_eq!((&made["toolkit"]["slug"], &made["auth_config"]["auth_scheme"]), (&json!("fake"), &json!("API_KEY")));
    text(&made["auth_config"]["id"]).to_owned()
}

/// Connects the fake service for a user with a key, as SDKs do.
async fn initiate(test: &Test, config: &str, user: &str, alias: Option<&str>, key: &str) -> Reply {
    let state = json!({"authScheme": "API_KEY", "val": {"status": "ACTIVE", "generic_api_key": key}});
    let body = json!({"auth_config": {"id": config}, "connection": {"user_id": user, "alias": alias, "state": state}});
    post(test, "/connected_accounts", body).await
}

async fn connected(test: &Test, config: &str, user: &str, key: &str) -> String {
    let made = initiate(test, config, user, None, key).await.expect(201);
    assert_eq!((&made["status"], &made["connectionData"]["val"]["status"]), (&json!("ACTIVE"), &json!("ACTIVE")), "{made}");
    text(&made["id"]).to_owned()
}

async fn account(test: &Test, id: &str) -> Value {
    read(test, &format!("/connected_accounts/{id}")).await
}

async fn ids(test: &Test, query: &str) -> Vec<String> {
    let page = read(test, &format!("/connected_accounts?{query}")).await;
    page["items"].as_array().unwrap().iter().map(|item| text(&item["id"]).to_owned()).collect()
}

async fn run_for(test: &Test, body: Value) -> Reply {
    let mut body = body;
    body["arguments"] = json!({"owner": "o", "path": "p"});
    post(test, THING, body).await
}

fn key_used(fake: &Fake) -> String {
    fake.seen().last().unwrap()["headers"]["x-api-key"].as_str().unwrap().to_owned()
}

async fn submit(test: &Test, path: &str, form: &str) -> Reply {
    let request = Request::post(path).header("content-type", "application/x-www-form-urlencoded");
    test.send(request.body(Body::from(form.to_owned())).unwrap()).await
}

fn path_of(url: &Value) -> String {
    let url: Url = text(url).parse().unwrap();
    url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()))
}

on_both! {
    async fn an_auth_config_is_made_shown_changed_and_deleted(test: &Test) {
        let fake = Fake::start().await;
        let config = fake_config(test, &fake).await;
        let shown = read(test, &format!("/auth_configs/{config}")).await;
        assert_eq!((&shown["type"], &shown["status"], &shown["no_of_connections"]), (&json!("custom"), &json!("ENABLED"), &json!(0)));
        assert_eq!((&shown["credentials"]["base"], shown["created_at"].is_string()), (&json!(fake.url), true), "{shown}");
        let asked: Vec<&str> = shown["expected_input_fields"].as_array().unwrap().iter().map(|field| text(&field["name"])).collect();
        assert_eq!(asked, ["api_key", "team"], "nobody is asked for what is shared");

        // Nothing is there to connect Oidc with by OAuth, so it has no default.
        let managed = json!({"toolkit": {"slug": "oidc"}, "auth_config": {"type": "use_composio_managed_auth"}});
        let missing = refused(post(test, "/auth_configs", managed.clone()).await, 400);
        assert_eq!(missing["slug"], "Auth_Config_DefaultAuthConfigNotFound");
        let app = json!({"oauth_app": {"integration_key": "oidc", "client_id": "yard", "client_secret": "yard-secret"}});
        test.post("/tools/oauth-apps", app).await.expect(200);
        let made = post(test, "/auth_configs", managed).await.expect(201);
        assert_eq!((&made["auth_config"]["auth_scheme"], &made["auth_config"]["is_composio_managed"]), (&json!("OAUTH2"), &json!(true)));
        // A service without OAuth is managed by a credential that is typed.
        let typed = post(test, "/auth_configs", json!({"toolkit": {"slug": "fake"}})).await.expect(201);
        assert_eq!(typed["auth_config"]["auth_scheme"], "API_KEY");

        let custom = |credentials: Value| json!({"toolkit": {"slug": "oidc"}, "auth_config": {"type": "use_custom_auth", "authScheme": "OAUTH2", "credentials": credentials}});
        for wrong in [
            custom(json!({})),
            custom(json!({"client_id": "x"})),
            custom(json!({"client_id": "x", "client_secret": "y", "clientid": "z"})),
            custom(json!({"client_id": "x", "client_secret": "y", "redirect_uri": "https://evil.example/"})),
            custom(json!({"client_id": "x", "client_secret": "y", "scopes": [1]})),
            json!({"toolkit": {"slug": "oidc"}, "auth_config": {"type": "use_custom_auth", "authScheme": "SAML"}}),
            json!({"toolkit": {"slug": "oidc"}, "auth_config": {"type": "something"}}),
            json!({"toolkit": {"slug": "fake"}, "auth_config": {"tool_access_config": {"tools_for_connected_account_creation": ["FAKE_NO_SUCH"]}}}),
            json!({"toolkit": 7}),
        ] {
            refused(post(test, "/auth_configs", wrong).await, 400);
        }
        refused(post(test, "/auth_configs", json!({"toolkit": {"slug": "nosuchkit"}})).await, 404);

        let own = custom(json!({"client_id": "mine", "client_secret": "very-secret-1", "scopes": "a,b"}));
        let own = text(&post(test, "/auth_configs", own).await.expect(201)["auth_config"]["id"]).to_owned();
        let reply = ask(test, Method::GET, &format!("/auth_configs/{own}"), None).await;
        assert!(!reply.text.contains("very-secret-1"), "{}", reply.text);
        let shown = reply.expect(200);
        assert_eq!((&shown["credentials"]["client_id"], &shown["credentials"]["scopes"]), (&json!("mine"), &json!(["a", "b"])));

        let change = json!({"type": "custom", "name": "Ours", "credentials": {"client_secret": "very-secret-2", "scopes": "c"}});
        patch(test, &format!("/auth_configs/{own}"), change).await.expect(200);
        let shown = read(test, &format!("/auth_configs/{own}")).await;
        assert_eq!((&shown["name"], &shown["credentials"]["scopes"], &shown["credentials"]["client_id"]), (&json!("Ours"), &json!(["c"]), &json!("mine")));
        refused(patch(test, &format!("/auth_configs/{own}"), json!({"type": "default", "scopes": "x"})).await, 400);

        let list = async |query: &str| read(test, &format!("/auth_configs?{query}")).await["total_items"].clone();
        assert_eq!(list("").await, 4);
        assert_eq!(list("toolkit_slug=oidc").await, 2);
        assert_eq!(list("toolkit_slug=FAKE,oidc&is_composio_managed=true").await, 2);
        assert_eq!(list("search=ours").await, 1);
        ask(test, Method::PATCH, &format!("/auth_configs/{own}/DISABLED"), None).await.expect(200);
        assert_eq!((list("").await, list("show_disabled=true").await), (json!(3), json!(4)));
        refused(ask(test, Method::PATCH, &format!("/auth_configs/{own}/OFF"), None).await, 400);
        refused(post(test, "/connected_accounts/link", json!({"auth_config_id": own, "user_id": "u"})).await, 400);

        let ann = connected(test, &config, "ann", "sk-ann-123456").await;
        assert_eq!(read(test, &format!("/auth_configs/{config}")).await["no_of_connections"], 1);
        ask(test, Method::DELETE, &format!("/auth_configs/{config}"), None).await.expect(200);
        refused(ask(test, Method::GET, &format!("/connected_accounts/{ann}"), None).await, 404);
        refused(ask(test, Method::GET, &format!("/auth_configs/{config}"), None).await, 404);
        // Another project sees none of it.
        let stranger = test.key("stranger", Role::Owner, None).await;
        refused(ask_as(test, &stranger, Method::GET, &format!("/auth_configs/{own}"), None).await, 404);
        refused(ask_as(test, &stranger, Method::DELETE, &format!("/auth_configs/{own}"), None).await, 404);
        let viewer = test.key("default", Role::Viewer, None).await;
        refused(ask_as(test, &viewer, Method::POST, "/auth_configs", Some(json!({"toolkit": {"slug": "fake"}}))).await, 403);
    }

    async fn a_key_connects_an_account_at_once(test: &Test) {
        let fake = Fake::start().await;
        let config = fake_config(test, &fake).await;
        let ann = connected(test, &config, "ann", "sk-ann-123456").await;
        let reply = ask(test, Method::GET, &format!("/connected_accounts/{ann}"), None).await;
        assert!(!reply.text.contains("sk-ann"), "{}", reply.text);
        let shown = reply.expect(200);
        assert_eq!((&shown["user_id"], &shown["status"], &shown["status_reason"]), (&json!("ann"), &json!("ACTIVE"), &Value::Null));
        assert_eq!((&shown["toolkit"]["slug"], &shown["auth_config"]["id"]), (&json!("fake"), &json!(config)));
        assert_eq!((&shown["state"]["authScheme"], shown["state"]["val"]["generic_api_key"].is_string()), (&json!("API_KEY"), true));
        run_for(test, json!({"user_id": "ann"})).await.expect(200);
        assert_eq!(key_used(&fake), "sk-ann-123456");

        fake.answer_me(401);
        let wrong = initiate(test, &config, "ann", None, "sk-bad-123456").await;
        assert!(!wrong.text.contains("sk-bad"), "{}", wrong.text);
        refused(wrong, 422);
        fake.answer_me(200);
        let body = |connection: Value| json!({"auth_config": {"id": config}, "connection": connection});
        for wrong in [
            body(json!({"user_id": "ann", "state": {"authScheme": "OAUTH2", "val": {"status": "ACTIVE"}}})),
            body(json!({"user_id": "ann", "state": {"authScheme": "API_KEY", "val": {"status": "ACTIVE", "apikey": "x"}}})),
            body(json!({"user_id": "ann", "state": {"authScheme": "API_KEY", "val": {"status": "ACTIVE", "team": "x"}}})),
            body(json!({"user_id": "ann", "experimental": {"account_type": "SHARED"}})),
            body(json!({"user_id": " ann"})),
            body(json!({"user_id": "ann", "alias": "not a slug"})),
            body(json!({"user_id": "ann", "callback_url": "javascript:alert(1)"})),
            json!({"connection": {}}),
        ] {
            refused(post(test, "/connected_accounts", wrong).await, 400);
        }
        refused(post(test, "/connected_accounts", json!({"auth_config": {"id": "ac_nothing"}})).await, 404);
        assert_eq!(ids(test, "user_ids=ann").await, [ann], "what was refused left no account");
    }

    async fn a_link_is_opened_by_a_person_and_waited_for(test: &Test) {
        let fake = Fake::start().await;
        let config = fake_config(test, &fake).await;
        let link = async |user: &str, more: Value| {
            let mut body = json!({"auth_config_id": config, "user_id": user});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            post(test, "/connected_accounts/link", body).await.expect(201)
        };
        let made = link("ann", json!({"callback_url": "https://app.example/done?x=1"})).await;
        assert!(text(&made["link_token"]).starts_with("lk_") && made["expires_at"].is_string(), "{made}");
        let (id, path) = (text(&made["connected_account_id"]).to_owned(), path_of(&made["redirect_url"]));
        let waiting = account(test, &id).await;
        assert_eq!((&waiting["status"], &waiting["state"]["val"]["redirectUrl"]), (&json!("INITIATED"), &json!("")), "the link is told once");
        let form = test.request(Method::GET, &path, None, None).await.text;
        assert!(form.contains("name=\"api_key\"") && !form.contains("name=\"base\""), "{form}");
        let done = submit(test, &path, "api_key=sk-ann-123456").await;
        assert_eq!(done.status, 200, "{}", done.text);
        let next = format!("https://app.example/done?x=1&amp;status=success&amp;connected_account_id={id}");
        assert!(done.text.replace("&#38;", "&amp;").contains(&next), "{}", done.text);
        assert_eq!(account(test, &id).await["status"], "ACTIVE");
        run_for(test, json!({"user_id": "ann"})).await.expect(200);
        assert_eq!(key_used(&fake), "sk-ann-123456");

        // Somebody who does not want to goes back too, and nobody waits for them.
        let made = link("bob", json!({"callback_url": "https://app.example/done"})).await;
        let (bob, path) = (text(&made["connected_account_id"]).to_owned(), path_of(&made["redirect_url"]));
        let declined = submit(test, &format!("{path}?decline=1"), "").await;
        assert!(declined.status == 200 && declined.text.contains("status=failed"), "{}", declined.text);
        let failed = account(test, &bob).await;
        assert!(failed["status"] == "FAILED" && text(&failed["status_reason"]).contains("declined"), "{failed}");
        assert_eq!(submit(test, &path, "api_key=sk-bob-123456").await.status, 400, "the link is used up");
        // And who never comes is not waited for.
        let made = link("bob", json!({"alias": "late"})).await;
        let late = text(&made["connected_account_id"]).to_owned();
        test.clock.advance(Duration::from_secs(3601));
        assert_eq!(account(test, &late).await["status"], "EXPIRED");
        assert_eq!(ids(test, "statuses=EXPIRED").await, std::slice::from_ref(&late));
        assert_eq!(ids(test, "statuses=FAILED,EXPIRED&user_ids=bob").await, [late, bob]);
        // What the project allows holds here too.
        let links = json!({"return_to": ["https://app.example/done"], "origins": []});
        test.request(Method::PUT, "/project/connect-links", Some(format!("ApiKey {}", test.owner)), Some(links)).await.expect(200);
        let elsewhere = json!({"auth_config_id": config, "user_id": "ann", "callback_url": "https://evil.example/"});
        refused(post(test, "/connected_accounts/link", elsewhere).await, 400);
    }

    async fn consent_by_oauth_leads_back_to_the_caller(test: &Test) {
        let project = test.yard.accounts.find_project("default").await.unwrap().id;
        let redirect = test.yard.connections.redirect_url(connections::Owner::Project(project), "native", "oidc");
        let oidc = Oidc::start(&redirect, 600).await;
        let credentials = json!({"client_id": "yard", "client_secret": "yard-secret", "base": oidc.issuer});
        let choice = json!({"type": "use_custom_auth", "authScheme": "OAUTH2", "credentials": credentials});
        let config = post(test, "/auth_configs", json!({"toolkit": {"slug": "oidc"}, "auth_config": choice})).await.expect(201);
        let config = text(&config["auth_config"]["id"]).to_owned();
        let begin = async |user: &str| {
            let body = json!({"auth_config": {"id": config}, "connection": {"user_id": user, "callback_url": "https://app.example/cb"}});
            let made = post(test, "/connected_accounts", body).await.expect(201);
            assert_eq!((&made["status"], &made["redirect_url"]), (&json!("INITIATED"), &made["connectionData"]["val"]["redirectUrl"]));
            assert_eq!(made["connectionData"]["val"]["redirect_url"], made["redirect_url"]);
            (text(&made["id"]).to_owned(), text(&made["redirect_url"]).to_owned())
        };
        let come_back = async |url: Url| test.request(Method::GET, &format!("{}?{}", url.path(), url.query().unwrap()), None, None).await;
        let (ann, authorize) = begin("ann").await;
        let back = come_back(oidc.browse(&authorize, "ann", true).await).await;
        assert_eq!(back.status, 303, "{}", back.text);
        assert_eq!(back.headers["location"], format!("https://app.example/cb?status=success&connected_account_id={ann}"));
        let shown = account(test, &ann).await;
        assert_eq!((&shown["status"], shown["state"]["val"]["access_token"].is_string()), (&json!("ACTIVE"), true), "{shown}");
        let ran = post(test, "/tools/execute/OIDC_GET_ME", json!({"user_id": "ann", "arguments": {}})).await.expect(200);
        assert_eq!((&ran["successful"], &ran["data"]["login"]), (&json!(true), &json!("ann")), "{ran}");
        // A refresh that starts over leaves what works.
        let refreshed = post(test, &format!("/connected_accounts/{ann}/refresh"), json!({})).await.expect(200);
        assert_eq!((&refreshed["status"], &refreshed["redirect_url"]), (&json!("ACTIVE"), &Value::Null), "{refreshed}");

        let (bob, authorize) = begin("bob").await;
        let back = come_back(oidc.browse(&authorize, "bob", false).await).await;
        assert_eq!((back.status.as_u16(), back.headers["location"].to_str().unwrap()), (303, format!("https://app.example/cb?status=failed&connected_account_id={bob}").as_str()));
        let failed = account(test, &bob).await;
        assert!(failed["status"] == "FAILED" && text(&failed["status_reason"]).contains("said no"), "{failed}");

        let revoked = post(test, &format!("/connected_accounts/{ann}/revoke"), json!({})).await.expect(200);
        assert_eq!((&revoked["revoked_tokens"], &revoked["connected_account"]["status"]), (&json!(["refresh_token"]), &json!("REVOKED")));
        let again = post(test, &format!("/connected_accounts/{ann}/revoke"), json!({})).await.expect(200);
        assert_eq!(again["revoked_tokens"], json!([]));
        refused(post(test, &format!("/connected_accounts/{bob}/revoke"), json!({})).await, 409);
        refused(post(test, "/tools/execute/OIDC_GET_ME", json!({"user_id": "ann", "arguments": {}})).await, 422);

        // A token that was granted elsewhere is taken over, if it works.
        let take = async |token: &str| {
            let state = json!({"authScheme": "OAUTH2", "val": {"status": "ACTIVE", "access_token": token}});
            post(test, "/connected_accounts", json!({"auth_config": {"id": config}, "connection": {"user_id": "carl", "state": state}})).await
        };
        refused(take("nonsense-token").await, 422);
    }

    async fn accounts_are_told_apart_by_user_alias_and_switch(test: &Test) {
        let fake = Fake::start().await;
        let config = fake_config(test, &fake).await;
        let old = connected(test, &config, "ann", "sk-old-123456").await;
        let new = connected(test, &config, "ann", "sk-new-123456").await;
        let own = connected(test, &config, "default", "sk-own-123456").await;
        let bob = connected(test, &config, "bob", "sk-bob-123456").await;
        run_for(test, json!({"user_id": "ann"})).await.expect(200);
        assert_eq!(key_used(&fake), "sk-new-123456", "the newest");
        run_for(test, json!({"user_id": "ann", "connected_account_id": old})).await.expect(200);
        assert_eq!(key_used(&fake), "sk-old-123456");
        run_for(test, json!({})).await.expect(200);
        assert_eq!(key_used(&fake), "sk-own-123456", "nobody is the project itself");
        for (user, account) in [("ann", &bob), ("bob", &own), ("default", &bob), ("nobody", &old)] {
            let error = refused(run_for(test, json!({"user_id": user, "connected_account_id": account})).await, 400);
            assert_eq!(error["code"], 1803, "{user}: {error}");
        }
        assert_eq!(refused(run_for(test, json!({"user_id": "nobody"})).await, 400)["code"], 1803);

        patch(test, &format!("/connected_accounts/{new}/status"), json!({"enabled": false})).await.expect(200);
        let shown = account(test, &new).await;
        assert_eq!((&shown["status"], &shown["is_disabled"]), (&json!("ACTIVE"), &json!(true)));
        run_for(test, json!({"user_id": "ann"})).await.expect(200);
        assert_eq!(key_used(&fake), "sk-old-123456");
        refused(run_for(test, json!({"user_id": "ann", "connected_account_id": new})).await, 422);
        patch(test, &format!("/connected_accounts/{old}/status"), json!({"enabled": false})).await.expect(200);
        refused(run_for(test, json!({"user_id": "ann"})).await, 422);
        patch(test, &format!("/connected_accounts/{new}/status"), json!({"enabled": true})).await.expect(200);
        run_for(test, json!({"user_id": "ann"})).await.expect(200);
        assert_eq!(key_used(&fake), "sk-new-123456");

        patch(test, &format!("/connected_accounts/{new}"), json!({"alias": "work"})).await.expect(200);
        assert_eq!(account(test, &new).await["alias"], "work");
        refused(patch(test, &format!("/connected_accounts/{old}"), json!({"alias": "work"})).await, 400);
        refused(initiate(test, &config, "ann", Some("work"), "sk-x-123456").await, 400);
        initiate(test, &config, "bob", Some("work"), "sk-x-123456").await.expect(201);
        initiate(test, &config, "default", Some("work"), "sk-x-123456").await.expect(201);
        patch(test, &format!("/connected_accounts/{new}"), json!({"alias": ""})).await.expect(200);
        assert_eq!(account(test, &new).await.get("alias"), None);

        let other = json!({"connection": {"state": {"authScheme": "API_KEY", "val": {"api_key": "sk-next-123456"}}}});
        let changed = patch(test, &format!("/connected_accounts/{new}"), other).await.expect(200);
        assert_eq!((&changed["success"], &changed["status"]), (&json!(true), &json!("ACTIVE")));
        run_for(test, json!({"user_id": "ann"})).await.expect(200);
        assert_eq!(key_used(&fake), "sk-next-123456");
        let acl = json!({"experimental": {"acl_config_for_shared": {"allow_all_users": true}}});
        let error = refused(patch(test, &format!("/connected_accounts/{new}"), acl).await, 400);
        assert!(text(&error["message"]).contains("acl_config_for_shared is only valid on SHARED"), "SDKs look for these words");

        ask(test, Method::PATCH, &format!("/auth_configs/{config}/DISABLED"), None).await.expect(200);
        refused(run_for(test, json!({"user_id": "ann"})).await, 422);
        refused(run_for(test, json!({"connected_account_id": bob})).await, 422);
        ask(test, Method::PATCH, &format!("/auth_configs/{config}/ENABLED"), None).await.expect(200);
        let only = json!({"type": "custom", "tool_access_config": {"tools_available_for_execution": ["FAKE_MAKE_A_THING"]}});
        patch(test, &format!("/auth_configs/{config}"), only).await.expect(200);
        let ran = run_for(test, json!({"user_id": "ann"})).await.expect(200);
        assert!(ran["successful"] == false && text(&ran["error"]).contains("does not allow"), "{ran}");
        ask(test, Method::DELETE, &format!("/connected_accounts/{new}"), None).await.expect(200);
        refused(ask(test, Method::GET, &format!("/connected_accounts/{new}"), None).await, 404);
        refused(ask(test, Method::DELETE, &format!("/connected_accounts/{new}"), None).await, 404);
    }

    async fn a_list_is_filtered_by_all_that_is_asked(test: &Test) {
        let fake = Fake::start().await;
        let (one, two) = (fake_config(test, &fake).await, fake_config(test, &fake).await);
        let native = test.connect_fake(&fake, "main").await;
        let mut made = Vec::new();
        for (config, user) in [(&one, "ann"), (&two, "ann"), (&one, "bob"), (&one, "default")] {
            made.push(connected(test, config, user, "sk-some-123456").await);
        }
        let [ann_one, ann_two, bob, own] = [&made[0], &made[1], &made[2], &made[3]];
        assert_eq!(ids(test, &format!("user_ids=ann&auth_config_ids={one}&statuses=ACTIVE")).await, std::slice::from_ref(ann_one));
        assert_eq!(ids(test, "user_ids=ann,bob").await, [bob.clone(), ann_two.clone(), ann_one.clone()], "newest first");
        assert_eq!(ids(test, &format!("auth_config_ids={one},{two}&user_ids=ann,default&order_direction=asc")).await, [ann_one.clone(), ann_two.clone(), own.clone()]);
        assert_eq!(ids(test, &format!("connected_account_ids={bob},{own},ca_nonsense&user_ids=bob")).await, std::slice::from_ref(bob));
        assert_eq!(ids(test, "toolkit_slugs=oidc").await, Vec::<String>::new());
        assert_eq!(ids(test, "toolkit_slugs=FAKE,nosuchkit").await.len(), 5);
        assert_eq!(ids(test, "user_ids=nobody").await.len() + ids(test, "account_type=SHARED").await.len(), 0);
        assert_eq!(ids(test, "statuses=INITIATED,REVOKED").await.len(), 0);
        let page = read(test, "/connected_accounts?limit=2").await;
        assert_eq!((&page["total_items"], &page["total_pages"], &page["current_page"]), (&json!(5), &json!(3), &json!(1)));
        assert_eq!(page["items"][0].get("params"), None, "{page}");
        let rest = ids(test, &format!("limit=5&cursor={}", text(&page["next_cursor"]))).await;
        assert_eq!(rest.len(), 3);
        for wrong in ["statuses=GONE", "order_by=name", "limit=0", "cursor=x", "account_type=OURS"] {
            refused(ask(test, Method::GET, &format!("/connected_accounts?{wrong}"), None).await, 400);
        }

        // An account that was connected without an auth config has one that stands for it.
        let id = composio_api::ids::ACCOUNT.show(text(&native["id"]).parse().unwrap());
        let shown = account(test, &id).await;
        let implied = text(&shown["auth_config"]["id"]).to_owned();
        assert_eq!((&shown["user_id"], &shown["auth_config"]["auth_scheme"]), (&json!("default"), &json!("API_KEY")));
        assert_eq!(ids(test, &format!("auth_config_ids={implied}")).await, std::slice::from_ref(&id));
        let config = read(test, &format!("/auth_configs/{implied}")).await;
        assert_eq!((&config["no_of_connections"], &config["toolkit"]["slug"]), (&json!(1), &json!("fake")));
        refused(ask(test, Method::DELETE, &format!("/auth_configs/{implied}"), None).await, 400);
        let more = json!({"auth_config_id": implied, "user_id": "ann"});
        post(test, "/connected_accounts/link", more).await.expect(201);

        let stranger = test.key("stranger", Role::Owner, None).await;
        let theirs = ask_as(test, &stranger, Method::GET, "/connected_accounts", None).await.expect(200);
        assert_eq!(theirs["total_items"], 0);
        for (method, path) in [(Method::GET, ""), (Method::DELETE, ""), (Method::POST, "/revoke"), (Method::POST, "/refresh")] {
            refused(ask_as(test, &stranger, method, &format!("/connected_accounts/{bob}{path}"), None).await, 404);
        }
        let error = ask_as(test, &stranger, Method::POST, THING, Some(json!({"connected_account_id": bob, "arguments": {"owner": "o", "path": "p"}}))).await;
        assert_eq!(refused(error, 400)["code"], 1803);
    }
}
