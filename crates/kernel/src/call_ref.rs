//! Call refs: the name of a tool on the wire, parsed once into what it means.

use std::fmt;
use std::str::FromStr;

/// The provider name that is reserved for our own operations. Existing runners and SDKs know it by this name.
pub const RESERVED_PROVIDER: &str = "agenta";

/// Finds actions of connected integrations, for runners that name them in arguments.
pub const GATEWAY_SEARCH: &str = "gateway.search";
/// Runs the action that its arguments name.
pub const GATEWAY_RUN: &str = "gateway.run";

/// No ref that means anything is longer.
const MAX: usize = 1024;

/// What a call is aimed at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CallRef {
    /// `tools.{provider}.{integration}.{action}.{connection}`
    Gateway { provider: String, integration: String, action: String, connection: String },
    /// `tools.agenta.{op}`
    Reserved { op: String },
    /// `workflow.variant.{slug}[.{version}]`
    Variant { slug: String, version: Option<String> },
    /// `workflow.environment.{environment}.{slug}`
    Environment { environment: String, slug: String },
}

/// Why a name is not a call ref.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallRefError {
    #[error("Invalid tool slug format: {0}. Expected: tools.{{provider}}.{{integration}}.{{action}}.{{connection}}")]
    Gateway(String),
    #[error("Invalid characters in tool slug segment: '{0}'")]
    Segment(String),
    #[error(
        "Invalid workflow tool call_ref: {0}. Expected: workflow.variant.{{slug}}[.{{version}}] or workflow.environment.{{environment}}.{{slug}}"
    )]
    Workflow(String),
}

impl FromStr for CallRef {
    type Err = CallRefError;

    /// `__` stands for `.` only when the name holds no dot.
    fn from_str(name: &str) -> Result<Self, CallRefError> {
        if name.len() > MAX {
            return Err(CallRefError::Gateway(shown(name)));
        }
        let dotted = if name.contains('.') { name.to_owned() } else { name.replace("__", ".") };
        // Runners know these two without a provider in front.
        if dotted == GATEWAY_SEARCH || dotted == GATEWAY_RUN {
            return Ok(Self::Reserved { op: dotted });
        }
        let parts: Vec<&str> = dotted.split('.').collect();
        match parts[..] {
            ["workflow", ..] => workflow(&dotted, &parts),
            ["tools", RESERVED_PROVIDER, ref op @ ..] if !op.is_empty() => {
                op.iter().try_for_each(|part| segment(part).map(|_| ()))?;
                Ok(Self::Reserved { op: op.join(".") })
            }
            ["tools", provider, integration, action, connection] => Ok(Self::Gateway {
                provider: segment(provider)?,
                integration: segment(integration)?,
                action: segment(action)?,
                connection: segment(connection)?,
            }),
            _ => Err(CallRefError::Gateway(shown(name))),
        }
    }
}

fn workflow(dotted: &str, parts: &[&str]) -> Result<CallRef, CallRefError> {
    let operand = |part: &str| segment(part).map_err(|_| CallRefError::Workflow(shown(dotted)));
    match parts[1..] {
        ["variant", slug] => Ok(CallRef::Variant { slug: operand(slug)?, version: None }),
        ["variant", slug, version] => Ok(CallRef::Variant { slug: operand(slug)?, version: Some(operand(version)?) }),
        ["environment", environment, slug] => Ok(CallRef::Environment { environment: operand(environment)?, slug: operand(slug)? }),
        _ => Err(CallRefError::Workflow(shown(dotted))),
    }
}

fn segment(text: &str) -> Result<String, CallRefError> {
    let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if fits { Ok(text.to_owned()) } else { Err(CallRefError::Segment(shown(text))) }
}

/// The name as an error repeats it: never longer than a line.
fn shown(name: &str) -> String {
    name.chars().take(200).collect()
}

