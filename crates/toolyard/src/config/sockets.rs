//! How many connections a server takes.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::Context;
use ipnet::IpNet;
use rustix::process::{Resource, getrlimit};
use server::ConnectionLimits;

use super::Settings;

const MAX_TOTAL: usize = 16_384;
const PER_ADDRESS: usize = 256;
/// A proxy on the same machine is the usual one.
pub(super) const LOOPBACK: &str = "127.0.0.0/8,::1";

/// The limits that the settings name.
pub(super) fn limits(settings: &Settings) -> anyhow::Result<ConnectionLimits> {
    let seconds = |given: Option<u64>, default: u64| Duration::from_secs(given.unwrap_or(default).max(1));
    let total = settings.connections.unwrap_or_else(|| for_files(getrlimit(Resource::Nofile).current)).max(1);
    let proxies = settings.trusted_proxies.as_deref().unwrap_or(LOOPBACK);
    let proxies = proxies.split(',').map(str::trim).filter(|proxy| !proxy.is_empty()).map(network).collect::<anyhow::Result<_>>()?;
    Ok(ConnectionLimits {
        total,
        per_address: settings.connections_per_address.unwrap_or(PER_ADDRESS.min(total / 2)).max(1),
        proxies,
        header: seconds(settings.header_timeout, 10),
        idle: seconds(settings.idle_timeout, 75),
    })
}

/// The database, outgoing calls and programs need files too.
fn for_files(files: Option<u64>) -> usize {
    let files = files.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX);
    (files / 4 * 3).min(MAX_TOTAL)
}

fn network(text: &str) -> anyhow::Result<IpNet> {
    let single = || text.parse::<IpAddr>().map(IpNet::from).ok();
    text.parse().ok().or_else(single).with_context(|| format!("`{text}` in `trusted_proxies` is neither an address nor a network"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_may_be_open_bound_the_connections() {
        assert_eq!((for_files(Some(256)), for_files(Some(1024)), for_files(None)), (192, 768, MAX_TOTAL));
        let few = limits(&Settings { connections: Some(20), ..Settings::default() }).unwrap();
        assert_eq!((few.total, few.per_address), (20, 10));
    }

    #[test]
    fn proxies_are_addresses_or_networks() {
        let named = |text: &str| limits(&Settings { trusted_proxies: Some(text.to_owned()), ..Settings::default() });
        assert!(named("").unwrap().proxies.is_empty());
        let two = named("10.0.0.0/8, 192.0.2.7").unwrap().proxies;
        assert!(two[0].contains(&"10.1.2.3".parse::<IpAddr>().unwrap()) && two[1].prefix_len() == 32);
        assert!(named("proxy.internal").unwrap_err().to_string().contains("`proxy.internal`"));
    }
}
