//! How well tools fit a prompt, as the search of the catalog sees it.

use std::collections::HashMap;

use catalog::Integration;
use catalog::search::Document;

use super::tool::GrantedTool;

/// How well each tool fits, in their order; nothing in common is zero.
pub(super) fn relevance(prompt: &str, tools: &[GrantedTool]) -> Vec<f32> {
    let (mut integrations, mut others) = (Vec::new(), Vec::new());
    let mut known: HashMap<*const Integration, usize> = HashMap::new();
    // In which list the score of a tool stands, and where in it; none is the last list, of what is no action.
    let mut places = Vec::with_capacity(tools.len());
    for tool in tools {
        let Some((integration, action)) = tool.tool.action() else {
            places.push((None, others.len()));
            others.push(document(tool));
            continue;
        };
        let list = *known.entry(std::ptr::from_ref(integration)).or_insert_with(|| {
            integrations.push(integration);
            integrations.len() - 1
        });
        places.push((Some(list), integration.position(&action.key).unwrap_or_default()));
    }
    let scores = catalog::relevance(prompt, &integrations, &others);
    let score = |(list, place): (Option<usize>, usize)| scores.get(list.unwrap_or(integrations.len()))?.get(place).copied();
    places.into_iter().map(|place| score(place).unwrap_or_default()).collect()
}

/// What a tool that is no action says about itself.
fn document(tool: &GrantedTool) -> Document {
    Document {
        name: tool.tool.title().to_owned(),
        resource: tool.name.clone(),
        description: tool.description().into_owned(),
        read_only: tool.tool.read_only().unwrap_or_default(),
        destructive: tool.tool.destructive().unwrap_or_default(),
        ..Document::default()
    }
}
