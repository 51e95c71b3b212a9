//! What a token opens: the API as a whole, or one of its MCP surfaces and nothing else (RFC 8707).

use std::fmt;

const MCP: &str = "/mcp";
const AGENTS: &str = "/mcp/agents/";
/// Numbers and UUIDs are shorter.
const MAX_AGENT: usize = 36;

/// A part of the API that a token can be limited to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Surface {
    Api,
    Mcp,
    /// The tools of an agent, by the number or UUID that its address has.
    Agent(String),
}

impl Surface {
    /// The surface at a path, which has no mount and no slash at its end; nothing for a path that cannot be named as one.
    pub fn named(path: &str) -> Option<Self> {
        match path {
            "" | "/" => Some(Self::Api),
            MCP => Some(Self::Mcp),
            _ => {
                let id = path.strip_prefix(AGENTS)?;
                let is_id = (1..=MAX_AGENT).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
                is_id.then(|| Self::Agent(id.to_ascii_lowercase()))
            }
        }
    }

    /// The surface that a request for this path reaches.
    pub fn reached(path: &str) -> Self {
        Self::named(path).unwrap_or(Self::Api)
    }

    /// Whether a token for this surface opens another.
    pub fn opens(&self, other: &Self) -> bool {
        *self == Self::Api || self == other
    }

    /// The path of the surface; empty for the API as a whole.
    pub fn path(&self) -> String {
        match self {
            Self::Api => String::new(),
            Self::Mcp => MCP.to_owned(),
            Self::Agent(id) => format!("{AGENTS}{id}"),
        }
    }
}

impl fmt::Display for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_surface_or_nothing() {
        for (path, surface) in [
            ("", Some(Surface::Api)),
            ("/", Some(Surface::Api)),
            ("/mcp", Some(Surface::Mcp)),
            ("/mcp/agents/7", Some(Surface::Agent("7".to_owned()))),
            ("/mcp/agents/0199A", Some(Surface::Agent("0199a".to_owned()))),
            ("/mcp/", None),
            ("/mcpx", None),
            ("/MCP", None),
            ("/tools", None),
            ("/mcp/agents/", None),
            ("/mcp/agents/../7", None),
            ("/mcp/agents/%37", None),
            ("/mcp/agents/7/x", None),
        ] {
            assert_eq!(Surface::named(path), surface, "{path}");
        }
    }

    #[test]
    fn a_token_for_one_surface_opens_no_other() {
        let (one, two) = (Surface::Agent("1".to_owned()), Surface::Agent("2".to_owned()));
        for (held, reached, opens) in [
            (&Surface::Api, &Surface::Mcp, true),
            (&Surface::Api, &one, true),
            (&Surface::Mcp, &Surface::Mcp, true),
            (&Surface::Mcp, &Surface::Api, false),
            (&Surface::Mcp, &one, false),
            (&one, &Surface::Mcp, false),
            (&one, &one, true),
            (&one, &two, false),
        ] {
            assert_eq!(held.opens(reached), opens, "{held:?} {reached:?}");
        }
        assert_eq!(Surface::reached("/tools/call"), Surface::Api);
        assert_eq!(Surface::reached("/mcp/agents/1"), one);
    }
}
