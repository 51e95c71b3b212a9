//! Clients that describe themselves: the client id is an `https` address, and the document there says the rest. It is read through
//! `egress`, within limits, and remembered for a while.

use std::time::Duration;

use egress::{Egress, Request};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method, StatusCode};
use kernel::{Clock, Timestamp};
use quick_cache::sync::Cache;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::registration::{NewClient, check};
use crate::{Client, GrantError, Refusal};

const MAX_ADDRESS: usize = 500;
const MAX_DOCUMENT: usize = 32 << 10;
const TIME: Duration = Duration::from_secs(5);
const MOST: usize = 256;
/// How long a document is gone by, and for how long nobody asks again for one that cannot be used.
const GOOD_FOR: Duration = Duration::from_mins(10);
const BAD_FOR: Duration = Duration::from_secs(30);

/// The documents that were read a while ago.
#[derive(Debug)]
pub(crate) struct Documents {
    egress: Egress,
    clock: Clock,
    known: Cache<String, Known>,
}

#[derive(Clone, Debug)]
struct Known {
    client: Result<Client, String>,
    until: Timestamp,
}

/// Whether a client id is an address.
pub(crate) fn is_address(id: &str) -> bool {
    id.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
}

fn refused(why: impl Into<String>) -> GrantError {
    GrantError::refused(Refusal::InvalidClient, why)
}

