//! One at a time for each key, in this process.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

/// A value per key, shared by all who hold it and gone with the last of them.
#[derive(Debug)]
pub struct Keyed<K, V>(Mutex<HashMap<K, Weak<V>>>);

impl<K, V> Default for Keyed<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V> Keyed<K, V> {
    /// The value of a key, made where nobody holds it.
    pub fn of<Q>(&self, key: &Q, make: impl FnOnce() -> V) -> Arc<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = values.get(key).and_then(Weak::upgrade) {
            return value;
        }
        values.retain(|_, value| value.strong_count() > 0);
        let value = Arc::new(make());
        values.insert(key.to_owned(), Arc::downgrade(&value));
        value
    }
}

/// A lock per key, around a value that lives as long as somebody holds the lock or waits for it.
#[derive(Debug)]
pub struct KeyedLock<K, T = ()>(Keyed<K, tokio::sync::Mutex<T>>);

impl<K, T> Default for KeyedLock<K, T> {
    fn default() -> Self {
        Self(Keyed::default())
    }
}

impl<K: Eq + Hash, T: Default> KeyedLock<K, T> {
    /// Waits for everybody who came before with the same key.
    pub async fn lock<Q>(&self, key: &Q) -> OwnedMutexGuard<T>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        self.0.of(key, Default::default).lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_key_waits_for_itself_alone() {
        let locks = KeyedLock::<String>::default();
        let first = locks.lock("one").now_or_never().unwrap();
        assert!(locks.lock("one").now_or_never().is_none());
        assert!(locks.lock("two").now_or_never().is_some());
        drop(first);
        assert!(locks.lock("one").now_or_never().is_some());
        drop(locks.lock("three").now_or_never());
        assert!(locks.0.0.lock().unwrap().len() <= 1, "nothing is kept of those who are done");
    }
}
