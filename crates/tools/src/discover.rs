//! Discovery: sentences in, tools or events out, with the state of their connections and what to do next.

mod advisor;
mod answer;
mod guidance;
mod learned;
mod merge;
mod offers;

use std::sync::Arc;
use std::time::Duration;

use catalog::search::Kind;
use catalog::{Asked, Examples, Found, Integration, Meaning, Wanted};
use connections::Connection;
use kernel::Scope;
use serde_json::{Map, Value};

pub(crate) use advisor::Advisor;
pub use answer::{
    Alternative, AlternativeKey, Capability, Connect, Discovered, EventFound, Evidence, IntegrationState, State, Target, ToolFound, Why,
};
pub use guidance::Guidance;
pub(crate) use learned::Lessons;
pub use learned::{LearnedPage, LearnedUseCase};
pub(crate) use offers::{ActionName, Offers};

use self::advisor::Advice;
use self::merge::{Choice, Listed, merge};
use crate::{CallError, Tools};

/// How long the sentence model may take over all use cases of a request; those that it does not reach are found by their words.
const WAIT_FOR_MEANING: Duration = Duration::from_millis(25);
const DEFAULT_ALTERNATIVES: usize = 3;
const MAX_ALTERNATIVES: usize = 50;
/// How many use cases one request may hold, and how many characters each.
const MAX_USE_CASES: usize = 50;
const MAX_USE_CASE: usize = 20_000;
/// From this direction on, a use case waits for something; below, it does something.
const WAITS: f32 = 0.0;
const SURELY_ACTS: f32 = -1.0;

/// What somebody wants to do.
#[derive(Clone, Debug)]
pub struct Discover {
    pub use_cases: Vec<String>,
    /// One provider, or all of them.
    pub provider: Option<String>,
    pub alternatives: usize,
    /// Say how sure each answer is, and why.
    pub debug: bool,
}

impl Discover {
    /// Reads arguments that fit the documented schema.
    pub(crate) fn from_arguments(arguments: &Map<String, Value>) -> Self {
        let cases = arguments.get("use_cases").and_then(Value::as_array).into_iter().flatten();
        Self {
            use_cases: cases.filter_map(Value::as_str).map(str::to_owned).collect(),
            provider: arguments.get("provider").and_then(Value::as_str).map(str::to_owned),
            alternatives: arguments
                .get("limit_alternatives")
                .and_then(Value::as_u64)
                .map_or(DEFAULT_ALTERNATIVES, |limit| usize::try_from(limit).unwrap_or(MAX_ALTERNATIVES)),
            debug: arguments.get("debug").and_then(Value::as_bool).unwrap_or_default(),
        }
    }

    fn trimmed(&self) -> Result<Vec<&str>, CallError> {
        let cases: Vec<&str> = self.use_cases.iter().map(|case| case.trim()).filter(|case| !case.is_empty()).collect();
        if cases.is_empty() {
            return Err(CallError::BadFilter("Give at least one use case.".to_owned()));
        }
        if cases.len() > MAX_USE_CASES {
            return Err(CallError::BadFilter(format!("Give at most {MAX_USE_CASES} use cases at once.")));
        }
        if cases.iter().any(|case| case.chars().nth(MAX_USE_CASE).is_some()) {
            return Err(CallError::BadFilter(format!("A use case is a sentence: it may have {MAX_USE_CASE} characters.")));
        }
        Ok(cases)
    }
}

impl Tools {
    /// The actions that fit each use case, in the order of the request.
    pub async fn discover(&self, scope: Scope, request: &Discover) -> Result<Discovered, CallError> {
        self.find(scope, request, Kind::Action).await
    }

    /// The events that fit each use case, in the order of the request.
    pub async fn discover_events(&self, scope: Scope, request: &Discover) -> Result<Discovered, CallError> {
        self.find(scope, request, Kind::Event).await
    }

