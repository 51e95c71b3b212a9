//! Rows on their way out of a query.

use kernel::{Id, Timestamp};
use serde_json::Value;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
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

macro_rules! native {
    ($($kind:ty),*) => {$(
        impl Column for $kind {
            fn read(row: &Row, name: &str) -> Result<Self, StoreError> {
                Ok(match row {
                    Row::Sqlite(row) => row.try_get(name)?,
                    Row::Postgres(row) => row.try_get(name)?,
                })
            }
        }
    )*};
}

native!(Uuid, Option<Uuid>, String, Option<String>, i64, Option<i64>, bool, Option<bool>, Vec<u8>, Option<Vec<u8>>);

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
