//! The numbers of the ranking, chosen by measurement over all sets of the benchmark.

use super::index::FIELDS;

/// How much each piece of evidence counts.
#[derive(Debug, Clone)]
pub struct Weights {
    /// BM25F: integration, name, description, parameters, about the integration, example use cases.
    pub fields: [f32; FIELDS],
    pub k1: f32,
    pub b: f32,
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
    pub event: f32,
    pub prior: f32,
    pub destructive: f32,
}

impl Weights {
    /// With a sentence model.
    pub fn hybrid() -> Self {
        Self {
            fields: [2.0, 2.0, 1.0, 0.8, 0.3, 1.0],
            k1: 0.6,
            b: 0.5,
            same: 0.4,
            hint: 0.7,
            lexical: 0.5,
            dense: 0.65,
            example: 0.5,
            example_variant: 1.0,
            name_cover: 0.04,
            app: 0.25,
            verb: 0.1,
            wrong_verb: 0.1,
            event: 0.14,
            prior: 0.25,
            destructive: 0.06,
        }
    }

    /// Words only.
    pub fn lexical() -> Self {
        Self {
            fields: [2.0, 3.0, 1.0, 1.0, 0.4, 1.0],
            k1: 0.8,
            b: 0.6,
            same: 0.35,
            lexical: 1.0,
            dense: 0.0,
            name_cover: 0.1,
            app: 0.38,
            verb: 0.2,
            wrong_verb: 0.12,
            event: 0.28,
            prior: 0.35,
            destructive: 0.12,
            ..Self::hybrid()
        }
    }
}
