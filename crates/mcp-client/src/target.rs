//! What a project points at: an address with headers, or a program that the operator lets it run.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::str::FromStr;
use std::sync::Arc;

use catalog::auth::Fields;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use imports::{ImportError, Order, Origin, Stored};
use kernel::{ImportId, ProjectId, Scrubber};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use crate::stdio::Program;

const MAX_ARGS: usize = 100;
const MAX_SECRETS: usize = 50;
const MAX_TEXT: usize = 16 << 10;

/// The programs that projects may run; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    names: Vec<String>,
}

impl FromStr for Commands {
    type Err = Infallible;

    /// Names or paths separated by commas, or `*` for any.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self { names: text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect() })
    }
}

impl Commands {
    fn check(&self, command: &str) -> Result<(), String> {
        if self.names.iter().any(|name| name == command || name == "*") {
            return Ok(());
        }
        let known = match self.names.as_slice() {
            [] => "none is".to_owned(),
            names => format!("these are: {}", names.join(", ")),
        };
        Err(format!(
            "`{}` is not a program that projects may run here ({known}); ask the operator to add it to `mcp_commands`",
            shown(command)
        ))
    }
}

/// Where a server is.
#[derive(Clone, Debug)]
pub(crate) enum ServerTarget {
    Program(Program),
    Address { url: Url, headers: HeaderMap },
}

impl PartialEq for ServerTarget {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Program(one), Self::Program(other)) => one == other,
            (Self::Address { url, headers }, Self::Address { url: other, headers: others }) => url == other && headers == others,
            _ => false,
        }
    }
}

/// What an import's secret holds.
#[derive(Deserialize, Default)]
struct Secrets {
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

impl Secrets {
    fn of(secret: Option<&SecretString>) -> Result<Self, String> {
        let Some(secret) = secret else { return Ok(Self::default()) };
        let secrets: Self =
            serde_json::from_str(secret.expose_secret()).map_err(|_| "the headers or variables cannot be read".to_owned())?;
        if secrets.headers.len() + secrets.env.len() > MAX_SECRETS {
            return Err(format!("give at most {MAX_SECRETS} headers or variables"));
        }
        Ok(secrets)
    }
}

impl ServerTarget {
    pub(crate) fn of_order(order: &Order, commands: &Commands) -> Result<Self, ImportError> {
        let url = match &order.from {
            Origin::Url(url) => Some(url),
            Origin::Settings => None,
            Origin::Text(_) | Origin::Json(_) => return Err(ImportError::Invalid("give either `url` or `command`".to_owned())),
        };
        Self::new(url, &order.settings, order.secret.as_ref(), commands).map_err(ImportError::Invalid)
    }

    /// What a stored import points at. A program that is not allowed any more is not run.
    pub(crate) fn of_stored(stored: &Stored, commands: &Commands) -> Result<Self, String> {
        let source = &stored.import.source;
        Self::new(source.url.as_ref(), &source.settings, stored.secret.as_ref(), commands)
    }

    fn new(url: Option<&Url>, settings: &Map<String, Value>, secret: Option<&SecretString>, commands: &Commands) -> Result<Self, String> {
        let secrets = Secrets::of(secret)?;
        match (url, settings.get("command").and_then(Value::as_str)) {
            (Some(url), None) => {
                if !matches!(url.scheme(), "https" | "http") || !url.username().is_empty() || url.password().is_some() {
                    return Err("the address must be an `https` address without a user name or password".to_owned());
                }
                Ok(Self::Address { url: url.clone(), headers: headers(&secrets.headers)? })
            }
            (None, Some(command)) => {
                commands.check(command)?;
                Ok(Self::Program(Program { command: command.to_owned(), args: args(settings)?, env: env(secrets.env)? }))
            }
            _ => Err("give either `url` or `command`".to_owned()),
        }
    }

    /// What the import gives the server and nobody else may read: each value, and its words, since a server may repeat only the token.
    pub(crate) fn secrets(&self) -> Scrubber {
        let values: Vec<&str> = match self {
            Self::Program(program) => program.env.values().map(ExposeSecret::expose_secret).collect(),
            Self::Address { headers, .. } => headers.values().filter_map(|value| value.to_str().ok()).collect(),
        };
        secrets_of(values)
    }

