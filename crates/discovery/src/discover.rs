//! The walk of a discovery: search each use case, ask providers where that leaves something open, say what to do.

use std::sync::Arc;

use catalog::search::{Kind, Reasons};
use catalog::{CatalogError, Examples, Found, Integration, SearchAnswer, SearchRequest};
use connections::Connection;
use kernel::{Budget, Scope};
use serde_json::{Map, Value};
use work::WorkError;

use crate::advisor::Advice;
use crate::answer::{
    AlternativeEvent, AlternativeTool, ConnectionState, DiscoveredEvents, DiscoveredTools, EventCapability, Evidence, FoundEvent,
    FoundTool, IntegrationState, NamedIntegration, ToolCapability, rounded,
};
use crate::guidance::Plan;
use crate::merge::{Choice, Listed, merge};
use crate::next_step::NextStep;
use crate::parts::UseCaseParts;
use crate::use_case::{Doubt, UseCase, UseCaseIntent};
use crate::{Discovery, DiscoveryError};

const DEFAULT_ALTERNATIVES: usize = 3;
const MAX_ALTERNATIVES: usize = 50;
/// How many use cases one request may hold, and how many characters each.
const MAX_USE_CASES: usize = 50;
pub(crate) const MAX_USE_CASE: usize = 20_000;
/// About as much work as looking at so many bytes: one search, and each byte of its use case.
const SEARCH: usize = 4 << 10;
const PER_BYTE: usize = 8;
/// How many finds are looked at where the best are not what is asked for.
const LOOK_DEEPER: usize = 50;
/// How many are named of what is nearest where nothing fits.
const NEAREST: usize = 3;
/// From this confidence on, what a sentence goes on with is part of the answer.
const SURE_ENOUGH: f32 = 0.4;
/// How sure an answer is that is none.
const NO_ANSWER: f64 = 0.0;

/// About how much work a search is.
pub(crate) fn search_size(text: &str) -> usize {
    SEARCH + PER_BYTE * text.len()
}

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
    pub fn from_arguments(arguments: &Map<String, Value>) -> Self {
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

    fn trimmed(&self) -> Result<Vec<&str>, DiscoveryError> {
        let cases: Vec<&str> = self.use_cases.iter().map(|case| case.trim()).filter(|case| !case.is_empty()).collect();
        if cases.is_empty() {
            return Err(DiscoveryError::Invalid("Give at least one use case.".to_owned()));
        }
        if cases.len() > MAX_USE_CASES {
            return Err(DiscoveryError::Invalid(format!("Give at most {MAX_USE_CASES} use cases at once.")));
        }
        if cases.iter().any(|case| case.chars().nth(MAX_USE_CASE).is_some()) {
            return Err(DiscoveryError::Invalid(format!("A use case is a sentence: it may have {MAX_USE_CASE} characters.")));
        }
        Ok(cases)
    }
}

impl Discovery {
    /// The tools that fit each use case, in the order of the request.
    #[kernel::boxed]
    pub async fn discover(&self, scope: Scope, request: &Discover) -> Result<DiscoveredTools, DiscoveryError> {
        Box::pin(self.find_tools(scope, request)).await
    }

    /// The events that fit each use case, in the order of the request.
    #[kernel::boxed]
    pub async fn discover_events(&self, scope: Scope, request: &Discover) -> Result<DiscoveredEvents, DiscoveryError> {
        Box::pin(self.find_events(scope, request)).await
    }

    async fn find_tools(&self, scope: Scope, request: &Discover) -> Result<DiscoveredTools, DiscoveryError> {
        let texts = request.trimmed()?;
        let (mut run, mut cases) = self.search(scope, request, &texts, Kind::Action).await?;
        let mut plan = Plan::new(&*self.0.addresses);
        let advice = self.advice(scope.project, request.provider.as_deref(), &run.to_ask(&cases)).await;
        for case in &mut cases {
            run.take_advice(case, &advice, &mut plan);
        }
        if let Some(failure) = advice.failures.first().filter(|_| cases.iter().all(UseCase::is_empty)) {
            return Err(DiscoveryError::Search(format!("{failure}, and nothing else fits.")));
        }
        let mut notes: Vec<String> =
            advice.failures.iter().map(|failure| format!("{failure}; these are Toolyard's own results.")).collect();
        let capabilities: Vec<ToolCapability> = cases.iter().map(|case| run.tool_for(case, &mut plan)).collect();
        notes.extend(capabilities.iter().filter_map(|one| Some(format!("{}: {}", one.use_case, one.note.as_ref()?))));
        Ok(DiscoveredTools {
            ready: capabilities.iter().all(ToolCapability::is_ready),
            capabilities,
            connections: run.connections(NextStep::ConnectForTools),
            guidance: plan.finish(),
            notes,
        })
    }

