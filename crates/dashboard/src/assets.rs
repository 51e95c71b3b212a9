//! Styles, scripts and the logo. Their addresses hold a digest of what they are, so that browsers keep them.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("../assets/style.css");
const SCRIPT: &str = include_str!("../assets/app.js");
const LOGO: &str = include_str!("../assets/logo.svg");

static STYLE_NAME: LazyLock<String> = LazyLock::new(|| named("style", STYLE, "css"));
static SCRIPT_NAME: LazyLock<String> = LazyLock::new(|| named("app", SCRIPT, "js"));

fn named(stem: &str, text: &str, ending: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let digest: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("/app/-/{stem}.{digest}.{ending}")
}

pub(crate) fn style_path() -> &'static str {
    &STYLE_NAME
}

pub(crate) fn script_path() -> &'static str {
    &SCRIPT_NAME
}

pub(crate) async fn serve(Path(name): Path<String>) -> Response {
    let is = |path: &str| path.strip_prefix("/app/-/") == Some(&name);
    let (kind, text) = match name.as_str() {
        _ if is(&STYLE_NAME) => ("text/css; charset=utf-8", STYLE),
        _ if is(&SCRIPT_NAME) => ("text/javascript; charset=utf-8", SCRIPT),
        "logo.svg" => ("image/svg+xml", LOGO),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, text).into_response()
}
