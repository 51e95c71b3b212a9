//! A handle to what many hold together.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};

/// What is behind a handle.
trait Held<T>: Send + Sync {
    fn held(&self) -> &T;
}

impl<T: Send + Sync> Held<T> for T {
    fn held(&self) -> &T {
        self
    }
}

/// An `Arc` whose type says that it may go to other threads. The compiler looks through an `Arc` for that, at all that it leads to, again
/// for every future that holds one; for the domains, which hold each other, that was most of the time it took to build the server.
pub struct Shared<T: 'static>(Arc<dyn Held<T>>);

/// The same without keeping it alive.
pub struct WeakShared<T: 'static>(Weak<dyn Held<T>>);

impl<T: Send + Sync> Shared<T> {
    pub fn new(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T> Shared<T> {
    pub fn downgrade(&self) -> WeakShared<T> {
        WeakShared(Arc::downgrade(&self.0))
    }
}

impl<T> WeakShared<T> {
    pub fn upgrade(&self) -> Option<Shared<T>> {
        self.0.upgrade().map(Shared)
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        (*self.0).held()
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> fmt::Debug for WeakShared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakShared")
    }
}
