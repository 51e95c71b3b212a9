//! Finding the actions and events that fit a sentence: one search index per list of integrations, shared by all projects that see it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use kernel::ProjectId;

use crate::search::{self, Document, Embedder, Index, Kind, Options, Reasons};
use crate::{Action, Catalog, CatalogError, Event, Integration, Source};

/// How many lists of integrations keep their index; the one not asked for the longest goes first.
const MAX_SHELVES: usize = 512;

/// What to look for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub use_case: &'a str,
    pub kind: Kind,
    pub limit: usize,
    /// Keys of integrations to prefer when the use case names none, such as the connected ones.
    pub preferred: &'a [&'a str],
    /// What `Catalog::meanings` said of the use case; without it only words count.
    pub meaning: &'a Meaning,
}

/// The vectors of a use case, one per sentence that was embedded in time.
#[derive(Clone, Debug, Default)]
pub struct Meaning(Vec<Vec<f32>>);

/// How a use case reads, and what fits it, best first.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub found: Vec<Found>,
    /// How much it asks for an event: 1 surely, −1 surely for an action.
    pub event: f32,
    /// Whether it clearly names an integration.
    pub names_integration: bool,
}

/// An action or an event that fits, with the integration it belongs to.
#[derive(Clone, Debug)]
pub struct Found {
    pub integration: Arc<Integration>,
    pub item: Item,
    pub score: f32,
    /// How much of the use case it explains, from 0 to 1.
    pub confidence: f32,
    pub reasons: Reasons,
}

/// Something that can be called or watched.
#[derive(Clone, Debug)]
pub enum Item {
    Action(Arc<Action>),
    Event(Arc<Event>),
}

impl Item {
    pub fn key(&self) -> &str {
        match self {
            Self::Action(action) => &action.key,
            Self::Event(event) => &event.key,
        }
    }

    pub fn description(&self) -> &str {
        match self {
            Self::Action(action) => &action.description,
            Self::Event(event) => &event.description,
        }
    }

    fn document(&self, id: u64, integration: &Integration) -> Document {
        let about = search::Integration {
            key: integration.key.clone(),
            name: integration.name.clone(),
            aliases: integration.aliases.clone(),
            about: format!("{} {}", integration.description, integration.categories.join(" ")),
        };
        let document = Document { id, provider: integration.provider.to_owned(), integration: about, ..Document::default() };
        match self {
            Self::Action(action) => Document {
                kind: Kind::Action,
                name: action.name.clone(),
                description: action.description.clone(),
                parameters: action.input_schema.value()["properties"].as_object().into_iter().flat_map(|all| all.keys().cloned()).collect(),
                use_cases: action.use_cases.clone(),
                read_only: action.read_only,
                destructive: action.destructive,
                ..document
            },
            Self::Event(event) => Document {
                kind: Kind::Event,
                name: event.name.clone(),
                description: event.description.clone(),
                use_cases: event.use_cases.clone(),
                ..document
            },
        }
    }
}

/// A list of integrations, ready to be searched.
#[derive(Debug)]
struct Shelf {
    items: Vec<(Arc<Integration>, Item)>,
    index: Arc<Index>,
}

impl Shelf {
    fn new(source: &dyn Source, number: u64, project: ProjectId, embedder: Option<&dyn Embedder>) -> Self {
        let mut items = Vec::new();
        for integration in source.integrations(project) {
            items.extend(integration.actions.iter().map(|action| (integration.clone(), Item::Action(action.clone()))));
            items.extend(integration.events.iter().map(|event| (integration.clone(), Item::Event(event.clone()))));
        }
        let documents: Vec<Document> =
            items.iter().zip(0_u64..).map(|((integration, item), position)| item.document(number << 32 | position, integration)).collect();
        let index = Arc::new(Index::build(&documents));
        if let Some(embedder) = embedder {
            let waiting = Arc::downgrade(&index);
            let done = move |vectors| _ = waiting.upgrade().map(|index| index.embed(vectors));
            embedder.prepare(search::sentences(&documents), Box::new(done));
        }
        Self { items, index }
    }

    fn item(&self, id: u64) -> Option<&(Arc<Integration>, Item)> {
        self.items.get(usize::try_from(id & u64::from(u32::MAX)).ok()?)
    }
}

/// The shelves by source and edition, each built when it is first asked for.
#[derive(Debug, Default)]
pub(crate) struct Shelves {
    all: Mutex<HashMap<(&'static str, u64), Slot>>,
    clock: AtomicU64,
}

#[derive(Debug, Default)]
struct Slot {
    shelf: Arc<OnceLock<Shelf>>,
    used: u64,
}

impl Shelves {
    /// The place of a shelf; whoever asks first fills it, without holding up those who ask for another.
    fn place(&self, source: &'static str, edition: u64) -> Arc<OnceLock<Shelf>> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (source, edition);
        if !all.contains_key(&key)
            && all.len() >= MAX_SHELVES
            && let Some(oldest) = all.iter().min_by_key(|(_, slot)| slot.used).map(|(key, _)| *key)
        {
            all.remove(&oldest);
        }
        let slot = all.entry(key).or_default();
        slot.used = now;
        slot.shelf.clone()
    }
}

impl Catalog {
    /// What use cases mean to the sentence model, for as many as it can say so within the time; takes that long at most, on this thread.
    pub fn meanings(&self, use_cases: &[&str], within: Duration) -> Vec<Meaning> {
        let Some(embedder) = &self.embedder else { return vec![Meaning::default(); use_cases.len()] };
        let sentences: Vec<(usize, &str)> =
            use_cases.iter().enumerate().flat_map(|(at, case)| search::sentences_of(case).into_iter().map(move |part| (at, part))).collect();
        let vectors = embedder.ask(&sentences.iter().map(|(_, part)| *part).collect::<Vec<_>>(), within);
        let mut meanings = vec![Meaning::default(); use_cases.len()];
        for ((at, _), vector) in sentences.into_iter().zip(vectors) {
            meanings[at].0.extend(vector);
        }
        meanings
    }

    /// What fits a use case, in one provider or in all of them.
    pub fn search(&self, project: ProjectId, provider: Option<&str>, wanted: &Wanted<'_>) -> Result<Asked, CatalogError> {
        if let Some(provider) = provider {
            self.source(provider)?;
        }
        let sources: Vec<(u64, &Arc<dyn Source>)> =
            (0..).zip(&self.sources).filter(|(_, source)| provider.is_none_or(|key| source.provider().key == key)).collect();
        let places: Vec<_> = sources.iter().map(|(_, source)| self.shelves.place(source.provider().key, source.edition(project))).collect();
        let filled = places.iter().zip(&sources);
        let shelves: Vec<&Shelf> =
            filled.map(|(place, (number, source))| place.get_or_init(|| Shelf::new(&***source, *number, project, self.embedder.as_deref()))).collect();
        let indexes: Vec<&Index> = shelves.iter().map(|shelf| &*shelf.index).collect();
        let options = Options { kind: Some(wanted.kind), preferred: wanted.preferred, vectors: &wanted.meaning.0, ..Options::default() };
        let answer = search::search(&indexes, wanted.use_case, wanted.limit, &options);
        let found = answer.hits.into_iter().filter_map(|hit| {
            let (integration, item) = shelves[hit.index].item(hit.document)?.clone();
            Some(Found { integration, item, score: hit.score, confidence: hit.confidence, reasons: hit.reasons })
        });
        Ok(Asked { found: found.collect(), event: answer.event, names_integration: answer.names_app })
    }
}
