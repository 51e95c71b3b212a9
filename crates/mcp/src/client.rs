//! Who asks: the revision that the client speaks and what it can do. Since 2026-07-28 every request says so itself; an older client says
//! it once, and carries it with it in its session id, so that nothing is kept here.

use http::{HeaderMap, HeaderName};
use mcp_wire::header;
use mcp_wire::meta::{CLIENT_CAPABILITIES, PROTOCOL_VERSION};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::version::{UNNAMED, served};
use crate::{Request, RpcError, Version, mirror};

/// The client behind one request.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    pub version: Version,
    /// What the client declared that it can do.
    pub capabilities: Value,
    /// Set for clients that began with `initialize`.
    pub session: Option<String>,
}

impl Client {
    /// Finds out who asks, and refuses what contradicts itself.
    pub(crate) fn of(headers: &HeaderMap, request: &Request) -> Result<Self, RpcError> {
        let named = text(headers, &header::PROTOCOL_VERSION);
        let meant = request.meta(PROTOCOL_VERSION);
        let Some(named) = named else {
            return match meant {
                None => Ok(Self::in_session(headers, UNNAMED)),
                Some(_) => Err(RpcError::Header("MCP-Protocol-Version is missing".to_owned())),
            };
        };
        if meant.is_some_and(|meant| *meant != *named) {
            return Err(RpcError::Header("MCP-Protocol-Version does not say what the body says".to_owned()));
        }
        match served(named) {
            Some(version) if version.is_stateless() => Self::by_itself(headers, request, version),
            // Its revision is only agreed upon.
            None if request.method == "initialize" && meant.is_none() => Ok(Self::in_session(headers, Version::NEWEST_SESSION)),
            Some(version) => Ok(Self::in_session(headers, version)),
            None => Err(RpcError::Version(named.to_owned())),
        }
    }

    /// A client whose request says all there is to know.
    fn by_itself(headers: &HeaderMap, request: &Request, version: Version) -> Result<Self, RpcError> {
        mirror::check(headers, request)?;
        let missing = |key: &str| RpcError::Params(format!("`params._meta` lacks `{key}`"));
        request.meta(PROTOCOL_VERSION).ok_or_else(|| missing(PROTOCOL_VERSION))?;
        let capabilities =
            request.meta(CLIENT_CAPABILITIES).filter(|given| given.is_object()).ok_or_else(|| missing(CLIENT_CAPABILITIES))?;
        Ok(Self { version, capabilities: capabilities.clone(), session: None })
    }

    /// A client that said who it is when it began.
    pub(crate) fn in_session(headers: &HeaderMap, version: Version) -> Self {
        let session = text(headers, &header::SESSION_ID).map(str::to_owned);
        Self { version, capabilities: session.as_deref().map_or_else(|| json!({}), remembered), session }
    }

    /// Whether a person can be asked a question with a form.
    pub fn shows_forms(&self) -> bool {
        elicits(&self.capabilities, "form")
    }

    pub fn can(&self, capability: &str) -> bool {
        self.capabilities.get(capability).is_some_and(Value::is_object)
    }
}

/// A session id that holds what the client can do, as far as it matters here.
pub(crate) fn session_id(capabilities: &Value) -> String {
    let flags: String = [("f", elicits(capabilities, "form")), ("s", capabilities.get("sampling").is_some())]
        .into_iter()
        .filter_map(|(flag, is_set)| is_set.then_some(flag))
        .collect();
    format!("ty-{flags}-{}", Uuid::new_v4().simple())
}

fn remembered(session: &str) -> Value {
    let mut capabilities = json!({});
    let Some(flags) = session.strip_prefix("ty-").and_then(|rest| rest.split('-').next()) else { return capabilities };
    if flags.contains('f') {
        capabilities["elicitation"] = json!({"form": {}});
    }
    if flags.contains('s') {
        capabilities["sampling"] = json!({});
    }
    capabilities
}

/// An empty declaration means forms.
fn elicits(capabilities: &Value, mode: &str) -> bool {
    let Some(Value::Object(modes)) = capabilities.get("elicitation") else { return false };
    modes.contains_key(mode) || (mode == "form" && !modes.contains_key("url"))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(headers: &[(&'static str, &str)], method: &str, meta: Value) -> Result<Client, RpcError> {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let params = json!({"_meta": meta}).as_object().unwrap().clone();
        Client::of(&headers, &Request { id: json!(1), method: method.to_owned(), params })
    }

    #[test]
    fn a_request_of_the_newest_revision_says_everything_itself() {
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
        let meta = json!({PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {"elicitation": {}}});
        let client = ask(&headers, "tools/list", meta).unwrap();
        assert!(client.version.is_stateless() && client.shows_forms());
        for meta in [json!({}), json!({PROTOCOL_VERSION: "2026-07-28"}), json!({CLIENT_CAPABILITIES: {}})] {
            assert!(matches!(ask(&headers, "tools/list", meta), Err(RpcError::Params(_))));
        }
        let other = json!({PROTOCOL_VERSION: "2027-01-01", CLIENT_CAPABILITIES: {}});
        assert!(matches!(ask(&headers, "tools/list", other.clone()), Err(RpcError::Header(_))));
        assert!(matches!(ask(&[], "tools/list", other.clone()), Err(RpcError::Header(_))));
        assert_eq!(ask(&[("mcp-protocol-version", "2027-01-01")], "tools/list", other), Err(RpcError::Version("2027-01-01".to_owned())));
    }

    #[test]
    fn an_older_client_carries_what_it_said_in_its_session() {
        for (declared, shows_forms) in [
            (json!({}), false),
            (json!({"elicitation": {}}), true),
            (json!({"elicitation": {"form": {}, "url": {}}}), true),
            (json!({"elicitation": {"url": {}}, "sampling": {}}), false),
        ] {
            let session = session_id(&declared);
            assert!(session.bytes().all(|byte| byte.is_ascii_graphic()), "{session}");
            let headers = [("mcp-protocol-version", "2025-06-18"), ("mcp-session-id", session.as_str())];
            let client = ask(&headers, "tools/list", json!({})).unwrap();
            assert_eq!((client.version, client.shows_forms()), (Version::V20250618, shows_forms), "{declared}");
            assert_eq!(client.can("sampling"), declared.get("sampling").is_some());
        }
        assert_eq!(ask(&[], "tools/list", json!({})).unwrap().version, Version::V20250326);
        assert!(ask(&[("mcp-protocol-version", "2024-11-05")], "tools/list", json!({})).is_err());
        assert!(ask(&[("mcp-protocol-version", "2024-11-05")], "initialize", json!({})).is_ok());
    }
}
