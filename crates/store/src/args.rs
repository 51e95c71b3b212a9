//! Values on their way into a query.

use std::borrow::Cow;

use kernel::{Id, Slug, Timestamp};
use serde_json::Value;
use uuid::Uuid;

use crate::{Row, StoreError};

/// One argument of a query.
#[derive(Clone, Debug)]
pub enum Arg<'a> {
    Uuid(Option<Uuid>),
    Text(Option<Cow<'a, str>>),
    Int(Option<i64>),
    Bool(Option<bool>),
    Bytes(Option<Cow<'a, [u8]>>),
}

impl Arg<'_> {
    /// PostgreSQL cannot hold a NUL in text; SQLite follows, so that both databases keep the same data.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self {
            Self::Text(Some(text)) if text.contains('\0') => Err(StoreError::Nul),
            _ => Ok(()),
        }
    }

    /// How much these values hold, leaving out what is always small.
    pub(crate) fn bytes(values: &[Self]) -> usize {
        let bytes = |value: &Self| match value {
            Self::Text(Some(text)) => text.len(),
            Self::Bytes(Some(bytes)) => bytes.len(),
            _ => 0,
        };
        values.iter().map(bytes).sum()
    }

    /// Whether a row holds this value.
    pub(crate) fn is_in(&self, row: &Row, column: &str) -> bool {
        match self {
            Self::Uuid(value) => row.get::<Option<Uuid>>(column).is_ok_and(|held| held == *value),
            Self::Text(value) => row.get::<Option<String>>(column).is_ok_and(|held| held.as_deref() == value.as_deref()),
            Self::Int(value) => row.get::<Option<i64>>(column).is_ok_and(|held| held == *value),
            Self::Bool(value) => row.get::<Option<bool>>(column).is_ok_and(|held| held == *value),
            Self::Bytes(value) => row.get::<Option<Vec<u8>>>(column).is_ok_and(|held| held.as_deref() == value.as_deref()),
        }
    }

    pub(crate) fn into_owned(self) -> Arg<'static> {
        match self {
            Self::Uuid(value) => Arg::Uuid(value),
            Self::Text(value) => Arg::Text(value.map(|text| Cow::Owned(text.into_owned()))),
            Self::Int(value) => Arg::Int(value),
            Self::Bool(value) => Arg::Bool(value),
            Self::Bytes(value) => Arg::Bytes(value.map(|bytes| Cow::Owned(bytes.into_owned()))),
        }
    }
}

impl<T> From<Id<T>> for Arg<'_> {
    fn from(id: Id<T>) -> Self {
        Self::Uuid(Some(id.uuid()))
    }
}

impl<T> From<Option<Id<T>>> for Arg<'_> {
    fn from(id: Option<Id<T>>) -> Self {
        Self::Uuid(id.map(Id::uuid))
    }
}

impl From<Uuid> for Arg<'_> {
    fn from(uuid: Uuid) -> Self {
        Self::Uuid(Some(uuid))
    }
}

impl From<Option<Uuid>> for Arg<'_> {
    fn from(uuid: Option<Uuid>) -> Self {
        Self::Uuid(uuid)
    }
}

impl<'a> From<&'a str> for Arg<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Some(Cow::Borrowed(text)))
    }
}

impl<'a> From<Option<&'a str>> for Arg<'a> {
    fn from(text: Option<&'a str>) -> Self {
        Self::Text(text.map(Cow::Borrowed))
    }
}

impl From<String> for Arg<'_> {
    fn from(text: String) -> Self {
        Self::Text(Some(Cow::Owned(text)))
    }
}

impl From<Option<String>> for Arg<'_> {
    fn from(text: Option<String>) -> Self {
        Self::Text(text.map(Cow::Owned))
    }
}

impl<'a> From<&'a Slug> for Arg<'a> {
    fn from(slug: &'a Slug) -> Self {
        slug.as_str().into()
    }
}

impl From<&Value> for Arg<'_> {
    fn from(json: &Value) -> Self {
        json.to_string().into()
    }
}

impl From<Option<&Value>> for Arg<'_> {
    fn from(json: Option<&Value>) -> Self {
        json.map(ToString::to_string).into()
    }
}

impl From<i64> for Arg<'_> {
    fn from(number: i64) -> Self {
        Self::Int(Some(number))
    }
}

impl From<Option<i64>> for Arg<'_> {
    fn from(number: Option<i64>) -> Self {
        Self::Int(number)
    }
}

impl From<Timestamp> for Arg<'_> {
    fn from(time: Timestamp) -> Self {
        Self::Int(Some(time.micros()))
    }
}

impl From<Option<Timestamp>> for Arg<'_> {
    fn from(time: Option<Timestamp>) -> Self {
        Self::Int(time.map(Timestamp::micros))
    }
}

impl From<bool> for Arg<'_> {
    fn from(flag: bool) -> Self {
        Self::Bool(Some(flag))
    }
}

impl<'a> From<&'a [u8]> for Arg<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(Some(Cow::Borrowed(bytes)))
    }
}

impl<'a> From<Option<&'a [u8]>> for Arg<'a> {
    fn from(value: Option<&'a [u8]>) -> Self {
        Self::Bytes(value.map(Cow::Borrowed))
    }
}

impl From<Vec<u8>> for Arg<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(Some(Cow::Owned(bytes)))
    }
}

impl From<Option<Vec<u8>>> for Arg<'_> {
    fn from(bytes: Option<Vec<u8>>) -> Self {
        Self::Bytes(bytes.map(Cow::Owned))
    }
}
