//! Addresses that hold `{connection.field}`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::auth::Fields;

/// What stays as it is in a path segment.
pub const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':').remove(b'@').remove(b',');

/// Why an address could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    #[error("the connection has no `{0}`; reconnect the account")]
    NoField(String),
    #[error("`{0}` cannot stand in an address")]
    Unsafe(String),
}

/// Fills the connection's fields into an address. A field in the host may hold only what a host name holds; a field that is the whole
/// origin stands as it is; a field in the path is percent-encoded.
pub fn fill_address(address: &str, fields: &Fields) -> Result<String, FillError> {
    let host_end = address.find("://").map_or(0, |start| start + 3 + address[start + 3..].find('/').unwrap_or(address.len() - start - 3));
    let mut filled = String::with_capacity(address.len() + 16);
    let mut position = 0;
    while let Some(start) = address[position..].find('{').map(|start| position + start) {
        let Some(end) = address[start..].find('}').map(|end| start + end) else { break };
        filled.push_str(&address[position..start]);
        let name = address[start + 1..end].trim_start_matches("connection.");
        let value = fields.get(name).ok_or_else(|| FillError::NoField(name.to_owned()))?;
        match () {
            () if start == 0 => filled.push_str(value.trim_end_matches('/')),
            () if start < host_end && !is_host_part(value) => return Err(FillError::Unsafe(name.to_owned())),
            () if start < host_end => filled.push_str(value),
            () => filled.extend(utf8_percent_encode(value, SEGMENT)),
        }
        position = end + 1;
    }
    filled.push_str(&address[position..]);
    Ok(filled)
}

fn is_host_part(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_cannot_name_another_host() {
        let fields = |value: &str| Fields::from_iter([("shop".to_owned(), value.to_owned())]);
        let address = "https://{connection.shop}.example.com/{connection.shop}";
        assert_eq!(fill_address(address, &fields("a-b")).unwrap(), "https://a-b.example.com/a-b");
        for bad in ["evil.com/", "x@evil.com", "evil.com#", "a b", "", "x:80"] {
            assert_eq!(fill_address(address, &fields(bad)), Err(FillError::Unsafe("shop".to_owned())), "{bad}");
        }
        assert_eq!(fill_address("https://x/{connection.shop}", &fields("a/b?c")).unwrap(), "https://x/a%2Fb%3Fc");
        assert_eq!(fill_address("{connection.shop}/v1", &fields("https://my.example.com/")).unwrap(), "https://my.example.com/v1");
        assert_eq!(fill_address("https://{connection.gone}", &fields("a")), Err(FillError::NoField("gone".to_owned())));
    }
}
