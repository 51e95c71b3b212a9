mod challenge;
mod route;
mod verify;

use http::{HeaderMap, HeaderName, HeaderValue};
use triggers::Incoming;

const NOW: i64 = 1_700_000_000;
const URL: &str = "https://toolyard.test/hooks/1";

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

fn post<'a>(headers: &'a HeaderMap, body: &'a [u8]) -> Incoming<'a> {
    Incoming { method: "POST", url: URL, query: &[], headers, body }
}
