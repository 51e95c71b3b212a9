//! The writer: intentions and ends are written in batches, so that many calls share one commit.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kernel::{CallId, Clock, Timestamp};
use store::{Arg, Batching, Db, Many, StoreError, args, row};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::{AuditSettings, CallRecord, Outcome, stats};

const QUEUE: usize = 4096;
const BATCH: usize = 1024;
const MAX_MESSAGE: usize = 500;
/// How long an end waits for others to share its commit. A commit at once would compete with the answer on its way out.
const LINGER: Duration = Duration::from_millis(20);
/// How many ends are kept while the database takes none, and how soon they are tried again.
const MAX_UNWRITTEN: usize = 10_000;
const AGAIN: Duration = Duration::from_secs(1);

/// What becomes of the row of a call whose intention was written.
const END: &str = "on conflict (project_id, id) do update set connection_id = excluded.connection_id, outcome = excluded.outcome, \
                   message = excluded.message, duration_us = excluded.duration_us, node_id = null, approval_us = excluded.approval_us, \
                   queue_us = excluded.queue_us, renewal_us = excluded.renewal_us, upstream_us = excluded.upstream_us, \
                   repeats_id = excluded.repeats_id, approval_id = excluded.approval_id, stat_bin = excluded.stat_bin";

impl CallRecord {
    fn row(&self, node: Option<Uuid>) -> [(&'static str, Arg<'_>); 24] {
        let message = self.message.as_ref().map(|text| text.chars().filter(|c| *c != '\0').take(MAX_MESSAGE).collect::<String>());
        let micros = |took: Duration| i64::try_from(took.as_micros()).unwrap_or(i64::MAX);
        row! {
            project_id: self.project,
            id: self.id,
            key_id: self.key,
            user_id: self.user,
            call_ref: self.call_ref.as_str(),
            connection_id: self.connection,
            outcome: self.outcome.name(),
            message: message,
            duration_us: micros(self.duration),
            created_at: self.created_at,
            tool: self.tool.as_deref(),
            agent_id: self.origin.agent,
            run_id: self.origin.run,
            step: self.origin.step.as_deref(),
            delivery_id: self.origin.delivery,
            node_id: node,
            approval_us: self.timings.approval.map(micros),
            queue_us: self.timings.queue.map(micros),
            renewal_us: self.timings.renewal.map(micros),
            upstream_us: self.timings.upstream.map(micros),
            repeats_id: self.repeats,
            end_user_id: self.end_user,
            approval_id: self.approval,
            stat_bin: stats::bin_of(self.outcome, self.duration),
        }
    }
}

/// A call that wants to go out, and who waits for its row.
#[derive(Debug)]
struct Intention {
    record: Box<CallRecord>,
    written: oneshot::Sender<Result<(), Arc<StoreError>>>,
}

/// What the writer is told, in order.
#[derive(Debug)]
enum Entry {
    Intention(Intention),
    End(Box<CallRecord>),
    /// Everything before this is written, or was tried.
    Barrier(oneshot::Sender<()>),
}

/// Where calls are recorded. A call is answered without waiting for its end to be written, which follows within a moment; whoever reads the
/// record, and whoever stops the server, waits for the rows that are on their way.
#[derive(Clone, Debug)]
pub(crate) struct Audit {
    pub(crate) settings: AuditSettings,
    /// This process, as the owner of calls under way.
    pub(super) node: Uuid,
    queue: mpsc::Sender<Entry>,
    counts: Arc<[AtomicU64; Outcome::ALL.len()]>,
    unwritten: Arc<AtomicU64>,
}

impl Audit {
    pub(crate) fn start(db: Db, clock: Clock, settings: AuditSettings) -> Self {
        let (queue, receiver) = mpsc::channel(QUEUE);
        let (node, unwritten) = (Uuid::now_v7(), Arc::<AtomicU64>::default());
        let (open, ends, alive_until) = (HashSet::new(), Vec::new(), Timestamp::from_micros(0));
        let (due, is_failing, counted) = (None, false, unwritten.clone());
        tokio::spawn(Writer { db, clock, settings, node, open, alive_until, ends, due, is_failing, unwritten: counted }.run(receiver));
        Self { settings, node, queue, counts: Arc::default(), unwritten }
    }

