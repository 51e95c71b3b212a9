//! Sockets: takes connections up to a number, for each address and in all, ends those that nobody uses, and makes room for a new one by
//! ending the one that has been of no use for the longest time. What a request is under way on is left alone.

mod activity;
mod io;
mod open;

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use ipnet::IpNet;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::io::{Answer, Monitored, Upload};
use self::open::{Admitted, Open};
use crate::{Peer, Service};

/// How long an idle connection has to say goodbye.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long to wait after the system had no file left for a connection, or another trouble of its own.
const PAUSE: Duration = Duration::from_millis(20);
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 5\r\nconnection: close\r\ncontent-length: 65\r\n\r\n\
    {\"detail\":\"The server has too many connections; try again soon.\"}";

/// How many connections there may be, and for how long one may be of no use.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// In all.
    pub total: usize,
    /// From one address; of IPv6, from one network of 64 bits.
    pub per_address: usize,
    /// Addresses that stand for many clients, which the number for one address does not hold for.
    pub proxies: Vec<IpNet>,
    /// How long the first request's head may take.
    pub header: Duration,
    /// How long there may be no request, or nothing may be taken of an answer.
    pub idle: Duration,
}

/// Serves until `stop` is ready, then until what is in flight has ended.
pub async fn listen(listener: TcpListener, service: Service, limits: ConnectionLimits, stop: impl Future<Output = ()>) {
    listen_with(listener, move |request| service.clone().answer(request), limits, stop).await;
}

/// The same with whatever answers.
async fn listen_with<F: Future<Output = Response> + Send + 'static>(
    listener: TcpListener,
    answer: impl Fn(Request) -> F + Clone + Send + Sync + 'static,
    limits: ConnectionLimits,
    stop: impl Future<Output = ()>,
) {
    let open = Arc::new(Open::new(limits));
    let (tasks, stopping) = (TaskTracker::new(), CancellationToken::new());
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // A client that is gone already says nothing of the next one; a process without a free file needs one.
                if error.kind() != std::io::ErrorKind::ConnectionAborted {
                    tracing::warn!(%error, "a connection could not be taken");
                    open.make_room();
                    sleep(PAUSE).await;
                }
                continue;
            }
        };
        match open.admit(peer.ip()) {
            Some(admitted) => {
                let (answer, stopping) = (answer.clone(), stopping.clone());
                tasks.spawn(serve(stream, Peer(peer.ip()), answer, admitted, stopping));
            }
            None => refuse(&stream),
        }
    }
    drop(listener);
    stopping.cancel();
    tasks.close();
    tasks.wait().await;
}

/// Says why, as far as the system takes it without waiting.
fn refuse(stream: &TcpStream) {
    let _ = stream.try_write(FULL);
}

async fn serve<F: Future<Output = Response> + Send + 'static>(
    stream: TcpStream,
    peer: Peer,
    answer: impl Fn(Request) -> F + Clone + Send + Sync + 'static,
    admitted: Admitted,
    stopping: CancellationToken,
) {
    let _ = stream.set_nodelay(true);
    let activity = admitted.activity();
    let answer_watched = {
        let activity = activity.clone();
        service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let under_way = activity.begin();
            let mut request = request.map(|body| Body::new(Upload::new(body, under_way.receiving())));
            request.extensions_mut().insert(peer);
            let answered = answer(request);
            async move { Ok::<_, Infallible>(answered.await.map(|body| Answer::new(body, under_way))) }
        })
    };
    let builder = Builder::new(TokioExecutor::new());
    let io = TokioIo::new(Monitored::new(stream, activity.clone()));
    let mut connection = pin!(builder.serve_connection(io, answer_watched));
    let limits = admitted.limits();
    let mut look_again = Instant::now() + limits.header;
    let mut is_stopping = false;
    loop {
        tokio::select! {
            _ = connection.as_mut() => return,
            () = activity.evicted() => return,
            () = stopping.cancelled(), if !is_stopping => {
                is_stopping = true;
                look_again = Instant::now() + FAREWELL;
                connection.as_mut().graceful_shutdown();
            }
            () = sleep_until(look_again) => match activity.look(limits, Instant::now()) {
                // Half a request would otherwise hold up the end.
                Some(_) if is_stopping && activity.is_idle() => return,
                Some(_) if is_stopping => look_again = Instant::now() + FAREWELL,
                Some(later) => look_again = later,
                // A goodbye would wait behind what is not taken.
                None if activity.is_blocked() => return,
                None => break,
            },
        }
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(FAREWELL, connection).await;
}

#[cfg(test)]
mod tests;
