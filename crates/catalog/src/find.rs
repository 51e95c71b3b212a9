//! Finding the actions and events that fit a sentence: one search index per list of integrations, shared by all projects that see it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use kernel::ProjectId;

use crate::search::{self, Document, Embedder, Index, Kind, Options, Reasons};
use crate::{Action, Catalog, CatalogError, Event, Integration, Source};

/// How many lists of integrations keep their index; the one not asked for the longest goes first.
const MAX_INDEXES: usize = 512;

/// What to look for.
#[derive(Clone, Copy, Debug)]
pub struct SearchRequest<'a> {
    pub use_case: &'a str,
    pub kind: Kind,
    pub limit: usize,
    /// Keys of integrations to prefer when the use case names none, such as the connected ones.
    pub preferred: &'a [&'a str],
    /// What the project learned.
    pub examples: Option<&'a Examples>,
}

/// An action that a project called with success, and how often of late.
#[derive(Clone, Debug)]
pub struct Called {
    pub provider: String,
    pub integration: String,
    pub action: String,
    pub times: u32,
}

/// A use case that an action turned out to be right for.
#[derive(Clone, Debug)]
pub struct Learned {
    pub use_case: String,
    pub provider: String,
    pub integration: String,
    pub action: String,
}

/// What a project learned: use cases as an index beside those of the sources, and how often it calls what they list.
#[derive(Debug)]
pub struct Examples {
    /// The lists of integrations that the index speaks of, by number of the source.
    editions: Vec<(u64, u64)>,
    index: Index,
    called: HashMap<u64, f32>,
}

impl Examples {
    /// Whether the lists that are searched are still the ones that it speaks of.
    fn fit(&self, lists: &[SourceList]) -> bool {
        lists.iter().all(|list| self.editions.contains(&(list.number, list.edition)))
    }
}

/// How a use case reads, and what fits it, best first.
#[derive(Clone, Debug, Default)]
pub struct SearchAnswer {
    pub found: Vec<Found>,
    /// How much it asks for an event: 1 surely, −1 surely for an action.
    pub event: f32,
    /// Whether it clearly names an integration.
    pub names_integration: bool,
    /// Whether it says too little to choose by.
    pub is_vague: bool,
    /// Whether something fits at all; if not, what was found is only what is nearest.
    pub fits: bool,
}

/// An action or an event that fits, with the integration it belongs to.
#[derive(Clone, Debug)]
pub struct Found {
    pub integration: Arc<Integration>,
    pub item: Item,
    pub score: f32,
    /// How likely it is what is meant, from 0 to 1.
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
                about_parameters: action.about_parameters(),
                parameters: action.parameters(),
                use_cases: action.use_cases.clone(),
                read_only: action.read_only,
                destructive: action.destructive,
                usage: action.usage,
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
struct IndexedList {
    items: Vec<(Arc<Integration>, Item)>,
    index: Index,
}

impl IndexedList {
    fn new(integrations: &[Arc<Integration>], number: u64, embedder: Option<&dyn Embedder>) -> Self {
        let mut items = Vec::new();
        for integration in integrations {
            items.extend(integration.actions.iter().map(|action| (integration.clone(), Item::Action(action.clone()))));
            items.extend(integration.events.iter().map(|event| (integration.clone(), Item::Event(event.clone()))));
        }
        let index = Index::build(documents(&items, number), embedder);
        Self { items, index }
    }

    fn item(&self, id: u64) -> Option<&(Arc<Integration>, Item)> {
        self.items.get(usize::try_from(id & ((1 << POSITION_BITS) - 1)).ok()?)
    }

    fn position(&self, integration: &str, action: &str) -> Option<usize> {
        let is_it = |item: &Item| matches!(item, Item::Action(own) if own.key == action);
        self.items.iter().position(|(own, item)| own.key == integration && is_it(item))
    }
}

/// The sentences of a list that is indexed, for whoever makes the vectors of a remote model.
#[derive(Clone, Debug)]
pub struct IndexedSentences(Arc<OnceLock<IndexedList>>);

impl IndexedSentences {
    /// What to make vectors of: a sentence for each document, and its examples.
    pub fn all(&self) -> Vec<String> {
        let documents = self.0.get().into_iter().flat_map(|list| documents(&list.items, 0));
        documents.flat_map(|document| std::iter::once(document.sentence()).chain(document.use_cases)).collect()
    }

    pub fn are_embedded(&self) -> bool {
        self.0.get().is_none_or(|list| list.index.is_embedded_remotely())
    }

