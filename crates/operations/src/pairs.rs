//! Names and values as query strings and forms have them.

use serde_json::Value;
use url::Url;

use crate::Style;
use crate::values::{scalar, simple};

/// Names and values of a query string or a form.
#[derive(Default)]
pub(crate) struct QueryPairs(Vec<(String, String)>);

impl QueryPairs {
    pub(crate) fn push(&mut self, name: &str, value: String) {
        self.0.push((name.to_owned(), value));
    }

    pub(crate) fn flatten(&mut self, name: &str, value: &Value, style: Style) {
        match value {
            Value::Null => {}
            _ if style == Style::Json => self.push(name, value.to_string()),
            Value::Object(fields) if style == Style::Spread => {
                fields.iter().for_each(|(key, value)| self.flatten(key, value, Style::Repeat));
            }
            Value::Object(_) if style == Style::Comma => self.0.extend(simple(name, value).ok().map(|text| (name.to_owned(), text))),
            Value::Object(fields) => fields.iter().for_each(|(key, value)| self.flatten(&format!("{name}[{key}]"), value, style)),
            Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
                items.iter().enumerate().for_each(|(index, item)| self.flatten(&format!("{name}[{index}]"), item, style));
            }
            Value::Array(items) => {
                let texts = items.iter().filter_map(|item| scalar(name, item).ok());
                match style {
                    Style::Repeat | Style::Spread | Style::Json => texts.for_each(|text| self.push(name, text)),
                    Style::Brackets => texts.for_each(|text| self.push(&format!("{name}[]"), text)),
                    Style::Comma => self.push(name, texts.collect::<Vec<_>>().join(",")),
                    Style::Space => self.push(name, texts.collect::<Vec<_>>().join(" ")),
                    Style::Pipe => self.push(name, texts.collect::<Vec<_>>().join("|")),
                }
            }
            other => self.0.extend(scalar(name, other).ok().map(|text| (name.to_owned(), text))),
        }
    }

    pub(crate) fn append_to(self, url: &mut Url) {
        if !self.0.is_empty() {
            url.query_pairs_mut().extend_pairs(self.0);
        }
    }

    pub(crate) fn encode(self) -> String {
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(self.0).finish()
    }
}
