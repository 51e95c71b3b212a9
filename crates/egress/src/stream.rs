//! Answers that are read while they come, such as a stream of events.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use hyper::body::Incoming;
use tokio::time::timeout;
use url::Url;

use crate::client::next_part;
use crate::{Egress, EgressError, Request};

/// An answer whose body is still on its way. Dropping it ends the call.
#[derive(Debug)]
pub struct Opened {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
    url: Url,
}

impl Opened {
    /// The next part of the body; nothing at its end. A body may be as long as it likes, and take as long.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, EgressError> {
        next_part(&mut self.body).await.map_err(|_| EgressError::broken(&self.url))
    }
}

impl Egress {
    /// Sends a request and hands the answer back once it begins. The time limit is for the beginning; there are no redirects, retries or
    /// rate limits.
    pub async fn open(&self, mut request: Request) -> Result<Opened, EgressError> {
        self.check_url(&request.url)?;
        Self::leave_out_ours(&mut request);
        let begun = timeout(request.timeout, self.begin(&request)).await;
        let (head, body) = begun.map_err(|_| EgressError::Timeout { after: request.timeout })??.into_parts();
        Ok(Opened { status: head.status, headers: head.headers, body, url: request.url })
    }
}