    async fn find(&self, scope: Scope, request: &Discover, kind: Kind) -> Result<Discovered, CallError> {
        let cases = request.trimmed()?;
        let meanings = self.meanings(&cases).await;
        let rows = self.connections.choices(scope.project, None, None).await?;
        let examples = self.examples(scope.project).await?;
        let mut desk = Desk { tools: self, scope, request, rows: &rows, examples: &examples, seen: Vec::new() };
        let mut cases = desk.cases(&cases, &meanings, kind)?;
        let mut answer = Discovered { ready: true, ..Discovered::default() };
        if kind == Kind::Action {
            let advice = self.advice(scope.project, request.provider.as_deref(), &desk.to_ask(&cases)).await;
            for case in &mut cases {
                desk.take_advice(case, &advice, &mut answer.guidance);
            }
            answer.notes = advice.notes;
        }
        for case in &cases {
            let capability = desk.capability(case, kind, &mut answer.guidance)?;
            answer.ready &= capability.is_ready();
            answer.notes.extend(capability.note.iter().map(|note| format!("{}: {note}", case.text)));
            answer.capabilities.push(capability);
        }
        let endpoint = if kind == Kind::Action { "POST /tools/connections/" } else { "POST /triggers/connections/" };
        answer.connections = desk.seen.iter().map(|integration| IntegrationState::of(integration, &rows, endpoint)).collect();
        Ok(answer)
    }

    async fn meanings(&self, cases: &[&str]) -> Vec<Meaning> {
        let catalog = self.catalog.clone();
        let owned: Vec<String> = cases.iter().map(|case| (*case).to_owned()).collect();
        let ask = move || catalog.meanings(&owned.iter().map(String::as_str).collect::<Vec<_>>(), WAIT_FOR_MEANING);
        let meanings = tokio::task::spawn_blocking(ask).await;
        meanings.unwrap_or_else(|_| vec![Meaning::default(); cases.len()])
    }
}

/// Where one request is worked on.
struct Desk<'a> {
    tools: &'a Tools,
    scope: Scope,
    request: &'a Discover,
    rows: &'a [Connection],
    examples: &'a Examples,
    /// Integrations that the answer names, in order.
    seen: Vec<Arc<Integration>>,
}

/// A use case, and what fits it, best first.
struct Case<'a> {
    text: &'a str,
    meaning: &'a Meaning,
    choices: Vec<Choice>,
    difficulty: Option<String>,
    reads_like_an_event: bool,
    surely_acts: bool,
    names_integration: bool,
}

impl Desk<'_> {
    /// The use cases with what our own search finds for them.
    fn cases<'a>(&self, texts: &[&'a str], meanings: &'a [Meaning], kind: Kind) -> Result<Vec<Case<'a>>, CallError> {
        let cases = texts.iter().zip(meanings).map(|(text, meaning)| {
            let asked = self.search(text, meaning, kind, 1 + self.alternatives())?;
            Ok(Case {
                text,
                meaning,
                choices: asked.found.into_iter().map(Choice::from).collect(),
                difficulty: None,
                reads_like_an_event: asked.event >= WAITS,
                surely_acts: asked.event <= SURELY_ACTS,
                names_integration: asked.names_integration,
            })
        });
        cases.collect()
    }

    fn alternatives(&self) -> usize {
        self.request.alternatives.min(MAX_ALTERNATIVES)
    }

    fn is_ready(&self, integration: &Integration) -> bool {
        State::of(integration, self.rows).is_ready()
    }

    /// The use cases to ask providers about: all of them where one is named, else those whose best answer cannot be used now.
    fn to_ask<'a>(&self, cases: &[Case<'a>]) -> Vec<&'a str> {
        let has_answer = |case: &Case<'_>| case.choices.first().is_some_and(|best| self.is_ready(&best.found.integration));
        let open = cases.iter().filter(|case| self.request.provider.is_some() || !has_answer(case));
        open.map(|case| case.text).collect()
    }

    fn take_advice(&self, case: &mut Case<'_>, advice: &Advice<'_>, guidance: &mut Guidance) {
        let is_named = self.request.provider.is_some();
        for (provider, suggestion) in advice.of(case.text) {
            let listed = Listed::new(&self.tools.catalog, self.scope.project, provider, suggestion, &case.choices);
            let own = std::mem::take(&mut case.choices);
            let (choices, leads) = merge(own, listed, is_named, |integration| self.is_ready(integration));
            case.choices = choices;
            case.choices.truncate(1 + self.alternatives());
            if leads || is_named {
                guidance.suggest(suggestion);
                case.difficulty.clone_from(&suggestion.difficulty);
            }
        }
    }

    fn capability(&mut self, case: &Case<'_>, kind: Kind, guidance: &mut Guidance) -> Result<Capability, CallError> {
        let trigger = if kind == Kind::Action && case.reads_like_an_event { self.event(case)? } else { None };
        for found in case.found().chain(&trigger) {
            let Integration { provider, key, .. } = &*found.integration;
            if !self.seen.iter().any(|known| known.provider == *provider && known.key == *key) {
                self.seen.push(found.integration.clone());
            }
        }
        self.tools.offers.add(self.scope, case.text, case.found());
        let mut capability = Capability { note: case.note(kind, trigger.as_ref()), ..Capability::new(case.text) };
        if let Some((primary, others)) = case.choices.split_first() {
            let state = State::of(&primary.found.integration, self.rows);
            guidance.add(&primary.found, &state);
            capability.integration = Some(primary.found.integration.key.clone());
            capability.target = Some(Target::new(&primary.found, state.slug.clone()));
            capability.connection = Some(state);
            capability.difficulty = case.difficulty.clone();
            capability.alternatives = others.iter().map(|other| Alternative::new(other, self.request.debug)).collect();
            capability.why = self.request.debug.then(|| Why::of(primary));
        }
        capability.trigger = trigger.as_ref().and_then(EventFound::of);
        Ok(capability)
    }

    /// The event that a use case waits for. Where it names an app, another app's event is no answer.
    fn event(&self, case: &Case<'_>) -> Result<Option<Found>, CallError> {
        let asked = self.search(case.text, case.meaning, Kind::Event, 1)?;
        let is_of_named_app = |found: &Found| !asked.names_integration || found.reasons.app > 0.0;
        Ok(asked.found.first().filter(|found| is_of_named_app(found)).cloned())
    }

    fn search(&self, use_case: &str, meaning: &Meaning, kind: Kind, limit: usize) -> Result<Asked, CallError> {
        let connected = self.rows.iter().filter(|row| row.is_usable() && !row.is_failing());
        let preferred: Vec<&str> = connected.map(|row| row.integration.as_str()).collect();
        let wanted = Wanted { use_case, kind, limit, preferred: &preferred, meaning, examples: Some(self.examples) };
        let asked = self.tools.catalog.search(self.scope.project, self.request.provider.as_deref(), &wanted);
        asked.map_err(|error| CallError::Connection(error.into()))
    }
}

