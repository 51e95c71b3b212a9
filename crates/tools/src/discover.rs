//! Discovery: sentences in, tools or events out, with the state of their connections and what to do next.

mod advisor;
mod answer;
mod guidance;
mod learned;
mod merge;
mod offers;
mod recurring;

use std::time::Duration;

use catalog::search::{Kind, Reasons};
use catalog::{Asked, CatalogError, Examples, Found, Integration, Meaning, Wanted};
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
use self::answer::Seen;
use self::merge::{Choice, Listed, merge};
use crate::{CallError, Tools};

/// How long the sentence model may take over all use cases of a request; those that it does not reach are found by their words.
const WAIT_FOR_MEANING: Duration = Duration::from_millis(25);
const DEFAULT_ALTERNATIVES: usize = 3;
const MAX_ALTERNATIVES: usize = 50;
/// How many use cases one request may hold, and how many characters each.
const MAX_USE_CASES: usize = 50;
const MAX_USE_CASE: usize = 20_000;
/// Below this direction, a use case surely does something.
const SURELY_ACTS: f32 = -0.9;
/// How many finds are looked at where the best are not what is asked for.
const LOOK_DEEPER: usize = 50;

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
        Box::pin(self.find(scope, request, Kind::Action)).await
    }

    /// The events that fit each use case, in the order of the request.
    pub async fn discover_events(&self, scope: Scope, request: &Discover) -> Result<Discovered, CallError> {
        Box::pin(self.find(scope, request, Kind::Event)).await
    }

    async fn find(&self, scope: Scope, request: &Discover, kind: Kind) -> Result<Discovered, CallError> {
        let cases = request.trimmed()?;
        self.check_provider(request.provider.as_deref())?;
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
            if let Some(failure) = advice.failures.first().filter(|_| cases.iter().all(Case::is_empty)) {
                return Err(CallError::Upstream { message: format!("{failure}, and nothing else fits."), uncertain: false });
            }
            answer.notes = advice.failures.iter().map(|failure| format!("{failure}; these are Toolyard's own results.")).collect();
        }
        for case in &cases {
            let capability = desk.capability(case, kind, &mut answer.guidance);
            answer.ready &= capability.is_ready();
            answer.notes.extend(capability.note.iter().map(|note| format!("{}: {note}", case.text)));
            answer.capabilities.push(capability);
        }
        let endpoint = if kind == Kind::Action { "POST /tools/connections/" } else { "POST /triggers/connections/" };
        answer.connections = desk.seen.iter().map(|seen| IntegrationState::of(seen, scope.project, &rows, endpoint)).collect();
        Ok(answer)
    }

    fn check_provider(&self, provider: Option<&str>) -> Result<(), CallError> {
        let Some(Err(error)) = provider.map(|provider| self.catalog.source(provider)) else { return Ok(()) };
        Err(match error {
            CatalogError::UnknownProvider(missing) => {
                let known: Vec<&str> = self.catalog.providers().iter().map(|provider| provider.key).collect();
                let (key, all) = (&missing.key, known.join("`, `"));
                CallError::BadFilter(format!(
                    "`{key}` is not a provider that can be searched; leave it out, or name one of `{all}`{missing}"
                ))
            }
            other => CallError::Connection(other.into()),
        })
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
    seen: Vec<Seen>,
}

/// A use case, and what fits it, best first.
struct Case<'a> {
    text: &'a str,
    wish: Wish,
    choices: Vec<Choice>,
    /// Why none of the choices is the answer.
    doubt: Option<Doubt>,
    /// The event to subscribe to, where tools were asked for.
    trigger: Option<Found>,
    difficulty: Option<String>,
}

/// What a use case asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// Surely to do something.
    Act,
    /// Most likely to do something.
    MostlyAct,
    /// To do one thing when another happens.
    ActWhen,
    /// To be told when something happens.
    Wait,
}

impl Wish {
    fn of(direction: f32) -> Self {
        match direction {
            direction if direction > 0.0 => Self::Wait,
            direction if direction < SURELY_ACTS => Self::Act,
            direction if direction < 0.0 => Self::MostlyAct,
            _ => Self::ActWhen,
        }
    }

    fn waits(self) -> bool {
        matches!(self, Self::ActWhen | Self::Wait)
    }
}

/// Why what fits best is not good enough to be the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    /// The use case says too little to choose by.
    Vague,
    /// The use case names an app, and this is not of it.
    OtherApp,
}

