//! Finding the actions and events that fit a sentence: one search index per list of integrations, shared by all projects that see it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
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
    /// What the project learned.
    pub examples: Option<&'a Examples>,
}

/// A use case that an action turned out to be right for.
#[derive(Clone, Debug)]
pub struct Learned {
    pub use_case: String,
    pub provider: String,
    pub integration: String,
    pub action: String,
}

/// Learned use cases as an index beside those of the sources.
#[derive(Debug)]
pub struct Examples {
    /// The lists of integrations that the index speaks of, by number of the source.
    editions: Vec<(u64, u64)>,
    index: Index,
}

impl Examples {
    /// Whether the lists that are searched are still the ones that it speaks of.
    fn fit(&self, places: &[Place]) -> bool {
        places.iter().all(|place| self.editions.contains(&(place.number, place.edition)))
    }
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
    /// Whether it says too little to choose by.
    pub is_vague: bool,
    /// Whether it only wants to be told something.
    pub only_finds: bool,
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
    /// Whether the use case clearly names its integration.
    pub is_named: bool,
}

impl Found {
    /// Whether a call of it changes nothing.
    pub fn reads_only(&self) -> bool {
        matches!(&self.item, Item::Action(action) if action.read_only)
    }

    /// Whether a call of it changes something, as far as its integration tells: one that marks nothing as reading says nothing.
    pub fn changes_something(&self) -> bool {
        let tells = || self.integration.actions.iter().any(|action| action.read_only);
        self.item.kind() == Kind::Action && !self.reads_only() && tells()
    }
}

/// Something that can be called or watched.
#[derive(Clone, Debug)]
pub enum Item {
    Action(Arc<Action>),
    Event(Arc<Event>),
}

impl Item {
    pub fn kind(&self) -> Kind {
        match self {
            Self::Action(_) => Kind::Action,
            Self::Event(_) => Kind::Event,
        }
    }

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
                parameters: action.parameters(),
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
    embedding: Once,
}

impl Shelf {
    fn new(integrations: &[Arc<Integration>], number: u64) -> Self {
        let mut items = Vec::new();
        for integration in integrations {
            items.extend(integration.actions.iter().map(|action| (integration.clone(), Item::Action(action.clone()))));
            items.extend(integration.events.iter().map(|event| (integration.clone(), Item::Event(event.clone()))));
        }
        let index = Arc::new(Index::build(documents(&items, number)));
        Self { items, index, embedding: Once::new() }
    }

    /// Has the vectors made, once somebody searches.
    fn embed(&self, number: u64, embedder: &dyn Embedder) {
        self.embedding.call_once(|| {
            let waiting = Arc::downgrade(&self.index);
            let done = move |vectors| _ = waiting.upgrade().map(|index| index.embed(vectors));
            embedder.prepare(search::sentences(&documents(&self.items, number).collect::<Vec<_>>()), Box::new(done));
        });
    }

    fn item(&self, id: u64) -> Option<&(Arc<Integration>, Item)> {
        self.items.get(usize::try_from(id & ((1 << POSITION_BITS) - 1)).ok()?)
    }

    fn position(&self, integration: &str, action: &str) -> Option<usize> {
        let is_it = |item: &Item| matches!(item, Item::Action(own) if own.key == action);
        self.items.iter().position(|(own, item)| own.key == integration && is_it(item))
    }
}

fn documents(items: &[(Arc<Integration>, Item)], number: u64) -> impl Iterator<Item = Document> {
    let numbered = items.iter().enumerate();
    numbered.map(move |(position, (integration, item))| item.document(document_id(number, position), integration))
}

/// Where a shelf stands: the number of its source, which list it holds, and the shelf, once somebody has filled it.
struct Place {
    number: u64,
    source: &'static str,
    edition: u64,
    shelf: Arc<OnceLock<Shelf>>,
    /// For this search alone, where the list became another one meanwhile.
    passing: OnceLock<Shelf>,
}

/// Documents are numbered by source and position, so that one found in two indexes is known to be the same.
const POSITION_BITS: u32 = 32;

