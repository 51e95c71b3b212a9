//! "Every morning": a use case that is to be done again and again, and when.

/// Words that say how often, with a schedule that fits them.
const TIMES: &[(&str, &str)] = &[
    ("minute", "* * * * *"),
    ("hour", "0 * * * *"),
    ("day", "0 8 * * *"),
    ("morning", "0 8 * * *"),
    ("noon", "0 12 * * *"),
    ("afternoon", "0 14 * * *"),
    ("evening", "0 18 * * *"),
    ("night", "0 22 * * *"),
    ("weekday", "0 8 * * 1-5"),
    ("week", "0 8 * * 1"),
    ("monday", "0 8 * * 1"),
    ("tuesday", "0 8 * * 2"),
    ("wednesday", "0 8 * * 3"),
    ("thursday", "0 8 * * 4"),
    ("friday", "0 8 * * 5"),
    ("saturday", "0 8 * * 6"),
    ("sunday", "0 8 * * 0"),
    ("month", "0 8 1 * *"),
    ("year", "0 8 1 1 *"),
];
/// Words that say it alone, at the start or the end: "the daily report" is a report.
const ADVERBS: &[(&str, &str)] = &[
    ("hourly", "hour"),
    ("daily", "day"),
    ("nightly", "night"),
    ("weekly", "week"),
    ("monthly", "month"),
    ("yearly", "year"),
    ("annually", "year"),
];
/// Words before a time that make it come again.
const EVERY: &[&str] = &["every", "each"];

/// A use case without what it says at its start or end about when to do it again and again, and a cron expression for that.
pub(crate) fn taken_out(use_case: &str) -> (&str, Option<&'static str>) {
    let Some(cron) = cron(use_case) else { return (use_case, None) };
    let lower = use_case.to_ascii_lowercase();
    let is_when = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let singular = word.strip_suffix('s').unwrap_or(word);
        EVERY.contains(&word) || TIMES.iter().any(|(name, _)| *name == singular) || ADVERBS.iter().any(|(name, _)| *name == word)
    };
    let words = || lower.split_inclusive(char::is_whitespace);
    let (before, after) = (words().take_while(|word| is_when(word)), words().rev().take_while(|word| is_when(word)));
    let (before, after): (usize, usize) = (before.map(str::len).sum(), after.map(str::len).sum());
    let rest = if before > 0 && before < use_case.len() {
        &use_case[before..]
    } else if after < use_case.len() {
        &use_case[..use_case.len() - after]
    } else {
        use_case
    };
    (rest.trim_matches(|c: char| c.is_whitespace() || c == ',' || c == ':'), Some(cron))
}

/// A cron expression for what a use case says about when to do it again and again.
fn cron(use_case: &str) -> Option<&'static str> {
    let lower = use_case.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let time = |word: &str| TIMES.iter().find(|(name, _)| *name == word.strip_suffix('s').unwrap_or(word)).map(|(_, cron)| *cron);
    let every = words.windows(2).find_map(|pair| EVERY.contains(&pair[0]).then(|| time(pair[1])).flatten());
    every.or_else(|| {
        let adverb = words.first().into_iter().chain(words.last()).find_map(|word| ADVERBS.iter().find(|(name, _)| name == word));
        adverb.and_then(|(_, name)| time(name))
    })
}

#[cfg(test)]
mod tests {
    use super::{cron, taken_out};

    #[test]
    fn the_rest_says_what_to_do() {
        for (text, expected) in [
            ("summarize unread mail every morning", "summarize unread mail"),
            ("Every Monday, list the open issues", "list the open issues"),
            ("daily: check the backups", "check the backups"),
            ("delete every file", "delete every file"),
            ("every morning", "every morning"),
        ] {
            assert_eq!(taken_out(text).0, expected, "{text}");
        }
    }

    #[test]
    fn reads_when_to_do_it_again() {
        for (text, expected) in [
            ("summarize unread mail every morning", Some("0 8 * * *")),
            ("Every Monday, list the open issues", Some("0 8 * * 1")),
            ("post the numbers to slack each week", Some("0 8 * * 1")),
            ("send me the weather daily", Some("0 8 * * *")),
            ("daily: check the backups", Some("0 8 * * *")),
            ("every time a customer pays", None),
            ("delete every file", None),
            ("get the daily report from stripe", None),
            ("list all issues", None),
        ] {
            assert_eq!(cron(text), expected, "{text}");
        }
    }
}
