//! A form from a JSON Schema, and arguments from a form. Six plain controls; whatever else a schema says is a box for JSON.

use serde_json::{Map, Value};

use crate::form::Form;

/// Names of texts that people write in several lines.
const LONG: [&str; 8] = ["body", "content", "description", "message", "text", "html", "notes", "markdown"];
/// Fields of arguments begin with this, so that they cannot be taken for the form's own.
const PREFIX: &str = "arg.";

/// How a value is typed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlKind {
    Text,
    LongText,
    Number,
    /// One of a few.
    Choice,
    /// Texts, one in each line.
    Lines,
    Json,
}

/// One value of a form. `control.html` shows it.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) field: String,
    pub(crate) name: String,
    pub(crate) help: String,
    pub(crate) kind: ControlKind,
    pub(crate) is_required: bool,
    pub(crate) value: String,
    pub(crate) choices: Vec<String>,
}

impl Control {
    pub(crate) fn is_text(&self) -> bool {
        self.kind == ControlKind::Text
    }

    pub(crate) fn is_number(&self) -> bool {
        self.kind == ControlKind::Number
    }

    pub(crate) fn is_choice(&self) -> bool {
        self.kind == ControlKind::Choice
    }

    pub(crate) fn is_json(&self) -> bool {
        self.kind == ControlKind::Json
    }

    pub(crate) fn is_lines(&self) -> bool {
        self.kind == ControlKind::Lines
    }
}

/// The controls of a schema's properties, required ones first, with what was given before.
pub(crate) fn controls(schema: &Value, given: &Map<String, Value>) -> Vec<Control> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let mut controls: Vec<Control> = properties
        .iter()
        .map(|(name, property)| {
            let kind = kind(name, property);
            let value = given.get(name).or_else(|| property.get("default"));
            Control {
                field: format!("{PREFIX}{name}"),
                name: name.clone(),
                help: property["description"].as_str().unwrap_or_default().to_owned(),
                kind,
                is_required: required.contains(&name.as_str()),
                value: value.map(|value| shown(kind, value)).unwrap_or_default(),
                choices: choices(property),
            }
        })
        .collect();
    controls.sort_by_key(|control| !control.is_required);
    controls
}

fn kind(name: &str, property: &Value) -> ControlKind {
    if property.get("enum").is_some_and(|all| all.as_array().is_some_and(|all| all.iter().all(Value::is_string))) {
        return ControlKind::Choice;
    }
    match type_of(property) {
        Some("boolean") => ControlKind::Choice,
        Some("integer" | "number") => ControlKind::Number,
        Some("string") if LONG.contains(&name.to_lowercase().as_str()) => ControlKind::LongText,
        Some("string") => ControlKind::Text,
        Some("array") if type_of(&property["items"]) == Some("string") => ControlKind::Lines,
        _ => ControlKind::Json,
    }
}

/// The one type that is not null.
fn type_of(property: &Value) -> Option<&str> {
    match &property["type"] {
        Value::String(name) => Some(name),
        Value::Array(names) => {
            let mut names = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            names.next().filter(|_| names.next().is_none())
        }
        _ => None,
    }
}

fn choices(property: &Value) -> Vec<String> {
    if type_of(property) == Some("boolean") {
        return vec!["true".to_owned(), "false".to_owned()];
    }
    property["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn shown(kind: ControlKind, value: &Value) -> String {
    match (kind, value) {
        (ControlKind::Json, value) => serde_json::to_string_pretty(value).unwrap_or_default(),
        (ControlKind::Lines, Value::Array(items)) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
        (_, Value::String(text)) => text.clone(),
        (_, Value::Null) => String::new(),
        (_, other) => other.to_string(),
    }
}

/// The arguments that a form of [`controls`] came back with. What was left empty is left out.
pub(crate) fn arguments(schema: &Value, form: &Form) -> Result<Map<String, Value>, String> {
    let mut arguments = Map::new();
    for control in controls(schema, &Map::new()) {
        let text = form.raw(&control.field).replace("\r\n", "\n");
        if text.trim().is_empty() {
            continue;
        }
        let value = read(&control, &text).ok_or_else(|| {
            let wanted = if control.is_number() { "a number" } else { "JSON" };
            format!("`{}` must be {wanted}: `{}` is not.", control.name, text.trim())
        })?;
        arguments.insert(control.name, value);
    }
    Ok(arguments)
}

fn read(control: &Control, text: &str) -> Option<Value> {
    let is_bool = control.choices == ["true", "false"];
    match control.kind {
        ControlKind::Choice if is_bool => text.trim().parse::<bool>().ok().map(Value::from),
        ControlKind::Text | ControlKind::LongText | ControlKind::Choice => Some(text.into()),
        ControlKind::Number => serde_json::from_str(text.trim()).ok().filter(Value::is_number),
        ControlKind::Lines => Some(text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().into()),
        ControlKind::Json => serde_json::from_str(text).ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "required": ["owner"], "properties": {
            "body": {"type": "string"}, "owner": {"type": "string", "description": "Whose."}, "count": {"type": ["integer", "null"], "default": 3},
            "state": {"type": "string", "enum": ["open", "closed"]}, "draft": {"type": "boolean"},
            "labels": {"type": "array", "items": {"type": "string"}}, "options": {"type": "object"}}})
    }

    #[test]
    fn each_type_has_its_control() {
        let controls = controls(&schema(), json!({"labels": ["a", "b"]}).as_object().unwrap());
        let kinds: Vec<(&str, ControlKind)> = controls.iter().map(|control| (control.name.as_str(), control.kind)).collect();
        assert_eq!(
            kinds,
            [
                ("owner", ControlKind::Text),
                ("body", ControlKind::LongText),
                ("count", ControlKind::Number),
                ("state", ControlKind::Choice),
                ("draft", ControlKind::Choice),
                ("labels", ControlKind::Lines),
                ("options", ControlKind::Json)
            ]
        );
        assert_eq!((controls[2].value.as_str(), controls[5].value.as_str()), ("3", "a\nb"));
    }

    #[test]
    fn a_form_comes_back_as_arguments() {
        let fields = [
            ("arg.owner", "me"),
            ("arg.count", "7"),
            ("arg.draft", "true"),
            ("arg.labels", "x\r\n\r\ny"),
            ("arg.options", "{\"a\": 1}"),
            ("arg.state", ""),
        ];
        let form = Form(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect());
        let arguments = arguments(&schema(), &form).unwrap();
        assert_eq!(Value::Object(arguments), json!({"owner": "me", "count": 7, "draft": true, "labels": ["x", "y"], "options": {"a": 1}}));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let form = Form(vec![("arg.count".to_owned(), "many".to_owned())]);
        assert_eq!(arguments(&schema(), &form).unwrap_err(), "`count` must be a number: `many` is not.");
    }
}
