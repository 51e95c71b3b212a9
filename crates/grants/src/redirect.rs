//! Where a client may be sent back to. Addresses are compared letter by letter; only the port of this very machine is free (RFC 8252).

use url::{Host, Url};

const MAX_URI: usize = 2000;
const LOOPBACK: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

/// What browsers or systems do something else with than to open an application.
const NOT_APPLICATIONS: [&str; 22] = [
    "about",
    "blob",
    "chrome",
    "chrome-extension",
    "content",
    "data",
    "file",
    "filesystem",
    "ftp",
    "ftps",
    "intent",
    "jar",
    "javascript",
    "ldap",
    "mailto",
    "resource",
    "sms",
    "tel",
    "vbscript",
    "view-source",
    "ws",
    "wss",
];

/// Why an address cannot be registered; nothing for one that can.
pub(crate) fn problem(uri: &str) -> Option<String> {
    let odd = |letter: char| !letter.is_ascii_graphic() || "\\\"<>^`{|}".contains(letter);
    if uri.len() > MAX_URI {
        return Some(format!("it is longer than {MAX_URI} characters"));
    }
    if uri.contains(odd) {
        return Some("it has characters that an address may not have".to_owned());
    }
    let Ok(url) = uri.parse::<Url>() else { return Some("it is not an absolute address".to_owned()) };
    if uri.contains('#') {
        return Some("it has a fragment".to_owned());
    }
    let authority = uri.split_once("://").map(|(_, rest)| rest.split(['/', '?']).next().unwrap_or_default());
    if authority.is_some_and(|authority| authority.contains('@')) || !url.username().is_empty() || url.password().is_some() {
        return Some("it has a user name or password".to_owned());
    }
    match url.scheme() {
        "https" => ends_in_dot(&url).then(|| "its host ends in a dot".to_owned()),
        "http" if loopback(uri).is_some() => None,
        "http" => Some("`http` is for this very machine only (127.0.0.1, [::1] or localhost); use `https`".to_owned()),
        scheme if NOT_APPLICATIONS.contains(&scheme) => Some(format!("`{scheme}` opens no application")),
        _ if authority.is_none_or(str::is_empty) => Some("an application's address looks like `name://place`".to_owned()),
        _ => None,
    }
}

fn ends_in_dot(url: &Url) -> bool {
    matches!(url.host(), Some(Host::Domain(name)) if name.ends_with('.'))
}

/// Whether a client that registered these may be sent back there.
pub(crate) fn is_registered(registered: &[String], asked: &str) -> bool {
    let same = |known: &String| known == asked || loopback(known).is_some_and(|place| loopback(asked) == Some(place));
    registered.iter().any(same)
}

