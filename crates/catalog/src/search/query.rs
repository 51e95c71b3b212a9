//! What a use case says, before any index is asked.

use std::collections::HashSet;

use super::{
    dense::Embedder,
    phrases,
    stem::stem,
    synonyms::{self, Relation},
    tokens::{Token, is_stop, tokens},
    verbs,
};

/// Beyond this many words a use case says nothing new, but would cost time.
const MOST_WORDS: usize = 200;

/// How much a word counts that stands in quotes: it is a value rather than what to do with it.
const QUOTED: f32 = 0.5;

/// A use case of more distinct words than this is clear without other words for them.
const MOST_EXPANDED: usize = 12;
/// How much of a use case is worth embedding: the model's time grows with the length.
const MOST_SENTENCES: usize = 4;
const MOST_CHARACTERS: usize = 480;

/// From so many digits on, a word is an id: "S3" and "GPT-4" are names.
const DIGITS_OF_ID: usize = 2;

/// A distinct word of the use case and the words that may stand in for it.
#[derive(Debug, Clone)]
pub(super) struct Term {
    pub(super) stem: String,
    pub(super) count: f32,
    /// How telling the word is by itself.
    pub(super) weight: f32,
    /// Where the word stands in `Query::words`.
    at: Vec<usize>,
    /// The word only names an app.
    pub(super) names_app: bool,
    pub(super) related: &'static [(String, Relation)],
    /// It and its neighbours written as one word: a "zip code" is a "zipcode" elsewhere.
    pub(super) joined: Vec<String>,
}

/// A use case taken apart.
#[derive(Debug, Clone, Default)]
pub(super) struct Query {
    /// All words in order, lower-case.
    pub(super) words: Vec<String>,
    pub(super) terms: Vec<Term>,
}

impl Query {
    pub(super) fn new(text: &str, embedder: Option<&dyn Embedder>) -> Self {
        let mut query = Self::default();
        let quoted = quoted(text);
        for token in plain(tokens(text).into_iter().take(MOST_WORDS).collect()) {
            let at = query.words.len() - usize::from(token.joined);
            if !is_stop(&token.text) {
                let telling = embedder.map_or(1.0, |embedder| embedder.weight(&token.text));
                query.count(&token.text, at, if quoted.contains(&token.text) { QUOTED * telling } else { telling });
            }
            if !token.joined {
                query.words.push(token.text);
            }
        }
        query.join();
        if query.terms.len() > MOST_EXPANDED {
            query.terms.iter_mut().for_each(|term| term.related = &[]);
        }
        query
    }

    /// Marks the terms that occur only where an app is named.
    pub(super) fn mark_apps(&mut self, in_name: &[bool]) {
        for term in &mut self.terms {
            term.names_app = term.at.iter().all(|&at| in_name[at]);
        }
    }

    /// Whether it says less than two of: what to do, with what, in which app. "Issue" fits a hundred actions, "close an issue" a few.
    pub(super) fn is_vague(&self, names_app: bool) -> bool {
        let own = self.terms.iter().filter(|term| !term.names_app).filter_map(|term| term.at.first());
        let (operations, things): (Vec<usize>, Vec<usize>) = own.partition(|&&at| verbs::is_operation(&self.words[at], at == 0));
        usize::from(names_app) + usize::from(!operations.is_empty()) + things.len() < 2
    }

    fn join(&mut self) {
        for (at, pair) in self.words.windows(2).enumerate() {
            if pair.iter().any(|word| word.len() < 2 || is_stop(word)) {
                continue;
            }
            let joined = stem(&pair.concat());
            for term in self.terms.iter_mut().filter(|term| term.at.iter().any(|&own| own == at || own == at + 1)) {
                term.joined.push(joined.clone());
            }
        }
    }

