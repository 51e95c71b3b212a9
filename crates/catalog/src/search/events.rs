//! Telling "when a new email arrives" from "trigger a build".

const OPENERS: &[&str] = &["when", "whenever", "once", "upon", "if", "after", "every"];
const WATCHERS: &[&str] =
    &["watch", "monitor", "listen", "detect", "poll", "subscribe", "wait", "incoming", "observe", "capture", "receive", "receives"];
const HAPPENED: &[&str] = &[
    "received",
    "arrives",
    "arrived",
    "created",
    "added",
    "updated",
    "posted",
    "submitted",
    "changed",
    "deleted",
    "removed",
    "published",
    "uploaded",
    "completed",
    "closed",
    "opened",
    "mentioned",
    "assigned",
    "happens",
    "occurs",
    "booked",
    "paid",
    "cancelled",
    "canceled",
    "fails",
    "failed",
    "joins",
    "joined",
    "receives",
    "changes",
    "comes",
    "lands",
    "appears",
    "modified",
    "edited",
    "merged",
    "signed",
    "starts",
    "ends",
    "clicked",
    "subscribed",
    "unsubscribed",
    "replied",
    "replies",
    "scheduled",
    "placed",
    "fires",
    "gets",
    "started",
    "ended",
    "finished",
    "finishes",
    "resolved",
    "triggered",
    "acknowledged",
    "escalated",
    "starred",
    "pushed",
    "won",
    "lost",
    "shared",
    "mentions",
    "breaks",
    "broken",
    "bounces",
    "bounced",
    "answered",
    "succeeds",
    "succeeded",
    "detected",
    "approved",
    "declined",
    "rejected",
    "moved",
    "expires",
    "expired",
    "refunded",
    "disputed",
    "released",
    "deployed",
    "commented",
    "archived",
    "trashed",
    "reacted",
];
/// Who does something of their own accord.
const SOMEBODY: &[&str] = &["someone", "somebody", "anyone", "anybody"];
/// Words that open a question, which is answered by reading.
const QUESTIONS: &[&str] = &[
    "what", "which", "who", "whose", "how", "where", "why", "is", "are", "was", "were", "does", "do", "did", "has", "have", "can", "could",
];
/// Words after which a participle describes a thing: "the failed build".
const BEFORE_A_THING: &[&str] =
    &["the", "a", "an", "my", "our", "your", "all", "every", "this", "that", "these", "any", "get", "list", "show", "of"];
/// Commands that are as often the thing itself: "pull request merged", "message posted".
const THINGS: &[&str] = &[
    "pull", "merge", "email", "message", "call", "log", "draft", "post", "share", "store", "check", "build", "text", "forward", "query",
    "deploy", "push", "import", "export", "invite", "book", "order", "file", "record",
];
const COMMANDS: &[&str] = &[
    "send",
    "create",
    "get",
    "fetch",
    "list",
    "find",
    "search",
    "update",
    "delete",
    "remove",
    "add",
    "append",
    "insert",
    "read",
    "retrieve",
    "upload",
    "download",
    "reply",
    "post",
    "share",
    "move",
    "copy",
    "set",
    "save",
    "store",
    "write",
    "generate",
    "make",
    "edit",
    "start",
    "run",
    "execute",
    "mark",
    "check",
    "log",
    "show",
    "give",
    "lookup",
    "respond",
    "publish",
    "draft",
    "export",
    "import",
    "call",
    "invite",
    "assign",
    "change",
    "rename",
    "archive",
    "cancel",
    "schedule",
    "book",
    "notify",
    "alert",
    "tell",
    "query",
    "load",
    "pull",
    "push",
    "extract",
    "convert",
    "analyze",
    "summarize",
    "translate",
    "prepare",
    "ask",
    "apply",
    "clear",
    "build",
    "register",
    "launch",
    "deploy",
    "find",
    "count",
    "calculate",
    "look",
    "open",
    "close",
    "merge",
    "attach",
    "message",
    "email",
    "text",
    "forward",
    "sync",
    "spin",
    "turn",
    "rerun",
    "retry",
    "redeploy",
    "put",
    "take",
    "react",
    "ban",
    "mute",
    "refund",
    "approve",
    "review",
    "pin",
    "tick",
    "complete",
    "finish",
    "fulfill",
    "pay",
    "roll",
    "snooze",
    "acknowledge",
    "purge",
    "like",
    "unsubscribe",
    "resolve",
    "reopen",
    "sort",
    "replace",
    "accept",
    "decline",
    "join",
    "leave",
    "submit",
    "upgrade",
    "enable",
    "disable",
    "switch",
    "connect",
    "link",
    "place",
    "buy",
    "charge",
    "capture",
    "file",
    "insert",
    "empty",
    "restore",
    "label",
    "tag",
    "comment",
    "squash",
    "fold",
    "write",
];

