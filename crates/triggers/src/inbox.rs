//! The writer: what comes in and what ends is written in batches, so that many share one commit, and each waits until its own is durable.

use store::{Db, StoreError, Tx};
use tokio::sync::{mpsc, oneshot};

use crate::store::{self as rows, Finished, NewDelivery, NewEvent};

const QUEUE: usize = 8192;
const BATCH: usize = 256;
/// How much one commit writes before others get their turn at the database.
const BATCH_BYTES: usize = 1 << 20;

/// An event that came in, with the signature that must not come twice and the delivery it makes, if anybody wants one.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) event: NewEvent,
    pub(crate) signature: Option<String>,
    pub(crate) delivery: Option<NewDelivery>,
}

/// What became of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    New,
    /// The sender sent it again.
    Again,
    /// Somebody sent exactly the same signed request again.
    Replay,
}

#[derive(Debug)]
enum InboxEntry {
    Arrival(Box<Arrival>, oneshot::Sender<Result<Taken, StoreError>>),
    Finished(Box<Finished>, oneshot::Sender<bool>),
}

/// Where arrivals and endings are handed in.
#[derive(Clone, Debug)]
pub(crate) struct Inbox(mpsc::Sender<InboxEntry>);

impl Inbox {
    pub(crate) fn start(db: Db) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        tokio::spawn(write(db, receiver));
        Self(sender)
    }

    /// Takes an event; when this returns, it is durable. None when too much is waiting.
    pub(crate) async fn arrive(&self, arrival: Arrival) -> Option<Result<Taken, StoreError>> {
        let (sender, taken) = oneshot::channel();
        self.0.try_send(InboxEntry::Arrival(Box::new(arrival), sender)).ok()?;
        taken.await.ok()
    }

    /// Ends an attempt; false when its delivery was not ours any more, or it could not be written.
    pub(crate) async fn finish(&self, finished: Finished) -> bool {
        let (sender, written) = oneshot::channel();
        self.0.send(InboxEntry::Finished(Box::new(finished), sender)).await.is_ok() && written.await.unwrap_or(false)
    }
}

async fn write(db: Db, mut receiver: mpsc::Receiver<InboxEntry>) {
    let mut entries = Vec::with_capacity(BATCH);
    while receiver.recv_many(&mut entries, BATCH).await > 0 {
        while !entries.is_empty() {
            let batch: Vec<InboxEntry> = entries.drain(..fitting(&entries)).collect();
            match together(&db, &batch).await {
                Ok(taken) => batch.into_iter().zip(taken).for_each(|(entry, taken)| entry.answer(Ok(taken))),
                Err(error) => {
                    tracing::debug!(%error, "a batch of events failed; writing them one by one");
                    for entry in batch {
                        let taken = together(&db, std::slice::from_ref(&entry)).await;
                        entry.answer(taken.map(|taken| taken.first().copied().unwrap_or(Taken::Again)));
                    }
                }
            }
        }
    }
}

/// How many of the entries one commit writes: at least one.
fn fitting(entries: &[InboxEntry]) -> usize {
    let mut bytes = 0;
    let fits = entries.iter().take_while(|entry| {
        bytes += entry.bytes();
        bytes <= BATCH_BYTES
    });
    fits.count().max(1)
}

async fn together(db: &Db, entries: &[InboxEntry]) -> Result<Vec<Taken>, StoreError> {
    let (mut arrivals, mut finished) = (Vec::new(), Vec::new());
    for (place, entry) in entries.iter().enumerate() {
        match entry {
            InboxEntry::Arrival(arrival, _) => arrivals.push((place, &**arrival)),
            InboxEntry::Finished(done, _) => finished.push((place, &**done)),
        }
    }
    let mut taken = vec![Taken::New; entries.len()];
    let mut tx = db.begin_durable().await?;
    take(&mut tx, arrivals, &mut taken).await?;
    if !finished.is_empty() {
        let (places, done): (Vec<usize>, Vec<&Finished>) = finished.into_iter().unzip();
        sort_out(&mut taken, &places, rows::finish(&mut tx, &done).await?, Taken::Again);
    }
    tx.commit().await?;
    Ok(taken)
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

impl InboxEntry {
    fn bytes(&self) -> usize {
        match self {
            Self::Arrival(arrival, _) => arrival.event.bytes(),
            Self::Finished(finished, _) => finished.data.len(),
        }
    }

    fn answer(self, taken: Result<Taken, StoreError>) {
        match self {
            Self::Arrival(_, sender) => {
                let _ = sender.send(taken);
            }
            Self::Finished(finished, sender) => {
                if let Err(error) = &taken {
                    // Its lease runs out, and it is run again under the same idempotency key.
                    tracing::error!(delivery = %finished.delivery, %error, "the end of a delivery could not be written");
                }
                let _ = sender.send(matches!(taken, Ok(Taken::New)));
            }
        }
    }
}
