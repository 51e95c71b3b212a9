//! Finding the right action or event for a sentence.
//!
//! Knows only plain documents: no HTTP, no database, no model. Ranking is a pure function of the indexes,
//! the use case and, where there is one, its vector.

pub mod apps;
mod confidence;
pub mod dense;
pub mod document;
pub mod events;
mod habits;
pub mod index;
mod meanings;
mod operations;
mod phrases;
mod popular;
mod query;
mod rank;
mod score;
mod shard;
mod stem;
mod synonyms;
mod tokens;
pub mod verbs;
mod view;
pub mod weights;

pub use confidence::AnswerFeatures;
pub use dense::{Embedder, RemoteCounts, RemoteEmbedder, Vectors};
pub use document::{Document, Integration, Kind};
pub use index::Index;
pub use operations::usage_of;
pub use rank::{Answer, Hit, Options, Reasons, relevance, search};
pub use weights::Weights;
