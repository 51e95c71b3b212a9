//! The inverted index: which documents hold a word, and how much that says.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::sync::OnceLock;

use super::{
    apps::Apps,
    dense::Embedder,
    document::{Document, Integration, Kind},
    meanings::Meanings,
    operations::{self, Operation},
    stem::stem,
    tokens::{is_stop, tokens},
    verbs::{self, Intents},
    weights::{EXAMPLES, FIELDS, Fields, NAME},
};

/// A document that holds a term, and how much of a full match that is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    pub(super) document: u32,
    weight: u16,
    places: u16,
}

const IN_NAME: u16 = 1;
const IN_DOCUMENT: u16 = 2;

impl Posting {
    pub(super) fn weight(self) -> f32 {
        f32::from(self.weight) / f32::from(u16::MAX)
    }

    /// Whether the word stands in the document itself, not only in its examples.
    pub(super) fn in_document(self) -> bool {
        self.places & IN_DOCUMENT > 0
    }

    pub(super) fn in_name(self) -> bool {
        self.places & IN_NAME > 0
    }
}

/// What ranking needs to know of a document besides its words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) id: u64,
    pub(super) app: u32,
    pub(super) kind: Kind,
    pub(super) intents: Intents,
    pub(super) change: Change,
    pub(super) destructive: bool,
    pub(super) name_terms: u8,
    /// How often people mean this when they mean its app, from 0 to 1.
    pub(super) usage: f32,
}

/// Whether a call changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Never,
    /// Its name says so.
    Likely,
    /// Its app tells what only reads, and this does not.
    Surely,
    Unknown,
}

/// A use case that a document carries as an example.
#[derive(Debug, Clone, Copy)]
pub(super) struct Example {
    pub(super) entry: u32,
    /// How telling all its words are together.
    pub(super) weight: f32,
}

/// An index over a set of documents: their words and, with a sentence model, their vectors. Several can be searched as one.
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
    pub(super) meanings: Option<Meanings>,
    /// The vectors of a remote model, once they are there.
    pub(super) remote: OnceLock<Meanings>,
}

impl Index {
    /// Builds the index over the words of the documents, which keep their order.
    pub fn of_words<D: Borrow<Document>>(documents: impl IntoIterator<Item = D>) -> Self {
        Self::build(documents, None)
    }

    /// Builds the index over the words of the documents and, with a sentence model, over what they mean.
    pub fn build<D: Borrow<Document>>(documents: impl IntoIterator<Item = D>, embedder: Option<&dyn Embedder>) -> Self {
        let mut builder = Builder { meanings: embedder.map(|embedder| (embedder, Meanings::default())), ..Builder::default() };
        for document in documents {
            builder.add(document.borrow());
        }
        builder.finish()
    }

    /// Takes the vectors of a remote model for the documents that it was built from, in their order. They are taken once.
    pub fn embed_remotely<D: Borrow<Document>>(&self, documents: impl IntoIterator<Item = D>, vectors: &dyn Embedder) {
        self.remote.get_or_init(|| {
            let mut meanings = Meanings::default();
            for (document, at) in documents.into_iter().zip(0_u32..) {
                meanings.add(at, document.borrow(), vectors);
            }
            meanings
        });
    }

