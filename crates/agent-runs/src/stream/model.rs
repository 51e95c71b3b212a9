//! What every answer of an agent as a model has in common: why it ends, what it says where a person has to decide, and how the run is found
//! again that waits for that.

use kernel::RunId;
use models::Usage;
use serde_json::Value;

use crate::{RunEvent, RunState};

/// An answer of an agent in the words of a model API, as events of its run build it up: in pieces, and whole in the end.
pub trait ModelAnswer: Send {
    /// Hears the next event of the run; what that is in a stream.
    fn hear(&mut self, event: &RunEvent) -> Vec<Value>;

    /// The run waits for a person, so the answer ends with where to decide. Nothing changes where nobody is asked.
    fn ask_person(&mut self) -> Vec<Value>;

    /// Why it ended, once it has.
    fn ending(&self) -> Option<&Ending>;

    /// The answer in one piece.
    fn body(&self) -> Value;

    /// A piece of the stream as it is sent.
    fn piece(&self, value: &Value) -> String {
        format!("data: {value}\n\n")
    }

    /// What a stream ends with, after its last piece.
    fn farewell(&self) -> Option<&'static str> {
        None
    }
}

/// What an agent said and did so far, as its client may know it.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    /// The words of each turn; those of a turn that was cut off do not count.
    turns: Vec<(u32, String)>,
    undecided: Undecided,
    /// The calls that the client has to make.
    pub(super) calls: Vec<Value>,
    pub(super) usage: Usage,
    pub(super) ending: Option<Ending>,
    /// What the run gave, where its author asks for a shape.
    pub(super) structured: Option<Value>,
}

impl Said {
    pub(super) fn hear(&mut self, event: &RunEvent) {
        self.undecided.hear(event);
        match event {
            RunEvent::TurnStarted { turn, .. } => self.turns.retain(|(told, _)| told != turn),
            RunEvent::TextDelta { turn, text } => match self.turns.last_mut().filter(|(told, _)| told == turn) {
                Some((_, said)) => said.push_str(text),
                None => self.turns.push((*turn, text.clone())),
            },
            RunEvent::Usage { usage, .. } => self.usage += *usage,
            RunEvent::RunEnded { state, code, message, outputs } => {
                self.ending = Some(Ending::of(*state, *code, message, outputs.as_ref()));
                let calls = outputs.as_ref().and_then(|outputs| outputs.get("tool_calls")).and_then(Value::as_array);
                self.calls = calls.cloned().unwrap_or_default();
                self.structured = outputs.clone().filter(|outputs| outputs.get("stop_reason").is_none());
            }
            _ => {}
        }
    }

    /// Ends with where a person decides; the words for that. Nothing where nobody is asked, or the run has ended.
    pub(super) fn ask_person(&mut self, run: RunId) -> Option<String> {
        let words = self.undecided.words(run).filter(|_| self.ending.is_none())?;
        self.turns.push((u32::MAX, words.clone()));
        self.ending = Some(Ending::Approval);
        Some(words)
    }

    /// Ends with words that no run said.
    pub(super) fn only(words: String) -> Self {
        Self { turns: vec![(1, words)], ending: Some(Ending::Stop), ..Self::default() }
    }

    pub(super) fn text(&self) -> String {
        if let Some(outputs) = &self.structured {
            return outputs.to_string();
        }
        self.turns.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n\n")
    }

    pub(super) fn has_words(&self) -> bool {
        !self.turns.is_empty()
    }
}

/// Why an answer ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Stop,
    Length,
    /// The client has to call its tools.
    ToolCalls,
    /// A person has to decide first; the run goes on afterwards.
    Approval,
    Failed {
        code: i64,
        message: String,
    },
}

impl Ending {
    fn of(state: RunState, code: i64, message: &str, outputs: Option<&Value>) -> Self {
        let stopped = outputs.and_then(|outputs| outputs.get("stop_reason")).and_then(Value::as_str);
        match (state, stopped) {
            (RunState::Failed | RunState::Cancelled, _) => Self::Failed { code, message: message.to_owned() },
            (RunState::Limit, _) | (_, Some("length")) => Self::Length,
            (_, Some("tool_calls")) => Self::ToolCalls,
            _ => Self::Stop,
        }
    }

    /// As `finish_reason` says it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Stop | Self::Approval | Self::Failed { .. } => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
        }
    }
}

/// The calls that people have not decided about: their ids, their tools, and where to decide.
#[derive(Clone, Debug, Default)]
struct Undecided(Vec<(String, String, String)>);

impl Undecided {
    fn hear(&mut self, event: &RunEvent) {
        match event {
            RunEvent::ApprovalNeeded { url, id, name, .. } => {
                self.0.retain(|(known, ..)| known != id);
                self.0.push((id.clone(), name.clone(), url.clone()));
            }
            RunEvent::ToolResult { id, .. } => self.0.retain(|(known, ..)| known != id),
            _ => {}
        }
    }

    /// What the client is told where a person has to decide.
    fn words(&self, run: RunId) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let links: Vec<String> = self.0.iter().map(|(_, tool, url)| format!("`{tool}`: {url}")).collect();
        let told = "A person has to allow this before I go on:";
        let after = "Send any message once it is decided, and I go on where I am.";
        Some(format!("{told}\n\n{}\n\n{after} ({RUN} {run})", links.join("\n")))
    }
}

const RUN: &str = "agent run";

/// The run that the assistant's last words speak of, if a person had to decide about it.
pub fn run_named(messages: &[Value]) -> Option<RunId> {
    let last = messages.iter().rev().find(|message| message["role"] == "assistant")?;
    let text = match &last["content"] {
        Value::String(text) => text.as_str(),
        Value::Array(parts) => parts.first()?.get("text")?.as_str()?,
        _ => return None,
    };
    let (_, rest) = text.trim_end().rsplit_once(&format!("({RUN} "))?;
    rest.strip_suffix(')')?.parse::<uuid::Uuid>().ok().map(RunId::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::whole_run;
    use super::*;

    #[test]
    fn what_does_not_count_is_left_out() {
        let mut said = Said::default();
        for event in &whole_run() {
            said.hear(event);
        }
        assert_eq!(said.text(), "Let me look.\n\n12 degrees.");
        assert_eq!((said.usage.cached_input, said.ending), (120, Some(Ending::Stop)));
    }

    #[test]
    fn the_run_that_waits_is_found_again() {
        let events = whole_run();
        let at = events.iter().position(|event| matches!(event, RunEvent::ApprovalNeeded { .. })).unwrap();
        let (run, mut said) = (RunId::new(), Said::default());
        assert_eq!(said.ask_person(run), None, "nobody is asked yet");
        events[..=at].iter().for_each(|event| said.hear(event));
        let words = said.ask_person(run).unwrap();
        assert!(words.contains("https://yard.example/approvals/1"), "{words}");
        assert_eq!((said.ending.clone(), said.ask_person(run)), (Some(Ending::Approval), None));
        let messages = [json!({"role": "assistant", "content": said.text()}), json!({"role": "user", "content": "done"})];
        assert_eq!(run_named(&messages), Some(run));
        assert_eq!(run_named(&[json!({"role": "assistant", "content": "hello"})]), None);
    }
}
