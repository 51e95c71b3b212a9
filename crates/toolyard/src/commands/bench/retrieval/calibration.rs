//! Whether `confidence` says how often answers are right, and whether what fits nothing is told so.

use catalog::search::Answer;
use serde_json::{Value, json};

const BINS: usize = 5;

/// Answers by how sure they were.
#[derive(Debug, Default)]
pub(super) struct Calibration {
    bins: [Bin; BINS],
    /// Queries with a right answer: how many, and how many were told that nothing fits.
    good: (usize, usize),
    /// Queries that fit nothing: how many, and how many were told so.
    nothing: (usize, usize),
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    answers: usize,
    right: usize,
    confidence: f64,
}

impl Calibration {
    pub(super) fn add(&mut self, answer: &Answer, relevant: &[u64]) {
        self.good = (self.good.0 + 1, self.good.1 + usize::from(!answer.fits));
        self.count(answer, |document| relevant.contains(&document));
    }

    pub(super) fn add_nothing(&mut self, answer: &Answer) {
        self.nothing = (self.nothing.0 + 1, self.nothing.1 + usize::from(!answer.fits));
        self.count(answer, |_| false);
    }

    fn count(&mut self, answer: &Answer, is_right: impl Fn(u64) -> bool) {
        let Some(best) = answer.hits.first().filter(|_| answer.fits) else { return };
        let bin = &mut self.bins[Self::bin(best.confidence)];
        bin.answers += 1;
        bin.right += usize::from(is_right(best.document));
        bin.confidence += f64::from(best.confidence);
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "from 0 to 1, in a few steps")]
    fn bin(confidence: f32) -> usize {
        ((confidence * BINS as f32) as usize).min(BINS - 1)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    fn rows(&self) -> impl Iterator<Item = (f64, f64, usize, f64, f64)> {
        self.bins.iter().enumerate().map(|(at, bin)| {
            let (from, to) = (at as f64 / BINS as f64, (at + 1) as f64 / BINS as f64);
            let many = bin.answers.max(1) as f64;
            (from, to, bin.answers, bin.confidence / many, bin.right as f64 / many)
        })
    }

    pub(super) fn json(&self) -> Value {
        let bins: Vec<Value> = self
            .rows()
            .map(|(from, to, answers, said, right)| json!({"from": from, "to": to, "answers": answers, "confidence": said, "right": right}))
            .collect();
        json!({
            "bins": bins,
            "good_queries": self.good.0,
            "good_queries_told_nothing_fits": self.good.1,
            "queries_that_fit_nothing": self.nothing.0,
            "told_so": self.nothing.1,
        })
    }
}

impl std::fmt::Display for Calibration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "confidence   answers  mean   right")?;
        for (from, to, answers, said, right) in self.rows() {
            writeln!(f, "{from:.1} to {to:.1}   {answers:>7}  {said:.2}   {right:.2}")?;
        }
        writeln!(
            f,
            "told that nothing fits: {} of {} good queries, {} of {} that fit nothing",
            self.good.1, self.good.0, self.nothing.1, self.nothing.0
        )
    }
}
