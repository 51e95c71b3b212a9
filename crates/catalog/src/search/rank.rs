//! From evidence to an order: one sum per document, the best of each first.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::{
    confidence::{self, AnswerFeatures},
    dense::{Embedder, Probe, larger, largest},
    document::Kind,
    index::{Change, Entry, Index},
    query::{Query, vectors_of},
    score::Collection,
    shard::{Scoring, Shard},
    view::{CLEARLY, View},
    weights::Weights,
};

/// How many of the best are compared with the use case coordinate by coordinate.
const LOOKED_AT_CLOSELY: usize = 128;
/// From which share of the highest bound on documents are looked at, one after the other.
const LIKELY: [f32; 3] = [0.75, 0.6, 0.0];

/// How many documents are passed over together, where none of them can be among the best.
const BLOCK: usize = 64;

/// What to search for besides the words.
#[derive(Debug, Clone, Default)]
pub struct Options<'a> {
    /// Only documents of this kind.
    pub kind: Option<Kind>,
    /// The sentence model that the indexes were built with; without it only words count.
    pub embedder: Option<&'a dyn Embedder>,
    /// The vector of the use case from the remote model whose vectors the indexes may have as well.
    pub remote_vector: Option<&'a [f32]>,
    /// Keys of integrations to prefer when the use case names none, such as the connected ones.
    pub preferred: &'a [&'a str],
    /// How often a project itself calls documents, by their ids and from 0 to 1.
    pub called: Option<&'a HashMap<u64, f32>>,
    /// Other numbers than the measured ones.
    pub weights: Option<&'a Weights>,
}

/// A document that answers a use case.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The position of the index in the list that was searched.
    pub index: usize,
    /// The id of the document.
    pub document: u64,
    pub score: f32,
    /// How likely it is the right answer, from 0 to 1.
    pub confidence: f32,
    pub reasons: Reasons,
    /// What the confidence follows from.
    pub signs: AnswerFeatures,
    /// Whether the use case clearly names its app.
    pub is_named: bool,
}

/// What each piece of evidence added to the score.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reasons {
    pub words: f32,
    pub meaning: f32,
    pub example: f32,
    pub name: f32,
    pub app: f32,
    pub verb: f32,
    pub event: f32,
    pub prior: f32,
    pub usage: f32,
    /// What the best of its app added, where the use case is long.
    pub same_app: f32,
}

impl Reasons {
    pub(super) fn sum(&self) -> f32 {
        self.words + self.meaning + self.example + self.name + self.app + self.verb + self.event + self.prior + self.usage + self.same_app
    }
}

/// What a use case asks for and what answers it.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// Best first.
    pub hits: Vec<Hit>,
    /// Whether something fits at all; if not, the hits are only what is nearest.
    pub fits: bool,
    /// How much it asks for an event: 1 surely, −1 surely for an action.
    pub event: f32,
    /// Whether it clearly names an app; hits of that app have a reason `app`.
    pub names_app: bool,
    /// Whether it says too little to choose by.
    pub is_vague: bool,
}

/// A document among those of all shards, with its score.
type Scored = (f32, usize, u32);

/// The best documents of all indexes for a use case, best first; a document found in several indexes counts once.
pub fn search(indexes: &[&Index], use_case: &str, limit: usize, options: &Options<'_>) -> Answer {
    let mut query = Query::new(use_case, options.embedder);
    if query.words.is_empty() || limit == 0 {
        return Answer::default();
    }
    let vectors = options.embedder.map(|embedder| vectors_of(use_case, embedder)).unwrap_or_default();
    let with_meaning = !vectors.is_empty() && indexes.iter().any(|index| index.meanings.is_some());
    let default = if with_meaning { Weights::hybrid() } else { Weights::lexical() };
    let weights = options.weights.unwrap_or(&default);
    let collection = Collection::new(indexes);
    let view = View::new(indexes, &mut query, &collection);
    let probes: Vec<Probe> = vectors.iter().map(|vector| Probe::new(vector)).collect();
    let terms = collection.weigh(&query, weights);
    let mut shards = Shard::all(indexes, &terms, weights, options.preferred, &probes);
    // A long story may find first and act later.
    let only_finds = view.only_finds && view.focus >= 1.0;
    let is_wanted = |entry: &Entry| options.kind.is_none_or(|kind| kind == entry.kind) && !(only_finds && entry.change == Change::Surely);
    let depth = limit.saturating_mul(2);
    let scale = Scoring::new(&shards, &terms, &view, weights);
    let mut best = best(&shards, &scale, depth.max(LOOKED_AT_CLOSELY), is_wanted);
    Shard::refine(&mut shards, best.iter().map(|(_, at, entry)| (*at, *entry)), &probes);
    if let Some(vector) = options.remote_vector.filter(|_| with_meaning) {
        Shard::compare_remotely(&mut shards, best.iter().map(|(_, at, entry)| (*at, *entry)), &Probe::new(vector));
    }
    let scale = scale.refined(&shards, best.iter().map(|(_, at, entry)| (*at, *entry)), options.called);
    for (score, at, entry) in &mut best {
        *score = shards[*at].score(*entry, &view.named[*at], &scale);
    }
    share_within_apps(&mut best, &shards, weights.same_app * (1.0 - view.focus));
    best_first(&mut best, depth);
    let names_app = view.names_app();
    let is_vague = query.is_vague(names_app);
    let mut seen = HashSet::new();
    best.retain(|(_, at, entry)| seen.insert(shards[*at].index.entries[*entry as usize].id));
    let hits = hits(&best, limit, &shards, &query, &collection, &scale, is_vague);
    let fits = hits.iter().take(3).any(|hit| confidence::fits(&hit.signs, with_meaning));
    Answer { hits, fits, event: view.event, names_app, is_vague }
}

