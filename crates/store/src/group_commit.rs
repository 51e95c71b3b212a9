//! Group commit: what many callers write shares one commit, and each waits until its own is there.

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;

use crate::{Db, StoreError, Tx};

const QUEUE: usize = 8192;
const BATCH: usize = 256;
/// How many commits may wait for the disk before the next one is made.
const UNFLUSHED: usize = 4;
/// How much one commit writes before others get their turn at the database.
const BATCH_BYTES: usize = 1 << 20;

/// What is written together with others of its kind.
pub trait Grouped: Send + Sync + Sized + 'static {
    /// What a caller hears of it.
    type Outcome: Send + 'static;

    /// Whether it survives a loss of power before its caller hears of it, and not only the end of this process.
    const IS_DURABLE: bool;

    /// How much of it is written.
    fn bytes(&self) -> usize;

    /// Writes all of them as part of one transaction; what became of each.
    fn write<'a>(tx: &'a mut Tx, all: &'a [&'a Self]) -> BoxFuture<'a, Result<Vec<Self::Outcome>, StoreError>>;
}

/// Where such things are handed in. Clones share one writer.
#[derive(Debug)]
pub struct GroupCommit<T: Grouped>(mpsc::Sender<Waiting<T>>);

impl<T: Grouped> Clone for GroupCommit<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

#[derive(Debug)]
struct Waiting<T: Grouped> {
    it: T,
    done: oneshot::Sender<Result<T::Outcome, StoreError>>,
}

/// What a caller hears, once it may.
struct Answer<T: Grouped> {
    outcome: Result<T::Outcome, StoreError>,
    done: oneshot::Sender<Result<T::Outcome, StoreError>>,
}

impl<T: Grouped> Answer<T> {
    /// The same, where the disk took it.
    fn once(self, flushed: &Result<(), StoreError>) -> Self {
        Self { outcome: flushed.as_ref().map_err(StoreError::again).and(self.outcome), ..self }
    }

    fn send(self) {
        // Whoever is gone needs no answer.
        let _ = self.done.send(self.outcome);
    }
}

impl<T: Grouped> GroupCommit<T> {
    pub fn start(db: Db) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        tokio::spawn(write_all(db, receiver));
        Self(sender)
    }

    /// Writes it; when this returns, it is committed.
    pub async fn write(&self, it: T) -> Result<T::Outcome, StoreError> {
        let (done, outcome) = oneshot::channel();
        self.0.send(Waiting { it, done }).await.map_err(|_| StoreError::Closed)?;
        outcome.await.unwrap_or(Err(StoreError::Closed))
    }

    /// The same; None when too much is waiting.
    pub async fn try_write(&self, it: T) -> Option<Result<T::Outcome, StoreError>> {
        let (done, outcome) = oneshot::channel();
        self.0.try_send(Waiting { it, done }).ok()?;
        outcome.await.ok()
    }
}

/// How a batch is filled: where several came together of late, whoever can run now comes first, and what they hand in shares the commit.
/// Somebody alone does not wait for others.
#[derive(Debug, Default)]
pub struct Batching {
    had_several: bool,
}

impl Batching {
    /// Adds what others hand in to what waits already.
    pub async fn fill<T>(&mut self, receiver: &mut mpsc::Receiver<T>, waiting: &mut Vec<T>, most: usize) {
        if waiting.len() > 1 || self.had_several {
            yield_now().await;
            while waiting.len() < most
                && let Ok(more) = receiver.try_recv()
            {
                waiting.push(more);
            }
        }
        self.had_several = waiting.len() > 1;
    }
}

async fn write_all<T: Grouped>(db: Db, mut receiver: mpsc::Receiver<Waiting<T>>) {
    let (committed, to_flush) = mpsc::channel(UNFLUSHED);
    if T::IS_DURABLE {
        tokio::spawn(flush_all(db.clone(), to_flush));
    }
    let (mut waiting, mut batching) = (Vec::with_capacity(BATCH), Batching::default());
    while receiver.recv_many(&mut waiting, BATCH).await > 0 {
        batching.fill(&mut receiver, &mut waiting, BATCH).await;
        while !waiting.is_empty() {
            let batch: Vec<Waiting<T>> = waiting.drain(..fitting(&waiting)).collect();
            let answers = write_batch(&db, batch).await;
            if !T::IS_DURABLE {
                answers.into_iter().for_each(Answer::send);
            } else if committed.send(answers).await.is_err() {
                return;
            }
        }
    }
}

/// Answers those whose commits survive a loss of power now. The next ones are written meanwhile.
async fn flush_all<T: Grouped>(db: Db, mut to_flush: mpsc::Receiver<Vec<Answer<T>>>) {
    let mut committed = Vec::with_capacity(UNFLUSHED);
    while to_flush.recv_many(&mut committed, UNFLUSHED).await > 0 {
        let flushed = db.flush().await;
        committed.drain(..).flatten().for_each(|answer: Answer<T>| answer.once(&flushed).send());
    }
}

