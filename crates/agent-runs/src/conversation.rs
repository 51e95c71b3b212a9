//! The loop without I/O: what was said and done so far, and what comes next. The journal is a list of what is applied here, so a run that was
//! cut off is read again and goes on at the same place.

use std::collections::{BTreeMap, HashSet};

use models::{Message, Reply, Stop, ToolCall};
use serde::{Deserialize, Serialize};

use crate::limits::{Limits, Prices, Used};

/// How much of a result the model is shown at once.
const SHOWN: usize = 32 << 10;
/// A shorter result takes no less room as a stub.
const WORTH_A_STUB: usize = 400;

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

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CallOutcome {
    pub(crate) kind: OutcomeKind,
    /// What the model is told.
    pub(crate) content: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutcomeKind {
    Done,
    Failed,
    /// A person, or a rule, said no.
    Denied,
    /// It may have taken effect or not, and is not made again.
    Unknown,
    /// The run may make no more calls.
    NotMade,
}

impl CallOutcome {
    pub(crate) fn new(kind: OutcomeKind, content: impl Into<String>) -> Self {
        Self { kind, content: content.into() }
    }

    pub(crate) fn failed(content: impl Into<String>) -> Self {
        Self::new(OutcomeKind::Failed, content)
    }

    pub(crate) fn is_error(&self) -> bool {
        self.kind != OutcomeKind::Done
    }
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
    /// Results of which the model was shown less than all.
    results: BTreeMap<String, String>,
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
            results: BTreeMap::new(),
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

    /// The session's messages, and what the run begins with.
    pub(crate) fn begin(&mut self, history: Vec<Message>, first: Vec<Message>) {
        for message in history {
            self.push(message);
        }
        self.own_from = self.messages.len();
        for message in first {
            self.push(message);
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
                for call in &calls {
                    self.seen_calls.insert(call.id.clone());
                }
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
        for PlannedCall { step, call, outcome } in std::mem::take(&mut self.calls) {
            let Some(outcome) = outcome else { continue };
            let content = self.shown(step, &outcome.content);
            self.push(Message::Tool { call_id: call.id, name: call.name, is_error: outcome.is_error(), content });
        }
        self.phase = if waits { Phase::HandedOver } else { Phase::Ask };
    }

    /// As much of a result as the model is shown; the rest can be read on.
    fn shown(&mut self, step: i64, content: &str) -> String {
        if content.len() <= SHOWN {
            return content.to_owned();
        }
        let (key, end) = (step.to_string(), content.floor_char_boundary(SHOWN));
        let shown = format!(
            "{}\n[Cut: the first {end} of {} bytes. Read on with the tool read_result, result {key:?}, offset {end}.]",
            &content[..end],
            content.len()
        );
        self.results.insert(key, content.to_owned());
        shown
    }

    /// The answer does not fit the schema of the outputs, and the model is told why.
    pub(crate) fn unfit(&mut self, why: &str) {
        self.unfit += 1;
        self.push(Message::User {
            text: format!("Your answer does not fit the JSON Schema of the outputs: {why}\nAnswer again, with the JSON object alone."),
        });
        self.phase = Phase::Ask;
    }

    /// Results before the newest turn become stubs.
    pub(crate) fn stub(&mut self) {
        let newest = self.newest_turn();
        for (index, message) in self.messages.iter_mut().enumerate().take(newest) {
            let Message::Tool { name, content, .. } = message else { continue };
            if is_stub(content) {
                continue;
            }
            let key = format!("m{index}");
            let stub =
                format!("{STUB} {name}, {} bytes, is left out here. Read it with the tool read_result, result {key:?}.]", content.len());
            self.results.insert(key, std::mem::replace(content, stub));
        }
        self.window = self.weight();
        self.is_compacted = true;
    }

    fn summarize(&mut self, text: &str) {
        let tail = self.messages.split_off(self.newest_turn());
        self.messages = vec![Message::User { text: format!("What was said and done before, in short:\n{text}") }];
        self.own_from = 1;
        self.messages.extend(tail);
        self.window = self.weight();
        self.summarized_at = Some(self.used.turns);
        self.is_compacted = true;
        self.phase = Phase::Ask;
    }

    /// Where the newest turn with calls begins, or the newest words of a person.
    fn newest_turn(&self) -> usize {
        let from = |message: &Message| match message {
            Message::Assistant { calls, .. } => !calls.is_empty(),
            Message::User { .. } => true,
            Message::Tool { .. } => false,
        };
        self.messages.iter().rposition(from).unwrap_or(0)
    }

    fn is_tight(&self) -> bool {
        self.window > self.context_tokens / 5 * 4
    }

    fn can_stub(&self) -> bool {
        let is_long = |message: &Message| matches!(message, Message::Tool { content, .. } if !is_stub(content));
        self.messages[..self.newest_turn()].iter().any(is_long)
    }

    fn can_summarize(&self) -> bool {
        self.newest_turn() > 1 && self.summarized_at != Some(self.used.turns)
    }

    /// What helps where the API says that the question is too long.
    pub(crate) fn relief(&self) -> Option<Step> {
        if self.can_stub() {
            Some(Step::Stub)
        } else if self.can_summarize() {
            Some(Step::Ask(Purpose::Summary))
        } else {
            None
        }
    }

    fn push(&mut self, message: Message) {
        self.window += weight(&message);
        self.messages.push(message);
    }

    fn weight(&self) -> u64 {
        self.messages.iter().map(weight).sum()
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

    /// More of a result that was cut or left out.
    pub(crate) fn result(&self, key: &str, offset: usize) -> Option<String> {
        let content = self.results.get(key)?;
        let start = content.floor_char_boundary(offset.min(content.len()));
        let end = content.floor_char_boundary((start + SHOWN).min(content.len()));
        let rest = if end < content.len() { format!("\n[Up to byte {end} of {}.]", content.len()) } else { String::new() };
        Some(format!("{}{rest}", &content[start..end]))
    }

    /// Whether there is something that `read_result` can read.
    pub(crate) fn has_results(&self) -> bool {
        !self.results.is_empty()
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

    /// What the session keeps of this run, and whether that stands for everything before it too.
    pub(crate) fn kept(&self) -> (&[Message], bool) {
        if self.is_compacted { (&self.messages, true) } else { (self.own_messages(), false) }
    }
}

const STUB: &str = "[The result of";
const SUMMARIZE: &str = "The conversation is getting long. Write down what is needed to go on without it: the task, what was found out, what was \
                         done and with which ids, what is still open. Call no tools.";

fn last_words(limit: &str) -> String {
    format!("This run has used up the {limit} that it may use. No more tools can be called. Answer now with what you know.")
}

fn is_stub(content: &str) -> bool {
    content.len() < WORTH_A_STUB || content.starts_with(STUB)
}

/// About how many tokens a message has.
fn weight(message: &Message) -> u64 {
    let bytes = match message {
        Message::User { text } => text.len(),
        Message::Assistant { text, calls, opaque } => {
            let opaque = opaque.as_ref().map_or(0, |opaque| kernel::json::size(opaque, usize::MAX));
            let calls: usize = calls.iter().map(|call| call.arguments.len() + call.name.len() + 20).sum();
            (text.len() + calls).max(opaque)
        }
        Message::Tool { content, .. } => content.len(),
    };
    (bytes / 4 + 4) as u64
}

#[cfg(test)]
mod tests {
    use models::Usage;

    use super::*;

    fn conversation(limits: Limits) -> Conversation {
        let mut conversation = Conversation::new(limits, None, 128_000, HashSet::from(["theirs".to_owned()]));
        conversation.begin(Vec::new(), vec![Message::User { text: "go".to_owned() }]);
        conversation
    }

    fn says(text: &str, calls: &[&str]) -> Reply {
        let calls = calls.iter().map(|name| ToolCall { id: format!("c-{name}"), name: (*name).to_owned(), arguments: "{}".to_owned() });
        Reply {
            text: text.to_owned(),
            calls: calls.collect(),
            usage: Usage { input: 10, output: 5, ..Usage::default() },
            ..Reply::default()
        }
    }

    fn done(content: &str) -> CallOutcome {
        CallOutcome::new(OutcomeKind::Done, content)
    }

    #[test]
    fn turns_and_calls_alternate_until_there_is_an_answer() {
        let mut run = conversation(Limits::default());
        assert_eq!(run.next(&run.used()), Step::Ask(Purpose::Work));
        run.turn(Purpose::Work, says("", &["find", "read"]), 2);
        assert_eq!((run.next(&run.used()), run.open_calls().count()), (Step::Call, 2));
        run.call_ended(3, done("second"));
        assert_eq!(run.next(&run.used()), Step::Call, "the other is still open");
        run.call_ended(2, done("first"));
        run.call_ended(2, done("again"));
        assert_eq!(run.next(&run.used()), Step::Ask(Purpose::Work));
        let told = run.own_messages().iter().filter_map(|message| match message {
            Message::Tool { content, .. } => Some(content.as_str()),
            _ => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), ["first", "second"], "in the order of the calls, each once");
        run.turn(Purpose::Work, says("the end", &[]), 5);
        assert_eq!((run.next(&run.used()), run.answer().text.as_str()), (Step::Conclude, "the end"));
        assert_eq!((run.used().turns, run.used().tool_calls, run.used().tokens.input), (2, 2, 20));
    }

    #[test]
    fn a_limit_asks_once_for_an_answer_and_ends() {
        let mut run = conversation(Limits { turns: 1, ..Limits::default() });
        run.turn(Purpose::Work, says("", &["find"]), 2);
        run.call_ended(2, done("x"));
        assert_eq!(run.next(&run.used()), Step::Ask(Purpose::LastAnswer));
        assert!(matches!(run.question(Purpose::LastAnswer, &run.used()).last(), Some(Message::User { text }) if text.contains("1 turns")));
        run.turn(Purpose::LastAnswer, says("what I know", &["find"]), 3);
        assert_eq!(run.next(&run.used()), Step::Stop { limit: "1 turns".to_owned() });
        assert_eq!(run.answer().text, "what I know");
    }

    #[test]
    fn calls_over_the_limit_are_not_made() {
        let mut run = conversation(Limits { tool_calls: 1, ..Limits::default() });
        run.turn(Purpose::Work, says("", &["a", "b", "c"]), 2);
        assert_eq!(run.open_calls().map(|call| call.step).collect::<Vec<_>>(), [2]);
        run.call_ended(2, done("x"));
        assert_eq!((run.used().tool_calls, run.next(&run.used())), (1, Step::Ask(Purpose::LastAnswer)));
    }

    #[test]
    fn time_that_is_up_is_a_limit_like_any_other() {
        let run = conversation(Limits { seconds: 5, ..Limits::default() });
        let used = Used { active: std::time::Duration::from_secs(6), ..run.used() };
        assert_eq!(run.next(&used), Step::Ask(Purpose::LastAnswer));
    }

    #[test]
    fn an_answer_that_does_not_fit_is_asked_for_again() {
        let mut run = conversation(Limits::default());
        run.turn(Purpose::Work, says("no json", &[]), 2);
        run.unfit("it is not JSON");
        assert_eq!((run.next(&run.used()), run.times_unfit()), (Step::Ask(Purpose::Work), 1));
    }

    #[test]
    fn tools_of_whoever_asks_end_the_run_after_ours() {
        let mut run = conversation(Limits::default());
        run.turn(Purpose::Work, says("", &["ours", "theirs"]), 2);
        assert_eq!(run.open_calls().map(|call| call.call.name.as_str()).collect::<Vec<_>>(), ["ours"]);
        run.call_ended(2, done("x"));
        assert_eq!(run.next(&run.used()), Step::HandOver);
        assert_eq!(run.handed_over().iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["theirs"]);
    }

    #[test]
    fn a_full_window_makes_stubs_and_then_a_summary() {
        let mut run = Conversation::new(Limits::default(), None, 4000, HashSet::new());
        run.begin(vec![Message::User { text: "before".to_owned() }], vec![Message::User { text: "go".to_owned() }]);
        let turn = |run: &mut Conversation, step: i64, content: &str| {
            run.turn(Purpose::Work, Reply { usage: Usage::default(), ..says("", &["read"]) }, step);
            run.call_ended(step, done(content));
        };
        turn(&mut run, 2, &"x".repeat(9000));
        turn(&mut run, 4, &"y".repeat(9000));
        assert_eq!(run.next(&run.used()), Step::Stub);
        run.stub();
        assert_eq!(run.result("m3", 8990).as_deref(), Some("xxxxxxxxxx"), "what was left out can be read");
        assert_eq!(run.next(&run.used()), Step::Ask(Purpose::Work), "the newest result stays");
        turn(&mut run, 6, &"z".repeat(20_000));
        assert_eq!(run.next(&run.used()), Step::Stub);
        run.stub();
        assert_eq!(run.next(&run.used()), Step::Ask(Purpose::Summary));
        run.turn(Purpose::Summary, says("short", &[]), 8);
        assert_eq!(run.next(&run.used()), Step::Ask(Purpose::Work), "it is not summarized again at once");
        let (kept, replaces) = run.kept();
        assert!(replaces && matches!(&kept[0], Message::User { text } if text.ends_with("short")));
        assert!(matches!(&kept[1], Message::Assistant { calls, .. } if calls.len() == 1), "the newest turn stays whole: {kept:?}");
        assert_eq!(kept.len(), 3);
    }

    #[test]
    fn long_results_are_cut_and_can_be_read_on() {
        let mut run = conversation(Limits::default());
        run.turn(Purpose::Work, says("", &["read"]), 2);
        let long = format!("{}{}", "a".repeat(SHOWN), "rest");
        run.call_ended(2, done(&long));
        let Some(Message::Tool { content, .. }) = run.own_messages().last() else { panic!() };
        assert!(content.contains("offset 32768"));
        assert_eq!(run.result("2", SHOWN).as_deref(), Some("rest"));
        assert_eq!(run.result("9", 0), None);
    }

    #[test]
    fn repeated_call_ids_are_told_apart() {
        let mut run = conversation(Limits::default());
        run.turn(Purpose::Work, says("", &["a"]), 2);
        assert_eq!((run.own_id("c-a", 2), run.own_id("c-b", 2)), ("c-a_2".to_owned(), "c-b".to_owned()));
    }
}
