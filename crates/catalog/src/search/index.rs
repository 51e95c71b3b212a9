//! The inverted index: which documents hold a word, and in which fields.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::sync::OnceLock;

use super::{
    apps::Apps,
    dense::Vectors,
    document::{Document, Kind},
    stem::stem,
    tokens::{is_stop, tokens},
    verbs::{self, Intents},
};

/// The fields of a document: integration, name, description, parameters, about the integration, example use cases.
pub const FIELDS: usize = 6;
const NAME: usize = 1;
const EXAMPLES: usize = 5;

/// A document that holds a term: how often in each field, four bits a field.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    pub(super) document: u32,
    counts: u32,
}

impl Posting {
    pub(super) fn count(self, field: usize) -> u32 {
        (self.counts >> (4 * field)) & 15
    }

    /// Whether a word stands in the document itself, not only in its examples.
    pub(super) fn in_document(self) -> bool {
        self.counts & ((1 << (4 * EXAMPLES)) - 1) > 0
    }

    pub(super) fn in_name(self) -> bool {
        self.count(NAME) > 0
    }
}

/// What ranking needs to know of a document besides its words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) id: u64,
    pub(super) app: u32,
    pub(super) kind: Kind,
    pub(super) intents: Intents,
    pub(super) destructive: bool,
    pub(super) name_terms: u8,
    pub(super) lengths: [u8; FIELDS],
}

/// A use case that a document carries as an example.
#[derive(Debug, Clone, Copy)]
pub(super) struct Example {
    pub(super) entry: u32,
    /// How telling all its words are together.
    pub(super) weight: f32,
}

/// An index over a set of documents: its words at once, their vectors when they are ready. Several can be searched as one.
#[derive(Debug, Clone, Default)]
pub struct Index {
    terms: HashMap<Box<str>, u32>,
    offsets: Vec<u32>,
    postings: Vec<Posting>,
    example_offsets: Vec<u32>,
    example_postings: Vec<u32>,
    pub(super) entries: Vec<Entry>,
    pub(super) examples: Vec<Example>,
    pub(super) apps: Apps,
    pub(super) length_sums: [u64; FIELDS],
    vectors: OnceLock<Vectors>,
}

impl Index {
    /// Builds the index. Documents keep their order; `sentences` gives the texts to embed in the same order.
    pub fn build<D: Borrow<Document>>(documents: impl IntoIterator<Item = D>) -> Self {
        let mut builder = Builder::default();
        for document in documents {
            builder.add(document.borrow());
        }
        builder.finish()
    }

    /// Adds the dense side, once: a vector per sentence of `sentences`, in that order. Vectors of another count are refused.
    pub fn embed(&self, vectors: Vectors) {
        if vectors.len() == self.entries.len() + self.examples.len() {
            self.vectors.get_or_init(|| vectors);
        }
    }

    pub(super) fn vectors(&self) -> Option<&Vectors> {
        self.vectors.get()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes held by the lexical side and by the vectors.
    pub fn size(&self) -> (usize, usize) {
        let words: usize = self.terms.keys().map(|k| k.len() + size_of::<(Box<str>, u32)>() + 8).sum();
        let lexical = words
            + (self.offsets.len() + self.example_offsets.len() + self.example_postings.len()) * size_of::<u32>()
            + self.postings.len() * size_of::<Posting>()
            + self.entries.len() * size_of::<Entry>()
            + self.examples.len() * size_of::<Example>();
        (lexical, self.vectors().map_or(0, Vectors::size))
    }

    pub(super) fn term(&self, stem: &str) -> Option<u32> {
        self.terms.get(stem).copied()
    }

    pub(super) fn postings(&self, term: u32) -> &[Posting] {
        slice(&self.postings, &self.offsets, term)
    }

    pub(super) fn example_postings(&self, term: u32) -> &[u32] {
        slice(&self.example_postings, &self.example_offsets, term)
    }
}

fn slice<'a, T>(all: &'a [T], offsets: &[u32], term: u32) -> &'a [T] {
    let at = term as usize;
    &all[offsets[at] as usize..offsets[at + 1] as usize]
}

/// The texts whose vectors `Index::embed` expects: one per document, then one per example use case.
pub fn sentences(documents: &[Document]) -> Vec<String> {
    let examples = documents.iter().flat_map(|d| d.use_cases.iter().cloned());
    documents.iter().map(Document::sentence).chain(examples).collect()
}

#[derive(Default)]
struct Builder {
    index: Index,
    /// Word as written to its term, so that each distinct word is stemmed once.
    words: HashMap<String, Option<u32>>,
    found: Vec<(u32, Posting)>,
    found_examples: Vec<(u32, u32)>,
    pending_examples: Vec<(u32, String)>,
}

