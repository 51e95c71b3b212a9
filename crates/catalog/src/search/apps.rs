//! Recognising the app that a use case names: by name, alias, as two words, or misspelt by one letter.

use std::collections::HashMap;

use super::{
    document::Integration,
    popular,
    tokens::{is_stop, tokens},
};

/// Words that do not tell one product of a vendor from another; "Sheets" alone still means Google Sheets.
const VENDORS: &[&str] = &["google", "microsoft", "aws", "amazon", "zoho", "azure", "adobe", "atlassian", "apple"];
/// Words at the end of an integration's name that people leave out.
const DECORATION: &[&str] =
    &["trigger", "api", "mcp", "server", "app", "integration", "software", "online", "business", "cloud", "tool", "crm"];
const LONGEST_NAME: usize = 4;
const NAME: f32 = 1.0;
const SHORT: f32 = 0.9;
const ALIAS: f32 = 0.8;
const FIRST_WORD: f32 = 0.6;
const MISSPELT: f32 = 0.8;

/// One integration of an index.
#[derive(Debug, Clone)]
pub struct App {
    pub key: String,
    /// How likely this app is when none is named.
    pub prior: f32,
    documents: u32,
}

/// An app that a use case names, with how sure that is, and the words that name it.
#[derive(Debug, Clone, PartialEq)]
pub struct Mention {
    pub app: u32,
    pub strength: f32,
    pub words: std::ops::Range<usize>,
}

/// The integrations of an index and every form of their names.
#[derive(Debug, Clone, Default)]
pub struct Apps {
    all: Vec<App>,
    by_key: HashMap<(String, String), u32>,
    forms: HashMap<String, Vec<(u32, f32)>>,
    /// The forms of a length, so that a misspelt word is compared with few.
    by_length: Vec<Vec<String>>,
}

impl Apps {
    /// Finds or adds the integration and counts one more document of it.
    pub fn add(&mut self, provider: &str, integration: &Integration) -> u32 {
        let key = (provider.to_owned(), integration.key.clone());
        let id = if let Some(&id) = self.by_key.get(&key) {
            id
        } else {
            let id = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
            let prior = plain_forms(integration).iter().map(|form| popular::prior(form)).fold(0.0, f32::max);
            self.all.push(App { key: integration.key.clone(), prior, documents: 0 });
            self.by_key.insert(key, id);
            self.learn(id, integration);
            id
        };
        self.all[id as usize].documents += 1;
        id
    }

    pub fn iter(&self) -> impl Iterator<Item = &App> {
        self.all.iter()
    }

    pub fn get(&self, app: u32) -> &App {
        &self.all[app as usize]
    }

    fn learn(&mut self, id: u32, integration: &Integration) {
        let mut teach = |form: String, strength: f32| {
            if form.len() < 2 {
                return;
            }
            let form = singular(&form);
            if !self.forms.contains_key(form) {
                self.by_length.resize(self.by_length.len().max(form.len() + 1), Vec::new());
                self.by_length[form.len()].push(form.to_owned());
            }
            let known = self.forms.entry(form.to_owned()).or_default();
            if !known.iter().any(|(app, _)| *app == id) {
                known.push((id, strength));
            }
        };
        for form in core_forms(integration) {
            teach(form, NAME);
        }
        let words = name_words(&integration.name);
        let plain = undecorated(&words, DECORATION);
        teach(plain.concat(), SHORT);
        if plain.len() > 1 {
            if VENDORS.contains(&plain[0].as_str()) {
                teach(plain[1..].concat(), SHORT);
            } else {
                teach(plain[0].clone(), FIRST_WORD);
            }
        }
        for alias in &integration.aliases {
            teach(name_words(alias).concat(), ALIAS);
        }
    }

    /// Every app that the words name. `frequency` tells how many documents contain a word, so that an app
    /// called "Code" is not taken for granted.
    pub fn mentioned(&self, words: &[&str], frequency: &dyn Fn(&str) -> u32) -> Vec<Mention> {
        let mut found = Vec::new();
        let mut taken = vec![false; words.len()];
        for length in (1..=LONGEST_NAME.min(words.len())).rev() {
            for start in 0..=words.len() - length {
                let range = start..start + length;
                if taken[range.clone()].iter().any(|t| *t) {
                    continue;
                }
                let mentions = self.named(&words[range.clone()], frequency);
                if mentions.is_empty() {
                    continue;
                }
                taken[range.clone()].fill(true);
                found.extend(mentions.into_iter().map(|(app, strength)| Mention { app, strength, words: range.clone() }));
            }
        }
        found
    }