    async fn find_events(&self, scope: Scope, request: &Discover) -> Result<DiscoveredEvents, DiscoveryError> {
        let texts = request.trimmed()?;
        let (mut run, cases) = self.search(scope, request, &texts, Kind::Event).await?;
        let mut plan = Plan::new(&*self.0.addresses);
        let capabilities: Vec<EventCapability> = cases.iter().map(|case| run.event_for(case, &mut plan)).collect();
        let notes = capabilities.iter().filter_map(|one| Some(format!("{}: {}", one.use_case, one.note.as_ref()?)));
        Ok(DiscoveredEvents {
            notes: notes.collect(),
            ready: capabilities.iter().all(EventCapability::is_ready),
            capabilities,
            connections: run.connections(NextStep::ConnectForEvents),
            guidance: plan.finish(),
        })
    }

    /// What our own search finds for each text.
    async fn search<'a>(
        &self,
        scope: Scope,
        request: &Discover,
        texts: &[&'a str],
        kind: Kind,
    ) -> Result<(DiscoveryRun, Vec<UseCase<'a>>), DiscoveryError> {
        self.check_provider(request.provider.as_deref())?;
        let rows = self.0.connections.choices(scope, None, None).await?;
        let examples = self.examples(scope.project).await?;
        let run = DiscoveryRun { discovery: self.clone(), scope, request: request.clone(), rows, examples, seen: Vec::new() };
        let size = texts.iter().map(|text| search_size(text)).sum();
        let search = move |budget: &Budget| {
            let cases = run.cases(&run.request.trimmed()?, kind, budget)?;
            let cases: Vec<UseCase<'static>> = cases.into_iter().map(|case| case.under("")).collect();
            Ok::<_, DiscoveryError>((run, cases))
        };
        let (run, cases) = self.0.workers.run(scope.project, size, search).await?;
        Ok((run, cases.into_iter().zip(texts).map(|(case, text)| case.under(text)).collect()))
    }

    fn check_provider(&self, provider: Option<&str>) -> Result<(), DiscoveryError> {
        let Some(Err(error)) = provider.map(|provider| self.0.catalog.source(provider)) else { return Ok(()) };
        Err(match error {
            CatalogError::UnknownProvider(missing) => {
                let known: Vec<&str> = self.0.catalog.providers().iter().map(|provider| provider.key).collect();
                let (key, all) = (&missing.key, known.join("`, `"));
                DiscoveryError::Invalid(format!(
                    "`{key}` is not a provider that can be searched; leave it out, or name one of `{all}`{missing}"
                ))
            }
            other => DiscoveryError::Connection(other.into()),
        })
    }
}

/// Where one request is worked on.
struct DiscoveryRun {
    discovery: Discovery,
    scope: Scope,
    request: Discover,
    rows: Vec<Connection>,
    examples: Arc<Examples>,
    /// Integrations that the answer names, in order.
    seen: Vec<NamedIntegration>,
}

