//! The contract of `Egress`, against servers on this machine.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{any, get};
use egress::{Config, Egress, EgressError, RateLimit, Redirects, Request, Response, Retry};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use url::Url;

fn egress(allow: &str) -> Egress {
    Egress::new(Config { allow: allow.parse().unwrap(), ..Config::default() }).unwrap()
}

async fn serve(router: Router) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(axum::serve(listener, router).into_future());
    url
}

async fn call(request: Request) -> Result<Response, EgressError> {
    egress("127.0.0.1").send(request).await
}

fn to(method: Method, base: &Url, path: &str) -> Request {
    Request::new(method, base.join(path).unwrap())
}

#[tokio::test]
async fn what_is_blocked_names_the_setting_that_opens_it() {
    for url in ["https://127.0.0.1/", "https://10.0.0.1/", "http://public.example/"] {
        let error = egress("").send(Request::new(Method::GET, url.parse().unwrap())).await.unwrap_err();
        assert!(error.to_string().contains("`egress_allow`"), "{error}");
    }
}

/// A router that gives the first answer to the first call and 200 to those after it, and counts them.
fn failing_once(status: StatusCode, headers: &'static [(&'static str, &'static str)]) -> (Router, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&calls);
    let answer = move || {
        let first = seen.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if !first {
                return StatusCode::OK.into_response();
            }
            let named = headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            (status, named.collect::<HeaderMap>()).into_response()
        }
    };
    (Router::new().route("/", any(answer)), calls)
}

async fn echo(method: Method, headers: HeaderMap, body: String) -> String {
    let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).filter(|name| *name != "host").collect();
    names.sort_unstable();
    format!("{method} {} {body}", names.join(","))
}

#[tokio::test]
async fn sends_and_reads() {
    let base = serve(Router::new().route("/", any(echo))).await;
    let request = to(Method::POST, &base, "/")
        .header(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"))
        .header(header::TRANSFER_ENCODING, HeaderValue::from_static("gzip"))
        .header(header::CONTENT_LENGTH, HeaderValue::from_static("1"))
        .body("hello");
    let response = call(request).await.unwrap();
    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(response.url, base);
    assert_eq!(response.body, "POST accept,content-length,content-type,user-agent hello");
    assert!(!response.truncated);
}

#[tokio::test]
async fn stops_reading_at_the_cap() {
    let base = serve(Router::new().route("/", get(|| async { "0123456789".repeat(100_000) }))).await;
    let capped = call(to(Method::GET, &base, "/").max_response(15)).await.unwrap();
    assert_eq!((&capped.body[..], capped.truncated), (&b"012345678901234"[..], true));
    let exact = call(to(Method::GET, &base, "/").max_response(1_000_000)).await.unwrap();
    assert_eq!((exact.body.len(), exact.truncated), (1_000_000, false));
}

#[tokio::test]
async fn gives_up_at_the_timeout_even_within_the_body() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base: Url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        // An answer before the request would be no answer.
        let _ = socket.read(&mut [0; 1024]).await.unwrap();
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await.unwrap();
        tokio::time::sleep(Duration::from_mins(1)).await;
    });
    let after = Duration::from_millis(200);
    let request = to(Method::GET, &base, "/?key=secret").timeout(after).retry(Retry::Safe);
    let error = call(request).await.unwrap_err();
    assert_eq!(error, EgressError::Timeout { after });
    assert!(!error.to_string().contains("secret"));
}

#[tokio::test]
async fn follows_redirects_and_drops_credentials_at_the_origin() {
    let elsewhere = serve(Router::new().route("/", any(echo))).await;
    let away = elsewhere.to_string();
    let router = Router::new()
        .route("/here", any(|| async { (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, "/echo")]) }))
        .route("/away", any(|| async { (StatusCode::SEE_OTHER, [(header::LOCATION, away)]) }))
        .route("/echo", any(echo));
    let base = serve(router).await;
    let request = |path| {
        to(Method::POST, &base, path)
            .header(header::AUTHORIZATION, HeaderValue::from_static("Bearer secret"))
            .header(header::COOKIE, HeaderValue::from_static("secret"))
            .header(HeaderName::from_static("x-api-key"), HeaderValue::from_static("secret"))
            .body("hello")
            .redirects(Redirects::Follow(3))
    };
    let here = call(request("/here")).await.unwrap();
    assert_eq!(here.body, "POST accept,authorization,content-length,cookie,user-agent,x-api-key hello");
    assert_eq!(here.url.path(), "/echo");
    let away = call(request("/away")).await.unwrap();
    assert_eq!(away.body, "GET accept,user-agent ");
    assert_eq!(away.url, elsewhere);
    let unfollowed = call(request("/here").redirects(Redirects::None)).await.unwrap();
    assert_eq!(unfollowed.status, StatusCode::TEMPORARY_REDIRECT);
}