/// The address of a document, if it may be one: nothing in it can be read in two ways.
fn address(id: &str) -> Result<Url, String> {
    if id.len() > MAX_ADDRESS {
        return Err(format!("it is longer than {MAX_ADDRESS} characters"));
    }
    let url: Url = id.parse().map_err(|_| "it is not an address".to_owned())?;
    if url.path() == "/" {
        return Err("it has no path".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
        return Err("it has a query, a fragment or a user name".to_owned());
    }
    if url.as_str() != id {
        return Err(format!("it is not written as `{url}`"));
    }
    Ok(url)
}

/// The client that a document describes.
fn read(id: &str, body: &[u8]) -> Result<Client, String> {
    let document: Value = serde_json::from_slice(body).map_err(|_| "what is there is not JSON".to_owned())?;
    if document["client_id"] != id {
        return Err("its `client_id` is not its address".to_owned());
    }
    if document.get("client_secret").is_some() {
        return Err("it holds a secret, which everybody can read".to_owned());
    }
    let new = NewClient::deserialize(document).map_err(|error| format!("it is not a client's: {error}"))?;
    if new.token_endpoint_auth_method.as_deref().is_some_and(|method| method != "none") {
        return Err("its `token_endpoint_auth_method` is not `none`, and no other is offered to clients of this kind".to_owned());
    }
    // What a document lists beyond what we offer is for other servers.
    let new = NewClient { grant_types: None, response_types: None, scope: None, ..new };
    let checked = check(&new, "none").map_err(|error| error.to_string())?;
    Ok(Client { id: id.to_owned(), name: checked.name, uri: checked.uri, redirect_uris: checked.redirect_uris, secret: None })
}

impl Documents {
    pub(crate) fn new(egress: Egress, clock: Clock) -> Self {
        Self { egress, clock, known: Cache::new(MOST) }
    }

    /// The client at an address.
    pub(crate) async fn client(&self, id: &str) -> Result<Client, GrantError> {
        let url = address(id).map_err(|why| refused(format!("The client's address cannot be used: {why}.")))?;
        let now = self.clock.now();
        let known = self.known.get(id).filter(|known| now < known.until);
        let client = if let Some(known) = known {
            known.client
        } else {
            let client = self.fetch(id, url).await;
            let until = now.plus(if client.is_ok() { GOOD_FOR } else { BAD_FOR });
            self.known.insert(id.to_owned(), Known { client: client.clone(), until });
            client
        };
        client.map_err(|why| refused(format!("The client's document cannot be used: {why}.")))
    }

    async fn fetch(&self, id: &str, url: Url) -> Result<Client, String> {
        let request = Request::new(Method::GET, url).timeout(TIME).max_response(MAX_DOCUMENT);
        let request = request.header(ACCEPT, HeaderValue::from_static("application/json"));
        let answer = self.egress.send(request).await.map_err(|error| error.to_string().trim_end_matches('.').to_owned())?;
        if answer.status != StatusCode::OK {
            return Err(format!("its address answers {}", answer.status.as_u16()));
        }
        if answer.truncated {
            return Err(format!("it is larger than {MAX_DOCUMENT} bytes"));
        }
        let kind = answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.to_ascii_lowercase().contains("json") {
            return Err("what is there is not JSON".to_owned());
        }
        read(id, &answer.body)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "https://client.example/oauth/client.json";

    #[test]
    fn an_address_can_be_read_in_one_way_only() {
        assert!(address(ID).is_ok() && address("https://client.example:8443/c").is_ok());
        let long = format!("https://client.example/{}", "a".repeat(600));
        for wrong in [
            "https://",
            "https://client.example",
            "https://client.example/",
            "https://user@client.example/c",
            "https://user:x@client.example/c",
            "https://client.example/c#x",
            "https://client.example/c?x=1",
            "https://client.example/a/../c",
            "https://client.example/./c",
            "https://client.example/%2e%2e/c",
            "https://CLIENT.example/c",
            "HTTPS://client.example/c",
            "https://client.example:443/c",
            "https://client.example\\c",
            "https:///client.example/c",
            "https://127.1/c",
            "https://clïent.example/c",
            &long,
        ] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
        for (id, expected) in [(ID, true), ("HTTPS://x/y", true), ("http://client.example/c", false), ("tyc_1", false), ("https:", false)] {
            assert_eq!(is_address(id), expected, "{id}");
        }
    }

    #[test]
    fn a_document_speaks_for_its_own_address_only() {
        let uris = json!(["https://client.example/cb", "http://127.0.0.1/cb"]);
        let good =
            json!({"client_id": ID, "client_name": "Client", "redirect_uris": uris, "grant_types": ["authorization_code", "urn:other"]});
        let client = read(ID, good.to_string().as_bytes()).unwrap();
        assert_eq!((client.name.as_str(), client.redirect_uris.len(), client.is_confidential()), ("Client", 2, false));
        assert_eq!(client.vouched_by().as_deref(), Some("client.example"));
        for (change, word) in [
            (json!({"client_id": "https://client.example/other"}), "not its address"),
            (json!({"client_id": "https://client.example/oauth/client.json/"}), "not its address"),
            (json!({"client_id": null}), "not its address"),
            (json!({"client_secret": "s"}), "secret"),
            (json!({"token_endpoint_auth_method": "client_secret_basic"}), "token_endpoint_auth_method"),
            (json!({"redirect_uris": []}), "redirect_uris"),
            (json!({"redirect_uris": ["http://client.example/cb"]}), "https"),
            (json!({"redirect_uris": "https://client.example/cb"}), "not a client's"),
        ] {
            let mut document = good.clone();
            document.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            let why = read(ID, document.to_string().as_bytes()).unwrap_err();
            assert!(why.contains(word), "{change}: {why}");
        }
        for body in ["", "[]", "<html>", "null"] {
            assert!(read(ID, body.as_bytes()).is_err(), "{body}");
        }
    }

    #[tokio::test]
    async fn nothing_inside_is_asked() {
        let documents = Documents::new(Egress::new(egress::Config::default()).unwrap(), Clock::system());
        // Somebody is there, so that nothing but the guard keeps us from asking.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["127.0.0.1", "[::1]", "10.0.0.1", "169.254.169.254", "localhost", "[::ffff:7f00:1]", "100.64.0.1"] {
            let error = documents.client(&format!("https://{host}:{port}/c")).await.unwrap_err();
            assert!(matches!(&error, GrantError::Refused(Refusal::InvalidClient, why) if why.contains("is blocked")), "{host}: {error}");
        }
        assert!(listener.accept().is_err(), "nobody was called");
    }
}
