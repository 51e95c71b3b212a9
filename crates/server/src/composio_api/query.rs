//! Query strings as Composio's SDKs write them: a list is one text with commas or a name that is repeated, a map is a name with brackets.

use std::collections::BTreeMap;

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::de::DeserializeOwned;

use crate::App;
use crate::edge::{ApiError, QueryOf};

/// Values from such a query string. Fields are `Option<String>`: a list is one text with commas, a map a text of JSON.
#[derive(Debug)]
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<App> for Asked<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let plain = plain(parts.uri.query().unwrap_or_default());
        let uri = format!("/?{plain}").parse().unwrap_or_default();
        let whole = std::mem::replace(&mut parts.uri, uri);
        let read = QueryOf::from_request_parts(parts, app).await;
        parts.uri = whole;
        read.map(|QueryOf(value)| Self(value))
    }
}

/// The same query with each name once.
fn plain(query: &str) -> String {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut maps: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
            // `tags[]=a` is a list.
            Some((list, "")) => add(&mut texts, list, &value),
            Some((map, key)) => {
                maps.entry(map.to_owned()).or_default().insert(key.to_owned(), value.into_owned());
            }
            None => add(&mut texts, &name, &value),
        }
    }
    texts.extend(maps.into_iter().map(|(name, map)| (name, serde_json::json!(map).to_string())));
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(texts).finish()
}

fn add(texts: &mut BTreeMap<String, String>, name: &str, value: &str) {
    let text = texts.entry(name.to_owned()).or_default();
    if !text.is_empty() {
        text.push(',');
    }
    text.push_str(value);
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn lists_and_maps_are_one_text_each() {
        for (query, one) in [
            ("limit=5.0&user_ids=a,b", "limit=5.0&user_ids=a%2Cb"),
            ("tags=a&tags=b", "tags=a%2Cb"),
            ("tags[]=a&tags[]=b", "tags=a%2Cb"),
            (
                "toolkit_versions[github]=1&toolkit_versions[gmail]=2",
                "toolkit_versions=%7B%22github%22%3A%221%22%2C%22gmail%22%3A%222%22%7D",
            ),
            ("toolkit_versions=latest", "toolkit_versions=latest"),
            ("", ""),
        ] {
            assert_eq!(plain(query), one, "{query}");
        }
    }
}
