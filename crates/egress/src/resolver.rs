//! Name lookup that hands on only addresses which may be reached, so that what was checked is what is connected to.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;

use crate::{Allow, address};

/// The system resolver behind the address filter.
#[derive(Debug)]
pub(crate) struct Resolver {
    pub(crate) allow: Arc<Allow>,
}

/// A name that resolved to refused addresses only, with the reason for the first of them.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refused(pub(crate) &'static str);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow = Arc::clone(&self.allow);
        Box::pin(async move {
            let found = lookup_host((name.as_str(), 0)).await?;
            let reachable = reachable(&allow, name.as_str(), found)?;
            Ok(Box::new(reachable.into_iter()) as Addrs)
        })
    }
}

fn reachable(allow: &Allow, name: &str, found: impl Iterator<Item = SocketAddr>) -> Result<Vec<SocketAddr>, Refused> {
    if allow.names(name) {
        return Ok(found.collect());
    }
    let mut refused = None;
    let mut kept = Vec::new();
    for address in found {
        match address::refusal(address.ip()) {
            Some(reason) if !allow.covers(address.ip()) => refused = refused.or(Some(Refused(reason))),
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

    fn kept(allow: &str, found: &[&str]) -> Result<Vec<String>, &'static str> {
        let found = found.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), 0));
        let kept = reachable(&allow.parse().unwrap(), "mixed.example", found).map_err(|Refused(reason)| reason)?;
        Ok(kept.into_iter().map(|address| address.ip().to_string()).collect())
    }

    #[test]
    fn drops_refused_addresses_and_blocks_when_none_is_left() {
        assert_eq!(kept("", &["10.0.0.1", "1.1.1.1", "::1"]), Ok(vec!["1.1.1.1".to_owned()]));
        assert_eq!(kept("", &["10.0.0.1", "::1"]), Err("private address"));
        assert_eq!(kept("10.0.0.0/8", &["10.0.0.1", "::1"]), Ok(vec!["10.0.0.1".to_owned()]));
        assert_eq!(kept("*.example", &["10.0.0.1", "::1"]).unwrap().len(), 2);
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_loopback_is_refused() {
        let resolver = Resolver { allow: Arc::default() };
        let refused = resolver.resolve("localhost".parse().unwrap()).await.err().unwrap();
        assert_eq!(refused.downcast_ref::<Refused>().unwrap().0, "loopback address");
    }
}