    fn named(&self, words: &[&str], frequency: &dyn Fn(&str) -> u32) -> Vec<(u32, f32)> {
        let (joined, length) = (words.concat(), words.len());
        let joined = joined.as_str();
        if let Some(apps) = self.forms.get(singular(joined)) {
            let own: u32 = apps.iter().map(|(app, _)| self.all[*app as usize].documents).sum();
            let alias_only = apps.iter().all(|(_, strength)| *strength < NAME);
            let specific = if length > 1 && !alias_only { 1.0 } else { specificity(own, frequency(joined)) };
            let best = apps.iter().map(|a| a.1).fold(0.0, f32::max);
            return apps
                .iter()
                .filter(|(_, strength)| best < SHORT || *strength > ALIAS)
                .map(|&(app, strength)| (app, strength * specific))
                .filter(|(_, strength)| *strength > 0.1)
                .collect();
        }
        // "A Slack channel" is no misspelling: only one word, or the two halves of a name, can be.
        let is_known = |word: &&str| is_stop(word) || self.forms.contains_key(singular(word));
        if length > 2 || joined.len() < 5 || frequency(joined) > 0 || length == 2 && words.iter().any(is_known) {
            return Vec::new();
        }
        let lengths = joined.len().saturating_sub(1).max(5)..=joined.len() + 1;
        let close = lengths.filter_map(|length| self.by_length.get(length)).flatten().filter(|form| one_edit(joined, form));
        close
            .flat_map(|form| self.forms[form].iter().filter(|(_, strength)| *strength >= NAME))
            .map(|&(app, strength)| (app, strength * MISSPELT))
            .collect()
    }
}

/// How much of a word's use belongs to the app of that name.
#[expect(clippy::cast_precision_loss, reason = "counts of documents")]
fn specificity(own: u32, all: u32) -> f32 {
    if all <= own { 1.0 } else { (own as f32 / all as f32).powf(0.75) }
}

/// The collapsed key and name, with and without decoration.
fn core_forms(integration: &Integration) -> Vec<String> {
    let mut forms = Vec::with_capacity(2);
    for text in [&integration.name, &integration.key] {
        let form = undecorated(&name_words(text), &["trigger", "mcp", "server", "api"]).concat();
        if !form.is_empty() && !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

/// The collapsed names that people give an app.
pub(super) fn plain_forms(integration: &Integration) -> Vec<String> {
    let mut forms = core_forms(integration);
    forms.push(undecorated(&name_words(&integration.name), DECORATION).concat());
    forms
}

/// The words of a name without the decoration at its end.
fn undecorated<'w>(words: &'w [String], decoration: &[&str]) -> &'w [String] {
    let end = words.iter().rposition(|w| !decoration.contains(&w.as_str())).map_or(1, |last| last + 1);
    &words[..end.min(words.len())]
}

fn name_words(name: &str) -> Vec<String> {
    let name = name.split('(').next().unwrap_or(name);
    let name = name.trim().trim_end_matches(".com").trim_end_matches(".io");
    tokens(name).into_iter().filter(|t| !t.joined).map(|t| t.text).collect()
}

fn singular(form: &str) -> &str {
    if form.len() > 4 { form.strip_suffix('s').unwrap_or(form) } else { form }
}

/// Whether two words differ by one letter more, less, changed or swapped with its neighbour.
fn one_edit(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    // What changes one end leaves the other.
    if left.len().abs_diff(right.len()) > 1 || (left.first() != right.first() && left.last() != right.last()) {
        return false;
    }
    let start = left.iter().zip(right).take_while(|(x, y)| x == y).count();
    let (left, right) = (&left[start..], &right[start..]);
    let end = left.iter().rev().zip(right.iter().rev()).take_while(|(x, y)| x == y).count();
    match (&left[..left.len() - end], &right[..right.len() - end]) {
        ([] | [_], [] | [_]) => true,
        ([first, second], [swapped, with]) => first == with && second == swapped,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apps() -> Apps {
        let mut apps = Apps::default();
        for (key, name, aliases) in [
            ("github", "GitHub", vec!["gh"]),
            ("google_sheets", "Google Sheets", vec!["gsheets"]),
            ("slack", "Slack", vec![]),
            ("outlook", "Microsoft Outlook", vec![]),
            ("code", "Code", vec![]),
            ("salesforce", "Salesforce Trigger", vec!["sfdc"]),
            ("monday", "Monday.com", vec![]),
        ] {
            let integration = Integration {
                key: key.into(),
                name: name.into(),
                aliases: aliases.into_iter().map(String::from).collect(),
                about: String::new(),
            };
            apps.add("toolyard", &integration);
        }
        apps
    }

    #[test]
    fn recognises_the_named_app() {
        let apps = apps();
        let frequency = |word: &str| match word {
            "code" => 400,
            "issue" | "create" | "message" => 50,
            _ => 0,
        };
        for (text, expected) in [
            ("create a github issue", vec!["github"]),
            ("create a git hub issue", vec!["github"]),
            ("create a githbu issue", vec!["github"]),
            ("create a gihub issue", vec!["github"]),
            ("gh issue", vec!["github"]),
            ("add to google sheet", vec!["google_sheets"]),
            ("add to sheets", vec!["google_sheets"]),
            ("slak message", vec![]),
            ("a slack message", vec!["slack"]),
            ("slack message from outlook", vec!["slack", "outlook"]),
            ("salesfroce lead", vec!["salesforce"]),
            ("monday item", vec!["monday"]),
            ("run some code", vec![]),
            ("create a message", vec![]),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            let mut got: Vec<(usize, &str)> =
                apps.mentioned(&words, &frequency).into_iter().map(|m| (m.words.start, apps.get(m.app).key.as_str())).collect();
            got.sort_unstable();
            assert_eq!(got.into_iter().map(|g| g.1).collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
