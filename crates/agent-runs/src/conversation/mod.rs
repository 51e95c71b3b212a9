//! The loop without I/O: what was said and done so far, and what comes next. The journal is a list of what is applied here, so a run that was
//! cut off is read again and goes on at the same place.

mod earlier;
mod outcome;
#[cfg(test)]
mod tests;
mod window;

use std::collections::HashSet;

use models::{Message, Reply, Stop, ToolCall};
use serde::{Deserialize, Serialize};

use crate::journal::{Entry, JournalRow};
use crate::limits::{Limits, Prices, Used};

pub(crate) use earlier::{Earlier, handed_over_id, is_handed_over_by};
pub(crate) use outcome::{CallOutcome, OutcomeKind};
pub(crate) use window::{Kept, LeftOut};

/// What a turn is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Purpose {
    Work,
    /// The run may use no more, and the model says what it knows.
    LastAnswer,
    /// The window is nearly full, and the model says what is worth remembering.
    Summary,
}

/// A call of the newest turn.
#[derive(Clone, Debug)]
pub(crate) struct PlannedCall {
    /// Its place in the journal.
    pub(crate) step: i64,
    pub(crate) call: ToolCall,
    pub(crate) outcome: Option<CallOutcome>,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Ask(Purpose),
    /// The calls that have no outcome are made.
    Call,
    /// Older results become stubs, so that there is room again.
    Stub,
    /// The model has answered.
    Conclude,
    /// The model calls tools of whoever asks; the answer is these calls.
    HandOver,
    /// The run has used up what it may.
    Stop {
        limit: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
enum Phase {
    Ask,
    Calls,
    Answered,
    HandedOver,
    Stopped { limit: String },
}

/// What was said and done so far.
#[derive(Debug)]
pub(crate) struct Conversation {
    limits: Limits,
    prices: Option<Prices>,
    context_tokens: u64,
    /// Tools that whoever asks calls itself.
    handed_over: HashSet<String>,
    messages: Vec<Message>,
    /// Where the messages of this run begin, after those of its session.
    own_from: usize,
    left_out: LeftOut,
    /// How much of a result the model is shown at once.
    shows: usize,
    calls: Vec<PlannedCall>,
    phase: Phase,
    used: Used,
    /// About how many tokens the next question has.
    window: u64,
    summarized_at: Option<u64>,
    is_compacted: bool,
    answer: Answer,
    unfit: u32,
    seen_calls: HashSet<String>,
}

/// What the model said last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) stop: Stop,
}

impl Conversation {
    pub(crate) fn new(limits: Limits, prices: Option<Prices>, context_tokens: u64, handed_over: HashSet<String>) -> Self {
        Self {
            limits,
            prices,
            context_tokens,
            handed_over,
            messages: Vec::new(),
            own_from: 0,
            left_out: LeftOut::new(),
            shows: window::SHOWN,
            calls: Vec::new(),
            phase: Phase::Ask,
            used: Used::default(),
            window: 0,
            summarized_at: None,
            is_compacted: false,
            answer: Answer::default(),
            unfit: 0,
            seen_calls: HashSet::new(),
        }
    }

    /// What comes next; `used` holds the time until now.
    pub(crate) fn next(&self, used: &Used) -> Step {
        match &self.phase {
            Phase::Calls => Step::Call,
            Phase::Answered => Step::Conclude,
            Phase::HandedOver => Step::HandOver,
            Phase::Stopped { limit } => Step::Stop { limit: limit.clone() },
            Phase::Ask if self.limits.exceeded(used).is_some() => Step::Ask(Purpose::LastAnswer),
            Phase::Ask if self.is_tight() && self.can_stub() => Step::Stub,
            Phase::Ask if self.is_tight() && self.can_summarize() => Step::Ask(Purpose::Summary),
            Phase::Ask => Step::Ask(Purpose::Work),
        }
    }

    /// The session's messages with what was left out of them, and what the run begins with.
    pub(crate) fn begin(&mut self, history: Vec<Message>, left_out: LeftOut, first: Vec<Message>) {
        self.left_out = left_out;
        for message in history {
            self.push(message);
        }
        self.own_from = self.messages.len();
        for mut message in first {
            if let Message::Tool { content, .. } = &mut message {
                *content = self.shown(std::mem::take(content));
            }
            self.push(message);
        }
    }

    /// Applies what the journal says was done.
    pub(crate) fn apply(&mut self, row: JournalRow) {
        match row.entry {
            Entry::Begun { history, left_out, first, .. } => self.begin(history, left_out, first),
            Entry::Turn { purpose, reply } => drop(self.turn(purpose, reply, row.number + 1)),
            Entry::Call { .. } => {
                if let Some(outcome) = row.outcome {
                    self.call_ended(row.number, outcome);
                }
            }
            Entry::Unfit { why } => self.unfit(&why),
            Entry::Stubbed => self.stub(),
        }
    }

