//! What the API says of imports, and what an import would come to.

use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::api::Answer;
use crate::pages::catalog::integration_page;
use crate::path::Path;
use crate::refusal::Refusal;
use crate::ui::{Markup, Tone, badge};
use crate::visit::Visit;

pub(super) const IMPORTS: &str = "/tools/imports";
/// The code of a refusal that `force` overrules.
const IN_USE: &str = "import_in_use";

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Import {
    pub(super) id: Option<String>,
    pub(super) provider_key: String,
    pub(super) integration_key: String,
    pub(super) name: String,
    #[serde(default)]
    source: Source,
    #[serde(default)]
    pub(super) origins: Vec<String>,
    pub(super) actions_count: i64,
    pub(super) version: i64,
    pub(super) created_at: String,
    pub(super) updated_at: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Source {
    url: Option<String>,
    settings: Map<String, Value>,
}

impl Import {
    pub(super) fn kind(&self) -> &str {
        match self.provider_key.as_str() {
            "openapi" => "OpenAPI",
            "mcp" => "MCP server",
            other => other,
        }
    }

    /// Where it came from: an address, a program, or a document that somebody gave.
    pub(super) fn source(&self) -> String {
        let command = || self.source.settings.get("command").and_then(Value::as_str).map(str::to_owned);
        self.source.url.clone().or_else(command).unwrap_or_else(|| "a document".to_owned())
    }

    /// Whether there is something to read again.
    pub(super) fn can_refresh(&self) -> bool {
        self.source.url.is_some() || self.source.settings.contains_key("command")
    }

    pub(super) fn settings(&self) -> Option<Value> {
        (!self.source.settings.is_empty()).then(|| Value::Object(self.source.settings.clone()))
    }

    pub(super) fn state(&self) -> Markup {
        if self.actions_count > 0 { badge(Tone::Good, "ready") } else { badge(Tone::Wait, "no actions yet") }
    }

    pub(super) fn integration_page(&self, visit: &Visit) -> String {
        integration_page(visit, &self.provider_key, &self.integration_key).into()
    }

    /// The page of the import, once there is one.
    pub(super) fn page(&self, visit: &Visit) -> Option<Path> {
        self.id.as_ref().map(|id| visit.page("imports").at(id))
    }
}

/// What an import came to, or would come to.
#[derive(Debug, Deserialize)]
pub(super) struct Made {
    pub(super) import: Import,
    pub(super) is_new: bool,
    pub(super) difference: Difference,
    #[serde(default)]
    pub(super) skipped: Vec<Skipped>,
    #[serde(default)]
    pub(super) warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Difference {
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<String>,
    pub(super) unchanged_count: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Skipped {
    pub(super) what: String,
    pub(super) why: String,
}

impl Difference {
    pub(super) fn is_empty(&self) -> bool {
        self.parts().is_empty()
    }

    /// What comes, goes and changes, where something does.
    pub(super) fn parts(&self) -> Vec<(&'static str, &[String])> {
        let parts = [("Added", &self.added[..]), ("Removed", &self.removed[..]), ("Changed", &self.changed[..])];
        parts.into_iter().filter(|(_, keys)| !keys.is_empty()).collect()
    }
}

/// A refusal, and whether the same can be had by force.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) refusal: Refusal,
    pub(super) can_force: bool,
}

/// How far an import shall go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    DryRun,
    Gently,
    ByForce,
}

/// Asks for an import, or for a dry run of one.
pub(super) async fn make(visit: &Visit, path: Path, mode: Mode, body: Option<Value>) -> Result<Made, Refused> {
    let path = match mode {
        Mode::DryRun => path.with("dry_run", true),
        Mode::ByForce => path.with("force", true),
        Mode::Gently => path,
    };
    read(&visit.send(Method::POST, path, body).await)
}

fn read(answer: &Answer) -> Result<Made, Refused> {
    if !answer.status.is_success() {
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        return Err(Refused { refusal: Refusal::of(answer), can_force: body["code"] == IN_USE });
    }
    serde_json::from_slice(&answer.body).map_err(|error| {
        let words = format!("The answer of the API is not what this page expects: {error}");
        Refused { refusal: Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, words), can_force: false }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn import(source: &Value) -> Import {
        let import = json!({"provider_key": "mcp", "integration_key": "a", "name": "A", "source": source, "actions_count": 0, "version": 1,
            "created_at": "", "updated_at": ""});
        serde_json::from_value(import).unwrap()
    }

    #[test]
    fn a_source_is_an_address_a_program_or_a_document() {
        let found = [json!({"url": "https://a.example"}), json!({"settings": {"command": "npx"}}), json!({"url": null, "settings": {}})]
            .map(|source| (import(&source).source(), import(&source).can_refresh()));
        assert_eq!(found, [("https://a.example".to_owned(), true), ("npx".to_owned(), true), ("a document".to_owned(), false)]);
    }

    #[test]
    fn only_what_is_in_use_can_be_forced() {
        let answer = |code: &str| Answer {
            status: StatusCode::CONFLICT,
            body: json!({"detail": {"message": "no"}, "code": code}).to_string().into(),
        };
        let refused = read(&answer(IN_USE)).unwrap_err();
        assert!(refused.can_force && refused.refusal.words == "no");
        assert!(!read(&answer("import_key_taken")).unwrap_err().can_force);
    }

    #[test]
    fn a_difference_shows_only_what_differs() {
        let difference = Difference { added: vec!["a".to_owned()], removed: Vec::new(), changed: Vec::new(), unchanged_count: 3 };
        assert_eq!(difference.parts(), [("Added", &["a".to_owned()][..])]);
        assert!(!difference.is_empty());
    }
}
