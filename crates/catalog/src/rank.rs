//! Ranking: which actions or events fit a sentence. Words of the sentence are looked for in names and descriptions.

use std::sync::Arc;

use kernel::ProjectId;

use crate::{Action, Catalog, CatalogError, Event, Integration};

const STOP_WORDS: [&str; 42] = [
    "a",
    "an",
    "and",
    "at",
    "for",
    "from",
    "in",
    "is",
    "me",
    "new",
    "of",
    "on",
    "or",
    "the",
    "to",
    "when",
    "whenever",
    "with",
    "anyone",
    "can",
    "could",
    "did",
    "do",
    "does",
    "how",
    "my",
    "should",
    "someone",
    "trigger",
    "triggered",
    "triggers",
    "webhook",
    "webhooks",
    "what",
    "whats",
    "which",
    "who",
    "it",
    "its",
    "that",
    "this",
    "all",
];

/// Something that fits, with the integration it belongs to.
#[derive(Clone, Debug)]
pub struct Ranked<T> {
    pub integration: Arc<Integration>,
    pub item: Arc<T>,
    pub score: i64,
    /// How many words of the sentence it has, and whether it has the whole sentence.
    pub is_confident: bool,
}

/// The words of a sentence that say something.
#[derive(Debug)]
struct Terms {
    whole: String,
    words: Vec<String>,
}

impl Terms {
    fn of(sentence: &str) -> Self {
        let whole = sentence.trim().to_lowercase();
        let mut words: Vec<String> = Vec::new();
        for word in whole.split(|c: char| !c.is_alphanumeric()) {
            if word.chars().count() > 1 && !STOP_WORDS.contains(&word) && !words.iter().any(|known| known == word) {
                words.push(word.to_owned());
            }
        }
        Self { whole, words }
    }

    fn names(&self, integration: &Integration) -> bool {
        let squeeze = |text: &str| text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        let names: Vec<String> =
            [&integration.key, &integration.name].into_iter().chain(&integration.aliases).map(|name| squeeze(name)).collect();
        let pairs = self.words.windows(2).map(<[String]>::concat);
        self.words.iter().cloned().chain(pairs).any(|word| names.contains(&word))
    }

    fn score(&self, integration: &Integration, key: &str, name: &str, description: &str, use_cases: &[String]) -> (i64, bool) {
        let key = key.to_lowercase();
        let named = format!("{} {}", integration.key, integration.name).to_lowercase();
        let hay = format!("{key} {name} {description} {named} {}", use_cases.join(" ")).to_lowercase();
        let (mut score, mut matched) = (0, 0);
        let exact = self.whole.len() > 2 && hay.contains(&self.whole);
        if exact {
            score += 50;
        }
        for word in &self.words {
            if hay.contains(word.as_str()) {
                matched += 1;
                score += 5;
            }
            score += if key.contains(word.as_str()) { 3 } else { 0 } + if named.contains(word.as_str()) { 2 } else { 0 };
        }
        let side_by_side = format!("{} {}", key.replace('_', " "), name.to_lowercase());
        let content: Vec<&String> = self.words.iter().filter(|word| !named.contains(word.as_str())).collect();
        score += 4 * i64::try_from(content.windows(2).filter(|pair| side_by_side.contains(&format!("{} {}", pair[0], pair[1]))).count())
            .unwrap_or(0);
        (score, exact || matched >= 2)
    }
}

impl Catalog {
    pub fn rank_actions(&self, project: ProjectId, provider: Option<&str>, sentence: &str) -> Result<Vec<Ranked<Action>>, CatalogError> {
        self.rank(
            project,
            provider,
            sentence,
            |integration| &integration.actions,
            |terms, integration, action| terms.score(integration, &action.key, &action.name, &action.description, &action.use_cases),
        )
    }

    pub fn rank_events(&self, project: ProjectId, provider: Option<&str>, sentence: &str) -> Result<Vec<Ranked<Event>>, CatalogError> {
        self.rank(
            project,
            provider,
            sentence,
            |integration| &integration.events,
            |terms, integration, event| terms.score(integration, &event.key, &event.name, &event.description, &event.use_cases),
        )
    }

    fn rank<T>(
        &self,
        project: ProjectId,
        provider: Option<&str>,
        sentence: &str,
        items: impl Fn(&Integration) -> &Vec<Arc<T>>,
        score: impl Fn(&Terms, &Integration, &T) -> (i64, bool),
    ) -> Result<Vec<Ranked<T>>, CatalogError> {
        let sources = match provider {
            Some(provider) => vec![self.source(provider)?],
            None => self.sources.iter().collect(),
        };
        let terms = Terms::of(sentence);
        let mut integrations: Vec<Arc<Integration>> = sources.iter().flat_map(|source| source.integrations(project)).collect();
        if integrations.iter().any(|integration| terms.names(integration)) {
            integrations.retain(|integration| terms.names(integration));
        }
        let mut found = Vec::new();
        for integration in integrations {
            for item in items(&integration) {
                let (score, is_confident) = score(&terms, &integration, item);
                if score > 0 {
                    found.push(Ranked { integration: integration.clone(), item: item.clone(), score, is_confident });
                }
            }
        }
        found.sort_by_key(|ranked| std::cmp::Reverse(ranked.score));
        Ok(found)
    }
}
