//! What happens in a run, as whoever follows it is told. Encoders turn these into the streams that clients speak.

use kernel::ApprovalId;
use models::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RunEvent {
    /// The first event of every run.
    RunStarted { session_id: Option<String> },
    /// The model is asked. A turn that a crash cut off begins again, and what it said before does not count.
    TurnStarted { turn: u32, repeated: bool },
    /// More of the text of this turn.
    TextDelta { turn: u32, text: String },
    /// More of what the model thinks, where its API shows it.
    ReasoningDelta { turn: u32, text: String },
    /// The text of this turn is whole; it comes only where there was one.
    TextEnd { turn: u32 },
    /// The model calls a tool.
    ToolCallStarted { turn: u32, id: String, name: String },
    /// More of the arguments, as the model writes them.
    ToolCallArguments { id: String, text: String },
    /// The arguments are whole.
    ToolCallEnded { id: String },
    /// What came of a call; long results are cut.
    ToolResult { id: String, name: String, content: String, is_error: bool },
    /// The run waits for a person.
    ApprovalNeeded { approval: ApprovalId, url: String, id: String, name: String, arguments: Value },
    /// What one turn took.
    Usage { turn: u32, usage: Usage },
    /// The last event of every run.
    RunEnded { state: RunState, code: i64, message: String, outputs: Option<Value> },
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It goes on as soon as a node has room.
    Ready,
    /// A node works on it.
    Running,
    /// A person has to decide something first.
    Waiting,
    Done,
    Failed,
    /// It used up what it may.
    Limit,
    Cancelled,
}

impl RunState {
    pub const ALL: [Self; 7] = [Self::Ready, Self::Running, Self::Waiting, Self::Done, Self::Failed, Self::Limit, Self::Cancelled];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Limit => "limit",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == text)
    }

    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Limit | Self::Cancelled)
    }
}

/// An event with its place in the run's log; the first is 1.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberedEvent {
    pub number: i64,
    pub event: RunEvent,
}
