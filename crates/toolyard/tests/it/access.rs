//! `GET /access/permissions/check`: what a service asks about the key that its caller sent.

use kernel::{Permission, Role};
use serde_json::json;

use crate::support::{Database, Test, on_both};

const PATH: &str = "/api/access/permissions/check";

on_both! {
    async fn a_service_learns_what_its_caller_may(test: &Test) {
        let runs = test.key("default", Role::Annotator, None).await;
        let views = test.key("default", Role::Viewer, None).await;
        let reads = test.key("default", Role::Viewer, Some(vec![Permission::ViewSecrets, Permission::ReadSecrets])).await;
        for (key, query, status) in [
            (&runs, "?action=run_service&resource_type=service", 200),
            (&views, "?action=run_service&resource_type=service", 403),
            (&runs, "?action=view_secret&resource_type=local_secrets", 200),
            (&runs, "?action=view_secret", 403),
            (&reads, "?action=view_secret", 200),
            (&runs, "?action=edit_tools", 403),
            (&views, "?action=view_tools&resource_id=x", 200),
            (&views, "", 200),
            (&runs, "?action=run_servise", 422),
            (&runs, "?acton=run_service", 422),
            (&runs, "?project_id=00000000-0000-0000-0000-000000000000", 403),
            (&runs, "?scope_type=project&scope_id=00000000-0000-0000-0000-000000000000", 403),
        ] {
            let reply = test.get_as(key, &format!("{PATH}{query}")).await;
            assert_eq!(reply.status.as_u16(), status, "{query}: {}", reply.text);
            if status == 200 {
                assert_eq!(reply.headers["cache-control"], "no-store");
                assert_eq!(reply.json(), json!({"effect": "allow", "credentials": format!("ApiKey {key}")}));
            } else {
                assert!(!reply.json()["detail"].is_null(), "{}", reply.text);
            }
        }
        let project = test.yard.accounts.find_project("default").await.unwrap().id;
        test.get(&format!("{PATH}?action=run_service&project_id={project}")).await.expect(200);
        test.get_as("wrong", PATH).await.expect(401);
    }
}