impl Builder {
    fn add(&mut self, document: &Document) {
        let at = number(self.index.entries.len());
        let app = self.index.apps.add(&document.provider, &document.integration);
        let integration = format!("{} {}", document.integration.name, document.integration.key);
        let about = format!("{} {}", document.integration.aliases.join(" "), document.integration.about);
        let parameters = document.parameters.join(" ");
        let examples = document.use_cases.join(" ");
        let texts: [&[&str]; FIELDS] =
            [&[&integration], &[&document.name, &document.resource], &[&document.description], &[&parameters], &[&about], &[&examples]];
        let mut counts: Vec<(u32, u32)> = Vec::with_capacity(48);
        let mut lengths = [0_u8; FIELDS];
        for (field, texts) in texts.iter().enumerate() {
            for token in texts.iter().flat_map(|text| tokens(text)) {
                let Some(term) = self.term(&token.text) else { continue };
                counts.push((term, 1 << (4 * field)));
                lengths[field] = lengths[field].saturating_add(u8::from(!token.joined));
            }
            self.index.length_sums[field] += u64::from(lengths[field]);
        }
        counts.sort_unstable_by_key(|c| c.0);
        let mut name_terms = 0_u8;
        for group in counts.chunk_by(|a, b| a.0 == b.0) {
            let packed = group.iter().fold(0, |sum, &(_, count)| add_capped(sum, count));
            let posting = Posting { document: at, counts: packed };
            name_terms = name_terms.saturating_add(u8::from(posting.in_name()));
            self.found.push((group[0].0, posting));
        }
        self.pending_examples.extend(document.use_cases.iter().map(|text| (at, text.clone())));
        let words: Vec<String> = tokens(&document.name).into_iter().filter(|t| !t.joined).map(|t| t.text).collect();
        let intents = verbs::declared(&words.iter().map(String::as_str).collect::<Vec<_>>());
        self.index.entries.push(Entry {
            id: document.id,
            app,
            kind: document.kind,
            intents,
            destructive: document.destructive || intents.has(verbs::Intent::Delete),
            name_terms,
            lengths,
        });
    }

    fn term(&mut self, word: &str) -> Option<u32> {
        if let Some(&known) = self.words.get(word) {
            return known;
        }
        let term = (!is_stop(word)).then(|| {
            let next = number(self.index.terms.len());
            *self.index.terms.entry(stem(word).into_boxed_str()).or_insert(next)
        });
        self.words.insert(word.to_owned(), term);
        term
    }

    fn finish(mut self) -> Index {
        for (entry, text) in std::mem::take(&mut self.pending_examples) {
            let example = number(self.index.examples.len());
            let mut terms: Vec<u32> = tokens(&text).iter().filter_map(|t| self.term(&t.text)).collect();
            terms.sort_unstable();
            terms.dedup();
            self.index.examples.push(Example { entry, weight: 0.0 });
            self.found_examples.extend(terms.into_iter().map(|term| (term, example)));
        }
        let terms = self.index.terms.len();
        (self.index.offsets, self.index.postings) = by_term(terms, &self.found);
        (self.index.example_offsets, self.index.example_postings) = by_term(terms, &self.found_examples);
        for (term, example) in &self.found_examples {
            let rarity = rarity(self.index.len(), self.index.postings(*term).len());
            self.index.examples[*example as usize].weight += rarity;
        }
        self.index
    }
}

/// How telling a word is that so many of all documents hold.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below the precision of a float")]
pub(super) fn rarity(documents: usize, holders: usize) -> f32 {
    let (documents, holders) = (documents as f32, holders as f32);
    (1.0 + (documents - holders + 0.5).max(0.0) / (holders + 0.5)).ln()
}

/// Groups pairs by term with a counting sort: offsets per term, and the values in their original order.
fn by_term<T: Copy>(terms: usize, pairs: &[(u32, T)]) -> (Vec<u32>, Vec<T>) {
    let mut offsets = vec![0_u32; terms + 1];
    for (term, _) in pairs {
        offsets[*term as usize + 1] += 1;
    }
    for i in 1..offsets.len() {
        offsets[i] += offsets[i - 1];
    }
    let Some(&(_, filler)) = pairs.first() else { return (offsets, Vec::new()) };
    let mut values = vec![filler; pairs.len()];
    let mut next = offsets.clone();
    for &(term, value) in pairs {
        values[next[term as usize] as usize] = value;
        next[term as usize] += 1;
    }
    (offsets, values)
}

/// Adds one occurrence to a packed field count, which stops at 15.
fn add_capped(packed: u32, one: u32) -> u32 {
    let mask = one * 15;
    if packed & mask == mask { packed } else { packed + one }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
