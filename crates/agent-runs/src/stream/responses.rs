//! Responses of OpenAI, in which an agent is a model: each turn in which it says something is a message among the items of its output, and
//! calls of the client's tools are items too.

use kernel::RunId;
use serde_json::{Value, json};
use uuid::Uuid;

use super::model::{Ending, ModelAnswer, Said};
use crate::RunEvent;

/// What the request says that the answer repeats.
#[derive(Clone, Debug, Default)]
pub struct ResponseFrame {
    pub created: i64,
    pub model: String,
    pub instructions: Option<String>,
    pub previous: Option<String>,
    pub tools: Value,
    pub metadata: Value,
}

/// The name of a run as a response.
pub fn response_id(run: RunId) -> String {
    format!("{PREFIX}{}", run.uuid().simple())
}

/// The run that a response was.
pub fn run_of_response(id: &str) -> Option<RunId> {
    Uuid::try_parse(id.strip_prefix(PREFIX)?).ok().map(RunId::from)
}

const PREFIX: &str = "resp_";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Message,
    Reasoning,
}

/// Something that the agent says, or said.
#[derive(Clone, Debug)]
struct Item {
    kind: Kind,
    id: String,
    /// Its place in the stream.
    index: usize,
    turn: u32,
    text: String,
}

impl Item {
    fn whole(&self, status: &str) -> Value {
        match self.kind {
            Kind::Message => message(&self.id, &self.text, status),
            Kind::Reasoning => json!({"type": "reasoning", "id": self.id, "summary": [self.part()], "status": status}),
        }
    }

    /// The item before anything was said in it.
    fn empty(&self) -> Value {
        match self.kind {
            Kind::Message => json!({"type": "message", "id": self.id, "role": "assistant", "status": "in_progress", "content": []}),
            Kind::Reasoning => json!({"type": "reasoning", "id": self.id, "summary": [], "status": "in_progress"}),
        }
    }

    fn part(&self) -> Value {
        match self.kind {
            Kind::Message => output_text(&self.text),
            Kind::Reasoning => json!({"type": "summary_text", "text": self.text}),
        }
    }
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn message(id: &str, text: &str, status: &str) -> Value {
    json!({"type": "message", "id": id, "role": "assistant", "status": status, "content": [output_text(text)]})
}

/// A response, in events and whole.
#[derive(Debug)]
pub struct Response {
    run: RunId,
    frame: ResponseFrame,
    said: Said,
    /// What was said so far, without what a turn said that was cut off.
    items: Vec<Item>,
    /// Whether the last of them goes on.
    is_open: bool,
    indexes: usize,
    events: u64,
}

impl Response {
    pub fn new(run: RunId, frame: ResponseFrame) -> Self {
        Self { run, frame, said: Said::default(), items: Vec::new(), is_open: false, indexes: 0, events: 0 }
    }

    /// A response that no run gave, and its events.
    pub fn of_words(words: &str, frame: ResponseFrame) -> (Self, Vec<Value>) {
        let mut response = Self::new(RunId::new(), frame);
        let mut told = response.begin();
        response.say(Kind::Message, 1, words, &mut told);
        response.said = Said::only(words.to_owned());
        response.finish(&Ending::Stop, &mut told);
        (response, told)
    }

    fn event(&mut self, kind: &str, mut fields: Value) -> Value {
        fields["type"] = kind.into();
        fields["sequence_number"] = self.events.into();
        self.events += 1;
        fields
    }

    /// What every stream begins with.
    fn begin(&mut self) -> Vec<Value> {
        if self.events > 0 {
            return Vec::new();
        }
        ["response.created", "response.in_progress"].map(|kind| self.event(kind, json!({"response": self.whole("in_progress")}))).into()
    }

    fn say(&mut self, kind: Kind, turn: u32, text: &str, told: &mut Vec<Value>) {
        let goes_on = self.is_open && self.items.last().is_some_and(|item| item.kind == kind && item.turn == turn);
        let mut text = text.to_owned();
        if !goes_on {
            self.close("completed", told);
            // Clients put the texts of all messages together, and those of two turns shall not run into each other.
            if kind == Kind::Message && self.items.iter().any(|item| item.kind == kind) {
                text.insert_str(0, "\n\n");
            }
            self.open(kind, turn, told);
        }
        let Some(item) = self.items.last_mut() else { return };
        item.text.push_str(&text);
        let (id, index) = (item.id.clone(), item.index);
        told.push(match kind {
            Kind::Message => self.event(
                "response.output_text.delta",
                json!({"item_id": id, "output_index": index, "content_index": 0, "delta": text, "logprobs": []}),
            ),
            Kind::Reasoning => self.event(
                "response.reasoning_summary_text.delta",
                json!({"item_id": id, "output_index": index, "summary_index": 0, "delta": text}),
            ),
        });
    }

