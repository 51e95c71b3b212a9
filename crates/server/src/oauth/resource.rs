//! From the address of a resource (RFC 8707) to the surface that it means, and back.

use ::grants::{Refusal, Surface};
use url::Url;

use super::{OauthError, OauthResult};
use crate::App;
use crate::edge::mount::plain_path;

/// The surface that a `resource` names; the API as a whole where a client names none.
pub(crate) fn surface_of(app: &App, resource: Option<&str>) -> OauthResult<Option<Surface>> {
    let Some(resource) = resource else { return Ok(None) };
    let unknown = || {
        let public = app.options.public_url();
        let all = format!("`{public}/mcp`, `{public}/mcp/agents/{{agent_id}}` or `{public}` for the API as a whole");
        OauthError::new(Refusal::InvalidTarget, format!("`resource` is not served here; it must be {all}."))
    };
    surface_at(app.options.public_url(), resource).map(Some).ok_or_else(unknown)
}

fn surface_at(public: &str, resource: &str) -> Option<Surface> {
    let (public, url): (Url, Url) = (public.parse().ok()?, resource.parse().ok()?);
    let is_clean = resource.len() <= 2000 && url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    if !is_clean || url.origin() != public.origin() || !url.origin().is_tuple() {
        return None;
    }
    // What stands behind a `?` says how a surface is shown, not which it is.
    let path = url.path().strip_prefix(public.path().trim_end_matches('/'))?;
    Surface::named(plain_path(if path.is_empty() { "/" } else { path }))
}

/// The address of a surface.
pub(crate) fn resource_url(app: &App, surface: &Surface) -> String {
    format!("{}{surface}", app.options.public_url())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_one_of_ours_or_none() {
        for (public, resource, surface) in [
            ("https://yard.example", "https://yard.example", Some(Surface::Api)),
            ("https://yard.example", "https://yard.example/", Some(Surface::Api)),
            ("https://yard.example", "https://yard.example/api", Some(Surface::Api)),
            ("https://yard.example", "https://yard.example/mcp", Some(Surface::Mcp)),
            ("https://yard.example", "https://YARD.example:443/mcp/", Some(Surface::Mcp)),
            ("https://yard.example", "https://yard.example/api/mcp?mode=search", Some(Surface::Mcp)),
            ("https://yard.example", "https://yard.example/mcp/agents/7", Some(Surface::Agent("7".to_owned()))),
            ("https://host.example/yard", "https://host.example/yard/mcp", Some(Surface::Mcp)),
            ("https://host.example/yard", "https://host.example/mcp", None),
            ("https://host.example/yard", "https://host.example/yardx/mcp", None),
            ("https://yard.example", "http://yard.example/mcp", None),
            ("https://yard.example", "https://yard.example:8443/mcp", None),
            ("https://yard.example", "https://yard.example.evil.example/mcp", None),
            ("https://yard.example", "https://user@yard.example/mcp", None),
            ("https://yard.example", "https://yard.example/mcp#x", None),
            ("https://yard.example", "https://yard.example/tools", None),
            ("https://yard.example", "https://yard.example/mcp/agents/", None),
            ("https://yard.example", "/mcp", None),
            ("https://yard.example", "", None),
            ("https://yard.example", "urn:yard", None),
        ] {
            assert_eq!(surface_at(public, resource), surface, "{resource}");
        }
    }
}
