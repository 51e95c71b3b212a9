//! What the routes of this surface may fail with, for the document.

use std::collections::BTreeMap;

use utoipa::IntoResponses;
use utoipa::openapi::{Content, Ref, RefOr, ResponseBuilder, response};

/// The failures of every route of this surface. A route names one more itself, with the body, because that is what puts the body's schema
/// into the document.
pub(super) struct ModelFailures;

const FAILURES: [(&str, &str); 7] = [
    ("400", "The messages, the input or the tools do not fit"),
    ("401", "No key, or a bad one"),
    ("403", "The key lacks a permission, or the project does not allow it"),
    ("404", "No such agent"),
    ("422", "Not of the documented shape, or the run failed or took too long for an answer in one piece"),
    ("424", "The agent's model failed"),
    ("429", "The project has as many runs as it may"),
];

impl IntoResponses for ModelFailures {
    fn responses() -> BTreeMap<String, RefOr<response::Response>> {
        let failure = |(status, description): (&str, &str)| {
            let content = Content::new(Some(Ref::from_schema_name("ModelFailure")));
            let response = ResponseBuilder::new().description(description).content("application/json", content).build();
            (status.to_owned(), RefOr::T(response))
        };
        FAILURES.into_iter().map(failure).collect()
    }
}
