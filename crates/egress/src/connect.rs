//! How connections are made: to addresses that the guard lets through, over TLS with the system's authorities, within a time.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::Uri;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use rustls_platform_verifier::ConfigVerifierExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

use crate::Allow;
use crate::resolver::Resolver;

/// How long a connection that nobody uses is kept.
const IDLE: Duration = Duration::from_secs(90);
/// How often a quiet connection is asked whether it is there, and how many silences are one too many.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const SILENCES: u32 = 3;
/// How long what was sent may go without a word from the other side.
#[cfg(target_os = "linux")]
const UNHEARD: Duration = Duration::from_secs(30);

/// The connections to all hosts.
pub(crate) type Pool = Client<Connector, Full<Bytes>>;

/// A pool that connects within this time.
pub(crate) fn pool(allow: Arc<Allow>, limit: Duration) -> Result<Pool, rustls::Error> {
    let mut plain = HttpConnector::new_with_resolver(Resolver { allow });
    plain.enforce_http(false);
    plain.set_nodelay(true);
    // A share of it for each address, so that one that is silent leaves time for the next.
    plain.set_connect_timeout(Some(limit));
    plain.set_keepalive(Some(KEEP_ALIVE));
    plain.set_keepalive_interval(Some(KEEP_ALIVE));
    plain.set_keepalive_retries(Some(SILENCES));
    #[cfg(target_os = "linux")]
    plain.set_tcp_user_timeout(Some(UNHEARD));
    let tls = ClientConfig::with_platform_verifier()?;
    let inner = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_all_versions().wrap_connector(plain);
    let mut pool = Client::builder(TokioExecutor::new());
    pool.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
    Ok(pool.build(Connector { inner, limit }))
}

/// Looks a name up, connects and agrees on TLS.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    inner: HttpsConnector<HttpConnector<Resolver>>,
    limit: Duration,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connecting = timeout(self.limit, self.inner.call(to));
        Box::pin(async move { connecting.await.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into())) })
    }
}