impl DiscoveryRun {
    /// The use cases with what our own search finds for them.
    fn cases<'a>(&self, texts: &[&'a str], kind: Kind, budget: &Budget) -> Result<Vec<UseCase<'a>>, DiscoveryError> {
        let search = |text: &&'a str| {
            budget.look().map_err(WorkError::from)?;
            self.case(text, kind)
        };
        texts.iter().map(search).collect()
    }

    fn case<'a>(&self, text: &'a str, kind: Kind) -> Result<UseCase<'a>, DiscoveryError> {
        let UseCaseParts { waits, acts, cron } = UseCaseParts::of(text);
        let (mut acts, mut waits) = (acts, waits);
        let looks_for = if kind == Kind::Event { waits.unwrap_or(text) } else { acts[0] };
        let mut asked = self.search(looks_for, kind, 1 + self.alternatives())?;
        let mut intent = UseCaseIntent::of(asked.event);
        if kind == Kind::Action && (waits.is_some() || acts.len() > 1) {
            if asked.is_vague || !asked.fits || intent == UseCaseIntent::Wait {
                (acts, waits, asked) = (vec![text], None, self.search(text, kind, 1 + self.alternatives())?);
                intent = UseCaseIntent::of(asked.event);
            } else if waits.is_some() {
                intent = UseCaseIntent::ActWhen;
            }
        }
        let SearchAnswer { mut found, names_integration, is_vague, fits, .. } = asked;
        let mut case = UseCase { text, intent, choices: Vec::new(), doubt: None, trigger: None, then: Vec::new(), cron, difficulty: None };
        if kind == Kind::Action && intent.waits() && !is_vague {
            case.trigger = self.event(waits.unwrap_or(acts[0]))?;
        }
        let is_of_another_app = |found: &Found| names_integration && found.reasons.app <= 0.0;
        if intent == UseCaseIntent::Wait && kind == Kind::Action {
            // A tool cannot wait. Where no event fits, one that reads can be run on a schedule.
            found.retain(|found| case.trigger.is_none() && found.reads_only());
        } else if fits && found.first().is_some_and(is_of_another_app) {
            let shares_more_than_the_app = |found: &Found| {
                let Reasons { name, example, verb, .. } = found.reasons;
                found.is_named && (name > 0.0 || example > 0.0) && verb >= 0.0
            };
            let mut own = self.deeper(looks_for, kind, shares_more_than_the_app)?;
            own.extend(found.into_iter().filter(is_of_another_app));
            found = own;
        }
        case.doubt = match found.first() {
            _ if is_vague => Some(Doubt::Vague),
            _ if !fits => Some(Doubt::Nothing),
            Some(best) if is_of_another_app(best) => Some(Doubt::OtherApp),
            _ => None,
        };
        if case.doubt.is_none() && kind == Kind::Action {
            case.then = self.steps(&acts[1..])?;
        }
        case.choices = found.into_iter().map(Choice::from).collect();
        let most = if case.doubt == Some(Doubt::Nothing) { NEAREST.min(self.alternatives()) } else { 1 + self.alternatives() };
        case.choices.truncate(most);
        Ok(case)
    }

    /// What the further steps of a use case call, as far as they are clear.
    fn steps(&self, texts: &[&str]) -> Result<Vec<Found>, DiscoveryError> {
        let mut steps = Vec::new();
        for text in texts {
            let asked = self.search(text, Kind::Action, 1)?;
            steps.extend(asked.found.into_iter().filter(|found| asked.fits && !asked.is_vague && found.confidence >= SURE_ENOUGH));
        }
        Ok(steps)
    }

    /// What fits a use case and the condition, from further down the list.
    fn deeper(&self, text: &str, kind: Kind, fits: impl Fn(&Found) -> bool) -> Result<Vec<Found>, DiscoveryError> {
        let mut found = self.search(text, kind, LOOK_DEEPER)?.found;
        found.retain(fits);
        Ok(found)
    }

    fn alternatives(&self) -> usize {
        self.request.alternatives.min(MAX_ALTERNATIVES)
    }

    fn state(&self, found: &Found) -> ConnectionState {
        ConnectionState::of(&found.integration, found.item.kind(), self.scope.into(), &self.rows)
    }

    fn is_ready(&self, integration: &Integration) -> bool {
        ConnectionState::of(integration, Kind::Action, self.scope.into(), &self.rows).is_ready()
    }

    /// The use cases to ask providers about: all of them where one is named, else those whose best answer cannot be used now. Providers
    /// search tools only.
    fn to_ask<'a>(&self, cases: &[UseCase<'a>]) -> Vec<&'a str> {
        let has_answer = |case: &UseCase<'_>| case.answer().is_some_and(|best| self.is_ready(&best.found.integration));
        let open = cases.iter().filter(|case| case.intent != UseCaseIntent::Wait && (self.request.provider.is_some() || !has_answer(case)));
        open.map(|case| case.text).collect()
    }

    fn take_advice(&self, case: &mut UseCase<'_>, advice: &Advice<'_>, plan: &mut Plan<'_>) {
        let is_named = self.request.provider.is_some();
        for (provider, suggestion) in advice.of(case.text) {
            let listed = Listed::new(&self.discovery.0.catalog, self.scope.project, provider, suggestion, &case.choices);
            let own = std::mem::take(&mut case.choices);
            let has_answer = case.doubt.is_none();
            let (choices, leads) = merge(own, listed, is_named || !has_answer, |integration| self.is_ready(integration));
            case.choices = choices;
            case.choices.truncate(1 + self.alternatives());
            if leads {
                case.doubt = None;
            }
            if leads || is_named {
                plan.suggest(suggestion);
                case.difficulty.clone_from(&suggestion.difficulty);
            }
        }
    }

    fn tool_for(&mut self, case: &UseCase<'_>, plan: &mut Plan<'_>) -> ToolCapability {
        self.offer(case);
        let addresses = &*self.discovery.0.addresses;
        let mut capability = ToolCapability {
            use_case: case.text.to_owned(),
            note: case.note(Kind::Action, addresses),
            confidence: case.answer().is_none().then_some(NO_ANSWER),
            ..ToolCapability::default()
        };
        if let Some(trigger) = &case.trigger {
            let state = self.state(trigger);
            plan.add(trigger, &state);
            capability.integration = Some(trigger.integration.key.clone());
            capability.connection = Some(state);
            capability.confidence = Some(rounded(trigger.confidence));
            capability.trigger = FoundEvent::of(trigger);
        }
        if let Some(best) = case.answer() {
            let state = self.state(&best.found);
            plan.add(&best.found, &state);
            capability.integration = Some(best.found.integration.key.clone());
            capability.tool = FoundTool::of(&best.found, state.slug.clone());
            capability.connection = Some(state);
            capability.difficulty = case.difficulty.clone();
            capability.confidence = best.confidence();
            Evidence { suggested_by: capability.suggested_by, score: capability.score, reasons: capability.reasons } =
                Evidence::of(best, self.request.debug);
            let then: Vec<FoundTool> = case.then.iter().filter_map(|step| self.next_tool(step, plan)).collect();
            capability.then = Some(then).filter(|then| !then.is_empty());
            if let Some(cron) = case.cron {
                plan.schedule(&best.found, cron);
            }
        }
        let others = self.others(case).filter_map(|other| AlternativeTool::of(other, self.state(&other.found).slug, self.request.debug));
        capability.alternatives = others.collect();
        capability
    }

    fn event_for(&mut self, case: &UseCase<'_>, plan: &mut Plan<'_>) -> EventCapability {
        self.offer(case);
        let addresses = &*self.discovery.0.addresses;
        let mut capability = EventCapability {
            use_case: case.text.to_owned(),
            note: case.note(Kind::Event, addresses),
            confidence: case.answer().is_none().then_some(NO_ANSWER),
            ..EventCapability::default()
        };
        if let Some(best) = case.answer() {
            let state = self.state(&best.found);
            plan.add(&best.found, &state);
            capability.integration = Some(best.found.integration.key.clone());
            capability.event = FoundEvent::of(&best.found);
            capability.connection = Some(state);
            capability.confidence = best.confidence();
            Evidence { score: capability.score, reasons: capability.reasons, .. } = Evidence::of(best, self.request.debug);
        }
        let others = self.others(case).filter_map(|other| AlternativeEvent::of(other, self.state(&other.found).slug, self.request.debug));
        capability.alternatives = others.collect();
        capability
    }

    /// Keeps what a use case is offered. What is only nearest is a hint; nobody shall connect its app for it.
    fn offer(&mut self, case: &UseCase<'_>) {
        let is_hint = case.doubt == Some(Doubt::Nothing);
        for found in case.trigger.iter().chain(case.found().filter(|_| !is_hint)).chain(&case.then) {
            self.see(found);
        }
        if !is_hint {
            self.discovery.0.offers.add(self.scope, case.text, case.found());
        }
    }

    fn next_tool(&self, step: &Found, plan: &mut Plan<'_>) -> Option<FoundTool> {
        let state = self.state(step);
        plan.add(step, &state);
        FoundTool::of(step, state.slug)
    }

    /// The choices beside the answer.
    fn others<'a>(&self, case: &'a UseCase<'_>) -> impl Iterator<Item = &'a Choice> {
        case.choices.iter().skip(usize::from(case.answer().is_some())).take(self.alternatives())
    }

    /// The state of every integration that the answer names, with the request that connects it.
    fn connections(&self, connect: NextStep) -> Vec<IntegrationState> {
        let addresses = &*self.discovery.0.addresses;
        self.seen.iter().map(|seen| IntegrationState::of(seen, self.scope.into(), &self.rows, connect, addresses)).collect()
    }

    fn see(&mut self, found: &Found) {
        let (integration, kind) = (&found.integration, found.item.kind());
        let is_same =
            |seen: &&mut NamedIntegration| seen.integration.provider == integration.provider && seen.integration.key == integration.key;
        match self.seen.iter_mut().find(is_same) {
            // A subscription needs more than a call.
            Some(seen) if kind == Kind::Event => seen.kind = kind,
            Some(_) => {}
            None => self.seen.push(NamedIntegration { integration: integration.clone(), kind }),
        }
    }

    /// The event that a use case waits for. Where it names an app, another app's event is no answer.
    fn event(&self, text: &str) -> Result<Option<Found>, DiscoveryError> {
        let asked = self.search(text, Kind::Event, 1)?;
        let is_of_named_app = |found: &Found| !asked.names_integration || found.reasons.app > 0.0;
        Ok(asked.found.first().filter(|found| asked.fits && is_of_named_app(found)).cloned())
    }

    fn search(&self, use_case: &str, kind: Kind, limit: usize) -> Result<SearchAnswer, DiscoveryError> {
        let connected = self.rows.iter().filter(|row| row.is_usable() && !row.is_failing());
        let preferred: Vec<&str> = connected.map(|row| row.integration.as_str()).collect();
        let wanted = SearchRequest { use_case, kind, limit, preferred: &preferred, examples: Some(&self.examples) };
        let asked = self.discovery.0.catalog.search(self.scope.project, self.request.provider.as_deref(), &wanted);
        asked.map_err(|error| DiscoveryError::Connection(error.into()))
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
            assert!(matches!(read(bad), Err(DiscoveryError::Invalid(_))));
        }
    }
}
