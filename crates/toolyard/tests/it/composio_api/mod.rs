//! Composio's API, as its SDKs ask for it: `ask` sends the key as they do, `refused` reads an error as they do.

mod accounts;
mod catalog;
mod sessions;
mod triggers;

use http::{Method, Request};
use serde_json::Value;

use crate::support::{Reply, Test, with_body};

/// A request of the owner of the default project.
pub async fn ask(test: &Test, method: Method, path: &str, body: Option<Value>) -> Reply {
    ask_as(test, &test.owner, method, path, body).await
}

/// A request with another key. Paths begin after `/api/v3.1`.
pub async fn ask_as(test: &Test, key: &str, method: Method, path: &str, body: Option<Value>) -> Reply {
    let request = Request::builder().method(method).uri(format!("/api/v3.1{path}")).header("x-api-key", key);
    test.send(with_body(request, body)).await
}

pub async fn read(test: &Test, path: &str) -> Value {
    ask(test, Method::GET, path, None).await.expect(200)
}

/// The `error` of an answer, which has all that the SDKs need to read it and nothing that is null.
#[track_caller]
pub fn refused(reply: Reply, status: u16) -> Value {
    let error = reply.expect(status)["error"].take();
    assert!(error["message"].is_string() && error["slug"].is_string() && error["code"].is_u64(), "{error}");
    assert_eq!(error["status"], status, "{error}");
    assert!(error.as_object().unwrap().values().all(|value| !value.is_null()), "{error}");
    error
}