    fn count(&mut self, word: &str, at: usize, weight: f32) {
        let stem = stem(word);
        if let Some(known) = self.terms.iter_mut().find(|t| t.stem == stem) {
            known.count += 1.0;
            known.at.push(at);
        } else {
            let related = synonyms::related(&stem);
            self.terms.push(Term { stem, count: 1.0, weight, at: vec![at], names_app: false, related, joined: Vec::new() });
        }
    }
}

/// The words that stand in quotes. An apostrophe inside a word is none.
fn quoted(text: &str) -> HashSet<String> {
    let mut words = HashSet::new();
    let mut opened = None;
    for (at, mark) in text.char_indices().filter(|(_, c)| matches!(c, '\'' | '"' | '`' | '‘' | '’' | '“' | '”')) {
        let after = at + mark.len_utf8();
        match opened {
            None if !text[..at].ends_with(char::is_alphanumeric) => opened = Some(after),
            Some(start) if !text[after..].starts_with(char::is_alphanumeric) => {
                words.extend(tokens(&text[start..at]).into_iter().map(|token| token.text));
                opened = None;
            }
            _ => {}
        }
    }
    words
}

/// The words with turns of phrase in plain words.
fn plain(words: Vec<Token>) -> Vec<Token> {
    let texts: Vec<&str> = words.iter().map(|token| token.text.as_str()).collect();
    let mut out = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        if let Some((length, meaning)) = phrases::at_start(&texts[at..], at == 0) {
            out.extend(meaning.iter().map(|word| Token { text: (*word).to_owned(), joined: false }));
            at += length;
        } else {
            out.push(words[at].clone());
            at += 1;
        }
    }
    out
}

/// What a use case means to the sentence model, a vector for each of its sentences.
pub(super) fn vectors_of(use_case: &str, embedder: &dyn Embedder) -> Vec<Vec<f32>> {
    let embed = |sentence: &str| embedder.embed(&without_values(sentence)).or_else(|| embedder.embed(sentence));
    sentences_of(use_case).into_iter().filter_map(embed).collect()
}

/// A sentence without numbers, ids and addresses: they are what to do it with, and pieces of them mean something else.
fn without_values(sentence: &str) -> String {
    let is_value = |word: &str| {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let start = word.trim_start_matches(|c: char| !c.is_alphanumeric());
        digits >= DIGITS_OF_ID || word.contains("://") || start.starts_with(|c: char| c.is_ascii_digit())
    };
    sentence.split_whitespace().filter(|word| !is_value(word)).collect::<Vec<_>>().join(" ")
}

/// The sentences of a use case to embed: several short vectors say more than one of a long story.
fn sentences_of(use_case: &str) -> Vec<&str> {
    let end = use_case.char_indices().nth(MOST_CHARACTERS).map_or(use_case.len(), |(at, _)| at);
    let use_case = &use_case[..end];
    let parts = use_case.split_inclusive(['.', '?', '!', ';', '\n']).map(str::trim);
    let parts: Vec<&str> = parts.filter(|p| p.split_whitespace().nth(2).is_some()).take(MOST_SENTENCES).collect();
    if parts.len() < 2 { vec![use_case] } else { parts }
}

#[cfg(test)]
mod tests {
    use super::{quoted, without_values};

    #[test]
    fn what_to_do_it_with_says_not_what_to_do() {
        for (sentence, expected) in [
            ("check order #4711 of 2024-05-01 at https://example.com/a", "check order of at"),
            ("resize a VJ901234 to (640x480)", "resize a to"),
            ("copy an S3 bucket, ask GPT-4", "copy an S3 bucket, ask GPT-4"),
            ("42", ""),
        ] {
            assert_eq!(without_values(sentence), expected);
        }
    }

    #[test]
    fn an_apostrophe_quotes_nothing() {
        let mut words: Vec<String> = quoted("don't send the team's 'weekly report' to “all of us” nor 'half").into_iter().collect();
        words.sort_unstable();
        assert_eq!(words, ["all", "of", "report", "us", "weekly"]);
    }
}
