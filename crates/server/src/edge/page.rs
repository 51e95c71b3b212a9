//! Pages for people, each with a policy that runs nothing but what is written in our templates.

use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use http::StatusCode;
use uuid::Uuid;

use super::ApiError;

/// A page whose `<style>` and `<script>` carry the nonce. What else it may load or send is in `also`, in the words of the policy.
pub(crate) fn html<T: Template>(status: StatusCode, also: &str, made: impl FnOnce(String) -> T) -> Response {
    framed(status, also, "'none'", made)
}

/// The same, in a frame of these sites, in the words of the policy.
pub(crate) fn framed<T: Template>(status: StatusCode, also: &str, ancestors: &str, made: impl FnOnce(String) -> T) -> Response {
    let nonce = Uuid::new_v4().simple().to_string();
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; base-uri 'none'; frame-ancestors {ancestors}; {also}"
    );
    let headers = [
        ("content-security-policy", policy.as_str()),
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
    ];
    match made(nonce).render() {
        Ok(html) => (status, headers, Html(html)).into_response(),
        Err(error) => ApiError::internal(&error).into_response(),
    }
}
