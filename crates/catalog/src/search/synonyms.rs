//! Words of the domain that stand for one another, and words that hint at others.

use std::{collections::HashMap, sync::LazyLock};

use super::stem::stem;

/// How a word found through the table relates to the word that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// Another word for the same thing.
    Same,
    /// A word that often appears where this one is meant.
    Hint,
}

const SAME: &[&[&str]] = &[
    &["mail", "email", "emails"],
    &["repo", "repository"],
    &["ticket", "issue", "bug"],
    &["meeting", "appointment", "event"],
    &["spreadsheet", "sheet", "worksheet"],
    &["row", "record", "entry"],
    &["customer", "client", "contact"],
    &["company", "organization", "organisation", "account"],
    &["pr", "pull request", "merge request"],
    &["photo", "image", "picture", "pic"],
    &["folder", "directory", "dir"],
    &["doc", "document"],
    &["db", "database"],
    &["user", "member", "person", "people"],
    &["task", "todo", "reminder"],
    &["sms", "text"],
    &["dm", "message", "msg"],
    &["channel", "room"],
    &["movie", "film"],
    &["song", "track", "music"],
    &["video", "clip"],
    &["weather", "forecast"],
    &["stock", "share", "equity"],
    &["price", "quote", "cost"],
    &["currency", "exchange", "forex"],
    &["crypto", "cryptocurrency", "coin", "bitcoin"],
    &["invoice", "bill"],
    &["payment", "charge"],
    &["order", "purchase"],
    &["tag", "label"],
    &["comment", "note"],
    &["article", "news", "story"],
    &["job", "vacancy", "position"],
    &["lead", "prospect"],
    &["deal", "opportunity"],
    &["calendar", "schedule", "agenda"],
    &["url", "link", "website"],
    &["translate", "translation"],
    &["summarize", "summary", "summarise"],
    &["team", "group"],
    &["audio", "voice", "sound"],
    &["attachment", "file"],
    &["phone", "telephone"],
    &["pdf", "document"],
    &["create", "add", "make", "insert"],
    &["get", "fetch", "retrieve", "read"],
    &["delete", "remove"],
    &["update", "edit", "modify", "change"],
    &["search", "find", "lookup"],
    &["list", "many", "all"],
    &["send", "post"],
    &["reply", "respond", "answer"],
    &["append", "add"],
    &["download", "export"],
    &["upload", "import"],
    &["receive", "incoming", "inbound", "arrive"],
    &["convert", "transform", "conversion"],
    &["calculate", "compute", "calculation"],
    &["generate", "create", "generation"],
    &["verify", "validate", "check", "validation"],
    &["finish", "complete"],
    &["win", "won"],
    &["pay", "paid"],
    &["send", "sent"],
    &["begin", "start"],
];

