//! Chat completions of OpenAI, in which an agent is a model: what it says is the answer, its own tools are out of sight, and calls of the
//! tools that the client brought along are the client's to make.

use kernel::RunId;
use models::Usage;
use serde_json::{Value, json};

use super::Encoder;
use crate::{RunEvent, RunState};

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
    pub fn name(&self) -> &'static str {
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

/// An answer in one piece, as events build it up.
#[derive(Clone, Debug, Default)]
pub struct ChatAnswer {
    turns: Vec<(u32, String)>,
    undecided: Undecided,
    pub tool_calls: Vec<Value>,
    pub usage: Usage,
    pub ending: Option<Ending>,
    /// What the run gave, where its author asks for a shape.
    structured: Option<Value>,
}

impl ChatAnswer {
    /// Hears the next event of the run.
    pub fn hear(&mut self, event: &RunEvent) {
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
                self.tool_calls = calls_of(outputs.as_ref());
                self.structured = outputs.clone().filter(|outputs| outputs.get("stop_reason").is_none());
            }
            _ => {}
        }
    }

    /// The run waits for a person: the answer ends with where to decide. Says whether somebody is asked at all.
    pub fn ask_person(&mut self, run: RunId) -> bool {
        let Some(words) = self.undecided.words(run) else { return false };
        self.turns.push((u32::MAX, words));
        self.ending = Some(Ending::Approval);
        true
    }

    /// What the agent said.
    pub fn text(&self) -> String {
        if let Some(outputs) = &self.structured {
            return outputs.to_string();
        }
        self.turns.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n\n")
    }

    /// The body of a completion.
    pub fn body(&self, id: &str, created: i64, model: &str) -> Value {
        let text = self.text();
        let mut message = json!({"role": "assistant", "content": text, "refusal": null});
        if !self.tool_calls.is_empty() {
            message["tool_calls"] = self.tool_calls.clone().into();
            message["content"] = if text.is_empty() { Value::Null } else { text.into() };
        }
        let finish = self.ending.as_ref().map_or("stop", Ending::name);
        json!({
            "id": id, "object": "chat.completion", "created": created, "model": model, "usage": usage(self.usage),
            "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish}],
        })
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

fn calls_of(outputs: Option<&Value>) -> Vec<Value> {
    outputs.and_then(|outputs| outputs.get("tool_calls")).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input}, "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}

/// An answer in chunks.
#[derive(Debug)]
pub struct ChatChunks {
    id: String,
    created: i64,
    model: String,
    run: RunId,
    includes_usage: bool,
    usage: Usage,
    undecided: Undecided,
    begun: bool,
    /// The turn that was heard last, so that two turns do not run into each other.
    turn: Option<u32>,
    pub is_over: bool,
}

impl ChatChunks {
    pub fn new(id: String, created: i64, model: String, run: RunId, includes_usage: bool) -> Self {
        let (usage, undecided) = (Usage::default(), Undecided::default());
        Self { id, created, model, run, includes_usage, usage, undecided, begun: false, turn: None, is_over: false }
    }

    fn chunk(&self, choices: Value) -> Value {
        let mut chunk =
            json!({"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model, "choices": choices});
        if self.includes_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }

    fn delta(&self, delta: Value) -> Value {
        self.chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]))
    }

    fn finish(&mut self, ending: &Ending, told: &mut Vec<Value>) {
        self.is_over = true;
        if let Ending::Failed { code, message } = ending {
            told.push(json!({"error": {"message": message, "type": "agent_error", "param": null, "code": code.to_string()}}));
            return;
        }
        told.push(self.chunk(json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": ending.name()}])));
        if self.includes_usage {
            let mut last = self.chunk(json!([]));
            last["usage"] = usage(self.usage);
            told.push(last);
        }
    }

    /// The run waits for a person: the answer ends with where to decide. Nothing where nobody is asked.
    pub fn ask_person(&mut self) -> Vec<Value> {
        let Some(words) = self.undecided.words(self.run).filter(|_| !self.is_over) else { return Vec::new() };
        let gap = if self.turn.is_some() { "\n\n" } else { "" };
        let mut told = vec![self.delta(json!({"content": format!("{gap}{words}")}))];
        self.finish(&Ending::Approval, &mut told);
        told
    }
}

impl Encoder for ChatChunks {
    fn encode(&mut self, event: &RunEvent) -> Vec<Value> {
        let mut told = Vec::new();
        self.undecided.hear(event);
        if self.is_over {
            return told;
        }
        if !std::mem::replace(&mut self.begun, true) {
            told.push(self.delta(json!({"role": "assistant", "content": ""})));
        }
        match event {
            RunEvent::TextDelta { turn, text } => {
                let gap = if self.turn.replace(*turn).is_some_and(|before| before != *turn) { "\n\n" } else { "" };
                told.push(self.delta(json!({"content": format!("{gap}{text}")})));
            }
            RunEvent::ReasoningDelta { text, .. } => told.push(self.delta(json!({"reasoning_content": text}))),
            RunEvent::Usage { usage, .. } => self.usage += *usage,
            RunEvent::RunEnded { state, code, message, outputs } => {
                for (index, mut call) in calls_of(outputs.as_ref()).into_iter().enumerate() {
                    call["index"] = index.into();
                    told.push(self.delta(json!({"tool_calls": [call]})));
                }
                self.finish(&Ending::of(*state, *code, message, outputs.as_ref()), &mut told);
            }
            _ => {}
        }
        told
    }

    fn farewell(&self) -> Option<&'static str> {
        Some("[DONE]")
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::whole_run;
    use super::*;

    fn chunks(events: &[RunEvent]) -> Vec<Value> {
        let mut encoder = ChatChunks::new("c".to_owned(), 1, "agent:a".to_owned(), RunId::new(), true);
        events.iter().flat_map(|event| encoder.encode(event)).collect()
    }

    #[test]
    fn only_what_the_agent_says_is_told() {
        let told = chunks(&whole_run());
        let text: String = told.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
        assert_eq!(text, "Let me look.\n\nIt is12 degrees.");
        assert!(told.iter().all(|chunk| chunk["choices"][0]["delta"].get("tool_calls").is_none()));
        assert_eq!(told[told.len() - 2]["choices"][0]["finish_reason"], "stop");
        let last = told.last().unwrap();
        assert_eq!((&last["choices"], &last["usage"]["prompt_tokens"]), (&json!([]), &json!(200)));
    }

    #[test]
    fn an_answer_in_one_piece_leaves_out_what_does_not_count() {
        let mut answer = ChatAnswer::default();
        for event in &whole_run() {
            answer.hear(event);
        }
        let body = answer.body("c", 1, "agent:a");
        assert_eq!(body["choices"][0]["message"]["content"], "Let me look.\n\n12 degrees.");
        assert_eq!(body["usage"]["prompt_tokens_details"]["cached_tokens"], 120);
        assert_eq!(answer.ending, Some(Ending::Stop));
    }

    #[test]
    fn calls_of_the_clients_tools_are_handed_over() {
        let call = json!({"id": "c1", "type": "function", "function": {"name": "theirs", "arguments": "{}"}});
        let outputs = json!({"text": "", "messages": [], "stop_reason": "tool_calls", "tool_calls": [call]});
        let end = RunEvent::RunEnded { state: RunState::Done, code: 200, message: "Success".to_owned(), outputs: Some(outputs) };
        let told = chunks(std::slice::from_ref(&end));
        assert_eq!(told[1]["choices"][0]["delta"]["tool_calls"][0]["index"], 0);
        assert_eq!(told[2]["choices"][0]["finish_reason"], "tool_calls");
        let mut answer = ChatAnswer::default();
        answer.hear(&end);
        let message = answer.body("c", 1, "m")["choices"][0]["message"].clone();
        assert_eq!((&message["tool_calls"], &message["content"]), (&json!([call]), &Value::Null));
    }

    #[test]
    fn the_run_that_waits_is_found_again() {
        let events = whole_run();
        let at = events.iter().position(|event| matches!(event, RunEvent::ApprovalNeeded { .. })).unwrap();
        let (run, mut answer) = (RunId::new(), ChatAnswer::default());
        events[..=at].iter().for_each(|event| answer.hear(event));
        assert!(answer.ask_person(run));
        assert_eq!(answer.ending, Some(Ending::Approval));
        let said = answer.text();
        assert!(said.contains("https://yard.example/approvals/1"), "{said}");
        let messages = [json!({"role": "assistant", "content": said}), json!({"role": "user", "content": "done"})];
        assert_eq!(run_named(&messages), Some(run));
        assert_eq!(run_named(&[json!({"role": "assistant", "content": "hello"})]), None);
    }

    #[test]
    fn a_failure_is_an_error() {
        let failed = RunEvent::RunEnded { state: RunState::Failed, code: 424, message: "The model said no.".to_owned(), outputs: None };
        assert_eq!(chunks(&[failed]).last().unwrap()["error"]["message"], "The model said no.");
    }
}