    /// Where credentials are sent.
    pub(crate) fn origin(&self) -> Option<String> {
        match self {
            Self::Address { url, .. } => Some(url.origin().ascii_serialization()),
            Self::Program(_) => None,
        }
    }
}

fn headers(given: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::with_capacity(given.len());
    for (name, value) in given {
        let bad = || format!("`{}` cannot be sent as a header", shown(name));
        let header: HeaderName = name.parse().map_err(|_| bad())?;
        if header.as_str().starts_with("mcp-") || ["accept", "content-type", "last-event-id"].contains(&header.as_str()) {
            return Err(format!("`{}` is set by the protocol", shown(name)));
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}

fn args(settings: &Map<String, Value>) -> Result<Vec<String>, String> {
    let given = settings.get("args").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if given.len() > MAX_ARGS {
        return Err(format!("give at most {MAX_ARGS} arguments"));
    }
    let read = |arg: &Value| match arg.as_str() {
        Some(text) if text.len() <= MAX_TEXT && !text.contains('\0') => Ok(text.to_owned()),
        _ => Err("`args` is a list of texts that are not too long".to_owned()),
    };
    given.iter().map(read).collect()
}

fn env(given: BTreeMap<String, String>) -> Result<BTreeMap<String, SecretString>, String> {
    for (name, value) in &given {
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name || value.len() > MAX_TEXT || value.contains('\0') {
            return Err(format!("`{}` cannot be a variable of the environment", shown(name)));
        }
        if decides_what_runs(name) {
            return Err(format!("`{}` decides which code a program runs, and that is the operator's to say", shown(name)));
        }
    }
    Ok(given.into_iter().map(|(name, value)| (name, value.into())).collect())
}

/// Whether loaders, shells and interpreters take code from a variable: with it any program that is allowed would run any other.
#[rustfmt::skip]
fn decides_what_runs(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["LD_", "DYLD_", "BASH_FUNC_", "PYTHON", "PERL5", "RUBY"].iter().any(|family| name.starts_with(family))
        || matches!(name.as_str(), "PATH" | "HOME" | "ENV" | "BASH_ENV" | "SHELLOPTS" | "BASHOPTS" | "NODE_OPTIONS" | "NODE_PATH"
            | "GCONV_PATH" | "JAVA_TOOL_OPTIONS" | "JDK_JAVA_OPTIONS" | "_JAVA_OPTIONS")
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

/// What takes these values, and each of their words, out of what a server says.
pub(crate) fn secrets_of<'a>(values: impl IntoIterator<Item = &'a str>) -> Scrubber {
    let parts = values.into_iter().flat_map(|value| std::iter::once(value).chain(value.split_whitespace()));
    Scrubber::new(parts.filter(|part| !is_plain(part)))
}

/// Whether a setting is no secret by its looks: a web address without a credential in it, a path, a date or a version. Results are full of
/// such.
fn is_plain(value: &str) -> bool {
    let is_address = value.parse::<Url>().is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none() && url.query().is_none()
    });
    let is_date =
        value.bytes().all(|byte| byte.is_ascii_digit() || b"-.:/".contains(&byte)) && !value.bytes().all(|byte| byte.is_ascii_digit());
    is_address || is_date || value.starts_with('/')
}

/// What an imported integration is run with.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) project: ProjectId,
    pub(crate) import: ImportId,
    /// An error when it cannot be used as things are.
    pub(crate) target: Result<ServerTarget, String>,
    pub(crate) secrets: Arc<Scrubber>,
    /// The names that the server has for its tools, by the keys of the actions.
    pub(crate) tools: HashMap<String, String>,
}