    fn open(&mut self, kind: Kind, turn: u32, told: &mut Vec<Value>) {
        let (index, prefix) = (self.indexes, if kind == Kind::Message { "msg" } else { "rs" });
        self.indexes += 1;
        let item = Item { kind, id: format!("{prefix}_{}_{index}", self.run.uuid().simple()), index, turn, text: String::new() };
        told.push(self.event("response.output_item.added", json!({"output_index": index, "item": item.empty()})));
        told.push(match kind {
            Kind::Message => self.event(
                "response.content_part.added",
                json!({"item_id": item.id, "output_index": index, "content_index": 0, "part": item.part()}),
            ),
            Kind::Reasoning => self.event(
                "response.reasoning_summary_part.added",
                json!({"item_id": item.id, "output_index": index, "summary_index": 0, "part": item.part()}),
            ),
        });
        self.items.push(item);
        self.is_open = true;
    }

    fn close(&mut self, status: &str, told: &mut Vec<Value>) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let Some(item) = self.items.last().cloned() else { return };
        let Item { kind, id, index, text, .. } = &item;
        let (text_done, part_done, place) = match kind {
            Kind::Message => ("response.output_text.done", "response.content_part.done", "content_index"),
            Kind::Reasoning => ("response.reasoning_summary_text.done", "response.reasoning_summary_part.done", "summary_index"),
        };
        let mut fields = json!({"item_id": id, "output_index": index, "text": text});
        fields[place] = 0.into();
        if *kind == Kind::Message {
            fields["logprobs"] = json!([]);
        }
        told.push(self.event(text_done, fields));
        let mut fields = json!({"item_id": id, "output_index": index, "part": item.part()});
        fields[place] = 0.into();
        told.push(self.event(part_done, fields));
        told.push(self.event("response.output_item.done", json!({"output_index": index, "item": item.whole(status)})));
    }

    /// The calls that the client has to make, as items.
    fn calls(&self) -> Vec<Value> {
        let call = |call: &Value| {
            let (id, function) = (&call["id"], &call["function"]);
            let item = format!("fc_{}", id.as_str().unwrap_or_default());
            json!({"type": "function_call", "id": item, "call_id": id, "name": function["name"], "arguments": function["arguments"], "status": "completed"})
        };
        self.said.calls.iter().map(call).collect()
    }

    fn call(&mut self, call: &Value, told: &mut Vec<Value>) {
        let (index, mut begun) = (self.indexes, call.clone());
        self.indexes += 1;
        begun["arguments"] = "".into();
        begun["status"] = "in_progress".into();
        let (id, name, arguments) = (&call["id"], &call["name"], &call["arguments"]);
        told.push(self.event("response.output_item.added", json!({"output_index": index, "item": begun})));
        let delta = json!({"item_id": id, "output_index": index, "delta": arguments});
        told.push(self.event("response.function_call_arguments.delta", delta));
        let done = json!({"item_id": id, "output_index": index, "name": name, "arguments": arguments});
        told.push(self.event("response.function_call_arguments.done", done));
        told.push(self.event("response.output_item.done", json!({"output_index": index, "item": call})));
    }

    fn finish(&mut self, ending: &Ending, told: &mut Vec<Value>) {
        self.close("completed", told);
        for call in self.calls() {
            self.call(&call, told);
        }
        let kind = match ending {
            Ending::Failed { .. } => "response.failed",
            Ending::Length => "response.incomplete",
            Ending::Stop | Ending::ToolCalls | Ending::Approval => "response.completed",
        };
        told.push(self.event(kind, json!({"response": self.body()})));
    }

    fn output(&self) -> Vec<Value> {
        let said = match &self.said.structured {
            Some(outputs) => vec![message(&format!("msg_{}", self.run.uuid().simple()), &outputs.to_string(), "completed")],
            None => self.items.iter().map(|item| item.whole("completed")).collect(),
        };
        said.into_iter().chain(self.calls()).collect()
    }

    fn whole(&self, status: &str) -> Value {
        let (usage, frame) = (self.said.usage, &self.frame);
        let is_over = self.said.ending.is_some();
        let usage = json!({
            "input_tokens": usage.input, "input_tokens_details": {"cached_tokens": usage.cached_input, "cache_write_tokens": usage.cache_write},
            "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.input + usage.output,
        });
        let error = match &self.said.ending {
            Some(Ending::Failed { message, .. }) => json!({"code": "server_error", "message": message}),
            _ => Value::Null,
        };
        let cut = if status == "incomplete" { json!({"reason": "max_output_tokens"}) } else { Value::Null };
        json!({
            "id": response_id(self.run), "object": "response", "created_at": frame.created, "status": status, "background": false,
            "error": error, "incomplete_details": cut, "instructions": frame.instructions, "max_output_tokens": null, "model": frame.model,
            "output": if is_over { self.output() } else { Vec::new() }, "parallel_tool_calls": true, "previous_response_id": frame.previous,
            "reasoning": {"effort": null, "summary": null}, "store": true, "temperature": null, "text": {"format": {"type": "text"}},
            "tool_choice": "auto", "tools": frame.tools, "top_p": null, "truncation": "disabled",
            "usage": if is_over { usage } else { Value::Null }, "metadata": frame.metadata,
        })
    }
}

