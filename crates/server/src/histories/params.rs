//! Filters in the query string: the reference's generated client sends them there, without a body.

use ::workflows::Family;
use axum::extract::FromRequestParts;
use document::IntoParams;
use http::request::Parts;
use kernel::suggest;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{HistoryQuery, Order, RefBody};
use crate::App;
use crate::edge::{ApiError, ApiResult, CONTEXT, Code};

/// Filters that stand in the query string. Ids and slugs of each level are taken too, under the names of references, such as
/// `workflow_variant_slug` or, repeated, `workflow_variant_slugs`. What the body says as well, the body decides.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it documents names that are read one by one")]
pub(crate) struct FilterParams {
    /// Part of the slug or name.
    name: Option<String>,
    description: Option<String>,
    /// JSON: what the row shows.
    #[param(example = "{\"is_application\": true}")]
    flags: Option<String>,
    /// JSON: what the row's tags contain.
    tags: Option<String>,
    include_archived: Option<bool>,
    /// `windowing.next` of the page before.
    next: Option<Uuid>,
    limit: Option<i64>,
    #[param(inline, required = false, value_type = crate::shapes::OrderWord)]
    order: Option<String>,
}

/// The names and values of a query string.
#[derive(Debug)]
pub(crate) struct FilterPairs(Vec<(String, String)>);

impl FromRequestParts<App> for FilterPairs {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> ApiResult<Self> {
        let text = parts.uri.query().unwrap_or_default();
        Ok(Self(url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()))
    }
}

const NAMES: [&str; 11] =
    ["name", "description", "flags", "tags", "meta", "include_archived", "next", "limit", "order", "newest", "oldest"];

impl FilterPairs {
    /// The query with what the body left out.
    pub(crate) fn fill(self, family: Family, mut query: HistoryQuery) -> ApiResult<HistoryQuery> {
        let mut named = [const { Vec::new() }; 3];
        for (name, value) in self.0 {
            let refused = |said: &str| ApiError::invalid("query_invalid", vec![json!("query"), json!(name)], said.to_owned());
            match name.as_str() {
                "name" => fill(&mut query.filter.name, value),
                "description" => fill(&mut query.filter.description, value),
                "flags" => fill(&mut query.filter.flags, object(&value).ok_or_else(|| no_json(&name, "a JSON object"))?),
                "tags" => fill(&mut query.filter.tags, serde_json::from_str(&value).map_err(|_| no_json(&name, "JSON"))?),
                "meta" => {}
                "include_archived" => fill(&mut query.include_archived, truth(&value).ok_or_else(|| refused("expected true or false"))?),
                "next" => fill(&mut query.windowing.next, value.parse().map_err(|_| refused("expected an id"))?),
                "limit" => fill(&mut query.windowing.limit, value.parse().map_err(|_| refused("expected a number"))?),
                "order" => {
                    fill(&mut query.windowing.order, Order::read(&value).ok_or_else(|| refused("expected `ascending` or `descending`"))?);
                }
                "newest" => fill(&mut query.windowing.newest, value),
                "oldest" => fill(&mut query.windowing.oldest, value),
                other => match own_name(family, other) {
                    Some((level @ 0..3, "id" | "ids")) => {
                        named[level].push(RefBody::id(value.parse().map_err(|_| refused("expected an id"))?));
                    }
                    Some((level @ 0..3, "slug" | "slugs")) => named[level].push(RefBody::slug(value)),
                    Some((2, "version" | "versions")) => query.versions.push(value.parse().map_err(|_| refused("expected a number"))?),
                    _ if CONTEXT.contains(&other) => {}
                    _ => return Err(refused(&format!("unknown filter.{}", suggest::did_you_mean(other, NAMES)))),
                },
            }
        }
        let [artifacts, variants, revisions] = named;
        for (given, named) in
            [(&mut query.artifact_refs, artifacts), (&mut query.variant_refs, variants), (&mut query.revision_refs, revisions)]
        {
            if given.is_empty() {
                *given = named;
            }
        }
        Ok(query)
    }
}

/// A text of any form fits the document, so what it holds is refused in words.
fn no_json(name: &str, wanted: &str) -> ApiError {
    ApiError::new(Code::QueryInvalid, format!("`{name}` must be {wanted}."))
}

/// What a name says of which level, artifact, variant or revision, where it begins with the family's own.
fn own_name(family: Family, name: &str) -> Option<(usize, &str)> {
    let rest = name.strip_prefix(family.name())?;
    let deeper = |level: &str| rest.strip_prefix(level);
    deeper("_variant_")
        .map(|rest| (1, rest))
        .or_else(|| deeper("_revision_").map(|rest| (2, rest)))
        .or_else(|| deeper("_").map(|rest| (0, rest)))
}

/// The body wins, and of several values the first.
fn fill<T>(slot: &mut Option<T>, value: T) {
    slot.get_or_insert(value);
}

fn object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ApiResult<HistoryQuery> {
        let pairs = url::form_urlencoded::parse(text.as_bytes()).into_owned().collect();
        let mut body = HistoryQuery::default();
        body.filter.name = Some("body".to_owned());
        FilterPairs(pairs).fill(Family::Application, body)
    }

    #[test]
    fn a_query_string_fills_what_the_body_left_out() {
        let id = Uuid::nil();
        let text = format!(
            "name=query&limit=1&tags=%7B%22a%22%3A1%7D&application_id={id}&application_variant_slugs=x&application_variant_slugs=y\
             &application_revision_slug=z&application_revision_version=3&project_id=p&include_archived=True&order=ascending&meta=%7B%7D"
        );
        let query = read(&text).unwrap();
        assert_eq!((query.filter.name.as_deref(), query.windowing.limit, query.include_archived), (Some("body"), Some(1), Some(true)));
        assert_eq!((query.filter.tags, query.windowing.order), (Some(json!({"a": 1})), Some(Order::Ascending)));
        assert_eq!((query.artifact_refs[0].id, query.variant_refs.len(), query.revision_refs[0].slug.as_deref()), (Some(id), 2, Some("z")));
        assert_eq!(query.versions, [3]);
        for wrong in [
            "limit=many",
            "application_version=1",
            "flags=%5B%5D",
            "next=x",
            "nme=x",
            "workflow_slug=x",
            "order=sideways",
            "application_id=x",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