impl fmt::Display for CallRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gateway { provider, integration, action, connection } => {
                write!(f, "tools.{provider}.{integration}.{action}.{connection}")
            }
            Self::Reserved { op } => write!(f, "tools.{RESERVED_PROVIDER}.{op}"),
            Self::Variant { slug, version: None } => write!(f, "workflow.variant.{slug}"),
            Self::Variant { slug, version: Some(version) } => write!(f, "workflow.variant.{slug}.{version}"),
            Self::Environment { environment, slug } => write!(f, "workflow.environment.{environment}.{slug}"),
        }
    }
}

/// The name that a caller gave to what it calls, with the ref that it is; what is none is kept too, for the record of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallName {
    text: String,
    target: Result<CallRef, CallRefError>,
}

impl CallName {
    /// The name as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn target(&self) -> Result<&CallRef, &CallRefError> {
        self.target.as_ref()
    }

    pub fn into_target(self) -> Result<CallRef, CallRefError> {
        self.target
    }
}

impl From<String> for CallName {
    fn from(text: String) -> Self {
        Self { target: text.parse(), text }
    }
}

impl From<CallRef> for CallName {
    fn from(target: CallRef) -> Self {
        Self { text: target.to_string(), target: Ok(target) }
    }
}

impl Default for CallName {
    /// A name that calls nothing.
    fn default() -> Self {
        String::new().into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn malformed_refs_are_refused() {
        for name in [
            "",
            "tools",
            "workflow",
            "workflow.",
            "workflow.variant.",
            "workflow.variant.a.b.c",
            "workflow.variant.foo.",
            "workflow.environment.prod",
            "workflow.other.a",
            "workflow.variant.foo\n",
            "tools.native.github.X",
            "tools.native.github.X.main.more",
            "tools.native.git hub.X.main",
            "tools.native.github.X.main\n",
            "tools.native..X.main",
            "tools.agenta.",
            "tools.agenta",
            "tools.agenta.a..b",
            "other.native.github.X.main",
            "gateway",
            "gateway.other",
            "gateway.run.more",
        ] {
            assert!(name.parse::<CallRef>().is_err(), "{name:?}");
        }
    }

    #[test]
    fn double_underscores_are_dots_only_when_there_is_no_dot() {
        let dotted: CallRef = "tools.native.github.CREATE_AN_ISSUE.main".parse().unwrap();
        assert_eq!("tools__native__github__CREATE_AN_ISSUE__main".parse(), Ok(dotted));
        let reserved: CallRef = "tools.agenta.a.b.c".parse().unwrap();
        assert_eq!(reserved, CallRef::Reserved { op: "a.b.c".to_owned() });
        assert!("x".repeat(2000).parse::<CallRef>().is_err());
        let run = CallRef::Reserved { op: GATEWAY_RUN.to_owned() };
        assert_eq!(("gateway.run".parse(), "gateway__run".parse()), (Ok(run.clone()), Ok(run)));
        let odd: CallRef = "tools.native.github.A__B.main".parse().unwrap();
        assert_eq!(odd.to_string(), "tools.native.github.A__B.main");
    }

    fn segment() -> impl Strategy<Value = String> {
        "[a-zA-Z0-9-]{1,8}(_[a-zA-Z0-9-]{1,8}){0,2}"
    }

    proptest! {
        #[test]
        fn parse_and_print_are_inverse(a in segment(), b in segment(), c in segment(), d in segment(), version in proptest::option::of(segment())) {
            for original in [
                CallRef::Gateway { provider: a.clone(), integration: b.clone(), action: c.clone(), connection: d.clone() },
                CallRef::Reserved { op: a.clone() },
                CallRef::Variant { slug: a.clone(), version: version.clone() },
                CallRef::Environment { environment: a.clone(), slug: b.clone() },
            ] {
                prop_assert_eq!(original.to_string().parse(), Ok(original.clone()));
                prop_assert_eq!(original.to_string().replace('.', "__").parse(), Ok(original));
            }
        }

        #[test]
        fn any_text_parses_or_fails_quietly(text in ".{0,80}") {
            let _ = text.parse::<CallRef>();
        }
    }
}
