//! How what a provider suggests joins what our own search found.

use std::sync::Arc;

use catalog::search::Reasons;
use catalog::{Action, Catalog, Found, Integration, Item};
use kernel::ProjectId;

use crate::answer::rounded;
use crate::port::{SuggestedTool, Suggestion};

/// Something that fits, and the provider that suggested it, if one did.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) found: Found,
    pub(crate) suggested_by: Option<&'static str>,
}

impl Choice {
    /// How likely it is what is meant; nothing, where only a provider knows.
    pub(crate) fn confidence(&self) -> Option<f64> {
        (self.found.score > 0.0).then(|| rounded(self.found.confidence))
    }
}

impl From<Found> for Choice {
    fn from(found: Found) -> Self {
        Self { found, suggested_by: None }
    }
}

/// What a provider suggests for one use case, as far as the catalog lists it or the suggestion describes it.
#[derive(Debug)]
pub(crate) struct Listed {
    provider: &'static str,
    primary: Vec<Choice>,
    related: Vec<Choice>,
}

impl Listed {
    /// What our own search found as well keeps its score.
    pub(crate) fn new(catalog: &Catalog, project: ProjectId, provider: &'static str, suggestion: &Suggestion, own: &[Choice]) -> Self {
        let choice = |named: &SuggestedTool| {
            let found = found(catalog, project, provider, named)?;
            let known = own.iter().find(|known| is_same(&known.found, &found)).map(|known| known.found.clone());
            Some(Choice { found: known.unwrap_or(found), suggested_by: Some(provider) })
        };
        let all = |named: &[SuggestedTool]| named.iter().filter_map(choice).collect();
        Self { provider, primary: all(&suggestion.primary), related: all(&suggestion.related) }
    }
}

fn found(catalog: &Catalog, project: ProjectId, provider: &str, named: &SuggestedTool) -> Option<Found> {
    let integration = catalog.integration(project, provider, &named.integration).ok()?;
    let action = integration.action(&named.action).cloned().or_else(|| unlisted(named).map(Arc::new))?;
    let item = Item::Action(action);
    Some(Found { integration, item, score: 0.0, confidence: 0.0, reasons: Reasons::default(), is_named: false })
}

/// An action that the catalog does not list yet, as the provider's search described it; a call of it has it listed.
fn unlisted(named: &SuggestedTool) -> Option<Action> {
    let description = named.description.clone().unwrap_or_default();
    let mut action = Action::new(named.action.clone(), named.action.clone(), description, named.input_schema.as_ref()?);
    action.remote = Some(named.remote.clone());
    Some(action)
}

fn is_same(left: &Found, right: &Found) -> bool {
    left.integration.provider == right.integration.provider
        && left.integration.key == right.integration.key
        && left.item.key() == right.item.key()
}

/// Best first, each once, and whether the provider's word leads.
///
/// It leads where the provider was asked for by name, where we found nothing or only what is its own, and where its tool can be used now
/// and ours cannot. Otherwise its tools are alternatives.
pub(crate) fn merge(own: Vec<Choice>, listed: Listed, is_named: bool, is_ready: impl Fn(&Integration) -> bool) -> (Vec<Choice>, bool) {
    let Listed { provider, primary, related } = listed;
    let leads = match (primary.first(), own.first()) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(theirs), Some(ours)) => {
            let (theirs, ours) = (&theirs.found.integration, &ours.found.integration);
            is_named || ours.provider == provider || is_ready(theirs) && !is_ready(ours)
        }
    };
    let mut own = own.into_iter();
    let ordered: Vec<Choice> = match (leads, own.next()) {
        (true, first) => primary.into_iter().chain(related).chain(first).chain(own).collect(),
        (false, Some(first)) => std::iter::once(first).chain(primary).chain(own).chain(related).collect(),
        (false, None) => Vec::new(),
    };
    (each_once(ordered), leads)
}

fn each_once(choices: Vec<Choice>) -> Vec<Choice> {
    let mut kept: Vec<Choice> = Vec::with_capacity(choices.len());
    for choice in choices {
        if !kept.iter().any(|known| is_same(&known.found, &choice.found)) {
            kept.push(choice);
        }
    }
    kept
}
