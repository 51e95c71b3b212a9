//! Calls of the client's tools, which the client makes between two requests. Their ids name the run that asked for them, so that the next
//! request, which repeats only what the client was told, goes on with everything that was said and done.

use std::collections::{HashMap, HashSet};

use kernel::RunId;
use models::{Message, ToolCall};
use uuid::Uuid;

use super::{CallOutcome, Conversation, Purpose};
use crate::journal::{Entry, JournalRow};
use crate::limits::Limits;

/// Of a conversation with more, only the newest runs are recalled.
const MOST_RECALLED: usize = 32;
const NO_LIMITS: Limits = Limits { turns: u64::MAX, tool_calls: u64::MAX, tokens: u64::MAX, usd: None, seconds: u64::MAX };
const UNFINISHED: &str = "The run ended before this call came to a result.";
const UNANSWERED: &str = "Whoever was to make this call did not say what came of it.";

/// The id of a call as the client is told it: the run, and which of its calls. OpenAI takes ids of 40 characters at most.
pub(crate) fn handed_over_id(run: RunId, place: usize) -> String {
    format!("call_{}_{place:x}", run.uuid().simple())
}

fn read_id(id: &str) -> Option<(RunId, usize)> {
    let (run, place) = id.strip_prefix("call_")?.split_once('_')?;
    let run = Uuid::try_parse(run).ok().filter(|_| run.len() == 32)?;
    Some((RunId::from(run), usize::from_str_radix(place, 16).ok()?))
}

/// Whether a call was handed over by a run.
pub(crate) fn is_handed_over_by(id: &str, run: RunId) -> bool {
    read_id(id).is_some_and(|(named, _)| named == run)
}

/// What a run said and did before it handed its last calls over.
#[derive(Debug)]
pub(crate) struct Earlier {
    messages: Vec<Message>,
    handed_over: Vec<ToolCall>,
}

impl Earlier {
    /// The runs that a client's messages speak of.
    pub(crate) fn named(messages: &[Message]) -> HashSet<RunId> {
        messages.iter().rev().filter_map(run_of).take(MOST_RECALLED).collect()
    }

    /// Reads one from its journal, with what it began with or without. Nothing is left out for want of room.
    pub(crate) fn read(journal: Vec<JournalRow>, theirs: HashSet<String>, with_beginning: bool) -> Self {
        let mut said = Conversation { shows: usize::MAX, ..Conversation::new(NO_LIMITS, None, u64::MAX, theirs) };
        for row in journal {
            match &row.entry {
                Entry::Begun { .. } if !with_beginning => {}
                Entry::Stubbed | Entry::Turn { purpose: Purpose::Summary, .. } => {}
                _ => said.apply(row),
            }
        }
        // A run that was cancelled in the middle left calls open, and models refuse a call without a result.
        let open: Vec<i64> = said.open_calls().map(|call| call.step).collect();
        for step in open {
            said.call_ended(step, CallOutcome::failed(UNFINISHED));
        }
        let handed_over = said.handed_over().into_iter().cloned().collect();
        Self { messages: said.messages, handed_over }
    }

    /// Puts what earlier runs said and did in the place of what the client was told of it. A run that goes on comes before everything.
    pub(crate) fn recall(said: Vec<Message>, earlier: &HashMap<RunId, Self>, continues: Option<RunId>) -> Vec<Message> {
        let answered: HashSet<String> = said.iter().filter_map(answered_call).map(str::to_owned).collect();
        let mut messages = Vec::with_capacity(said.len());
        let repeat = |messages: &mut Vec<Message>, run: RunId, found: &Self| {
            messages.extend(found.messages.iter().cloned());
            for (place, call) in found.handed_over.iter().enumerate() {
                if !answered.contains(&handed_over_id(run, place)) {
                    messages.push(result(call, UNANSWERED.to_owned(), true));
                }
            }
        };
        if let Some((run, found)) = continues.and_then(|run| Some((run, earlier.get(&run)?))) {
            repeat(&mut messages, run, found);
        }
        for message in said {
            if let Some((run, found)) = run_of(&message).and_then(|run| Some((run, earlier.get(&run)?))) {
                if continues != Some(run) {
                    repeat(&mut messages, run, found);
                }
                continue;
            }
            let made = answered_call(&message).and_then(read_id).and_then(|(run, place)| earlier.get(&run)?.handed_over.get(place));
            messages.push(match (message, made) {
                (Message::Tool { content, is_error, .. }, Some(call)) => result(call, content, is_error),
                (other, _) => other,
            });
        }
        messages
    }
}

fn result(call: &ToolCall, content: String, is_error: bool) -> Message {
    Message::Tool { call_id: call.id.clone(), name: call.name.clone(), content, is_error }
}

