//! Chat completions of OpenAI, in which an agent is a model: what it says is the answer, its own tools are out of sight, and calls of the
//! tools that the client brought along are the client's to make.

use kernel::RunId;
use models::Usage;
use serde_json::{Value, json};

use super::model::{Ending, ModelAnswer, Said};
use crate::RunEvent;

/// A completion, in chunks and whole.
#[derive(Debug)]
pub struct Completion {
    id: String,
    created: i64,
    model: String,
    run: RunId,
    includes_usage: bool,
    said: Said,
    begun: bool,
    /// The turn that was heard last, so that two turns do not run into each other.
    turn: Option<u32>,
}

impl Completion {
    pub fn new(run: RunId, created: i64, model: String, includes_usage: bool) -> Self {
        let id = format!("chatcmpl-{run}");
        Self { id, created, model, run, includes_usage, said: Said::default(), begun: false, turn: None }
    }

    /// A completion that no run gave, and its chunks.
    pub fn of_words(words: String, created: i64, model: String) -> (Self, Vec<Value>) {
        let mut completion = Self::new(RunId::new(), created, model, false);
        let mut told = vec![completion.delta(&json!({"role": "assistant", "content": words}))];
        completion.said = Said::only(words);
        completion.finish(&Ending::Stop, &mut told);
        (completion, told)
    }

    fn chunk(&self, choices: &Value) -> Value {
        let mut chunk =
            json!({"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model, "choices": choices});
        if self.includes_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }

    fn delta(&self, delta: &Value) -> Value {
        self.chunk(&json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]))
    }

    fn begin(&mut self, told: &mut Vec<Value>) {
        if !std::mem::replace(&mut self.begun, true) {
            told.push(self.delta(&json!({"role": "assistant", "content": ""})));
        }
    }

    fn finish(&self, ending: &Ending, told: &mut Vec<Value>) {
        if let Ending::Failed { code, message } = ending {
            told.push(json!({"error": {"message": message, "type": "agent_error", "param": null, "code": code.to_string()}}));
            return;
        }
        told.push(self.chunk(&json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": ending.name()}])));
        if self.includes_usage {
            let mut last = self.chunk(&json!([]));
            last["usage"] = usage(self.said.usage);
            told.push(last);
        }
    }
}

impl ModelAnswer for Completion {
    fn hear(&mut self, event: &RunEvent) -> Vec<Value> {
        let mut told = Vec::new();
        if self.said.ending.is_some() {
            return told;
        }
        self.said.hear(event);
        self.begin(&mut told);
        match event {
            RunEvent::TextDelta { turn, text } => {
                let gap = if self.turn.replace(*turn).is_some_and(|before| before != *turn) { "\n\n" } else { "" };
                told.push(self.delta(&json!({"content": format!("{gap}{text}")})));
            }
            RunEvent::ReasoningDelta { text, .. } => told.push(self.delta(&json!({"reasoning_content": text}))),
            _ => {}
        }
        if let Some(ending) = self.said.ending.clone() {
            for (index, mut call) in self.said.calls.clone().into_iter().enumerate() {
                call["index"] = index.into();
                told.push(self.delta(&json!({"tool_calls": [call]})));
            }
            self.finish(&ending, &mut told);
        }
        told
    }

    fn ask_person(&mut self) -> Vec<Value> {
        let gap = if self.said.has_words() { "\n\n" } else { "" };
        let Some(words) = self.said.ask_person(self.run) else { return Vec::new() };
        let mut told = Vec::new();
        self.begin(&mut told);
        told.push(self.delta(&json!({"content": format!("{gap}{words}")})));
        self.finish(&Ending::Approval, &mut told);
        told
    }

    fn ending(&self) -> Option<&Ending> {
        self.said.ending.as_ref()
    }

    fn body(&self) -> Value {
        let text = self.said.text();
        let mut message = json!({"role": "assistant", "content": text, "refusal": null});
        if !self.said.calls.is_empty() {
            message["tool_calls"] = self.said.calls.clone().into();
            message["content"] = if text.is_empty() { Value::Null } else { text.into() };
        }
        let finish = self.ending().map_or("stop", Ending::name);
        json!({
            "id": self.id, "object": "chat.completion", "created": self.created, "model": self.model, "usage": usage(self.said.usage),
            "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish}],
        })
    }

    fn farewell(&self) -> Option<&'static str> {
        Some("[DONE]")
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input}, "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::whole_run;
    use super::*;
    use crate::RunState;

    fn completion() -> Completion {
        Completion::new(RunId::new(), 1, "agent:a".to_owned(), true)
    }

    fn chunks(events: &[RunEvent]) -> Vec<Value> {
        let mut completion = completion();
        events.iter().flat_map(|event| completion.hear(event)).collect()
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
        let mut completion = completion();
        for event in &whole_run() {
            completion.hear(event);
        }
        let body = completion.body();
        assert_eq!(body["choices"][0]["message"]["content"], "Let me look.\n\n12 degrees.");
        assert_eq!(body["usage"]["prompt_tokens_details"]["cached_tokens"], 120);
        assert_eq!(completion.ending(), Some(&Ending::Stop));
    }

    #[test]
    fn calls_of_the_clients_tools_are_handed_over() {
        let call = json!({"id": "c1", "type": "function", "function": {"name": "theirs", "arguments": "{}"}});
        let outputs = json!({"text": "", "messages": [], "stop_reason": "tool_calls", "tool_calls": [call]});
        let end = RunEvent::RunEnded { state: RunState::Done, code: 200, message: "Success".to_owned(), outputs: Some(outputs) };
        let told = chunks(std::slice::from_ref(&end));
        assert_eq!(told[1]["choices"][0]["delta"]["tool_calls"][0]["index"], 0);
        assert_eq!(told[2]["choices"][0]["finish_reason"], "tool_calls");
        let mut completion = completion();
        completion.hear(&end);
        let message = completion.body()["choices"][0]["message"].clone();
        assert_eq!((&message["tool_calls"], &message["content"]), (&json!([call]), &Value::Null));
    }

    #[test]
    fn where_a_person_has_to_decide_the_answer_ends() {
        let events = whole_run();
        let at = events.iter().position(|event| matches!(event, RunEvent::ApprovalNeeded { .. })).unwrap();
        let mut completion = completion();
        assert!(completion.ask_person().is_empty(), "nobody is asked yet");
        events[..=at].iter().for_each(|event| drop(completion.hear(event)));
        let told = completion.ask_person();
        assert!(told[0]["choices"][0]["delta"]["content"].as_str().unwrap().contains("https://yard.example/approvals/1"), "{told:?}");
        assert_eq!((told[1]["choices"][0]["finish_reason"].as_str(), completion.ask_person().len()), (Some("stop"), 0));
    }

    #[test]
    fn a_failure_is_an_error() {
        let failed = RunEvent::RunEnded { state: RunState::Failed, code: 424, message: "The model said no.".to_owned(), outputs: None };
        assert_eq!(chunks(&[failed]).last().unwrap()["error"]["message"], "The model said no.");
    }
}