    /// How many calls of this process ended how.
    pub(crate) fn counts(&self) -> [(Outcome, u64); Outcome::ENDS.len()] {
        Outcome::ENDS.map(|outcome| (outcome, self.counts[outcome as usize].load(Ordering::Relaxed)))
    }

    /// How many ended calls the database did not take yet.
    pub(crate) fn unwritten(&self) -> u64 {
        self.unwritten.load(Ordering::Relaxed)
    }

    pub(super) fn count(&self, outcome: Outcome, calls: u64) {
        self.counts[outcome as usize].fetch_add(calls, Ordering::Relaxed);
    }

    /// Writes down a call before it goes out; when this returns, its row is there.
    pub(crate) async fn intend(&self, record: CallRecord) -> Result<(), Arc<StoreError>> {
        let (written, answer) = oneshot::channel();
        let entry = Entry::Intention(Intention { record: Box::new(record), written });
        self.queue.send(entry).await.map_err(|_| Arc::new(StoreError::Closed))?;
        answer.await.unwrap_or_else(|_| Err(Arc::new(StoreError::Closed)))
    }

    /// A place for one end; when the writer cannot keep up, calls wait here.
    pub(crate) async fn slot(&self) -> Option<AuditSlot<'_>> {
        let permit = self.queue.reserve().await.inspect_err(|_| tracing::error!("a call could not be recorded: the writer is gone"));
        permit.ok().map(|permit| AuditSlot { audit: self, permit })
    }

    /// Hands a call to the writer without waiting, for calls that are dropped in the middle.
    pub(crate) fn record_now(&self, record: CallRecord) {
        let id = record.id;
        self.count(record.outcome, 1);
        if self.queue.try_send(Entry::End(Box::new(record))).is_err() {
            tracing::error!(call = %id, "a call could not be recorded: the writer is behind or gone");
        }
    }

    /// Waits until everything recorded so far is written.
    pub(crate) async fn settled(&self) {
        let (done, written) = oneshot::channel();
        if self.queue.send(Entry::Barrier(done)).await.is_ok() {
            let _ = written.await;
        }
    }
}

/// A place in the writer's queue.
pub(crate) struct AuditSlot<'a> {
    audit: &'a Audit,
    permit: mpsc::Permit<'a, Entry>,
}

impl AuditSlot<'_> {
    pub(crate) fn record(self, record: CallRecord) {
        self.audit.count(record.outcome, 1);
        self.permit.send(Entry::End(Box::new(record)));
    }
}

struct Writer {
    db: Db,
    clock: Clock,
    settings: AuditSettings,
    node: Uuid,
    /// Calls whose intention is written and whose end is not.
    open: HashSet<CallId>,
    /// What other nodes read about this one.
    alive_until: Timestamp,
    /// What ended and is not written yet, and when it is to be.
    ends: Vec<CallRecord>,
    due: Option<Instant>,
    /// Whether the database took none the last time.
    is_failing: bool,
    /// How many ends wait because of that.
    unwritten: Arc<AtomicU64>,
}

impl Writer {
    async fn run(mut self, mut receiver: mpsc::Receiver<Entry>) {
        let (mut entries, mut batching) = (Vec::with_capacity(BATCH), Batching::default());
        loop {
            let received = receiver.recv_many(&mut entries, BATCH);
            let received = match self.wake_at() {
                Some(at) => timeout_at(at, received).await.ok(),
                None => Some(received.await),
            };
            if entries.iter().any(|entry| matches!(entry, Entry::Intention(_))) {
                batching.fill(&mut receiver, &mut entries, BATCH).await;
            }
            let (mut intentions, mut barriers) = (Vec::new(), Vec::new());
            for entry in entries.drain(..) {
                match entry {
                    Entry::Intention(intention) => intentions.push(intention),
                    Entry::End(record) => self.ends.push(*record),
                    Entry::Barrier(done) => barriers.push(done),
                }
            }
            if !self.ends.is_empty() && self.due.is_none() {
                self.due = Some(Instant::now() + LINGER);
            }
            self.write_intentions(intentions).await;
            let is_full = self.ends.len() >= BATCH && !self.is_failing;
            let is_due = self.due.is_some_and(|due| due <= Instant::now());
            if is_full || is_due || !barriers.is_empty() || received == Some(0) {
                self.write_ends().await;
            }
            self.unwritten.store(if self.is_failing { self.ends.len() as u64 } else { 0 }, Ordering::Relaxed);
            for done in barriers {
                let _ = done.send(());
            }
            if received == Some(0) {
                return;
            }
        }
    }

