//! Getting documents: through the guard, within limits, and only from the web.

use std::collections::BTreeMap;
use std::time::Duration;

use egress::{Egress, Redirects, Request, Retry};
use http::header::{ACCEPT, HeaderValue};
use http::{Method, StatusCode};
use imports::ImportError;
use serde_json::Value;
use url::Url;

use crate::document::{Bundle, parse};

/// The largest document.
pub(crate) const MAX_DOCUMENT: usize = 32 << 20;
/// The largest document that another refers to, all of them together, and how many.
const MAX_OTHER: usize = 8 << 20;
const MAX_OTHERS: usize = 24 << 20;
const MAX_FILES: usize = 40;
const MAX_DISCOVERIES: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(20);
const MAX_REDIRECTS: u8 = 5;

/// A document and where it came from, after redirects.
pub(crate) async fn document(egress: &Egress, url: &Url, most: usize) -> Result<(Url, String), ImportError> {
    if !matches!(url.scheme(), "https" | "http") || !url.username().is_empty() || url.password().is_some() {
        return Err(ImportError::Invalid("the address must be an `https` address without a user name or password".to_owned()));
    }
    let request = Request::new(Method::GET, url.clone())
        .timeout(TIMEOUT)
        .retry(Retry::Safe)
        .redirects(Redirects::Follow(MAX_REDIRECTS))
        .max_response(most)
        .header(ACCEPT, HeaderValue::from_static("application/json, application/yaml, text/yaml, */*;q=0.5"));
    let response = egress.send(request).await.map_err(|error| ImportError::Upstream(error.to_string()))?;
    match response.status {
        StatusCode::OK => {}
        status if status.is_server_error() => return Err(ImportError::UpstreamServer(status.as_u16())),
        status => return Err(ImportError::Upstream(format!("the address answered {}", status.as_u16()))),
    }
    if response.truncated {
        return Err(ImportError::Invalid(format!("the document is larger than {} MiB", most >> 20)));
    }
    let text = String::from_utf8(response.body.into()).map_err(|_| ImportError::Invalid("the document is not UTF-8".to_owned()))?;
    Ok((response.url, text))
}

/// Adds the documents that those of the bundle refer to. One that cannot be had is told, and what needs it is skipped later.
pub(crate) async fn others(egress: &Egress, bundle: &mut Bundle) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut wanted = bundle.foreign();
    let (mut files, mut left) = (0, MAX_OTHERS);
    while let Some(next) = wanted.pop() {
        let url = match next {
            Ok(url) if bundle.holds(&url) => continue,
            Ok(url) => url,
            Err(why) => {
                warnings.push(why);
                continue;
            }
        };
        files += 1;
        if files > MAX_FILES {
            warnings.push(format!("the document refers to more than {MAX_FILES} others; the rest is not read"));
            break;
        }
        match other(egress, &url, left.min(MAX_OTHER)).await {
            Ok((from, size, value)) => {
                left = left.saturating_sub(size);
                bundle.add(Some(from), value);
                bundle.also(&url);
                wanted.extend(bundle.foreign());
            }
            Err(why) => warnings.push(format!("`{url}` was not read: {why}")),
        }
    }
    warnings
}

async fn other(egress: &Egress, url: &Url, most: usize) -> Result<(Url, usize, Value), String> {
    let (from, text) = document(egress, url, most).await.map_err(|error| error.to_string())?;
    let size = text.len();
    let value = tokio::task::spawn_blocking(move || parse(&text)).await.map_err(|error| error.to_string())??;
    Ok((from, size, value))
}

/// The OpenID Connect discovery documents that security schemes name.
pub(crate) async fn discoveries(egress: &Egress, schemes: &Value) -> BTreeMap<String, Value> {
    let urls =
        schemes.as_object().into_iter().flat_map(|schemes| schemes.values()).filter_map(|scheme| scheme["openIdConnectUrl"].as_str());
    let mut found = BTreeMap::new();
    for text in urls.take(MAX_DISCOVERIES) {
        let Ok(url) = text.parse::<Url>() else { continue };
        if let Ok((_, body)) = document(egress, &url, 1 << 20).await
            && let Ok(value) = parse(&body)
        {
            found.insert(text.to_owned(), value);
        }
    }
    found
}
