//! Traces of ended runs for a collector: OTLP over HTTP, in JSON, with the names that OpenTelemetry gives to generative AI. They hold times,
//! names and numbers, and nothing that was said.

use std::time::Duration;

use bytes::Bytes;
use egress::{Egress, Request};
use http::Method;
use http::header::{CONTENT_TYPE, HeaderValue};
use kernel::{Scope, Timestamp, hex};
use models::{Api, Stop, Usage};
use serde_json::{Value, json};
use url::Url;
use workflows::Family;

use crate::config::{AgentConfig, ModelConfig};
use crate::conversation::OutcomeKind;
use crate::journal::{self, Entry, JournalRow};
use crate::rows::{self, AgentRun, End};
use crate::{AgentRuns, RunState, Used};

const LIMIT: Duration = Duration::from_secs(10);

/// Where traces go.
#[derive(Clone, Debug)]
pub struct Collector {
    /// The address that the operator gave; `/v1/traces` is below it.
    pub url: Url,
    /// May reach that address, which may be a private one.
    pub egress: Egress,
}

impl AgentRuns {
    /// Sends the spans of an ended run to the collector, where there is one. Nobody waits for it, and a trace that is lost is only logged.
    pub(crate) fn trace(&self, run: &AgentRun, end: &End, used: &Used, now: Timestamp) {
        let Some(collector) = self.0.parts.collector.clone() else { return };
        let (this, run, end, used) = (self.clone(), run.clone(), end.clone(), *used);
        self.0.tasks.spawn(async move {
            let rows = match journal::read(&this.0.parts.db, &this.0.parts.sealer, run.project, run.id).await {
                Ok(rows) => rows,
                Err(error) => return tracing::warn!(run = %run.id, %error, "a run could not be read for its trace"),
            };
            let stored = rows::config(&this.0.parts.db, run.project, run.id).await.ok().flatten().unwrap_or_default();
            let model = AgentConfig::read(&stored["data"]).ok().map(|config| config.model);
            let scope = Scope::operator(run.project);
            let workflow = this.0.parts.workflows.artifact(scope, Family::Workflow, run.workflow).await.ok();
            let traced = Traced { run: &run, end: &end, used, now, model: model.as_ref(), agent: workflow.map(|workflow| workflow.slug) };
            let body = Bytes::from(traced.request(&rows).to_string());
            let mut url = collector.url.clone();
            url.set_path(&format!("{}/v1/traces", collector.url.path().trim_end_matches('/')));
            let request = Request::new(Method::POST, url).header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            match collector.egress.send(request.body(body).timeout(LIMIT)).await {
                Ok(answer) if answer.status.is_success() => {}
                Ok(answer) => tracing::warn!(run = %run.id, status = answer.status.as_u16(), "the collector did not take a trace"),
                Err(error) => tracing::warn!(run = %run.id, %error, "the collector could not be reached"),
            }
        });
    }
}

fn attribute(key: &str, value: impl Into<Value>) -> Value {
    json!({"key": key, "value": any_value(value.into())})
}

/// A value as OTLP writes it in JSON, where whole numbers are text.
fn any_value(value: Value) -> Value {
    match value {
        Value::String(text) => json!({"stringValue": text}),
        Value::Bool(is_so) => json!({"boolValue": is_so}),
        Value::Array(values) => json!({"arrayValue": {"values": values.into_iter().map(any_value).collect::<Vec<_>>()}}),
        Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
        other => json!({"intValue": other.to_string()}),
    }
}

fn nanos(time: Timestamp) -> String {
    format!("{}000", time.micros())
}

/// As OTLP numbers them.
#[derive(Clone, Copy)]
enum SpanKind {
    Internal = 1,
    Client = 3,
}

/// A run that is told to the collector.
struct Traced<'a> {
    run: &'a AgentRun,
    end: &'a End,
    used: Used,
    now: Timestamp,
    model: Option<&'a ModelConfig>,
    /// The slug of its workflow.
    agent: Option<String>,
}

