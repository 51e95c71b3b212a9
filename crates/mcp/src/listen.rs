//! Streams that tell of changes. Whoever asks on another node may have changed something, so the list itself is looked at.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use mcp_wire::meta;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::answer::{event, silence};
use crate::{RequestId, Surface};

const QUIET: Duration = Duration::from_secs(15);
/// A client comes back after this long, and its key is looked at again.
const LIFE: Duration = Duration::from_hours(1);

/// How many streams one key may have open; each looks at its list every other second.
const MAX_STREAMS: usize = 16;

/// Who listens, and how often.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listeners(Arc<Mutex<HashMap<Uuid, usize>>>);

impl Listeners {
    /// A place for one more stream of this key, if there is any.
    pub(crate) fn join(&self, caller: Uuid) -> Option<StreamSlot> {
        let mut streams = self.streams();
        let count = streams.entry(caller).or_default();
        (*count < MAX_STREAMS).then(|| {
            *count += 1;
            StreamSlot { listeners: self.clone(), caller }
        })
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<Uuid, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one stream; free again when it is dropped.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    listeners: Listeners,
    caller: Uuid,
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut streams = self.listeners.streams();
        if let Some(count) = streams.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                streams.remove(&self.caller);
            }
        }
    }
}

struct Listening {
    surface: Arc<dyn Surface>,
    subscription: Option<RequestId>,
    seen: Option<u64>,
    first: Option<Bytes>,
    spoke: Instant,
    ends: Instant,
    stopping: CancellationToken,
    _place: StreamSlot,
}

/// Tells of changes of the list of tools, if they are wanted. `subscription` is the request that opened the stream, in revisions that want
/// to hear it again.
pub(crate) async fn changes(
    surface: Arc<dyn Surface>,
    subscription: Option<RequestId>,
    wanted: bool,
    stopping: CancellationToken,
    place: StreamSlot,
) -> BoxStream<'static, Bytes> {
    let seen = if wanted { Some(surface.fingerprint().await.unwrap_or_default()) } else { None };
    let first = match &subscription {
        Some(_) => {
            let kept = if wanted { json!({"toolsListChanged": true}) } else { json!({}) };
            notification("notifications/subscriptions/acknowledged", subscription.as_ref(), json!({"notifications": kept}))
        }
        None => silence(),
    };
    let now = Instant::now();
    let listening = Listening { surface, subscription, seen, first: Some(first), spoke: now, ends: now + LIFE, stopping, _place: place };
    stream::unfold(listening, |mut listening| async move { listening.next().await.map(|event| (event, listening)) }).boxed()
}

impl Listening {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            let now = Instant::now();
            let look = if self.seen.is_some() { now + self.surface.watch_every() } else { now + QUIET };
            tokio::select! {
                () = self.stopping.cancelled() => return None,
                () = sleep_until(look.min(self.ends)) => {}
            }
            if Instant::now() >= self.ends {
                return None;
            }
            // One look that fails says nothing about the list.
            if let Some(seen) = self.seen
                && let Ok(now) = self.surface.fingerprint().await
                && seen != now
            {
                self.seen = Some(now);
                self.spoke = Instant::now();
                return Some(notification("notifications/tools/list_changed", self.subscription.as_ref(), json!({})));
            }
            if self.spoke.elapsed() >= QUIET {
                self.spoke = Instant::now();
                return Some(silence());
            }
        }
    }
}

fn notification(method: &str, subscription: Option<&RequestId>, mut params: Value) -> Bytes {
    if let Some(id) = subscription {
        params["_meta"] = json!({meta::SUBSCRIPTION_ID: id});
    }
    event(&mcp_wire::notification(method, params))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_so_many_streams_and_others_have_theirs() {
        let (listeners, key) = (Listeners::default(), Uuid::new_v4());
        let mut places: Vec<StreamSlot> = std::iter::from_fn(|| listeners.join(key)).collect();
        assert_eq!(places.len(), MAX_STREAMS);
        assert!(listeners.join(Uuid::new_v4()).is_some());
        places.pop();
        assert!(listeners.join(key).is_some());
        drop(places);
        assert!(listeners.streams().is_empty());
    }
}