impl Case<'_> {
    fn found(&self) -> impl Iterator<Item = &Found> {
        self.choices.iter().map(|choice| &choice.found)
    }

    /// What the caller should know about how it was read.
    fn note(&self, kind: Kind, trigger: Option<&Found>) -> Option<String> {
        let is_of_another_app = |best: &Choice| self.names_integration && best.suggested_by.is_none() && best.found.reasons.app <= 0.0;
        let text = match (kind, trigger, self.choices.first()) {
            (Kind::Action, Some(_), _) => {
                "This reads like an event: subscribe to the one in `trigger` with POST /triggers/subscriptions/. Tools act, they do not wait."
            }
            (_, None, None) => "Nothing fits this use case.",
            (Kind::Action, None, Some(_)) if self.reads_like_an_event => {
                "This reads like an event, but no event here fits. Tools act, they do not wait; run one on a schedule instead."
            }
            (Kind::Event, _, Some(_)) if self.surely_acts => {
                "This reads like something to do, not to wait for; POST /tools/discover finds tools."
            }
            (_, _, Some(best)) if is_of_another_app(best) => "The app that this names has nothing that fits; this is from another one.",
            _ => return None,
        };
        Some(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_cases_have_a_number_and_a_length() {
        let read = |use_cases: Vec<String>| {
            let request = Discover { use_cases, provider: None, alternatives: 3, debug: false };
            request.trimmed().map(|cases| cases.len())
        };
        let crab = |count: usize| "🦀".repeat(count);
        assert_eq!(read(vec!["a".to_owned(), "  ".to_owned()]).unwrap(), 1);
        assert_eq!(read(vec!["a".to_owned(); MAX_USE_CASES]).unwrap(), MAX_USE_CASES);
        assert_eq!(read(vec![crab(MAX_USE_CASE)]).unwrap(), 1);
        for bad in [vec![], vec![" ".to_owned()], vec!["a".to_owned(); MAX_USE_CASES + 1], vec![crab(MAX_USE_CASE + 1)]] {
            assert!(matches!(read(bad), Err(CallError::BadFilter(_))));
        }
    }
}
