//! A subscription as it was typed, and as the API is asked for it.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::binding::{Binding, set};
use super::model::Subscription;
use super::watched::Watched;
use crate::form::Form;
use crate::refusal::Refusal;
use crate::ui::arguments;

/// What was typed.
#[derive(Debug)]
pub(super) struct Draft {
    connection: String,
    config: Result<Map<String, Value>, String>,
    pub(super) binding: Binding,
    is_ordered: bool,
    is_paused: bool,
    pub(super) secret: String,
}

impl Draft {
    pub(super) fn typed(watched: &Watched, form: &Form) -> Self {
        let config = match watched {
            Watched::Unknown(_) => object(form.text("config")),
            known => arguments(&known.schema(), form),
        };
        Self {
            connection: form.text("connection").to_owned(),
            config,
            binding: Binding::typed(form),
            is_ordered: form.has("ordered"),
            is_paused: form.has("paused"),
            secret: form.text("secret").to_owned(),
        }
    }

    /// The subscription that the API is asked for. What a form does not show stays as it was.
    pub(super) fn body(&self, watched: &Watched, old: Option<&Subscription>) -> Result<Value, Refusal> {
        let mut data = old.map(|old| old.data.clone()).unwrap_or_default();
        data.insert("event_key".to_owned(), watched.key().into());
        let config = merged(old, &watched.schema(), self.config.clone().map_err(unreadable)?);
        set(&mut data, "trigger_config", (!config.is_empty()).then_some(Value::Object(config)));
        self.binding.write(&mut data).map_err(unreadable)?;
        set(&mut data, "ordered", self.is_ordered.then_some(Value::Bool(true)));
        if !self.secret.is_empty() {
            data.insert("secret".to_owned(), self.secret.as_str().into());
        }
        let connection = Some(self.connection.as_str()).filter(|connection| !connection.is_empty());
        let mut body =
            json!({"name": self.binding.name(), "description": self.binding.description(), "connection_id": connection, "data": data});
        match old {
            Some(old) => {
                body["id"] = old.id.as_str().into();
                body["tags"] = old.labels.tags.clone().unwrap_or_default();
                body["meta"] = old.labels.meta.clone().unwrap_or_default();
                body["flags"] = json!({"is_active": old.flags.is_active, "is_valid": !old.is_invalid()});
            }
            None => body["flags"] = json!({"is_active": !self.is_paused}),
        }
        Ok(body)
    }
}

pub(super) fn unreadable(words: String) -> Refusal {
    Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, words)
}

/// Members that the schema does not have are kept.
fn merged(old: Option<&Subscription>, schema: &Value, typed: Map<String, Value>) -> Map<String, Value> {
    let mut config = match (old, schema["properties"].as_object()) {
        (Some(old), Some(known)) => old.config().into_iter().filter(|(name, _)| !known.contains_key(name)).collect(),
        _ => Map::new(),
    };
    config.extend(typed);
    config
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    if text.is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(text).map_err(|error| format!("What to watch is not a JSON object: {error}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn old() -> Subscription {
        let row = json!({"id": "1", "provider_key": "native", "integration_key": "webhook", "flags": {"is_active": false, "is_valid": true},
            "url": "https://a.test/x", "name": "in", "meta": {"a": 1}, "created_at": "", "updated_at": "",
            "data": {"event_key": "WEBHOOK_RECEIVED", "ordered": true, "own": 5, "trigger_config": {"scheme": "token", "other": 1}}});
        serde_json::from_value(row).unwrap()
    }

    fn form(fields: &[(&str, &str)]) -> Form {
        Form(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn an_edit_keeps_what_the_form_does_not_show() {
        let form = form(&[("name", "in2"), ("arg.id_header", "x-id"), ("workflow", "hello")]);
        let body = Draft::typed(&Watched::Webhook, &form).body(&Watched::Webhook, Some(&old())).unwrap();
        let data = json!({"event_key": "WEBHOOK_RECEIVED", "own": 5, "trigger_config": {"other": 1, "id_header": "x-id"}, "references": {"workflow": {"slug": "hello"}}});
        assert_eq!(body["data"], data);
        assert_eq!((&body["meta"], &body["flags"]), (&json!({"a": 1}), &json!({"is_active": false, "is_valid": true})));
    }

    #[test]
    fn what_cannot_be_read_is_refused_here() {
        let form = form(&[("mapping", "{oops")]);
        let refusal = Draft::typed(&Watched::Webhook, &form).body(&Watched::Webhook, None).unwrap_err();
        assert_eq!(refusal.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
}
