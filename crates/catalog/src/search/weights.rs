//! The numbers of the ranking, chosen by measurement over all sets of the benchmark.

/// The fields of a document: integration, name, description, parameters, about the integration, example use cases, and what is said of
/// its parameters.
pub(super) const FIELDS: usize = 7;
pub(super) const NAME: usize = 1;
pub(super) const EXAMPLES: usize = 5;

/// How much a word says that stands in a field: BM25 over fields. The lengths are typical ones, so that every index weighs alike.
#[derive(Debug, Clone)]
pub(super) struct Fields {
    weights: [f32; FIELDS],
    lengths: [f32; FIELDS],
    k1: f32,
    b: f32,
}

impl Default for Fields {
    fn default() -> Self {
        Self { weights: [2.0, 2.2, 1.0, 0.8, 0.3, 1.0, 0.5], lengths: [3.0, 4.0, 9.0, 5.0, 10.0, 20.0, 10.0], k1: 0.65, b: 0.65 }
    }
}

impl Fields {
    /// The share of a full match that a word has that was found in these fields.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the share is between 0 and 1")]
    #[expect(clippy::cast_precision_loss, reason = "a count of words")]
    pub(super) fn weigh(&self, found: impl Iterator<Item = usize>, lengths: &[u32; FIELDS]) -> u16 {
        let sum: f32 = found
            .map(|field| {
                let relative = lengths[field] as f32 / self.lengths[field];
                self.weights[field] / (1.0 - self.b + self.b * relative)
            })
            .sum();
        (sum / (self.k1 + sum) * f32::from(u16::MAX)).round() as u16
    }
}

/// How much each piece of evidence counts.
#[derive(Debug, Clone)]
pub struct Weights {
    /// A word found through another word for the same thing, or through a hint.
    pub same: f32,
    pub hint: f32,
    pub lexical: f32,
    pub dense: f32,
    pub example: f32,
    /// How much of a related word's weight counts in an example.
    pub example_variant: f32,
    pub name_cover: f32,
    pub app: f32,
    pub verb: f32,
    pub wrong_verb: f32,
    /// What a change loses where nothing is to be changed.
    pub change: f32,
    pub event: f32,
    /// How likely the app is, and how likely the operation among those of its app.
    pub prior: f32,
    pub usage: f32,
    pub destructive: f32,
    /// How much of what speaks for the best of an app speaks for all of it, where a use case is long.
    pub same_app: f32,
    /// What holds less than this share of a short use case's words is not held against the best that there is, but against this.
    pub enough: f32,
}

impl Weights {
    /// With a sentence model.
    pub fn hybrid() -> Self {
        Self {
            same: 0.5,
            hint: 0.7,
            lexical: 0.58,
            dense: 0.6,
            example: 0.5,
            example_variant: 1.0,
            name_cover: 0.08,
            app: 0.5,
            verb: 0.07,
            wrong_verb: 0.09,
            change: 0.1,
            event: 0.17,
            prior: 0.4,
            usage: 0.2,
            destructive: 0.06,
            same_app: 0.6,
            enough: 0.4,
        }
    }

    /// Words only.
    pub fn lexical() -> Self {
        Self {
            same: 0.35,
            lexical: 1.0,
            dense: 0.0,
            name_cover: 0.1,
            app: 0.38,
            verb: 0.2,
            wrong_verb: 0.12,
            event: 0.28,
            prior: 0.35,
            usage: 0.3,
            destructive: 0.12,
            enough: 0.25,
            ..Self::hybrid()
        }
    }
}