#[tokio::test]
async fn a_redirect_is_checked_like_a_first_call() {
    async fn redirected(location: &'static str) -> &'static str {
        let redirect = move || async move { (StatusCode::FOUND, [(header::LOCATION, location)]) };
        let base = serve(Router::new().route("/", any(redirect))).await;
        call(to(Method::GET, &base, "/").redirects(Redirects::Follow(3))).await.unwrap_err().code()
    }
    assert_eq!(redirected("https://10.0.0.1/").await, "egress_blocked");
    assert_eq!(redirected("https://169.254.169.254/latest/meta-data").await, "egress_blocked");
    assert_eq!(redirected("http://127.0.0.2/").await, "egress_plain_http");
    assert_eq!(redirected("https://user:pw@example.com/").await, "egress_bad_url");
    assert_eq!(redirected("file:///etc/passwd").await, "egress_bad_url");
    assert_eq!(redirected("/").await, "egress_too_many_redirects");
}

#[tokio::test]
async fn waits_as_long_as_the_server_asks() {
    let (router, calls) = failing_once(StatusCode::SERVICE_UNAVAILABLE, &[("retry-after", "1")]);
    let base = serve(router).await;
    let started = Instant::now();
    let response = call(to(Method::POST, &base, "/").retry(Retry::Safe)).await.unwrap();
    assert_eq!((response.status, calls.load(Ordering::SeqCst)), (StatusCode::OK, 2));
    assert!(started.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn hands_back_an_answer_that_asks_for_too_long_a_wait() {
    let (router, calls) = failing_once(StatusCode::TOO_MANY_REQUESTS, &[("retry-after", "10")]);
    let base = serve(router).await;
    let request = to(Method::GET, &base, "/").retry(Retry::Safe).timeout(Duration::from_secs(5));
    let response = call(request).await.unwrap();
    assert_eq!((response.status, calls.load(Ordering::SeqCst)), (StatusCode::TOO_MANY_REQUESTS, 1));
}

#[tokio::test]
async fn repeats_only_what_is_safe_to_repeat() {
    for (method, retry, expected) in [
        (Method::GET, Retry::Safe, (StatusCode::OK, 2)),
        (Method::POST, Retry::Safe, (StatusCode::BAD_GATEWAY, 1)),
        (Method::POST, Retry::Keyed, (StatusCode::OK, 2)),
        (Method::GET, Retry::Never, (StatusCode::BAD_GATEWAY, 1)),
    ] {
        let (router, calls) = failing_once(StatusCode::BAD_GATEWAY, &[]);
        let base = serve(router).await;
        let response = call(to(method, &base, "/").retry(retry)).await.unwrap();
        assert_eq!((response.status, calls.load(Ordering::SeqCst)), expected);
    }
}

#[tokio::test]
async fn a_broken_connection_is_retried_for_idempotent_methods_only() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base: Url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&connections);
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            seen.fetch_add(1, Ordering::SeqCst);
            let mut request = [0; 1024];
            assert!(socket.read(&mut request).await.unwrap() > 0);
        }
    });
    for (method, expected) in [(Method::GET, 3), (Method::POST, 1)] {
        connections.store(0, Ordering::SeqCst);
        let error = call(to(method, &base, "/").retry(Retry::Safe)).await.unwrap_err();
        assert_eq!((error.code(), connections.load(Ordering::SeqCst)), ("egress_io", expected));
    }
}

#[tokio::test]
async fn private_hosts_need_the_allow_list() {
    let base = serve(Router::new().route("/", any(|| async { "hello" }))).await;
    let port = base.port().unwrap();
    let code = async |allow: &str, url: String| match egress(allow).send(Request::new(Method::GET, url.parse().unwrap())).await {
        Ok(response) => response.status.as_str().to_owned(),
        Err(error) => error.code().to_owned(),
    };
    assert_eq!(code("", format!("https://localhost:{port}/")).await, "egress_blocked");
    assert_eq!(code("", format!("https://127.0.0.1:{port}/")).await, "egress_blocked");
    assert_eq!(code("", format!("http://127.0.0.1:{port}/")).await, "egress_plain_http");
    assert_eq!(code("localhost", format!("http://localhost:{port}/")).await, "200");
    assert_eq!(code("127.0.0.0/8", format!("http://2130706433:{port}/")).await, "200");
    assert_eq!(code(&format!("127.0.0.1:{port}"), base.to_string()).await, "200");
}

#[tokio::test]
async fn failures_have_their_own_codes() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let plain = serve(Router::new()).await.port().unwrap();
    let error = async |url: String| egress("127.0.0.1,*.example").send(Request::new(Method::GET, url.parse().unwrap())).await.unwrap_err();
    let refused = error(format!("http://127.0.0.1:{closed}/path?key=secret")).await;
    assert_eq!(refused.to_string(), "`127.0.0.1` could not be reached (connection refused); nothing was sent, so try again later");
    assert_eq!(error(format!("https://127.0.0.1:{plain}/")).await.code(), "egress_tls");
    // A label of 64 letters is refused by the system's resolver itself, so the test needs no network.
    assert_eq!(error(format!("http://{}.example/", "a".repeat(64))).await.code(), "egress_dns");
    assert_eq!(error(format!("https://{}.example/", "a".repeat(64))).await.code(), "egress_bad_url");
}

#[tokio::test]
async fn a_rate_limit_delays_or_refuses() {
    let base = serve(Router::new().route("/", any(|| async {}))).await;
    let egress = egress("127.0.0.1");
    let limit = RateLimit { key: "a".to_owned(), requests: 1, per: Duration::from_millis(300) };
    let request = to(Method::GET, &base, "/").limit(limit);
    let started = Instant::now();
    egress.send(request.clone()).await.unwrap();
    egress.send(request.clone()).await.unwrap();
    assert!(started.elapsed() >= Duration::from_millis(300));
    let refused = egress.send(request.timeout(Duration::from_millis(50))).await.unwrap_err();
    assert_eq!(refused.code(), "egress_rate_limited");
}

#[test]
fn nothing_printed_holds_a_secret() {
    let request = Request::new(Method::POST, "https://a.example/secret?key=secret".parse().unwrap())
        .header(header::AUTHORIZATION, HeaderValue::from_static("secret"))
        .body("secret");
    assert!(!format!("{request:?}").contains("secret"));
}
