//! What outlives a request ends with the key that opened it.

use std::time::Duration;

use axum::body::Body;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::{Method, Request};
use kernel::{KeyId, Role};
use serde_json::json;

use crate::mcp::{newest, request};
use crate::support::{Database, Test, on_both};

/// A key of a project of its own, with its id.
async fn key(test: &Test, project: &str) -> (KeyId, String) {
    let key = test.key(project, Role::Editor, None).await;
    let scope = test.yard.accounts.authenticator().authenticate(&key).await.unwrap().unwrap();
    (scope.key, key)
}

async fn listen(test: &Test, key: &str) -> BoxStream<'static, String> {
    let (message, headers) = newest("subscriptions/listen", &json!({"notifications": {"toolsListChanged": true}}), &json!({}));
    let mut stream = test.open(request("/mcp", key, &headers, &message)).await;
    assert!(stream.next().await.unwrap().contains("acknowledged"));
    stream
}

/// Whether a stream ends within this long; what it says before does not count.
async fn ends(stream: BoxStream<'static, String>, limit: Duration) -> bool {
    tokio::time::timeout(limit, stream.count()).await.is_ok()
}

on_both! {
    async fn a_revoked_key_hears_no_more(test: &Test) {
        let (id, first) = key(test, "one").await;
        let (_, second) = key(test, "one").await;
        let (revoked, kept) = (listen(test, &first).await, listen(test, &second).await);
        test.admin(Method::POST, &format!("/admin/keys/{id}/revoke"), None).await.expect(200);
        assert!(ends(revoked, Duration::from_millis(800)).await, "at once on the node that revoked it");
        assert!(!ends(kept, Duration::from_millis(1500)).await, "another key of the project listens on");
    }

    async fn what_another_node_revoked_ends_within_moments(test: &Test) {
        let other = accounts::Accounts::new(test.yard.db.clone(), test.clock.clone());
        let (id, first) = key(test, "one").await;
        let stream = listen(test, &first).await;
        other.revoke_key(id).await.unwrap();
        assert!(ends(stream, Duration::from_secs(3)).await);
    }

    async fn a_deleted_projects_streams_end(test: &Test) {
        let (_, first) = key(test, "gone").await;
        let stream = listen(test, &first).await;
        let project = test.yard.accounts.find_project("gone").await.unwrap();
        test.admin(Method::DELETE, &format!("/admin/projects/{}", project.id), None).await.expect(204);
        assert!(ends(stream, Duration::from_millis(800)).await);
    }

    async fn a_test_of_a_trigger_ends_with_its_key(test: &Test) {
        let (id, first) = key(test, "one").await;
        test.post_as(&first, "/simple/workflows", json!({"workflow": {"slug": "w", "data": {"kind": "echo"}}})).await.expect(200);
        let body = json!({"subscription": {"data": {"event_key": "WEBHOOK_RECEIVED", "references": {"workflow": {"slug": "w"}}}}});
        let waiting = Request::post("/triggers/subscriptions/test")
            .header("authorization", format!("ApiKey {first}"))
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()))
            .unwrap();
        let revoked = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            test.yard.accounts.revoke_key(id).await.unwrap();
        };
        let waited = tokio::time::timeout(Duration::from_secs(5), async { tokio::join!(test.send(waiting), revoked).0 }).await;
        assert_eq!(waited.expect("it does not wait for an event any more").expect(401)["detail"]["reason"], "invalid_key");
    }
}