/// The header that a credential is sent in.
pub(crate) fn authorization(fields: &Fields) -> HeaderMap {
    let token = fields.get("access_token").or_else(|| fields.get("token"));
    let value = token.and_then(|token| HeaderValue::from_str(&format!("Bearer {token}")).ok());
    let mut headers = HeaderMap::new();
    if let Some(mut value) = value {
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    headers
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn target(url: Option<&str>, settings: Value, secret: Value, allowed: &str) -> Result<ServerTarget, String> {
        let url = url.map(|url| url.parse().unwrap());
        let secret = SecretString::from(secret.to_string());
        ServerTarget::new(url.as_ref(), settings.as_object().unwrap(), Some(&secret), &allowed.parse().unwrap())
    }

    #[test]
    fn only_programs_that_the_operator_named_are_run() {
        let settings = json!({"command": "npx", "args": ["-y", "x"]});
        for (allowed, fits) in [("", false), ("uvx", false), ("uvx, npx", true), ("*", true), ("np", false), ("npx ", true)] {
            assert_eq!(target(None, settings.clone(), json!({}), allowed).is_ok(), fits, "{allowed}");
        }
        for bad in [
            json!({"command": "/bin/npx"}),
            json!({"command": "npx", "args": [7]}),
            json!({"command": "npx", "args": ["a\u{0}"]}),
            json!({}),
        ] {
            assert!(target(None, bad.clone(), json!({}), "npx").is_err(), "{bad}");
        }
        assert!(target(None, settings.clone(), json!({"env": {"A=B": "x"}}), "npx").is_err());
        for bad in [
            "PATH",
            "Home",
            "LD_PRELOAD",
            "ld_audit",
            "DYLD_INSERT_LIBRARIES",
            "BASH_ENV",
            "ENV",
            "SHELLOPTS",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "PERL5LIB",
            "PERL5OPT",
            "RUBYOPT",
            "RUBYLIB",
        ] {
            let why = target(None, settings.clone(), json!({"env": {bad: "x"}}), "npx").unwrap_err();
            assert!(why.contains(&format!("`{bad}`")), "{why}");
        }
        for good in ["ENVIRONMENT", "API_KEY", "MY_PATH", "OLD_ID", "HOMEPAGE"] {
            assert!(target(None, settings.clone(), json!({"env": {good: "x"}}), "npx").is_ok(), "{good}");
        }
    }

    #[test]
    fn what_an_import_keeps_secret_is_not_repeated() {
        let program = target(None, json!({"command": "npx"}), json!({"env": {"KEY": "line-one-of-it\nline-two-of-it"}}), "npx");
        let address = target(Some("https://example.com/mcp"), json!({}), json!({"headers": {"Authorization": "Bearer s3cr3t-t0ken"}}), "");
        let scrub = |target: Result<ServerTarget, String>, words: &str| target.unwrap().secrets().cut_text(words);
        assert_eq!(scrub(address, "`s3cr3t-t0ken` is no token"), "`…` is no token");
        assert_eq!(scrub(program, "not a key: line-one-of-it line-two-of-it"), "not a key: … …");
        let settings = json!({"env": {"URL": "https://api.example.com/v1", "DIR": "/srv/data/yard", "DAY": "2026-11-16", "HOOK": "https://u:p@example.com/x", "PIN": "12345678"}});
        let plain = target(None, json!({"command": "npx"}), settings, "npx");
        let said = "https://api.example.com/v1/7 in /srv/data/yard on 2026-11-16 by https://u:p@example.com/x with 12345678";
        assert_eq!(scrub(plain, said), "https://api.example.com/v1/7 in /srv/data/yard on 2026-11-16 by … with …");
    }

    #[test]
    fn addresses_take_headers_but_not_those_of_the_protocol() {
        let url = Some("https://example.com/mcp");
        assert!(target(url, json!({}), json!({"headers": {"X-Key": "k"}}), "").is_ok());
        for bad in [json!({"Mcp-Session-Id": "x"}), json!({"Accept": "x"}), json!({"a b": "x"}), json!({"X-Key": "a\nb"})] {
            assert!(target(url, json!({}), json!({"headers": bad.clone()}), "").is_err(), "{bad}");
        }
        assert!(target(Some("https://user:pass@example.com"), json!({}), json!({}), "").is_err());
        assert!(target(Some("file:///etc/passwd"), json!({}), json!({}), "").is_err());
        assert!(target(url, json!({"command": "npx"}), json!({}), "*").is_err());
    }
}
