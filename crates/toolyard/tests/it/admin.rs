//! `/admin`: accounts, projects, keys.

use std::time::Duration;

use http::Method;
use kernel::{Permission, Role};
use serde_json::{Value, json};
use store::args;

use crate::approvals::ask_before;
use crate::support::{Database, Fake, Test, on_both};

on_both! {
    async fn an_account_is_a_user_with_a_project_and_a_key(test: &Test) {
        let body = json!({
            "accounts": {
                "ann": {"user": {"email": " Ann@Example.com "}, "options": {"create_api_keys": true, "return_api_keys": true, "seed_defaults": false}, "organization": {"name": "x"}},
                "bob": {"user": {"email": "bob@example.com"}, "options": {"return_api_keys": false}},
                "eve": {"user": {"email": "eve@example.com"}, "project": {"name": "Eve's"}, "options": {"create_api_keys": false}},
            },
            "options": {"return_api_keys": true}, "something": "else"
        });
        let made = test.admin(Method::POST, "/api/admin/simple/accounts/", Some(body.clone())).await.expect(200);
        let ann = &made["accounts"]["ann"];
        assert_eq!(ann["user"]["email"], "ann@example.com");
        assert!(ann["projects"]["prj"]["id"].is_string());
        let key = ann["api_keys"]["key"].as_str().unwrap();
        test.post_as(key, "/tools/connections/query", json!({})).await.expect(200);
        assert_eq!(made["accounts"]["bob"]["api_keys"], json!({}));
        assert_eq!(made["accounts"]["eve"]["projects"]["prj"]["name"], "Eve's");

        let again = json!({"accounts": {"new": {"user": {"email": "new@example.com"}}, "ann": {"user": {"email": "ANN@example.com"}}}});
        let conflict = test.admin(Method::POST, "/admin/simple/accounts", Some(again)).await.expect(409);
        assert_eq!(conflict["detail"]["conflict"]["email"], "ann@example.com");
        let retry = json!({"accounts": {"new": {"user": {"email": "new@example.com"}}}});
        test.admin(Method::POST, "/admin/simple/accounts", Some(retry)).await.expect(200);

        let id = ann["user"]["id"].clone();
        let delete = |confirm: &str| json!({"accounts": {"ann": {"user": {"id": id}}}, "confirm": confirm});
        test.admin(Method::DELETE, "/admin/simple/accounts/", Some(delete("yes"))).await.expect(422);
        test.admin(Method::DELETE, "/admin/simple/accounts/", Some(delete("delete"))).await.expect(204);
        test.post_as(key, "/tools/connections/query", json!({})).await.expect(401);
        test.admin(Method::DELETE, "/admin/simple/accounts/", Some(delete("delete"))).await.expect(404);
        let by = |user: Value| Some(json!({"accounts": {"bob": {"user": user}}, "confirm": "delete"}));
        for (user, status) in [
            (json!({}), 422),
            (json!({"id": id, "email": "bob@example.com"}), 422),
            (json!({"email": "nobody@example.com"}), 404),
            (json!({"email": " BOB@example.com"}), 204),
            (json!({"email": "bob@example.com"}), 404),
        ] {
            test.admin(Method::DELETE, "/admin/simple/accounts/", by(user)).await.expect(status);
        }
    }

    async fn a_key_says_when_it_was_last_used(test: &Test) {
        let key = test.key("default", Role::Viewer, None).await;
        let last = async || {
            let keys = test.admin(Method::GET, "/admin/keys", None).await.expect(200);
            let found = keys["keys"].as_array().unwrap().iter().find(|found| key.starts_with(found["hint"].as_str().unwrap())).unwrap();
            found["last_used_at"].as_str().map(str::to_owned)
        };
        test.key("default", Role::Editor, None).await;
        let other = test.yard.accounts.list_keys(None).await.unwrap().into_iter().find(|key| key.role == Role::Editor).unwrap().id;
        let used = async || {
            // Revoking any key makes the server forget those that it remembers for a second.
            test.yard.accounts.revoke_key(other).await.unwrap();
            test.get_as(&key, "/tools/permissions").await.expect(200);
        };
        assert_eq!(last().await, None);
        used().await;
        let first = last().await.unwrap();
        test.clock.advance(Duration::from_secs(59));
        used().await;
        assert_eq!(last().await, Some(first.clone()), "noted once a minute at most");
        test.clock.advance(Duration::from_secs(1));
        used().await;
        assert!(last().await.unwrap() > first);
    }

    async fn bad_accounts_make_nothing(test: &Test) {
        for email in ["", "no-at", "@x", "x@", "a b@example.com", "a\u{0}@example.com"] {
            let body = json!({"accounts": {"fine": {"user": {"email": "fine@example.com"}}, "x": {"user": {"email": email}}}});
            test.admin(Method::POST, "/admin/simple/accounts", Some(body)).await.expect(422);
        }
        let body = json!({"accounts": {"fine": {"user": {"email": "fine@example.com"}}}});
        test.admin(Method::POST, "/admin/simple/accounts", Some(body)).await.expect(200);
    }

    async fn the_operator_key_opens_admin_and_nothing_else(test: &Test) {
        test.request(Method::GET, "/admin/projects", Some("Access wrong".to_owned()), None).await.expect(401);
        test.request(Method::GET, "/admin/projects", Some(format!("ApiKey {}", test.owner)), None).await.expect(401);
        let operator = test.yard.operator_key.expose();
        test.request(Method::POST, "/tools/connections/query", Some(format!("Access {operator}")), None).await.expect(401);
        test.request(Method::POST, "/tools/connections/query", Some(format!("ApiKey {operator}")), None).await.expect(401);
    }

    async fn the_operator_sees_how_the_deployment_stands(test: &Test) {
        ask_before(test, "tools.native.fake.MAKE_*", "ask").await;
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        test.call("tools.native.fake.MAKE_A_THING.main", json!({"title": "x"})).await.expect(202);
        let status = test.admin(Method::GET, "/admin/status", None).await.expect(200);
        assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(status["started_at"], test.yard.started_at.to_string());
        assert_eq!(status["database"], test.yard.db.kind());
        assert_eq!(status["nodes"].as_array().unwrap().len(), 1, "{status}");
        let queues = json!({"deliveries_ready": 0, "deliveries_running": 0, "deliveries_dead": 0, "runs_running": 0, "approvals_pending": 1});
        assert_eq!(status["queues"], queues);
        let settings = status["settings"].as_array().unwrap();
        let of = |name: &str| settings.iter().find(|setting| setting["name"] == name).unwrap().clone();
        assert_eq!(of("body_limit"), json!({"name": "body_limit", "value": "1048576", "source": "default"}));
        assert_eq!(of("sealing_key"), json!({"name": "sealing_key", "value": "not set", "source": "default"}));
        assert!(settings.iter().all(|setting| !setting["value"].as_str().unwrap().contains(test.yard.operator_key.expose())));

        // Another node that said that it is there, and one that has not for long.
        let (here, gone) = (uuid::Uuid::now_v7(), uuid::Uuid::now_v7());
        let sql = "insert into nodes (id, alive_until, seen_at) values ($1, 0, $2)";
        let now = test.clock.now();
        for (id, seen) in [(here, now.minus(Duration::from_mins(1))), (gone, now.minus(Duration::from_mins(5)))] {
            test.yard.db.execute(sql, args![id, seen]).await.unwrap();
        }
        test.yard.calls.mark_lost().await.unwrap();
        let nodes = test.admin(Method::GET, "/admin/status", None).await.expect(200)["nodes"].take();
        assert_eq!((nodes.as_array().unwrap().len(), &nodes[1]["id"]), (2, &json!(here)));
        let rows = test.yard.db.all("select id from nodes", args![]).await.unwrap();
        assert_eq!(rows.iter().filter(|row| row.get::<uuid::Uuid>("id").unwrap() == gone).count(), 0);
    }

    async fn projects_come_and_go(test: &Test) {
        let made = test.admin(Method::POST, "/admin/projects", Some(json!({"project": {"slug": "blue", "name": "Blue"}}))).await.expect(200);
        let id = made["project"]["id"].as_str().unwrap().to_owned();
        test.admin(Method::POST, "/admin/projects", Some(json!({"project": {"slug": "blue"}}))).await.expect(409);
        test.admin(Method::POST, "/admin/projects", Some(json!({"project": {"slug": "a.b"}}))).await.expect(422);
        let listed = test.admin(Method::GET, "/admin/projects", None).await.expect(200);
        assert_eq!(listed["count"], 2);
        let key = test.key("blue", Role::Owner, None).await;
        test.get_as(&key, "/tools/calls").await.expect(200);
        test.admin(Method::DELETE, &format!("/admin/projects/{id}"), None).await.expect(204);
        test.get_as(&key, "/tools/calls").await.expect(401);
        test.admin(Method::DELETE, &format!("/admin/projects/{id}"), None).await.expect(404);
    }

    async fn a_key_is_shown_once_and_revoked_for_good(test: &Test) {
        let project = test.yard.accounts.find_project("default").await.unwrap().id;
        let new = json!({"key": {"project_id": project, "name": "ci", "role": "annotator"}});
        let made = test.admin(Method::POST, "/admin/keys", Some(new)).await.expect(200);
        let secret = made["secret"].as_str().unwrap().to_owned();
        let id = made["key"]["id"].as_str().unwrap().to_owned();
        let listed = test.admin(Method::GET, &format!("/admin/keys?project_id={project}"), None).await;
        assert!(!listed.text.contains(&secret));
        test.get_as(&secret, "/tools/calls").await.expect(200);
        let revoked = test.admin(Method::POST, &format!("/admin/keys/{id}/revoke"), None).await.expect(200);
        let again = test.admin(Method::POST, &format!("/admin/keys/{id}/revoke"), None).await.expect(200);
        assert_eq!(revoked["key"]["revoked_at"], again["key"]["revoked_at"]);
        test.get_as(&secret, "/tools/calls").await.expect(401);
        let unknown = uuid::Uuid::now_v7();
        test.admin(Method::POST, &format!("/admin/keys/{unknown}/revoke"), None).await.expect(404);
        let nowhere = json!({"key": {"project_id": unknown}});
        test.admin(Method::POST, "/admin/keys", Some(nowhere)).await.expect(404);
        test.admin(Method::POST, "/admin/keys", Some(json!({"key": {"project_id": project, "role": "king"}}))).await.expect(422);
    }

    async fn a_key_can_be_narrowed(test: &Test) {
        let key = test.key("default", Role::Owner, Some(vec![Permission::RunTools])).await;
        test.get_as(&key, "/tools/calls").await.expect(403);
        let reply = test.call_as(&key, "tools.native.fake.X.none", json!({})).await;
        assert_eq!(reply.detail(404), "Connection not found: native/fake/none");
        // What the role does not have, the list does not add.
        let key = test.key("default", Role::Viewer, Some(vec![Permission::EditTools, Permission::ViewTools])).await;
        test.get_as(&key, "/tools/calls").await.expect(200);
        test.post_as(&key, "/tools/connections", json!({})).await.expect(403);
    }
}
