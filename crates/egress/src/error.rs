//! Why a call did not get an answer, in words that are safe to show.

use std::error::Error;
use std::io;
use std::time::Duration;

use rustls::CertificateError;
use rustls::pki_types::InvalidDnsNameError;
use url::Url;

use crate::resolver::Unresolved;

/// A call that got no answer; no variant holds more of the URL than its host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    #[error("`{host}` is blocked: {reason}; use a public host, or ask the operator to add it to the setting `egress_allow`")]
    Blocked { host: String, reason: &'static str },
    #[error("`{host}` must be called with `https`; plain `http` is only for hosts in the operator's setting `egress_allow`")]
    PlainHttp { host: String },
    #[error("the URL cannot be called: {reason}; correct it and try again")]
    BadUrl { reason: &'static str },
    #[error("`{entry}` is not an allow-list entry; write a host, `host:port`, `*.suffix`, an address or a CIDR range")]
    BadAllow { entry: String },
    /// One text for a name that does not exist and one that leads to a private address, so that nobody learns which names there are inside.
    #[error(
        "`{host}` was not found, or has no public address; check the name, or ask the operator to add a private host to the setting `egress_allow`"
    )]
    Dns { host: String },
    #[error("`{host}` could not be reached ({kind}); nothing was sent, so try again later")]
    Connect { host: String, kind: io::ErrorKind },
    #[error("no secure connection to `{host}`: {reason}; check its certificate and the URL")]
    Tls { host: String, reason: &'static str },
    #[error("the connection to `{host}` broke before the whole answer arrived; check whether the call took effect before repeating it")]
    Io { host: String },
    #[error("no whole answer within {after:?}; allow more time, or check whether the call took effect and repeat it")]
    Timeout { after: Duration },
    #[error("more than {limit} redirects, the last to `{host}`; call the final URL directly")]
    TooManyRedirects { host: String, limit: u8 },
    #[error("`{from}` redirects from `https` to plain `http`; call an `https` URL that does not")]
    Downgrade { from: String },
    #[error("too many calls at once; nothing was sent, try again in {} s", retry_after.as_secs() + 1)]
    RateLimited { retry_after: Duration },
    #[error("the HTTP client did not start ({reason}); install the system's CA certificates and check the user agent")]
    Setup { reason: String },
}

impl EgressError {
    /// The stable name of this kind of failure.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Blocked { .. } => "egress_blocked",
            Self::PlainHttp { .. } => "egress_plain_http",
            Self::BadUrl { .. } => "egress_bad_url",
            Self::BadAllow { .. } => "egress_bad_allow",
            Self::Dns { .. } => "egress_dns",
            Self::Connect { .. } => "egress_connect",
            Self::Tls { .. } => "egress_tls",
            Self::Io { .. } => "egress_io",
            Self::Timeout { .. } => "egress_timeout",
            Self::TooManyRedirects { .. } => "egress_too_many_redirects",
            Self::Downgrade { .. } => "egress_downgrade",
            Self::RateLimited { .. } => "egress_rate_limited",
            Self::Setup { .. } => "egress_setup",
        }
    }

    /// The connection broke while something was on its way.
    pub(crate) fn broken(url: &Url) -> Self {
        Self::Io { host: url.host_str().unwrap_or_default().to_owned() }
    }

    /// Sorts a failure of the HTTP client; its own text is dropped because it may quote the URL or the peer.
    pub(crate) fn sending(error: &hyper_util::client::legacy::Error, url: &Url) -> Self {
        if !error.is_connect() {
            return Self::broken(url);
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        if let Some(reason) = cause::<Unresolved>(error) {
            tracing::debug!(host, %reason, "a name leads nowhere that may be reached");
            return Self::Dns { host };
        }
        if cause::<InvalidDnsNameError>(error).is_some() {
            return Self::BadUrl { reason: "its host is not a DNS name" };
        }
        if let Some(error) = cause(error) {
            return Self::Tls { host, reason: tls_reason(error) };
        }
        let kind = cause::<io::Error>(error).map_or(io::ErrorKind::Other, io::Error::kind);
        Self::Connect { host, kind }
    }
}

/// Whether the other side says that it did nothing with a request: it was about to close an HTTP/2 connection, or refused the stream.
pub(crate) fn is_refused(error: &hyper_util::client::legacy::Error) -> bool {
    let is_refused = |error: &h2::Error| match error.reason() {
        Some(h2::Reason::NO_ERROR) => error.is_go_away(),
        Some(h2::Reason::REFUSED_STREAM) => error.is_reset(),
        _ => false,
    };
    cause::<h2::Error>(error).is_some_and(|error| error.is_remote() && is_refused(error))
}

fn tls_reason(error: &rustls::Error) -> &'static str {
    use CertificateError as Certificate;
    match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            Certificate::Expired | Certificate::ExpiredContext { .. } => "its certificate has expired",
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => "its certificate is not valid yet",
            Certificate::UnknownIssuer => "its certificate is from an unknown authority",
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => "its certificate is for another name",
            Certificate::Revoked => "its certificate was revoked",
            _ => "its certificate is not valid",
        },
        rustls::Error::InvalidMessage(_) => "it does not speak TLS on this port",
        _ => "the TLS handshake failed",
    }
}

fn cause<E: Error + 'static>(error: &hyper_util::client::legacy::Error) -> Option<&E> {
    let mut chain = std::iter::successors(error.source(), |&error| {
        // `io::Error::source` skips the error it wraps, and TLS errors travel wrapped.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        wrapped.map(|error| error as &(dyn Error + 'static)).or_else(|| error.source())
    });
    chain.find_map(|error| error.downcast_ref())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::Full;
    use hyper_util::client::legacy::Client;
    use hyper_util::rt::TokioExecutor;
    use tokio::net::TcpListener;

    use super::*;

    /// What a client says of a request whose stream a server ends with this.
    async fn reset_with(reason: h2::Reason) -> hyper_util::client::legacy::Error {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((_, mut answer))) = connection.accept().await {
                answer.send_reset(reason);
            }
        });
        let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http::<Full<Bytes>>();
        client.get(format!("http://{address}/").parse().unwrap()).await.unwrap_err()
    }

    #[tokio::test]
    async fn what_a_server_refused_is_told_from_what_it_broke_off() {
        assert!(is_refused(&reset_with(h2::Reason::REFUSED_STREAM).await));
        for reason in [h2::Reason::INTERNAL_ERROR, h2::Reason::CANCEL] {
            assert!(!is_refused(&reset_with(reason).await), "{reason}");
        }
    }
}
