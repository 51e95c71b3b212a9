//! What was read a moment ago: bounded, forgotten at once when its tables are written on this node, and within a second when others write.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;

use crate::Db;

/// How long another node may still go by what was changed here.
const MEMORY: Duration = Duration::from_secs(1);

/// Values by key, for lookups that every call or event makes.
#[derive(Debug)]
pub struct Remembered<K: Eq + Hash, V: Clone> {
    known: Cache<K, Known<V>>,
    changes: Arc<Changes>,
    tables: u64,
}

#[derive(Clone, Debug)]
struct Known<V> {
    value: V,
    change: u64,
    since: Instant,
}

impl<K: Eq + Hash, V: Clone> Remembered<K, V> {
    /// Remembers so many values that are read from these tables. Whatever is deleted with its project goes with `projects`.
    pub fn new(db: &Db, tables: &[&'static str], capacity: usize) -> Self {
        Self { known: Cache::new(capacity), changes: db.changes().clone(), tables: Changes::tables(tables) }
    }

    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let known = self.known.get(key)?;
        if known.change == self.changes.of(self.tables) && known.since.elapsed() < MEMORY {
            return Some(known.value);
        }
        // What is old may hold a credential that was taken back.
        self.known.remove(key);
        None
    }

    /// The value that is remembered, or the one that is read now.
    pub async fn or_read<E, F: Future<Output = Result<V, E>>>(&self, key: K, read: impl FnOnce() -> F) -> Result<V, E> {
        self.or_read_any(key, read, |_| true).await
    }

    /// The same for values of which not all are worth their room.
    pub async fn or_read_any<E, F: Future<Output = Result<V, E>>>(
        &self,
        key: K,
        read: impl FnOnce() -> F,
        is_kept: impl FnOnce(&V) -> bool,
    ) -> Result<V, E> {
        if let Some(value) = self.get(&key) {
            return Ok(value);
        }
        // Before it is read: a change that comes meanwhile makes it old at once.
        let (change, since) = (self.changes.of(self.tables), Instant::now());
        // On the heap: a value that is remembered needs no room for the reading.
        let value = Box::pin(read()).await?;
        if is_kept(&value) {
            self.known.insert(key, Known { value: value.clone(), change, since });
        }
        Ok(value)
    }

    /// The same for what may not be there; that it is not is not remembered.
    pub async fn or_find<E, F: Future<Output = Result<Option<V>, E>>>(&self, key: K, find: impl FnOnce() -> F) -> Result<Option<V>, E> {
        let found = self.or_read(key, || async { find().await.map_err(Some)?.ok_or(None) }).await;
        found.map_or_else(|error| error.map_or(Ok(None), Err), |value| Ok(Some(value)))
    }

    pub fn forget_all(&self) {
        self.known.clear();
    }
}

/// Counts the writes of this process to each table that somebody remembers.
#[derive(Debug, Default)]
pub(crate) struct Changes([AtomicU64; TABLES.len()]);

/// Tables that are remembered.
const TABLES: [&str; 16] = [
    "gateway_connections",
    "trigger_subscriptions",
    "trigger_schedules",
    "tool_policies",
    "call_keeping",
    "api_keys",
    "members",
    "oauth_grants",
    "artifacts",
    "variants",
    "revisions",
    "end_user_names",
    "auth_configs",
    "project_user_limits",
    "users",
    "projects",
];

impl Changes {
    /// These tables, and those whose rows take others with them.
    fn tables(names: &[&'static str]) -> u64 {
        names.iter().chain(&["users", "projects"]).fold(0, |tables, name| {
            let place = TABLES.iter().position(|table| table == name);
            debug_assert!(place.is_some(), "`{name}` is not counted");
            tables | place.map_or(0, |place| 1 << place)
        })
    }

    /// The tables that a statement may write.
    pub(crate) fn written(sql: &str) -> u64 {
        if sql.starts_with("select") {
            return 0;
        }
        TABLES.iter().enumerate().filter(|(_, table)| sql.contains(**table)).fold(0, |tables, (place, _)| tables | 1 << place)
    }

    pub(crate) fn note(&self, tables: u64) {
        for (place, count) in self.0.iter().enumerate() {
            if tables & (1 << place) != 0 {
                count.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// A number that grows with every write to one of the tables.
    fn of(&self, tables: u64) -> u64 {
        self.0.iter().enumerate().filter(|(place, _)| tables & (1 << place) != 0).map(|(_, count)| count.load(Ordering::Acquire)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StoreError, args};

    #[tokio::test]
    async fn a_write_makes_what_was_read_old() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(&format!("sqlite://{}", dir.path().join("test.db").display())).await.unwrap();
        db.migrate().await.unwrap();
        let policies = Remembered::<&str, i64>::new(&db, &["tool_policies"], 10);
        let read = || async {
            let row = db.optional("select count(*) as found from tool_policies", []).await?;
            row.map_or(Ok::<_, StoreError>(0), |row| row.get("found"))
        };
        let found = async || policies.or_read("a", read).await.unwrap();
        assert_eq!((found().await, policies.get("a")), (0, Some(0)));
        db.execute("delete from settings where name = $1", args!["x"]).await.unwrap();
        assert_eq!(policies.get("a"), Some(0), "another table");
        let mut tx = db.begin().await.unwrap();
        tx.execute("delete from tool_policies where plan = $1", args!["x"]).await.unwrap();
        assert_eq!(policies.get("a"), Some(0), "not committed");
        tx.commit().await.unwrap();
        assert_eq!(policies.get("a"), None);
        assert_eq!(found().await, 0);
        db.execute("delete from projects where slug = $1", args!["x"]).await.unwrap();
        assert_eq!(policies.get("a"), None, "what is in a project goes with it");
    }

    #[tokio::test]
    async fn what_changes_while_it_is_read_is_not_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(&format!("sqlite://{}", dir.path().join("test.db").display())).await.unwrap();
        db.migrate().await.unwrap();
        let policies = Remembered::<&str, i64>::new(&db, &["tool_policies"], 10);
        let read = || async {
            db.execute("delete from tool_policies where plan = $1", args!["x"]).await?;
            Ok::<_, StoreError>(1)
        };
        assert_eq!(policies.or_read("a", read).await.unwrap(), 1);
        assert_eq!(policies.get("a"), None);
    }
}
