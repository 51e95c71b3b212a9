//! The nearest of the names that exist, for whoever wrote one that does not.

/// The candidate that `name` most likely stands for; none when nothing is close.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = folded(name);
    candidates
        .into_iter()
        .map(|candidate| (likeness(&wanted, &folded(candidate)), candidate))
        .filter(|(likeness, _)| *likeness >= CLOSE)
        // Of two that are as close the first is taken, so that the answer does not change from run to run.
        .fold(None, |best: Option<(f64, &str)>, next| match best {
            Some(best) if best.0 >= next.0 => Some(best),
            _ => Some(next),
        })
        .map(|(_, candidate)| candidate)
}

/// Those of the candidates that are close to `name`, the closest first.
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let wanted = folded(name);
    let likeness = |candidate: &'a str| (likeness(&wanted, &folded(candidate)), candidate);
    let mut close: Vec<(f64, &str)> = candidates.into_iter().map(likeness).filter(|(likeness, _)| *likeness >= NEAR).collect();
    close.sort_by(|one, other| other.0.total_cmp(&one.0));
    close.into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

/// `" Did you mean `x`?"` to end a message with, or nothing.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map_or_else(String::new, |candidate| format!(" Did you mean `{candidate}`?"))
}

/// How alike two names must be: two slips in a name of six letters are too many, one is not.
const CLOSE: f64 = 0.7;
/// How alike those are that are offered together.
const NEAR: f64 = 0.5;

/// Case and the mark between words are not what people get wrong on purpose.
fn folded(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect()
}

/// 1 for the same text, 0 for nothing in common. The beginning of a name is nearly the name.
fn likeness(a: &str, b: &str) -> f64 {
    let prefixed = a.chars().count() >= 3 && b.starts_with(a);
    let likeness = strsim::normalized_damerau_levenshtein(a, b);
    if prefixed { likeness.max(CLOSE) } else { likeness }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found() {
        let names = ["github", "gitlab", "google-calendar", "permission"];
        for (written, meant) in [
            ("githb", Some("github")),
            ("GitHub", Some("github")),
            ("gitlba", Some("gitlab")),
            ("google_calendar", Some("google-calendar")),
            ("googlecalender", Some("google-calendar")),
            ("permision", Some("permission")),
            ("perm", Some("permission")),
            ("slack", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, names), meant, "{written}");
        }
    }

    #[test]
    fn a_message_ends_with_it_or_with_nothing() {
        assert_eq!(did_you_mean("limt", ["limit", "cursor"]), " Did you mean `limit`?");
        assert_eq!(did_you_mean("colour", ["limit", "cursor"]), "");
    }
}
