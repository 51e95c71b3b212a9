//! The port to the API.

use std::fmt::Debug;
use std::pin::Pin;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::Value;

/// A request to the API.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    /// With its query.
    pub path: String,
    pub body: Option<Value>,
    /// The version that a change is meant for.
    pub if_match: Option<String>,
}

/// What the API answered.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub body: Bytes,
}

/// The API, as somebody who is signed in and a project.
pub trait Api: Debug + Send + Sync {
    fn send(&self, request: Request) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>>;
}
