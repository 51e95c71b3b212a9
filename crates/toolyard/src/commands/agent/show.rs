//! Agents, apps and tools as tables.

use serde_json::Value;

use super::super::integrations::{list, text};
use super::super::print::{self, Column, Table};
use super::app_names;

const AGENTS: Table = Table::new(&[
    Column::number("ID"),
    Column::text("NAME"),
    Column::text("TYPE"),
    Column::state("STATUS"),
    Column::text("MODE"),
    Column::text("APPS"),
])
.when_empty("there are no agents; `toolyard agent create NAME --app APP` makes one");
const APPS: Table = Table::new(&[
    Column::text("APP"),
    Column::number("STABLE ID"),
    Column::number("PRIORITY"),
    Column::state("USABLE"),
    Column::text("CONFIG"),
])
.when_empty("no app is assigned to it; `toolyard agent assign AGENT APP` assigns one");
const TOOLS: Table = Table::new(&[Column::text("TOOL"), Column::state("PERMISSION"), Column::text("WHAT IT DOES")])
    .when_empty("it may use no tool; --excluded says why, `toolyard agent assign AGENT APP` gives it some");
const HISTORY: Table = Table::new(&[
    Column::time("WHEN"),
    Column::number("VERSION"),
    Column::text("CHANGE"),
    Column::text("APP"),
    Column::text("AFTER"),
    Column::text("BY"),
]);

pub(super) fn agents(reply: &Value, json: bool) {
    if json {
        print::json(reply);
        return;
    }
    let row = |agent: &Value| {
        vec![
            agent["id"].to_string(),
            text(agent, "name"),
            text(agent, "agent_type"),
            text(agent, "status"),
            text(agent, "tool_mode"),
            app_names(agent),
        ]
    };
    let rows: Vec<_> = reply.as_array().into_iter().flatten().map(row).collect();
    AGENTS.show(&rows);
}

pub(super) fn agent(agent: &Value, json: bool) {
    if json {
        print::json(agent);
        return;
    }
    print::out(&format!(
        "{} {} ({}), {}, version {}\n",
        agent["id"],
        text(agent, "name"),
        text(agent, "agent_type"),
        text(agent, "status"),
        agent["version"]
    ));
    if text(agent, "tool_mode") == "inherit" {
        print::out("It has every connected app that is not switched off.\n");
    }
    let row = |tool: &Value| {
        let usable = if tool["usable"] == true { "yes".to_owned() } else { text(&tool["reason"], "message") };
        vec![text(tool, "app_name"), tool["stable_id"].to_string(), tool["priority"].to_string(), usable, tool["configuration"].to_string()]
    };
    let rows: Vec<_> = list(agent, "tools").iter().map(row).collect();
    APPS.show(&rows);
}

/// Definitions are printed alone, ready to be handed on.
pub(super) fn toolset(reply: &Value, is_formatted: bool, excluded: bool, json: bool) {
    if json {
        print::json(reply);
        return;
    }
    if is_formatted {
        print::json(&reply["definitions"]);
        return;
    }
    let row = |tool: &Value| vec![text(tool, "call_ref"), text(tool, "permission"), text(tool, "description")];
    let rows: Vec<_> = list(reply, "tools").iter().map(row).collect();
    TOOLS.show(&rows);
    let left = list(reply, "left_out");
    if excluded {
        for left in left {
            eprintln!("left out: {}: {}", text(left, "tool"), text(&left["reason"], "message"));
        }
    } else if !left.is_empty() {
        eprintln!("hint: {} more are left out; --excluded says why", left.len());
    }
}

pub(super) fn history(reply: &Value, json: bool) {
    if json {
        print::json(reply);
        return;
    }
    let row = |line: &Value| {
        vec![
            text(line, "at"),
            line["version"].to_string(),
            text(line, "change"),
            text(line, "app_name"),
            line["after"].to_string(),
            text(line, "actor"),
        ]
    };
    let rows: Vec<_> = list(reply, "history").iter().map(row).collect();
    HISTORY.show(&rows);
}
