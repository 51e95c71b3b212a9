//! A URL as it may be printed.

use std::fmt;

use url::Url;

/// Prints scheme, host and port of a URL; its path and query may hold secrets.
#[derive(Clone, Copy)]
pub struct Redacted<'a>(pub &'a Url);

impl fmt::Display for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.0.scheme(), self.0.host_str().unwrap_or_default())?;
        self.0.port().map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl fmt::Debug for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_nothing_but_the_origin() {
        let url = "https://user:pw@hooks.example:8443/services/T0/secret?key=secret#secret".parse().unwrap();
        assert_eq!(Redacted(&url).to_string(), "https://hooks.example:8443");
        assert_eq!(format!("{:?}", Redacted(&"https://[::1]/x".parse().unwrap())), "https://[::1]");
    }
}
