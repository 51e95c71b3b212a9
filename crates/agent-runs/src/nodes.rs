//! What nodes of one database tell each other: that a run is due or was cancelled, and which runs have news for whoever follows them. Each
//! also looks by itself now and then.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kernel::RunId;
use store::Db;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{AgentRuns, rows};

const CHANNEL: &str = "toolyard_agent_runs";
/// Others are told so often at most, however much happens.
const TELL_EVERY: Duration = Duration::from_millis(50);
/// How many runs are named at once; PostgreSQL takes less than 8000 bytes.
const NAMED: usize = 200;
const AGAIN: Duration = Duration::from_secs(1);

/// What other nodes are not told yet.
#[derive(Debug, Default)]
pub(crate) struct News {
    pending: Mutex<Pending>,
    there_is: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    /// Whether there is work, or a run was cancelled.
    wakes: bool,
    runs: HashSet<RunId>,
}

impl News {
    fn add(&self, change: impl FnOnce(&mut Pending)) {
        change(&mut self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        self.there_is.notify_one();
    }

    /// Takes what there is, in the words in which it is told.
    fn take(&self, node: Uuid) -> Vec<String> {
        let Pending { wakes, runs } = std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        let runs: Vec<String> = runs.iter().map(|run| run.uuid().simple().to_string()).collect();
        let mut words: Vec<String> = runs.chunks(NAMED).map(|some| format!("{} {}", node.simple(), some.join(","))).collect();
        if wakes {
            words.push(node.simple().to_string());
        }
        words
    }
}

/// What another node tells.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Wakes,
    Runs(Vec<RunId>),
}

/// Reads what was told; nothing where this node told it itself.
fn read(words: &str, node: Uuid) -> Option<Heard> {
    let (teller, runs) = words.split_once(' ').unwrap_or((words, ""));
    if Uuid::try_parse(teller).is_ok_and(|teller| teller == node) {
        return None;
    }
    if runs.is_empty() {
        return Some(Heard::Wakes);
    }
    Some(Heard::Runs(runs.split(',').filter_map(|run| Uuid::try_parse(run).ok()).map(RunId::from).collect()))
}

impl AgentRuns {
    /// Whether nodes have to be told of things through the database.
    pub(crate) fn has_other_nodes(&self) -> bool {
        matches!(self.0.parts.db, Db::Postgres(_))
    }

    /// A run is due, or one was cancelled.
    pub(crate) fn tell_others(&self) {
        self.0.wake.notify_one();
        if self.has_other_nodes() {
            self.0.news.add(|pending| pending.wakes = true);
        }
    }

    /// Something was written about a run, for whoever follows it.
    pub(crate) fn tell_followers(&self, run: RunId) {
        self.0.followers.tell(run);
        if self.has_other_nodes() {
            self.0.news.add(|pending| {
                pending.runs.insert(run);
            });
        }
    }

    pub(crate) async fn run_telling(self, stop: CancellationToken) {
        let tell = async {
            loop {
                self.0.news.there_is.notified().await;
                for words in self.0.news.take(self.0.node) {
                    if let Err(error) = self.0.parts.db.tell(CHANNEL, &words).await {
                        tracing::debug!(%error, "other nodes could not be told of runs; they find them by themselves");
                    }
                }
                tokio::time::sleep(TELL_EVERY).await;
            }
        };
        stop.run_until_cancelled(tell).await;
    }

    pub(crate) async fn run_listening(self, stop: CancellationToken) {
        let woken = Notify::new();
        let hear = |words: &str| match read(words, self.0.node) {
            Some(Heard::Wakes) => woken.notify_one(),
            Some(Heard::Runs(runs)) => {
                for run in runs {
                    self.0.followers.tell(run);
                }
            }
            None => {}
        };
        let listen = async {
            loop {
                if let Err(error) = self.0.parts.db.listen(CHANNEL, hear).await {
                    tracing::debug!(%error, "other nodes are not heard now; their runs are found by looking");
                }
                tokio::time::sleep(AGAIN).await;
            }
        };
        let act = async {
            loop {
                woken.notified().await;
                self.0.wake.notify_one();
                self.look_for_cancelled().await;
            }
        };
        stop.run_until_cancelled(Box::pin(async { tokio::join!(listen, act) })).await;
    }

    /// Somebody may have cancelled a run that this node works on.
    async fn look_for_cancelled(&self) {
        let known: Vec<RunId> = self.0.running.held().keys().copied().collect();
        if known.is_empty() {
            return;
        }
        match rows::held(&self.0.parts.db, self.0.node).await {
            Ok(held) => self.0.running.keep_only_of(&known, &held),
            Err(error) => tracing::debug!(%error, "runs of this node could not be looked at"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_hear_what_a_node_tells_and_it_does_not_hear_itself() {
        let (news, node, other) = (News::default(), Uuid::now_v7(), Uuid::now_v7());
        assert!(news.take(node).is_empty());
        let run = RunId::new();
        news.add(|pending| pending.wakes = true);
        let name = |run: RunId| {
            news.add(|pending| {
                pending.runs.insert(run);
            });
        };
        (0..2).for_each(|_| name(run));
        let told = news.take(node);
        assert_eq!(told.iter().filter_map(|words| read(words, other)).collect::<Vec<_>>(), [Heard::Runs(vec![run]), Heard::Wakes]);
        assert!(told.iter().all(|words| read(words, node).is_none()) && news.take(node).is_empty());
        (0..450).for_each(|_| name(RunId::new()));
        let told = news.take(node);
        assert!(told.len() == 3 && told.iter().all(|words| words.len() < 8000));
    }
}
