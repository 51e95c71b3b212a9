//! A turn of a run: the model is asked, what it says becomes events while it speaks, and its answer is written with the calls that it wants.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::BoxFuture;
use kernel::Timestamp;
use models::{Delta, ErrorKind, ModelError, Prompt, Reply};

use crate::conversation::{Conversation, PlannedCall, Purpose, Step};
use crate::drive::{Driver, Halt, failed, flush};
use crate::error::RunError;
use crate::events::RunEvent;
use crate::journal::{Entry, JournalRow, Writing};
use crate::log::EventLog;
use crate::rows::{AgentRun, Rest};
use crate::turn::{AsyncHear, NoAnswer, Question, without_tools};
use crate::{AgentRuns, Used};

/// How often a question is asked that gets no answer.
const TRIES: i64 = 8;
/// How often one whose answer cannot be read.
const UNREADABLE: i64 = 3;
/// Longer than this a run does not wait in memory.
const SHORT: Duration = Duration::from_secs(5);
const LONGEST_WAIT: Duration = Duration::from_mins(2);
/// What a model has for its last words, and to sum up.
const LAST_WORDS: Duration = Duration::from_mins(1);

impl Driver<'_> {
    pub(crate) async fn ask(&mut self, purpose: Purpose, used: Used) -> Result<(), Halt> {
        let began_at = self.runs.0.parts.clock.now();
        let turn = u32::try_from(used.turns + 1).unwrap_or(u32::MAX);
        self.log.push(RunEvent::TurnStarted { turn, repeated: std::mem::take(&mut self.is_resumed) || self.tries > 0 });
        let limit = match purpose {
            Purpose::Work => self.conversation.limits().time_left(&used),
            Purpose::LastAnswer | Purpose::Summary => LAST_WORDS,
        };
        let tools = self.toolbox.definitions(self.config.model.api, self.conversation.has_results());
        let messages = self.conversation.question(purpose, &used);
        let model = &self.config.model;
        let extras = match purpose {
            Purpose::Work => model.extras.clone(),
            _ if tools.is_empty() => model.extras.clone(),
            Purpose::LastAnswer | Purpose::Summary => Some(without_tools(model.api, model.extras.as_ref())),
        };
        let prompt = Prompt {
            model: &model.name,
            system: &self.system,
            messages: &messages,
            tools: &tools,
            output_schema: if purpose == Purpose::Summary { None } else { self.config.outputs.as_ref() },
            max_output_tokens: model.max_output_tokens,
            stream: true,
            extras: extras.as_ref(),
        };
        let question = Question { project: self.run.project, model, prompt, limit };
        let mut listener = Listener {
            runs: self.runs,
            run: self.run,
            log: &mut self.log,
            conversation: &self.conversation,
            turn,
            is_heard: purpose != Purpose::Summary,
            calls: HashMap::new(),
            has_text: false,
        };
        let asked = self.runs.ask(&question, &mut listener).await;
        let (heard, has_text) = (std::mem::take(&mut listener.calls), listener.has_text);
        match asked {
            Ok(reply) => self.answered(purpose, turn, reply, &heard, has_text, began_at).await,
            Err(NoAnswer::TimeUp) if purpose == Purpose::Work => Ok(()),
            Err(NoAnswer::TimeUp) => self.answered(purpose, turn, Reply::default(), &heard, has_text, began_at).await,
            Err(NoAnswer::Refused(why)) => self.end(failed(424, why)).await,
            Err(NoAnswer::Broken(error)) => Err(Halt::Broken(error)),
            Err(NoAnswer::Model(error)) => Box::pin(self.unanswered(purpose, error)).await,
        }
    }

    async fn answered(
        &mut self,
        purpose: Purpose,
        turn: u32,
        mut reply: Reply,
        heard: &HashMap<usize, String>,
        has_text: bool,
        began_at: Timestamp,
    ) -> Result<(), Halt> {
        self.tries = 0;
        for call in &mut reply.calls {
            // What the API must get back unchanged holds its ids as they are.
            if reply.opaque.is_none() {
                call.id = self.conversation.own_id(&call.id, turn.into());
            }
        }
        if purpose != Purpose::Summary {
            if !has_text && !reply.text.is_empty() {
                self.log.push(RunEvent::TextDelta { turn, text: reply.text.clone() });
            }
            if !reply.text.is_empty() {
                self.log.push(RunEvent::TextEnd { turn });
            }
            for (index, call) in reply.calls.iter().enumerate() {
                if !heard.contains_key(&index) {
                    self.log.push(RunEvent::ToolCallStarted { turn, id: call.id.clone(), name: call.name.clone() });
                    self.log.push(RunEvent::ToolCallArguments { id: call.id.clone(), text: call.arguments.clone() });
                }
                self.log.push(RunEvent::ToolCallEnded { id: call.id.clone() });
            }
        }
        self.log.push(RunEvent::Usage { turn, usage: reply.usage });
        let now = self.runs.0.parts.clock.now();
        let number = self.next_step;
        let entry = Entry::Turn { purpose, reply: reply.clone() };
        let mut new = vec![JournalRow { number, entry, outcome: None, began_at: Some(began_at), ended_at: Some(now) }];
        for PlannedCall { step, call, outcome } in self.conversation.turn(purpose, reply, number + 1) {
            self.next_step = step;
            new.push(JournalRow { number: step, entry: Entry::Call { call }, outcome, began_at: None, ended_at: None });
        }
        self.next_step += 1;
        self.write(Writing { new, ended: Vec::new() }).await
    }

    /// The model did not answer: the question is asked again, now or later, or the run ends.
    async fn unanswered(&mut self, purpose: Purpose, error: ModelError) -> Result<(), Halt> {
        self.tries += 1;
        if error.kind == ErrorKind::TooLong {
            return match self.conversation.relief() {
                Some(Step::Stub) => self.stub().await,
                Some(_) if purpose == Purpose::Work => Box::pin(self.ask(Purpose::Summary, self.used())).await,
                _ => self.end(failed(424, format!("The conversation does not fit into the model's window: {error}"))).await,
            };
        }
        let most = if error.is_retryable() { TRIES } else { UNREADABLE };
        let is_hopeless = !error.is_retryable() && error.kind != ErrorKind::Malformed;
        if is_hopeless || self.tries >= most {
            let times = if self.tries > 1 { format!(" (asked {} times)", self.tries) } else { String::new() };
            return self.end(failed(424, format!("The model could not be asked{times}: {error}"))).await;
        }
        let wait = error.retry_after.unwrap_or_else(|| backoff(self.tries)).min(LONGEST_WAIT);
        tracing::info!(run = %self.run.id, %error, ?wait, tries = self.tries, "a model gave no answer; it is asked again");
        if wait <= SHORT {
            tokio::time::sleep(wait).await;
            return Ok(());
        }
        self.rest(Rest::Later(self.runs.0.parts.clock.now().plus(wait)), &[]).await
    }
}

