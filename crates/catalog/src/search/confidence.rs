//! How much of a use case a document explains, so that nonsense finds nothing.

use super::{
    index::Index,
    query::Query,
    score::{Collection, variants},
    weights::Weights,
};

/// "Make me happy" shares its verb with many actions and its object with none.
const VERB_ALONE: f32 = 0.4;
/// Stems of verbs that go with any object.
const GENERIC: &[&str] = &["make", "get", "tell", "give", "show", "see", "look", "put", "set", "take", "go", "find", "creat", "use"];
/// The least confidence of an answer to a short use case, with and without a sentence model.
const LEAST: f32 = 0.22;
const LEAST_BY_WORDS: f32 = 0.17;
/// The most that an answer to a use case can be trusted that says too little.
pub(super) const OF_VAGUE: f32 = 0.5;
/// Longer use cases hold more words that no document can explain.
const SHORT: f32 = 5.0;

/// Whether an answer of this confidence is better than none.
#[expect(clippy::cast_precision_loss, reason = "a count of words")]
pub(super) fn is_enough(confidence: f32, terms: usize, with_meaning: bool) -> bool {
    let least = if with_meaning { LEAST } else { LEAST_BY_WORDS };
    confidence >= least * (SHORT / terms.max(1) as f32).min(1.0).powf(1.5)
}

/// Share of the telling words of the use case that the document holds, words for the same thing included.
pub(super) fn coverage(index: &Index, document: u32, query: &Query, named: bool, collection: &Collection<'_>, weights: &Weights) -> f32 {
    let (mut held, mut all, mut object) = (0.0, 0.0, false);
    for term in &query.terms {
        let rarity = collection.rarity(&term.stem);
        all += rarity;
        let best = if term.names_app && named { 1.0 } else { best_variant(index, document, term, weights) };
        held += rarity * best;
        object |= best > 0.0 && !GENERIC.contains(&term.stem.as_str());
    }
    let share = if all > 0.0 { held / all } else { 0.0 };
    if object { share } else { share * VERB_ALONE }
}

fn best_variant(index: &Index, document: u32, term: &super::query::Term, weights: &Weights) -> f32 {
    let holds = |stem: &str| {
        let postings = index.term(stem).map_or(&[][..], |term| index.postings(term));
        postings.binary_search_by_key(&document, |p| p.document).is_ok_and(|at| postings[at].in_document())
    };
    variants(term, weights).filter(|(stem, _)| holds(stem)).map(|v| v.1).fold(0.0, f32::max)
}

/// Joins what the words and what the meaning say: either alone can be enough.
pub(super) fn confidence(coverage: f32, example: f32, cosine: Option<f32>) -> f32 {
    let meaning = cosine.map_or(0.0, |c| ((c - 0.3) / 0.5).clamp(0.0, 1.0));
    1.0 - (1.0 - coverage.max(example)) * (1.0 - meaning)
}
