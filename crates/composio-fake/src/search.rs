//! Finding tools by words: the `query` of a list, and `COMPOSIO_SEARCH_TOOLS`.

use serde_json::{Map, Value, json};

use crate::catalog::{Tool, Toolkit};
use crate::refusal::Refusal;
use crate::world::{self, Status, World, iso};

pub(crate) const SLUG: &str = "COMPOSIO_SEARCH_TOOLS";

const RELATED: usize = 5;
/// So many tools per use case come with their schemas; the others say where to get them.
const IN_FULL: usize = 4;

const SMALL_WORDS: [&str; 24] = [
    "a", "an", "and", "as", "at", "by", "for", "from", "get", "in", "into", "is", "it", "my", "new", "of", "on", "or", "that", "the",
    "this", "to", "when", "with",
];

type Found<'a> = (&'a Toolkit, &'a Tool);

/// Tools that have any of the words, best first; ties keep their order.
pub(crate) fn rank<'a>(tools: impl Iterator<Item = Found<'a>>, sentence: &str) -> Vec<(usize, Found<'a>)> {
    let lower = sentence.to_lowercase();
    let mut wanted: Vec<&str> = words(&lower).filter(|word| !SMALL_WORDS.contains(word)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut ranked: Vec<(usize, Found<'a>)> = tools.map(|found| (score(&found, &wanted), found)).filter(|(score, _)| *score > 0).collect();
    ranked.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    ranked
}

/// A word in the toolkit's name says more than one in the slug, and that more than one in the rest.
fn score((toolkit, tool): &Found<'_>, wanted: &[&str]) -> usize {
    let common = |text: &str| wanted.iter().filter(|wanted| words(text).any(|word| word.eq_ignore_ascii_case(wanted))).count();
    6 * common(&toolkit.name) + 4 * common(&tool.slug) + 2 * common(&tool.name) + common(&tool.description)
}

/// The words of a text, without the s of plurals.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| word.len() > 1).map(|word| match word.strip_suffix(['s', 'S']) {
        Some(stem) if stem.len() > 2 && !stem.ends_with(['s', 'S']) => stem,
        _ => word,
    })
}

pub(crate) fn run(world: &mut World, user: Option<&str>, arguments: &Map<String, Value>) -> Result<Value, Refusal> {
    let session = session(&arguments.get("session").cloned().unwrap_or_default());
    let user = user.ok_or_else(|| Refusal::invalid("Give a user_id"))?;
    let queries: Vec<&str> = arguments["queries"].as_array().into_iter().flatten().filter_map(|query| query["use_case"].as_str()).collect();

    let mut results = vec![];
    let mut schemas = Map::new();
    let mut toolkits: Vec<&Toolkit> = vec![];
    let mut failed = 0;
    for (index, use_case) in queries.iter().enumerate() {
        let found: Vec<Found<'_>> = rank(world.catalog.tools().filter(|(_, tool)| !tool.deprecated), use_case)
            .into_iter()
            .take(1 + RELATED)
            .map(|(_, found)| found)
            .collect();
        failed += usize::from(found.is_empty());
        for (place, (toolkit, tool)) in found.iter().enumerate() {
            if place < IN_FULL || !schemas.contains_key(&tool.slug) {
                schemas.insert(tool.slug.clone(), schema(toolkit, tool, place < IN_FULL));
            }
            if !toolkits.iter().any(|seen| seen.slug == toolkit.slug) {
                toolkits.push(toolkit);
            }
        }
        results.push(result(index, use_case, &found));
    }
    let now = world.now();
    Ok(json!({
        "success": failed == 0,
        "error": (failed > 0).then(|| format!("{failed} out of {} searches failed", queries.len())),
        "results": results,
        "tool_schemas": schemas,
        "toolkit_connection_statuses": toolkits.iter().map(|toolkit| connection(world, user, toolkit)).collect::<Vec<_>>(),
        "next_steps_guidance": ["Connect what is not connected yet, then run the tools in the order of the plan."],
        "time_info": {
            "current_time_utc": iso(now),
            "current_time_utc_epoch_seconds": now.as_second(),
            "message": "The time at which this was searched, in UTC.",
        },
        "session": session,
    }))
}

