//! From evidence to an order: one sum per document, the best of each first.

use super::{
    confidence,
    dense::Vectors,
    document::Kind,
    index::{Entry, Index},
    query::Query,
    score::{Collection, Weighed},
    verbs::{self, Intents},
    view::{CLEARLY, View},
    weights::Weights,
};

/// What to search for besides the words.
#[derive(Debug, Clone, Default)]
pub struct Options<'a> {
    /// Only documents of this kind.
    pub kind: Option<Kind>,
    /// The vectors of the use case, or of its sentences, from the same embedder as those of the indexes; without them only words count.
    pub vectors: &'a [Vec<f32>],
    /// Keys of integrations to prefer when the use case names none, such as the connected ones.
    pub preferred: &'a [&'a str],
    /// Other numbers than the measured ones.
    pub weights: Option<&'a Weights>,
    /// Return hits even when the use case looks like nonsense.
    pub ungated: bool,
}

/// A document that answers a use case.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The position of the index in the list that was searched.
    pub index: usize,
    /// The id of the document.
    pub document: u64,
    pub score: f32,
    /// How much of the use case this hit explains, from 0 to 1.
    pub confidence: f32,
    pub reasons: Reasons,
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
}

impl Reasons {
    fn sum(&self) -> f32 {
        self.words + self.meaning + self.example + self.name + self.app + self.verb + self.event + self.prior
    }
}

/// What a use case asks for and what answers it.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// Best first; none when the use case looks like nonsense.
    pub hits: Vec<Hit>,
    /// How much it asks for an event: 1 surely, −1 surely for an action.
    pub event: f32,
    /// Whether it clearly names an app; hits of that app have a reason `app`.
    pub names_app: bool,
    /// Whether it says too little to choose by.
    pub is_vague: bool,
    /// Whether it only wants to be told something.
    pub only_finds: bool,
}

/// The best documents of all indexes for a use case, best first; a document found in several indexes counts once.
pub fn search(indexes: &[&Index], use_case: &str, limit: usize, options: &Options<'_>) -> Answer {
    let mut query = Query::new(use_case);
    if query.words.is_empty() || limit == 0 {
        return Answer::default();
    }
    let with_meaning = !options.vectors.is_empty() && indexes.iter().any(|index| index.vectors().is_some());
    let default = if with_meaning { Weights::hybrid() } else { Weights::lexical() };
    let weights = options.weights.unwrap_or(&default);
    let collection = Collection::new(indexes);
    let view = View::new(indexes, &mut query, &collection);
    let mut found: Vec<(f32, usize, u32)> = Vec::new();
    let shards = Shard::all(indexes, &query, &collection, weights, options);
    let scale = Scale::new(&shards, &view, weights);
    for (at, shard) in shards.iter().enumerate() {
        let wanted = shard.index.entries.iter().zip(0_u32..).filter(|(e, _)| options.kind.is_none_or(|k| k == e.kind));
        let scored = wanted.filter_map(|(entry, i)| {
            let score = shard.reasons(i as usize, entry, &view.named[at], &scale)?.sum();
            (score > 0.0).then_some((score, at, i))
        });
        found.extend(scored);
        best_first(&mut found, limit.saturating_mul(2));
    }
    let mut found: Vec<Hit> =
        found.into_iter().filter_map(|(_, at, entry)| shards[at].hit(at, entry, &query, &collection, &scale)).collect();
    let mut seen = std::collections::HashSet::new();
    found.retain(|hit| seen.insert(hit.document));
    found.truncate(limit);
    let fits = |hit: &Hit| confidence::is_enough(hit.confidence, query.terms.len(), with_meaning);
    if !options.ungated && !found.iter().take(3).any(fits) {
        found.clear();
    }
    let names_app = view.any_named >= CLEARLY;
    let is_vague = query.is_vague(names_app);
    if is_vague {
        for hit in &mut found {
            hit.confidence = hit.confidence.min(confidence::OF_VAGUE);
        }
    }
    // A long story may find first and act later.
    let only_finds = view.only_finds && view.focus >= 1.0;
    Answer { hits: found, event: view.event, names_app, is_vague, only_finds }
}

