//! Providers that search for themselves, and what they said lately. That holds nothing of a project, so all of them share it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use catalog::Catalog;
use futures_util::future::join_all;
use kernel::ProjectId;

use crate::port::{FindError, Finder, SuggestedTool, Suggestion};
use crate::{Discovery, Inner};

/// How long a provider may take that somebody asked for by name.
const NAMED: Duration = Duration::from_secs(10);
/// How long one may take that is asked because our own answer is not ready.
const UNNAMED: Duration = Duration::from_secs(3);
/// How long a search goes on after whoever asked has gone on without it; the next who asks finds it answered.
const LONGEST: Duration = Duration::from_secs(20);
/// Searches of one project at once.
const AT_ONCE: usize = 4;
const REMEMBERED: Duration = Duration::from_mins(5);
const MOST: usize = 2_000;

/// What a provider said lately, by use case.
#[derive(Debug, Default)]
struct Recent(HashMap<String, (Instant, Arc<Suggestion>)>);

impl Recent {
    fn get(&self, use_case: &str, now: Instant) -> Option<Arc<Suggestion>> {
        let (since, suggestion) = self.0.get(use_case)?;
        (now.duration_since(*since) < REMEMBERED).then(|| suggestion.clone())
    }

    fn put(&mut self, use_case: &str, suggestion: Arc<Suggestion>, now: Instant) {
        if self.0.len() >= MOST && !self.0.contains_key(use_case) {
            self.0.retain(|_, (since, _)| now.duration_since(*since) < REMEMBERED);
            if self.0.len() >= MOST
                && let Some(oldest) = self.0.iter().min_by_key(|(_, (since, _))| *since).map(|(use_case, _)| use_case.clone())
            {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(use_case.to_owned(), (now, suggestion));
    }
}

/// A provider that searches for itself.
#[derive(Debug)]
pub(crate) struct Advisor {
    finder: Arc<dyn Finder>,
    recent: Mutex<Recent>,
    under_way: Mutex<HashMap<ProjectId, usize>>,
}

/// A place among the searches of a project.
struct Turn<'a>(&'a Advisor, ProjectId);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut under_way = self.0.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = under_way.get_mut(&self.1) {
            *count -= 1;
        }
        under_way.retain(|_, count| *count > 0);
    }
}

impl Advisor {
    pub(crate) fn new(finder: Arc<dyn Finder>) -> Self {
        Self { finder, recent: Mutex::default(), under_way: Mutex::default() }
    }

    fn turn(&self, project: ProjectId) -> Option<Turn<'_>> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let count = under_way.entry(project).or_default();
        (*count < AT_ONCE).then(|| {
            *count += 1;
            Turn(self, project)
        })
    }

    /// What it suggests for each use case that it was asked about, now or lately, and why it could not be asked about the others.
    async fn ask<'a>(
        self: &Arc<Self>,
        project: ProjectId,
        use_cases: &[&'a str],
        within: Duration,
        catalog: &Catalog,
    ) -> (HashMap<&'a str, Arc<Suggestion>>, Option<FindError>) {
        let (mut known, unknown) = self.known(use_cases);
        if unknown.is_empty() {
            return (known, None);
        }
        let (this, asked): (_, Vec<String>) = (self.clone(), unknown.iter().map(|case| (*case).to_owned()).collect());
        let catalog = catalog.clone();
        let search = tokio::spawn(async move { this.search(project, &asked, &catalog).await });
        match tokio::time::timeout(within, search).await {
            Ok(Ok(Ok(suggestions))) => {
                known.extend(unknown.into_iter().zip(suggestions));
                (known, None)
            }
            Ok(Ok(Err(error))) => (known, Some(error)),
            Ok(Err(interrupted)) => (known, Some(FindError(interrupted.to_string()))),
            Err(_) => (known, Some(late(within))),
        }
    }

    /// Asks and remembers, whether or not somebody still waits for it.
    async fn search(&self, project: ProjectId, use_cases: &[String], catalog: &Catalog) -> Result<Vec<Arc<Suggestion>>, FindError> {
        let Some(_turn) = self.turn(project) else {
            return Err(FindError("too many searches of this project are under way".to_owned()));
        };
        let cases: Vec<&str> = use_cases.iter().map(String::as_str).collect();
        let found = tokio::time::timeout(LONGEST, self.finder.find(project, &cases, LONGEST)).await.map_err(|_| late(LONGEST))??;
        let provider = self.finder.provider();
        let is_listed = |named: &SuggestedTool| catalog.action(project, provider, &named.integration, &named.action).is_ok();
        let found: Vec<Arc<Suggestion>> = found.into_iter().map(|suggestion| Arc::new(without_schemas(suggestion, is_listed))).collect();
        self.remember(&cases.into_iter().zip(found.iter().cloned()).collect::<Vec<_>>());
        Ok(found)
    }

    fn known<'a>(&self, use_cases: &[&'a str]) -> (HashMap<&'a str, Arc<Suggestion>>, Vec<&'a str>) {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut known, mut unknown, now) = (HashMap::new(), Vec::new(), Instant::now());
        for use_case in use_cases {
            match recent.get(use_case, now) {
                Some(suggestion) => _ = known.insert(*use_case, suggestion),
                None if unknown.contains(use_case) => {}
                None => unknown.push(*use_case),
            }
        }
        (known, unknown)
    }

    /// Keeps what names a tool; a search that found nothing may find something the next time.
    fn remember(&self, new: &[(&str, Arc<Suggestion>)]) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        for (use_case, suggestion) in new.iter().filter(|(_, suggestion)| !suggestion.primary.is_empty()) {
            recent.put(use_case, suggestion.clone(), now);
        }
    }
}

