//! What the documents of an index mean: a vector each, and one for their examples.

use super::{
    dense::{Embedder, Probe, Vectors},
    document::Document,
};

/// The vectors of an index.
#[derive(Debug, Clone, Default)]
pub(super) struct Meanings {
    /// One per document.
    documents: Vectors,
    /// One per document that has examples: their mean.
    examples: Vectors,
    /// The documents of `examples`, in order.
    with_examples: Vec<u32>,
}

impl Meanings {
    /// Adds the next document.
    pub(super) fn add(&mut self, at: u32, document: &Document, embedder: &dyn Embedder) {
        self.documents.push(embedder.embed(&document.sentence()).as_deref());
        let mut examples = document.use_cases.iter().filter_map(|text| embedder.embed(text));
        if let Some(mut sum) = examples.next() {
            for example in examples {
                sum.iter_mut().zip(example).for_each(|(sum, x)| *sum += x);
            }
            self.examples.push(Some(&sum));
            self.with_examples.push(at);
        }
    }

    /// Bytes held in memory.
    pub(super) fn size(&self) -> usize {
        self.documents.size() + self.examples.size() + self.with_examples.len() * size_of::<u32>()
    }

    /// About how near each document is to the nearest of the probes: exactly, where there are few.
    pub(super) fn nearest(&self, probes: &[Probe]) -> Vec<f32> {
        let mut best = self.documents.nearest(probes);
        for (&at, cosine) in self.with_examples.iter().zip(self.examples.nearest(probes)) {
            let known = &mut best[at as usize];
            *known = known.max(cosine);
        }
        best
    }

    /// How near a document is to the probe, where there is a vector for it.
    pub(super) fn known(&self, document: u32, probe: &Probe) -> Option<f32> {
        let own = self.documents.has(document as usize, probe).then(|| self.documents.cosine(document as usize, probe));
        let example = self.with_examples.binary_search(&document).ok().map(|row| self.examples.cosine(row, probe));
        own.into_iter().chain(example).reduce(f32::max)
    }

    /// How near a document is to the nearest of the probes.
    pub(super) fn exactly(&self, document: u32, probes: &[Probe]) -> f32 {
        let example = self.with_examples.binary_search(&document).ok();
        let near = |probe: &Probe| {
            let own = self.documents.cosine(document as usize, probe);
            example.map_or(own, |row| own.max(self.examples.cosine(row, probe)))
        };
        probes.iter().map(near).fold(f32::MIN, f32::max)
    }
}