/// Turns what a model says into events while it speaks.
struct Listener<'a> {
    runs: &'a AgentRuns,
    run: &'a AgentRun,
    log: &'a mut EventLog,
    conversation: &'a Conversation,
    turn: u32,
    is_heard: bool,
    /// The ids of the calls that were told, by their place in the answer.
    calls: HashMap<usize, String>,
    has_text: bool,
}

impl AsyncHear for Listener<'_> {
    fn hear(&mut self, deltas: Vec<Delta>) -> BoxFuture<'_, Result<(), RunError>> {
        Box::pin(async move {
            if !self.is_heard {
                return Ok(());
            }
            let turn = self.turn;
            for delta in deltas {
                match delta {
                    Delta::Text(text) => {
                        self.has_text = true;
                        self.log.push(RunEvent::TextDelta { turn, text });
                    }
                    Delta::Reasoning(text) => self.log.push(RunEvent::ReasoningDelta { turn, text }),
                    Delta::CallBegins { index, id, name } => {
                        let id = self.conversation.own_id(&id, turn.into());
                        self.calls.insert(index, id.clone());
                        self.log.push(RunEvent::ToolCallStarted { turn, id, name });
                    }
                    Delta::CallArguments { index, text } => {
                        if let Some(id) = self.calls.get(&index).cloned() {
                            self.log.push(RunEvent::ToolCallArguments { id, text });
                        }
                    }
                }
            }
            if self.log.is_due() { flush(self.runs, self.run, self.log).await } else { Ok(()) }
        })
    }
}

/// Half a second, then twice as long each time, a little more or less so that runs do not come back together.
fn backoff(tries: i64) -> Duration {
    let doubled = Duration::from_millis(500) * 2_u32.saturating_pow(u32::try_from(tries - 1).unwrap_or(0).min(8));
    doubled.min(LONGEST_WAIT).mul_f64(0.75 + f64::from(uuid::Uuid::new_v4().as_bytes()[0]) / 512.0)
}
