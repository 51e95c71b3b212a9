//! A conversation as the caller sent it, in words of no API in particular, and the checks that real servers make.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// How the server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    Chat,
    Responses,
    Anthropic,
}

/// What a caller asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    pub api: Api,
    pub model: String,
    pub system: String,
    pub messages: Vec<Said>,
    /// The names of the tools that the model may call.
    pub tools: Vec<String>,
    /// What the answer has to fit, where the caller says so to the API.
    pub schema: Option<Value>,
    pub stream: bool,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Said {
    User(String),
    Assistant { text: String, calls: Vec<Call> },
    Result { call_id: String, content: String },
}

/// A tool call that the model made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    pub id: String,
    pub name: String,
    pub arguments: String,
}

impl Conversation {
    pub(crate) fn read(api: Api, body: &Value) -> Result<Self, String> {
        let mut conversation = Self {
            api,
            model: string(&body["model"]),
            system: String::new(),
            messages: Vec::new(),
            tools: Vec::new(),
            schema: None,
            stream: body["stream"] == true,
        };
        if conversation.model.is_empty() {
            return Err("you must provide a model parameter".to_owned());
        }
        match api {
            Api::Chat => conversation.read_chat(body),
            Api::Responses => conversation.read_responses(body),
            Api::Anthropic => conversation.read_anthropic(body)?,
        }
        conversation.check()?;
        Ok(conversation)
    }

    /// How often the model has spoken.
    pub fn turns(&self) -> usize {
        self.messages.iter().filter(|said| matches!(said, Said::Assistant { .. })).count()
    }

    /// How often the model has spoken since the user last did.
    pub fn turns_since_user(&self) -> usize {
        self.messages
            .iter()
            .rev()
            .take_while(|said| !matches!(said, Said::User(_)))
            .filter(|said| matches!(said, Said::Assistant { .. }))
            .count()
    }

    /// What the user said last.
    pub fn last_user(&self) -> &str {
        self.messages.iter().rev().find_map(|said| if let Said::User(text) = said { Some(text.as_str()) } else { None }).unwrap_or_default()
    }

    /// The results that came since the model last spoke.
    pub fn last_results(&self) -> Vec<&str> {
        let since = self.messages.iter().rev().take_while(|said| !matches!(said, Said::Assistant { .. }));
        let mut results: Vec<&str> =
            since.filter_map(|said| if let Said::Result { content, .. } = said { Some(content.as_str()) } else { None }).collect();
        results.reverse();
        results
    }

