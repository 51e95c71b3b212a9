//! What the model says, turn by turn, and what goes wrong.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::Conversation;

/// What a model says to a conversation.
#[derive(Clone)]
pub struct Script(Arc<dyn Fn(&Conversation) -> Turn + Send + Sync>);

impl Script {
    /// Plays these turns in each conversation, by how often the model has spoken there; the last one is repeated without end.
    pub fn turns(turns: impl IntoIterator<Item = Turn>) -> Self {
        let turns: Vec<Turn> = turns.into_iter().collect();
        assert!(!turns.is_empty(), "a script has at least one turn");
        Self::function(move |conversation| turns[conversation.turns().min(turns.len() - 1)].clone())
    }

    /// Says what the function makes of the conversation.
    pub fn function(play: impl Fn(&Conversation) -> Turn + Send + Sync + 'static) -> Self {
        Self(Arc::new(play))
    }

    pub(crate) fn turn(&self, conversation: &Conversation) -> Turn {
        (self.0)(conversation)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Script")
    }
}

/// One answer of the model.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    pub(crate) reasoning: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<PlannedCall>,
    pub(crate) ending: Ending,
    /// The part of the prompt that counts as read from a cache.
    pub(crate) cached: u64,
    pub(crate) wait_ms: u64,
    /// The pause between two pieces of a stream.
    pub(crate) pace_ms: u64,
    pub(crate) faults: Vec<Fault>,
}

/// A call as it is planned; its id is given when it is played.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlannedCall {
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ending {
    #[default]
    Natural,
    Length,
    Refusal,
}

/// How an answer goes wrong.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// An error of the API with this status, and what its `retry-after` says.
    Status { status: u16, retry_after: Option<String> },
    /// An error in the middle of a stream, as the API writes it; in one piece it is an answer of 529.
    MidStream,
    /// The connection breaks after some pieces of the stream; in one piece after half of the body.
    Cut,
    /// Text that is neither JSON nor a stream, with status 200.
    NotJson,
    /// Nothing, until the caller gives up.
    Silence,
}

impl Turn {
    /// The model says this, and is done.
    pub fn say(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// The model calls a tool; a text as arguments is sent as it is, so that it may be no JSON.
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        Self::default().and_call(name, arguments)
    }

    /// Calls one more tool in the same turn.
    #[must_use]
    pub fn and_call(mut self, name: impl Into<String>, arguments: Value) -> Self {
        self.calls.push(PlannedCall { name: name.into(), arguments });
        self
    }

    /// The model thinks aloud first.
    #[must_use]
    pub fn thinking(mut self, reasoning: impl Into<String>) -> Self {
        self.reasoning = reasoning.into();
        self
    }

    /// The model declines, with its text as the reason.
    #[must_use]
    pub fn refused(mut self) -> Self {
        self.ending = Ending::Refusal;
        self
    }

    /// The answer ends because it may be no longer.
    #[must_use]
    pub fn too_long(mut self) -> Self {
        self.ending = Ending::Length;
        self
    }

    #[must_use]
    pub fn cached(mut self, tokens: u64) -> Self {
        self.cached = tokens;
        self
    }

    /// The model takes this long before it says anything.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> Self {
        self.wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// The model pauses between two pieces of a stream.
    #[must_use]
    pub fn paced(mut self, pause: Duration) -> Self {
        self.pace_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// The question fails this often, each time it is asked in a conversation, before it is answered.
    #[must_use]
    pub fn failing(mut self, times: usize, fault: Fault) -> Self {
        self.faults.extend(std::iter::repeat_n(fault, times));
        self
    }

    /// The question always fails.
    pub fn fails(fault: Fault) -> Self {
        Self::default().failing(10_000, fault)
    }
}

impl Fault {
    /// 429, with seconds to wait.
    pub fn rate_limited(seconds: u64) -> Self {
        Self::Status { status: 429, retry_after: Some(seconds.to_string()) }
    }

    /// 529, as Anthropic says that it has too much to do.
    pub fn overloaded() -> Self {
        Self::Status { status: 529, retry_after: None }
    }

    pub fn status(status: u16) -> Self {
        Self::Status { status, retry_after: None }
    }
}
