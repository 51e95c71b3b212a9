//! What fits into the model's window: long results are cut, older ones become stubs, then everything before becomes a summary. What was left
//! out can be read again by its number.

use models::Message;

use super::{Conversation, Phase, Purpose, Step};

/// How much of a result the model is shown at once.
pub(super) const SHOWN: usize = 32 << 10;
/// A shorter result takes no less room as a stub.
const WORTH_A_STUB: usize = 400;
/// How much of what was left out a session keeps.
const KEPT: usize = 4 << 20;
const STUB: &str = "[The result of";

/// Results of which the model was shown less than all, with the numbers that the notes in their places name.
pub(crate) type LeftOut = Vec<(u64, String)>;

impl Conversation {
    /// Keeps a result that the model is not shown whole; the number to read it by.
    fn leave_out(&mut self, content: String) -> u64 {
        let number = self.left_out.iter().map(|(number, _)| number + 1).max().unwrap_or(1);
        self.left_out.push((number, content));
        number
    }

    /// As much of a result as the model is shown; the rest can be read on.
    pub(super) fn shown(&mut self, content: String) -> String {
        if content.len() <= self.shows {
            return content;
        }
        let (end, whole) = (content.floor_char_boundary(self.shows), content.len());
        let shown = content[..end].to_owned();
        let number = self.leave_out(content);
        format!("{shown}\n[Cut: the first {end} of {whole} bytes. Read on with the tool read_result, {}, offset {end}.]", named(number))
    }

    /// Results before the newest turn become stubs.
    pub(crate) fn stub(&mut self) {
        for index in 0..self.newest_turn() {
            let Message::Tool { name, content, .. } = &mut self.messages[index] else { continue };
            if is_stub(content) {
                continue;
            }
            let (name, content) = (name.clone(), std::mem::take(content));
            let bytes = content.len();
            let number = self.leave_out(content);
            if let Message::Tool { content, .. } = &mut self.messages[index] {
                *content =
                    format!("{STUB} {name}, {bytes} bytes, is left out here. Read it with the tool read_result, {}.]", named(number));
            }
        }
        self.window = self.weight();
        self.is_compacted = true;
    }

    pub(super) fn summarize(&mut self, text: &str) {
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

    pub(super) fn is_tight(&self) -> bool {
        self.window > self.context_tokens / 5 * 4
    }

    pub(super) fn can_stub(&self) -> bool {
        let is_long = |message: &Message| matches!(message, Message::Tool { content, .. } if !is_stub(content));
        self.messages[..self.newest_turn()].iter().any(is_long)
    }

    pub(super) fn can_summarize(&self) -> bool {
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

    fn weight(&self) -> u64 {
        self.messages.iter().map(weight).sum()
    }

    /// More of a result that was cut or left out.
    pub(crate) fn result(&self, number: u64, offset: usize) -> Option<String> {
        let (_, content) = self.left_out.iter().rfind(|(left_out, _)| *left_out == number)?;
        let start = content.floor_char_boundary(offset.min(content.len()));
        let end = content.floor_char_boundary((start + SHOWN).min(content.len()));
        let rest = if end < content.len() { format!("\n[Up to byte {end} of {}.]", content.len()) } else { String::new() };
        Some(format!("{}{rest}", &content[start..end]))
    }

    /// Whether there is something that `read_result` can read.
    pub(crate) fn has_results(&self) -> bool {
        !self.left_out.is_empty()
    }

    /// What the session keeps of this run, and whether that stands for everything before it too.
    pub(crate) fn kept(&self) -> Kept<'_> {
        let messages = if self.is_compacted { &self.messages } else { self.own_messages() };
        Kept { messages, left_out: self.still_named(messages), is_replacing: self.is_compacted }
    }

    /// The results that messages name, and those that these name, the newest first as far as there is room.
    fn still_named(&self, messages: &[Message]) -> LeftOut {
        let (mut kept, mut room) = (LeftOut::new(), KEPT);
        for (number, content) in self.left_out.iter().rev() {
            let name = named(*number);
            let in_message = |message: &Message| matches!(message, Message::Tool { content, .. } if content.contains(&name));
            let is_named = messages.iter().any(in_message) || kept.iter().any(|(_, later)| later.contains(&name));
            if is_named && content.len() <= room {
                room -= content.len();
                kept.push((*number, content.clone()));
            }
        }
        kept.reverse();
        kept
    }
}

/// What a session keeps of a run.
#[derive(Debug)]
pub(crate) struct Kept<'a> {
    pub(crate) messages: &'a [Message],
    pub(crate) left_out: LeftOut,
    pub(crate) is_replacing: bool,
}

/// How a note names a result.
fn named(number: u64) -> String {
    format!("result \"{number}\"")
}

fn is_stub(content: &str) -> bool {
    content.len() < WORTH_A_STUB || content.starts_with(STUB)
}

/// About how many tokens a message has.
pub(super) fn weight(message: &Message) -> u64 {
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
