//! Hosts that a secret may be sent to.

use std::fmt;
use std::str::FromStr;

use url::Url;

/// A host as an address names it, on every port or on one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    name: String,
    port: Option<u16>,
}

impl Host {
    /// The host of an address.
    pub fn of(url: &Url) -> Option<Self> {
        Some(Self { name: url.host_str()?.to_owned(), port: url.port() })
    }

    /// Whether an address is on this host.
    pub fn is_of(&self, url: &Url) -> bool {
        url.host_str() == Some(self.name.as_str()) && self.port.is_none_or(|port| url.port_or_known_default() == Some(port))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            None => f.write_str(&self.name),
            Some(port) => write!(f, "{}:{port}", self.name),
        }
    }
}

/// A text that is no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a host; write a name such as `api.example.com`, or a name and a port")]
pub struct NotAHost(String);

impl FromStr for Host {
    type Err = NotAHost;

    /// As an address would have it: lower case, and names in other scripts in their ASCII form.
    fn from_str(text: &str) -> Result<Self, NotAHost> {
        let wrong = || NotAHost(text.chars().take(200).collect());
        let url: Url = format!("https://{text}/").parse().map_err(|_| wrong())?;
        let bare =
            url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty() && url.password().is_none();
        if !bare || text.ends_with('/') || text.contains(char::is_whitespace) || text.contains('*') {
            return Err(wrong());
        }
        // The port of the scheme is dropped by a URL, and meant here.
        let port = url.port().or_else(|| text.ends_with(":443").then_some(443));
        Ok(Self { name: url.host_str().ok_or_else(wrong)?.to_owned(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_with_or_without_a_port() {
        for (written, address, fits) in [
            ("api.example.com", "https://api.example.com/x?y", true),
            ("API.example.com", "http://api.example.com:8080/", true),
            ("api.example.com:8080", "http://api.example.com:8080/", true),
            ("api.example.com:443", "https://api.example.com/", true),
            ("api.example.com:8080", "https://api.example.com/", false),
            ("example.com", "https://api.example.com/", false),
            ("api.example.com", "https://api.example.com.evil.org/", false),
            ("127.0.0.1", "http://127.0.0.1:9/", true),
            ("[::1]:80", "http://[::1]/", true),
        ] {
            let host: Host = written.parse().unwrap();
            assert_eq!(host.is_of(&address.parse().unwrap()), fits, "{written} {address}");
            assert_eq!(host.to_string().parse(), Ok(host));
        }
        for wrong in ["", "a b", "https://x", "x/y", "x/", "u@x", "*.x", "x?y", "x#y", "*"] {
            assert!(wrong.parse::<Host>().is_err(), "{wrong}");
        }
    }
}