fn best(shards: &[Shard<'_>], scale: &Scoring<'_>, limit: usize, is_wanted: impl Fn(&Entry) -> bool) -> Vec<Scored> {
    let mut found: Vec<Scored> = Vec::with_capacity(2 * limit);
    let bounds: Vec<Vec<f32>> = shards.iter().zip(&scale.view.named).map(|(shard, named)| shard.at_most(named, scale)).collect();
    let highest = bounds.iter().map(|bounds| largest(bounds)).fold(0.0, larger);
    let (mut least, mut above) = (0.0_f32, f32::INFINITY);
    // The likeliest first: most of the rest then needs no look.
    for share in LIKELY {
        let from = highest * share;
        for (at, (shard, bounds)) in shards.iter().zip(&bounds).enumerate() {
            for (block, first) in bounds.chunks(BLOCK).zip((0_u32..).step_by(BLOCK)) {
                if largest(block) <= least.max(from) {
                    continue;
                }
                for (entry, at_most) in (first..).zip(block) {
                    if *at_most <= least.max(from) || *at_most > above || !is_wanted(&shard.index.entries[entry as usize]) {
                        continue;
                    }
                    let score = shard.score(entry, &scale.view.named[at], scale);
                    if score > least {
                        found.push((score, at, entry));
                    }
                    if found.len() >= 2 * limit {
                        least = keep_best(&mut found, limit);
                    }
                }
            }
        }
        above = from;
        if found.len() >= limit {
            least = keep_best(&mut found, limit);
        }
    }
    best_first(&mut found, limit);
    found
}

/// A long use case has several wishes, mostly of one app: whatever the app has gains from the best that it has.
fn share_within_apps(best: &mut [Scored], shards: &[Shard<'_>], share: f32) {
    if share <= 0.0 {
        return;
    }
    let app = |at: usize, entry: u32| (at, shards[at].index.entries[entry as usize].app);
    let mut most: HashMap<(usize, u32), f32> = HashMap::new();
    for (score, at, entry) in best.iter() {
        let known = most.entry(app(*at, *entry)).or_default();
        *known = known.max(*score);
    }
    for (score, at, entry) in best {
        *score += share * most[&app(*at, *entry)];
    }
}

/// Better ones first; equal scores keep the order of the documents.
fn by_score(a: &Scored, b: &Scored) -> Ordering {
    b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2)))
}

/// Keeps the best `limit`, which there are, in any order; the score of the last of them.
fn keep_best(found: &mut Vec<Scored>, limit: usize) -> f32 {
    let (_, last, _) = found.select_nth_unstable_by(limit - 1, by_score);
    let least = last.0;
    found.truncate(limit);
    least
}

/// Keeps the best `limit` in order.
fn best_first(found: &mut Vec<Scored>, limit: usize) {
    if found.len() > limit {
        keep_best(found, limit);
    }
    found.sort_unstable_by(by_score);
}

