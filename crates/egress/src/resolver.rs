//! Name lookup that hands on only addresses which may be reached, so that what was checked is what is connected to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;
use tokio::net::lookup_host;
use tokio::time::{Instant, sleep_until};
use tower_service::Service;

use crate::{Allow, address};

const BEAT: Duration = Duration::from_millis(500);

/// The system resolver behind the address filter.
#[derive(Clone, Debug)]
pub(crate) struct Resolver {
    pub(crate) allow: Arc<Allow>,
}

/// Why a name leads nowhere.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unresolved {
    #[error("the name is not known")]
    Unknown,
    /// It resolved to refused addresses only; the reason is that of the first of them.
    #[error("{0}")]
    Refused(&'static str),
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Unresolved;
    type Future = BoxFuture<'static, Result<Self::Response, Unresolved>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unresolved>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let allow = Arc::clone(&self.allow);
        Box::pin(async move {
            let asked = Instant::now();
            let reachable = look_up(&allow, name.as_str()).await;
            if reachable.is_err() {
                sleep_until(next_beat(asked, Instant::now())).await;
            }
            Ok(reachable?.into_iter())
        })
    }
}

async fn look_up(allow: &Allow, name: &str) -> Result<Vec<SocketAddr>, Unresolved> {
    let found = lookup_host((name, 0)).await.map_err(|_| Unresolved::Unknown)?;
    reachable(allow, name, found)
}

/// A name that leads inside is known sooner than one that does not exist, so both are told at the same beats.
fn next_beat(asked: Instant, now: Instant) -> Instant {
    let passed = u32::try_from(now.duration_since(asked).as_millis() / BEAT.as_millis()).unwrap_or_default();
    asked + BEAT * (passed + 1)
}

fn reachable(allow: &Allow, name: &str, found: impl Iterator<Item = SocketAddr>) -> Result<Vec<SocketAddr>, Unresolved> {
    if allow.names(name) {
        return Ok(found.collect());
    }
    let mut refused = None;
    let mut kept = Vec::new();
    for address in found {
        match address::refusal(address.ip()) {
            Some(reason) if !allow.covers(address.ip()) => refused = refused.or(Some(Unresolved::Refused(reason))),
            _ => kept.push(address),
        }
    }
    match refused {
        Some(refused) if kept.is_empty() => Err(refused),
        _ => Ok(kept),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(allow: &str, found: &[&str]) -> Result<Vec<String>, Unresolved> {
        let found = found.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), 0));
        let kept = reachable(&allow.parse().unwrap(), "mixed.example", found)?;
        Ok(kept.into_iter().map(|address| address.ip().to_string()).collect())
    }

    #[test]
    fn drops_refused_addresses_and_blocks_when_none_is_left() {
        assert_eq!(kept("", &["10.0.0.1", "1.1.1.1", "::1"]), Ok(vec!["1.1.1.1".to_owned()]));
        assert_eq!(kept("", &["10.0.0.1", "::1"]), Err(Unresolved::Refused("private address")));
        assert_eq!(kept("10.0.0.0/8", &["10.0.0.1", "::1"]), Ok(vec!["10.0.0.1".to_owned()]));
        assert_eq!(kept("*.example", &["10.0.0.1", "::1"]).unwrap().len(), 2);
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_loopback_is_refused() {
        let refused = Resolver { allow: Arc::default() }.call("localhost".parse().unwrap()).await;
        assert_eq!(refused.unwrap_err(), Unresolved::Refused("loopback address"));
    }
}
