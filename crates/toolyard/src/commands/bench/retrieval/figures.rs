//! Recall and NDCG of ranked lists.

use serde_json::{Value, json};

/// Mean figures over queries, in percent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Figures {
    recall_1: f64,
    recall_5: f64,
    recall_10: f64,
    ndcg_10: f64,
}

#[expect(clippy::cast_precision_loss, reason = "ranks and counts are small")]
impl Figures {
    /// The figures of one ranked list of at least ten documents against the relevant ones.
    pub(super) fn of(ranked: &[u64], relevant: &[u64]) -> Self {
        if relevant.is_empty() {
            return Self::default();
        }
        let found = |k: usize| ranked.iter().take(k).filter(|d| relevant.contains(d)).count() as f64 / relevant.len() as f64;
        let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
        let gained: f64 = ranked.iter().take(10).enumerate().filter(|(_, d)| relevant.contains(d)).map(|(i, _)| gain(i)).sum();
        let ideal: f64 = (0..relevant.len().min(10)).map(gain).sum();
        Self { recall_1: found(1) * 100.0, recall_5: found(5) * 100.0, recall_10: found(10) * 100.0, ndcg_10: gained / ideal * 100.0 }
    }

    pub(super) fn mean(all: &[Self]) -> Self {
        let n = all.len().max(1) as f64;
        let mean = |value: fn(&Self) -> f64| all.iter().map(value).sum::<f64>() / n;
        Self {
            recall_1: mean(|f| f.recall_1),
            recall_5: mean(|f| f.recall_5),
            recall_10: mean(|f| f.recall_10),
            ndcg_10: mean(|f| f.ndcg_10),
        }
    }

    pub(super) fn json(self) -> Value {
        json!({"recall_1": self.recall_1, "recall_5": self.recall_5, "recall_10": self.recall_10, "ndcg_10": self.ndcg_10})
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:4.1}  {:4.1}  {:4.1}  {:4.1}", self.recall_1, self.recall_5, self.recall_10, self.ndcg_10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_known_lists() {
        let perfect = Figures::of(&[1, 2, 3], &[1, 2]);
        assert!((perfect.ndcg_10 - 100.0).abs() < 1e-9 && (perfect.recall_1 - 50.0).abs() < 1e-9);
        let second = Figures::of(&[9, 1], &[1]);
        assert!((second.ndcg_10 - 63.093).abs() < 1e-2 && second.recall_1 == 0.0);
    }
}
