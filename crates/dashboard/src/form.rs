//! What a form sent.

use axum::extract::FromRequestParts;
use http::StatusCode;
use http::request::Parts;

use crate::refusal::Refusal;

/// The fields of a form that came from a page of ours; `server` has checked that it did.
#[derive(Clone, Debug, Default)]
pub struct Form(pub Vec<(String, String)>);

impl Form {
    /// The text of a field, without the space around it; empty where there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.raw(name).trim()
    }

    /// The text of a field as it was typed.
    pub(crate) fn raw(&self, name: &str) -> &str {
        self.0.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value)
    }

    /// The text of a field, if something was typed.
    pub(crate) fn some(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// Every value of a field, as of boxes that are ticked.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(field, _)| field == name)
    }
}

impl<S: Sync> FromRequestParts<S> for Form {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let form = parts.extensions.remove::<Self>();
        form.ok_or_else(|| Refusal::new(StatusCode::BAD_REQUEST, "The form is empty."))
    }
}
