//! Which tool somebody wants to try, as an address or a form names it.

use serde::Deserialize;

use crate::form::Form;
use crate::path::Path;
use crate::visit::Visit;

/// What the address of the page says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChoiceQuery {
    provider: String,
    integration: String,
    action: String,
    connection: String,
    #[serde(rename = "ref")]
    call_ref: String,
}

impl ChoiceQuery {
    pub(super) fn of_form(form: &Form) -> Self {
        let text = |name: &str| form.text(name).to_owned();
        Self {
            provider: text("provider"),
            integration: text("integration"),
            action: text("action"),
            connection: text("connection"),
            call_ref: text("ref"),
        }
    }

    /// The ref as it was typed.
    pub(super) fn call_ref(&self) -> &str {
        self.call_ref.trim()
    }

    /// What was chosen, if it was chosen far enough to be shown.
    pub(super) fn choice(&self) -> Option<Choice> {
        if !self.call_ref().is_empty() {
            return Choice::of_ref(self.call_ref());
        }
        let parts = [&self.provider, &self.integration, &self.action].map(|part| part.trim().to_owned());
        if parts.iter().any(String::is_empty) {
            return None;
        }
        let [provider, integration, action] = parts;
        let connection = Some(self.connection.trim().to_owned()).filter(|slug| !slug.is_empty());
        Some(Choice::Action { provider, integration, action, connection })
    }
}

/// A tool that can be tried here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Action { provider: String, integration: String, action: String, connection: Option<String> },
    Workflow { call_ref: String, slug: String, version: Option<String>, environment: Option<String> },
}

impl Choice {
    /// Refs may be written with `__` for each dot, as model APIs do.
    pub(super) fn of_ref(name: &str) -> Option<Self> {
        let call_ref = if name.contains('.') { name.to_owned() } else { name.replace("__", ".") };
        let parts: Vec<&str> = call_ref.split('.').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return None;
        }
        let owned = |part: &str| part.to_owned();
        match parts[..] {
            ["tools", provider, integration, action, connection] => Some(Self::Action {
                provider: owned(provider),
                integration: owned(integration),
                action: owned(action),
                connection: Some(owned(connection)),
            }),
            ["workflow", "variant", slug] => Some(Self::Workflow { slug: owned(slug), version: None, environment: None, call_ref }),
            ["workflow", "variant", slug, version] => {
                Some(Self::Workflow { slug: owned(slug), version: Some(owned(version)), environment: None, call_ref })
            }
            ["workflow", "environment", environment, slug] => {
                Some(Self::Workflow { slug: owned(slug), version: None, environment: Some(owned(environment)), call_ref })
            }
            _ => None,
        }
    }

    /// Its page.
    pub(super) fn page(&self, visit: &Visit) -> Path {
        let page = visit.page("try");
        match self {
            Self::Action { provider, integration, action, connection } => page
                .with("provider", provider)
                .with("integration", integration)
                .with("action", action)
                .with_some("connection", connection.as_ref()),
            Self::Workflow { call_ref, .. } => page.with("ref", call_ref),
        }
    }

    /// What it is called in a list.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Action { action, .. } => action,
            Self::Workflow { slug, .. } => slug,
        }
    }

    /// What a rule that is about it says, through whichever connection.
    pub(super) fn pattern(&self) -> String {
        match self {
            Self::Action { provider, integration, action, .. } => format!("tools.{provider}.{integration}.{action}.*"),
            Self::Workflow { slug, .. } => format!("workflow.variant.{slug}"),
        }
    }

    pub(super) fn connection(&self) -> Option<&str> {
        match self {
            Self::Action { connection, .. } => connection.as_deref(),
            Self::Workflow { .. } => None,
        }
    }

    /// What it belongs to.
    pub(super) fn app(&self) -> &str {
        match self {
            Self::Action { integration, .. } => integration,
            Self::Workflow { .. } => "workflow",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(connection: Option<&str>) -> Choice {
        Choice::Action {
            provider: "native".into(),
            integration: "github".into(),
            action: "CREATE_AN_ISSUE".into(),
            connection: connection.map(str::to_owned),
        }
    }

    #[test]
    fn a_ref_chooses_a_tool() {
        assert_eq!(Choice::of_ref("tools.native.github.CREATE_AN_ISSUE.main"), Some(action(Some("main"))));
        assert_eq!(Choice::of_ref("tools__native__github__CREATE_AN_ISSUE__main"), Some(action(Some("main"))));
        let workflow = Choice::of_ref("workflow.environment.live.hello").unwrap();
        assert!(matches!(&workflow, Choice::Workflow { slug, environment: Some(live), .. } if slug == "hello" && live == "live"));
        for other in ["", "tools..github.X.main", "tools.agenta.read_config", "workflow.variant", "nothing"] {
            assert_eq!(Choice::of_ref(other), None, "{other}");
        }
    }

    #[test]
    fn a_choice_needs_all_its_parts() {
        let query = |action: &str| ChoiceQuery {
            provider: "native".into(),
            integration: "github".into(),
            action: action.into(),
            ..ChoiceQuery::default()
        };
        assert_eq!(query("CREATE_AN_ISSUE").choice(), Some(action(None)));
        assert_eq!(query(" ").choice(), None);
        assert_eq!(action(Some("main")).pattern(), "tools.native.github.CREATE_AN_ISSUE.*");
    }
}
