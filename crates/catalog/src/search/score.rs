//! The lexical score: how much of the use case a document holds, with the rarity of words over all searched indexes taken together.

use super::{
    index::{Index, rarity},
    query::{Query, Term},
    synonyms::Relation,
    weights::Weights,
};

/// How much of a word's worth it has to be found as one word with its neighbour.
const JOINED: f32 = 0.8;

/// Several indexes seen as one collection, so that a word is as rare in a small index as it is overall.
#[derive(Debug)]
pub(super) struct Collection<'a> {
    indexes: &'a [&'a Index],
    documents: usize,
}

/// A stem that counts for a term, how much, and how telling it is.
#[derive(Debug)]
struct Variant<'q> {
    stem: &'q str,
    weight: f32,
    rarity: f32,
}

/// A term with every stem that counts for it, the term itself first.
#[derive(Debug)]
pub(super) struct WeightedTerm<'q> {
    term: &'q Term,
    variants: Vec<Variant<'q>>,
}

impl WeightedTerm<'_> {
    /// What a document is worth that holds the term itself as well as can be.
    pub(super) fn most(&self) -> f32 {
        self.variants.first().map_or(0.0, |own| own.rarity * self.factor())
    }

    fn factor(&self) -> f32 {
        self.term.weight * self.term.count.sqrt()
    }
}

/// The lexical evidence for the documents of one index.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) words: Vec<f32>,
    /// Share of the words of the name that the use case holds.
    pub(super) name: Vec<f32>,
    pub(super) example: Vec<f32>,
    /// The same from examples that share more than one word with the use case; one word can be chance.
    pub(super) sure_example: Vec<f32>,
}

impl<'a> Collection<'a> {
    pub(super) fn new(indexes: &'a [&'a Index]) -> Self {
        Self { indexes, documents: indexes.iter().map(|i| i.len()).sum() }
    }

    /// How many documents of the collection hold the stem.
    pub(super) fn frequency(&self, stem: &str) -> u32 {
        let per_index = self.indexes.iter().filter_map(|i| i.term(stem).map(|t| i.postings(t).len()));
        u32::try_from(per_index.sum::<usize>()).unwrap_or(u32::MAX)
    }

    /// How telling a stem is.
    pub(super) fn rarity(&self, stem: &str) -> f32 {
        rarity(self.documents, self.frequency(stem) as usize)
    }

    /// The terms of a use case, weighed once for all indexes.
    pub(super) fn weigh<'q>(&self, query: &'q Query, weights: &Weights) -> Vec<WeightedTerm<'q>> {
        let weigh = |term: &'q Term| {
            let variants = variants(term, weights).map(|(stem, weight)| Variant { stem, weight, rarity: self.rarity(stem) });
            WeightedTerm { term, variants: variants.collect() }
        };
        query.terms.iter().map(weigh).collect()
    }

    pub(super) fn evidence(index: &Index, terms: &[WeightedTerm<'_>], weights: &Weights) -> Evidence {
        let size = index.len();
        let mut evidence = Evidence { words: vec![0.0; size], name: vec![0.0; size], example: Vec::new(), sure_example: Vec::new() };
        let mut best = BestVariant::new(size);
        let mut best_name = BestVariant::new(size);
        for weighed in terms {
            let WeightedTerm { term, variants } = weighed;
            let factor = weighed.factor();
            for &Variant { stem, weight, rarity } in variants {
                let Some(found) = index.term(stem) else { continue };
                let value = rarity * weight * factor;
                for posting in index.postings(found) {
                    let document = posting.document as usize;
                    best.raise(document, value * posting.weight(), &mut evidence.words);
                    if posting.in_name() && !term.names_app {
                        best_name.raise(document, weight / f32::from(index.entries[document].name_terms), &mut evidence.name);
                    }
                }
            }
            best.next();
            best_name.next();
        }
        if !index.examples.is_empty() {
            (evidence.example, evidence.sure_example) = examples(index, terms, weights);
        }
        evidence
    }
}

/// Per document the likeness of its best example: the share of the use case it explains times the share of it that is used.
/// The name of an app counts on neither side: the document either belongs to it or not.
fn examples(index: &Index, terms: &[WeightedTerm<'_>], weights: &Weights) -> (Vec<f32>, Vec<f32>) {
    let mut explained = vec![0.0; index.examples.len()];
    let mut best = BestVariant::new(index.examples.len());
    let mut words = vec![0_u8; index.examples.len()];
    let (mut all, mut count) = (0.0, 0_u8);
    for WeightedTerm { variants, .. } in terms.iter().filter(|weighed| !weighed.term.names_app) {
        count = count.saturating_add(1);
        let value = variants.first().map_or(0.0, |own| own.rarity);
        all += value;
        for &Variant { stem, weight, .. } in variants {
            let weight = if weight < 1.0 { weight * weights.example_variant } else { weight };
            for &example in index.term(stem).map_or(&[][..], |t| index.example_postings(t)) {
                best.raise(example as usize, value * weight, &mut explained);
            }
        }
        best.touched.iter().for_each(|&example| words[example] = words[example].saturating_add(1));
        best.next();
    }
    let mut likeness = vec![0.0_f32; index.len()];
    let mut sure = likeness.clone();
    for ((example, explained), words) in index.examples.iter().zip(explained).zip(words) {
        if explained > 0.0 {
            let value = (explained / all).min(1.0) * (explained / example.weight).min(1.0);
            let best = &mut likeness[example.entry as usize];
            *best = best.max(value.sqrt());
            if words >= count.min(2) {
                sure[example.entry as usize] = sure[example.entry as usize].max(value.sqrt());
            }
        }
    }
    (likeness, sure)
}

/// The stems that count for a term, each with its weight, the term itself first.
pub(super) fn variants<'t>(term: &'t Term, weights: &Weights) -> impl Iterator<Item = (&'t str, f32)> {
    let (same, hint) = (weights.same, weights.hint);
    let related = term.related.iter().map(move |(stem, relation)| {
        let weight = match relation {
            Relation::Same => same,
            Relation::Hint => hint,
        };
        (stem.as_str(), weight)
    });
    let joined = term.joined.iter().map(|stem| (stem.as_str(), JOINED));
    std::iter::once((term.stem.as_str(), 1.0)).chain(joined).chain(related.filter(|(_, weight)| *weight > 0.0))
}

/// Lets each document keep only the best of a term's variants instead of their sum.
struct BestVariant {
    current: Vec<f32>,
    touched: Vec<usize>,
}

impl BestVariant {
    fn new(size: usize) -> Self {
        Self { current: vec![0.0; size], touched: Vec::new() }
    }

    fn raise(&mut self, document: usize, value: f32, sums: &mut [f32]) {
        let current = &mut self.current[document];
        if value > *current {
            if *current == 0.0 {
                self.touched.push(document);
            }
            sums[document] += value - *current;
            *current = value;
        }
    }

    fn next(&mut self) {
        for document in self.touched.drain(..) {
            self.current[document] = 0.0;
        }
    }
}
