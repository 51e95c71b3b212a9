//! An answer while it is being written.

use serde_json::Value;

use crate::prompt::Api;
use crate::reply::{self, MOST_BYTES, Reply};
use crate::sse::Events;
use crate::{ModelError, anthropic, chat, responses};

/// What a piece of a stream adds to the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    /// The model thinks aloud, or sums up what it thought.
    Reasoning(String),
    /// A tool call begins; `index` counts the calls of this answer.
    CallBegins {
        index: usize,
        id: String,
        name: String,
    },
    CallArguments {
        index: usize,
        text: String,
    },
}

impl Delta {
    fn size(&self) -> usize {
        match self {
            Self::Text(text) | Self::Reasoning(text) | Self::CallArguments { text, .. } => text.len(),
            Self::CallBegins { id, name, .. } => id.len() + name.len(),
        }
    }
}

/// Reads a streamed answer out of bytes that arrive in any pieces.
#[derive(Debug)]
pub struct StreamReader {
    api: Api,
    events: Events,
    state: State,
    /// What may be kept still.
    left: usize,
    /// The body of a server that answers with JSON or a page although it was asked for a stream.
    whole: Option<Vec<u8>>,
    has_begun: bool,
}

#[derive(Debug)]
enum State {
    Chat(chat::Streamed),
    Responses(responses::Streamed),
    Anthropic(anthropic::Streamed),
}

impl StreamReader {
    pub fn new(api: Api) -> Self {
        let state = match api {
            Api::OpenaiChat => State::Chat(chat::Streamed::default()),
            Api::OpenaiResponses => State::Responses(responses::Streamed::default()),
            Api::Anthropic => State::Anthropic(anthropic::Streamed::default()),
        };
        Self { api, events: Events::default(), state, left: 2 * MOST_BYTES, whole: None, has_begun: false }
    }

    /// Takes the next bytes; an error ends the stream.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Delta>, ModelError> {
        if !self.has_begun
            && let Some(first) = bytes.iter().find(|byte| !byte.is_ascii_whitespace())
        {
            self.has_begun = true;
            self.whole = matches!(first, b'{' | b'<').then(Vec::new);
        }
        if let Some(whole) = &mut self.whole {
            whole.extend_from_slice(bytes);
            return if whole.len() > MOST_BYTES { Err(ModelError::too_large()) } else { Ok(Vec::new()) };
        }
        let mut deltas = Vec::new();
        for data in self.events.push(bytes)? {
            let event = serde_json::from_slice(&data).ok();
            self.event(&data, event.as_ref(), &mut deltas)?;
        }
        Ok(deltas)
    }

    /// The whole answer, once the stream has ended.
    pub fn end(mut self) -> Result<Reply, ModelError> {
        if let Some(whole) = self.whole {
            return reply::reply(self.api, 200, None, &whole);
        }
        // What comes after the last empty line may be cut in the middle.
        if let Some(data) = self.events.end()
            && let event = serde_json::from_slice::<Value>(&data).ok()
            && (event.is_some() || is_done(&data))
        {
            self.event(&data, event.as_ref(), &mut Vec::new())?;
        }
        let reply = match self.state {
            State::Chat(streamed) => streamed.end(),
            State::Responses(streamed) => streamed.end(),
            State::Anthropic(streamed) => streamed.end(),
        };
        reply?.bounded()
    }

    fn event(&mut self, data: &[u8], event: Option<&Value>, deltas: &mut Vec<Delta>) -> Result<(), ModelError> {
        let before = deltas.len();
        match (event, &mut self.state) {
            (Some(event), State::Chat(streamed)) => streamed.event(event, deltas)?,
            (Some(event), State::Responses(streamed)) => streamed.event(event, deltas)?,
            (Some(event), State::Anthropic(streamed)) => streamed.event(event, deltas)?,
            (None, State::Chat(streamed)) if is_done(data) => streamed.done(),
            (None, _) if is_done(data) || data.is_empty() => {}
            (None, _) => return Err(ModelError::malformed(data)),
        }
        let added = &deltas[before..];
        let size = if added.is_empty() { data.len() } else { added.iter().map(Delta::size).sum() };
        self.left = self.left.checked_sub(size).ok_or_else(ModelError::too_large)?;
        Ok(())
    }
}

fn is_done(data: &[u8]) -> bool {
    data.trim_ascii() == b"[DONE]"
}
