//! How a run ends: with an answer that fits, with what it knows when it may use no more, or with calls for whoever asks.

use kernel::Budget;
use kernel::schema::{self, Schema};
use models::{Stop, ToolCall};
use serde_json::{Value, json};
use work::LARGE;

use crate::conversation::handed_over_id;
use crate::drive::{Driver, Halt, Unfilled, failed, session_of};
use crate::events::RunState;
use crate::journal::{Entry, JournalRow, SessionPart, Writing};
use crate::prompt::{self, outputs, stop_reason, structured};
use crate::rows::End;

/// The code of a run that used up what it may, or whose answer is of no use: it would end like that again.
const UNFINISHED: i64 = 422;

impl Driver<'_> {
    pub(crate) async fn conclude(&mut self) -> Result<(), Halt> {
        let answer = self.conversation.answer().clone();
        if answer.stop == Stop::Refusal {
            let said = if answer.text.is_empty() { "it gave no reason".to_owned() } else { answer.text };
            return self.end(failed(UNFINISHED, format!("The model declined: {said}"))).await;
        }
        if self.config.outputs.is_none() {
            let outputs = outputs(&answer, self.conversation.own_messages(), stop_reason(answer.stop));
            return self.end(End { state: RunState::Done, code: 200, message: "Success".to_owned(), outputs: Some(outputs) }).await;
        }
        match self.fits(&answer.text).await? {
            Ok(outputs) => self.end(End { state: RunState::Done, code: 200, message: "Success".to_owned(), outputs: Some(outputs) }).await,
            Err(why) if self.conversation.times_unfit() == 0 => {
                self.conversation.unfit(&why);
                let now = self.runs.0.parts.clock.now();
                let entry = Entry::Unfit { why };
                let row = JournalRow { number: self.next_step, entry, outcome: None, began_at: Some(now), ended_at: Some(now) };
                self.next_step += 1;
                self.write(Writing { new: vec![row], ended: Vec::new() }).await
            }
            Err(why) => {
                let why = format!("The model's answer does not fit `schemas.outputs`, also when it was asked again: {why}");
                self.end(failed(UNFINISHED, why)).await
            }
        }
    }

    /// The outputs that an answer holds, or why it does not fit them.
    async fn fits(&self, text: &str) -> Result<Result<Value, String>, Halt> {
        let Some(schema) = self.config.outputs.clone() else { return Ok(Ok(Value::Null)) };
        let (text, size) = (text.to_owned(), schema::weigh(&schema, LARGE).saturating_add(text.len()));
        let check = move |_: &Budget| {
            let compiled = Schema::compile(&schema).map_err(|error| Unfilled(error.to_string()))?;
            Ok(structured(&text, &compiled))
        };
        Ok(match self.runs.0.parts.workers.run(self.run.project, size, check).await {
            Ok(fits) => fits,
            Err(Unfilled(why)) => Err(why),
        })
    }

    pub(crate) async fn stop(&mut self, limit: &str) -> Result<(), Halt> {
        let answer = self.conversation.answer().clone();
        let message = format!("The run has used up the {limit} that it may use. What it knows by then is in its outputs.");
        let outputs = match self.config.outputs {
            Some(_) => self.fits(&answer.text).await?.unwrap_or_else(|_| json!({"text": answer.text, "stop_reason": "limit"})),
            None => outputs(&answer, self.conversation.own_messages(), "limit"),
        };
        self.end(End { state: RunState::Limit, code: UNFINISHED, message, outputs: Some(outputs) }).await
    }

    /// The model calls tools of whoever asks; the run ends with these calls.
    pub(crate) async fn hand_over(&mut self) -> Result<(), Halt> {
        let answer = self.conversation.answer().clone();
        let mut outputs = outputs(&answer, self.conversation.own_messages(), "tool_calls");
        let handed_over = self.conversation.handed_over().into_iter().enumerate().map(|(place, call)| {
            let id = handed_over_id(self.run.id, place);
            prompt::shown_call(&ToolCall { id, ..call.clone() })
        });
        outputs["tool_calls"] = handed_over.collect();
        self.end(End { state: RunState::Done, code: 200, message: "Success".to_owned(), outputs: Some(outputs) }).await
    }

    pub(crate) async fn end(&mut self, end: End) -> Result<(), Halt> {
        let used = self.used();
        let run = self.run;
        let session = session_of(run).filter(|_| end.state != RunState::Failed);
        let session = session.as_deref().map(|session| SessionPart {
            project: run.project,
            workflow: run.workflow,
            session,
            run: run.id,
            kept: self.conversation.kept(),
        });
        let is_ours = self.runs.finish(self.run, Some(self.runs.0.node), &end, &used, &mut self.log, session.as_ref()).await?;
        Err(if is_ours { Halt::Settled } else { Halt::Lost })
    }
}