impl Desk<'_> {
    /// The use cases with what our own search finds for them.
    fn cases<'a>(&self, texts: &[&'a str], meanings: &[Meaning], kind: Kind) -> Result<Vec<Case<'a>>, CallError> {
        texts.iter().zip(meanings).map(|(text, meaning)| self.case(text, meaning, kind)).collect()
    }

    fn case<'a>(&self, text: &'a str, meaning: &Meaning, kind: Kind) -> Result<Case<'a>, CallError> {
        let mut asked = self.search(text, meaning, kind, 1 + self.alternatives())?;
        let wish = Wish::of(asked.event);
        let (mut acts, mut waits) = ((text, meaning), (text, meaning));
        let by_words = Meaning::default();
        if let (Wish::ActWhen, Kind::Action, Some((head, tail))) = (wish, kind, when_clause(text)) {
            let head_alone = self.search(head, &by_words, kind, 1 + self.alternatives())?;
            if !head_alone.is_vague {
                (acts, waits, asked) = ((head, &by_words), (tail, &by_words), head_alone);
            }
        }
        let Asked { mut found, names_integration, is_vague, only_finds, .. } = asked;
        let mut case = Case { text, wish, choices: Vec::new(), doubt: None, trigger: None, difficulty: None };
        if kind == Kind::Action && wish.waits() && !is_vague {
            case.trigger = self.event(waits.0, waits.1)?;
        }
        let is_of_another_app = |found: &Found| names_integration && found.reasons.app <= 0.0;
        let fits = |found: &Found| !(only_finds && found.changes_something());
        if !found.iter().all(fits) {
            found = self.deeper(acts.0, acts.1, kind, fits)?;
        }
        if wish == Wish::Wait && kind == Kind::Action {
            // A tool cannot wait. Where no event fits, one that reads can be run on a schedule.
            found.retain(|found| case.trigger.is_none() && found.reads_only());
        } else if found.first().is_some_and(is_of_another_app) {
            let shares_more_than_the_app = |found: &Found| {
                let Reasons { name, example, verb, .. } = found.reasons;
                found.is_named && (name > 0.0 || example > 0.0) && verb >= 0.0
            };
            let mut own = self.deeper(acts.0, acts.1, kind, |found| shares_more_than_the_app(found) && fits(found))?;
            own.extend(found.into_iter().filter(is_of_another_app));
            found = own;
        }
        case.doubt = match found.first() {
            _ if is_vague => Some(Doubt::Vague),
            Some(best) if is_of_another_app(best) => Some(Doubt::OtherApp),
            _ => None,
        };
        case.choices = found.into_iter().map(Choice::from).collect();
        case.choices.truncate(1 + self.alternatives());
        Ok(case)
    }

    /// What fits a use case and the condition, from further down the list.
    fn deeper(&self, text: &str, meaning: &Meaning, kind: Kind, fits: impl Fn(&Found) -> bool) -> Result<Vec<Found>, CallError> {
        let mut found = self.search(text, meaning, kind, LOOK_DEEPER)?.found;
        found.retain(fits);
        Ok(found)
    }

    fn alternatives(&self) -> usize {
        self.request.alternatives.min(MAX_ALTERNATIVES)
    }

    fn state(&self, found: &Found) -> State {
        State::of(&found.integration, found.item.kind(), self.scope.project, self.rows)
    }

    fn is_ready(&self, integration: &Integration) -> bool {
        State::of(integration, Kind::Action, self.scope.project, self.rows).is_ready()
    }

    /// The use cases to ask providers about: all of them where one is named, else those whose best answer cannot be used now. Providers
    /// search tools only.
    fn to_ask<'a>(&self, cases: &[Case<'a>]) -> Vec<&'a str> {
        let has_answer = |case: &Case<'_>| case.answer().is_some_and(|best| self.is_ready(&best.found.integration));
        let open = cases.iter().filter(|case| case.wish != Wish::Wait && (self.request.provider.is_some() || !has_answer(case)));
        open.map(|case| case.text).collect()
    }

    fn take_advice(&self, case: &mut Case<'_>, advice: &Advice<'_>, guidance: &mut Guidance) {
        let is_named = self.request.provider.is_some();
        for (provider, suggestion) in advice.of(case.text) {
            let listed = Listed::new(&self.tools.catalog, self.scope.project, provider, suggestion, &case.choices);
            let own = std::mem::take(&mut case.choices);
            let has_answer = case.doubt.is_none();
            let (choices, leads) = merge(own, listed, is_named || !has_answer, |integration| self.is_ready(integration));
            case.choices = choices;
            case.choices.truncate(1 + self.alternatives());
            if leads {
                case.doubt = None;
            }
            if leads || is_named {
                guidance.suggest(suggestion);
                case.difficulty.clone_from(&suggestion.difficulty);
            }
        }
    }

    fn capability(&mut self, case: &Case<'_>, kind: Kind, guidance: &mut Guidance) -> Capability {
        for found in case.trigger.iter().chain(case.found()) {
            self.see(found);
        }
        self.tools.offers.add(self.scope, case.text, case.found());
        let mut capability = Capability { note: case.note(kind), ..Capability::new(case.text) };
        if let Some(trigger) = &case.trigger {
            let state = self.state(trigger);
            guidance.add(trigger, &state);
            capability.integration = Some(trigger.integration.key.clone());
            capability.connection = Some(state);
            capability.trigger = EventFound::of(trigger);
        }
        let answer = case.answer();
        if let Some(primary) = answer {
            let state = self.state(&primary.found);
            guidance.add(&primary.found, &state);
            if let (Kind::Action, Some(cron)) = (kind, recurring::cron(case.text)) {
                guidance.schedule(&primary.found, cron);
            }
            capability.integration = Some(primary.found.integration.key.clone());
            capability.target = Some(Target::new(&primary.found, state.slug.clone()));
            capability.connection = Some(state);
            capability.difficulty = case.difficulty.clone();
            capability.why = self.request.debug.then(|| Why::of(primary));
        }
        let others = case.choices.iter().skip(usize::from(answer.is_some())).take(self.alternatives());
        capability.alternatives = others.map(|other| Alternative::new(other, self.state(&other.found).slug, self.request.debug)).collect();
        capability
    }

    fn see(&mut self, found: &Found) {
        let (integration, kind) = (&found.integration, found.item.kind());
        let is_same = |seen: &&mut Seen| seen.integration.provider == integration.provider && seen.integration.key == integration.key;
        match self.seen.iter_mut().find(is_same) {
            // A subscription needs more than a call.
            Some(seen) if kind == Kind::Event => seen.kind = kind,
            Some(_) => {}
            None => self.seen.push(Seen { integration: integration.clone(), kind }),
        }
    }

    /// The event that a use case waits for. Where it names an app, another app's event is no answer.
    fn event(&self, text: &str, meaning: &Meaning) -> Result<Option<Found>, CallError> {
        let asked = self.search(text, meaning, Kind::Event, 1)?;
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

    fn is_empty(&self) -> bool {
        self.choices.is_empty() && self.trigger.is_none()
    }

    /// The choice that is good enough to be the answer.
    fn answer(&self) -> Option<&Choice> {
        self.choices.first().filter(|_| self.doubt.is_none())
    }

    /// What the caller should know about how it was read.
    fn note(&self, kind: Kind) -> Option<String> {
        let text = match (kind, self.doubt) {
            (_, Some(Doubt::Vague)) if self.choices.is_empty() => {
                "Nothing fits this use case. It is vague: say what to do, with what and in which app."
            }
            (_, Some(Doubt::Vague)) => {
                "This is too vague to choose by: say what to do, with what and in which app, such as `create an issue on GitHub`. \
                 The alternatives are what is nearest."
            }
            (Kind::Action, _) if self.trigger.is_some() && self.answer().is_some() => {
                "This waits for an event and then acts: subscribe to the one in `trigger` with POST /triggers/subscriptions/, and call the \
                 tool in what it runs."
            }
            (Kind::Action, _) if self.trigger.is_some() => {
                "This reads like an event: subscribe to the one in `trigger` with POST /triggers/subscriptions/. Tools act, they do not wait."
            }
            _ if self.choices.is_empty() => "Nothing fits this use case.",
            (Kind::Action, _) if self.wish.waits() => {
                "This reads like an event, but no event here fits. Tools act, they do not wait; run one on a schedule instead."
            }
            (_, Some(Doubt::OtherApp)) => "The app that this names has nothing that clearly fits; the alternatives are from others.",
            (Kind::Event, None) if self.wish == Wish::Act => {
                "This reads like something to do, not to wait for; POST /tools/discover finds tools."
            }
            _ => return None,
        };
        Some(text.to_owned())
    }
}

/// What to do and when, of "post to Slack when an issue is opened".
fn when_clause(text: &str) -> Option<(&str, &str)> {
    let lower = text.to_ascii_lowercase();
    let at = [" when ", " whenever ", " once "].iter().filter_map(|word| lower.find(word)).min()?;
    Some((text[..at].trim(), text[at..].trim()))
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
