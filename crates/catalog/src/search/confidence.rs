//! How sure an answer is: the chance that it is the right one, and whether anything fits at all.
//!
//! Both are logistic functions of a few signs, fitted on judged queries and on questions that fit nothing.

use super::{
    index::Index,
    query::{Query, Term},
    score::{Collection, variants},
    weights::Weights,
};

/// Stems of verbs that go with any object: "make me happy" shares its verb with many actions and its object with none.
const GENERIC: &[&str] = &["make", "get", "tell", "give", "show", "see", "look", "put", "set", "take", "go", "find", "creat", "use"];
/// The most that an answer to a use case can be trusted that says too little.
pub(super) const OF_VAGUE: f32 = 0.5;

/// What speaks for an answer, each from 0 to 1 unless it is told otherwise.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnswerFeatures {
    /// Share of the telling words of the use case that it holds.
    pub coverage: f32,
    /// Whether one of those is more than a verb that goes with anything.
    pub object: bool,
    /// How much the use case is like one of its examples.
    pub example: f32,
    pub cosine: f32,
    /// Share of its name that the use case holds.
    pub name: f32,
    /// How surely its app is named, and how surely another.
    pub app: f32,
    pub other_app: f32,
    /// From -0.5, another operation, to 0.5, the one that is asked for.
    pub verb: f32,
    pub score: f32,
    /// How far it is ahead of the next; what is behind the first is below zero.
    pub ahead: f32,
    /// How many distinct words the use case has.
    pub terms: usize,
}

impl AnswerFeatures {
    #[expect(clippy::cast_precision_loss, reason = "a count of words")]
    pub fn values(&self) -> [f32; 11] {
        let length = (self.terms.max(1) as f32).ln();
        [
            1.0,
            self.coverage,
            if self.object { 1.0 } else { 0.0 },
            self.example,
            self.cosine,
            self.name,
            self.app,
            self.other_app,
            self.verb,
            self.ahead,
            length,
        ]
    }

    fn chance(&self, weights: &[f32; 11]) -> f32 {
        let sum: f32 = self.values().iter().zip(weights).map(|(value, weight)| value * weight).sum();
        1.0 / (1.0 + (-sum).exp())
    }
}

/// With a sentence model and without: the weights of the chance that an answer is right, and of the chance that something fits.
const RIGHT: [f32; 11] = [-4.43, 1.75, 0.17, 1.55, 2.19, 0.83, 0.59, -0.45, -0.41, 3.62, 0.7];
const RIGHT_BY_WORDS: [f32; 11] = [-4.65, 2.32, 0.49, 2.12, 0.0, 1.32, 0.72, -0.26, -0.45, 2.29, 1.02];
const FITS: [f32; 11] = [-6.68, 3.78, 0.3, 0.94, 2.99, 1.5, 1.73, 1.94, 0.04, -0.23, 2.78];
const FITS_BY_WORDS: [f32; 11] = [-6.38, 4.21, 0.24, 2.01, 0.0, 2.28, 1.94, 2.11, 0.03, -0.69, 3.11];
/// Below this chance nothing fits: it keeps one of fifty good questions back, and six of seven that fit nothing.
const LEAST: f32 = 0.3;

/// From this likeness on, a use case says what an example or a document says.
const ALIKE: f32 = 0.9;

/// The chance that this is the right answer.
pub(super) fn confidence(signs: &AnswerFeatures, with_meaning: bool) -> f32 {
    let chance = signs.chance(if with_meaning { &RIGHT } else { &RIGHT_BY_WORDS });
    if signs.example >= ALIKE { chance.max(signs.example * ALIKE) } else { chance }
}

/// Whether this is an answer at all.
pub(super) fn fits(signs: &AnswerFeatures, with_meaning: bool) -> bool {
    signs.example >= ALIKE || signs.cosine >= ALIKE || signs.chance(if with_meaning { &FITS } else { &FITS_BY_WORDS }) >= LEAST
}

/// Share of the telling words of the use case that the document holds, words for the same thing included, and whether one of them is more
/// than a verb that goes with anything.
pub(super) fn coverage(
    index: &Index,
    document: u32,
    query: &Query,
    is_named: bool,
    collection: &Collection<'_>,
    weights: &Weights,
) -> (f32, bool) {
    let (mut held, mut all, mut object) = (0.0, 0.0, false);
    for term in &query.terms {
        let rarity = collection.rarity(&term.stem) * term.weight;
        all += rarity;
        let best = if term.names_app && is_named { 1.0 } else { best_variant(index, document, term, weights) };
        held += rarity * best;
        object |= best > 0.0 && !GENERIC.contains(&term.stem.as_str());
    }
    (if all > 0.0 { held / all } else { 0.0 }, object)
}

fn best_variant(index: &Index, document: u32, term: &Term, weights: &Weights) -> f32 {
    let holds = |stem: &str| {
        let postings = index.term(stem).map_or(&[][..], |term| index.postings(term));
        postings.binary_search_by_key(&document, |p| p.document).is_ok_and(|at| postings[at].in_document())
    };
    variants(term, weights).filter(|(stem, _)| holds(stem)).map(|v| v.1).fold(0.0, f32::max)
}
