//! How often an operation is meant among those of its app: people send mail more often than they empty the trash.
//!
//! Where an app does not say so itself: for well-known apps, what people do with them; for others, what is done with the things that
//! most automation is about.

use super::{
    apps::plain_forms,
    document::{Document, Integration, Kind},
    habits::{ACTIONS, EVENTS},
    stem::stem,
    tokens::{is_stop, tokens},
    verbs::{Intent, Intents},
};

/// How often the first of an app's operations is meant, the next two, and the next three.
const TIERS: [f32; 6] = [1.0, 0.7, 0.7, 0.4, 0.4, 0.4];
/// The most that is said of an app that is not known.
const UNKNOWN: f32 = 0.35;
/// The same of an event.
const UNKNOWN_EVENT: f32 = 0.18;
/// A name with more words besides those of a phrase means something else.
const MOST_BESIDES: usize = 2;

/// The things that most automation is about, as stems.
const MAIN_THINGS: &[&str] = &[
    "message", "email", "mail", "row", "record", "page", "item", "issu", "task", "event", "contact", "lead", "deal", "ticket", "file",
    "document", "post", "card", "order", "custom", "invoic", "payment", "product", "imag", "video", "chat", "complet", "respons", "queri",
    "member", "subscrib", "meet", "compani", "entri", "text", "sms",
];

/// As many calls as make an operation half as likely as the main one of its app.
const HALF: f32 = 4.0;

/// How often an operation is meant in a project that called it so many times of late, from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "a count of calls")]
pub fn usage_of(times: u32) -> f32 {
    let times = times as f32;
    times / (times + HALF)
}

/// One operation of an app.
#[derive(Debug)]
pub(super) struct Operation {
    kind: Kind,
    /// The stems of its name, those of the app's name left out.
    name: Vec<String>,
    resource: Vec<String>,
    intents: Intents,
}

impl Operation {
    /// `words` are the lower-case words of its name.
    pub(super) fn new(document: &Document, words: &[&str], intents: Intents) -> Self {
        let of_app = stems_of(&document.integration.name);
        let mut name = stems(words.iter().copied());
        name.retain(|stem| stem != "trigger" && !of_app.contains(stem));
        Self { kind: document.kind, name, resource: stems_of(&document.resource), intents }
    }

    /// How many words its name has besides those of a phrase; none if it does not say what the phrase says.
    fn besides(&self, phrase: &str) -> Option<usize> {
        let mut slots = 0;
        let all = phrase.split(' ').all(|slot| {
            slots += 1;
            slot.split('|').map(stem).any(|word| self.name.contains(&word) || self.resource.contains(&word))
        });
        all.then(|| self.name.len().saturating_sub(slots))
    }
}

/// How often each of an app's operations is meant, from 0 to 1.
pub(super) fn usual(integration: &Integration, operations: &[Operation]) -> Vec<f32> {
    if integration.name.is_empty() {
        return vec![0.0; operations.len()];
    }
    let forms = plain_forms(integration);
    let mut usage: Vec<f32> = Vec::with_capacity(operations.len());
    let (actions, events) = (known(ACTIONS, &forms), known(EVENTS, &forms));
    usage.extend(operations.iter().map(|one| match one.kind {
        Kind::Action if actions.is_none() => UNKNOWN * verb(one.intents) * thing(&one.name),
        Kind::Event if events.is_none() => UNKNOWN_EVENT * thing(&one.name),
        _ => 0.0,
    }));
    for (kind, phrases) in [(Kind::Action, actions), (Kind::Event, events)] {
        for (phrase, tier) in phrases.unwrap_or_default().iter().zip(TIERS) {
            for at in plainest(operations, kind, phrase) {
                usage[at] = usage[at].max(tier);
            }
        }
    }
    usage
}

/// The operations that a phrase means: those that say it with the fewest other words. After a slash is another phrase, for apps that have
/// nothing for the first.
fn plainest(operations: &[Operation], kind: Kind, phrase: &str) -> Vec<usize> {
    for phrase in phrase.split('/') {
        let of_kind = operations.iter().enumerate().filter(|(_, one)| one.kind == kind);
        let found: Vec<(usize, usize)> = of_kind.filter_map(|(at, one)| Some((at, one.besides(phrase)?))).collect();
        let Some(least) = found.iter().map(|(_, besides)| *besides).min().filter(|least| *least <= MOST_BESIDES) else { continue };
        return found.into_iter().filter(|(_, besides)| *besides == least).map(|(at, _)| at).collect();
    }
    Vec::new()
}

