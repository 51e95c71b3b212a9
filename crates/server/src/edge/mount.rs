//! Every path works at `/x`, `/api/x` and `/preview/x`, with and without a trailing slash, without redirects.

use axum::extract::Request;
use http::Uri;

/// Rewrites the path of a request to the form in which routes are declared.
pub fn normalise(mut request: Request) -> Request {
    let path = request.uri().path();
    let plain = plain_path(path);
    if plain != path {
        let target = match request.uri().query() {
            Some(query) => format!("{plain}?{query}"),
            None => plain.to_owned(),
        };
        if let Ok(uri) = target.parse::<Uri>() {
            *request.uri_mut() = uri;
        }
    }
    request
}

fn plain_path(path: &str) -> &str {
    let mut path = path;
    while let Some(rest) = strip_mount(path, "/api") {
        path = rest;
    }
    path = strip_mount(path, "/preview").unwrap_or(path);
    if path.len() > 1 { path.strip_suffix('/').unwrap_or(path) } else { path }
}

fn strip_mount<'a>(path: &'a str, mount: &str) -> Option<&'a str> {
    match path.strip_prefix(mount)? {
        "" => Some("/"),
        rest if rest.starts_with('/') => Some(rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::plain_path;

    #[test]
    fn mounts_and_slashes_fold_to_one_path() {
        for (path, plain) in [
            ("/tools/call", "/tools/call"),
            ("/tools/call/", "/tools/call"),
            ("/api/tools/call", "/tools/call"),
            ("/api/api/tools/call/", "/tools/call"),
            ("/preview/tools/call", "/tools/call"),
            ("/api/preview/tools/call", "/tools/call"),
            ("/api", "/"),
            ("/", "/"),
            ("/apis", "/apis"),
            ("/previews/x", "/previews/x"),
            ("/x//", "/x/"),
        ] {
            assert_eq!(plain_path(path), plain, "{path}");
        }
    }
}
