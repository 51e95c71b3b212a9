//! Lists that are looked at again and again: what is new goes out line by line.

use std::time::Duration;

use serde_json::Value;

use super::client::{unless_away, until_interrupted};
use super::print::{self, Table};

const LOOK: Duration = Duration::from_secs(1);

/// A list that grows and changes.
pub(super) trait Feed {
    const TABLE: Table<'static>;

    fn cells(row: &Value) -> Vec<String>;

    /// What is shown to begin with, the oldest first.
    async fn begin(&mut self) -> anyhow::Result<Vec<Value>>;

    /// What may be new since, the oldest first.
    async fn look(&mut self) -> anyhow::Result<Vec<Value>>;

    /// Remembers a row; whether it is to be shown.
    fn is_new(&mut self, row: &Value) -> bool;
}

/// Prints what is new until Ctrl-C, or until nobody reads any more.
pub(super) async fn follow<F: Feed>(feed: F, as_json: bool) -> anyhow::Result<()> {
    until_interrupted(print_all(feed, as_json)).await
}

async fn print_all<F: Feed>(mut feed: F, as_json: bool) -> anyhow::Result<()> {
    if !as_json && !print::reaches(&F::TABLE.header()) {
        return Ok(());
    }
    let mut rows = feed.begin().await?;
    loop {
        for row in rows {
            let line = || if as_json { format!("{row}\n") } else { F::TABLE.row(&F::cells(&row)) };
            if feed.is_new(&row) && !print::reaches(&line()) {
                return Ok(());
            }
        }
        tokio::time::sleep(LOOK).await;
        rows = unless_away(feed.look().await)?;
    }
}
