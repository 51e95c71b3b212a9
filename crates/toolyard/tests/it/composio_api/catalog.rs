//! Toolkits and tools: slugs, pages, errors.

use http::{Method, Request};
use serde_json::json;

use super::{ask, ask_as, read, refused};
use crate::support::{Database, Test, on_both, with_body};

on_both! {
    async fn every_failure_is_in_the_envelope(test: &Test) {
        let slugs = read(test, "/tools/enum").await;
        assert!(slugs.as_array().unwrap().contains(&json!("FAKE_GET_A_THING")), "{slugs}");

        let unknown = refused(ask(test, Method::GET, "/nothing/here", None).await, 404);
        assert_eq!(unknown["slug"], "route_not_found");
        refused(ask(test, Method::DELETE, "/tools/enum", None).await, 405);
        refused(ask_as(test, "nonsense", Method::GET, "/tools/enum", None).await, 401);
        let request = Request::builder().uri("/api/v3/tools/enum").header("x-request-id", "req-1");
        let reply = test.send(with_body(request, None)).await;
        assert_eq!(reply.headers["x-request-id"], "req-1");
        assert_eq!(refused(reply, 401)["request_id"], "req-1");
        // Elsewhere errors are as they were.
        assert!(test.get("/nothing/here").await.expect(404)["detail"].is_string());
    }
}
