//! Which URLs may be called at all, before any name is looked up.

use std::net::IpAddr;

use url::{Host, Url};

use crate::address;
use crate::{Allow, EgressError};

const METADATA: [&str; 6] =
    ["instance-data", "instance-data.ec2.internal", "metadata", "metadata.azure.internal", "metadata.goog", "metadata.google.internal"];

/// Refuses a URL that is malformed for our purpose, or whose host or address is neither public nor on the allow-list.
pub(crate) fn check(allow: &Allow, url: &Url) -> Result<(), EgressError> {
    let secure = match url.scheme() {
        "https" => true,
        "http" => false,
        _ => return Err(EgressError::BadUrl { reason: "only `http` and `https` are spoken" }),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(EgressError::BadUrl { reason: "a user name or password must go into a header" });
    }
    let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
        return Err(EgressError::BadUrl { reason: "it names no host" });
    };
    if allow.permits(&host, port) {
        return Ok(());
    }
    if !secure {
        return Err(EgressError::PlainHttp { host: host.to_string() });
    }
    match refusal(allow, &host) {
        Some(reason) => Err(EgressError::Blocked { host: host.to_string(), reason }),
        None => Ok(()),
    }
}

fn refusal(allow: &Allow, host: &Host<&str>) -> Option<&'static str> {
    match host {
        Host::Ipv4(ip) => address::refusal(IpAddr::V4(*ip)),
        Host::Ipv6(ip) => address::refusal(IpAddr::V6(*ip)),
        // The resolver lets every address of a listed name through and cannot see ports, so the port must be settled here.
        Host::Domain(name) if allow.names(name) => Some("only other ports of it are on the allow-list"),
        Host::Domain(name) => refused_name(name),
    }
}

fn refused_name(name: &str) -> Option<&'static str> {
    let name = name.strip_suffix('.').unwrap_or(name);
    if name == "localhost" || name.ends_with(".localhost") || name == "localhost.localdomain" {
        Some("loopback name")
    } else if METADATA.contains(&name) {
        Some("cloud metadata service")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(allow: &str, url: &str) -> &'static str {
        match check(&allow.parse().unwrap(), &url.parse().unwrap()) {
            Ok(()) => "ok",
            Err(error) => error.code(),
        }
    }

    #[test]
    fn judges_urls() {
        let cases = [
            ("", "https://api.example.com/v1", "ok"),
            ("", "https://8.8.8.8/", "ok"),
            ("", "http://api.example.com/", "egress_plain_http"),
            ("api.example.com", "http://api.example.com/", "ok"),
            ("", "ftp://api.example.com/", "egress_bad_url"),
            ("", "file:///etc/passwd", "egress_bad_url"),
            ("", "data:,x", "egress_bad_url"),
            ("", "https://user@api.example.com/", "egress_bad_url"),
            ("", "https://:secret@api.example.com/", "egress_bad_url"),
            ("", "https://localhost/", "egress_blocked"),
            ("", "https://LOCALHOST./", "egress_blocked"),
            ("", "https://db.localhost/", "egress_blocked"),
            ("localhost", "http://localhost:8080/", "ok"),
            ("localhost:8080", "http://localhost:8080/", "ok"),
            ("localhost:8080", "https://localhost/", "egress_blocked"),
            ("build.example:8080", "https://build.example/", "egress_blocked"),
            ("", "https://metadata.google.internal/", "egress_blocked"),
            ("", "https://127.0.0.1/", "egress_blocked"),
            ("", "https://127.0.0.1./", "egress_blocked"),
            ("", "https://127.1/", "egress_blocked"),
            ("", "https://0x7f.1/", "egress_blocked"),
            ("", "https://0177.0.0.1/", "egress_blocked"),
            ("", "https://2130706433/", "egress_blocked"),
            ("", "https://%31%32%37.0.0.1/", "egress_blocked"),
            ("", "https://127。0。0。1/", "egress_blocked"),
            ("", "https://[::ffff:127.0.0.1]/", "egress_blocked"),
            ("", "https://[::1]/", "egress_blocked"),
            ("", "https://[64:ff9b::a9fe:a9fe]/", "egress_blocked"),
            ("127.0.0.0/8", "http://2130706433/", "ok"),
            ("127.0.0.0/8", "http://[::ffff:127.0.0.1]/", "ok"),
        ];
        for (allow, url, expected) in cases {
            assert_eq!(code(allow, url), expected, "{url} with `{allow}`");
        }
    }
}
