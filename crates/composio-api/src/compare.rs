//! Which of somebody's tools have a counterpart here, for whoever thinks about coming from Composio. Only slugs are compared: what they
//! stand for there is not ours to keep.

use std::collections::BTreeSet;

use catalog::search::Kind;
use catalog::{Catalog, CatalogError, Item, SearchRequest};
use kernel::ProjectId;
use serde::Serialize;

use crate::names::{Names, Toolkit};

/// How many finds are looked at for one of the right toolkit.
const LOOKED_AT: usize = 50;
/// From this confidence on, a find is worth a look.
const WORTH_A_LOOK: f32 = 0.15;
const MAX_SLUG: usize = 120;

/// What there is in place of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "found")]
pub enum Counterpart {
    /// A tool of the same slug. Its arguments and its result are still ours.
    Same,
    /// A tool that does the same, as far as the slugs say.
    Likely { slug: String, about: String },
    /// The toolkit is here, and has nothing alike.
    Nothing { toolkit: String },
    /// There is no such toolkit.
    NoToolkit,
}

/// What looks like a slug in a text: a list, code or JSON. A word that stands alone on its line counts, and one in quotes.
pub fn slugs_in(text: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let alone = line.trim().trim_start_matches(['-', '*']).trim().trim_end_matches(',');
        found.extend(Some(alone).filter(|word| is_slug(word)).map(str::to_owned));
        for quote in ['"', '\'', '`'] {
            found.extend(line.split(quote).skip(1).step_by(2).filter(|word| is_slug(word)).map(str::to_owned));
        }
    }
    found.into_iter().collect()
}

fn is_slug(word: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let starts = word.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase());
    starts && word.len() <= MAX_SLUG && word.bytes().all(fits) && word.trim_end_matches('_').contains('_')
}

/// What there is here in place of a tool of Composio's.
pub fn counterpart(catalog: &Catalog, names: &Names, slug: &str) -> Result<Counterpart, CatalogError> {
    if names.find_tool(slug).is_some() {
        return Ok(Counterpart::Same);
    }
    let Some((toolkit, rest)) = toolkit_in(names, slug) else { return Ok(Counterpart::NoToolkit) };
    let integration = &toolkit.integration;
    let use_case = format!("{} {}", integration.name, rest.replace('_', " ").to_lowercase());
    let preferred = [integration.key.as_str()];
    let request = SearchRequest { use_case: &use_case, kind: Kind::Action, limit: LOOKED_AT, preferred: &preferred, examples: None };
    let answer = catalog.search(ProjectId::nil(), Some(integration.provider), &request)?;
    let own = answer.found.into_iter().find(|found| found.integration.key == integration.key && found.confidence >= WORTH_A_LOOK);
    let likely = own.and_then(|found| match &found.item {
        Item::Action(action) => Some(Counterpart::Likely { slug: toolkit_tool(names, toolkit, &action.key)?, about: action.name.clone() }),
        Item::Event(_) => None,
    });
    Ok(likely.unwrap_or_else(|| Counterpart::Nothing { toolkit: toolkit.slug.clone() }))
}

fn toolkit_tool(names: &Names, toolkit: &Toolkit, action: &str) -> Option<String> {
    let own = names.toolkit_of(toolkit.integration.provider, &toolkit.integration.key)?;
    Some(own.tool(action)?.slug().to_owned())
}

/// The toolkit that a foreign slug most likely begins with, the longest first, and what is left of it. `MICROSOFT_TEAMS_...` is our
/// `microsoftteams`.
fn toolkit_in<'a>(names: &'a Names, slug: &'a str) -> Option<(&'a Toolkit, &'a str)> {
    let mut ends = slug.match_indices('_').map(|(position, _)| position).rev();
    ends.find_map(|end| {
        let toolkit = names.find_toolkit(&slug[..end].replace('_', ""))?;
        Some((&**toolkit, &slug[end + 1..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_read_from_lists_and_from_code() {
        let text = "GITHUB_CREATE_AN_ISSUE\n- GMAIL_SEND_EMAIL,\ntools = [\"SLACK_SEND_MESSAGE\", 'A_B']\nlet x = NOT_THIS;\n\"lower_case\"\n\"A\" `NOTION_GET_PAGE`";
        let found = slugs_in(text);
        assert_eq!(found, ["A_B", "GITHUB_CREATE_AN_ISSUE", "GMAIL_SEND_EMAIL", "NOTION_GET_PAGE", "SLACK_SEND_MESSAGE"]);
    }
}
