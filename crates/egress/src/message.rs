//! What callers hand in and get back.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use url::Url;

use crate::{RateLimit, Redacted};

/// One call to make; fields left alone say: 30 seconds, no redirects, no retries, no rate limit.
#[derive(Clone)]
pub struct Request {
    pub method: Method,
    pub url: Url,
    /// Headers that belong to the connection, such as `Host` or `Content-Length`, are ignored.
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The time for everything: waiting for the rate limit, retries, redirects and reading the body.
    pub timeout: Duration,
    /// The most bytes of body to read, if not what the configuration says.
    pub max_response: Option<usize>,
    pub redirects: Redirects,
    pub retry: Retry,
    pub limit: Option<RateLimit>,
}

/// Whether redirects are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redirects {
    /// A redirect is handed back like any other answer.
    #[default]
    None,
    /// Up to this many redirects are followed; one more is an error.
    Follow(u8),
}

/// Whether a failed call is tried again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retry {
    #[default]
    Never,
    /// Up to two more tries where a repetition cannot do the work twice.
    Safe,
    /// The same, and the request carries a key by which its service knows a repetition, whatever the method.
    Keyed,
}

impl Request {
    /// A call without headers and body.
    pub fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            timeout: Duration::from_secs(30),
            max_response: None,
            redirects: Redirects::None,
            retry: Retry::Never,
            limit: None,
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets the time for the whole call.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the most bytes of body to read.
    #[must_use]
    pub fn max_response(mut self, bytes: usize) -> Self {
        self.max_response = Some(bytes);
        self
    }

    /// Says whether to follow redirects.
    #[must_use]
    pub fn redirects(mut self, redirects: Redirects) -> Self {
        self.redirects = redirects;
        self
    }

    /// Says whether to try again.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Sets the rate limit that this call counts against.
    #[must_use]
    pub fn limit(mut self, limit: RateLimit) -> Self {
        self.limit = Some(limit);
        self
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &Redacted(&self.url))
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// An answer, whatever its status.
#[derive(Clone)]
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Whether the body was longer than the cap and only its beginning is here.
    pub truncated: bool,
    /// Where the answer came from, after redirects.
    pub url: Url,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("url", &Redacted(&self.url))
            .field("bytes", &self.body.len())
            .field("truncated", &self.truncated)
            .finish_non_exhaustive()
    }
}
