//! Rows on their way out of a query.

use std::sync::Arc;

use kernel::{Id, Timestamp};
use rusqlite::types::Value as SqliteValue;
use serde_json::Value;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::StoreError;

/// A row of either database.
pub enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Row")
    }
}

impl Row {
    /// The value of a column.
    pub fn get<T: Column>(&self, name: &str) -> Result<T, StoreError> {
        T::read(self, name)
    }
}

/// A type that can be read from a column.
pub trait Column: Sized {
    fn read(row: &Row, name: &str) -> Result<Self, StoreError>;
}

/// A row of SQLite, with what the rows of one query share.
#[derive(Debug)]
pub struct SqliteRow {
    pub(crate) columns: Arc<[Box<str>]>,
    pub(crate) values: Box<[SqliteValue]>,
}

impl SqliteRow {
    fn value(&self, name: &str) -> Option<&SqliteValue> {
        self.values.get(self.columns.iter().position(|column| **column == *name)?)
    }
}

/// Both databases hold these types; SQLite has numbers for flags and bytes for ids.
macro_rules! native {
    ($($kind:ty: $held:pat => $read:expr),* $(,)?) => {$(
        impl Column for $kind {
            fn read(row: &Row, name: &str) -> Result<Self, StoreError> {
                Option::<$kind>::read(row, name)?.ok_or_else(|| StoreError::Column(name.to_owned()))
            }
        }

        impl Column for Option<$kind> {
            fn read(row: &Row, name: &str) -> Result<Self, StoreError> {
                match row {
                    Row::Sqlite(row) => match row.value(name) {
                        Some(SqliteValue::Null) => Some(None),
                        Some($held) => $read.map(Some),
                        _ => None,
                    }
                    .ok_or_else(|| StoreError::Column(name.to_owned())),
                    Row::Postgres(row) => Ok(row.try_get(name)?),
                }
            }
        }
    )*};
}

native! {
    Uuid: SqliteValue::Blob(bytes) => Uuid::from_slice(bytes).ok(),
    String: SqliteValue::Text(text) => Some(text.clone()),
    i64: SqliteValue::Integer(number) => Some(*number),
    bool: SqliteValue::Integer(number) => Some(*number != 0),
    Vec<u8>: SqliteValue::Blob(bytes) => Some(bytes.clone()),
}

impl<T> Column for Id<T> {
    fn read(row: &Row, name: &str) -> Result<Self, StoreError> {
        Uuid::read(row, name).map(Self::from)
    }
}

impl<T> Column for Option<Id<T>> {
    fn read(row: &Row, name: &str) -> Result<Self, StoreError> {
        Ok(Option::<Uuid>::read(row, name)?.map(Id::from))
    }
}

impl Column for Timestamp {
    fn read(row: &Row, name: &str) -> Result<Self, StoreError> {
        i64::read(row, name).map(Self::from_micros)
    }
}

impl Column for Option<Timestamp> {
    fn read(row: &Row, name: &str) -> Result<Self, StoreError> {
        Ok(Option::<i64>::read(row, name)?.map(Timestamp::from_micros))
    }
}

impl Column for Value {
    fn read(row: &Row, name: &str) -> Result<Self, StoreError> {
        serde_json::from_str(&String::read(row, name)?).map_err(|_| StoreError::Column(name.to_owned()))
    }
}

impl Column for Option<Value> {
    fn read(row: &Row, name: &str) -> Result<Self, StoreError> {
        let text = Option::<String>::read(row, name)?;
        text.map(|text| serde_json::from_str(&text).map_err(|_| StoreError::Column(name.to_owned()))).transpose()
    }
}
