//! What clients post: a form, in which nothing may come twice, and the client's own name and secret.

use std::collections::BTreeMap;

use ::grants::{Client, ClientSecret, Refusal};
use axum::extract::{FromRequest, Request};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use percent_encoding::percent_decode_str;

use super::{OauthError, OauthResult};
use crate::App;
use crate::edge::extract::read_body;

/// Forms are short.
const FORM_LIMIT: usize = 16 << 10;
const FORM_TYPE: &str = "application/x-www-form-urlencoded";

fn wrong(why: impl Into<String>) -> OauthError {
    OauthError::new(Refusal::InvalidRequest, why)
}

/// The fields of a request. An empty one is as good as none (RFC 6749, 3.1).
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(BTreeMap<String, String>);

impl Fields {
    /// Reads a form or a query string.
    pub(crate) fn read(text: &[u8]) -> OauthResult<Self> {
        let mut fields = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(text) {
            if fields.insert(name.clone().into_owned(), value.into_owned()).is_some() {
                let shown: String = name.chars().take(40).collect();
                return Err(wrong(format!("`{shown}` comes more than once.")));
            }
        }
        fields.retain(|_, value| !value.is_empty());
        Ok(Self(fields))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The same with one more.
    pub(crate) fn with(mut self, name: &str, value: Option<&str>) -> Self {
        self.0.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        self
    }

    pub(crate) fn need(&self, name: &str) -> OauthResult<&str> {
        self.get(name).ok_or_else(|| wrong(format!("`{name}` is missing.")))
    }
}

/// A form that a client posts.
#[derive(Debug)]
pub(crate) struct ClientForm {
    pub(crate) fields: Fields,
    headers: HeaderMap,
}

impl FromRequest<App> for ClientForm {
    type Rejection = OauthError;

    async fn from_request(request: Request, _: &App) -> OauthResult<Self> {
        let headers = request.headers().clone();
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let body = read_body(request, FORM_LIMIT).await?;
        if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(FORM_TYPE) && !body.is_empty() {
            return Err(wrong(format!("Send a form with `Content-Type: {FORM_TYPE}`.")));
        }
        Ok(Self { fields: Fields::read(&body)?, headers })
    }
}

impl ClientForm {
    /// The client that posted it, proven by its secret where it has one.
    pub(crate) async fn client(&self, app: &App) -> OauthResult<Client> {
        let (id, secret) = credentials(self.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()), &self.fields)?;
        Ok(app.grants.prove(&id, &ClientSecret::new(secret)).await?)
    }
}

/// The client's name and secret: in the header, or in the form, never in both.
fn credentials(header: Option<&str>, fields: &Fields) -> OauthResult<(String, Option<String>)> {
    let (named, secret) = (fields.get("client_id"), fields.get("client_secret"));
    let Some(header) = header else { return Ok((fields.need("client_id")?.to_owned(), secret.map(str::to_owned))) };
    let unknown = || OauthError::new(Refusal::InvalidClient, "Send the client id and secret as `Authorization: Basic`, or in the form.");
    let (scheme, encoded) = header.trim().split_once(' ').ok_or_else(unknown)?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(unknown());
    }
    let decoded = STANDARD.decode(encoded.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(unknown)?;
    let (id, password) = decoded.split_once(':').ok_or_else(unknown)?;
    let plain = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8().ok().map(std::borrow::Cow::into_owned);
    let (id, password) = plain(id).zip(plain(password)).ok_or_else(unknown)?;
    if secret.is_some() || named.is_some_and(|named| named != id) {
        return Err(wrong("The client is named twice, in the header and in the form; send one of them."));
    }
    Ok((id, Some(password).filter(|password| !password.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Fields {
        Fields::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn nothing_comes_twice() {
        assert_eq!(fields("a=1&b=&c=2").get("a"), Some("1"));
        assert_eq!(fields("a=1&b=").get("b"), None);
        for twice in ["a=1&a=2", "a=1&a=1", "a=&a=1", "%61=1&a=1"] {
            assert!(matches!(Fields::read(twice.as_bytes()), Err(OauthError::Refused(Refusal::InvalidRequest, _))), "{twice}");
        }
    }

    #[test]
    fn a_client_names_itself_in_one_place() {
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        let read = |header: Option<&str>, form: &str| credentials(header, &fields(form)).ok();
        let pair = |id: &str, secret: Option<&str>| Some((id.to_owned(), secret.map(str::to_owned)));
        assert_eq!(read(None, "client_id=a"), pair("a", None));
        assert_eq!(read(None, "client_id=a&client_secret=s"), pair("a", Some("s")));
        assert_eq!(read(Some(&basic("a:s")), ""), pair("a", Some("s")));
        assert_eq!(read(Some(&basic("a:s")), "client_id=a"), pair("a", Some("s")));
        assert_eq!(read(Some(&basic("a%3Ab:s+%2B")), ""), pair("a:b", Some("s +")));
        assert_eq!(read(Some(&basic("a:")), ""), pair("a", None));
        for (header, form) in [
            (None, ""),
            (None, "client_secret=s"),
            (Some(basic("a:s")), "client_id=b"),
            (Some(basic("a:s")), "client_secret=s"),
            (Some(basic("a")), ""),
            (Some("Basic !".to_owned()), "client_id=a"),
            (Some("Bearer x".to_owned()), "client_id=a"),
            (Some(basic("a:%FF")), ""),
        ] {
            assert_eq!(read(header.as_deref(), form), None, "{header:?} {form}");
        }
    }
}
