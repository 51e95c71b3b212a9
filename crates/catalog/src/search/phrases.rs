//! Turns of phrase that mean another word: "spin up" creates, "look up" finds, a "PR" is a pull request.

/// Where in a use case a phrase has its meaning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Anywhere,
    /// "File a bug" creates; "a file" is a file.
    Opening,
}

use Position::{Anywhere, Opening};

const PHRASES: &[(Position, &[&str], &[&str])] = &[
    (Anywhere, &["pr"], &["pull", "request"]),
    (Anywhere, &["prs"], &["pull", "requests"]),
    (Anywhere, &["mr"], &["merge", "request"]),
    (Anywhere, &["mrs"], &["merge", "requests"]),
    (Anywhere, &["to", "do"], &["task"]),
    (Anywhere, &["to", "dos"], &["tasks"]),
    (Anywhere, &["look", "up"], &["find"]),
    (Anywhere, &["look", "at"], &["show"]),
    (Anywhere, &["unread", "mail"], &["unread", "messages"]),
    (Anywhere, &["unread", "mails"], &["unread", "messages"]),
    (Anywhere, &["unread", "email"], &["unread", "messages"]),
    (Anywhere, &["unread", "emails"], &["unread", "messages"]),
    (Anywhere, &["spin", "up"], &["create"]),
    (Anywhere, &["write", "back", "to"], &["reply", "to"]),
    (Anywhere, &["get", "back", "to"], &["reply", "to"]),
    (Anywhere, &["tick", "off"], &["complete"]),
    (Anywhere, &["check", "off"], &["complete"]),
    (Anywhere, &["pay", "back"], &["refund"]),
    (Anywhere, &["get", "rid", "of"], &["delete"]),
    (Opening, &["set", "up"], &["create"]),
    (Opening, &["file", "a"], &["create", "a"]),
    (Opening, &["file", "an"], &["create", "an"]),
    (Opening, &["open", "a"], &["create", "a"]),
    (Opening, &["open", "an"], &["create", "an"]),
    (Opening, &["put", "a"], &["create", "a"]),
    (Opening, &["put", "an"], &["create", "an"]),
    (Opening, &["write", "to"], &["send", "a", "message", "to"]),
    (Opening, &["text", "someone"], &["send", "an", "sms", "to", "someone"]),
    (Opening, &["text", "somebody"], &["send", "an", "sms", "to", "somebody"]),
    (Opening, &["text", "the"], &["send", "an", "sms", "to", "the"]),
    (Opening, &["text", "my"], &["send", "an", "sms", "to", "my"]),
];

/// The phrase at the start of the words: how many words it has and what it means.
pub(super) fn at_start(words: &[&str], is_opening: bool) -> Option<(usize, &'static [&'static str])> {
    let found = PHRASES.iter().find(|(place, phrase, _)| (is_opening || *place == Anywhere) && words.starts_with(phrase));
    found.map(|(_, phrase, meaning)| (phrase.len(), *meaning))
}