/// The run whose calls a message of a client holds.
fn run_of(message: &Message) -> Option<RunId> {
    let Message::Assistant { calls, .. } = message else { return None };
    calls.iter().find_map(|call| read_id(&call.id)).map(|(run, _)| run)
}

/// The call that a message answers.
fn answered_call(message: &Message) -> Option<&str> {
    match message {
        Message::Tool { call_id, .. } => Some(call_id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use models::Reply;
    use serde_json::json;

    use super::*;
    use crate::conversation::OutcomeKind;

    fn call(id: &str, name: &str) -> ToolCall {
        ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: "{}".to_owned() }
    }

    fn row(number: i64, entry: Entry, outcome: Option<CallOutcome>) -> JournalRow {
        JournalRow { number, entry, outcome, began_at: None, ended_at: None }
    }

    /// A run that looked something up, and then called a tool of its own and two of the client's at once.
    fn journal() -> Vec<JournalRow> {
        let (look, own, theirs) = (call("a", "look"), call("b", "look"), [call("c", "theirs"), call("d", "theirs")]);
        let turn = |calls: &[ToolCall], opaque| Entry::Turn {
            purpose: Purpose::Work,
            reply: Reply { calls: calls.to_vec(), opaque, ..Reply::default() },
        };
        let done = |said: &str| Some(CallOutcome::new(OutcomeKind::Done, said));
        vec![
            row(1, Entry::Begun { system: String::new(), history: Vec::new(), left_out: Vec::new(), first: Vec::new() }, None),
            row(2, turn(std::slice::from_ref(&look), None), None),
            row(3, Entry::Call { call: look }, done("looked")),
            row(4, turn(&[own.clone(), theirs[0].clone(), theirs[1].clone()], Some(json!({"signed": true}))), None),
            row(5, Entry::Call { call: own }, done("mine")),
            row(6, Entry::Call { call: theirs[0].clone() }, None),
            row(7, Entry::Call { call: theirs[1].clone() }, None),
        ]
    }

    fn shown(messages: &[Message]) -> Vec<String> {
        let shown = messages.iter().map(|message| match message {
            Message::User { text } => text.clone(),
            Message::Assistant { calls, opaque, .. } => format!("{} calls, opaque {}", calls.len(), opaque.is_some()),
            Message::Tool { call_id, content, .. } => format!("{call_id}: {content}"),
        });
        shown.collect()
    }

    #[test]
    fn the_next_request_goes_on_with_what_the_run_knew() {
        let run = RunId::new();
        let found = HashMap::from([(run, Earlier::read(journal(), HashSet::from(["theirs".to_owned()]), true))]);
        let (first, second) = (handed_over_id(run, 0), handed_over_id(run, 1));
        assert!(first.len() <= 40 && read_id(&first) == Some((run, 0)));
        let told = vec![
            Message::User { text: "go".to_owned() },
            Message::Assistant { text: String::new(), calls: vec![call(&first, "theirs"), call(&second, "theirs")], opaque: None },
            Message::Tool { call_id: second, name: "theirs".to_owned(), content: "sunny".to_owned(), is_error: false },
        ];
        assert_eq!(Earlier::named(&told), HashSet::from([run]));
        let unanswered = format!("c: {UNANSWERED}");
        let all = ["go", "1 calls, opaque false", "a: looked", "3 calls, opaque true", "b: mine", unanswered.as_str(), "d: sunny"];
        assert_eq!(shown(&Earlier::recall(told.clone(), &found, None)), all);
        // Whoever names the run sends nothing but what is new.
        let new = told[2..].to_vec();
        assert_eq!(shown(&Earlier::recall(new, &found, Some(run))), all[1..]);
    }

    #[test]
    fn what_a_run_left_open_has_a_result() {
        let cut = journal().into_iter().take(2).chain([row(3, Entry::Call { call: call("a", "look") }, None)]).collect();
        let earlier = Earlier::read(cut, HashSet::new(), false);
        assert_eq!(shown(&earlier.messages), ["1 calls, opaque false".to_owned(), format!("a: {UNFINISHED}")]);
    }

    #[test]
    fn other_ids_name_no_run() {
        for id in ["call_1", "call_abc_0", "toolu_01", "call_00000000-0000-0000-0000-000000000000_0", ""] {
            assert_eq!(read_id(id), None, "{id}");
        }
        let told = vec![Message::Assistant { text: "hi".to_owned(), calls: vec![call("call_7", "theirs")], opaque: None }];
        assert_eq!(Earlier::recall(told.clone(), &HashMap::new(), None), told);
    }
}