    /// A number that is the same whenever the same is asked again.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.model, &self.system, &self.messages).hash(&mut hasher);
        hasher.finish()
    }

    /// A rough count of the prompt's tokens.
    pub(crate) fn size(&self) -> u64 {
        let said = |said: &Said| match said {
            Said::User(text) => text.len(),
            Said::Assistant { text, calls } => text.len() + calls.iter().map(|call| call.arguments.len()).sum::<usize>(),
            Said::Result { content, .. } => content.len(),
        };
        ((self.system.len() + self.messages.iter().map(said).sum::<usize>()) / 4 + 1) as u64
    }

    fn add(&mut self, text: &str, calls: Vec<Call>) {
        if let Some(Said::Assistant { text: before, calls: called }) = self.messages.last_mut() {
            before.push_str(text);
            called.extend(calls);
        } else {
            self.messages.push(Said::Assistant { text: text.to_owned(), calls });
        }
    }

    fn read_chat(&mut self, body: &Value) {
        for message in list(&body["messages"]) {
            let text = content(&message["content"]);
            match message["role"].as_str() {
                Some("system" | "developer") => self.system.push_str(&text),
                Some("assistant") => {
                    let call = |call: &Value| named_call(&call["id"], &call["function"]["name"], string(&call["function"]["arguments"]));
                    let calls = list(&message["tool_calls"]).iter().map(call).collect();
                    self.messages.push(Said::Assistant { text, calls });
                }
                Some("tool") => self.messages.push(Said::Result { call_id: string(&message["tool_call_id"]), content: text }),
                _ => self.messages.push(Said::User(text)),
            }
        }
        self.tools = list(&body["tools"]).iter().map(|tool| string(&tool["function"]["name"])).collect();
        self.schema = body.pointer("/response_format/json_schema/schema").cloned();
    }

    fn read_responses(&mut self, body: &Value) {
        self.system = string(&body["instructions"]);
        for item in list(&body["input"]) {
            match (item["type"].as_str(), item["role"].as_str()) {
                (Some("function_call"), _) => {
                    self.add("", vec![named_call(&item["call_id"], &item["name"], string(&item["arguments"]))]);
                }
                (Some("function_call_output"), _) => {
                    self.messages.push(Said::Result { call_id: string(&item["call_id"]), content: content(&item["output"]) });
                }
                (Some("reasoning"), _) => {}
                (_, Some("assistant")) => self.add(&content(&item["content"]), Vec::new()),
                (_, Some("system" | "developer")) => self.system.push_str(&content(&item["content"])),
                _ => self.messages.push(Said::User(content(&item["content"]))),
            }
        }
        self.tools = list(&body["tools"]).iter().map(|tool| string(&tool["name"])).collect();
        self.schema = body.pointer("/text/format/schema").cloned();
    }

    fn read_anthropic(&mut self, body: &Value) -> Result<(), String> {
        if !body["max_tokens"].is_u64() {
            return Err("max_tokens: Field required".to_owned());
        }
        self.system = content(&body["system"]);
        for message in list(&body["messages"]) {
            let blocks = match &message["content"] {
                Value::String(text) => vec![serde_json::json!({"type": "text", "text": text})],
                blocks => list(blocks).to_vec(),
            };
            let is_assistant = message["role"] == "assistant";
            for block in blocks {
                match block["type"].as_str() {
                    Some("tool_use") => self.add("", vec![named_call(&block["id"], &block["name"], block["input"].to_string())]),
                    Some("tool_result") => {
                        self.messages.push(Said::Result { call_id: string(&block["tool_use_id"]), content: content(&block["content"]) });
                    }
                    Some("text") if string(&block["text"]).trim().is_empty() => {
                        return Err("messages: text content blocks must be non-empty".to_owned());
                    }
                    Some("text") if is_assistant => self.add(&string(&block["text"]), Vec::new()),
                    Some("text") => self.messages.push(Said::User(string(&block["text"]))),
                    _ => {}
                }
            }
        }
        self.tools = list(&body["tools"]).iter().map(|tool| string(&tool["name"])).collect();
        self.schema = body.pointer("/output_config/format/schema").cloned();
        Ok(())
    }

    /// Every call has its result before anything else is said, and no result is without its call.
    fn check(&self) -> Result<(), String> {
        let mut open: Vec<&str> = Vec::new();
        for said in &self.messages {
            match said {
                Said::Result { call_id, .. } => match open.iter().position(|id| id == call_id) {
                    Some(at) => drop(open.remove(at)),
                    None => return Err(format!("the result of `{call_id}` has no call before it")),
                },
                _ if !open.is_empty() => return Err(format!("tool calls without a result: {}", open.join(", "))),
                Said::Assistant { calls, .. } => open = calls.iter().map(|call| call.id.as_str()).collect(),
                Said::User(_) => {}
            }
        }
        let mut tools = self.tools.clone();
        tools.sort_unstable();
        match (self.messages.is_empty(), tools.windows(2).find(|pair| pair[0] == pair[1])) {
            (true, _) => Err("there is no message".to_owned()),
            (_, Some(pair)) => Err(format!("tool names must be unique: `{}`", pair[0])),
            _ if !open.is_empty() => Err(format!("tool calls without a result: {}", open.join(", "))),
            _ => Ok(()),
        }
    }
}

fn named_call(id: &Value, name: &Value, arguments: String) -> Call {
    Call { id: string(id), name: string(name), arguments }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Text, or the text of its parts.
fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| string(&part["text"])).collect(),
        _ => String::new(),
    }
}