impl ModelAnswer for Response {
    fn hear(&mut self, event: &RunEvent) -> Vec<Value> {
        if self.said.ending.is_some() {
            return Vec::new();
        }
        let mut told = self.begin();
        self.said.hear(event);
        match event {
            RunEvent::TurnStarted { turn, .. } => {
                self.close("incomplete", &mut told);
                self.items.retain(|item| item.turn != *turn);
            }
            RunEvent::TextDelta { turn, text } => self.say(Kind::Message, *turn, text, &mut told),
            RunEvent::ReasoningDelta { turn, text } => self.say(Kind::Reasoning, *turn, text, &mut told),
            RunEvent::TextEnd { .. } | RunEvent::ToolCallStarted { .. } => self.close("completed", &mut told),
            _ => {}
        }
        if let Some(ending) = self.said.ending.clone() {
            self.finish(&ending, &mut told);
        }
        told
    }

    fn ask_person(&mut self) -> Vec<Value> {
        let Some(words) = self.said.ask_person(self.run) else { return Vec::new() };
        let mut told = self.begin();
        self.say(Kind::Message, u32::MAX, &words, &mut told);
        self.finish(&Ending::Approval, &mut told);
        told
    }

    fn ending(&self) -> Option<&Ending> {
        self.said.ending.as_ref()
    }

    fn body(&self) -> Value {
        self.whole(match self.ending() {
            None => "in_progress",
            Some(Ending::Failed { .. }) => "failed",
            Some(Ending::Length) => "incomplete",
            Some(Ending::Stop | Ending::ToolCalls | Ending::Approval) => "completed",
        })
    }

    fn piece(&self, value: &Value) -> String {
        format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::whole_run;
    use super::*;
    use crate::RunState;

    fn told(events: &[RunEvent]) -> (Response, Vec<Value>) {
        let mut response = Response::new(RunId::new(), ResponseFrame::default());
        let told = events.iter().flat_map(|event| response.hear(event)).collect();
        (response, told)
    }

    fn kinds(told: &[Value]) -> Vec<&str> {
        told.iter().map(|event| event["type"].as_str().unwrap()).collect()
    }

    #[test]
    fn what_begins_also_ends_and_is_numbered() {
        let (response, told) = told(&whole_run());
        let count = |kind: &str| kinds(&told).iter().filter(|other| **other == kind).count();
        for (begins, ends) in [
            ("response.output_item.added", "response.output_item.done"),
            ("response.content_part.added", "response.content_part.done"),
            ("response.reasoning_summary_part.added", "response.reasoning_summary_part.done"),
            ("response.created", "response.completed"),
        ] {
            assert!(count(begins) > 0 && count(begins) == count(ends), "{begins}");
        }
        assert!(told.iter().enumerate().all(|(at, event)| event["sequence_number"] == at));
        let body = &told.last().unwrap()["response"];
        assert_eq!(*body, response.body());
        let output = body["output"].as_array().unwrap();
        let texts: Vec<&Value> = output.iter().filter(|item| item["type"] == "message").map(|item| &item["content"][0]["text"]).collect();
        assert_eq!(texts, ["Let me look.", "\n\n12 degrees."], "what a turn said that was cut off does not count");
        assert_eq!((&output[0]["type"], &output[0]["summary"][0]["text"]), (&json!("reasoning"), &json!("Two cities.")));
        assert_eq!((&body["usage"]["input_tokens"], &body["status"]), (&json!(200), &json!("completed")));
        assert_eq!(run_of_response(body["id"].as_str().unwrap()), Some(response.run));
    }

    #[test]
    fn calls_of_the_clients_tools_are_items() {
        let call = json!({"id": "c1", "type": "function", "function": {"name": "theirs", "arguments": "{}"}});
        let outputs = json!({"text": "", "messages": [], "stop_reason": "tool_calls", "tool_calls": [call]});
        let (_, told) =
            told(&[RunEvent::RunEnded { state: RunState::Done, code: 200, message: "Success".to_owned(), outputs: Some(outputs) }]);
        let item = &told.last().unwrap()["response"]["output"][0];
        assert_eq!(
            (&item["type"], &item["call_id"], &item["name"], &item["arguments"]),
            (&json!("function_call"), &json!("c1"), &json!("theirs"), &json!("{}"))
        );
        assert!(kinds(&told).contains(&"response.function_call_arguments.done"));
    }

    #[test]
    fn failures_and_limits_have_their_own_ends() {
        let end = |state, outputs| RunEvent::RunEnded { state, code: 424, message: "no".to_owned(), outputs };
        let (_, failed) = told(&[end(RunState::Failed, None)]);
        assert_eq!(
            (kinds(&failed).last(), &failed.last().unwrap()["response"]["error"]["message"]),
            (Some(&"response.failed"), &json!("no"))
        );
        let (_, cut) = told(&[end(RunState::Limit, Some(json!({"stop_reason": "limit"})))]);
        assert_eq!((kinds(&cut).last(), &cut.last().unwrap()["response"]["status"]), (Some(&"response.incomplete"), &json!("incomplete")));
    }
}
