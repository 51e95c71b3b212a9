//! What the steps of a run did, for whoever reads the run later. Large values are cut.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kernel::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{OUTCOME_UNKNOWN, StepError, StepOutcome};

/// The most bytes of JSON that are kept of one value.
const MAX_VALUE: usize = 16 << 10;
/// The most bytes of JSON that are kept of all values of a run.
pub const MAX_RUN: usize = 256 << 10;

/// One step of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    pub name: String,
    /// The ref that was called.
    pub call: String,
    pub state: StepState,
    /// The status of a failure.
    pub code: Option<i64>,
    /// Why it failed.
    pub error: Option<String>,
    pub arguments: Option<Value>,
    pub result: Option<Value>,
    started_us: i64,
    duration_us: u64,
    /// What is cut, in words.
    pub note: Option<String>,
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    Done,
    Failed,
    Skipped,
    /// It waits for a person's approval.
    Waiting,
    /// It may have taken effect or not, and is not made again.
    Unknown,
    /// The run ended before the step did.
    Unfinished,
}

impl StepState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Waiting => "waiting",
            Self::Unknown => "unknown",
            Self::Unfinished => "unfinished",
        }
    }
}

impl StepRecord {
    /// A step of a run that somebody else made.
    pub fn new(name: String, call: String, state: StepState, started_at: Timestamp, duration: Duration) -> Self {
        let (started_us, duration_us) = (started_at.micros(), micros(duration));
        Self { name, call, state, code: None, error: None, arguments: None, result: None, started_us, duration_us, note: None }
    }

    /// Keeps a value as text of at most so many bytes, and says so where it is cut; how many bytes are kept.
    pub fn keep(&mut self, name: &str, value: &Value, most: usize) -> usize {
        let (kept, bytes, note) = cut(name, value, most.min(MAX_VALUE));
        if let Some(said) = note {
            self.add_note(said);
        }
        match name {
            "arguments" => self.arguments = Some(kept),
            _ => self.result = Some(kept),
        }
        bytes
    }

    fn add_note(&mut self, said: String) {
        self.note = Some(self.note.take().map_or_else(|| said.clone(), |note| format!("{note} {said}")));
    }

    pub fn started_at(&self) -> Timestamp {
        Timestamp::from_micros(self.started_us)
    }

    pub fn duration(&self) -> Duration {
        Duration::from_micros(self.duration_us)
    }
}

/// The steps of a run under way; the last one is the one that runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepLog(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    steps: Vec<StepRecord>,
    /// How many bytes of values are kept by now.
    kept: usize,
    started: Option<Instant>,
}

impl StepLog {
    pub(crate) fn begin(&self, name: &str, call: String, now: Timestamp) {
        self.change(|entries| {
            entries.started = Some(Instant::now());
            entries.steps.push(StepRecord {
                name: name.to_owned(),
                call,
                state: StepState::Unfinished,
                code: None,
                error: None,
                arguments: None,
                result: None,
                started_us: now.micros(),
                duration_us: 0,
                note: None,
            });
        });
    }

    pub(crate) fn arguments(&self, arguments: &Value) {
        self.change(|entries| {
            let kept = entries.keep("arguments", arguments);
            if let Some(step) = entries.steps.last_mut() {
                step.arguments = Some(kept);
            }
        });
    }

    pub(super) fn end(&self, outcome: &Result<StepOutcome, StepError>) {
        self.change(|entries| {
            let (state, failure, result) = match outcome {
                Ok(StepOutcome::Done(result)) => (StepState::Done, None, Some(result)),
                Ok(StepOutcome::Skipped) => (StepState::Skipped, None, None),
                Ok(StepOutcome::Failed { code, message }) | Err(StepError::Failed { code, message }) => {
                    (StepState::Failed, Some((*code, message)), None)
                }
                Err(StepError::Waiting { message, .. }) => (StepState::Waiting, Some((202, message)), None),
                Err(StepError::Unknown(message)) => (StepState::Unknown, Some((OUTCOME_UNKNOWN, message)), None),
            };
            let result = result.map(|result| entries.keep("result", result));
            let took = entries.started.map(|started| started.elapsed()).unwrap_or_default();
            if let Some(step) = entries.steps.last_mut() {
                step.state = state;
                step.code = failure.map(|(code, _)| code);
                step.error = failure.map(|(_, message)| message.clone());
                step.result = result;
                step.duration_us = micros(took);
            }
        });
    }

    /// The steps so far; one that still runs has taken the time until now.
    pub(crate) fn records(&self) -> Vec<StepRecord> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut steps = entries.steps.clone();
        if let (Some(last), Some(started)) = (steps.last_mut(), entries.started)
            && last.state == StepState::Unfinished
        {
            last.duration_us = micros(started.elapsed());
        }
        steps
    }

    fn change(&self, change: impl FnOnce(&mut Entries)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Entries {
    /// The value, or the beginning of its text with a note.
    fn keep(&mut self, name: &str, value: &Value) -> Value {
        let (kept, bytes, note) = cut(name, value, MAX_VALUE.min(MAX_RUN.saturating_sub(self.kept)));
        self.kept += bytes;
        if let (Some(step), Some(said)) = (self.steps.last_mut(), note) {
            step.add_note(said);
        }
        kept
    }
}

/// A value, or the beginning of its text; how many bytes of it are kept, and what there is to say.
fn cut(name: &str, value: &Value, most: usize) -> (Value, usize, Option<String>) {
    let text = value.to_string();
    if text.len() <= most {
        return (value.clone(), text.len(), None);
    }
    let end = text.floor_char_boundary(most);
    let said = format!("`{name}` is cut: the first {end} of {} bytes, as text.", text.len());
    (Value::String(text[..end].to_owned()), end, Some(said))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn large_values_are_cut_and_said_to_be() {
        let log = StepLog::default();
        for index in 0..30 {
            log.begin(&format!("s{index}"), "workflow.variant.x".to_owned(), Timestamp::from_micros(7));
            log.arguments(&json!({"small": index}));
            log.end(&Ok(StepOutcome::Done(json!("ü".repeat(MAX_VALUE)))));
        }
        let records = log.records();
        assert_eq!((&records[0].arguments, records[0].state), (&Some(json!({"small": 0})), StepState::Done));
        assert_eq!(records[0].note.as_deref(), Some("`result` is cut: the first 16383 of 32770 bytes, as text."));
        assert!(records.iter().all(|record| record.note.is_some()));
        assert!(json!(records).to_string().len() < MAX_RUN * 2, "a run's steps are bounded as a whole");
    }
}