/// How well each document of each index fits a use case, in their order, by its words alone: nothing in common is zero. What is listed is
/// there to be called, so no app and no kind is more likely than another.
pub fn relevance(indexes: &[&Index], use_case: &str) -> Vec<Vec<f32>> {
    let mut query = Query::new(use_case);
    let weights = Weights { prior: 0.0, event: 0.0, ..Weights::lexical() };
    let collection = Collection::new(indexes);
    let view = View::new(indexes, &mut query, &collection);
    let shards = Shard::all(indexes, &query, &collection, &weights, &Options::default());
    let scale = Scale::new(&shards, &view, &weights);
    let scores = |(shard, named): (&Shard<'_>, &Vec<(u32, f32)>)| {
        let entries = shard.index.entries.iter().enumerate();
        entries.map(|(i, entry)| shard.reasons(i, entry, named, &scale).map_or(0.0, |reasons| reasons.sum().max(0.0))).collect()
    };
    shards.iter().zip(&view.named).map(scores).collect()
}

/// Keeps the best `limit` of (score, index, entry) in order; equal scores keep the order of the documents.
fn best_first(found: &mut Vec<(f32, usize, u32)>, limit: usize) {
    let order = |a: &(f32, usize, u32), b: &(f32, usize, u32)| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2)));
    if found.len() > limit {
        found.select_nth_unstable_by(limit, order);
        found.truncate(limit);
    }
    found.sort_unstable_by(order);
}

struct Shard<'a> {
    index: &'a Index,
    words: Vec<f32>,
    name: Vec<f32>,
    example: Vec<f32>,
    sure_example: Vec<f32>,
    /// Cosines, empty when this index has no vectors or the use case none.
    meaning: Vec<f32>,
    /// Per app how likely it is when none is named.
    prior: Vec<f32>,
}

/// What all documents are measured with.
struct Scale<'a> {
    view: &'a View,
    weights: &'a Weights,
    /// The highest lexical score and the highest cosine of the search.
    most: f32,
    nearest: f32,
}

impl<'a> Scale<'a> {
    fn new(shards: &[Shard<'_>], view: &'a View, weights: &'a Weights) -> Self {
        let most = shards.iter().flat_map(|s| &s.words).copied().fold(0.0, f32::max).max(f32::MIN_POSITIVE);
        let nearest = shards.iter().flat_map(|s| &s.meaning).copied().fold(0.0, f32::max).max(f32::MIN_POSITIVE);
        Self { view, weights, most, nearest }
    }
}

impl<'a> Shard<'a> {
    fn all(indexes: &[&'a Index], query: &Query, collection: &Collection<'_>, weights: &Weights, options: &Options<'_>) -> Vec<Self> {
        let terms = collection.weigh(query, weights);
        indexes.iter().map(|index| Self::new(index, &terms, collection, weights, options)).collect()
    }

    fn new(index: &'a Index, terms: &[Weighed<'_>], collection: &Collection<'_>, weights: &Weights, options: &Options<'_>) -> Self {
        let evidence = collection.evidence(index, terms, weights);
        let mut meaning = index.vectors().map_or_else(Vec::new, |rows| nearest(rows, options.vectors));
        if meaning.len() > index.len() {
            for (row, example) in index.examples.iter().enumerate() {
                let near = meaning[index.len() + row];
                let own = &mut meaning[example.entry as usize];
                *own = own.max(near);
            }
            meaning.truncate(index.len());
        }
        let prior = index.apps.iter().map(|app| if options.preferred.contains(&app.key.as_str()) { 1.0 } else { app.prior }).collect();
        Self {
            index,
            words: evidence.words,
            name: evidence.name,
            example: evidence.example,
            sure_example: evidence.sure_example,
            meaning,
            prior,
        }
    }

    fn hit(&self, index: usize, entry: u32, query: &Query, collection: &Collection<'_>, scale: &Scale<'_>) -> Option<Hit> {
        let (at, named) = (entry as usize, &scale.view.named[index]);
        let own = &self.index.entries[at];
        let reasons = self.reasons(at, own, named, scale)?;
        let is_named = named.iter().any(|(app, _)| *app == own.app);
        let coverage = confidence::coverage(self.index, entry, query, is_named, collection, scale.weights);
        let confidence =
            confidence::confidence(coverage, self.sure_example.get(at).copied().unwrap_or_default(), self.meaning.get(at).copied());
        let is_clearly_named = named.iter().any(|(app, strength)| *app == own.app && *strength >= CLEARLY);
        Some(Hit { index, document: own.id, score: reasons.sum(), confidence, reasons, is_named: is_clearly_named })
    }

