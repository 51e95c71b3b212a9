//! The client: one connection pool behind the guard.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http::header::{self, HeaderName, HeaderValue};
use http::{Method, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use jiff::Timestamp;
use kernel::Shared;
use rustls::crypto::{CryptoProvider, ring};
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;

use crate::connect::{Pool, pool};
use crate::error::is_refused;
use crate::limit::Limits;
use crate::retry::Outcome;
use crate::{Allow, EgressError, RateLimit, Redacted, Request, Response, Retry};
use crate::{guard, queued, redirect, retry};

const LONGEST_CALL: Duration = Duration::from_hours(1);

/// How often a request is sent once more that the other side says it did not look at.
const REFUSALS: usize = 2;

/// These describe the connection, which is ours; a caller who set them could confuse the framing of a shared one.
const OURS: [HeaderName; 9] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    HeaderName::from_static("keep-alive"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// How the client is set up.
#[derive(Clone, Debug)]
pub struct Config {
    pub allow: Allow,
    pub connect_timeout: Duration,
    pub user_agent: String,
    /// The most bytes of a body to read where the request does not say.
    pub max_response: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            allow: Allow::default(),
            connect_timeout: Duration::from_secs(10),
            user_agent: concat!("toolyard/", env!("CARGO_PKG_VERSION")).to_owned(),
            max_response: 8 * 1024 * 1024,
        }
    }
}

/// The way out: sends requests to public hosts and to those on the allow-list; clones share one pool.
#[derive(Clone, Debug)]
pub struct Egress {
    shared: Shared<Inner>,
}

#[derive(Debug)]
struct Inner {
    pool: Pool,
    user_agent: HeaderValue,
    allow: Arc<Allow>,
    limits: Limits,
    max_response: usize,
}

impl Egress {
    /// Builds the client, and installs ring as the process's TLS provider if there is none yet.
    pub fn new(config: Config) -> Result<Self, EgressError> {
        if CryptoProvider::get_default().is_none() {
            // An error here means that another thread was first, which is as good.
            let _ = ring::default_provider().install_default();
        }
        let allow = Arc::new(config.allow);
        let setup = |error: &dyn std::fmt::Display| EgressError::Setup { reason: error.to_string() };
        let user_agent = HeaderValue::from_str(&config.user_agent).map_err(|error| setup(&error))?;
        let pool = pool(allow.clone(), config.connect_timeout).map_err(|error| setup(&error))?;
        let inner = Inner { pool, user_agent, allow, limits: Limits::default(), max_response: config.max_response };
        Ok(Self { shared: Shared::new(inner) })
    }

    /// Whether a URL may be called, as far as can be told without looking up its name.
    pub fn check_url(&self, url: &Url) -> Result<(), EgressError> {
        guard::check(&self.shared.allow, url)
    }

    /// Sends a request and reads the answer; any status is an answer. It is boxed, so that whoever sends is compiled without the client's
    /// insides.
    pub fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, EgressError>> {
        Box::pin(async move {
            let after = request.timeout.min(LONGEST_CALL);
            let deadline = Instant::now() + after;
            let answer = timeout_at(deadline, self.run(request, deadline)).await;
            answer.unwrap_or(Err(EgressError::Timeout { after }))
        })
    }

    async fn run(&self, mut request: Request, deadline: Instant) -> Result<Response, EgressError> {
        self.check_url(&request.url)?;
        Self::leave_out_ours(&mut request);
        if let Some(limit) = &request.limit {
            self.wait_for_slot(limit, deadline).await?;
        }
        let (mut retries, mut hops) = (0, 0);
        loop {
            let answer = self.exchange(&request).await;
            if let Some(pause) = pause(&request, &answer, retries, deadline) {
                retries += 1;
                sleep(pause).await;
                continue;
            }
            let response = answer?;
            let Some(to) = redirect::target(&request, &response, hops)? else { return Ok(response) };
            self.check_url(&to)?;
            redirect::follow(&mut request, response.status, to);
            hops += 1;
        }
    }

    pub(crate) fn leave_out_ours(request: &mut Request) {
        for name in OURS {
            request.headers.remove(name);
        }
    }

    async fn wait_for_slot(&self, limit: &RateLimit, deadline: Instant) -> Result<(), EgressError> {
        let now = Instant::now();
        let wait = self.shared.limits.take(limit, now, deadline.saturating_duration_since(now));
        let wait = wait.map_err(|retry_after| EgressError::RateLimited { retry_after })?;
        if !wait.is_zero() {
            sleep(wait).await;
            queued::note(wait);
        }
        Ok(())
    }

