//! Splitting text and identifiers into words: `getAllContacts`, `send_email` and `S3 bucket` alike.

/// A word of a text. A name such as `GitHub` yields its parts and, as an extra, the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: String,
    /// The joined form of a name that was also split: it can match, but does not count as length.
    pub(super) joined: bool,
}

/// Words that say nothing about what is wanted, chatty openings of a request included.
const STOP: &[&str] = &[
    "a",
    "about",
    "additionally",
    "also",
    "am",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "been",
    "being",
    "but",
    "by",
    "can",
    "could",
    "curious",
    "d",
    "did",
    "do",
    "does",
    "don",
    "for",
    "from",
    "had",
    "has",
    "have",
    "he",
    "hello",
    "help",
    "her",
    "hi",
    "his",
    "how",
    "i",
    "if",
    "im",
    "in",
    "interested",
    "into",
    "is",
    "it",
    "its",
    "just",
    "know",
    "let",
    "like",
    "ll",
    "looking",
    "m",
    "me",
    "my",
    "need",
    "no",
    "not",
    "of",
    "on",
    "or",
    "our",
    "out",
    "please",
    "re",
    "s",
    "she",
    "should",
    "so",
    "some",
    "such",
    "t",
    "than",
    "thank",
    "thanks",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "to",
    "up",
    "us",
    "using",
    "ve",
    "very",
    "via",
    "want",
    "wants",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "while",
    "who",
    "why",
    "will",
    "with",
    "wondering",
    "would",
    "you",
    "your",
];

/// Whether a lower-case word is on the stop list.
pub(super) fn is_stop(word: &str) -> bool {
    STOP.binary_search(&word).is_ok()
}

/// Splits a text at everything that is not a letter or digit, at camel case humps and between letters and digits.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut out = Vec::with_capacity(text.len() / 5);
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()) {
        let parts = humps(word);
        if parts.len() == 1 {
            out.push(Token { text: word.to_lowercase(), joined: false });
            continue;
        }
        out.extend(parts.iter().map(|part| Token { text: part.to_lowercase(), joined: false }));
        if parts.len() <= 3 {
            out.push(Token { text: word.to_lowercase(), joined: true });
        }
    }
    out
}

fn humps(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let chars: Vec<(usize, char)> = word.char_indices().collect();
    for i in 1..chars.len() {
        let (before, here) = (chars[i - 1].1, chars[i].1);
        let after = chars.get(i + 1).map(|c| c.1);
        let hump = before.is_lowercase() && here.is_uppercase();
        let acronym_ends = before.is_uppercase() && here.is_uppercase() && after.is_some_and(char::is_lowercase);
        let number = before.is_alphabetic() && here.is_ascii_digit() && i - count_back(&chars, i) >= 3;
        if hump || (acronym_ends && i >= 2) || number {
            parts.push(&word[start..chars[i].0]);
            start = chars[i].0;
        }
    }
    parts.push(&word[start..]);
    parts
}

/// Where the run of letters that ends before `i` began: `S3` stays whole, `sheet1` does not.
fn count_back(chars: &[(usize, char)], i: usize) -> usize {
    (0..i).rev().take_while(|&j| chars[j].1.is_alphabetic()).last().unwrap_or(i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_names_and_sentences() {
        for (text, expected) in [
            ("Send an email", "send an email"),
            ("send_email", "send email"),
            ("getAllContacts", "get all contacts getallcontacts*"),
            ("GMAIL_SEND_EMAIL", "gmail send email"),
            ("GitHub", "git hub github*"),
            ("HTTPRequest", "http request httprequest*"),
            ("AWS S3 bucket", "aws s3 bucket"),
            ("Sheet1", "sheet 1 sheet1*"),
            ("OAuth2", "oauth 2 oauth2*"),
            ("user's inbox", "user s inbox"),
            ("Zürich → Köln", "zürich köln"),
            ("", ""),
            ("🦀 !!", ""),
        ] {
            let got: Vec<String> = tokens(text).into_iter().map(|t| if t.joined { t.text + "*" } else { t.text }).collect();
            assert_eq!(got.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn the_stop_list_is_sorted() {
        assert!(STOP.is_sorted());
    }
}
