//! How well tools fit a prompt: the words they share, rare ones counting more. A function of values.

use std::collections::HashMap;

const STOP_WORDS: [&str; 44] = [
    "a", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "could", "do", "for", "from", "have", "how", "i", "if", "in",
    "is", "it", "its", "me", "my", "of", "on", "or", "our", "please", "should", "so", "that", "the", "then", "this", "to", "we", "what",
    "which", "will", "with", "would", "you",
];

/// Words in a name say more about a tool than words in its description.
const NAME: f64 = 3.0;
const APP: f64 = 2.5;
const USE_CASE: f64 = 2.0;
const DESCRIPTION: f64 = 1.0;

/// What a tool says about itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidate<'a> {
    pub(super) names: [&'a str; 2],
    pub(super) app: [&'a str; 2],
    pub(super) use_cases: &'a [String],
    pub(super) description: &'a str,
}

/// How well each candidate fits, in their order; nothing in common is zero.
pub(super) fn relevance(prompt: &str, candidates: &[Candidate<'_>]) -> Vec<f64> {
    let terms = terms(prompt);
    if terms.is_empty() {
        return vec![0.0; candidates.len()];
    }
    // Most words of a tool begin with a letter that no term begins with, and need no closer look.
    let mut starts = [false; 256];
    for term in terms.keys() {
        starts[usize::from(term.as_bytes()[0])] = true;
    }
    let weights: Vec<Vec<f64>> = candidates.iter().map(|candidate| weigh(candidate, &terms, &starts)).collect();
    let rarity: Vec<f64> = (0..terms.len())
        .map(|term| {
            let having = count(weights.iter().filter(|weights| weights[term] > 0.0).count());
            (1.0 + (count(candidates.len()) - having + 0.5) / (having + 0.5)).ln()
        })
        .collect();
    let score = |weights: &Vec<f64>| {
        let sum: f64 = weights.iter().zip(&rarity).map(|(weight, rarity)| weight * rarity).sum();
        let matched = count(weights.iter().filter(|weight| **weight > 0.0).count());
        sum * (0.5 + 0.5 * matched / count(terms.len()))
    };
    weights.iter().map(score).collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts of tools and words are small")]
fn count(number: usize) -> f64 {
    number as f64
}

/// The words of a prompt that say something, each with its place.
fn terms(prompt: &str) -> HashMap<String, usize> {
    let mut terms = HashMap::new();
    let mut word = String::new();
    for part in prompt.split(|c: char| !c.is_alphanumeric()) {
        fold(part, &mut word);
        if !word.is_empty() && !STOP_WORDS.contains(&word.as_str()) && !terms.contains_key(&word) {
            terms.insert(word.clone(), terms.len());
        }
    }
    terms
}

/// The heaviest place of each term in a candidate.
fn weigh(candidate: &Candidate<'_>, terms: &HashMap<String, usize>, starts: &[bool; 256]) -> Vec<f64> {
    let mut weights = vec![0.0_f64; terms.len()];
    let mut word = String::new();
    let mut note = |text: &str, weight: f64| {
        for part in text.split(|c: char| !c.is_alphanumeric()) {
            let could_fit = part.bytes().next().is_some_and(|first| !first.is_ascii() || starts[usize::from(first.to_ascii_lowercase())]);
            if !could_fit {
                continue;
            }
            fold(part, &mut word);
            if let Some(term) = terms.get(&word) {
                weights[*term] = weights[*term].max(weight);
            }
        }
    };
    candidate.names.iter().for_each(|name| note(name, NAME));
    candidate.app.iter().for_each(|app| note(app, APP));
    candidate.use_cases.iter().for_each(|case| note(case, USE_CASE));
    note(candidate.description, DESCRIPTION);
    weights
}

/// A word in lower case and without the ending of its plural.
fn fold(part: &str, word: &mut String) {
    word.clear();
    if part.is_ascii() {
        word.push_str(part);
        word.make_ascii_lowercase();
    } else {
        word.push_str(&part.to_lowercase());
    }
    if word.len() > 4 && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(prompt: &str) -> &'static str {
        let tools = [
            ("CREATE_AN_ISSUE", "github", "Opens an issue in a repository."),
            ("LIST_REPOSITORIES", "github", "Lists the repositories of an account."),
            ("SEND_MESSAGE", "slack", "Sends a message to a channel."),
            ("CREATE_EVENT", "google-calendar", "Adds an event to a calendar."),
        ];
        let candidates: Vec<Candidate<'_>> = tools
            .iter()
            .map(|(name, app, description)| Candidate { names: [name, ""], app: [app, ""], use_cases: &[], description })
            .collect();
        let scores = relevance(prompt, &candidates);
        let top = (0..tools.len()).max_by(|left, right| scores[*left].total_cmp(&scores[*right])).unwrap();
        assert!(scores[top] > 0.0, "{prompt}");
        tools[top].0
    }

    #[test]
    fn the_words_of_a_prompt_lead_to_the_tool() {
        for (prompt, tool) in [
            ("please open a new issue in the github repo", "CREATE_AN_ISSUE"),
            ("which repository do I have?", "LIST_REPOSITORIES"),
            ("tell the slack channel that we are done", "SEND_MESSAGE"),
            ("put it on my calendars", "CREATE_EVENT"),
        ] {
            assert_eq!(best(prompt), tool, "{prompt}");
        }
    }

    #[test]
    fn nothing_in_common_is_zero() {
        let candidates = [Candidate { names: ["CREATE_AN_ISSUE", ""], ..Candidate::default() }];
        for prompt in ["", "the of and", "weather tomorrow", "👋 …"] {
            assert_eq!(relevance(prompt, &candidates), [0.0], "{prompt}");
        }
    }
}
