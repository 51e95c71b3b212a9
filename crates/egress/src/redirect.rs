//! Where a redirect leads and what of the request may go there.

use http::header::{self, HeaderMap, HeaderName};
use http::{Method, StatusCode};
use url::Url;

use crate::{EgressError, Redirects, Request, Response};

/// Everything else may be a credential under some name, so only these cross to another origin.
const HARMLESS: [HeaderName; 8] = [
    header::ACCEPT,
    header::ACCEPT_LANGUAGE,
    header::CONTENT_LANGUAGE,
    header::CONTENT_TYPE,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::RANGE,
    header::USER_AGENT,
];

const ABOUT_THE_BODY: [HeaderName; 4] =
    [header::CONTENT_ENCODING, header::CONTENT_LANGUAGE, header::CONTENT_LOCATION, header::CONTENT_TYPE];

/// The URL to go on to after `hops` redirects, or `None` if the answer is to be handed back.
pub(crate) fn target(request: &Request, response: &Response, hops: u8) -> Result<Option<Url>, EgressError> {
    let Redirects::Follow(limit) = request.redirects else { return Ok(None) };
    if !matches!(response.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers.get(header::LOCATION) else { return Ok(None) };
    let to = std::str::from_utf8(location.as_bytes()).ok().and_then(|location| request.url.join(location).ok());
    let Some(to) = to else {
        return Err(EgressError::BadUrl { reason: "it redirects to something that is not a URL" });
    };
    if hops >= limit {
        return Err(EgressError::TooManyRedirects { host: host(&to), limit });
    }
    if request.url.scheme() == "https" && to.scheme() == "http" {
        return Err(EgressError::Downgrade { from: host(&request.url) });
    }
    Ok(Some(to))
}

/// Turns the request into the one that the redirect asks for.
pub(crate) fn follow(request: &mut Request, status: StatusCode, to: Url) {
    if becomes_get(&request.method, status) {
        request.method = Method::GET;
        request.body.clear();
        for name in ABOUT_THE_BODY {
            request.headers.remove(name);
        }
    }
    if !same_origin(&request.url, &to) {
        request.headers = harmless(&request.headers);
    }
    request.url = to;
}

fn becomes_get(method: &Method, status: StatusCode) -> bool {
    match status {
        StatusCode::SEE_OTHER => method != Method::HEAD,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => method == Method::POST,
        _ => false,
    }
}

fn same_origin(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme() && a.host() == b.host() && a.port_or_known_default() == b.port_or_known_default()
}

fn harmless(headers: &HeaderMap) -> HeaderMap {
    let kept = headers.iter().filter(|(name, value)| HARMLESS.contains(name) && !value.is_sensitive());
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderValue;

    use super::*;

    fn request(method: Method) -> Request {
        let mut accept = HeaderValue::from_static("text/x-secret");
        accept.set_sensitive(true);
        Request::new(method, "https://a.example/from?x=1".parse().unwrap())
            .header(header::AUTHORIZATION, HeaderValue::from_static("Bearer secret"))
            .header(HeaderName::from_static("x-api-key"), HeaderValue::from_static("secret"))
            .header(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"))
            .header(header::ACCEPT, HeaderValue::from_static("text/html"))
            .header(header::ACCEPT, accept)
            .body("body")
            .redirects(Redirects::Follow(2))
    }

    fn redirect(status: u16, location: &'static str) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert(header::LOCATION, HeaderValue::from_static(location));
        let url = "https://a.example/".parse().unwrap();
        Response { status: StatusCode::from_u16(status).unwrap(), headers, body: Bytes::new(), truncated: false, url }
    }

    fn names(request: &Request) -> Vec<&str> {
        request.headers.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn finds_the_target() {
        let to = |status, location, hops| {
            target(&request(Method::GET), &redirect(status, location), hops).map(|to| to.map(String::from)).map_err(|error| error.code())
        };
        assert_eq!(to(302, "/to", 1), Ok(Some("https://a.example/to".to_owned())));
        assert_eq!(to(308, "//b.example", 0), Ok(Some("https://b.example/".to_owned())));
        assert_eq!(to(304, "/to", 0), Ok(None));
        assert_eq!(to(200, "/to", 0), Ok(None));
        assert_eq!(to(302, "/to", 2), Err("egress_too_many_redirects"));
        assert_eq!(to(302, "http://a.example/", 0), Err("egress_downgrade"));
        assert_eq!(to(302, "https://[", 0), Err("egress_bad_url"));
        let unfollowed = request(Method::GET).redirects(Redirects::None);
        assert_eq!(target(&unfollowed, &redirect(302, "/to"), 0), Ok(None));
    }

    #[test]
    fn turns_into_a_get_where_the_standard_says_so() {
        let cases = [
            (Method::POST, 301, Method::GET, ""),
            (Method::POST, 302, Method::GET, ""),
            (Method::PUT, 302, Method::PUT, "body"),
            (Method::PUT, 303, Method::GET, ""),
            (Method::HEAD, 303, Method::HEAD, "body"),
            (Method::POST, 307, Method::POST, "body"),
            (Method::POST, 308, Method::POST, "body"),
        ];
        for (method, status, expected, body) in cases {
            let mut request = request(method);
            follow(&mut request, StatusCode::from_u16(status).unwrap(), "https://a.example/to".parse().unwrap());
            assert_eq!((&request.method, &request.body[..]), (&expected, body.as_bytes()), "{status}");
            assert_eq!(request.headers.contains_key(header::CONTENT_TYPE), !body.is_empty(), "{status}");
        }
    }

    #[test]
    fn credentials_stay_with_their_origin() {
        for (to, kept) in [
            ("https://a.example/to", vec!["authorization", "x-api-key", "content-type", "accept", "accept"]),
            ("https://a.example:443/to", vec!["authorization", "x-api-key", "content-type", "accept", "accept"]),
            ("https://a.example:444/to", vec!["content-type", "accept"]),
            ("https://b.a.example/to", vec!["content-type", "accept"]),
        ] {
            let mut request = request(Method::GET);
            follow(&mut request, StatusCode::TEMPORARY_REDIRECT, to.parse().unwrap());
            assert_eq!(names(&request), kept, "{to}");
        }
    }
}
