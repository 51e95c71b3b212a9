//! `toolyard discover`: from what somebody wants to do to the tool or the event, and the next step.

use clap::Args;
use serde_json::{Value, json};

use super::client::{Client, ShowArgs};
use super::integrations::{list, text};
use super::names::Integration;
use super::print::{self, Column, Table};
use crate::config::Config;

#[derive(Debug, Args)]
pub(super) struct DiscoverArgs {
    /// What to do, or what to wait for, in plain words; each in quotes
    #[arg(required_unless_present_any = ["learned", "forget", "learning"], value_name = "USE CASE")]
    use_cases: Vec<String>,
    /// Look for events only
    #[arg(long)]
    events: bool,
    /// One provider [default: all]
    #[arg(long)]
    provider: Option<String>,
    /// How many alternatives to show for each use case
    #[arg(long, default_value_t = 0, value_name = "N")]
    alternatives: u32,
    /// With --json: how sure each answer is, and what spoke for it
    #[arg(long, requires = "json")]
    debug: bool,
    /// List use cases that led to a successful call
    #[arg(long, conflicts_with_all = ["use_cases", "forget", "learning"])]
    learned: bool,
    /// Forget all of them, or the one with this id
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["use_cases", "learning"])]
    forget: Option<String>,
    /// Switch learning on or off
    #[arg(long, value_name = "BOOL", conflicts_with = "use_cases")]
    learning: Option<bool>,
    #[command(flatten)]
    show: ShowArgs,
}

const FOUND: Table = Table::new(&[Column::text("USE CASE"), Column::text("FOUND"), Column::state("STATE"), Column::text("NEXT")]);
const LEARNT: Table = Table::new(&[Column::text("USE CASE"), Column::text("LED TO"), Column::number("TIMES"), Column::id("ID")])
    .when_empty("nothing was learned yet; a use case is, once a call of what was found for it succeeds");
const LEARNED: &str = "/tools/discover/learned";

/// Shows what fits; `false` when a use case found nothing.
pub(super) async fn run(config: Config, args: DiscoverArgs) -> anyhow::Result<bool> {
    let client = Client::new(&config, &args.show.remote)?;
    if args.learned {
        return learned(&client, args.show.json).await;
    }
    if let Some(id) = &args.forget {
        let path = if id.is_empty() { LEARNED.to_owned() } else { format!("{LEARNED}/{id}") };
        client.delete(&path).await?;
        return Ok(true);
    }
    if let Some(learns) = args.learning {
        client.put(LEARNED, &json!({"learns": learns})).await?;
        return Ok(true);
    }
    let mut body = json!({"use_cases": args.use_cases, "limit_alternatives": args.alternatives, "debug": args.debug});
    if let Some(provider) = args.provider {
        body["provider"] = json!(provider);
    }
    let path = if args.events { "/triggers/discover" } else { "/tools/discover" };
    let reply = client.doing("searching; the first search after a start builds its index").post(path, &body).await?;
    let capabilities = list(&reply, "capabilities");
    if args.show.json {
        print::json(&reply);
    } else {
        let rows: Vec<Vec<String>> = capabilities.iter().flat_map(|capability| rows(capability, &reply)).collect();
        FOUND.show(&rows);
        for note in general_notes(&reply) {
            eprintln!("note: {note}");
        }
    }
    Ok(capabilities.iter().all(|capability| !best(capability).is_null()))
}

async fn learned(client: &Client, as_json: bool) -> anyhow::Result<bool> {
    let reply = client.get(&format!("{LEARNED}?limit=500")).await?;
    if as_json {
        print::json(&reply);
        return Ok(true);
    }
    let row = |learned: &Value| {
        let action = format!("{}.{}", text(learned, "integration"), text(learned, "action"));
        vec![text(learned, "use_case"), action, learned["uses"].to_string(), text(learned, "id")]
    };
    LEARNT.show(&list(&reply, "use_cases").iter().map(row).collect::<Vec<_>>());
    if reply["learns"] == false {
        print::out("Learning is off; switch it on with `toolyard discover --learning true`.\n");
    }
    Ok(true)
}

/// What is said of the whole answer; a note on one use case shows in its row.
fn general_notes(reply: &Value) -> impl Iterator<Item = &str> {
    let of_one = |capability: &Value| format!("{}: {}", text(capability, "use_case"), text(capability, "note"));
    let of_one: Vec<String> = list(reply, "capabilities").iter().map(of_one).collect();
    list(reply, "notes").iter().filter_map(Value::as_str).filter(move |note| !of_one.iter().any(|one| one == note))
}

