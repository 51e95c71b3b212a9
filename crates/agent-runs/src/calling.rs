//! The calls of a turn: that they begin is written before any of them is made, and what each comes to as soon as that is known.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use kernel::{ApprovalId, Timestamp};
use serde_json::json;

use crate::conversation::{CallOutcome, OutcomeKind, PlannedCall};
use crate::drive::{Driver, Halt, failed};
use crate::events::RunEvent;
use crate::journal::{self, Writing};
use crate::log::shown;
use crate::rows::{self, Rest};
use crate::tools::{CallContext, Called};

/// The most calls of one turn that are made at once.
const CALLS_AT_ONCE: usize = 8;
/// The code of a run that ended at a call whose outcome nobody knows; no trigger repeats it.
const OUTCOME_UNKNOWN: i64 = 409;

impl Driver<'_> {
    pub(crate) async fn call_tools(&mut self) -> Result<(), Halt> {
        let open: Vec<PlannedCall> = self.conversation.open_calls().cloned().collect();
        self.begin_calls(&open).await?;
        let limit = self.conversation.limits().time_left(&self.used()).max(Duration::from_secs(1));
        let mut outcomes: Vec<(i64, CallOutcome)> = Vec::new();
        let mut waits: Vec<(PlannedCall, ApprovalId, Timestamp)> = Vec::new();
        for some in open.chunks(CALLS_AT_ONCE) {
            let mut made = Vec::new();
            {
                let this = &*self;
                let mut under_way: FuturesUnordered<BoxFuture<'_, (&PlannedCall, Result<Called, Halt>)>> = FuturesUnordered::new();
                for planned in some {
                    under_way.push(Box::pin(this.call_one(planned, limit)));
                }
                while let Some((planned, called)) = under_way.next().await {
                    match called? {
                        Called::Ended(outcome) => made.push((planned, outcome)),
                        Called::Waits { approval, until } => waits.push((planned.clone(), approval, until)),
                    }
                }
            }
            for (planned, outcome) in made {
                self.log.push(RunEvent::ToolResult {
                    id: planned.call.id.clone(),
                    name: planned.call.name.clone(),
                    content: shown(&outcome.content),
                    is_error: outcome.is_error(),
                });
                outcomes.push((planned.step, outcome));
            }
        }
        let unknown = outcomes.iter().find(|(_, outcome)| outcome.kind == OutcomeKind::Unknown).map(|(_, outcome)| outcome.content.clone());
        for (step, outcome) in outcomes {
            self.conversation.call_ended(step, outcome);
        }
        if let Some(unknown) = unknown.filter(|_| self.config.stops_when_uncertain) {
            return self.end(failed(OUTCOME_UNKNOWN, unknown)).await;
        }
        match waits.first() {
            Some((_, approval, until)) => {
                let rest = Rest::Waiting(*approval, *until);
                for (planned, approval, _) in &waits {
                    let url = self.runs.0.parts.calls.page_of(self.run.project, *approval).await?;
                    let arguments = serde_json::from_str(&planned.call.arguments).unwrap_or_else(|_| json!(planned.call.arguments));
                    let (id, name) = (planned.call.id.clone(), planned.call.name.clone());
                    self.log.push(RunEvent::ApprovalNeeded { approval: *approval, url, id, name, arguments });
                }
                let waiting: Vec<i64> = waits.iter().map(|(planned, ..)| planned.step).collect();
                self.rest(rest, &waiting).await
            }
            None => self.flush().await,
        }
    }

    /// Makes a call and writes what it came to. Nothing is awaited beside it: one that is not polled might hold what the others wait for.
    async fn call_one<'p>(&self, planned: &'p PlannedCall, limit: Duration) -> (&'p PlannedCall, Result<Called, Halt>) {
        let context = CallContext {
            run: self.run,
            scope: self.scope,
            config: &self.config,
            conversation: &self.conversation,
            step: planned.step,
            began_before: self.began.get(&planned.step).copied(),
            limit,
        };
        let made = async {
            let called = self.runs.call(&self.toolbox, &planned.call, &context).await?;
            if let Called::Ended(outcome) = &called {
                self.keep_outcome(planned.step, outcome).await?;
            }
            Ok::<_, Halt>(called)
        };
        (planned, made.await)
    }

    /// Notes which calls are about to be made, before any of them is.
    async fn begin_calls(&self, open: &[PlannedCall]) -> Result<(), Halt> {
        let (inner, now) = (&self.runs.0, self.runs.0.parts.clock.now());
        let numbers: Vec<i64> = open.iter().map(|call| call.step).collect();
        let mut tx = inner.parts.db.begin().await?;
        let until = now.plus(inner.parts.settings.lease);
        if !rows::keep_used(&mut tx, self.run.project, self.run.id, inner.node, &self.used(), now, until).await? {
            return Err(Halt::Lost);
        }
        journal::begin_calls(&mut tx, self.run.project, self.run.id, &numbers, now).await?;
        Ok(tx.commit().await?)
    }

    /// Writes what a call came to as soon as that is known, whatever becomes of the others.
    async fn keep_outcome(&self, step: i64, outcome: &CallOutcome) -> Result<(), Halt> {
        let (inner, now) = (&self.runs.0, self.runs.0.parts.clock.now());
        let mut tx = inner.parts.db.begin().await?;
        let until = now.plus(inner.parts.settings.lease);
        if !rows::keep_used(&mut tx, self.run.project, self.run.id, inner.node, &self.used(), now, until).await? {
            return Err(Halt::Lost);
        }
        let writing = Writing { new: Vec::new(), ended: vec![(step, outcome.clone(), now)] };
        journal::write(&mut tx, &inner.parts.sealer, self.run.project, self.run.id, &writing).await?;
        Ok(tx.commit().await?)
    }
}
