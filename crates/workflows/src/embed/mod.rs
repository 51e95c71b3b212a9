//! `@ag.embed`: a configuration that borrows parts of other workflows and environments.
//!
//! An embed is written as an object, as a token inside a string, or as a `@{{...}}` snippet inside a string;
//! `parse` reads all three into the same value, `select` takes the wanted part out of what was fetched,
//! and `resolve` puts it in place.

mod parse;
mod resolve;
mod select;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Family;

pub use parse::contains_embed;
pub use resolve::resolve;

/// How much one resolution may expand; zero means no embed at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EmbedLimits {
    /// The longest chain of embeds inside embeds.
    pub max_depth: usize,
    /// The most embeds expanded in the whole value.
    pub max_embeds: usize,
}

impl Default for EmbedLimits {
    fn default() -> Self {
        Self { max_depth: 10, max_embeds: 100 }
    }
}

/// What becomes of an embed that cannot be resolved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorPolicy {
    /// The whole resolution fails.
    #[default]
    Exception,
    /// The embed is replaced by `<error:code>`, the rest stands.
    Placeholder,
    /// The embed stays as it was written.
    Keep,
}

/// How precisely a reference names an entity; later is deeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The entity itself: the newest revision of its default variant.
    Artifact,
    /// One variant: its newest revision.
    Variant,
    /// One revision.
    Revision,
}

impl Level {
    /// What follows the family's name in a reference; an artifact is written bare.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Artifact => "",
            Self::Variant => "_variant",
            Self::Revision => "_revision",
        }
    }
}

/// What is known of one entity; at least one field is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The entity's id.
    pub id: Option<String>,
    /// The entity's slug.
    pub slug: Option<String>,
    /// The entity's version.
    pub version: Option<String>,
}

/// Which of an entity's own references to follow before its data is read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// None: the entity's own data is meant.
    Own,
    /// The only one there is; it is an error when there are none or several.
    Only,
    /// The one under this key.
    Named(String),
}

/// Whose data an embed wants: equal values are fetched once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EmbedRef {
    /// The family that every reference of the embed belongs to.
    pub family: Family,
    /// The deepest level named, which decides what is fetched.
    pub level: Level,
    /// The references by level, never empty.
    pub refs: BTreeMap<Level, Reference>,
    /// The reference to follow from there.
    pub key: Key,
}

impl EmbedRef {
    /// Each entity that it names, with what is known of it.
    pub fn entities(&self) -> Map<String, Value> {
        let known = |reference: &Reference| {
            let fields = [("id", &reference.id), ("slug", &reference.slug), ("version", &reference.version)];
            fields.into_iter().filter_map(|(field, value)| Some((field.to_owned(), Value::from(value.clone()?)))).collect()
        };
        let named = |level: &Level| format!("{}{}", self.family.name(), level.suffix());
        self.refs.iter().map(|(level, reference)| (named(level), Value::Object(known(reference)))).collect()
    }
}

impl fmt::Display for EmbedRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (level, reference) in &self.refs {
            for (field, value) in [("id", &reference.id), ("slug", &reference.slug), ("version", &reference.version)] {
                if let Some(value) = value {
                    write!(f, "{separator}{}{}.{field}={value}", self.family.name(), level.suffix())?;
                    separator = ", ";
                }
            }
        }
        match &self.key {
            Key::Named(key) => write!(f, "{separator}key={key}"),
            Key::Own | Key::Only => Ok(()),
        }
    }
}

/// Where the data of an embed comes from.
pub trait Fetch: Send + Sync {
    /// Returns the revision data that the reference names, with its key followed, or `None` when there is none.
    fn fetch<'a>(&'a self, embed: &'a EmbedRef) -> BoxFuture<'a, Result<Option<Value>, String>>;
}

/// A value whose embeds are in place.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The value.
    pub value: Value,
    /// How many embeds were put in place.
    pub count: usize,
    /// The longest chain of embeds among them.
    pub depth: usize,
    /// What each of them refers to, in the order in which they were put in place.
    pub references: Vec<EmbedRef>,
    /// Those that failed and were left to the policy.
    pub errors: Vec<EmbedError>,
}

/// Why an embed could not be resolved; `place` is the JSON Pointer of the embed in the resolved value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// What is referred to is not there, or has no data.
    #[error("the embed at `{place}` refers to `{reference}`, which does not exist or has no data")]
    NotFound { place: String, reference: String },
    /// The embed is part of what it embeds.
    #[error("the embed at `{place}` refers to `{reference}`, which embeds itself")]
    Circular { place: String, reference: String },
    /// The embed lies inside more embeds, or more levels of data, than allowed.
    #[error("the embed at `{place}` is nested too deep; the limit is {limit}")]
    TooDeep { place: String, limit: usize },
    /// There are more embeds than allowed.
    #[error("the embed at `{place}` is one more than the {limit} embeds allowed")]
    TooMany { place: String, limit: usize },
    /// What is embedded is more than allowed, all of it together.
    #[error("the embed at `{place}` makes the value larger than {limit} bytes")]
    TooLarge { place: String, limit: usize },
    /// The selector's path does not lead to a value.
    #[error("the embed at `{place}` selects `{path}`: {reason}")]
    Path { place: String, path: String, reason: String },
    /// The embed does not say what it wants in a way that can be read.
    #[error("the embed at `{place}` is malformed: {reason}")]
    Malformed { place: String, reason: String },
    /// The references of the embed belong to different families.
    #[error("the embed at `{place}` mixes references of different families; name entities of one family only")]
    Mixed { place: String },
    /// The whole configuration is an embed.
    #[error("the configuration itself is an embed; put the embed under a key")]
    Root,
    /// The data could not be fetched.
    #[error("the embed at `{place}` could not be fetched: {message}")]
    Fetch { place: String, message: String },
}

impl EmbedError {
    /// A name for the failure that stays the same across releases.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "embed_not_found",
            Self::Circular { .. } => "embed_circular",
            Self::TooDeep { .. } => "embed_too_deep",
            Self::TooMany { .. } => "embed_too_many",
            Self::TooLarge { .. } => "embed_too_large",
            Self::Path { .. } => "embed_path",
            Self::Malformed { .. } => "embed_malformed",
            Self::Mixed { .. } => "embed_mixed_families",
            Self::Root => "embed_root",
            Self::Fetch { .. } => "embed_fetch",
        }
    }

    /// The JSON Pointer of the embed that failed; empty for the root.
    pub fn place(&self) -> &str {
        match self {
            Self::NotFound { place, .. }
            | Self::Circular { place, .. }
            | Self::TooDeep { place, .. }
            | Self::TooMany { place, .. }
            | Self::TooLarge { place, .. }
            | Self::Path { place, .. }
            | Self::Malformed { place, .. }
            | Self::Mixed { place }
            | Self::Fetch { place, .. } => place,
            Self::Root => "",
        }
    }
}