    /// When there is something to do, whatever comes in until then.
    fn wake_at(&self) -> Option<Instant> {
        let beat = (!self.open.is_empty()).then(|| Instant::now() + self.settings.lease / 3);
        self.due.into_iter().chain(beat).min()
    }

    /// Calls wait for this, so it is one statement where it can be, and the ends come later.
    async fn write_intentions(&mut self, mut intentions: Vec<Intention>) {
        let mut written = if intentions.is_empty() && self.open.is_empty() { Ok(()) } else { self.beat().await };
        if written.is_ok() {
            let rows = intentions.iter().map(|intention| intention.record.row(Some(self.node)));
            written = self.together(Many::insert("tool_calls", rows, ""), self.settings.sync).await;
        }
        if intentions.len() > 1 && written.as_ref().is_err_and(|error| error.trouble().is_none()) {
            for intention in intentions.drain(..) {
                Box::pin(self.write_intentions(vec![intention])).await;
            }
        }
        if written.is_ok() {
            self.open.extend(intentions.iter().map(|intention| intention.record.id));
        }
        let written = written.map_err(Arc::new);
        for intention in intentions {
            let _ = intention.written.send(written.clone());
        }
    }

    /// Tells other nodes that this one lives, when it is time to say so again.
    async fn beat(&mut self) -> Result<(), StoreError> {
        let now = self.clock.now();
        if self.alive_until >= now.plus(self.settings.lease * 2 / 3) {
            return Ok(());
        }
        let until = now.plus(self.settings.lease);
        let sql = "insert into nodes (id, alive_until) values ($1, $2) on conflict (id) do update set alive_until = excluded.alive_until";
        self.db.execute(sql, args![self.node, until]).await?;
        self.alive_until = until;
        Ok(())
    }

    async fn write_ends(&mut self) {
        let (ends, was_failing) = (std::mem::take(&mut self.ends), self.is_failing);
        (self.due, self.is_failing) = (None, false);
        match self.together(ended(&ends), false).await {
            Ok(()) => {
                for end in &ends {
                    self.open.remove(&end.id);
                }
            }
            Err(error) if error.trouble().is_some() => self.keep(ends, !was_failing, &error),
            Err(error) => {
                tracing::debug!(%error, "a batch of audit rows failed; writing them one by one");
                for end in ends {
                    if let Err(error) = self.together(ended(std::slice::from_ref(&end)), false).await {
                        tracing::error!(call = %end.id, call_ref = end.call_ref, %error, "a call could not be recorded");
                    }
                    self.open.remove(&end.id);
                }
            }
        }
    }

    /// Keeps what the database does not take now, and tries again later.
    fn keep(&mut self, ends: Vec<CallRecord>, is_new: bool, error: &StoreError) {
        if is_new {
            tracing::error!(%error, "calls cannot be recorded now; they are kept and tried again");
        }
        self.ends = ends;
        let lost = self.ends.len().saturating_sub(MAX_UNWRITTEN);
        for record in self.ends.drain(..lost) {
            tracing::error!(call = %record.id, call_ref = record.call_ref, %error, "a call could not be recorded");
        }
        (self.due, self.is_failing) = (Some(Instant::now() + AGAIN), true);
    }

    /// Writes rows in one commit.
    async fn together(&self, rows: Many<'_>, sync: bool) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        if !sync {
            return self.db.write_many(rows).await.map(|_| ());
        }
        let mut tx = self.db.begin_durable().await?;
        tx.write_many(rows).await?;
        tx.commit().await
    }
}

fn ended(ends: &[CallRecord]) -> Many<'_> {
    Many::insert("tool_calls", ends.iter().map(|end| end.row(None)), END)
}