    /// Whether it has the vectors of a remote model.
    pub fn is_embedded_remotely(&self) -> bool {
        self.remote.get().is_some()
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
        (lexical, self.meanings.iter().chain(self.remote.get()).map(Meanings::size).sum())
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

#[derive(Default)]
struct Builder<'e> {
    index: Index,
    meanings: Option<(&'e dyn Embedder, Meanings)>,
    fields: Fields,
    /// Word as written to its term, so that each distinct word is stemmed once.
    words: HashMap<String, Option<u32>>,
    found: Vec<(u32, Posting)>,
    found_examples: Vec<(u32, u32)>,
    pending_examples: Vec<(u32, String)>,
    /// Per app whether it says which of its actions matter, and which of them only read.
    told: Vec<(bool, bool)>,
    /// Per app the actions and events of which nothing is told.
    untold: HashMap<u32, (Integration, Vec<(u32, Operation)>)>,
}

impl Builder<'_> {
    fn add(&mut self, document: &Document) {
        let at = number(self.index.entries.len());
        if let Some((embedder, meanings)) = &mut self.meanings {
            meanings.add(at, document, *embedder);
        }
        let app = self.index.apps.add(&document.provider, &document.integration);
        self.told.resize(self.told.len().max(app as usize + 1), (false, false));
        let (weighs, reads) = &mut self.told[app as usize];
        *weighs |= document.usage.is_some();
        *reads |= document.read_only;
        let name_terms = self.add_words(at, document);
        self.pending_examples.extend(document.use_cases.iter().map(|text| (at, text.clone())));
        let words: Vec<String> = tokens(&document.name).into_iter().filter(|t| !t.joined).map(|t| t.text).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let intents = verbs::declared(&words);
        let change = match intents {
            _ if document.read_only || document.kind == Kind::Event => Change::Never,
            intents if intents.change_only() => Change::Likely,
            _ => Change::Unknown,
        };
        if document.usage.is_none() {
            self.untold
                .entry(app)
                .or_insert_with(|| (document.integration.clone(), Vec::new()))
                .1
                .push((at, Operation::new(document, &words, intents)));
        }
        self.index.entries.push(Entry {
            id: document.id,
            app,
            kind: document.kind,
            intents,
            change,
            destructive: document.destructive || intents.has(verbs::Intent::Delete),
            name_terms,
            usage: document.usage.unwrap_or_default(),
        });
    }

    /// Adds the words of a document; how many distinct ones its name has.
    fn add_words(&mut self, at: u32, document: &Document) -> u8 {
        let integration = format!("{} {}", document.integration.name, document.integration.key);
        let about = format!("{} {}", document.integration.aliases.join(" "), document.integration.about);
        let parameters = document.parameters.join(" ");
        let examples = document.use_cases.join(" ");
        let texts: [&[&str]; FIELDS] = [
            &[&integration],
            &[&document.name, &document.resource],
            &[&document.description],
            &[&parameters],
            &[&about],
            &[&examples],
            &[&document.about_parameters],
        ];
        let mut found: Vec<(u32, usize)> = Vec::with_capacity(48);
        let mut lengths = [0_u32; FIELDS];
        for (field, texts) in texts.iter().enumerate() {
            for token in texts.iter().flat_map(|text| tokens(text)) {
                let Some(term) = self.term(&token.text) else { continue };
                found.push((term, field));
                lengths[field] += u32::from(!token.joined);
            }
        }
        found.sort_unstable();
        let mut name_terms = 0_u8;
        for group in found.chunk_by(|a, b| a.0 == b.0) {
            let weight = self.fields.weigh(group.iter().map(|(_, field)| *field), &lengths);
            let in_name = group.iter().any(|(_, field)| *field == NAME);
            name_terms = name_terms.saturating_add(u8::from(in_name));
            let in_document = group.iter().any(|(_, field)| *field != EXAMPLES);
            let places = if in_name { IN_NAME } else { 0 } | if in_document { IN_DOCUMENT } else { 0 };
            self.found.push((group[0].0, Posting { document: at, weight, places }));
        }
        name_terms
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
        self.index.meanings = self.meanings.take().map(|(_, meanings)| meanings);
        for entry in &mut self.index.entries {
            let (_, reads) = self.told[entry.app as usize];
            if reads && entry.change != Change::Never {
                entry.change = Change::Surely;
            }
        }
        // Where an app says what matters, what it does not name matters little.
        let untold = std::mem::take(&mut self.untold).into_iter().filter(|(app, _)| !self.told[*app as usize].0);
        for (integration, operations) in untold.map(|(_, untold)| untold) {
            let (entries, operations): (Vec<u32>, Vec<Operation>) = operations.into_iter().unzip();
            for (entry, usage) in entries.into_iter().zip(operations::usual(&integration, &operations)) {
                self.index.entries[entry as usize].usage = usage;
            }
        }
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

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
