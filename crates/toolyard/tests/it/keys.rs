//! `/keys`: a project makes and revokes its own keys, and nobody gives more than they have.

use grants::Surface;
use http::Method;
use kernel::{Permission, Role};
use serde_json::{Value, json};

use crate::oauth_server::granted;
use crate::people::{person, signed_in};
use crate::support::{Database, Test, on_both};

fn new(name: &str, rest: &Value) -> Value {
    let mut key = json!({"name": name});
    key.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    json!({"key": key})
}

async fn names(test: &Test) -> Vec<String> {
    let listed = test.get("/keys").await.expect(200);
    listed["keys"].as_array().unwrap().iter().map(|key| key["name"].as_str().unwrap().to_owned()).collect()
}

on_both! {
    async fn a_key_of_the_project_is_shown_once_and_revoked_for_good(test: &Test) {
        let made = test.post("/keys", new("ci", &json!({"permissions": ["view_tools", "edit_members"]}))).await.expect(200);
        let (key, secret) = (&made["key"], made["key"]["secret"].as_str().unwrap());
        assert_eq!((&made["count"], &key["permissions"]), (&json!(1), &json!(["view_tools", "edit_members"])));
        assert!(secret.starts_with(key["hint"].as_str().unwrap()) && key["agents"].is_null());
        let listed = test.get("/keys").await;
        assert!(!listed.text.contains(secret));
        let first = &listed.expect(200)["keys"][0];
        assert_eq!((&first["id"], &first["last_used_at"], &first["secret"]), (&key["id"], &Value::Null, &Value::Null));

        test.get_as(secret, "/tools/calls").await.expect(200);
        test.get_as(secret, "/agents").await.expect(403);
        let path = format!("/keys/{}", key["id"].as_str().unwrap());
        test.delete(&path).await.expect(204);
        test.get_as(secret, "/tools/calls").await.expect(401);
        let gone = test.get("/keys").await.expect(200)["keys"][0].take();
        assert!(gone["revoked_at"].is_string() && gone["last_used_at"].is_string(), "{gone}");
        test.clock.advance(std::time::Duration::from_mins(1));
        test.delete(&path).await.expect(204);
        assert_eq!(test.get("/keys").await.expect(200)["keys"][0]["revoked_at"], gone["revoked_at"], "it was revoked once");

        // Pages go from the newest to the first.
        for name in ["one", "two"] {
            test.post("/keys", new(name, &json!({}))).await.expect(200);
        }
        assert_eq!(names(test).await, ["two", "one", "ci", "first key"]);
        let page = test.get("/keys?limit=3").await.expect(200);
        let rest = test.get(&format!("/keys?cursor={}", page["cursor"].as_str().unwrap())).await.expect(200);
        assert_eq!((&page["count"], &rest["count"], &rest["keys"][0]["name"]), (&json!(3), &json!(1), &json!("first key")));
        assert!(rest["cursor"].is_null());
    }

    async fn nobody_gives_more_than_they_have(test: &Test) {
        let narrow = vec![Permission::ViewMembers, Permission::EditMembers, Permission::ViewTools];
        let maker = test.key("default", Role::Owner, Some(narrow)).await;
        for (rest, lacks) in [
            (json!({}), "`run_tools`"),
            (json!({"role": "viewer"}), "`view_triggers`"),
            (json!({"permissions": ["view_tools", "run_tools"]}), "you lack `run_tools`."),
            (json!({"permissions": ["read_secrets"], "role": "viewer"}), "you lack `read_secrets`."),
        ] {
            let refused = test.post_as(&maker, "/keys", new("more", &rest)).await.expect(403);
            assert_eq!(refused["code"], "role_too_high");
            assert!(refused["detail"].as_str().unwrap().contains(lacks), "{refused}");
        }
        // An owner lacks what no role has.
        let told = test.post("/keys", new("more", &json!({"permissions": ["read_secrets"]}))).await.detail(403);
        assert!(told.contains("`read_secrets`"), "{told}");
        let made = test.post_as(&maker, "/keys", new("same", &json!({"permissions": ["view_tools"]}))).await.expect(200);
        assert_eq!(made["key"]["permissions"], json!(["view_tools"]));
        // What the role does not have, the list does not add.
        let both = new("viewer", &json!({"role": "viewer", "permissions": ["view_tools", "edit_tools"]}));
        assert_eq!(test.post_as(&maker, "/keys", both).await.expect(200)["key"]["permissions"], json!(["view_tools"]));
        assert_eq!(names(test).await, ["viewer", "same", "test", "first key"], "what was refused made nothing");

        // Somebody who was made less gives less at once, and whoever only looks makes none.
        let editor = test.key("default", Role::Editor, None).await;
        test.get_as(&editor, "/keys").await.expect(200);
        assert!(test.post_as(&editor, "/keys", new("x", &json!({"role": "viewer"}))).await.detail(403).contains("`edit_members`"));
        person(test, "ada@example.com", Some(("default", Role::Owner))).await;
        let mut ada = signed_in(test, "ada@example.com").await;
        ada.api(Method::POST, "/keys", None, Some(new("hers", &json!({"role": "owner"})))).await.expect(200);
        let user = test.yard.accounts.user_by_email("ada@example.com").await.unwrap();
        person(test, "bob@example.com", Some(("default", Role::Owner))).await;
        let project = test.yard.accounts.find_project("default").await.unwrap().id;
        test.yard.accounts.set_member(project, user, Role::Editor, &accounts::Source::Invited).await.unwrap();
        ada.api(Method::POST, "/keys", None, Some(new("more", &json!({"role": "viewer"})))).await.expect(403);
        ada.api(Method::GET, "/keys", None, None).await.expect(200);
    }

    async fn a_client_makes_no_keys_that_would_outlive_it(test: &Test) {
        let (_, tokens) = granted(test, "default", &[Permission::ViewMembers, Permission::EditMembers], Surface::Api).await;
        let bearer = Some(format!("Bearer {}", tokens.access.expose()));
        test.request(Method::GET, "/keys", bearer.clone(), None).await.expect(200);
        let refused = test.request(Method::POST, "/keys", bearer, Some(new("mine", &json!({"permissions": ["view_members"]})))).await;
        assert!(refused.detail(403).starts_with("A client that somebody let in makes no keys"));
        assert_eq!(names(test).await, ["first key"]);
    }

    async fn a_key_for_agents_stays_with_them(test: &Test) {
        test.post("/agents", json!({"name": "support", "agent_type": "custom"})).await.expect(200);
        let made = test.post("/keys", new("bot", &json!({"role": "owner", "agents": ["support"]}))).await.expect(200);
        assert_eq!(made["key"]["agents"], json!(["support"]));
        let bound = made["key"]["secret"].as_str().unwrap();
        test.get_as(bound, "/agents/1").await.expect(200);
        let refused = test.post_as(bound, "/keys", new("free", &json!({"role": "viewer"}))).await.expect(403);
        assert_eq!(refused["code"], "key_for_agents_only");
        test.get_as(bound, "/keys").await.expect(403);
        for (agents, status) in [(json!(["nobody"]), 404), (json!([]), 422)] {
            test.post("/keys", new("none", &json!({"agents": agents}))).await.expect(status);
        }
        assert_eq!(test.get("/keys").await.expect(200)["keys"][0]["agents"], json!(["support"]));
        assert_eq!(names(test).await, ["bot", "first key"]);
    }

    async fn keys_of_other_projects_are_unknown(test: &Test) {
        let foreign = test.key("elsewhere", Role::Owner, None).await;
        let made = test.post("/keys", new("ours", &json!({"role": "viewer"}))).await.expect(200);
        let path = format!("/keys/{}", made["key"]["id"].as_str().unwrap());
        let delete = async |path: &str| test.request(Method::DELETE, path, Some(format!("ApiKey {foreign}")), None).await;
        assert_eq!(delete(&path).await.expect(404)["code"], "key_not_found");
        delete(&format!("/keys/{}", uuid::Uuid::now_v7())).await.expect(404);
        delete("/keys/none").await.expect(422);
        assert_eq!(test.get_as(&foreign, "/keys").await.expect(200)["count"], 1);
        test.get_as(made["key"]["secret"].as_str().unwrap(), "/tools/calls").await.expect(200);
    }

    async fn a_name_that_cannot_be_shown_is_refused(test: &Test) {
        for name in ["", "  ", "a\nb", "a\u{0}", &"x".repeat(256)] {
            let refused = test.post("/keys", new(name, &json!({"role": "viewer"}))).await;
            assert_eq!(refused.status, 422, "{name:?}: {}", refused.text);
        }
        test.post("/keys", json!({"key": {"role": "viewer"}})).await.expect(422);
        test.post("/keys", new("x", &json!({"role": "king"}))).await.expect(422);
        test.post("/keys", new("x", &json!({"permissions": ["view_tool"]}))).await.expect(422);
        test.post("/keys", new("x", &json!({"colour": "blue"}))).await.expect(422);
        assert_eq!(names(test).await, ["first key"]);
    }
}