impl Traced<'_> {
    /// The request of a trace: the run, and below it its turns and calls.
    fn request(&self, rows: &[JournalRow]) -> Value {
        let mut spans = vec![self.whole()];
        spans.extend(rows.iter().filter_map(|row| self.step(row)));
        let version = env!("CARGO_PKG_VERSION");
        json!({"resourceSpans": [{
            "resource": {"attributes": [attribute("service.name", "toolyard"), attribute("service.version", version)]},
            "scopeSpans": [{"scope": {"name": "toolyard.agent-runs", "version": version}, "spans": spans}],
        }]})
    }

    /// The id of a step's span; that of the run has the number 0.
    fn id(&self, number: i64) -> String {
        let bytes = self.run.id.uuid().into_bytes();
        let own = u64::from_be_bytes(std::array::from_fn(|at| bytes[8 + at]));
        hex::encode(&(own ^ number.unsigned_abs()).to_be_bytes())
    }

    fn span(
        &self,
        number: i64,
        kind: SpanKind,
        name: &str,
        times: (Timestamp, Timestamp),
        mut attributes: Vec<Value>,
        error: Option<String>,
    ) -> Value {
        let status = if error.is_some() { json!({"code": 2}) } else { json!({"code": 1}) };
        attributes.extend(error.map(|error| attribute("error.type", error)));
        let mut span = json!({
            "traceId": hex::encode(self.run.id.uuid().as_bytes()), "spanId": self.id(number), "name": name, "kind": kind as u8,
            "startTimeUnixNano": nanos(times.0), "endTimeUnixNano": nanos(times.1), "attributes": attributes, "status": status,
        });
        if number != 0 {
            span["parentSpanId"] = self.id(0).into();
        }
        span
    }

    fn whole(&self) -> Value {
        let (run, end) = (self.run, self.end);
        let mut attributes = vec![
            attribute("gen_ai.operation.name", "invoke_agent"),
            attribute("gen_ai.agent.id", run.workflow.to_string()),
            attribute("gen_ai.agent.version", run.revision.to_string()),
            attribute("toolyard.project.id", run.project.to_string()),
            attribute("toolyard.run.id", run.id.to_string()),
            attribute("toolyard.run.state", end.state.name()),
            attribute("toolyard.run.turns", self.used.turns),
            attribute("toolyard.run.tool_calls", self.used.tool_calls),
            attribute("toolyard.cost.usd", self.used.usd),
        ];
        attributes.extend(self.agent.as_ref().map(|name| attribute("gen_ai.agent.name", name.as_str())));
        attributes.extend(run.session.as_ref().map(|session| attribute("gen_ai.conversation.id", session.as_str())));
        attributes.extend(self.asked());
        attributes.extend(tokens(self.used.tokens));
        let name = self.agent.as_ref().map_or_else(|| "invoke_agent".to_owned(), |name| format!("invoke_agent {name}"));
        let error = match end.state {
            RunState::Failed => Some(end.code.to_string()),
            RunState::Limit | RunState::Cancelled => Some(end.state.name().to_owned()),
            _ => None,
        };
        self.span(0, SpanKind::Internal, &name, (run.created_at, self.now), attributes, error)
    }

    /// Which model is asked, and whose API it speaks.
    fn asked(&self) -> Vec<Value> {
        let Some(model) = self.model else { return Vec::new() };
        let provider = match model.api {
            Api::OpenaiChat | Api::OpenaiResponses => "openai",
            Api::Anthropic => "anthropic",
        };
        vec![attribute("gen_ai.provider.name", provider), attribute("gen_ai.request.model", model.name.as_str())]
    }

    /// The span of a turn or a call that has ended.
    fn step(&self, row: &JournalRow) -> Option<Value> {
        let times = (row.began_at?, row.ended_at?);
        match &row.entry {
            Entry::Turn { reply, .. } => {
                let mut attributes = vec![
                    attribute("gen_ai.operation.name", "chat"),
                    attribute("gen_ai.request.stream", true),
                    attribute("gen_ai.response.finish_reasons", vec![finish_reason(reply.stop)]),
                ];
                attributes.extend(self.asked());
                attributes.extend(tokens(reply.usage));
                if let Some(url) = self.model.map(|model| &model.url) {
                    attributes.extend(url.host_str().map(|host| attribute("server.address", host)));
                    attributes.extend(url.port_or_known_default().map(|port| attribute("server.port", port)));
                }
                let name = self.model.map_or_else(|| "chat".to_owned(), |model| format!("chat {}", model.name));
                Some(self.span(row.number, SpanKind::Client, &name, times, attributes, None))
            }
            Entry::Call { call } => {
                let attributes = vec![
                    attribute("gen_ai.operation.name", "execute_tool"),
                    attribute("gen_ai.tool.name", call.name.as_str()),
                    attribute("gen_ai.tool.call.id", call.id.as_str()),
                    attribute("gen_ai.tool.type", "function"),
                ];
                let error = row.outcome.as_ref().and_then(|outcome| match outcome.kind {
                    OutcomeKind::Done => None,
                    OutcomeKind::Failed => Some("failed"),
                    OutcomeKind::Denied => Some("denied"),
                    OutcomeKind::Unknown => Some("unknown"),
                    OutcomeKind::NotMade => Some("not_made"),
                });
                let name = format!("execute_tool {}", call.name);
                Some(self.span(row.number, SpanKind::Internal, &name, times, attributes, error.map(str::to_owned)))
            }
            Entry::Begun { .. } | Entry::Unfit { .. } | Entry::Stubbed => None,
        }
    }
}