/// The host and what follows the port, of an address on this very machine. It is read as text, so that nothing can look like another.
fn loopback(uri: &str) -> Option<(&str, &str)> {
    let rest = uri.strip_prefix("http://")?;
    let host = LOOPBACK.into_iter().find(|host| rest.starts_with(host))?;
    let after = &rest[host.len()..];
    let end = after.find(['/', '?']).unwrap_or(after.len());
    let (port, place) = after.split_at(end);
    let is_port = match port.strip_prefix(':') {
        None => port.is_empty(),
        Some(digits) => {
            digits.len() <= 5 && digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok_and(|port| port > 0)
        }
    };
    is_port.then_some((host, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_registered() {
        for fine in [
            "https://claude.ai/api/mcp/auth_callback",
            "https://chatgpt.com/connector_platform_oauth_redirect",
            "https://example.com:8443/cb?x=1",
            "http://127.0.0.1/cb",
            "http://127.0.0.1:33418/",
            "http://[::1]:1/cb",
            "http://localhost:8080/oauth/callback",
            "cursor://anysphere.cursor-retrieval/oauth/user-agent-integration/callback",
            "com.example.app://oauth/callback",
        ] {
            assert_eq!(problem(fine), None, "{fine}");
        }
        let long = format!("https://example.com/{}", "a".repeat(3000));
        for wrong in [
            "",
            "/cb",
            "example.com/cb",
            "http://example.com/cb",
            "http://127.0.0.1.example.com/cb",
            "http://127.0.0.1@example.com/cb",
            "http://localhost.example.com/cb",
            "http://127.1/cb",
            "http://0.0.0.0/cb",
            "http://localhost:0/cb",
            "http://localhost:99999/cb",
            "https://user@example.com/cb",
            "https://user:secret@example.com/cb",
            "https://@example.com/cb",
            "https://example.com/cb#part",
            "https://example.com/cb#",
            "https://example.com./cb",
            "https://example.com\\@evil.example/cb",
            "https://exa mple.com/cb",
            "https://exämple.com/cb",
            "https://example.com/cb\n",
            "javascript:alert(1)",
            "JavaScript://example.com/%0aalert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "intent://x#Intent;end",
            "com.example.app:/oauth",
            &long,
        ] {
            assert!(problem(wrong).is_some(), "{wrong}");
        }
    }

    #[test]
    fn an_address_fits_letter_by_letter() {
        let registered = ["https://client.example/cb".to_owned(), "cursor://a.b/cb".to_owned()];
        for fine in ["https://client.example/cb", "cursor://a.b/cb"] {
            assert!(is_registered(&registered, fine), "{fine}");
        }
        for lookalike in [
            "",
            "https://client.example/cb/",
            "https://client.example/cb?x=1",
            "https://client.example/CB",
            "https://CLIENT.example/cb",
            "HTTPS://client.example/cb",
            "https://client.example./cb",
            "https://client.example:443/cb",
            "https://client.example/c%62",
            "https://client.example/x/../cb",
            "https://client.example/cb#x",
            "https://client.example@evil.example/cb",
            "https://user@client.example/cb",
            "https://client.example.evil.example/cb",
            "https://evil.example/https://client.example/cb",
            "https:/client.example/cb",
            "//client.example/cb",
            "http://client.example/cb",
            " https://client.example/cb",
            "https://client.example/cb ",
            "cursor://a.b/cb/..",
        ] {
            assert!(!is_registered(&registered, lookalike), "{lookalike}");
        }
    }

    #[test]
    fn only_the_port_of_this_machine_is_free() {
        let registered = ["http://127.0.0.1/cb".to_owned(), "http://[::1]:5000/cb?x=1".to_owned(), "http://localhost:3000".to_owned()];
        for fine in [
            "http://127.0.0.1/cb",
            "http://127.0.0.1:80/cb",
            "http://127.0.0.1:61234/cb",
            "http://[::1]/cb?x=1",
            "http://localhost:1",
            "http://localhost",
        ] {
            assert!(is_registered(&registered, fine), "{fine}");
        }
        for wrong in [
            "https://127.0.0.1/cb",
            "http://127.0.0.1:61234/cb/",
            "http://127.0.0.1:61234/other",
            "http://127.0.0.1:61234/x/../cb",
            "http://127.0.0.1:0/cb",
            "http://127.0.0.1:70000/cb",
            "http://127.0.0.1:+80/cb",
            "http://127.0.0.1:/cb",
            "http://127.0.0.1:80:80/cb",
            "http://127.0.0.1:80@evil.example/cb",
            "http://127.0.0.1@evil.example/cb",
            "http://127.0.0.1.evil.example/cb",
            "http://127.0.0.1./cb",
            "http://127.0.0.2/cb",
            "http://127.1/cb",
            "http://localhost/cb",
            "http://localhost:1/",
            "http://LOCALHOST:1",
            "http://[::1]:5000/cb",
            "http://[::1]:5000/cb?x=2",
            "http://[::1]:5000/cb?x=1#",
        ] {
            assert!(!is_registered(&registered, wrong), "{wrong}");
        }
    }
}
