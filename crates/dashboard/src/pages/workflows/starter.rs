//! What a new workflow begins with: a step that calls one tool, with inputs for all that the tool must be given.

use serde_json::{Map, Value, json};

use super::pretty;
use crate::pages::try_tool::Callable;

/// A workflow that looks something up without an account, for whoever has no tool in mind.
pub(super) const STARTER: &str = r#"{
  "kind": "steps",
  "schemas": {
    "inputs": {
      "type": "object",
      "properties": {"topic": {"type": "string"}},
      "required": ["topic"]
    }
  },
  "steps": [
    {
      "name": "search",
      "call": "tools.native.hacker-news.SEARCH.hacker-news-main",
      "arguments": {"query": "{{ inputs.topic }}"}
    }
  ],
  "result": "{{ steps.search.result }}"
}"#;

/// The data of a workflow that calls this tool.
pub(super) fn calling(tool: &Callable) -> String {
    let required: Vec<&str> = tool.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties: Map<String, Value> =
        required.iter().map(|name| ((*name).to_owned(), input(&tool.schema["properties"][name]))).collect();
    let arguments: Map<String, Value> = required.iter().map(|name| ((*name).to_owned(), taken(name))).collect();
    let step = step_name(&tool.action);
    pretty(&json!({
        "kind": "steps",
        "schemas": {"inputs": {"type": "object", "properties": properties, "required": required}},
        "steps": [{"name": step, "call": tool.call_ref, "arguments": arguments}],
        "result": format!("{{{{ steps.{step}.result }}}}"),
    }))
}

/// What is said of an argument in a few words; more would lead to definitions that stay behind with the tool.
fn input(property: &Value) -> Value {
    let kept = ["type", "description", "enum"].into_iter().filter_map(|name| Some((name.to_owned(), property.get(name)?.clone())));
    Value::Object(kept.collect())
}

/// Where an argument comes from. A name that is no word is written as a key.
fn taken(name: &str) -> Value {
    let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.starts_with(|c: char| c.is_ascii_digit());
    if is_word { format!("{{{{ inputs.{name} }}}}") } else { format!("{{{{ inputs[{}] }}}}", json!(name)) }.into()
}

/// The name of a tool as the name of a step.
fn step_name(action: &str) -> String {
    let name: String = action.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(60).collect();
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name } else { format!("step_{name}") }
}

/// A slug that a tool proposes.
pub(super) fn slug(tool: &Callable) -> String {
    let name: String = tool.action.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(60).collect();
    name.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::edit::read_json;
    use super::super::picture::picture;
    use super::*;

    #[test]
    fn the_starter_can_be_read_and_drawn() {
        let data = read_json(STARTER).unwrap();
        assert_eq!(picture(&data).unwrap().boxes.len(), 2);
    }

    #[test]
    fn a_tool_becomes_a_step_with_its_inputs() {
        let schema = json!({"required": ["owner", "per-page"], "properties": {"owner": {"type": "string", "description": "Whose.", "$ref": "#/x"},
            "per-page": {"type": "integer"}, "more": {"type": "string"}}});
        let tool = Callable {
            title: "T".to_owned(),
            call_ref: "tools.native.github.GET_A-Repo.main".to_owned(),
            action: "GET_A-Repo".to_owned(),
            schema,
        };
        let data = read_json(&calling(&tool)).unwrap();
        assert_eq!(
            data["schemas"]["inputs"]["properties"],
            json!({"owner": {"type": "string", "description": "Whose."}, "per-page": {"type": "integer"}})
        );
        assert_eq!(data["steps"][0]["arguments"], json!({"owner": "{{ inputs.owner }}", "per-page": "{{ inputs[\"per-page\"] }}"}));
        assert_eq!((&data["steps"][0]["name"], &data["result"]), (&json!("get_a_repo"), &json!("{{ steps.get_a_repo.result }}")));
        assert_eq!(slug(&tool), "get-a-repo");
        assert!(picture(&data).is_some());
    }
}
