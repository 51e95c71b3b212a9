//! Which addresses lie on the public internet, and why the others do not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

const V4: [(Ipv4Net, &str); 17] = [
    (v4([0, 0, 0, 0], 8), "unspecified address"),
    (v4([10, 0, 0, 0], 8), "private address"),
    (v4([100, 64, 0, 0], 10), "carrier-grade NAT address"),
    (v4([127, 0, 0, 0], 8), "loopback address"),
    (v4([168, 63, 129, 16], 32), "cloud metadata service"),
    (v4([169, 254, 169, 254], 32), "cloud metadata service"),
    (v4([169, 254, 0, 0], 16), "link-local address"),
    (v4([172, 16, 0, 0], 12), "private address"),
    (v4([192, 0, 0, 0], 24), "protocol-assignment address"),
    (v4([192, 0, 2, 0], 24), "documentation address"),
    (v4([192, 88, 99, 0], 24), "6to4 relay address"),
    (v4([192, 168, 0, 0], 16), "private address"),
    (v4([198, 18, 0, 0], 15), "benchmarking address"),
    (v4([198, 51, 100, 0], 24), "documentation address"),
    (v4([203, 0, 113, 0], 24), "documentation address"),
    (v4([224, 0, 0, 0], 4), "multicast address"),
    (v4([240, 0, 0, 0], 4), "reserved address"),
];

const V6: [(Ipv6Net, &str); 10] = [
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "unspecified address"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "loopback address"),
    (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128), "cloud metadata service"),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "unique-local address"),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "link-local address"),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "site-local address"),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "multicast address"),
    // Teredo, benchmarking and ORCHID live here; none of it serves HTTP to the public.
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "protocol-assignment address"),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "documentation address"),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "documentation address"),
];

/// All that IANA has given out as global unicast; what lies outside is refused without being named.
const GLOBAL: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// Why an address must not be reached, or `None` if it is public.
pub(crate) fn refusal(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(ip) => refusal_v4(ip),
        IpAddr::V6(ip) => embedded(ip).map_or_else(|| refusal_v6(ip), refusal_v4),
    }
}

fn refusal_v4(ip: Ipv4Addr) -> Option<&'static str> {
    V4.iter().find(|(net, _)| net.contains(&ip)).map(|(_, reason)| *reason)
}

fn refusal_v6(ip: Ipv6Addr) -> Option<&'static str> {
    match V6.iter().find(|(net, _)| net.contains(&ip)) {
        Some((_, reason)) => Some(reason),
        None if GLOBAL.contains(&ip) => None,
        None => Some("reserved address"),
    }
}

/// The IPv4 address that packets for a mapped, NAT64 or 6to4 address end up at.
fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    match ip.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
    }
}

const fn v4(octets: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::from_octets(octets), prefix)
}

const fn v6(segments: [u16; 8], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::from_segments(segments), prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_every_range_that_is_not_public() {
        let refused = [
            ("0.0.0.0", "unspecified address"),
            ("0.255.255.255", "unspecified address"),
            ("10.0.0.1", "private address"),
            ("100.64.0.1", "carrier-grade NAT address"),
            ("100.127.255.255", "carrier-grade NAT address"),
            ("127.0.0.1", "loopback address"),
            ("127.255.255.254", "loopback address"),
            ("168.63.129.16", "cloud metadata service"),
            ("169.254.169.254", "cloud metadata service"),
            ("169.254.1.1", "link-local address"),
            ("172.16.0.1", "private address"),
            ("172.31.255.255", "private address"),
            ("192.0.0.192", "protocol-assignment address"),
            ("192.0.2.1", "documentation address"),
            ("192.88.99.1", "6to4 relay address"),
            ("192.168.1.1", "private address"),
            ("198.18.0.1", "benchmarking address"),
            ("198.19.255.255", "benchmarking address"),
            ("198.51.100.1", "documentation address"),
            ("203.0.113.1", "documentation address"),
            ("224.0.0.1", "multicast address"),
            ("239.255.255.255", "multicast address"),
            ("240.0.0.1", "reserved address"),
            ("255.255.255.255", "reserved address"),
            ("::", "unspecified address"),
            ("::1", "loopback address"),
            ("::127.0.0.1", "reserved address"),
            ("::8.8.8.8", "reserved address"),
            ("::ffff:127.0.0.1", "loopback address"),
            ("::ffff:169.254.169.254", "cloud metadata service"),
            ("::ffff:0:127.0.0.1", "reserved address"),
            ("64:ff9b::10.0.0.1", "private address"),
            ("64:ff9b::169.254.169.254", "cloud metadata service"),
            ("64:ff9b:1::8.8.8.8", "reserved address"),
            ("100::1", "reserved address"),
            ("2001::1", "protocol-assignment address"),
            ("2001:0:4136:e378:8000:63bf:80ff:fffe", "protocol-assignment address"),
            ("2001:2::1", "protocol-assignment address"),
            ("2001:20::1", "protocol-assignment address"),
            ("2001:db8::1", "documentation address"),
            ("2002:7f00:1::", "loopback address"),
            ("2002:c0a8:101::1", "private address"),
            ("3fff::1", "documentation address"),
            ("4000::1", "reserved address"),
            ("5f00::1", "reserved address"),
            ("fc00::1", "unique-local address"),
            ("fd00:ec2::254", "cloud metadata service"),
            ("fd12:3456::1", "unique-local address"),
            ("fe80::1", "link-local address"),
            ("febf::1", "link-local address"),
            ("fec0::1", "site-local address"),
            ("ff02::1", "multicast address"),
        ];
        for (ip, reason) in refused {
            assert_eq!(refusal(ip.parse().unwrap()), Some(reason), "{ip}");
        }
    }

    #[test]
    fn lets_public_addresses_through() {
        let public = [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.17",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2002:808:808::1",
            "2606:4700:4700::1111",
        ];
        for ip in public {
            assert_eq!(refusal(ip.parse().unwrap()), None, "{ip}");
        }
    }
}
