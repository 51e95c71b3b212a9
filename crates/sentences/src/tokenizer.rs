//! Word pieces, as BERT's uncased vocabulary has them: lower-case, without accents, the longest known piece first.

use crate::accents::base;

/// A longer word is no word.
const LONGEST_WORD: usize = 100;

/// Tells every word piece of a text that is found, in order. A word that is not all of known pieces is left out.
pub(crate) fn pieces(text: &str, find: impl Fn(&str) -> Option<u16>, mut tell: impl FnMut(u16)) {
    let (mut word, mut found) = (String::with_capacity(32), Vec::with_capacity(8));
    let mut finish = |word: &mut String| {
        if !word.is_empty() {
            split(word, &find, &mut found);
            for token in &found {
                tell(*token);
            }
            word.clear();
        }
    };
    for c in text.chars().filter(|c| !is_dropped(*c)) {
        if c.is_whitespace() {
            finish(&mut word);
        } else if is_punctuation(c) || is_ideograph(c) {
            finish(&mut word);
            word.push(c);
            finish(&mut word);
        } else {
            c.to_lowercase().filter(|c| !is_mark(*c)).for_each(|c| word.push(base(c)));
        }
    }
    finish(&mut word);
}

/// The pieces of one word; none if a part of it is unknown.
fn split(word: &str, find: &impl Fn(&str) -> Option<u16>, found: &mut Vec<u16>) {
    found.clear();
    if word.chars().nth(LONGEST_WORD).is_some() {
        return;
    }
    let mut continued = String::with_capacity(word.len() + 2);
    let mut rest = word;
    while !rest.is_empty() {
        let is_start = rest.len() == word.len();
        let mut ends = rest.char_indices().rev().map(|(at, c)| at + c.len_utf8());
        let piece = ends.find_map(|end| {
            if is_start {
                return find(&rest[..end]).map(|token| (token, end));
            }
            continued.clear();
            continued.push_str("##");
            continued.push_str(&rest[..end]);
            find(&continued).map(|token| (token, end))
        });
        let Some((token, end)) = piece else { return found.clear() };
        found.push(token);
        rest = &rest[end..];
    }
}

/// Characters that no text is made of; tabs and ends of lines are spaces.
fn is_dropped(c: char) -> bool {
    matches!(c, '\0' | '\u{ad}' | '\u{fffd}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
        || c.is_control() && !c.is_whitespace()
}

/// Accents that stand after their letter.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation()
        || matches!(c, '¡' | '§' | '«' | '¶' | '·' | '»' | '¿' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{2043}' | '\u{2045}'..='\u{2051}')
        || matches!(c, '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}' | '\u{ff01}'..='\u{ff03}')
        || matches!(c, '\u{ff05}'..='\u{ff0a}' | '\u{ff0c}'..='\u{ff0f}' | '\u{ff1a}' | '\u{ff1b}' | '\u{ff1f}' | '\u{ff20}')
}

/// Signs that are words of their own.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2fa1f}')
}

#[cfg(test)]
mod tests {
    use crate::table::Table;

    /// What the reference implementation says: the text, then the pieces of its words, without words that are not all of Latin pieces.
    const REFERENCE: &str = include_str!("../tests/reference.tsv");

    #[test]
    fn splits_like_the_reference() {
        let table = Table::read(crate::FILE).expect("a table");
        let mut lines = 0;
        for line in REFERENCE.lines() {
            let (text, expected) = line.split_once('\t').expect("two columns");
            let text = text.replace("\\n", "\n");
            let mut got = Vec::new();
            super::pieces(&text, |piece| table.find(piece), |token| got.push(token));
            let expected: Vec<u16> = expected.split(' ').filter(|piece| !piece.is_empty()).filter_map(|piece| table.find(piece)).collect();
            assert_eq!(got, expected, "{text}");
            lines += 1;
        }
        assert!(lines >= 60, "{lines}");
    }
}