fn document_id(source: u64, position: usize) -> u64 {
    source << POSITION_BITS | u64::try_from(position).unwrap_or(u64::MAX >> POSITION_BITS)
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
    fn place(&self, source: &dyn Source, edition: u64) -> Arc<OnceLock<Shelf>> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (source.provider().key, edition);
        if source.is_shared() && !all.contains_key(&key) {
            all.retain(|(other, _), _| *other != key.0);
        }
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

/// How well the actions of integrations fit a sentence, in their order, and after them other things that can be called. Nothing in common
/// is zero.
pub fn relevance(sentence: &str, integrations: &[&Integration], others: &[Document]) -> Vec<Vec<f32>> {
    let others = Index::build(others);
    let mut indexes: Vec<&Index> = integrations.iter().map(|integration| integration.words()).collect();
    indexes.push(&others);
    search::relevance(&indexes, sentence)
}

impl Integration {
    /// The words of its actions, made searchable when somebody first asks.
    fn words(&self) -> &Index {
        self.words.get_or_init(|| Index::build(self.actions.iter().map(|action| Item::Action(action.clone()).document(0, self))))
    }
}

impl Catalog {
    /// Builds what the first search of a project would have to wait for.
    pub fn warm(&self, project: ProjectId) {
        for place in self.places(project, None) {
            self.shelf(&place, project);
        }
    }

    /// What use cases mean to the sentence model, for as many as it can say so within the time; takes that long at most, on this thread.
    pub fn meanings(&self, use_cases: &[&str], within: Duration) -> Vec<Meaning> {
        let Some(embedder) = &self.embedder else { return vec![Meaning::default(); use_cases.len()] };
        let sentences: Vec<(usize, &str)> = use_cases
            .iter()
            .enumerate()
            .flat_map(|(at, case)| search::sentences_of(case).into_iter().map(move |part| (at, part)))
            .collect();
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
        let places = self.places(project, provider);
        let shelves: Vec<(u64, &Shelf)> = places.iter().map(|place| (place.number, self.shelf(place, project))).collect();
        if let Some(embedder) = &self.embedder {
            for (number, shelf) in &shelves {
                shelf.embed(*number, &**embedder);
            }
        }
        let mut indexes: Vec<&Index> = shelves.iter().map(|(_, shelf)| &*shelf.index).collect();
        indexes.extend(wanted.examples.filter(|examples| examples.fit(&places)).map(|examples| &examples.index));
        let options = Options { kind: Some(wanted.kind), preferred: wanted.preferred, vectors: &wanted.meaning.0, ..Options::default() };
        let answer = search::search(&indexes, wanted.use_case, wanted.limit, &options);
        let found = answer.hits.into_iter().filter_map(|hit| {
            let (_, shelf) = shelves.iter().find(|(number, _)| *number == hit.document >> POSITION_BITS)?;
            let (integration, item) = shelf.item(hit.document)?.clone();
            let search::Hit { score, confidence, reasons, is_named, .. } = hit;
            Some(Found { integration, item, score, confidence, reasons, is_named })
        });
        Ok(Asked {
            found: found.collect(),
            event: answer.event,
            names_integration: answer.names_app,
            is_vague: answer.is_vague,
            only_finds: answer.only_finds,
        })
    }

    /// Use cases that a project learned, made searchable. Those of actions that are gone are left out.
    pub fn examples(&self, project: ProjectId, learned: &[Learned]) -> Examples {
        let places = self.places(project, None);
        let mut documents: Vec<Document> = Vec::new();
        for example in learned {
            let Some(place) = places.iter().find(|place| place.source == example.provider) else { continue };
            let shelf = self.shelf(place, project);
            let Some(position) = shelf.position(&example.integration, &example.action) else { continue };
            let id = document_id(place.number, position);
            if let Some(known) = documents.iter_mut().find(|known| known.id == id) {
                known.use_cases.push(example.use_case.clone());
            } else {
                let (integration, item) = &shelf.items[position];
                let document = item.document(id, integration);
                documents.push(Document { use_cases: vec![example.use_case.clone()], ..document });
            }
        }
        Examples { editions: places.iter().map(|place| (place.number, place.edition)).collect(), index: Index::build(&documents) }
    }

    fn places(&self, project: ProjectId, provider: Option<&str>) -> Vec<Place> {
        let wanted = (0..).zip(&self.sources).filter(|(_, source)| provider.is_none_or(|key| source.provider().key == key));
        let places = wanted.map(|(number, source)| {
            let edition = source.edition(project);
            let shelf = self.shelves.place(&**source, edition);
            Place { number, source: source.provider().key, edition, shelf, passing: OnceLock::new() }
        });
        places.collect()
    }

    fn shelf<'a>(&self, place: &'a Place, project: ProjectId) -> &'a Shelf {
        if let Some(shelf) = place.shelf.get() {
            return shelf;
        }
        let source = usize::try_from(place.number).ok().and_then(|number| self.sources.get(number));
        let integrations = source.map(|source| source.integrations(project)).unwrap_or_default();
        // Others share the shelf, so only the list that it is for may stand on it.
        let is_same = source.is_none_or(|source| source.edition(project) == place.edition);
        let shelf = if is_same { &*place.shelf } else { &place.passing };
        shelf.get_or_init(|| Shelf::new(&integrations, place.number))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use serde_json::json;

    use super::*;
    use crate::search::Vectors;
    use crate::{Draft, Provider};

    /// Lists that differ by project, or not.
    #[derive(Debug)]
    struct Listed {
        provider: &'static str,
        edition: fn(ProjectId) -> u64,
        actions: &'static [(&'static str, &'static str)],
        asked: AtomicUsize,
    }

    impl Listed {
        fn new(provider: &'static str, edition: fn(ProjectId) -> u64, actions: &'static [(&'static str, &'static str)]) -> Arc<Self> {
            Arc::new(Self { provider, edition, actions, asked: AtomicUsize::new(0) })
        }
    }

    impl Source for Listed {
        fn provider(&self) -> Provider {
            Provider { key: self.provider, name: "Listed", description: "for tests" }
        }

        fn integrations(&self, _: ProjectId) -> Vec<Arc<Integration>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let schema = json!({"type": "object"});
            let action = |(key, name): &(&str, &str)| Action::new((*key).to_owned(), (*name).to_owned(), (*name).to_owned(), &schema);
            let draft = Draft {
                key: self.provider.to_owned(),
                name: self.provider.to_owned(),
                actions: self.actions.iter().map(action).collect(),
                ..Draft::default()
            };
            vec![Arc::new(Integration::new(self.provider, draft))]
        }

        fn integration(&self, project: ProjectId, key: &str) -> Option<Arc<Integration>> {
            self.integrations(project).into_iter().find(|integration| integration.key == key)
        }

        fn edition(&self, project: ProjectId) -> u64 {
            (self.edition)(project)
        }
    }

    /// Knows one thing: vehicles and cars are near each other.
    #[derive(Debug)]
    struct Vehicles;

    impl Vehicles {
        fn vector(sentence: &str) -> Vec<f32> {
            let about = ["car", "vehicle", "automobile"].iter().any(|word| sentence.to_lowercase().contains(word));
            if about { vec![1.0, 0.0] } else { vec![0.0, 1.0] }
        }
    }

    impl Embedder for Vehicles {
        fn ask(&self, sentences: &[&str], _: Duration) -> Vec<Option<Vec<f32>>> {
            sentences.iter().map(|sentence| Some(Self::vector(sentence))).collect()
        }

        fn prepare(&self, sentences: Vec<String>, done: Box<dyn FnOnce(Vectors) + Send>) {
            done(Vectors::new(&sentences.iter().map(|sentence| Self::vector(sentence)).collect::<Vec<_>>()));
        }
    }

    const GARAGE: &[(&str, &str)] = &[("WASH", "Wash a car"), ("BAKE", "Bake a cake"), ("PLANT", "Plant a tree")];

    fn keys(catalog: &Catalog, project: ProjectId, use_case: &str, examples: Option<&Examples>) -> Vec<String> {
        let meaning = catalog.meanings(&[use_case], Duration::MAX).remove(0);
        let wanted = Wanted { use_case, kind: Kind::Action, limit: 5, preferred: &[], meaning: &meaning, examples };
        catalog.search(project, None, &wanted).unwrap().found.iter().map(|found| found.item.key().to_owned()).collect()
    }

    fn first(catalog: &Catalog, project: ProjectId, use_case: &str, examples: Option<&Examples>) -> Option<String> {
        keys(catalog, project, use_case, examples).into_iter().next()
    }

    #[test]
    fn projects_that_see_the_same_list_share_an_index() {
        let shared = Listed::new("native", |_| 0, GARAGE);
        let own = Listed::new("openapi", |project| u64::from(project.uuid().as_bytes()[15]), &[("FIX", "Fix a bike")]);
        let catalog = Catalog::new(vec![shared.clone(), own.clone()]);
        let projects: Vec<ProjectId> = (0..1000).map(|_| ProjectId::new()).collect();
        for project in projects {
            assert_eq!(first(&catalog, project, "wash a car", None).as_deref(), Some("WASH"));
            assert_eq!(first(&catalog, project, "fix a bike", None).as_deref(), Some("FIX"));
        }
        assert_eq!(shared.asked.load(Ordering::Relaxed), 1);
        assert!(own.asked.load(Ordering::Relaxed) > 1);
    }

    /// Knows one project's list only once it was asked for it.
    #[derive(Debug)]
    struct Late {
        listed: Arc<Listed>,
        owner: ProjectId,
    }

    impl Source for Late {
        fn provider(&self) -> Provider {
            self.listed.provider()
        }

        fn integrations(&self, project: ProjectId) -> Vec<Arc<Integration>> {
            if project == self.owner { self.listed.integrations(project) } else { Vec::new() }
        }

        fn integration(&self, project: ProjectId, key: &str) -> Option<Arc<Integration>> {
            self.integrations(project).into_iter().find(|integration| integration.key == key)
        }

        fn edition(&self, project: ProjectId) -> u64 {
            u64::from(project == self.owner && self.listed.asked.load(Ordering::Relaxed) > 0)
        }
    }

    #[test]
    fn a_list_that_came_late_is_not_shared() {
        let (owner, other) = (ProjectId::new(), ProjectId::new());
        let catalog = Catalog::new(vec![Arc::new(Late { listed: Listed::new("openapi", |_| 0, GARAGE), owner })]);
        assert_eq!(first(&catalog, owner, "wash a car", None).as_deref(), Some("WASH"));
        assert_eq!(first(&catalog, other, "wash a car", None), None, "another project's list");
        assert_eq!(first(&catalog, owner, "wash a car", None).as_deref(), Some("WASH"));
    }

    #[test]
    fn meaning_finds_what_words_cannot() {
        let listed = Listed::new("native", |_| 0, GARAGE);
        let project = ProjectId::new();
        let by_words = Catalog::new(vec![listed.clone()]);
        assert_eq!(first(&by_words, project, "automobile", None), None);
        let by_meaning = Catalog::new(vec![listed]).with_embedder(Arc::new(Vehicles));
        assert_eq!(first(&by_meaning, project, "automobile", None).as_deref(), Some("WASH"));
    }

    #[test]
    fn what_was_learned_of_another_list_is_not_looked_at() {
        let listed = Listed::new("native", |project| u64::from(project.uuid().as_u128() == 7), GARAGE);
        let catalog = Catalog::new(vec![listed]);
        let learned = |action: &str| Learned {
            use_case: "frobnicate on sunday".to_owned(),
            provider: "native".to_owned(),
            integration: "native".to_owned(),
            action: action.to_owned(),
        };
        let project = ProjectId::new();
        let examples = catalog.examples(project, &[learned("PLANT"), learned("GONE")]);
        assert_eq!(keys(&catalog, project, "frobnicate on sunday", Some(&examples)), ["PLANT"]);
        assert_eq!(first(&catalog, uuid_seven(), "frobnicate on sunday", Some(&examples)), None);
    }

    fn uuid_seven() -> ProjectId {
        "00000000-0000-0000-0000-000000000007".parse().unwrap()
    }
}
