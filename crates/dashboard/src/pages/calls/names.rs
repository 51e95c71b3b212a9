//! What ids are called, for rows and for lists to choose from.

use serde::Deserialize;

use crate::pages::connections::{self, Seen};
use crate::path::Path;
use crate::visit::Visit;

/// Agents beyond these are shown by their id.
const AGENTS: usize = 200;

/// Ids and names. A list that the visitor may not see is empty.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) connections: Vec<(String, String)>,
    pub(super) keys: Vec<(String, String)>,
    pub(super) agents: Vec<(String, String)>,
}

impl Names {
    pub(super) async fn of_all(visit: &Visit) -> Self {
        let (connections, keys, agents) = tokio::join!(connections(visit), keys(visit), agents(visit));
        Self { connections, keys, agents }
    }

    pub(super) async fn of_agents(visit: &Visit) -> Self {
        Self { agents: agents(visit).await, ..Self::default() }
    }

    pub(super) fn agent<'a>(&'a self, id: &'a str) -> &'a str {
        name_of(&self.agents, id)
    }

    pub(super) fn connection<'a>(&'a self, id: &'a str) -> &'a str {
        name_of(&self.connections, id)
    }
}

fn name_of<'a>(names: &'a [(String, String)], id: &'a str) -> &'a str {
    names.iter().find(|(known, _)| known == id).map_or(id, |(_, name)| name)
}

/// One value of a list to choose from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) value: String,
    pub(super) label: String,
    pub(super) is_current: bool,
}

/// Each name, and what is chosen now even where it has no name, so that a link keeps its filter.
pub(super) fn choices(names: &[(String, String)], chosen: Option<&str>) -> Vec<Choice> {
    let chosen = chosen.map(str::trim).filter(|chosen| !chosen.is_empty());
    let unknown = chosen.filter(|chosen| !names.iter().any(|(id, _)| id == chosen)).map(|chosen| (chosen.to_owned(), chosen.to_owned()));
    let all = names.iter().cloned().chain(unknown);
    all.map(|(value, label)| Choice { is_current: Some(value.as_str()) == chosen, value, label }).collect()
}

async fn connections(visit: &Visit) -> Vec<(String, String)> {
    let found = connections::query(visit, Seen::WithTools, None).await.unwrap_or_default();
    found.into_iter().map(|one| (one.id.clone(), format!("{} ({})", one.title(), one.integration_key))).collect()
}

#[derive(Debug, Deserialize)]
struct KeysAnswer {
    keys: Vec<Key>,
}

#[derive(Debug, Deserialize)]
struct Key {
    id: String,
    name: String,
}

async fn keys(visit: &Visit) -> Vec<(String, String)> {
    let answer = visit.get::<KeysAnswer>(Path::new("/keys")).await.ok();
    answer.map(|answer| answer.keys.into_iter().map(|key| (key.id, key.name)).collect()).unwrap_or_default()
}

#[derive(Debug, Deserialize)]
struct Agent {
    public_id: String,
    name: String,
}

async fn agents(visit: &Visit) -> Vec<(String, String)> {
    let answer = visit.get::<Vec<Agent>>(Path::new("/agents").with("limit", AGENTS)).await.unwrap_or_default();
    answer.into_iter().map(|agent| (agent.public_id, agent.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_without_a_name_stays() {
        let names = [("1".to_owned(), "one".to_owned())];
        let labels =
            |chosen: Option<&str>| choices(&names, chosen).into_iter().map(|choice| (choice.label, choice.is_current)).collect::<Vec<_>>();
        assert_eq!(labels(Some("1")), [("one".to_owned(), true)]);
        assert_eq!(labels(Some(" ")), [("one".to_owned(), false)]);
        assert_eq!(labels(Some("2")), [("one".to_owned(), false), ("2".to_owned(), true)]);
    }
}
