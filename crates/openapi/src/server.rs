//! Where an API is: the first server of a document that can be called.

use serde_json::Value;
use url::Url;

/// Says whether an address may be called.
pub(crate) type Allowed<'a> = &'a (dyn Fn(&Url) -> Result<(), String> + Sync);

/// The first usable server of a list; the error says what is wrong with each.
pub(crate) fn choose(servers: &Value, document: Option<&Url>, allowed: Allowed<'_>) -> Result<Url, String> {
    let mut wrong = Vec::new();
    for server in servers.as_array().into_iter().flatten().take(20) {
        match address(server).and_then(|text| usable(&text, document, allowed)) {
            Ok(url) => return Ok(url),
            Err(why) => wrong.push(why),
        }
    }
    if wrong.is_empty() {
        // A document that names no server describes the one it is from.
        return usable("/", document, allowed);
    }
    Err(wrong.join("; "))
}

/// The server's address with its variables at their defaults.
fn address(server: &Value) -> Result<String, String> {
    let template = server["url"].as_str().ok_or("a server has no `url`")?;
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        text.push_str(before);
        match &server["variables"][name]["default"] {
            Value::String(value) => text.push_str(value),
            Value::Number(value) => text.push_str(&value.to_string()),
            _ => return Err(format!("`{}` has no value for `{}`", shown(template), shown(name))),
        }
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

/// Reads an address that requests can be sent to, without what does not belong to one.
pub(crate) fn usable(text: &str, document: Option<&Url>, allowed: Allowed<'_>) -> Result<Url, String> {
    let parsed = match document {
        Some(document) => document.join(text),
        None => text.parse(),
    };
    let mut url = parsed.map_err(|_| format!("`{}` is not a web address", shown(text)))?;
    plain(&url, text)?;
    url.set_query(None);
    url.set_fragment(None);
    allowed(&url)?;
    Ok(url)
}

/// Reads an address of somebody else's as it is, such as where tokens are fetched.
pub(crate) fn endpoint(text: &str, document: Option<&Url>, allowed: Allowed<'_>) -> Result<Url, String> {
    let parsed = match document {
        Some(document) => document.join(text),
        None => text.parse(),
    };
    let url = parsed.map_err(|_| format!("`{}` is not a web address", shown(text)))?;
    plain(&url, text)?;
    allowed(&url)?;
    Ok(url)
}

/// Refuses other schemes, credentials, and what would be filled in later.
fn plain(url: &Url, text: &str) -> Result<(), String> {
    let bare = url.has_host() && url.username().is_empty() && url.password().is_none();
    let is_web = matches!(url.scheme(), "https" | "http") && bare && !url.as_str().contains(['{', '}']);
    if is_web { Ok(()) } else { Err(format!("`{}` cannot be called", shown(text))) }
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(120).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn public(url: &Url) -> Result<(), String> {
        if url.host_str() == Some("10.0.0.1") { Err("`10.0.0.1` is blocked".to_owned()) } else { Ok(()) }
    }

    #[test]
    fn the_first_usable_server_is_taken() {
        let document: Url = "https://example.com/docs/openapi.json".parse().unwrap();
        let choose = |servers: Value, document: Option<&Url>| choose(&servers, document, &public).map(String::from);
        assert_eq!(choose(json!([{"url": "https://api.example.com/v1?x=1#y"}]), None).unwrap(), "https://api.example.com/v1");
        assert_eq!(choose(json!([{"url": "/v2"}]), Some(&document)).unwrap(), "https://example.com/v2");
        assert_eq!(choose(json!(null), Some(&document)).unwrap(), "https://example.com/");
        assert!(choose(json!([{"url": "/v2"}]), None).is_err());
        let templated =
            json!([{"url": "https://{region}.example.com:{port}/", "variables": {"region": {"default": "eu"}, "port": {"default": 8443}}}]);
        assert_eq!(choose(templated, None).unwrap(), "https://eu.example.com:8443/");
        let several = json!([{"url": "https://{tenant}.example.com"}, {"url": "https://10.0.0.1"}, {"url": "https://ok.example.com"}]);
        assert_eq!(choose(several, None).unwrap(), "https://ok.example.com/");
    }

    #[test]
    fn no_server_can_hold_more_than_an_address() {
        for bad in [
            "https://10.0.0.1",
            "ftp://example.com",
            "https://u:p@example.com",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https://{x}",
            "",
        ] {
            assert!(choose(&json!([{"url": bad}]), None, &public).is_err(), "{bad}");
        }
        let hidden = json!([{"url": "https://x{a}", "variables": {"a": {"default": "/{connection.token}"}}}]);
        assert!(!choose(&hidden, None, &public).unwrap().as_str().contains('{'), "a placeholder that a value brings is no placeholder");
        assert!(endpoint("https://example.com/token?x={connection.client_secret}", None, &public).is_err());
    }
}
