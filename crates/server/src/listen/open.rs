//! The connections that are open: who may have another, and which one goes for it.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::ConnectionLimits;
use super::activity::Activity;

/// The open connections of a server.
#[derive(Debug)]
pub(super) struct Open {
    limits: ConnectionLimits,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    last: u64,
    connections: HashMap<u64, (IpAddr, Arc<Activity>)>,
    by_address: HashMap<IpAddr, usize>,
}

impl Table {
    fn remove(&mut self, id: u64) -> Option<Arc<Activity>> {
        let (address, activity) = self.connections.remove(&id)?;
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
        Some(activity)
    }

    /// Ends the connection that is the smallest loss, of one address or of all. There may be none that can go.
    fn evict(&mut self, of: Option<IpAddr>) -> bool {
        let theirs = self.connections.iter().filter(|(_, (address, _))| of.is_none_or(|of| of == *address));
        let idle = theirs.filter_map(|(id, (_, activity))| Some((activity.loss()?, *id)));
        let Some((_, id)) = idle.min() else { return false };
        // It counts no more from now on; its task closes the socket in a moment.
        if let Some(activity) = self.remove(id) {
            activity.evict();
        }
        true
    }
}

impl Open {
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        Self { limits, table: Mutex::default() }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a connection in, in the place of another where there are too many.
    pub(super) fn admit(self: &Arc<Self>, from: IpAddr) -> Option<Admitted> {
        let from = from.to_canonical();
        let address = network(from);
        let is_proxy = self.limits.proxies.iter().any(|proxy| proxy.contains(&from));
        let mut table = self.table();
        let has_room = |table: &mut Table| {
            let theirs = table.by_address.get(&address).copied().unwrap_or_default();
            let fits = is_proxy || theirs < self.limits.per_address || table.evict(Some(address));
            fits && (table.connections.len() < self.limits.total || table.evict(None))
        };
        if !has_room(&mut table) {
            return None;
        }
        table.last += 1;
        let id = table.last;
        let activity = Arc::new(Activity::new(Instant::now()));
        table.connections.insert(id, (address, activity.clone()));
        *table.by_address.entry(address).or_default() += 1;
        drop(table);
        Some(Admitted { id, activity, open: self.clone() })
    }

    /// Ends one connection, if there is one that can go.
    pub(super) fn make_room(&self) {
        self.table().evict(None);
    }
}

/// Whoever has an IPv6 address has all of its network.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

/// A connection that counts, until it is dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    id: u64,
    activity: Arc<Activity>,
    open: Arc<Open>,
}

impl Admitted {
    pub(super) fn activity(&self) -> Arc<Activity> {
        self.activity.clone()
    }

    pub(super) fn limits(&self) -> &ConnectionLimits {
        &self.open.limits
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.open.table().remove(self.id);
    }
}
