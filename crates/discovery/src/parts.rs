//! A use case taken apart: what to wait for, how often, and what to do, in order.

use crate::recurring;

/// The parts of a use case, each in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UseCaseParts<'a> {
    /// What it waits for, where it says so beside what to do.
    pub(crate) waits: Option<&'a str>,
    /// What to do, in order; at least one.
    pub(crate) acts: Vec<&'a str>,
    /// When to do it again and again.
    pub(crate) cron: Option<&'static str>,
}

/// What a clause begins with that waits.
const WAITING: &[&str] =
    &["when ", "whenever ", "once ", "as soon as ", "each time ", "every time ", "after ", "if ", "on new ", "on every "];
/// What stands between two things to do.
const JOINS: &[&str] = &[", and then ", " and then ", ", then ", " then ", "; ", ", and ", " and "];
/// What a wish begins with. A word that is as often a thing is not among them.
const COMMANDS: &[&str] = &[
    "add",
    "append",
    "archive",
    "assign",
    "cancel",
    "close",
    "copy",
    "create",
    "delete",
    "email",
    "export",
    "fetch",
    "find",
    "forward",
    "generate",
    "get",
    "give",
    "insert",
    "invite",
    "label",
    "list",
    "log",
    "look",
    "mail",
    "make",
    "mark",
    "merge",
    "message",
    "move",
    "notify",
    "open",
    "pin",
    "post",
    "publish",
    "put",
    "read",
    "refund",
    "remind",
    "remove",
    "rename",
    "reply",
    "respond",
    "run",
    "save",
    "schedule",
    "search",
    "send",
    "set",
    "share",
    "show",
    "start",
    "store",
    "summarize",
    "summarise",
    "tag",
    "tell",
    "text",
    "translate",
    "update",
    "upload",
    "write",
];

impl<'a> UseCaseParts<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let (text, cron) = recurring::taken_out(text);
        let (waits, rest) = waiting(text).map_or((None, text), |(waits, rest)| (Some(waits), rest));
        Self { waits, acts: steps(rest), cron }
    }
}

/// What a use case waits for and what it does then: "when an issue is opened, post to Slack", or the other way round.
fn waiting(text: &str) -> Option<(&str, &str)> {
    let lower = text.to_ascii_lowercase();
    if WAITING.iter().any(|word| lower.starts_with(word)) {
        let ends = [", then ", ", ", " then "].iter().flat_map(|end| lower.match_indices(end));
        let mut ends: Vec<(usize, usize)> = ends.map(|(at, end)| (at, at + end.len())).collect();
        ends.sort_unstable_by_key(|(at, end)| (*at, std::cmp::Reverse(*end)));
        return ends.into_iter().find(|(_, end)| is_command(&lower[*end..])).map(|(at, end)| (text[..at].trim(), text[end..].trim()));
    }
    let at = [" when ", " whenever ", " once ", " as soon as ", " every time ", " each time "]
        .iter()
        .filter_map(|word| lower.find(word))
        .min()?;
    let (acts, waits) = (text[..at].trim().trim_end_matches(','), text[at..].trim());
    is_command(acts).then_some((waits, acts))
}

/// The things to do, in order; one of them where they cannot be told apart.
fn steps(text: &str) -> Vec<&str> {
    let (mut steps, mut rest) = (Vec::new(), text);
    'rest: loop {
        let lower = rest.to_ascii_lowercase();
        let joins = JOINS.iter().flat_map(|join| lower.match_indices(join));
        let mut joins: Vec<(usize, usize)> = joins.map(|(at, join)| (at, at + join.len())).collect();
        joins.sort_unstable_by_key(|(at, end)| (*at, std::cmp::Reverse(*end)));
        for (at, end) in joins {
            let says_enough = |text: &str| text.split_whitespace().nth(1).is_some();
            if is_command(rest) && is_command(&rest[end..]) && says_enough(&rest[..at]) && says_enough(&rest[end..]) {
                steps.push(rest[..at].trim());
                rest = &rest[end..];
                continue 'rest;
            }
        }
        steps.push(rest.trim());
        return steps;
    }
}

fn is_command(text: &str) -> bool {
    let first = text.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_ascii_lowercase();
    COMMANDS.contains(&first.as_str())
}

#[cfg(test)]
mod tests {
    use super::UseCaseParts;

    #[test]
    fn sentences_fall_into_their_parts() {
        for (text, waits, acts, cron) in [
            ("send an email", None, &["send an email"][..], None),
            (
                "When an issue is opened on GitHub, post a message to Slack",
                Some("When an issue is opened on GitHub"),
                &["post a message to Slack"],
                None,
            ),
            (
                "when a lead comes in then create a task and email the team",
                Some("when a lead comes in"),
                &["create a task", "email the team"],
                None,
            ),
            ("post to Slack when a build fails", Some("when a build fails"), &["post to Slack"], None),
            ("when a new email arrives", None, &["when a new email arrives"], None),
            ("when a task, issue or ticket is closed", None, &["when a task, issue or ticket is closed"], None),
            ("tell me when an order is paid", Some("when an order is paid"), &["tell me"], None),
            ("find and replace text", None, &["find and replace text"], None),
            (
                "look up the customer in Stripe and send them an email",
                None,
                &["look up the customer in Stripe", "send them an email"],
                None,
            ),
            ("get the rows; summarize them, then post it to Slack", None, &["get the rows", "summarize them", "post it to Slack"], None),
            ("summarize unread mail every morning", None, &["summarize unread mail"], Some("0 8 * * *")),
            ("Every Monday, list the open issues", None, &["list the open issues"], Some("0 8 * * 1")),
            ("search for salt and pepper", None, &["search for salt and pepper"], None),
        ] {
            assert_eq!(UseCaseParts::of(text), UseCaseParts { waits, acts: acts.to_vec(), cron }, "{text}");
        }
    }
}