fn session(asked: &Value) -> Value {
    let id = asked["id"].as_str().map_or_else(|| world::new_id("trs"), str::to_owned);
    json!({"id": id, "generate_id": asked["generate_id"] == true, "instructions": "Send this id with the searches that belong to the same task."})
}

/// Numbered from 0, as the service does, although its description says 1.
fn result(index: usize, use_case: &str, found: &[Found<'_>]) -> Value {
    let Some(((toolkit, first), related)) = found.split_first() else {
        return json!({
            "index": index,
            "use_case": use_case,
            "primary_tool_slugs": [],
            "related_tool_slugs": [],
            "toolkits": [],
            "error": "No tool fits this use case",
        });
    };
    let mut toolkits = vec![toolkit.slug.as_str()];
    for (toolkit, _) in related {
        if !toolkits.contains(&toolkit.slug.as_str()) {
            toolkits.push(&toolkit.slug);
        }
    }
    let mut pitfalls = vec![];
    if first.tags.iter().any(|tag| tag == "updateHint") {
        pitfalls.push(format!("[{}] Running it twice does it twice.", first.slug));
    }
    if first.tags.iter().any(|tag| tag == "destructiveHint") {
        pitfalls.push(format!("[{}] What it removes does not come back.", first.slug));
    }
    json!({
        "index": index,
        "use_case": use_case,
        "primary_tool_slugs": [first.slug],
        "related_tool_slugs": related.iter().map(|(_, tool)| &tool.slug).collect::<Vec<_>>(),
        "toolkits": toolkits,
        "difficulty": "easy",
        "execution_guidance": format!("{} does it in one call.", first.slug),
        "recommended_plan_steps": [format!("[Required] {} with {}.", first.name, first.slug)],
        "known_pitfalls": pitfalls,
        "plan_id": world::new_id("plan"),
    })
}

/// The toolkit is in capitals here and nowhere else.
fn schema(toolkit: &Toolkit, tool: &Tool, in_full: bool) -> Value {
    let mut schema = json!({
        "toolkit": toolkit.slug.to_uppercase(),
        "tool_slug": tool.slug,
        "description": tool.description,
        "hasFullSchema": in_full,
    });
    if in_full {
        schema["input_schema"] = json!(tool.input_schema());
        schema["output_schema"] = json!(tool.output_schema());
    } else {
        schema["schemaRef"] = json!({
            "tool": "COMPOSIO_GET_TOOL_SCHEMAS",
            "args": {"tool_slugs": [tool.slug]},
            "message": "Ask for the schema before you run this tool.",
        });
    }
    schema
}

fn connection(world: &World, user: &str, toolkit: &Toolkit) -> Value {
    let active: Vec<_> = world
        .accounts
        .iter()
        .filter(|account| account.toolkit == toolkit.slug && account.user_id == user && account.status == Status::Active)
        .collect();
    let ready = toolkit.no_auth() || !active.is_empty();
    let message =
        if ready { "There is a connection; the tools can run." } else { "There is no connection yet; make one before you run the tools." };
    let accounts: Vec<Value> = active
        .iter()
        .enumerate()
        .map(|(place, account)| {
            json!({
                "id": account.id,
                "alias": account.alias,
                "user_info": {},
                "status": account.status.text(),
                "created_at": iso(account.created_at),
                "is_default": place + 1 == active.len(),
                "account_type": "PRIVATE",
            })
        })
        .collect();
    json!({
        "toolkit": toolkit.slug,
        "description": toolkit.description,
        "has_active_connection": ready,
        "status_message": message,
        "accounts": accounts,
    })
}
