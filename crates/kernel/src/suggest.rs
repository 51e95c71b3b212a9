//! The nearest of the names that exist, for whoever wrote one that does not.

/// The candidate that `name` most likely stands for; none when nothing is close.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = folded(name);
    candidates
        .into_iter()
        .filter_map(|candidate| Some((likeness(&wanted, &folded(candidate), CLOSE)?, candidate)))
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
    let likeness = |candidate: &'a str| Some((likeness(&wanted, &folded(candidate), NEAR)?, candidate));
    let mut close: Vec<(f64, &str)> = candidates.into_iter().filter_map(likeness).collect();
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

/// 1 for the same text, 0 for nothing in common; nothing where it is less than asked. The beginning of a name is nearly the name.
fn likeness(a: &str, b: &str, least: f64) -> Option<f64> {
    let prefixed = a.chars().count() >= 3 && b.starts_with(a);
    if !prefixed && most_likeness(a, b) < least {
        return None;
    }
    let likeness = strsim::normalized_damerau_levenshtein(a, b);
    Some(if prefixed { likeness.max(CLOSE) } else { likeness }).filter(|likeness| *likeness >= least)
}

/// What the likeness cannot exceed, by the letters alone: each that only one of the two has takes a step of its own. Most names are ruled
/// out by this, and need not be compared letter by letter.
fn most_likeness(a: &str, b: &str) -> f64 {
    let (mut surplus, mut lengths) = ([0_i32; 128], [0_u32; 2]);
    for (place, (text, step)) in [(a, 1), (b, -1)].into_iter().enumerate() {
        for letter in text.chars() {
            // Letters that share a place can only make it exceed more.
            surplus[letter as usize % 128] += step;
            lengths[place] += 1;
        }
    }
    let one_sided = |sign: i32| surplus.iter().map(|surplus| (surplus * sign).max(0).unsigned_abs()).sum::<u32>();
    let longest = lengths[0].max(lengths[1]);
    if longest == 0 { 1.0 } else { 1.0 - f64::from(one_sided(1).max(one_sided(-1))) / f64::from(longest) }
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
    fn the_letters_alone_never_rule_out_what_is_close() {
        let names = ["github", "githb", "gtihub", "hubgit", "google-calendar", "", "a", "é", "ünïcode", "unicode", "aab", "baa"];
        for (a, b) in names.iter().flat_map(|a| names.map(|b| (*a, b))) {
            let exact = strsim::normalized_damerau_levenshtein(a, b);
            assert!(most_likeness(a, b) >= exact - 1e-9, "{a} {b}");
        }
    }

    #[test]
    fn a_message_ends_with_it_or_with_nothing() {
        assert_eq!(did_you_mean("limt", ["limit", "cursor"]), " Did you mean `limit`?");
        assert_eq!(did_you_mean("colour", ["limit", "cursor"]), "");
    }
}
