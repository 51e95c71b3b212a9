use axum::Router;
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::StreamExt;
use http::{Request, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tower::ServiceExt;

use super::*;

const SHORT: Duration = Duration::from_millis(150);
const LONG: Duration = Duration::from_mins(1);
const ASK: &[u8] = b"GET /health HTTP/1.1\r\nhost: yard\r\n\r\n";

fn limits() -> ConnectionLimits {
    ConnectionLimits { total: 100, per_address: 100, proxies: Vec::new(), header: LONG, idle: LONG }
}

/// A server with a quick route, one that never answers, one that streams for ever, one that reads a body, and one with a long answer.
async fn start(limits: ConnectionLimits) -> (std::net::SocketAddr, oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
    let ticks = || {
        let ticks = futures_util::stream::unfold((), |()| async {
            sleep(Duration::from_millis(20)).await;
            Some((Ok::<_, Infallible>(Bytes::from_static(b"tick\n")), ()))
        });
        Body::from_stream(ticks)
    };
    let router = Router::new()
        .route("/health", get(async || "well"))
        .route("/slow", get(async || sleep(SHORT * 8).await))
        .route("/never", get(std::future::pending::<()>))
        .route("/stream", get(async move || ticks()))
        .route("/long", get(async || vec![b'x'; 64 << 20]))
        .route("/upload", post(async |body: Bytes| body.len().to_string()));
    let answer = move |request| {
        let router = router.clone();
        async move { router.oneshot(request).await.unwrap() }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let served = tokio::spawn(listen_with(listener, answer, limits, async move {
        // Whoever does not stop it wants it to go on.
        if stopped.await.is_err() {
            std::future::pending::<()>().await;
        }
    }));
    (address, stop, served)
}

async fn connect(address: std::net::SocketAddr, send: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(send).await.unwrap();
    stream
}

/// Everything until the server ends the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let _ = timeout(Duration::from_secs(20), stream.read_to_end(&mut text)).await.expect("the server ends it");
    String::from_utf8_lossy(&text).into_owned()
}

async fn answer(stream: &mut TcpStream) -> String {
    let mut text = vec![0; 4096];
    let length = timeout(Duration::from_secs(20), stream.read(&mut text)).await.expect("an answer").unwrap();
    String::from_utf8_lossy(&text[..length]).into_owned()
}

#[tokio::test]
async fn what_never_asks_is_ended_and_what_works_lives_on() {
    let (address, ..) = start(ConnectionLimits { header: SHORT, idle: SHORT, ..limits() }).await;
    let preface: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let slow = tokio::spawn(async move {
        let mut slow = connect(address, b"GET /slow HTTP/1.1\r\nhost: yard\r\n\r\n").await;
        answer(&mut slow).await
    });
    let mut stream = connect(address, b"GET /stream HTTP/1.1\r\nhost: yard\r\n\r\n").await;
    for half in [&b""[..], b"G", b"GET /health HTTP/1.1\r\nhost:", b"PRI * HTTP/2.0\r\n", preface] {
        let mut half_open = connect(address, half).await;
        let said = rest(&mut half_open).await;
        assert!(!said.contains("200"), "{said}");
    }
    let mut quiet = connect(address, ASK).await;
    assert!(rest(&mut quiet).await.ends_with("well"), "one that asks nothing more is ended");
    let mut deaf = connect(address, b"GET /long HTTP/1.1\r\nhost: yard\r\n\r\n").await;
    sleep(SHORT * 3).await;
    assert!(rest(&mut deaf).await.len() < 64 << 20, "one that takes nothing of its answer is ended");
    assert!(slow.await.unwrap().starts_with("HTTP/1.1 200"));
    assert!(answer(&mut stream).await.contains("tick"));
}

#[tokio::test]
async fn a_new_connection_takes_the_place_of_the_one_that_is_of_no_use() {
    let (address, ..) = start(ConnectionLimits { per_address: 4, ..limits() }).await;
    let mut used = connect(address, ASK).await;
    assert!(answer(&mut used).await.ends_with("well"));
    let mut first = connect(address, b"").await;
    let upload = b"POST /upload HTTP/1.1\r\nhost: yard\r\ncontent-length: 9\r\n\r\n123";
    let mut sending = connect(address, upload).await;
    let mut busy = connect(address, b"GET /stream HTTP/1.1\r\nhost: yard\r\n\r\n").await;
    assert!(answer(&mut busy).await.starts_with("HTTP/1.1 200"));
    let _second = connect(address, b"").await;
    assert_eq!(rest(&mut first).await, "", "the oldest that never asked goes");
    let mut third = connect(address, ASK).await;
    assert!(answer(&mut third).await.ends_with("well"));
    used.write_all(ASK).await.unwrap();
    assert!(answer(&mut used).await.ends_with("well"), "one that asked before stays longer");
    let mut more = Vec::new();
    for _ in 0..3 {
        let mut one = connect(address, b"GET /stream HTTP/1.1\r\nhost: yard\r\n\r\n").await;
        assert!(answer(&mut one).await.starts_with("HTTP/1.1 200"));
        more.push(one);
    }
    assert_eq!(rest(&mut sending).await, "", "one that still sends goes last");
    let mut refused = connect(address, b"").await;
    let said = rest(&mut refused).await;
    let (head, body) = said.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 503") && head.contains(&format!("content-length: {}", body.len())), "{said}");
    assert!(answer(&mut busy).await.contains("tick"), "what works is never ended");
}

#[tokio::test]
async fn a_proxy_may_have_as_many_as_there_are() {
    let proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let (address, ..) = start(ConnectionLimits { per_address: 1, total: 3, proxies, ..limits() }).await;
    let mut streams = Vec::new();
    for expected in ["200", "200", "200", "503"] {
        let mut stream = connect(address, b"GET /stream HTTP/1.1\r\nhost: yard\r\n\r\n").await;
        assert!(answer(&mut stream).await.starts_with(&format!("HTTP/1.1 {expected}")));
        streams.push(stream);
    }
}

#[tokio::test]
async fn http_2_is_served_and_ends_when_it_is_idle() {
    let (address, ..) = start(ConnectionLimits { header: SHORT, idle: SHORT, ..limits() }).await;
    let io = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut send, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    let connection = tokio::spawn(connection);
    let ask = |path: &str| Request::get(format!("http://yard{path}")).body(Body::empty()).unwrap();
    let stream = send.send_request(ask("/stream")).await.unwrap();
    let slow = send.send_request(ask("/slow")).await.unwrap();
    assert_eq!(slow.status(), StatusCode::OK);
    let mut ticks = Body::new(stream.into_body()).into_data_stream();
    assert!(ticks.next().await.unwrap().is_ok());
    drop(ticks);
    let ended = timeout(Duration::from_secs(20), connection).await.expect("an idle one is ended").unwrap();
    assert!(ended.is_ok(), "politely: {ended:?}");
}

#[tokio::test]
async fn a_stop_waits_for_what_is_under_way() {
    let (address, stop, served) = start(limits()).await;
    let mut idle = connect(address, ASK).await;
    assert!(answer(&mut idle).await.ends_with("well"));
    let mut half_open = connect(address, b"GET /hea").await;
    let mut slow = connect(address, b"GET /slow HTTP/1.1\r\nhost: yard\r\n\r\n").await;
    sleep(SHORT).await;
    stop.send(()).unwrap();
    assert_eq!(rest(&mut idle).await, "");
    assert!(rest(&mut slow).await.starts_with("HTTP/1.1 200"));
    rest(&mut half_open).await;
    timeout(Duration::from_secs(20), served).await.expect("it ends").unwrap();
}
