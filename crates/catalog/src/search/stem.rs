//! The Snowball English stemmer (Porter 2): `messages` and `messaging` become one word.
//!
//! Works on lower-case ASCII; any other word comes back unchanged.
//!
//! It is our own because `rust-stemmers` had its last release in 2019, and brings the tables of many other languages along.

/// Returns the stem of a lower-case word.
pub(super) fn stem(word: &str) -> String {
    if word.len() <= 2 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return word.to_owned();
    }
    if let Some((_, fixed)) = EXCEPTIONS.iter().find(|(from, _)| *from == word) {
        return (*fixed).to_owned();
    }
    let mut w = Stem::new(word);
    w.plural();
    if !INVARIANT.contains(&w.text()) {
        w.past_and_gerund();
        w.final_y();
        w.long_suffix();
        w.medium_suffix();
        w.short_suffix();
        w.final_e_or_l();
    }
    w.text().replace('Y', "y")
}

const EXCEPTIONS: &[(&str, &str)] = &[
    ("skis", "ski"),
    ("skies", "sky"),
    ("dying", "die"),
    ("lying", "lie"),
    ("tying", "tie"),
    ("idly", "idl"),
    ("gently", "gentl"),
    ("ugly", "ugli"),
    ("early", "earli"),
    ("only", "onli"),
    ("singly", "singl"),
    ("sky", "sky"),
    ("news", "news"),
    ("howe", "howe"),
    ("atlas", "atlas"),
    ("cosmos", "cosmos"),
    ("bias", "bias"),
    ("andes", "andes"),
];
const INVARIANT: &[&str] = &["inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"];
const STEP2: &[(&str, &str)] = &[
    ("ization", "ize"),
    ("ational", "ate"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("iveness", "ive"),
    ("tional", "tion"),
    ("biliti", "ble"),
    ("lessli", "less"),
    ("entli", "ent"),
    ("ation", "ate"),
    ("alism", "al"),
    ("aliti", "al"),
    ("ousli", "ous"),
    ("iviti", "ive"),
    ("fulli", "ful"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("abli", "able"),
    ("izer", "ize"),
    ("ator", "ate"),
    ("alli", "al"),
    ("bli", "ble"),
];
const STEP3: &[(&str, &str)] =
    &[("ational", "ate"), ("tional", "tion"), ("alize", "al"), ("icate", "ic"), ("iciti", "ic"), ("ical", "ic"), ("ness", ""), ("ful", "")];
const STEP4: &[&str] =
    &["ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "al", "er", "ic"];

/// A word being cut down; `Y` marks a consonant y. `r1` and `r2` are the regions of the algorithm.
struct Stem {
    word: Vec<u8>,
    r1: usize,
    r2: usize,
}

fn is_vowel(b: u8) -> bool {
    matches!(b, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

fn region(word: &[u8], from: usize) -> usize {
    (from + 1..word.len()).find(|&i| is_vowel(word[i - 1]) && !is_vowel(word[i])).map_or(word.len(), |i| i + 1)
}

impl Stem {
    fn new(word: &str) -> Self {
        let mut word = word.as_bytes().to_vec();
        for i in 0..word.len() {
            if word[i] == b'y' && (i == 0 || is_vowel(word[i - 1])) {
                word[i] = b'Y';
            }
        }
        let r1 = ["gener", "commun", "arsen"]
            .iter()
            .find(|prefix| word.starts_with(prefix.as_bytes()))
            .map_or_else(|| region(&word, 0), |prefix| prefix.len());
        let r2 = region(&word, r1);
        Self { word, r1, r2 }
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.word).unwrap_or_default()
    }

    fn ends(&self, suffix: &str) -> bool {
        self.word.ends_with(suffix.as_bytes())
    }

    fn cut(&mut self, suffix: &str, with: &str) {
        self.word.truncate(self.word.len() - suffix.len());
        self.word.extend_from_slice(with.as_bytes());
    }

    fn has_vowel_before(&self, end: usize) -> bool {
        self.word[..end].iter().any(|&b| is_vowel(b))
    }

    /// A short syllable at `end`: vowel between consonants (the last not w, x, Y), or vowel and consonant at the start.
    fn short_syllable(&self, end: usize) -> bool {
        let w = &self.word[..end];
        match w.len() {
            0 | 1 => false,
            2 => is_vowel(w[0]) && !is_vowel(w[1]),
            n => !is_vowel(w[n - 3]) && is_vowel(w[n - 2]) && !is_vowel(w[n - 1]) && !matches!(w[n - 1], b'w' | b'x' | b'Y'),
        }
    }

    fn plural(&mut self) {
        if self.ends("sses") {
            self.cut("sses", "ss");
        } else if self.ends("ied") || self.ends("ies") {
            let with = if self.word.len() > 4 { "i" } else { "ie" };
            self.cut("ies", with);
        } else if self.ends("s") && !self.ends("us") && !self.ends("ss") && self.has_vowel_before(self.word.len().saturating_sub(2)) {
            self.cut("s", "");
        }
    }

    fn past_and_gerund(&mut self) {
        for suffix in ["eedly", "eed"] {
            if self.ends(suffix) {
                if self.word.len() - suffix.len() >= self.r1 {
                    self.cut(suffix, "ee");
                }
                return;
            }
        }
        let Some(suffix) = ["ingly", "edly", "ing", "ed"].into_iter().find(|s| self.ends(s)) else { return };
        if !self.has_vowel_before(self.word.len() - suffix.len()) {
            return;
        }
        self.cut(suffix, "");
        let n = self.word.len();
        if self.ends("at") || self.ends("bl") || self.ends("iz") {
            self.word.push(b'e');
        } else if n >= 2
            && self.word[n - 1] == self.word[n - 2]
            && matches!(self.word[n - 1], b'b' | b'd' | b'f' | b'g' | b'm' | b'n' | b'p' | b'r' | b't')
        {
            self.word.pop();
        } else if n <= self.r1 && self.short_syllable(n) {
            self.word.push(b'e');
        }
    }

    fn final_y(&mut self) {
        let n = self.word.len();
        if n > 2 && matches!(self.word[n - 1], b'y' | b'Y') && !is_vowel(self.word[n - 2]) {
            self.word[n - 1] = b'i';
        }
    }

    fn long_suffix(&mut self) {
        if let Some((suffix, with)) = STEP2.iter().find(|(s, _)| self.ends(s)) {
            if self.word.len() - suffix.len() >= self.r1 {
                self.cut(suffix, with);
            }
        } else if self.ends("ogi") {
            if self.word.len() - 3 >= self.r1 && self.word.len() > 3 && self.word[self.word.len() - 4] == b'l' {
                self.cut("ogi", "og");
            }
        } else if self.ends("li") && self.word.len() - 2 >= self.r1 {
            let before = self.word.len().checked_sub(3).map(|i| self.word[i]);
            if before.is_some_and(|b| matches!(b, b'c' | b'd' | b'e' | b'g' | b'h' | b'k' | b'm' | b'n' | b'r' | b't')) {
                self.cut("li", "");
            }
        }
    }

    fn medium_suffix(&mut self) {
        if let Some((suffix, with)) = STEP3.iter().find(|(s, _)| self.ends(s)) {
            if self.word.len() - suffix.len() >= self.r1 {
                self.cut(suffix, with);
            }
        } else if self.ends("ative") && self.word.len() - 5 >= self.r2 {
            self.cut("ative", "");
        }
    }

    fn short_suffix(&mut self) {
        if let Some(suffix) = STEP4.iter().find(|s| self.ends(s)) {
            if self.word.len() - suffix.len() >= self.r2 {
                self.cut(suffix, "");
            }
        } else if self.ends("ion") && self.word.len() - 3 >= self.r2 {
            let before = self.word.len().checked_sub(4).map(|i| self.word[i]);
            if before.is_some_and(|b| matches!(b, b's' | b't')) {
                self.cut("ion", "");
            }
        }
    }

    fn final_e_or_l(&mut self) {
        let n = self.word.len();
        if self.ends("e") {
            if n > self.r2 || (n > self.r1 && !self.short_syllable(n - 1)) {
                self.word.pop();
            }
        } else if self.ends("ll") && n > self.r2 {
            self.word.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn follows_the_published_vocabulary() {
        for (word, expected) in [
            ("consistency", "consist"),
            ("knightly", "knight"),
            ("messages", "messag"),
            ("messaging", "messag"),
            ("issues", "issu"),
            ("emails", "email"),
            ("replied", "repli"),
            ("reply", "repli"),
            ("ties", "tie"),
            ("repositories", "repositori"),
            ("repository", "repositori"),
            ("hopping", "hop"),
            ("hoping", "hope"),
            ("creates", "creat"),
            ("creation", "creation"),
            ("generate", "generat"),
            ("communication", "communic"),
            ("employment", "employ"),
            ("agreed", "agre"),
            ("feed", "feed"),
            ("gas", "gas"),
            ("gaps", "gap"),
            ("status", "status"),
            ("address", "address"),
            ("addresses", "address"),
            ("calendar", "calendar"),
            ("scheduling", "schedul"),
            ("falling", "fall"),
            ("news", "news"),
            ("say", "say"),
            ("dying", "die"),
            ("s3", "s3"),
            ("zürich", "zürich"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
    }
}
