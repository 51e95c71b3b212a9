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

/// A cron expression for what a use case says about when to do it again and again.
pub(super) fn cron(use_case: &str) -> Option<&'static str> {
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
    use super::cron;

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
