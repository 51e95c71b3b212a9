//! The writer: what comes in and what ends is written in batches, so that many share one commit, and each waits until its own is durable.

use store::{Db, StoreError, Tx};
use tokio::sync::{mpsc, oneshot};

use crate::model::EventRow;
use crate::store::{self as rows, Finished, NewDelivery};

const QUEUE: usize = 8192;
const BATCH: usize = 256;

/// An event that came in, with the signature that must not come twice and the delivery it makes, if anybody wants one.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) event: EventRow,
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
enum Entry {
    Arrival(Box<Arrival>, oneshot::Sender<Result<Taken, StoreError>>),
    Finished(Box<Finished>, oneshot::Sender<bool>),
}

/// Where arrivals and endings are handed in.
#[derive(Clone, Debug)]
pub(crate) struct Inbox(mpsc::Sender<Entry>);

impl Inbox {
    pub(crate) fn start(db: Db) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        tokio::spawn(write(db, receiver));
        Self(sender)
    }

    /// Takes an event; when this returns, it is durable. None when too much is waiting.
    pub(crate) async fn arrive(&self, arrival: Arrival) -> Option<Result<Taken, StoreError>> {
        let (sender, taken) = oneshot::channel();
        self.0.try_send(Entry::Arrival(Box::new(arrival), sender)).ok()?;
        taken.await.ok()
    }

    /// Ends an attempt; false when its delivery was not ours any more, or it could not be written.
    pub(crate) async fn finish(&self, finished: Finished) -> bool {
        let (sender, written) = oneshot::channel();
        self.0.send(Entry::Finished(Box::new(finished), sender)).await.is_ok() && written.await.unwrap_or(false)
    }
}

async fn write(db: Db, mut receiver: mpsc::Receiver<Entry>) {
    let mut entries = Vec::with_capacity(BATCH);
    while receiver.recv_many(&mut entries, BATCH).await > 0 {
        match together(&db, &entries).await {
            Ok(taken) => entries.drain(..).zip(taken).for_each(|(entry, taken)| entry.answer(Ok(taken))),
            Err(error) => {
                tracing::debug!(%error, "a batch of events failed; writing them one by one");
                for entry in entries.drain(..) {
                    let taken = together(&db, std::slice::from_ref(&entry)).await;
                    entry.answer(taken.map(|taken| taken.first().copied().unwrap_or(Taken::Again)));
                }
            }
        }
    }
}

async fn together(db: &Db, entries: &[Entry]) -> Result<Vec<Taken>, StoreError> {
    let mut tx = db.begin_durable().await?;
    let mut taken = Vec::with_capacity(entries.len());
    for entry in entries {
        taken.push(match entry {
            Entry::Arrival(arrival, _) => take(&mut tx, arrival).await?,
            Entry::Finished(finished, _) if rows::finish(&mut tx, finished).await? => Taken::New,
            Entry::Finished(..) => Taken::Again,
        });
    }
    tx.commit().await?;
    Ok(taken)
}

async fn take(tx: &mut Tx, arrival: &Arrival) -> Result<Taken, StoreError> {
    if let Some(signature) = &arrival.signature
        && !rows::insert_signature(tx, &arrival.event, signature).await?
    {
        return Ok(Taken::Replay);
    }
    if !rows::insert_event(tx, &arrival.event).await? {
        return Ok(Taken::Again);
    }
    if let Some(delivery) = &arrival.delivery {
        rows::insert_delivery(tx, delivery).await?;
    }
    Ok(Taken::New)
}

impl Entry {
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