    /// Gives the index the vectors that there are.
    pub fn embed(&self, vectors: &dyn Embedder) {
        if let Some(list) = self.0.get() {
            list.index.embed_remotely(documents(&list.items, 0), vectors);
        }
    }
}

fn documents(items: &[(Arc<Integration>, Item)], number: u64) -> impl Iterator<Item = Document> {
    let numbered = items.iter().enumerate();
    numbered.map(move |(position, (integration, item))| item.document(document_id(number, position), integration))
}

/// The list of one source that a search looks at: the number of the source, the edition, and the index, once somebody has built it.
struct SourceList {
    number: u64,
    source: &'static str,
    edition: u64,
    indexed: Arc<OnceLock<IndexedList>>,
    /// For this search alone, where the list became another one meanwhile.
    unshared: OnceLock<IndexedList>,
}

/// Documents are numbered by source and position, so that one found in two indexes is known to be the same.
const POSITION_BITS: u32 = 32;

fn document_id(source: u64, position: usize) -> u64 {
    source << POSITION_BITS | u64::try_from(position).unwrap_or(u64::MAX >> POSITION_BITS)
}

/// The indexes by source and edition, each built when it is first asked for.
#[derive(Debug, Default)]
pub(crate) struct IndexCache {
    all: Mutex<HashMap<(&'static str, u64), CachedIndex>>,
    clock: AtomicU64,
}

#[derive(Debug, Default)]
struct CachedIndex {
    indexed: Arc<OnceLock<IndexedList>>,
    used: u64,
}

impl IndexCache {
    /// The cell of an index; whoever asks first fills it, without holding up those who ask for another.
    fn cell(&self, source: &dyn Source, edition: u64) -> Arc<OnceLock<IndexedList>> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (source.provider().key, edition);
        if source.is_shared() && !all.contains_key(&key) {
            all.retain(|(other, _), _| *other != key.0);
        }
        if !all.contains_key(&key)
            && all.len() >= MAX_INDEXES
            && let Some(oldest) = all.iter().min_by_key(|(_, cached)| cached.used).map(|(key, _)| *key)
        {
            all.remove(&oldest);
        }
        let cached = all.entry(key).or_default();
        cached.used = now;
        cached.indexed.clone()
    }

    /// The lists that are indexed, the one asked for last first.
    fn indexed(&self) -> Vec<IndexedSentences> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lists: Vec<&CachedIndex> = all.values().filter(|cached| cached.indexed.get().is_some()).collect();
        lists.sort_unstable_by_key(|cached| std::cmp::Reverse(cached.used));
        lists.into_iter().map(|cached| IndexedSentences(cached.indexed.clone())).collect()
    }
}

/// How well the actions of integrations fit a sentence, in their order, and after them other things that can be called. Nothing in common
/// is zero.
pub fn relevance(sentence: &str, integrations: &[&Integration], others: &[Document]) -> Vec<Vec<f32>> {
    let others = Index::of_words(others);
    let mut indexes: Vec<&Index> = integrations.iter().map(|integration| integration.words()).collect();
    indexes.push(&others);
    search::relevance(&indexes, sentence)
}

impl Integration {
    /// The words of its actions, made searchable when somebody first asks.
    fn words(&self) -> &Index {
        self.words.get_or_init(|| Index::of_words(self.actions.iter().map(|action| Item::Action(action.clone()).document(0, self))))
    }
}

impl Catalog {
    /// Builds what the first search of a project would have to wait for.
    pub fn warm(&self, project: ProjectId) {
        for list in self.lists(project, None) {
            self.indexed(&list, project);
        }
    }

    /// The sentences of every list that is indexed.
    pub fn indexed_sentences(&self) -> Vec<IndexedSentences> {
        self.indexes.indexed()
    }

    /// What fits a use case, in one provider or in all of them.
    pub fn search(&self, project: ProjectId, provider: Option<&str>, request: &SearchRequest<'_>) -> Result<SearchAnswer, CatalogError> {
        if let Some(provider) = provider {
            self.source(provider)?;
        }
        let lists = self.lists(project, provider);
        let indexed: Vec<(u64, &IndexedList)> = lists.iter().map(|list| (list.number, self.indexed(list, project))).collect();
        let mut indexes: Vec<&Index> = indexed.iter().map(|(_, list)| &list.index).collect();
        let examples = request.examples.filter(|examples| examples.fit(&lists));
        indexes.extend(examples.map(|examples| &examples.index));
        let remote = self.remote.as_deref().and_then(|remote| remote.embedded(request.use_case));
        let options = Options {
            kind: Some(request.kind),
            preferred: request.preferred,
            embedder: self.embedder.as_deref(),
            remote_vector: remote.as_deref(),
            called: examples.map(|examples| &examples.called),
            ..Options::default()
        };
        let answer = search::search(&indexes, request.use_case, request.limit, &options);
        let found = answer.hits.into_iter().filter_map(|hit| {
            let (_, list) = indexed.iter().find(|(number, _)| *number == hit.document >> POSITION_BITS)?;
            let (integration, item) = list.item(hit.document)?.clone();
            let search::Hit { score, confidence, reasons, is_named, .. } = hit;
            Some(Found { integration, item, score, confidence, reasons, is_named })
        });
        Ok(SearchAnswer {
            found: found.collect(),
            event: answer.event,
            names_integration: answer.names_app,
            is_vague: answer.is_vague,
            fits: answer.fits,
        })
    }