    /// The model answered. Its calls have these places in the journal; those that are over the limit are not made. What is planned.
    pub(crate) fn turn(&mut self, purpose: Purpose, reply: Reply, first_step: i64) -> Vec<PlannedCall> {
        self.used.tokens += reply.usage;
        self.used.usd += self.prices.map_or(0.0, |prices| prices.cost(reply.usage));
        let Reply { text, calls, stop, usage, opaque } = reply;
        self.answer = Answer { text: text.clone(), stop };
        let mut planned = Vec::new();
        match purpose {
            Purpose::Summary => self.summarize(&text),
            Purpose::LastAnswer => {
                let limit = self.limits.exceeded(&self.used).unwrap_or_else(|| format!("{} seconds", self.limits.seconds));
                self.push(Message::User { text: last_words(&limit) });
                self.push(Message::Assistant { text, calls: Vec::new(), opaque: None });
                self.phase = Phase::Stopped { limit };
            }
            Purpose::Work => {
                self.used.turns += 1;
                self.calls = (first_step..).zip(&calls).map(|(step, call)| self.plan(step, call)).collect();
                planned.clone_from(&self.calls);
                self.phase = if self.calls.is_empty() { Phase::Answered } else { Phase::Calls };
                self.push(Message::Assistant { text, calls, opaque });
                if usage.input + usage.output > 0 {
                    self.window = usage.input + usage.output;
                }
                self.settle();
            }
        }
        planned
    }

    fn plan(&mut self, step: i64, call: &ToolCall) -> PlannedCall {
        let is_ours = !self.handed_over.contains(&call.name);
        self.used.calls_wanted += u64::from(is_ours);
        let is_over = is_ours && self.used.calls_wanted > self.limits.tool_calls;
        let told = format!("This call was not made: the run may make {} tool calls, and has made them.", self.limits.tool_calls);
        let outcome = is_over.then(|| CallOutcome::new(OutcomeKind::NotMade, told));
        self.used.tool_calls += u64::from(is_ours && !is_over);
        PlannedCall { step, call: call.clone(), outcome }
    }

    /// A call came to something.
    pub(crate) fn call_ended(&mut self, step: i64, outcome: CallOutcome) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.step == step) {
            call.outcome.get_or_insert(outcome);
        }
        self.settle();
    }

    /// Once every call has its outcome, the model is told all of them together.
    fn settle(&mut self) {
        let is_ours = |call: &PlannedCall| !self.handed_over.contains(&call.call.name);
        if self.phase != Phase::Calls || self.calls.iter().any(|call| is_ours(call) && call.outcome.is_none()) {
            return;
        }
        let waits = self.calls.iter().any(|call| !is_ours(call));
        for PlannedCall { call, outcome, .. } in std::mem::take(&mut self.calls) {
            let Some(outcome) = outcome else { continue };
            let is_error = outcome.is_error();
            let content = self.shown(outcome.content);
            self.push(Message::Tool { call_id: call.id, name: call.name, is_error, content });
        }
        self.phase = if waits { Phase::HandedOver } else { Phase::Ask };
    }

    /// The answer does not fit the schema of the outputs, and the model is told why.
    pub(crate) fn unfit(&mut self, why: &str) {
        self.unfit += 1;
        self.push(Message::User {
            text: format!("Your answer does not fit the JSON Schema of the outputs: {why}\nAnswer again, with the JSON object alone."),
        });
        self.phase = Phase::Ask;
    }

    fn push(&mut self, message: Message) {
        if let Message::Assistant { calls, .. } = &message {
            self.seen_calls.extend(calls.iter().map(|call| call.id.clone()));
        }
        self.window += window::weight(&message);
        self.messages.push(message);
    }

    /// The messages of a question, with what is said for its purpose alone.
    pub(crate) fn question(&self, purpose: Purpose, used: &Used) -> Vec<Message> {
        let mut messages = self.messages.clone();
        match purpose {
            Purpose::Work => {}
            Purpose::LastAnswer => {
                let limit = self.limits.exceeded(used).unwrap_or_default();
                messages.push(Message::User { text: last_words(&limit) });
            }
            Purpose::Summary => messages.push(Message::User { text: SUMMARIZE.to_owned() }),
        }
        messages
    }

    /// A call id that no other call of the run has; servers that number calls within each answer repeat them.
    pub(crate) fn own_id(&self, id: &str, turn: u64) -> String {
        if self.seen_calls.contains(id) { format!("{id}_{turn}") } else { id.to_owned() }
    }

    /// The calls of the newest turn that have no outcome.
    pub(crate) fn open_calls(&self) -> impl Iterator<Item = &PlannedCall> {
        self.calls.iter().filter(|call| call.outcome.is_none() && !self.handed_over.contains(&call.call.name))
    }

    /// The calls that whoever asks has to make.
    pub(crate) fn handed_over(&self) -> Vec<&ToolCall> {
        let Some(Message::Assistant { calls, .. }) = self.messages.iter().rfind(|message| matches!(message, Message::Assistant { .. }))
        else {
            return Vec::new();
        };
        calls.iter().filter(|call| self.handed_over.contains(&call.name)).collect()
    }

    pub(crate) fn answer(&self) -> &Answer {
        &self.answer
    }

    pub(crate) fn used(&self) -> Used {
        self.used
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn times_unfit(&self) -> u32 {
        self.unfit
    }

    /// The messages of this run, without those of its session.
    pub(crate) fn own_messages(&self) -> &[Message] {
        &self.messages[self.own_from.min(self.messages.len())..]
    }
}

const SUMMARIZE: &str = "The conversation is getting long. Write down what is needed to go on without it: the task, what was found out, what was \
                         done and with which ids, what is still open. Call no tools.";

fn last_words(limit: &str) -> String {
    format!("This run has used up the {limit} that it may use. No more tools can be called. Answer now with what you know.")
}