const HINTS: &[(&str, &[&str])] = &[
    ("conference", &["meeting"]),
    ("break", &["fail"]),
    ("crash", &["fail", "error"]),
    ("encyclopedia", &["wikipedia"]),
    ("email", &["message", "gmail", "outlook"]),
    ("mail", &["message", "gmail", "outlook"]),
    ("inbox", &["message", "email", "gmail"]),
    ("newsletter", &["email", "campaign"]),
    ("alert", &["message", "send", "notification"]),
    ("notify", &["message", "send", "notification"]),
    ("notification", &["message", "send"]),
    ("reminder", &["message", "send"]),
    ("announce", &["message", "send"]),
    ("chat", &["message", "slack", "telegram"]),
    ("tell", &["message", "send"]),
    ("save", &["create", "append", "row", "record", "upload"]),
    ("store", &["create", "append", "row", "record", "insert"]),
    ("log", &["append", "row", "create", "record", "insert"]),
    ("write", &["append", "row", "create", "update"]),
    ("record", &["append"]),
    ("track", &["append", "row"]),
    ("insert", &["row", "append"]),
    ("database", &["table", "row", "query", "sql"]),
    ("table", &["row", "record"]),
    ("query", &["search", "execute", "sql"]),
    ("spreadsheet", &["row", "google"]),
    ("sheet", &["row", "google"]),
    ("crm", &["contact", "deal", "lead", "hubspot"]),
    ("meeting", &["calendar"]),
    ("appointment", &["calendar"]),
    ("book", &["create", "calendar"]),
    ("schedule", &["create", "event"]),
    ("check", &["get", "search"]),
    ("fetch", &["many"]),
    ("load", &["get", "read"]),
    ("pull", &["get", "many"]),
    ("collect", &["get", "many"]),
    ("mark", &["update"]),
    ("set", &["update"]),
    ("status", &["update"]),
    ("assign", &["update"]),
    ("move", &["update"]),
    ("tweet", &["twitter"]),
    ("draft", &["message", "create"]),
    ("ai", &["completion", "openai", "model"]),
    ("gpt", &["completion", "openai", "chat"]),
    ("prompt", &["completion", "model"]),
    ("summarize", &["completion", "text"]),
    ("transcribe", &["audio", "speech", "recording"]),
    ("analyze", &["analysis", "completion"]),
    ("ask", &["completion", "message", "wait", "response"]),
    ("confirm", &["wait", "response"]),
    ("approval", &["wait", "response"]),
    ("approve", &["wait", "response"]),
    ("feedback", &["wait", "response"]),
    ("page", &["database"]),
    ("redeploy", &["deploy", "build", "trigger"]),
    ("backup", &["upload", "file", "copy"]),
    ("report", &["document"]),
    ("hotel", &["accommodation", "booking"]),
    ("flight", &["airline", "airport"]),
    ("recipe", &["food", "cooking", "meal"]),
    ("restaurant", &["food", "dining"]),
    ("car", &["vehicle"]),
    ("house", &["property", "real", "estate"]),
    ("home", &["property"]),
    ("game", &["gaming"]),
    ("soccer", &["football"]),
    ("doctor", &["medical", "health"]),
    ("paper", &["research", "academic", "arxiv"]),
    ("student", &["learning", "education"]),
    ("learn", &["course", "education"]),
    ("trip", &["travel"]),
    ("vacation", &["travel"]),
    ("buy", &["shopping", "product", "shop"]),
    ("gift", &["shopping", "product"]),
    ("diagram", &["chart", "visualization"]),
    ("graph", &["chart"]),
    ("plot", &["chart"]),
];

static TABLE: LazyLock<HashMap<String, Vec<(String, Relation)>>> = LazyLock::new(|| {
    let mut table: HashMap<String, Vec<(String, Relation)>> = HashMap::new();
    let mut link = |from: &str, to: &str, relation| {
        let (from, to) = (stem(from), stem(to));
        let known = table.entry(from.clone()).or_default();
        if from != to && !known.iter().any(|(word, _)| *word == to) {
            known.push((to, relation));
        }
    };
    for group in SAME {
        for from in *group {
            for to in *group {
                link(from, to, Relation::Same);
            }
        }
    }
    for (from, words) in HINTS {
        for to in *words {
            link(from, to, Relation::Hint);
        }
    }
    table
});

/// The stems related to a stem, nearest first.
pub(super) fn related(stem: &str) -> &'static [(String, Relation)] {
    TABLE.get(stem).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relates_words_of_the_domain() {
        for (from, to, relation) in [
            ("repo", "repository", Relation::Same),
            ("ticket", "issue", Relation::Same),
            ("meeting", "appointment", Relation::Same),
            ("mail", "email", Relation::Same),
            ("email", "message", Relation::Hint),
        ] {
            let found = related(&stem(from)).iter().find(|(word, _)| *word == stem(to));
            assert_eq!(found.map(|f| f.1), Some(relation), "{from} -> {to}");
        }
        assert!(related("zebra").is_empty());
    }
}
