//! What a use case asks for: which app, which operation, an event or an action.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{
    events::is_event,
    index::Index,
    query::Query,
    score::Collection,
    stem::stem,
    verbs::{self, Agreement, Intents},
};

/// A use case of up to this many words has one intent.
const FOCUSED_TERMS: f32 = 8.0;
/// From this strength on, the words that name an app mean nothing else.
pub(super) const CLEARLY: f32 = 0.7;

/// What the use case asks for, seen with the apps of the indexes.
#[derive(Debug)]
pub(super) struct View {
    /// Per index and app how surely it is named.
    pub(super) named: Vec<Vec<(u32, f32)>>,
    pub(super) any_named: f32,
    pub(super) asked: Intents,
    pub(super) agreement: Agreement,
    /// Whether it only wants to be told something.
    pub(super) only_finds: bool,
    pub(super) event: f32,
    /// Near 1 for a short use case with one intent, less for a long story.
    pub(super) focus: f32,
}

impl View {
    /// Whether an app is clearly named.
    pub(super) fn names_app(&self) -> bool {
        self.any_named >= CLEARLY
    }

    #[expect(clippy::cast_precision_loss, reason = "a count of words")]
    pub(super) fn new(indexes: &[&Index], query: &mut Query, collection: &Collection<'_>) -> Self {
        let words: Vec<&str> = query.words.iter().map(String::as_str).collect();
        // Every index asks about the same words.
        let counted = RefCell::new(HashMap::new());
        let frequency = |word: &str| match counted.borrow_mut().entry(word.to_owned()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(collection.frequency(&stem(word))),
        };
        let mut in_name = vec![false; words.len()];
        let mut named = Vec::with_capacity(indexes.len());
        let mut any_named = 0.0_f32;
        for index in indexes {
            let mentions = index.apps.mentioned(&words, &frequency);
            for mention in mentions.iter().filter(|m| m.strength >= CLEARLY) {
                in_name[mention.words.clone()].fill(true);
            }
            any_named = mentions.iter().map(|m| m.strength).fold(any_named, f32::max);
            named.push(mentions.into_iter().map(|m| (m.app, m.strength)).collect());
        }
        let rest: Vec<&str> = words.iter().zip(&in_name).filter(|(_, taken)| !**taken).map(|(w, _)| *w).collect();
        let (asked, only_finds, event) = (verbs::asked(&rest), verbs::only_finds(&rest), is_event(&rest));
        query.mark_apps(&in_name);
        let focus = (FOCUSED_TERMS / query.terms.len().max(1) as f32).min(1.0);
        Self { named, any_named, asked, agreement: Agreement::with(asked), only_finds, event, focus }
    }
}