fn tokens(usage: Usage) -> [Value; 5] {
    [
        attribute("gen_ai.usage.input_tokens", usage.input),
        attribute("gen_ai.usage.output_tokens", usage.output),
        attribute("gen_ai.usage.cache_read.input_tokens", usage.cached_input),
        attribute("gen_ai.usage.cache_creation.input_tokens", usage.cache_write),
        attribute("gen_ai.usage.reasoning.output_tokens", usage.reasoning),
    ]
}

fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::End => "stop",
        Stop::ToolCalls => "tool_call",
        Stop::Length => "length",
        Stop::Refusal => "content_filter",
        Stop::Other => "other",
    }
}

#[cfg(test)]
mod tests {
    use kernel::{ArtifactId, KeyId, ProjectId, RevisionId, RunId};
    use models::{Reply, ToolCall};

    use super::*;
    use crate::conversation::{CallOutcome, Purpose};

    #[test]
    fn a_run_is_a_trace_of_turns_and_calls_and_holds_no_words() {
        let at = Timestamp::from_micros;
        let run = AgentRun {
            id: RunId::new(),
            project: ProjectId::new(),
            workflow: ArtifactId::new(),
            revision: RevisionId::new(),
            key: KeyId::new(),
            user: None,
            end_user: None,
            state: RunState::Running,
            session: Some("s1".to_owned()),
            delivery: None,
            agent: None,
            is_test: false,
            approval: None,
            used: Used::default(),
            code: None,
            message: None,
            outputs: None,
            inputs: json!({"message": "secret words"}),
            created_at: at(1),
            updated_at: at(1),
            ended_at: None,
            depth: 0,
            tries: 0,
        };
        let call = ToolCall { id: "c1".to_owned(), name: "pay".to_owned(), arguments: "{\"to\": \"secret words\"}".to_owned() };
        let usage = Usage { input: 7, output: 3, ..Usage::default() };
        let reply = Reply { text: "secret words".to_owned(), calls: vec![call.clone()], usage, ..Reply::default() };
        let row =
            |number, entry, outcome| JournalRow { number, entry, outcome, began_at: Some(at(number)), ended_at: Some(at(number + 1)) };
        let rows = [
            row(2, Entry::Turn { purpose: Purpose::Work, reply }, None),
            row(3, Entry::Call { call }, Some(CallOutcome::failed("secret words"))),
        ];
        let end = End { state: RunState::Done, code: 200, message: "secret words".to_owned(), outputs: Some(json!("secret words")) };
        let data = json!({"kind": "agent", "instructions": "secret words", "model": {"api": "openai_chat", "name": "m"}});
        let model = AgentConfig::read(&data).unwrap().model;
        let used = Used { tokens: usage, ..Used::default() };
        let traced = Traced { run: &run, end: &end, used, now: at(9), model: Some(&model), agent: Some("payer".to_owned()) };
        let sent = traced.request(&rows);
        let spans = sent.pointer("/resourceSpans/0/scopeSpans/0/spans").unwrap().as_array().unwrap();
        let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["invoke_agent payer", "chat m", "execute_tool pay"]);
        assert!(spans.iter().all(|span| span["traceId"].as_str().unwrap().len() == 32 && span["spanId"].as_str().unwrap().len() == 16));
        assert_eq!((&spans[2]["parentSpanId"], &spans[2]["status"]["code"]), (&spans[0]["spanId"], &json!(2)));
        let kinds: Vec<&Value> = spans.iter().map(|span| &span["kind"]).collect();
        assert_eq!(kinds, [1, 3, 1], "the model is a service, the run and its tools are ours");
        assert_eq!((&spans[1]["startTimeUnixNano"], &spans[1]["endTimeUnixNano"]), (&json!("2000"), &json!("3000")));
        assert!(!sent.to_string().contains("secret words"));
    }
}
