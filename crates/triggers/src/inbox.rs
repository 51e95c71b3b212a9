//! The inbox: what comes in and what ends is written together, so that many share one commit, and each waits until its own is durable.

use futures_util::future::BoxFuture;
use store::{Db, GroupCommit, Grouped, StoreError, Tx};

use crate::store::{self as rows, Finished, NewDelivery, NewEvent};

/// An event that came in, with the signature that must not come twice and the delivery it makes, if anybody wants one.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) event: NewEvent,
    pub(crate) signature: Option<String>,
    pub(crate) delivery: Option<NewDelivery>,
}

/// What became of an arrival, or of the end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    New,
    /// The sender sent it again; or the delivery was not ours any more.
    Again,
    /// Somebody sent exactly the same signed request again.
    Replay,
}

#[derive(Debug)]
enum InboxEntry {
    Arrival(Box<Arrival>),
    Finished(Box<Finished>),
}

/// Where arrivals and endings are handed in.
#[derive(Clone, Debug)]
pub(crate) struct Inbox(GroupCommit<InboxEntry>);

impl Inbox {
    pub(crate) fn start(db: Db) -> Self {
        Self(GroupCommit::start(db))
    }

    /// Takes an event; when this returns, it is durable. None when too much is waiting.
    pub(crate) async fn arrive(&self, arrival: Arrival) -> Option<Result<Taken, StoreError>> {
        self.0.try_write(InboxEntry::Arrival(Box::new(arrival))).await
    }

    /// Ends an attempt; false when its delivery was not ours any more, or it could not be written.
    pub(crate) async fn finish(&self, finished: Finished) -> bool {
        let delivery = finished.delivery;
        match self.0.write(InboxEntry::Finished(Box::new(finished))).await {
            Ok(taken) => taken == Taken::New,
            Err(error) => {
                // Its lease runs out, and it is run again under the same idempotency key.
                tracing::error!(%delivery, %error, "the end of a delivery could not be written");
                false
            }
        }
    }
}

impl Grouped for InboxEntry {
    type Outcome = Taken;

    const IS_DURABLE: bool = true;

    fn bytes(&self) -> usize {
        match self {
            Self::Arrival(arrival) => arrival.event.bytes(),
            Self::Finished(finished) => finished.data.len(),
        }
    }

    fn write<'a>(tx: &'a mut Tx, all: &'a [&'a Self]) -> BoxFuture<'a, Result<Vec<Taken>, StoreError>> {
        Box::pin(async move {
            let (mut arrivals, mut finished) = (Vec::new(), Vec::new());
            for (place, entry) in all.iter().enumerate() {
                match entry {
                    Self::Arrival(arrival) => arrivals.push((place, &**arrival)),
                    Self::Finished(done) => finished.push((place, &**done)),
                }
            }
            let mut taken = vec![Taken::New; all.len()];
            take(tx, arrivals, &mut taken).await?;
            if !finished.is_empty() {
                let (places, done): (Vec<usize>, Vec<&Finished>) = finished.into_iter().unzip();
                sort_out(&mut taken, &places, rows::finish(tx, &done).await?, Taken::Again);
            }
            Ok(taken)
        })
    }
}

/// Stores the arrivals, and says in their places what became of them.
async fn take(tx: &mut Tx, mut arrivals: Vec<(usize, &Arrival)>, taken: &mut [Taken]) -> Result<(), StoreError> {
    let signed = arrivals.iter().filter_map(|(place, arrival)| Some((*place, (&arrival.event, arrival.signature.as_deref()?))));
    let (places, signatures): (Vec<usize>, Vec<_>) = signed.unzip();
    if !signatures.is_empty() {
        sort_out(taken, &places, rows::insert_signatures(tx, &signatures).await?, Taken::Replay);
    }
    arrivals.retain(|(place, _)| taken[*place] == Taken::New);
    if arrivals.is_empty() {
        return Ok(());
    }
    let (places, events): (Vec<usize>, Vec<&NewEvent>) = arrivals.iter().map(|(place, arrival)| (*place, &arrival.event)).unzip();
    sort_out(taken, &places, rows::insert_events(tx, &events).await?, Taken::Again);
    arrivals.retain(|(place, _)| taken[*place] == Taken::New);
    let deliveries: Vec<&NewDelivery> = arrivals.iter().filter_map(|(_, arrival)| arrival.delivery.as_ref()).collect();
    if !deliveries.is_empty() {
        rows::insert_deliveries(tx, &deliveries).await?;
    }
    Ok(())
}

/// Says what those are that were not written.
fn sort_out(taken: &mut [Taken], places: &[usize], written: Vec<bool>, otherwise: Taken) {
    for (place, _) in places.iter().zip(written).filter(|(_, written)| !written) {
        taken[*place] = otherwise;
    }
}