    async fn exchange(&self, request: &Request) -> Result<Response, EgressError> {
        let started = Instant::now();
        let answer = self.fetch(request).await;
        let (method, url, elapsed) = (&request.method, Redacted(&request.url), started.elapsed());
        match &answer {
            Ok(response) => tracing::debug!(%method, %url, status = response.status.as_u16(), ?elapsed, "answered"),
            Err(error) => tracing::debug!(%method, %url, error = error.code(), ?elapsed, "failed"),
        }
        answer
    }

    async fn fetch(&self, request: &Request) -> Result<Response, EgressError> {
        let (head, body) = self.begin(request).await?.into_parts();
        let cap = request.max_response.unwrap_or(self.shared.max_response);
        let (body, truncated) = read(body, cap).await.map_err(|_| EgressError::broken(&request.url))?;
        Ok(Response { status: head.status, headers: head.headers, body, truncated, url: request.url.clone() })
    }

    /// Sends the request, and comes back when the answer begins.
    pub(crate) async fn begin(&self, request: &Request) -> Result<http::Response<Incoming>, EgressError> {
        // A connection is made where it is first used, and others use it later.
        work::go_back().await;
        let mut again = 0..REFUSALS;
        loop {
            match self.shared.pool.request(self.outgoing(request)?).await {
                Err(error) if is_refused(&error) && again.next().is_some() => {}
                answered => return answered.map_err(|error| EgressError::sending(&error, &request.url)),
            }
        }
    }

    /// The request with what every one says.
    fn outgoing(&self, request: &Request) -> Result<http::Request<Full<Bytes>>, EgressError> {
        let to: Uri = request.url.as_str().parse().map_err(|_| EgressError::BadUrl { reason: "the HTTP client does not accept it" })?;
        let mut outgoing = http::Request::new(Full::new(request.body.clone()));
        *outgoing.method_mut() = request.method.clone();
        *outgoing.uri_mut() = to;
        let headers = outgoing.headers_mut();
        *headers = request.headers.clone();
        headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        headers.entry(header::USER_AGENT).or_insert_with(|| self.shared.user_agent.clone());
        // An empty body still says its length where one is expected; some servers answer 411 otherwise.
        if request.body.is_empty() && matches!(request.method, Method::POST | Method::PUT | Method::PATCH) {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Ok(outgoing)
    }
}

fn pause(request: &Request, answer: &Result<Response, EgressError>, retries: u32, deadline: Instant) -> Option<Duration> {
    if request.retry == Retry::Never {
        return None;
    }
    let left = deadline.saturating_duration_since(Instant::now());
    let chance = || getrandom::u32().unwrap_or_default();
    let repeatable = request.retry == Retry::Keyed || retry::idempotent(&request.method);
    retry::pause(repeatable, Outcome::of(answer, Timestamp::now()), retries, left, chance)
}

/// Reads a body up to the cap and says whether there was more.
async fn read(mut incoming: Incoming, cap: usize) -> Result<(Bytes, bool), hyper::Error> {
    let expected = incoming.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    let mut body = BytesMut::with_capacity(expected.unwrap_or_default().min(cap));
    while let Some(chunk) = next_part(&mut incoming).await? {
        let room = cap - body.len();
        if chunk.len() > room {
            body.extend_from_slice(&chunk[..room]);
            return Ok((body.freeze(), true));
        }
        body.extend_from_slice(&chunk);
        if body.len() > work::SMALL {
            work::go_large().await;
        }
    }
    Ok((body.freeze(), false))
}

/// The next part of a body; nothing at its end. What some servers say behind a body is left out.
pub(crate) async fn next_part(body: &mut Incoming) -> Result<Option<Bytes>, hyper::Error> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_that_leads_inside_is_told_like_one_that_does_not_exist() {
        let egress = Egress::new(Config::default()).unwrap();
        let mut told = Vec::new();
        for host in ["localhost", "no-such-name.invalid"] {
            // `exchange` skips the check of the URL, as a public name with a private address would pass it.
            let request = Request::new(Method::GET, format!("https://{host}/secret").parse().unwrap());
            let asked = Instant::now();
            let error = egress.exchange(&request).await.unwrap_err();
            assert_eq!(error, EgressError::Dns { host: host.to_owned() });
            assert!(asked.elapsed() >= Duration::from_millis(500), "{host}: at the beat, not before");
            told.push(error.to_string().replace(host, "HOST"));
        }
        assert_eq!(told[0], told[1]);
    }
}
