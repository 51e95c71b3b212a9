//! The vectors of sentences that were asked for lately.

use std::collections::HashMap;

/// Two generations: when the newer one is full it becomes the older one, and what nobody asked for in between is gone.
#[derive(Debug)]
pub(crate) struct Recent {
    most: usize,
    newer: HashMap<String, Vec<f32>>,
    older: HashMap<String, Vec<f32>>,
}

impl Recent {
    pub(crate) fn new(most: usize) -> Self {
        Self { most: most / 2, newer: HashMap::new(), older: HashMap::new() }
    }

    pub(crate) fn get(&mut self, sentence: &str) -> Option<Vec<f32>> {
        if let Some(vector) = self.newer.get(sentence) {
            return Some(vector.clone());
        }
        let (sentence, vector) = self.older.remove_entry(sentence)?;
        self.put(sentence, vector.clone());
        Some(vector)
    }

    pub(crate) fn put(&mut self, sentence: String, vector: Vec<f32>) {
        if self.newer.len() >= self.most {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(sentence, vector);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_the_rest_goes() {
        let mut recent = Recent::new(8);
        recent.put("kept".to_owned(), vec![1.0]);
        for number in 0..100_u8 {
            recent.put(number.to_string(), vec![f32::from(number)]);
            assert_eq!(recent.get("kept"), Some(vec![1.0]));
        }
        assert_eq!(recent.get("99"), Some(vec![99.0]));
        assert_eq!(recent.get("1"), None);
        assert!(recent.newer.len() + recent.older.len() <= 8);
    }
}
