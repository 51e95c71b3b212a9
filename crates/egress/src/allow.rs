//! The operator's list of hosts and ranges that may be reached although they are private, and over plain http.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use ipnet::IpNet;
use url::Host;

use crate::EgressError;

/// An allow-list, written `intranet.example, *.corp.example, build.example:8080, 10.1.0.0/16, 127.0.0.1:9000`.
///
/// A name with a port is reachable on that port only. A range, or an address without a port, also covers names that resolve
/// into it; an address with a port covers only URLs that spell that address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    pattern: Pattern,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Name(String),
    /// Any name below this one, but not the name itself.
    Below(String),
    Range(IpNet),
}

impl Allow {
    /// Whether a URL with this host and port is on the list.
    pub(crate) fn permits(&self, host: &Host<&str>, port: u16) -> bool {
        self.0.iter().filter(|entry| entry.port.is_none_or(|only| only == port)).any(|entry| match host {
            Host::Domain(name) => entry.pattern.matches_name(name),
            Host::Ipv4(ip) => entry.pattern.matches_address((*ip).into()),
            Host::Ipv6(ip) => entry.pattern.matches_address((*ip).into()),
        })
    }

    /// Whether a name is on the list, with whatever port.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.0.iter().any(|entry| entry.pattern.matches_name(name))
    }

    /// Whether an address that a name resolved to is on the list.
    pub(crate) fn covers(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|entry| entry.port.is_none() && entry.pattern.matches_address(ip))
    }
}

impl Pattern {
    fn matches_name(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name);
        match self {
            Self::Name(listed) => name == listed,
            Self::Below(parent) => {
                name.strip_suffix(parent.as_str()).and_then(|rest| rest.strip_suffix('.')).is_some_and(|rest| !rest.is_empty())
            }
            Self::Range(_) => false,
        }
    }

    fn matches_address(&self, ip: IpAddr) -> bool {
        matches!(self, Self::Range(range) if range.contains(&ip.to_canonical()))
    }
}

impl FromStr for Allow {
    type Err = EgressError;

    fn from_str(list: &str) -> Result<Self, Self::Err> {
        let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        entries.map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for Entry {
    type Err = EgressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let range = text.parse().or_else(|_| text.parse::<IpAddr>().map(address));
        if let Ok(range) = range {
            return Ok(Self { pattern: Pattern::Range(range.trunc()), port: None });
        }
        let (host, port) = match text.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
            Some((host, Ok(port))) => (host, Some(port)),
            _ => (text, None),
        };
        let pattern = pattern(host).ok_or_else(|| EgressError::BadAllow { entry: text.to_owned() })?;
        Ok(Self { pattern, port })
    }
}

fn pattern(host: &str) -> Option<Pattern> {
    let (below, host) = host.strip_prefix("*.").map_or((false, host), |parent| (true, parent));
    match Host::parse(host).ok()? {
        Host::Domain(name) if name.contains('*') => None,
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(&name).to_owned();
            Some(if below { Pattern::Below(name) } else { Pattern::Name(name) })
        }
        _ if below => None,
        Host::Ipv4(ip) => Some(Pattern::Range(address(ip.into()))),
        Host::Ipv6(ip) => Some(Pattern::Range(address(ip.into()))),
    }
}

fn address(ip: IpAddr) -> IpNet {
    ip.to_canonical().into()
}

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, entry) in self.0.iter().enumerate() {
            let separator = if place == 0 { "" } else { "," };
            write!(f, "{separator}{entry}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.pattern, self.port) {
            (Pattern::Range(range), None) => write!(f, "{range}"),
            (Pattern::Range(range), Some(port)) => write!(f, "{}", SocketAddr::new(range.addr(), port)),
            (Pattern::Name(name), None) => f.write_str(name),
            (Pattern::Name(name), Some(port)) => write!(f, "{name}:{port}"),
            (Pattern::Below(parent), None) => write!(f, "*.{parent}"),
            (Pattern::Below(parent), Some(port)) => write!(f, "*.{parent}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(list: &str, host: &str, port: u16) -> bool {
        let allow: Allow = list.parse().unwrap();
        let host = Host::parse(host).unwrap();
        let host = match &host {
            Host::Domain(name) => Host::Domain(name.as_str()),
            Host::Ipv4(ip) => Host::Ipv4(*ip),
            Host::Ipv6(ip) => Host::Ipv6(*ip),
        };
        allow.permits(&host, port)
    }

    #[test]
    fn a_list_reads_back_as_it_was_written() {
        let list = "intranet.example,*.corp.example,build.example:8080,*.dev.example:81,10.1.0.0/16,fd00::/8,127.0.0.1:9000,[::1]:80";
        assert_eq!(list.parse::<Allow>().unwrap().to_string(), list);
        assert_eq!("127.0.0.1, ::1 ,".parse::<Allow>().unwrap().to_string(), "127.0.0.1/32,::1/128");
        assert_eq!("10.1.2.3/8,[::1],Intranet.Example.".parse::<Allow>().unwrap().to_string(), "10.0.0.0/8,::1/128,intranet.example");
        assert_eq!(Allow::default().to_string(), "");
    }

    #[test]
    fn refuses_what_it_cannot_read() {
        for entry in
            ["*", "a.*.b", "*.10.0.0.1", "http://a.example", "a.example/x", "10.0.0.0/33", "a b", "10.0.0.0/8:80", "a.example:99999"]
        {
            let refused = entry.parse::<Allow>();
            assert!(matches!(&refused, Err(EgressError::BadAllow { entry: named }) if named == entry), "{entry}: {refused:?}");
        }
    }

    #[test]
    fn matches_names_ports_and_ranges() {
        assert!(permits("a.example", "a.example", 443));
        assert!(permits("a.example", "A.example.", 443));
        assert!(!permits("a.example", "b.a.example", 443));
        assert!(permits("*.a.example", "c.b.a.example", 443));
        assert!(!permits("*.a.example", "a.example", 443));
        assert!(!permits("*.a.example", "ba.example", 443));
        assert!(permits("a.example:8080", "a.example", 8080));
        assert!(!permits("a.example:8080", "a.example", 443));
        assert!(permits("10.0.0.0/8", "10.9.9.9", 443));
        assert!(permits("10.0.0.0/8", "[::ffff:10.9.9.9]", 443));
        assert!(!permits("10.0.0.0/8", "11.0.0.1", 443));
        assert!(permits("127.0.0.1:9000", "0x7f.1", 9000));
        assert!(!permits("127.0.0.1:9000", "127.0.0.1", 80));
    }

    #[test]
    fn an_address_with_a_port_does_not_cover_names() {
        let allow: Allow = "127.0.0.1:9000,127.0.0.2".parse().unwrap();
        assert!(!allow.covers([127, 0, 0, 1].into()));
        assert!(allow.covers([127, 0, 0, 2].into()));
    }
}
