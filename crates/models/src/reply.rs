//! What a model answered, in words of no API in particular.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::prompt::{Api, ToolCall};
use crate::{ModelError, anthropic, chat, error, responses};

/// The most tool calls that one reply may hold.
pub(crate) const MOST_CALLS: usize = 256;
/// The most bytes of text and arguments that a reply may have.
pub(crate) const MOST_BYTES: usize = 8 << 20;

/// One answer of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    pub text: String,
    pub calls: Vec<ToolCall>,
    pub stop: Stop,
    pub usage: Usage,
    /// What the API must get back unchanged with the next question.
    pub opaque: Option<Value>,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It has said what it had to say.
    End,
    /// It waits for the results of its calls.
    ToolCalls,
    /// The answer is longer than it may be, or than the window has room for: text and calls may be cut.
    Length,
    /// The model or a filter declined; the text says so, if there is any.
    Refusal,
    #[default]
    Other,
}

/// How many tokens an answer took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// All tokens that were read, those from a cache too.
    pub input: u64,
    /// All tokens that were written, reasoning too.
    pub output: u64,
    /// The part of `input` that came from a cache.
    pub cached_input: u64,
    /// The part of `input` that was written to a cache.
    pub cache_write: u64,
    /// The part of `output` that is reasoning.
    pub reasoning: u64,
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached_input: self.cached_input.saturating_add(other.cached_input),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Reads an answer that came in one piece; `retry_after` is the header of that name.
pub fn reply(api: Api, status: u16, retry_after: Option<&str>, body: &[u8]) -> Result<Reply, ModelError> {
    if !(200..300).contains(&status) {
        return Err(error::of_answer(status, retry_after, body));
    }
    let body: Value = serde_json::from_slice(body).map_err(|_| ModelError::malformed(body))?;
    whole(api, &body)
}

pub(crate) fn whole(api: Api, body: &Value) -> Result<Reply, ModelError> {
    if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
        return Err(error::of_envelope(None, error));
    }
    let reply = match api {
        Api::OpenaiChat => chat::reply(body),
        Api::OpenaiResponses => responses::reply(body),
        Api::Anthropic => anthropic::reply(body),
    }?;
    reply.bounded()
}

impl Reply {
    pub(crate) fn bounded(mut self) -> Result<Self, ModelError> {
        let size = self.calls.iter().fold(self.text.len(), |size, call| size + call.arguments.len());
        if self.calls.len() > MOST_CALLS || size > MOST_BYTES {
            return Err(ModelError::too_large());
        }
        // Servers that run models locally often end with `stop` though the model called tools.
        if self.stop == Stop::End && !self.calls.is_empty() {
            self.stop = Stop::ToolCalls;
        }
        for (index, call) in self.calls.iter_mut().enumerate().filter(|(_, call)| call.id.is_empty()) {
            call.id = format!("call_{index}");
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_adds_up() {
        let once = Usage { input: 10, output: 5, cached_input: 4, cache_write: 2, reasoning: 1 };
        let mut twice = once + once;
        assert_eq!(twice, Usage { input: 20, output: 10, cached_input: 8, cache_write: 4, reasoning: 2 });
        twice += Usage { input: u64::MAX, ..Usage::default() };
        assert_eq!(twice.input, u64::MAX);
    }
}
