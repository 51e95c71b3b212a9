//! The sentence model that ships in the binary: a table of word vectors. It must never know what the sentences are for.
//!
//! A sentence is the normalised sum of the vectors of its word pieces, so it takes microseconds and nothing has to be kept. `train` beside
//! this file makes the table; `NOTICE.md` says what it is made from.

mod accents;
mod table;
mod tokenizer;

use catalog::search::Embedder;

use table::Table;

static FILE: &[u8] = include_bytes!("../sentences.table");

/// A word of many pieces is no more telling than this.
const MOST_TELLING: f32 = 2.0;

/// The model, ready to be asked.
#[derive(Debug)]
pub struct Sentences {
    table: Table,
}

impl Sentences {
    pub fn new() -> Self {
        Self { table: Table::read(FILE).unwrap_or_default() }
    }

    /// The sum of the vectors of all pieces, and its length.
    fn sum(&self, text: &str) -> (Vec<f32>, f32) {
        let mut sum = vec![0.0; self.table.width()];
        tokenizer::pieces(text, |piece| self.table.find(piece), |token| self.table.add(token, &mut sum));
        let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
        (sum, length)
    }
}

impl Default for Sentences {
    fn default() -> Self {
        Self::new()
    }
}

impl Embedder for Sentences {
    fn embed(&self, sentence: &str) -> Option<Vec<f32>> {
        let (mut sum, length) = self.sum(sentence);
        if length <= 0.0 {
            return None;
        }
        for x in &mut sum {
            *x /= length;
        }
        Some(sum)
    }

    /// Training makes the vectors of telling words long.
    fn weight(&self, word: &str) -> f32 {
        let (_, length) = self.sum(word);
        if length > 0.0 { length.min(MOST_TELLING) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cosine(left: &str, right: &str) -> f32 {
        let model = Sentences::new();
        let (left, right) = (model.embed(left).expect("a vector"), model.embed(right).expect("a vector"));
        left.iter().zip(&right).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn near_sentences_have_near_vectors() {
        assert!(cosine("send an email", "write a mail to somebody") > cosine("send an email", "delete a repository") + 0.2);
        assert!(
            cosine("what is the weather tomorrow", "get the forecast") > cosine("what is the weather tomorrow", "get an invoice") + 0.2
        );
        assert!((cosine("Crème brûlée", "creme brulee") - 1.0).abs() < 1e-5);
    }

    #[test]
    fn words_that_go_with_anything_say_little() {
        let model = Sentences::new();
        for (telling, vague) in [("weather", "provide"), ("slack", "get"), ("tenant", "specific"), ("invoice", "information")] {
            assert!(model.weight(telling) > model.weight(vague) + 0.1, "{telling} {vague}");
        }
        assert!((model.weight("\u{1f980}") - 1.0).abs() < f32::EPSILON);
    }

    #[test]
    fn what_has_no_words_has_no_vector() {
        let model = Sentences::new();
        for text in ["", " \n\t", "\u{0}\u{fffd}", &"x".repeat(101)] {
            assert_eq!(model.embed(text), None, "{text:?}");
        }
    }
}