fn known(table: &'static [(&str, &[&str])], forms: &[String]) -> Option<&'static [&'static str]> {
    table.iter().find(|(apps, _)| apps.split('|').any(|app| forms.iter().any(|form| form == app))).map(|(_, phrases)| *phrases)
}

fn stems_of(text: &str) -> Vec<String> {
    let words = tokens(text);
    stems(words.iter().filter(|token| !token.joined).map(|token| token.text.as_str()))
}

fn stems<'w>(words: impl Iterator<Item = &'w str>) -> Vec<String> {
    let mut stems: Vec<String> = words.filter(|word| !is_stop(word) && *word != "new").map(stem).collect();
    stems.sort_unstable();
    stems.dedup();
    stems
}

fn verb(intents: Intents) -> f32 {
    let shares = [
        (Intent::Send, 1.0),
        (Intent::Create, 1.0),
        (Intent::Run, 0.9),
        (Intent::List, 0.8),
        (Intent::Search, 0.8),
        (Intent::Update, 0.7),
        (Intent::Get, 0.6),
        (Intent::Reply, 0.6),
        (Intent::Upload, 0.6),
        (Intent::Download, 0.6),
        (Intent::Share, 0.3),
        (Intent::Move, 0.3),
        (Intent::Delete, 0.2),
    ];
    shares.into_iter().find(|(intent, _)| intents.has(*intent)).map_or(0.4, |(_, share)| share)
}

fn thing(stems: &[String]) -> f32 {
    let is_main = stems.iter().any(|stem| MAIN_THINGS.contains(&stem.as_str()));
    let plain = if stems.len() <= 3 { 1.0 } else { 0.7 };
    if is_main { plain } else { 0.4 * plain }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::verbs;

    fn usages(app: &str, names: &[&str]) -> Vec<f32> {
        let integration = Integration { key: app.to_lowercase(), name: app.into(), ..Integration::default() };
        let operation = |name: &&str| {
            let lower = name.to_lowercase();
            let words: Vec<&str> = lower.split(' ').collect();
            Operation::new(&Document { integration: integration.clone(), ..Document::default() }, &words, verbs::declared(&words))
        };
        usual(&integration, &names.iter().map(operation).collect::<Vec<_>>())
    }

    #[test]
    fn what_people_do_comes_before_what_they_could() {
        for (app, more, less) in [
            ("Gmail", "Send a message", "Create a label"),
            ("Gmail", "Get many messages", "Delete a thread"),
            ("Google Sheets", "Append row in sheet", "Delete rows or columns from sheet"),
            ("Slack", "Send a message", "Archive a channel"),
            ("Slack", "Send a message", "Post an ephemeral message"),
            ("Airtable", "Create a record", "Create or update a record"),
            ("Jira Software", "Create an issue", "Create a user"),
            ("Microsoft Excel (OneDrive)", "Append rows", "Delete a sheet"),
            ("Acme", "Create a ticket", "Create a webhook"),
            ("Acme", "List orders", "Delete an order"),
        ] {
            let usage = usages(app, &[more, less]);
            assert!(usage[0] > usage[1] + 0.1, "{app}: {more}, {less}: {usage:?}");
        }
    }

    #[test]
    fn calls_of_a_project_make_an_operation_more_likely_and_never_certain() {
        let usage: Vec<f32> = [0, 1, 4, 500, u32::MAX].into_iter().map(usage_of).collect();
        assert!(usage.is_sorted() && usage[0] == 0.0 && (usage[2] - 0.5).abs() < 1e-6 && usage[4] <= 1.0, "{usage:?}");
    }

    #[test]
    fn main_things_are_stems() {
        for (word, thing) in [("issues", "issu"), ("customer", "custom"), ("queries", "queri"), ("company", "compani"), ("images", "imag")]
        {
            assert_eq!(stem(word), thing);
        }
    }
}