fn hits(
    best: &[Scored],
    limit: usize,
    shards: &[Shard<'_>],
    query: &Query,
    collection: &Collection<'_>,
    scale: &Scoring<'_>,
    is_vague: bool,
) -> Vec<Hit> {
    let with_meaning = scale.with_meaning;
    let ranked = best.iter().take(limit).enumerate().filter(|(_, (score, ..))| *score > 0.0);
    let hit = |(rank, &(score, index, entry)): (usize, &Scored)| {
        // The first is ahead of the second, all others are behind the first.
        let rival = if rank == 0 { best.get(1) } else { best.first() };
        let ahead = rival.map_or(score, |(other, ..)| score - other);
        let (mut reasons, mut signs) = shards[index].reasons(entry, &scale.view.named[index], query, collection, scale)?;
        reasons.same_app = (score - reasons.sum()).max(0.0);
        (signs.score, signs.ahead) = (score, ahead);
        let own = &shards[index].index.entries[entry as usize];
        let is_named = scale.view.named[index].iter().any(|(app, strength)| *app == own.app && *strength >= CLEARLY);
        let confidence = confidence::confidence(&signs, with_meaning);
        let confidence = if is_vague { confidence.min(confidence::OF_VAGUE) } else { confidence };
        Some(Hit { index, document: own.id, score, confidence, reasons, signs, is_named })
    };
    ranked.filter_map(hit).collect()
}

/// How well each document of each index fits a use case, in their order, by its words alone: nothing in common is zero. What is listed is
/// there to be called, so no app and no kind is more likely than another.
pub fn relevance(indexes: &[&Index], use_case: &str) -> Vec<Vec<f32>> {
    let mut query = Query::new(use_case, None);
    let weights = Weights { prior: 0.0, usage: 0.0, event: 0.0, ..Weights::lexical() };
    let collection = Collection::new(indexes);
    let view = View::new(indexes, &mut query, &collection);
    let terms = collection.weigh(&query, &weights);
    let shards = Shard::all(indexes, &terms, &weights, &[], &[]);
    let scale = Scoring::new(&shards, &terms, &view, &weights);
    let scores = |(shard, named): (&Shard<'_>, &Vec<(u32, f32)>)| {
        (0_u32..).take(shard.index.len()).map(|entry| shard.score(entry, named, &scale).max(0.0)).collect()
    };
    shards.iter().zip(&view.named).map(scores).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Document, Integration};

    fn document(id: u64, app: &str, name: &str, kind: Kind) -> Document {
        let integration = Integration { key: app.to_lowercase().replace(' ', ""), name: app.into(), ..Integration::default() };
        Document { id, kind, integration, name: name.into(), description: name.into(), ..Document::default() }
    }

    fn catalog() -> Vec<Document> {
        [
            ("Gmail", "Send a message", Kind::Action),
            ("Gmail", "Reply to a message", Kind::Action),
            ("Gmail", "Delete a message", Kind::Action),
            ("Gmail", "Get many messages", Kind::Action),
            ("Gmail", "New message received", Kind::Event),
            ("Slack", "Send a message", Kind::Action),
            ("Slack", "New message posted to a channel", Kind::Event),
            ("GitHub", "Create an issue", Kind::Action),
            ("GitHub", "Get many issues", Kind::Action),
            ("GitHub", "Create a repository", Kind::Action),
            ("GitHub", "Issue opened", Kind::Event),
            ("Google Sheets", "Append row in sheet", Kind::Action),
            ("Google Sheets", "Row added", Kind::Event),
            ("Google Calendar", "Create an event", Kind::Action),
        ]
        .into_iter()
        .zip(0..)
        .map(|((app, name, kind), id)| document(id, app, name, kind))
        .collect()
    }

    fn first(indexes: &[&Index], use_case: &str, options: &Options<'_>) -> Option<u64> {
        search(indexes, use_case, 3, options).hits.first().map(|hit| hit.document)
    }

    #[test]
    fn finds_the_right_document_first() {
        let index = Index::of_words(catalog());
        for (use_case, expected) in [
            ("send an email with gmail", 0),
            ("reply to a mail in Gmail", 1),
            ("delete an email in gmail", 2),
            ("fetch all gmail messages", 3),
            ("when a new email arrives in gmail", 4),
            ("post a message to slack", 5),
            ("whenever someone posts in a slack channel", 6),
            ("open a ticket on git hub", 7),
            ("list github issues", 8),
            ("create a githbu repo", 9),
            ("when an issue is opened in github", 10),
            ("log a row to google sheets", 11),
            ("on new row in google sheets", 12),
            ("schedule a meeting in google calendar", 13),
        ] {
            assert_eq!(first(&[&index], use_case, &Options::default()), Some(expected), "{use_case}");
        }
    }

    #[test]
    fn two_indexes_rank_like_one() {
        let documents = catalog();
        let whole = Index::of_words(&documents);
        let (left, right) = (Index::of_words(&documents[..9]), Index::of_words(&documents[9..]));
        for use_case in ["create a repository", "send a message", "append a row to the sheet", "new message"] {
            let one = search(&[&whole], use_case, 5, &Options::default()).hits;
            let two = search(&[&left, &right], use_case, 5, &Options::default()).hits;
            let ids = |hits: &[Hit]| hits.iter().map(|h| h.document).collect::<Vec<_>>();
            assert_eq!(ids(&one), ids(&two), "{use_case}");
            assert!(one.iter().zip(&two).all(|(a, b)| (a.score - b.score).abs() < 1e-4), "{use_case}");
        }
    }

    #[test]
    fn a_document_in_two_indexes_counts_once_and_learns_from_its_example() {
        let shared = Index::of_words(catalog());
        let mut remembered = document(11, "Google Sheets", "Append row in sheet", Kind::Action);
        remembered.use_cases = vec!["note the weekly standup".into()];
        let own = Index::of_words([remembered]);
        let hits = search(&[&shared, &own], "note our weekly standup", 10, &Options::default()).hits;
        assert_eq!(hits.first().map(|h| h.document), Some(11));
        assert_eq!(hits.iter().filter(|h| h.document == 11).count(), 1);
    }

    #[test]
    fn words_are_found_however_they_are_written() {
        let documents = [
            document(0, "Places", "Lookup by zipcode", Kind::Action),
            document(1, "Places", "Check a code", Kind::Action),
            document(2, "Places", "Create a page", Kind::Action),
            document(3, "Places", "Create a label", Kind::Action),
        ];
        let index = Index::of_words(&documents);
        assert_eq!(first(&[&index], "zip code of a street", &Options::default()), Some(0), "as one word or as two");
        assert_eq!(first(&[&index], "create a page 'label'", &Options::default()), Some(2), "what is quoted is a value");
    }

    #[test]
    fn a_long_use_case_is_mostly_about_one_app() {
        let documents = [
            document(0, "Acme", "Trending keywords of a market", Kind::Action),
            document(1, "Acme", "Competition level", Kind::Action),
            document(2, "Bolt", "Competition level", Kind::Action),
        ];
        let index = Index::of_words(&documents);
        let story = "as a freelance writer in need of fresh ideas show the trending keywords of my market, their monthly volume and price, \
                     and how high the level of competition is";
        let hits = search(&[&index], story, 3, &Options::default()).hits;
        assert_eq!(hits.iter().map(|hit| hit.document).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(hits[1].reasons.same_app > hits[2].reasons.same_app);
        let hits = search(&[&index], "competition level", 3, &Options::default()).hits;
        assert!(hits.iter().all(|hit| hit.reasons.same_app < 1e-5));
    }

    #[test]
    fn a_destructive_action_never_wins_a_tie() {
        let mut documents = vec![document(0, "Files", "Purge a file", Kind::Action), document(1, "Files", "Touch a file", Kind::Action)];
        documents[0].destructive = true;
        assert_eq!(first(&[&Index::of_words(&documents)], "file", &Options::default()), Some(1));
    }

    #[test]
    fn prefers_connected_apps_and_keeps_to_the_kind() {
        let index = Index::of_words(catalog());
        let mut two = catalog();
        two.extend([document(20, "Acme Chat", "Ping a person", Kind::Action), document(21, "Bolt Chat", "Ping a person", Kind::Action)]);
        let chats = Index::of_words(&two);
        assert_eq!(first(&[&chats], "ping a person", &Options { preferred: &["boltchat"], ..Options::default() }), Some(21));
        let events = search(&[&index], "send a message", 10, &Options { kind: Some(Kind::Event), ..Options::default() }).hits;
        assert!(!events.is_empty() && events.iter().all(|h| [4, 6, 10, 12].contains(&h.document)));
    }

    #[test]
    fn nonsense_and_odd_input_find_nothing() {
        let index = Index::of_words(catalog());
        let long = "\u{1f980} xylophone ".repeat(2000);
        for text in ["", "   ", "asdf qwerty blub", "the meaning of life", "🦀🦀", "make me happy", "天気はどうですか", &long] {
            assert!(!search(&[&index], text, 5, &Options::default()).fits, "{text:.40}");
        }
        assert!(search(&[], "send a message", 5, &Options::default()).hits.is_empty());
        assert!(search(&[&Index::default()], "send a message", 5, &Options::default()).hits.is_empty());
    }
}