/// What answers a use case best: the event where it waits for one, else the tool.
fn best(capability: &Value) -> &Value {
    ["trigger", "event", "tool"].into_iter().find_map(|name| capability.get(name)).unwrap_or(&Value::Null)
}

fn rows(capability: &Value, reply: &Value) -> Vec<Vec<String>> {
    let found = best(capability);
    let row = |use_case: String, found: &Value| {
        let is_its = |known: &&Value| {
            known["integration"] == found["integration"] && found.get("provider").is_none_or(|provider| *provider == known["provider"])
        };
        let connection = list(reply, "connections").iter().find(is_its).unwrap_or(&Value::Null);
        vec![use_case, name(found), text(connection, "state"), next(found, connection)]
    };
    let first = if found.is_null() { no_answer(capability) } else { row(text(capability, "use_case"), found) };
    let others = list(capability, "alternatives").iter().map(|other| row(String::new(), other));
    std::iter::once(first).chain(others).collect()
}

fn no_answer(capability: &Value) -> Vec<String> {
    let (why, next) = if text(capability, "note").contains("vague") {
        ("too vague", "say what to do, with what and in which app")
    } else {
        ("nothing fits", "say it in other words")
    };
    vec![text(capability, "use_case"), why.to_owned(), String::new(), next.to_owned()]
}

fn name(found: &Value) -> String {
    match found.get("event_key") {
        Some(_) => format!("event {}.{}", text(found, "integration"), text(found, "event_key")),
        None => format!("{}.{}", text(found, "integration"), text(found, "action")),
    }
}

/// The command that brings somebody on.
fn next(found: &Value, connection: &Value) -> String {
    let integration = Integration::of(&json!({"provider_key": connection["provider"], "integration_key": found["integration"]}));
    match (connection.get("slug").and_then(Value::as_str), found.get("event_key").and_then(Value::as_str)) {
        (None, _) => format!("toolyard connect {integration}"),
        (Some(slug), Some(event)) => format!("toolyard trigger create {event} --connection {slug} --workflow …"),
        (Some(_), None) => format!("toolyard call {integration} {}", text(found, "action")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_of_all_is_a_general_note() {
        let reply = json!({"capabilities": [{"use_case": "?", "alternatives": [], "note": "Nothing fits."}, {"use_case": "x", "alternatives": []}],
            "notes": ["A search could not be asked.", "?: Nothing fits."]});
        assert_eq!(general_notes(&reply).collect::<Vec<_>>(), ["A search could not be asked."]);
    }

    #[test]
    fn the_next_step_depends_on_the_connection() {
        let reply = json!({"connections": [
            {"provider": "native", "integration": "github", "state": "needs_auth"},
            {"provider": "openapi", "integration": "github", "state": "needs_input"},
            {"provider": "native", "integration": "slack", "state": "ready", "slug": "slack-main"}]});
        let issue = json!({"use_case": "file a bug", "tool": {"integration": "github", "action": "CREATE_AN_ISSUE"}, "alternatives": []});
        let post = json!({"use_case": "say hi", "tool": {"integration": "slack", "action": "SEND_A_MESSAGE"},
            "alternatives": [{"integration": "github", "action": "CREATE_AN_ISSUE_COMMENT"}]});
        let wait = json!({"use_case": "when somebody writes", "tool": {"integration": "slack", "action": "LIST_CHANNEL_MESSAGES"},
            "trigger": {"integration": "slack", "event_key": "MESSAGE_POSTED"}, "alternatives": []});
        let own =
            json!({"use_case": "mine", "tool": {"provider": "openapi", "integration": "github", "action": "list"}, "alternatives": []});
        assert_eq!(rows(&own, &reply), [["mine", "github.list", "needs_input", "toolyard connect openapi/github"]]);
        let nothing = json!({"use_case": "?", "alternatives": []});
        assert_eq!(rows(&issue, &reply), [["file a bug", "github.CREATE_AN_ISSUE", "needs_auth", "toolyard connect github"]]);
        let said = rows(&post, &reply);
        assert_eq!(said[0], ["say hi", "slack.SEND_A_MESSAGE", "ready", "toolyard call slack SEND_A_MESSAGE"]);
        assert_eq!(said[1], ["", "github.CREATE_AN_ISSUE_COMMENT", "needs_auth", "toolyard connect github"]);
        assert_eq!(
            rows(&wait, &reply),
            [[
                "when somebody writes",
                "event slack.MESSAGE_POSTED",
                "ready",
                "toolyard trigger create MESSAGE_POSTED --connection slack-main --workflow …"
            ]]
        );
        assert_eq!(rows(&nothing, &reply), [["?", "nothing fits", "", "say it in other words"]]);
    }
}