    /// Use cases that a project learned, and actions that it called, made searchable. Those of actions that are gone are left out.
    pub fn examples(&self, project: ProjectId, learned: &[Learned], called: &[Called]) -> Examples {
        let lists = self.lists(project, None);
        let position = |provider: &str, integration: &str, action: &str| {
            let list = lists.iter().find(|list| list.source == provider)?;
            let indexed = self.indexed(list, project);
            indexed.position(integration, action).map(|position| (indexed, position, document_id(list.number, position)))
        };
        let mut documents: Vec<Document> = Vec::new();
        for example in learned {
            let Some((indexed, position, id)) = position(&example.provider, &example.integration, &example.action) else { continue };
            if let Some(known) = documents.iter_mut().find(|known| known.id == id) {
                known.use_cases.push(example.use_case.clone());
            } else {
                let (integration, item) = &indexed.items[position];
                let document = item.document(id, integration);
                documents.push(Document { use_cases: vec![example.use_case.clone()], ..document });
            }
        }
        let called = called.iter().filter_map(|one| {
            let (_, _, id) = position(&one.provider, &one.integration, &one.action)?;
            Some((id, search::usage_of(one.times)))
        });
        Examples {
            editions: lists.iter().map(|list| (list.number, list.edition)).collect(),
            called: called.collect(),
            index: Index::build(&documents, self.embedder.as_deref()),
        }
    }

    fn lists(&self, project: ProjectId, provider: Option<&str>) -> Vec<SourceList> {
        let searched = (0..).zip(&self.sources).filter(|(_, source)| provider.is_none_or(|key| source.provider().key == key));
        let lists = searched.map(|(number, source)| {
            let edition = source.edition(project);
            let indexed = self.indexes.cell(&**source, edition);
            SourceList { number, source: source.provider().key, edition, indexed, unshared: OnceLock::new() }
        });
        lists.collect()
    }

    fn indexed<'a>(&self, list: &'a SourceList, project: ProjectId) -> &'a IndexedList {
        if let Some(indexed) = list.indexed.get() {
            return indexed;
        }
        let source = usize::try_from(list.number).ok().and_then(|number| self.sources.get(number));
        let integrations = source.map(|source| source.integrations(project)).unwrap_or_default();
        // Others share the index, so it may only be of the edition that it is kept under.
        let is_same = source.is_none_or(|source| source.edition(project) == list.edition);
        let cell = if is_same { &*list.indexed } else { &list.unshared };
        let indexed = cell.get_or_init(|| IndexedList::new(&integrations, list.number, self.embedder.as_deref()));
        if let Some(remote) = &self.remote {
            remote.indexed();
        }
        indexed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use serde_json::json;

    use super::*;
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

    impl Embedder for Vehicles {
        fn embed(&self, sentence: &str) -> Option<Vec<f32>> {
            let about = ["car", "vehicle", "automobile"].iter().any(|word| sentence.to_lowercase().contains(word));
            Some(if about { vec![1.0, 0.0] } else { vec![0.0, 1.0] })
        }
    }

    const GARAGE: &[(&str, &str)] = &[("WASH", "Wash a car"), ("BAKE", "Bake a cake"), ("PLANT", "Plant a tree")];

    fn keys(catalog: &Catalog, project: ProjectId, use_case: &str, examples: Option<&Examples>) -> Vec<String> {
        let request = SearchRequest { use_case, kind: Kind::Action, limit: 5, preferred: &[], examples };
        let answer = catalog.search(project, None, &request).unwrap();
        answer.found.iter().filter(|_| answer.fits).map(|found| found.item.key().to_owned()).collect()
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
    fn what_a_project_calls_comes_before_its_like() {
        let pings = &[("PING_A", "Ping the first host"), ("PING_B", "Ping the second host"), ("BAKE", "Bake a cake")];
        let catalog = Catalog::new(vec![Listed::new("native", |_| 0, pings)]);
        let project = ProjectId::new();
        let called = |action: &str, times| Called { provider: "native".into(), integration: "native".into(), action: action.into(), times };
        assert_eq!(first(&catalog, project, "ping a host", None).as_deref(), Some("PING_A"));
        let examples = catalog.examples(project, &[], &[called("PING_B", 3), called("GONE", 9)]);
        assert_eq!(first(&catalog, project, "ping a host", Some(&examples)).as_deref(), Some("PING_B"));
        let examples = catalog.examples(project, &[], &[called("BAKE", 10_000)]);
        assert_eq!(first(&catalog, project, "ping a host", Some(&examples)).as_deref(), Some("PING_A"), "habit is no evidence by itself");
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
        let examples = catalog.examples(project, &[learned("PLANT"), learned("GONE")], &[]);
        assert_eq!(keys(&catalog, project, "frobnicate on sunday", Some(&examples)), ["PLANT"]);
        assert_eq!(first(&catalog, uuid_seven(), "frobnicate on sunday", Some(&examples)), None);
    }

    fn uuid_seven() -> ProjectId {
        "00000000-0000-0000-0000-000000000007".parse().unwrap()
    }
}
