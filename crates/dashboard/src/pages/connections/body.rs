//! What the API says of connections.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::pages::catalog::scheme_words;
use crate::path::Path;
use crate::refusal::Refusal;
use crate::ui::{Markup, Tone, badge};
use crate::visit::Visit;

pub(super) const CONNECTIONS: &str = "/tools/connections";

/// How a connection stands, in the order in which people care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// Something has to be done.
    Attention,
    /// Somebody was asked to sign in or to type a credential.
    Waiting,
    Works,
}

impl State {
    pub(super) const ALL: [Self; 3] = [Self::Attention, Self::Waiting, Self::Works];

    /// Its word in addresses.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Attention => "attention",
            Self::Waiting => "waiting",
            Self::Works => "works",
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Attention => "Needs attention",
            Self::Waiting => "Waiting for somebody",
            Self::Works => "Works",
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Connection {
    pub(crate) id: String,
    pub(crate) slug: String,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) provider_key: String,
    pub(crate) integration_key: String,
    flags: Flags,
    meta: Option<Value>,
    #[serde(default)]
    data: Data,
    status: Option<Status>,
    /// The end user whose account it is; nobody where it is the project's own.
    pub(crate) end_user: Option<String>,
    /// What that end user calls it.
    pub(crate) alias: Option<String>,
    pub(super) scopes: Option<Vec<String>>,
    pub(super) created_at: String,
    pub(super) updated_at: String,
    pub(crate) last_used_at: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Flags {
    #[serde(rename = "is_active")]
    active: bool,
    #[serde(rename = "is_valid")]
    valid: bool,
    #[serde(rename = "is_failing")]
    failing: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Data {
    auth_scheme: Option<String>,
    no_auth: bool,
    redirect_url: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Status {
    message: Option<String>,
}

impl Connection {
    pub(crate) fn is_of(&self, provider: &str, integration: &str) -> bool {
        self.provider_key == provider && self.integration_key == integration
    }

    pub(crate) fn is_oauth(&self) -> bool {
        self.data.auth_scheme.as_deref() == Some("oauth")
    }

    pub(super) fn is_no_auth(&self) -> bool {
        self.data.no_auth
    }

    /// What the API says of its state, or of how it was connected.
    pub(super) fn message(&self) -> Option<&str> {
        self.status.as_ref()?.message.as_deref()
    }

    /// Where a person goes; only in the answer that starts it.
    pub(super) fn redirect_url(&self) -> Option<&str> {
        self.data.redirect_url.as_deref()
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.flags.valid
    }

    pub(crate) fn is_active(&self) -> bool {
        self.flags.active
    }

    /// Its name, or its slug where nobody gave it one.
    pub(crate) fn title(&self) -> &str {
        self.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(&self.slug)
    }

    /// Why it cannot be used, or nothing where it can.
    pub(crate) fn trouble(&self) -> Option<&str> {
        if !self.flags.active {
            Some(self.message().unwrap_or("It is switched off."))
        } else if !self.flags.valid {
            Some(self.message().unwrap_or("It waits for somebody to finish connecting."))
        } else if self.flags.failing == Some(true) {
            Some(self.message().unwrap_or("The service refused the credential."))
        } else {
            None
        }
    }

    pub(super) fn is_revoked(&self) -> bool {
        !self.flags.valid && self.message() == Some("revoked")
    }

    pub(super) fn state(&self) -> State {
        match &self.flags {
            Flags { active: false, .. } | Flags { failing: Some(true), .. } => State::Attention,
            Flags { valid: true, .. } => State::Works,
            _ if self.message().is_some() => State::Attention,
            _ => State::Waiting,
        }
    }

    pub(crate) fn badge(&self) -> Markup {
        match self.state() {
            State::Works => badge(Tone::Good, "works"),
            State::Waiting => badge(Tone::Wait, "waiting for somebody"),
            State::Attention if self.is_revoked() => badge(Tone::Plain, "revoked"),
            State::Attention if !self.flags.active => badge(Tone::Plain, "inactive"),
            State::Attention if self.flags.failing == Some(true) => badge(Tone::Bad, "failing"),
            State::Attention => badge(Tone::Bad, "not connected"),
        }
    }

    /// Whose account it is.
    pub(crate) fn account(&self) -> Option<String> {
        let account = self.meta.as_ref()?.get("account")?;
        let part = |name: &str| match &account[name] {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        part("label").or_else(|| part("id")).filter(|text| !text.is_empty())
    }

    pub(super) fn scheme_words(&self) -> &str {
        self.data.auth_scheme.as_deref().map_or("No account needed", scheme_words)
    }

    pub(crate) fn page(&self, visit: &Visit) -> String {
        visit.page("connections").at(&self.id).into()
    }

    pub(crate) fn with_page(self, visit: &Visit) -> (Self, String) {
        let page = self.page(visit);
        (self, page)
    }

    /// Whether a search finds it.
    pub(super) fn fits(&self, wanted: &str) -> bool {
        let account = self.account().unwrap_or_default();
        let [name, end_user] = [&self.name, &self.end_user].map(|text| text.as_ref().unwrap_or(&self.slug));
        let texts = [&self.slug, &self.integration_key, &self.provider_key, &account, name, end_user];
        texts.iter().any(|text| text.to_lowercase().contains(wanted))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ConnectionAnswer {
    pub(super) connection: Connection,
}

/// Which permission shows the connections; the same rows are served for tools and for triggers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen {
    WithTools,
    WithTriggers,
}

impl Seen {
    fn path(self) -> Path {
        Path::new(match self {
            Self::WithTools => CONNECTIONS,
            Self::WithTriggers => "/triggers/connections",
        })
    }
}

/// The connections of the project, or those of one integration.
pub(crate) async fn query(visit: &Visit, seen: Seen, of: Option<(&str, &str)>) -> Result<Vec<Connection>, Refusal> {
    let mut path = seen.path().at("query");
    if let Some((provider, integration)) = of {
        path = path.with("provider_key", provider).with("integration_key", integration);
    }
    list(visit, path).await
}

/// The accounts of one end user.
pub(crate) async fn of_end_user(visit: &Visit, name: &str) -> Result<Vec<Connection>, Refusal> {
    list(visit, Seen::WithTools.path().at("query").with("end_user", name)).await
}

async fn list(visit: &Visit, path: Path) -> Result<Vec<Connection>, Refusal> {
    #[derive(Deserialize)]
    struct Answer {
        connections: Vec<Connection>,
    }
    visit.post::<Answer>(path, json!({})).await.map(|answer| answer.connections)
}

pub(crate) async fn connection(visit: &Visit, seen: Seen, id: &str) -> Result<Connection, Refusal> {
    visit.get::<ConnectionAnswer>(seen.path().at(id)).await.map(|answer| answer.connection)
}

/// A slug that no connection of the integration has.
pub(super) fn free_slug(integration: &str, taken: &[Connection]) -> String {
    let is_free = |slug: &String| taken.iter().all(|one| one.integration_key != integration || one.slug != *slug);
    let numbered = (2..).map(|number| format!("{integration}-{number}"));
    std::iter::once(format!("{integration}-main")).chain(numbered).find(is_free).unwrap_or_default()
}

/// Words with space or commas between them, as scopes are written.
pub(crate) fn words_of(text: &str) -> Vec<String> {
    text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(more: &Value) -> Connection {
        let mut value = json!({"id": "1", "slug": "github-main", "provider_key": "native", "integration_key": "github",
            "flags": {"is_active": true, "is_valid": true}, "created_at": "", "updated_at": ""});
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn each_state_is_told_from_the_others() {
        let invalid = json!({"is_active": true, "is_valid": false});
        let cases = [
            (json!({}), State::Works, "works"),
            (json!({"flags": {"is_active": true, "is_valid": true, "is_failing": true}}), State::Attention, "failing"),
            (json!({"flags": invalid}), State::Waiting, "waiting"),
            (json!({"flags": invalid, "status": {"message": "revoked"}}), State::Attention, "revoked"),
            (json!({"flags": invalid, "status": {"message": "denied"}}), State::Attention, "not connected"),
            (json!({"flags": {"is_active": false, "is_valid": true}}), State::Attention, "inactive"),
        ];
        for (more, state, words) in cases {
            let connection = made(&more);
            assert_eq!(connection.state(), state, "{more}");
            assert!(connection.badge().to_string().contains(words), "{more}");
        }
    }

    #[test]
    fn a_connection_says_what_is_wrong_with_it() {
        let trouble = |flags: Value, message: Option<&str>| {
            made(&json!({"flags": flags, "status": {"message": message}})).trouble().map(str::to_owned)
        };
        assert_eq!(trouble(json!({"is_active": true, "is_valid": true}), None), None);
        assert_eq!(trouble(json!({"is_active": true, "is_valid": false}), Some("revoked")).as_deref(), Some("revoked"));
        assert!(trouble(json!({"is_active": true, "is_valid": true, "is_failing": true}), None).is_some());
        assert!(trouble(json!({"is_active": false, "is_valid": true}), None).is_some());
    }

    #[test]
    fn the_account_is_its_label_or_its_id() {
        assert_eq!(made(&json!({"meta": {"account": {"id": 7, "label": "ada"}}})).account().as_deref(), Some("ada"));
        assert_eq!(made(&json!({"meta": {"account": {"id": 7}}})).account().as_deref(), Some("7"));
        assert_eq!(made(&json!({"meta": {"team": "x"}})).account(), None);
    }

    #[test]
    fn a_search_looks_at_what_is_shown() {
        let connection = made(&json!({"name": "Bots", "meta": {"account": {"label": "Ada"}}}));
        assert_eq!(["main", "bots", "ada", "native", "slack"].map(|wanted| connection.fits(wanted)), [true, true, true, true, false]);
    }

    #[test]
    fn a_free_slug_is_found() {
        assert_eq!(free_slug("github", &[]), "github-main");
        assert_eq!(free_slug("github", &[made(&json!({})), made(&json!({"slug": "github-2"}))]), "github-3");
        assert_eq!(free_slug("slack", &[made(&json!({"slug": "slack-main"}))]), "slack-main");
    }

    #[test]
    fn scopes_are_read_as_people_write_them() {
        assert_eq!(words_of(" repo, read:user\r\nread:org "), ["repo", "read:user", "read:org"]);
        assert!(words_of(" \n").is_empty());
    }
}
