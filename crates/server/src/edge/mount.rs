//! Every path works at `/x`, `/api/x` and `/preview/x`, with and without a trailing slash, without redirects. Only `/metrics` is nowhere
//! else, so that one rule of a proxy closes it. Composio's API of `/v3.1` answers at `/v3` too, where its SDKs look for parts of it.

use std::borrow::Cow;

use axum::extract::Request;
use http::Uri;

const METRICS: &str = "/metrics";
/// Where resources describe themselves, each behind this.
pub(crate) const RESOURCE: &str = "/.well-known/oauth-protected-resource";

/// The path as it was asked for, where it is not the one that a route is declared with.
#[derive(Clone, Debug)]
pub(crate) struct AskedPath(pub(crate) String);

/// Rewrites the path of a request to the form in which routes are declared.
pub fn normalise(mut request: Request) -> Request {
    let path = request.uri().path();
    let plain = well_known(path).unwrap_or_else(|| of_older_version(plain_path(path)));
    if plain != path && plain != METRICS {
        let asked = AskedPath(path.trim_end_matches('/').to_owned());
        let target = match request.uri().query() {
            Some(query) => format!("{plain}?{query}"),
            None => plain.into_owned(),
        };
        if let Ok(uri) = target.parse::<Uri>() {
            *request.uri_mut() = uri;
            request.extensions_mut().insert(asked);
        }
    }
    request
}

/// What clients look for behind the path of a server or of a resource: one document describes the server, whatever path stands behind it, and
/// a resource is described under every mount.
fn well_known(path: &str) -> Option<Cow<'_, str>> {
    for server in ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"] {
        if path.strip_prefix(server).is_some_and(|rest| rest.starts_with('/')) {
            return Some(server.into());
        }
    }
    let resource = path.strip_prefix(RESOURCE)?.starts_with('/').then(|| plain_path(&path[RESOURCE.len()..]))?;
    Some(format!("{RESOURCE}{}", resource.trim_end_matches('/')).into())
}

/// The newer path of what Composio's SDKs ask an older version for.
fn of_older_version(path: &str) -> Cow<'_, str> {
    match path.strip_prefix("/v3") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{}{rest}", crate::composio_api::PREFIX).into(),
        _ => path.into(),
    }
}

pub(crate) fn plain_path(path: &str) -> &str {
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
    use super::{of_older_version, plain_path, well_known};

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

    #[test]
    fn an_older_version_is_the_newer_one() {
        for (path, newer) in [("/v3/tools", "/v3.1/tools"), ("/v3.1/tools", "/v3.1/tools"), ("/v3", "/v3.1"), ("/v30/x", "/v30/x")] {
            assert_eq!(of_older_version(path), newer, "{path}");
        }
    }

    #[test]
    fn documents_are_found_behind_paths() {
        for (path, plain) in [
            ("/.well-known/oauth-authorization-server", None),
            ("/.well-known/oauth-authorization-server/mcp", Some("/.well-known/oauth-authorization-server")),
            ("/.well-known/openid-configuration/yard/", Some("/.well-known/openid-configuration")),
            ("/.well-known/oauth-authorization-servers", None),
            ("/.well-known/oauth-protected-resource", None),
            ("/.well-known/oauth-protected-resource/", Some("/.well-known/oauth-protected-resource")),
            ("/.well-known/oauth-protected-resource/mcp", Some("/.well-known/oauth-protected-resource/mcp")),
            ("/.well-known/oauth-protected-resource/api/mcp/", Some("/.well-known/oauth-protected-resource/mcp")),
            ("/.well-known/oauth-protected-resource/preview/mcp/agents/7", Some("/.well-known/oauth-protected-resource/mcp/agents/7")),
            ("/tools", None),
        ] {
            assert_eq!(well_known(path).as_deref(), plain, "{path}");
        }
    }
}
