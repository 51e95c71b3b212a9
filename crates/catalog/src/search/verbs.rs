//! What is to be done: the intent of a use case and of an action, and how well the two agree.

/// A class of verbs that ask for the same kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Intent {
    Create,
    Send,
    List,
    Search,
    Get,
    Update,
    Delete,
    Reply,
    Upload,
    Download,
    Move,
    Share,
    Run,
}

/// A set of intents; "create or update" has two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Intents(u16);

impl Intents {
    pub const NONE: Self = Self(0);

    pub fn of(intents: &[Intent]) -> Self {
        Self(intents.iter().fold(0, |mask, &i| mask | 1 << i as u8))
    }

    pub fn has(self, intent: Intent) -> bool {
        self.0 & (1 << intent as u8) != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether it changes something, and does nothing but that.
    pub fn change_only(self) -> bool {
        !self.is_empty() && self.0 & Self::of(&[List, Search, Get, Download]).0 == 0
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn iter(self) -> impl Iterator<Item = Intent> {
        ALL.into_iter().filter(move |&i| self.has(i))
    }
}

use Intent::{Create, Delete, Download, Get, List, Move, Reply, Run, Search, Send, Share, Update, Upload};

const ALL: [Intent; 13] = [Create, Send, List, Search, Get, Update, Delete, Reply, Upload, Download, Move, Share, Run];

/// Verbs by class. A word of several classes (`post`) is listed in each.
const VERBS: &[(Intent, &[&str])] = &[
    (Create, &["create", "add", "insert", "make", "append", "register", "log", "save", "store", "write", "generate", "compose", "draft"]),
    (Create, &["put", "book", "schedule", "open", "new", "upsert", "publish", "build", "record", "submit", "push", "set", "post"]),
    (
        Send,
        &["send", "post", "publish", "notify", "alert", "broadcast", "tweet", "announce", "deliver", "forward", "email", "message", "tell"],
    ),
    (List, &["list", "many", "all", "every", "enumerate", "browse", "collect", "pull", "summarize", "summarise"]),
    (Search, &["search", "find", "lookup", "query", "look", "filter", "check", "locate", "discover", "match", "summarize", "summarise"]),
    (
        Get,
        &[
            "get", "read", "fetch", "retrieve", "show", "view", "load", "obtain", "give", "pull", "see", "grab", "check", "extract",
            "return",
        ],
    ),
    (Update, &["update", "edit", "change", "modify", "set", "rename", "mark", "assign", "patch", "upsert", "replace", "adjust", "sync"]),
    (Update, &["close", "reopen", "resolve", "complete", "finish", "enable", "disable", "pause", "resume", "lock", "unlock"]),
    (Delete, &["delete", "remove", "clear", "trash", "erase", "destroy", "purge", "drop", "cancel", "archive", "unsubscribe"]),
    (Reply, &["reply", "respond", "answer"]),
    (Upload, &["upload", "attach", "import", "save", "backup"]),
    (Download, &["download", "export"]),
    (Move, &["move", "copy", "duplicate", "clone"]),
    (Share, &["share", "invite", "grant"]),
    (Run, &["run", "execute", "start", "launch", "trigger", "invoke", "deploy", "rerun", "restart"]),
];

/// Words that open a question, which is answered by reading.
const QUESTIONS: &[&str] = &["what", "which", "who", "whose", "where", "how", "when"];

/// Verbs that ask for nothing but to be told.
const FINDERS: &[&str] = &[
    "find",
    "search",
    "list",
    "fetch",
    "retrieve",
    "show",
    "lookup",
    "look",
    "read",
    "view",
    "browse",
    "enumerate",
    "summarize",
    "summarise",
    "count",
    "get",
    "check",
    "see",
    "display",
    "inspect",
    "query",
    "compare",
];
/// Words that open a question with what comes after them.
const ASKING: &[&str] = &["is", "are", "was", "were", "does", "did", "will"];
/// Words after which a sentence goes on with another wish.
const JOINS: &[&str] = &["and", "then", "or", "to"];
/// Turns that say nothing about what is wanted, the longest first.
const POLITE: &[&[&str]] = &[
    &["is", "there", "a", "way", "to"],
    &["i", "would", "like", "you", "to"],
    &["i", "would", "like", "to"],
    &["i", "want", "you", "to"],
    &["i", "d", "like", "to"],
    &["i", "want", "to"],
    &["i", "need", "to"],
    &["how", "do", "i"],
    &["how", "can", "i"],
    &["how", "to"],
    &["help", "me"],
    &["can", "you"],
    &["could", "you"],
    &["would", "you"],
    &["will", "you"],
    &["can", "i"],
    &["let", "me"],
    &["please"],
];
/// Words that say how many or which, and nothing about what.
const MODIFIERS: &[&str] = &["new", "all", "many", "every", "open"];

/// Verbs that are nouns more often, unless they open the sentence.
const NOUNS_INSIDE: &[&str] = &[
    "email", "message", "post", "record", "log", "draft", "all", "open", "book", "schedule", "query", "filter", "check", "build", "alert",
    "set", "match", "look", "store", "import", "export", "copy", "share", "run", "start", "trigger", "label", "new", "many", "every",
    "tweet", "archive", "answer", "reply", "backup", "update", "sync", "return", "change", "search", "list", "view", "push", "pull",
    "drop", "clear",
];

fn lookup(word: &str) -> Intents {
    VERBS.iter().filter(|(_, words)| words.contains(&word)).fold(Intents::NONE, |set, (intent, _)| set.with(Intents::of(&[*intent])))
}

fn singular_verb(word: &str) -> Intents {
    let found = lookup(word);
    if !found.is_empty() {
        return found;
    }
    let base = word.strip_suffix("ing").or_else(|| word.strip_suffix("es")).or_else(|| word.strip_suffix('s'));
    base.map_or(Intents::NONE, |base| {
        let found = lookup(base);
        if found.is_empty() { lookup(&format!("{base}e")) } else { found }
    })
}

/// Whether a word says what to do rather than with what.
pub fn is_operation(word: &str, leads: bool) -> bool {
    MODIFIERS.contains(&word) || leads && !singular_verb(word).is_empty()
}

/// The words without polite turns before them.
fn plainly<'w>(mut words: &'w [&'w str]) -> &'w [&'w str] {
    while let Some(turn) = POLITE.iter().find(|turn| words.starts_with(turn)) {
        words = &words[turn.len()..];
    }
    words
}

/// Whether a use case only wants to be told something; "list a product" may be an offer, and "find and replace" changes.
///
/// `words` are the lower-case words without the names of apps.
pub fn only_finds(words: &[&str]) -> bool {
    let words = plainly(words);
    let asks = match words {
        ["what" | "which" | "who" | "whose" | "where" | "why", ..]
        | ["tell" | "give", "me", ..]
        | ["when", "am" | "is" | "are" | "do" | "does" | "did" | "will" | "can" | "was" | "were", ..] => true,
        ["how", next, ..] => !matches!(*next, "do" | "can" | "to" | "should"),
        ["do" | "have", next, ..] => matches!(*next, "i" | "we" | "you" | "they" | "any"),
        [] | ["list", "a" | "an", ..] | ["get" | "see", "rid" | "off" | "to", ..] | ["check", "in" | "out" | "off", ..] => false,
        [first, ..] => ASKING.contains(first) || FINDERS.contains(first),
    };
    let goes_on = || {
        words.windows(2).any(|pair| {
            JOINS.contains(&pair[0])
                && lookup(pair[1]).change_only()
                && (matches!(pair[0], "and" | "then") || !NOUNS_INSIDE.contains(&pair[1]))
        })
    };
    asks && !goes_on()
}

/// The intent of a use case: the verb that leads it, refined by what follows.
///
/// `words` are the lower-case words without the names of apps.
pub fn asked(words: &[&str]) -> Intents {
    if words.first().is_some_and(|first| QUESTIONS.contains(first)) {
        let many = words.iter().skip(1).take(3).any(|word| plural(word));
        return if many { Intents::of(&[List, Search]) } else { Intents::of(&[Get, List, Search]) };
    }
    let leading = words.iter().enumerate().find_map(|(i, word)| {
        let found = if i > 0 && NOUNS_INSIDE.contains(word) { Intents::NONE } else { singular_verb(word) };
        (!found.is_empty()).then_some((i, found))
    });
    let (at, mut found) = match leading {
        Some(found) => found,
        None => match words.iter().position(|w| !singular_verb(w).is_empty()) {
            Some(i) => (i, singular_verb(words[i])),
            None => return Intents::NONE,
        },
    };
    let rest = &words[at + 1..];
    let all = rest.first().is_some_and(|w| matches!(*w, "all" | "many" | "every" | "list"));
    if found.has(Get) && all || found == Intents::of(&[Get]) && rest.iter().take(4).any(|w| plural(w)) {
        found = Intents::of(&[List]);
    }
    if rest.first().is_some_and(|w| *w == "or") {
        found = rest.get(1).map_or(found, |w| found.with(singular_verb(w)));
    }
    found
}

/// The intent that a document's own name declares.
pub fn declared(name_words: &[&str]) -> Intents {
    let Some(at) = name_words.iter().position(|w| !lookup(w).is_empty()) else { return Intents::NONE };
    let mut found = lookup(name_words[at]);
    let rest = &name_words[at + 1..];
    if found.has(Get) && (rest.first().is_some_and(|w| matches!(*w, "all" | "many" | "list")) || rest.last().is_some_and(|w| plural(w))) {
        found = Intents::of(&[List]);
    }
    if rest.first().is_some_and(|w| matches!(*w, "or" | "and")) {
        found = rest.get(1).map_or(found, |w| found.with(lookup(w)));
    }
    found
}

fn plural(word: &str) -> bool {
    word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") && !word.ends_with("us") && !word.ends_with("is")
}

/// How well each intent serves those that are asked for, so that many documents can be looked at.
#[derive(Debug, Clone, Copy)]
pub struct Agreement([f32; ALL.len()]);

impl Agreement {
    pub fn with(asked: Intents) -> Self {
        Self(ALL.map(|offered| asked.iter().map(|asked| affinity(asked, offered)).fold(0.0, f32::max)))
    }

    /// From 0 (another operation) to 1 (the same).
    pub fn of(&self, offered: Intents) -> f32 {
        let (mut best, mut rest) = (0.0_f32, offered.0);
        while rest != 0 {
            best = best.max(self.0[rest.trailing_zeros() as usize]);
            rest &= rest - 1;
        }
        best
    }
}

fn affinity(asked: Intent, offered: Intent) -> f32 {
    if asked == offered {
        return 1.0;
    }
    match (asked, offered) {
        (List, Search | Get) | (Search, List) | (Get, List | Download) | (Create, Upload) => 0.7,
        (Get, Search) | (Search | Download, Get) | (Send, Reply) | (Reply, Send) | (Upload, Create) => 0.5,
        (Create, Update | Send) | (Update, Create | Move) | (Send, Create | Share) | (Share, Update | Send | Create) => 0.3,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_intent_of_a_use_case() {
        for (text, expected) in [
            ("send an email to bob", &[Send][..]),
            ("create an issue", &[Create]),
            ("get all issues", &[List]),
            ("fetch open issues", &[List]),
            ("get a message", &[Get]),
            ("find a contact", &[Search]),
            ("delete the file", &[Delete]),
            ("reply to the thread", &[Reply]),
            ("upload a photo", &[Upload]),
            ("label removing", &[Delete]),
            ("email bob", &[Send]),
            ("create or update a row", &[Create, Update]),
            ("contact", &[]),
            ("trigger a build", &[Run]),
            ("which customers do we have", &[List, Search]),
            ("who is on call", &[Get, List, Search]),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(asked(&words), Intents::of(expected), "{text}");
        }
    }

    #[test]
    fn tells_what_only_finds() {
        for (text, expected) in [
            ("find all open invoices older than 30 days", true),
            ("please look at the forecast", true),
            ("list products", true),
            ("list a product for sale", false),
            ("invoice a customer", false),
            ("what is open", true),
            ("can you show my tasks", true),
            ("how many orders came in", true),
            ("how do i create an invoice", false),
            ("get rid of a file", false),
            ("find and replace text", false),
            ("look up the customer then update the deal", false),
            ("have the model write a text", false),
            ("is anna available", true),
            ("do i have mail", true),
        ] {
            assert_eq!(only_finds(&text.split(' ').collect::<Vec<_>>()), expected, "{text}");
        }
    }

    #[test]
    fn reads_the_intent_of_a_name() {
        for (text, expected) in [
            ("get many issues", &[List][..]),
            ("get an issue", &[Get]),
            ("create or update a record", &[Create, Update]),
            ("send a text message", &[Send]),
            ("slack trigger", &[Run]),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(declared(&words), Intents::of(expected), "{text}");
        }
    }

    #[test]
    fn deleting_serves_no_other_intent() {
        for intent in ALL {
            let expected = if intent == Delete { 1.0 } else { 0.0 };
            assert!((Agreement::with(Intents::of(&[intent])).of(Intents::of(&[Delete])) - expected).abs() < f32::EPSILON);
        }
    }
}