    fn reasons(&self, i: usize, entry: &Entry, named: &[(u32, f32)], scale: &Scale<'_>) -> Option<Reasons> {
        let Scale { view, weights: w, most, nearest } = scale;
        let words = self.words[i] / most;
        let meaning = self.meaning.get(i).map(|cosine| cosine.max(0.0) / nearest);
        let example = self.example.get(i).copied().unwrap_or_default();
        let app = named.iter().filter(|(app, _)| *app == entry.app).map(|n| n.1).fold(0.0, f32::max);
        if words <= 0.0 && example <= 0.0 && app <= 0.0 && meaning.is_none_or(|m| m < 0.2) {
            return None;
        }
        let is_event = entry.kind == Kind::Event;
        let prior = self.prior[entry.app as usize] * (1.0 - view.any_named);
        let verb = if is_event { 0.0 } else { verb(view.asked, entry, w) };
        let direction = if is_event { view.event } else { -view.event };
        Some(Reasons {
            words: w.lexical * words,
            meaning: w.dense * meaning.unwrap_or(words * 0.8),
            example: w.example * example,
            name: w.name_cover * self.name[i].min(1.0),
            app: w.app * app,
            verb: verb * view.focus,
            event: w.event * direction * view.focus,
            prior: w.prior * prior,
        })
    }
}

/// The best cosine of each row with any of the vectors.
fn nearest(rows: &Vectors, vectors: &[Vec<f32>]) -> Vec<f32> {
    let mut all = vectors.iter().map(|v| rows.cosines(v));
    let mut best = all.next().unwrap_or_default();
    for cosines in all {
        for (best, cosine) in best.iter_mut().zip(cosines) {
            *best = best.max(cosine);
        }
    }
    best
}

/// The right verb helps, another verb hurts, and destruction that nobody asked for loses every tie.
fn verb(asked: Intents, entry: &Entry, w: &Weights) -> f32 {
    let unasked = if entry.destructive && !asked.has(verbs::Intent::Delete) { w.destructive } else { 0.0 };
    if asked.is_empty() || entry.intents.is_empty() {
        return -unasked;
    }
    let agreement = verbs::agreement(asked, entry.intents);
    let fit = if agreement > 0.0 { w.verb * agreement } else { -w.wrong_verb };
    fit - unasked
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
        let index = Index::build(catalog());
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
        let whole = Index::build(&documents);
        let (left, right) = (Index::build(&documents[..9]), Index::build(&documents[9..]));
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
        let shared = Index::build(catalog());
        let mut remembered = document(11, "Google Sheets", "Append row in sheet", Kind::Action);
        remembered.use_cases = vec!["note the weekly standup".into()];
        let own = Index::build([remembered]);
        let hits = search(&[&shared, &own], "note our weekly standup", 10, &Options::default()).hits;
        assert_eq!(hits.first().map(|h| h.document), Some(11));
        assert_eq!(hits.iter().filter(|h| h.document == 11).count(), 1);
    }

    #[test]
    fn a_destructive_action_never_wins_a_tie() {
        let mut documents = vec![document(0, "Files", "Purge a file", Kind::Action), document(1, "Files", "Touch a file", Kind::Action)];
        documents[0].destructive = true;
        assert_eq!(first(&[&Index::build(&documents)], "file", &Options::default()), Some(1));
    }

    #[test]
    fn prefers_connected_apps_and_keeps_to_the_kind() {
        let index = Index::build(catalog());
        let mut two = catalog();
        two.extend([document(20, "Acme Chat", "Ping a person", Kind::Action), document(21, "Bolt Chat", "Ping a person", Kind::Action)]);
        let chats = Index::build(&two);
        assert_eq!(first(&[&chats], "ping a person", &Options { preferred: &["boltchat"], ..Options::default() }), Some(21));
        let events = search(&[&index], "send a message", 10, &Options { kind: Some(Kind::Event), ..Options::default() }).hits;
        assert!(!events.is_empty() && events.iter().all(|h| [4, 6, 10, 12].contains(&h.document)));
    }

    #[test]
    fn nonsense_and_odd_input_find_nothing() {
        let index = Index::build(catalog());
        let long = "\u{1f980} xylophone ".repeat(2000);
        for text in ["", "   ", "asdf qwerty blub", "the meaning of life", "🦀🦀", "make me happy", "天気はどうですか", &long] {
            assert!(search(&[&index], text, 5, &Options::default()).hits.is_empty(), "{text:.40}");
        }
        assert!(search(&[], "send a message", 5, &Options::default()).hits.is_empty());
        assert!(search(&[&Index::default()], "send a message", 5, &Options::default()).hits.is_empty());
    }
}
