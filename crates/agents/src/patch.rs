//! What an agent is told to be: checked, and laid over what it is.

use definitions::config::{OnError, ToolConfig, check_names, coerce_list};
use kernel::json::{MAX_DEPTH, depth_exceeds};
use kernel::{AgentId, ProjectId, Timestamp};
use serde_json::{Map, Value, json};

use crate::{Agent, AgentError, AgentPatch, Status, ToolMode};

const MAX_NAME: usize = 255;
const MAX_WORD: usize = 100;
const MAX_TEXT: usize = 20_000;
const MAX_TAGS: usize = 100;
const MAX_CONFIGS: usize = 1000;
const MAX_TASKS: i64 = 10_000;
const DEFAULT_PRIORITY: &str = "medium";
const DEFAULT_TASKS: i64 = 5;

/// An agent before anything is said about it.
pub(crate) fn blank(project: ProjectId, actor: &str, now: Timestamp) -> Agent {
    Agent {
        project,
        id: AgentId::new(),
        number: 0,
        name: String::new(),
        agent_type: String::new(),
        description: None,
        status: Status::default(),
        configuration: Map::new(),
        tags: Vec::new(),
        job_title: None,
        marketplace_category: None,
        priority_level: DEFAULT_PRIORITY.to_owned(),
        max_concurrent_tasks: DEFAULT_TASKS,
        auto_start: false,
        tool_mode: ToolMode::default(),
        tool_configs: Vec::new(),
        version: 1,
        created_at: now,
        updated_at: now,
        created_by: actor.to_owned(),
        updated_by: actor.to_owned(),
    }
}

/// The agent as its author described it, for its history.
pub(crate) fn described(agent: &Agent) -> Value {
    json!({
        "name": agent.name,
        "agent_type": agent.agent_type,
        "description": agent.description,
        "status": agent.status.name(),
        "configuration": agent.configuration,
        "tags": agent.tags,
        "job_title": agent.job_title,
        "marketplace_category": agent.marketplace_category,
        "priority_level": agent.priority_level,
        "max_concurrent_tasks": agent.max_concurrent_tasks,
        "auto_start": agent.auto_start,
        "tool_mode": agent.tool_mode.name(),
        "tool_configs": agent.tool_configs,
    })
}

/// The fields that differ, before and after.
pub(crate) fn difference(before: &Value, after: &Value) -> Option<(Value, Value)> {
    let changed: Vec<&String> = after.as_object()?.keys().filter(|key| before[key.as_str()] != after[key.as_str()]).collect();
    let pick = |from: &Value| Value::Object(changed.iter().map(|key| ((*key).clone(), from[key.as_str()].clone())).collect());
    (!changed.is_empty()).then(|| (pick(before), pick(after)))
}

/// Checks a change and lays it over the agent.
pub(crate) fn lay_over(agent: &mut Agent, patch: AgentPatch) -> Result<(), AgentError> {
    if let Some(ids) = patch.skill_ids.filter(|ids| !ids.is_empty()) {
        return Err(AgentError::Skills(ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")));
    }
    if let Some(name) = patch.name {
        agent.name = short("name", &name, MAX_NAME)?;
    }
    if let Some(kind) = patch.agent_type {
        agent.agent_type = short("agent_type", &kind, MAX_WORD)?;
    }
    if let Some(text) = patch.description {
        agent.description = Some(long("description", text, MAX_TEXT)?);
    }
    if let Some(status) = patch.status {
        agent.status = Status::named(&status).ok_or_else(|| invalid("`status` must be active, inactive or training."))?;
    }
    if let Some(configuration) = patch.configuration {
        agent.configuration.extend(configuration);
        if depth_exceeds(&Value::Object(agent.configuration.clone()), MAX_DEPTH) {
            return Err(invalid(&format!("`configuration` is nested more than {MAX_DEPTH} deep.")));
        }
    }
    if let Some(tags) = patch.tags {
        if tags.len() > MAX_TAGS {
            return Err(invalid(&format!("An agent has at most {MAX_TAGS} tags.")));
        }
        agent.tags = tags.into_iter().map(|tag| long("tags", tag, MAX_NAME)).collect::<Result<_, _>>()?;
    }
    if let Some(title) = patch.job_title {
        agent.job_title = Some(long("job_title", title, MAX_NAME)?);
    }
    if let Some(category) = patch.marketplace_category {
        agent.marketplace_category = Some(long("marketplace_category", category, MAX_NAME)?);
    }
    if let Some(level) = patch.priority_level {
        agent.priority_level = short("priority_level", &level, MAX_WORD)?;
    }
    if let Some(tasks) = patch.max_concurrent_tasks {
        if !(1..=MAX_TASKS).contains(&tasks) {
            return Err(invalid(&format!("`max_concurrent_tasks` must be 1 to {MAX_TASKS}.")));
        }
        agent.max_concurrent_tasks = tasks;
    }
    agent.auto_start = patch.auto_start.unwrap_or(agent.auto_start);
    if let Some(mode) = patch.tool_mode {
        agent.tool_mode = ToolMode::named(&mode).ok_or_else(|| invalid("`tool_mode` must be explicit or inherit."))?;
    }
    if let Some(configs) = patch.tool_configs {
        agent.tool_configs = read_configs(&configs)?;
    }
    Ok(())
}

fn read_configs(configs: &[Value]) -> Result<Vec<ToolConfig>, AgentError> {
    if configs.len() > MAX_CONFIGS {
        return Err(invalid(&format!("An agent has at most {MAX_CONFIGS} tool configs.")));
    }
    let told = |error: definitions::config::ConfigError| AgentError::Invalid(error.to_string());
    let configs = coerce_list(configs, OnError::Raise).map_err(told)?.configs;
    check_names(&configs).map_err(told)?;
    Ok(configs)
}

fn invalid(message: &str) -> AgentError {
    AgentError::Invalid(message.to_owned())
}

/// A word that must be there.
fn short(field: &str, text: &str, max: usize) -> Result<String, AgentError> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > max || text.contains(char::is_control) {
        return Err(invalid(&format!("`{field}` must have 1 to {max} characters.")));
    }
    Ok(text.to_owned())
}

fn long(field: &str, text: String, max: usize) -> Result<String, AgentError> {
    if text.chars().count() > max {
        return Err(invalid(&format!("`{field}` must have at most {max} characters.")));
    }
    Ok(text)
}