fn late(within: Duration) -> FindError {
    FindError(format!("no answer within {} seconds", within.as_secs()))
}

/// The catalog has the descriptions and schemas of what it lists; here they would only take room.
fn without_schemas(mut suggestion: Suggestion, is_listed: impl Fn(&SuggestedTool) -> bool) -> Suggestion {
    for named in suggestion.primary.iter_mut().chain(&mut suggestion.related).filter(|named| is_listed(named)) {
        (named.description, named.input_schema) = (None, None);
    }
    suggestion
}

/// What providers suggest for the use cases of a request.
#[derive(Debug, Default)]
pub(crate) struct Advice<'a> {
    by_provider: Vec<(&'static str, HashMap<&'a str, Arc<Suggestion>>)>,
    /// Which of them could not be asked, and why.
    pub(crate) failures: Vec<String>,
}

impl Advice<'_> {
    pub(crate) fn of(&self, use_case: &str) -> impl Iterator<Item = (&'static str, &Suggestion)> {
        self.by_provider.iter().filter_map(move |(provider, all)| Some((*provider, &**all.get(use_case)?)))
    }
}

impl Discovery {
    /// Asks the provider that is named, or else all that search for themselves, about use cases.
    pub(crate) async fn advice<'a>(&self, project: ProjectId, provider: Option<&str>, use_cases: &[&'a str]) -> Advice<'a> {
        if use_cases.is_empty() {
            return Advice::default();
        }
        let Inner { advisors, catalog, .. } = &*self.0;
        let asked = advisors.iter().filter(|advisor| provider.is_none_or(|key| key == advisor.finder.provider()));
        let within = if provider.is_some() { NAMED } else { UNNAMED };
        let answers = join_all(asked.map(|advisor| async move {
            let (suggestions, error) = advisor.ask(project, use_cases, within, catalog).await;
            (advisor.finder.provider(), suggestions, error)
        }));
        let mut advice = Advice::default();
        for (provider, suggestions, error) in answers.await {
            advice.failures.extend(error.map(|error| {
                let name = catalog.source(provider).map_or(provider, |source| source.provider().name);
                format!("{name}'s search could not be asked ({error})")
            }));
            advice.by_provider.push((provider, suggestions));
        }
        advice
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::{BoxFuture, pending};

    use super::*;
    use crate::port::SuggestedTool;

    /// Never answers.
    #[derive(Debug)]
    struct Silent;

    impl Finder for Silent {
        fn provider(&self) -> &'static str {
            "silent"
        }

        fn find<'a>(&'a self, _: ProjectId, _: &'a [&'a str], _: Duration) -> BoxFuture<'a, Result<Vec<Suggestion>, FindError>> {
            Box::pin(pending())
        }
    }

    #[tokio::test]
    async fn nobody_waits_longer_than_the_time() {
        let advisor = Arc::new(Advisor::new(Arc::new(Silent)));
        let named = SuggestedTool {
            integration: "a".to_owned(),
            action: "B".to_owned(),
            remote: "A_B".to_owned(),
            description: None,
            input_schema: None,
        };
        let known = Arc::new(Suggestion { primary: vec![named], ..Suggestion::default() });
        advisor.remember(&[("known", known.clone()), ("empty", Arc::default())]);
        let asked = ["known", "empty", "new"];
        let (said, error) = advisor.ask(ProjectId::new(), &asked, Duration::from_millis(10), &Catalog::new(Vec::new())).await;
        assert_eq!(said, HashMap::from([("known", known)]), "what is known stands");
        assert_eq!(error, Some(FindError("no answer within 0 seconds".to_owned())));
    }

    #[test]
    fn what_was_said_is_forgotten_in_time_and_never_too_much() {
        let (mut recent, start) = (Recent::default(), Instant::now());
        for number in 0..MOST + 10 {
            recent.put(&number.to_string(), Arc::default(), start + Duration::from_millis(number as u64));
        }
        let later = start + Duration::from_mins(1);
        assert_eq!(recent.0.len(), MOST);
        assert_eq!(recent.get("9", later), None);
        assert!(recent.get("10", later).is_some());
        assert!(recent.get("10", start + REMEMBERED).is_some());
        assert_eq!(recent.get("10", start + REMEMBERED + Duration::from_millis(10)), None);
        recent.put("new", Arc::default(), start + REMEMBERED * 2);
        assert_eq!(recent.0.len(), 1, "what is too old makes room");
    }
}