/// How many of them one commit writes: at least one.
fn fitting<T: Grouped>(waiting: &[Waiting<T>]) -> usize {
    let mut bytes = 0;
    let fits = waiting.iter().take_while(|waiting| {
        bytes += waiting.it.bytes();
        bytes <= BATCH_BYTES
    });
    fits.count().max(1)
}

async fn write_batch<T: Grouped>(db: &Db, batch: Vec<Waiting<T>>) -> Vec<Answer<T>> {
    let all: Vec<&T> = batch.iter().map(|waiting| &waiting.it).collect();
    match commit(db, &all).await {
        Ok(outcomes) => {
            batch.into_iter().zip(outcomes).map(|(waiting, outcome)| Answer { outcome: Ok(outcome), done: waiting.done }).collect()
        }
        // A database that takes nothing would take as long to say so for each of them.
        Err(error) if batch.len() == 1 || error.trouble().is_some() => {
            batch.into_iter().map(|waiting| Answer { outcome: Err(error.again()), done: waiting.done }).collect()
        }
        Err(error) => {
            tracing::debug!(%error, "what was to be written together failed; writing it one by one");
            let mut answers = Vec::with_capacity(batch.len());
            for Waiting { it, done } in batch {
                let alone = commit(db, &[&it]).await;
                answers.push(Answer { outcome: alone.and_then(|outcomes| outcomes.into_iter().next().ok_or(StoreError::Closed)), done });
            }
            answers
        }
    }
}

async fn commit<T: Grouped>(db: &Db, all: &[&T]) -> Result<Vec<T::Outcome>, StoreError> {
    let mut tx = db.begin().await?;
    let outcomes = T::write(&mut tx, all).await?;
    tx.commit().await?;
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;
    use crate::args;

    /// A note; two of the same text are not taken together.
    struct Note<const IS_DURABLE: bool>(String);

    impl<const IS_DURABLE: bool> Grouped for Note<IS_DURABLE> {
        type Outcome = usize;

        const IS_DURABLE: bool = IS_DURABLE;

        fn bytes(&self) -> usize {
            self.0.len()
        }

        fn write<'a>(tx: &'a mut Tx, all: &'a [&'a Self]) -> BoxFuture<'a, Result<Vec<usize>, StoreError>> {
            Box::pin(async move {
                for note in all {
                    tx.execute("insert into notes (text) values ($1)", args![note.0.as_str()]).await?;
                }
                Ok(vec![all.len(); all.len()])
            })
        }
    }

    async fn check<const IS_DURABLE: bool>() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(&format!("sqlite://{}", dir.path().join("test.db").display())).await.unwrap();
        db.execute("create table notes (text text not null unique)", []).await.unwrap();
        let notes = GroupCommit::start(db.clone());
        let write = |text: &str| notes.write(Note::<IS_DURABLE>(text.to_owned()));
        let all = join_all(["a", "b", "c"].map(write)).await;
        assert_eq!(all.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [3, 3, 3]);
        let (new, again, other) = tokio::join!(write("d"), write("a"), write("e"));
        assert_eq!((new.unwrap(), other.unwrap()), (1, 1));
        assert!(matches!(again, Err(StoreError::Conflict)), "{again:?}");
        assert_eq!(write("alone").await.unwrap(), 1);
        // More than a commit takes, so that several wait for the disk.
        let numbers: Vec<String> = (0..5 * BATCH).map(|number| number.to_string()).collect();
        let all = join_all(numbers.iter().map(|text| write(text))).await;
        assert_eq!(all.into_iter().filter(|written| matches!(written, Ok(1..=BATCH))).count(), numbers.len());
        db.close().await;
        let all = join_all(["f", "g", "h"].map(write)).await;
        assert!(all.iter().all(|written| matches!(written, Err(StoreError::Closed))), "{all:?}");
    }

    #[tokio::test]
    async fn many_share_a_commit_and_one_that_fails_fails_alone() {
        check::<false>().await;
    }

    #[tokio::test]
    async fn those_that_wait_for_the_disk_hear_the_same() {
        check::<true>().await;
    }

    #[test]
    fn all_hear_why_the_disk_took_nothing() {
        let (done, mut heard) = oneshot::channel();
        let answer = Answer::<Note<true>> { outcome: Ok(1), done };
        answer.once(&Err(StoreError::Away("gone".to_owned()))).send();
        let error = heard.try_recv().unwrap().unwrap_err();
        assert_eq!(
            (error.to_string(), error.trouble()),
            ("the database does not answer: gone".to_owned(), Some("does not answer".to_owned()))
        );
    }
}
