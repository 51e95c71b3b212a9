//! Traces of ended runs for a collector: OTLP over HTTP, in JSON, with the names that OpenTelemetry gives to generative AI. They hold times,
//! names and numbers, and nothing that was said.

use std::time::Duration;

use bytes::Bytes;
use egress::{Egress, Request};
use http::Method;
use http::header::{CONTENT_TYPE, HeaderValue};
use kernel::{Timestamp, hex};
use serde_json::{Value, json};
use url::Url;

use crate::AgentRuns;
use crate::conversation::OutcomeKind;
use crate::journal::{self, Entry, JournalRow};
use crate::rows::{AgentRun, End};
use crate::{RunState, Used};

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
            let model = crate::rows::config(&this.0.parts.db, run.project, run.id).await.ok().flatten();
            let model = model.and_then(|stored| stored.pointer("/data/model/name").and_then(Value::as_str).map(str::to_owned));
            let body = Bytes::from(traces(&run, &rows, &end, &used, model.as_deref().unwrap_or_default(), now).to_string());
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

fn attribute(key: &str, value: Value) -> Value {
    let value = match value {
        Value::String(text) => json!({"stringValue": text}),
        Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
        other => json!({"intValue": other.to_string()}),
    };
    json!({"key": key, "value": value})
}

fn nanos(time: Timestamp) -> String {
    format!("{}000", time.micros())
}

/// The request of a trace: the run, and below it its turns and calls.
fn traces(run: &AgentRun, rows: &[JournalRow], end: &End, used: &Used, model: &str, now: Timestamp) -> Value {
    let trace = hex::encode(run.id.uuid().as_bytes());
    let id = |number: i64| {
        hex::encode(&(u64::from_be_bytes(std::array::from_fn(|at| run.id.uuid().as_bytes()[8 + at])) ^ number.unsigned_abs()).to_be_bytes())
    };
    let is_failed = matches!(end.state, RunState::Failed | RunState::Limit);
    let mut attributes = vec![
        attribute("gen_ai.operation.name", json!("invoke_agent")),
        attribute("gen_ai.request.model", json!(model)),
        attribute("gen_ai.usage.input_tokens", json!(used.tokens.input)),
        attribute("gen_ai.usage.output_tokens", json!(used.tokens.output)),
        attribute("toolyard.project.id", json!(run.project.to_string())),
        attribute("toolyard.workflow.id", json!(run.workflow.to_string())),
        attribute("toolyard.run.state", json!(end.state.name())),
        attribute("toolyard.cost.usd", json!(used.usd)),
    ];
    attributes.extend(run.session.as_ref().map(|session| attribute("gen_ai.conversation.id", json!(session))));
    attributes.extend(run.agent.map(|agent| attribute("gen_ai.agent.id", json!(agent.to_string()))));
    let mut spans = vec![json!({
        "traceId": trace, "spanId": id(0), "name": "invoke_agent", "kind": 1,
        "startTimeUnixNano": nanos(run.created_at), "endTimeUnixNano": nanos(now),
        "attributes": attributes, "status": {"code": if is_failed { 2 } else { 1 }},
    })];
    for row in rows {
        let (Some(began), Some(ended)) = (row.began_at, row.ended_at) else { continue };
        let (name, attributes, is_failed) = match &row.entry {
            Entry::Turn { reply, .. } => {
                let attributes = vec![
                    attribute("gen_ai.operation.name", json!("chat")),
                    attribute("gen_ai.request.model", json!(model)),
                    attribute("gen_ai.usage.input_tokens", json!(reply.usage.input)),
                    attribute("gen_ai.usage.output_tokens", json!(reply.usage.output)),
                ];
                (format!("chat {model}"), attributes, false)
            }
            Entry::Call { call } => {
                let attributes = vec![
                    attribute("gen_ai.operation.name", json!("execute_tool")),
                    attribute("gen_ai.tool.name", json!(call.name)),
                    attribute("gen_ai.tool.call.id", json!(call.id)),
                ];
                let is_failed = row.outcome.as_ref().is_some_and(|outcome| outcome.kind != OutcomeKind::Done);
                (format!("execute_tool {}", call.name), attributes, is_failed)
            }
            Entry::Begun { .. } | Entry::Unfit { .. } | Entry::Stubbed => continue,
        };
        spans.push(json!({
            "traceId": trace, "spanId": id(row.number), "parentSpanId": id(0), "name": name, "kind": 3,
            "startTimeUnixNano": nanos(began), "endTimeUnixNano": nanos(ended),
            "attributes": attributes, "status": {"code": if is_failed { 2 } else { 1 }},
        }));
    }
    json!({"resourceSpans": [{
        "resource": {"attributes": [attribute("service.name", json!("toolyard"))]},
        "scopeSpans": [{"scope": {"name": "toolyard.agent-runs"}, "spans": spans}],
    }]})
}

#[cfg(test)]
mod tests {
    use kernel::{ArtifactId, KeyId, ProjectId, RevisionId, RunId};
    use models::{Reply, ToolCall, Usage};

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
        let sent = traces(&run, &rows, &end, &Used { tokens: usage, ..Used::default() }, "m", at(9));
        let spans = sent.pointer("/resourceSpans/0/scopeSpans/0/spans").unwrap().as_array().unwrap();
        let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["invoke_agent", "chat m", "execute_tool pay"]);
        assert!(spans.iter().all(|span| span["traceId"].as_str().unwrap().len() == 32 && span["spanId"].as_str().unwrap().len() == 16));
        assert_eq!((&spans[2]["parentSpanId"], &spans[2]["status"]["code"]), (&spans[0]["spanId"], &json!(2)));
        assert_eq!((&spans[1]["startTimeUnixNano"], &spans[1]["endTimeUnixNano"]), (&json!("2000"), &json!("3000")));
        assert!(!sent.to_string().contains("secret words"));
    }
}