/// How much a use case asks for an event: 1 surely, −1 surely an action, 0 undecided.
///
/// `words` are the lower-case words in order, stop words included, names of apps left out.
pub fn is_event(words: &[&str]) -> f32 {
    let Some(&first) = words.first() else { return 0.0 };
    let has = |list: &[&str]| words.iter().any(|w| list.contains(w));
    let happened = happened(words);
    let command = COMMANDS.contains(&first);
    if first == "trigger" || first == "triggers" {
        return trigger_first(words);
    }
    if let Some(clause) = words.iter().position(|w| matches!(*w, "when" | "whenever" | "once")).filter(|&i| i > 0) {
        return told_when(words, clause, command);
    }
    if first == "when" && matches!(words.get(1), Some(&("am" | "are" | "do" | "does" | "did" | "will" | "can" | "should" | "was" | "were")))
    {
        return -1.0;
    }
    if matches!(first, "when" | "whenever") {
        return 1.0;
    }
    if SOMEBODY.contains(&first) {
        return 0.9;
    }
    if QUESTIONS.contains(&first) {
        return -1.0;
    }
    if matches!(words, ["each" | "every", "time", ..]) || words.starts_with(&["as", "soon", "as"]) {
        return 1.0;
    }
    if OPENERS.contains(&first) && happened {
        return 0.9;
    }
    if first == "on" {
        return if happened || has(&["new"]) { 1.0 } else { 0.6 };
    }
    if words.iter().any(|w| matches!(*w, "trigger" | "triggers" | "listener")) {
        return if command { 0.1 } else { 0.9 };
    }
    let ends_happened = happened && words.last().is_some_and(|w| HAPPENED.contains(w));
    if ends_happened && THINGS.contains(&first) && words.len() <= 6 {
        return 0.7;
    }
    if command || first == "subscribe" && words.get(1) != Some(&"to") {
        return -1.0;
    }
    if WATCHERS.contains(&first) {
        return 0.8;
    }
    if first == "new" {
        return 0.8;
    }
    if happened && words.len() <= 8 {
        return if ends_happened { 0.7 } else { 0.4 };
    }
    if has(&["incoming", "webhook", "inbound"]) {
        return 0.5;
    }
    if words.contains(&"new") && !has(COMMANDS) { 0.4 } else { -0.5 }
}

/// Whether something is said to have happened, rather than a thing described by it.
fn happened(words: &[&str]) -> bool {
    let describes = |at: usize| at > 0 && at + 1 < words.len() && BEFORE_A_THING.contains(&words[at - 1]);
    words.iter().enumerate().any(|(at, word)| HAPPENED.contains(word) && !describes(at))
}

/// "Trigger on new mail" and "trigger: new lead" wait; "trigger a build" acts.
fn trigger_first(words: &[&str]) -> f32 {
    match words.get(1) {
        None => 0.9,
        Some(&"on" | &"when" | &"whenever" | &"for" | &"if" | &"new" | &"every") => 1.0,
        Some(&"a" | &"an" | &"the" | &"my" | &"this" | &"our" | &"another") => {
            if words.iter().any(|w| matches!(*w, "when" | "whenever")) {
                0.6
            } else {
                -1.0
            }
        }
        Some(_) => 0.6,
    }
}

/// "Notify me when ..." waits; "send a message when ..." does both, so nothing is decided.
fn told_when(words: &[&str], clause: usize, command: bool) -> f32 {
    let told =
        clause <= 4 && words[..clause].iter().any(|w| matches!(*w, "notify" | "tell" | "alert" | "know" | "trigger" | "start" | "starts"));
    if told {
        1.0
    } else if command {
        0.0
    } else {
        0.6
    }
}

#[cfg(test)]
mod tests {
    use super::is_event;

    #[test]
    fn tells_events_from_actions() {
        for (text, event) in [
            ("when a new email arrives", true),
            ("whenever someone opens an issue", true),
            ("on new row", true),
            ("new email", true),
            ("new row added to the spreadsheet", true),
            ("contact created", true),
            ("notify me when an invoice is paid", true),
            ("let me know when a build fails", true),
            ("every time a customer pays", true),
            ("as soon as a file is uploaded", true),
            ("watch for new files", true),
            ("trigger on new commit", true),
            ("trigger: new lead", true),
            ("slack trigger bot mention", true),
            ("incoming call", true),
            ("someone mentions the bot", true),
            ("pull request merged", true),
            ("after a meeting has ended", true),
            ("subscribe to new messages", true),
            ("subscribe somebody to the newsletter", false),
            ("rerun the failed workflow", false),
            ("spin up a new server", false),
            ("which issues are assigned to me", false),
            ("when am I free", false),
            ("trigger a build", false),
            ("trigger the deployment", false),
            ("start a workflow", false),
            ("send an email", false),
            ("create a new issue", false),
            ("create a webhook", false),
            ("add a new row", false),
            ("list new messages", false),
            ("what is the weather in Paris", false),
            ("get created contacts", false),
        ] {
            let lower = text.to_lowercase();
            let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
            assert_eq!(is_event(&words) > 0.0, event, "{text}: {}", is_event(&words));
        }
    }
}
