//! What placeholders of a request are filled from.

use catalog::auth::Fields;
use catalog::fill::{FillError, SEGMENT};
use percent_encoding::utf8_percent_encode;
use serde_json::{Map, Value};

use crate::{BuildError, Param, ParamLocation};

/// What a text is filled for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    /// A path: values are percent-encoded.
    Path,
    /// Anything else: values as they are.
    Raw,
}

/// What placeholders are filled from.
pub(crate) struct Values<'a> {
    pub(crate) params: &'a [Param],
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) fields: &'a Fields,
}

impl<'a> Values<'a> {
    /// The value of a parameter: the argument, else its default. An explicit null counts as left out, except in the body.
    pub(crate) fn argument(&self, param: &'a Param) -> Option<&'a Value> {
        match self.arguments.get(&param.name) {
            Some(Value::Null) if !matches!(param.place, ParamLocation::Body | ParamLocation::Content) => None,
            Some(value) => Some(value),
            None => param.default.as_deref(),
        }
    }

    pub(crate) fn body_fields(&self) -> Map<String, Value> {
        let body = self.params.iter().filter(|param| param.place == ParamLocation::Body);
        body.filter_map(|param| Some((param.wire.clone(), self.argument(param)?.clone()))).collect()
    }

    /// The parameter that is the whole body, if there is one.
    pub(crate) fn content(&self) -> Option<&'a Param> {
        self.params.iter().find(|param| param.place == ParamLocation::Content)
    }

    /// All parameters by name, for templates.
    pub(crate) fn context(&self) -> Value {
        let mut context: Map<String, Value> =
            self.params.iter().filter_map(|param| Some((param.name.clone(), self.argument(param)?.clone()))).collect();
        for (name, value) in self.arguments {
            context.entry(name.clone()).or_insert_with(|| value.clone());
        }
        Value::Object(context)
    }

    pub(crate) fn fill(&self, text: &str, mode: Fill) -> Result<String, BuildError> {
        let mut filled = String::with_capacity(text.len() + 16);
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            filled.push_str(&rest[..start]);
            let Some(end) = rest[start..].find('}') else { break };
            self.push(&mut filled, &rest[start + 1..start + end], mode)?;
            rest = &rest[start + end + 1..];
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// As `fill`, but nothing at all when a parameter in the text was left out.
    pub(crate) fn fill_optional(&self, text: &str) -> Result<Option<String>, BuildError> {
        match self.fill(text, Fill::Raw) {
            Err(BuildError::Missing(_)) => Ok(None),
            filled => filled.map(Some),
        }
    }

    fn push(&self, filled: &mut String, name: &str, mode: Fill) -> Result<(), BuildError> {
        if let Some(field) = name.strip_prefix("connection.") {
            let value = self.fields.get(field).ok_or_else(|| FillError::NoField(field.to_owned()))?;
            match mode {
                Fill::Raw => filled.push_str(value),
                Fill::Path => filled.extend(utf8_percent_encode(value, SEGMENT)),
            }
            return Ok(());
        }
        let param = self.params.iter().find(|param| param.name == name);
        let value = param.map_or_else(|| self.arguments.get(name), |param| self.argument(param));
        let value = value.filter(|value| !value.is_null()).ok_or_else(|| BuildError::Missing(name.to_owned()))?;
        let text = simple(name, value)?;
        if mode != Fill::Path {
            filled.push_str(&text);
            return Ok(());
        }
        let slashes = param.is_some_and(|param| param.slashes);
        let segments: Vec<&str> = if slashes { text.split('/').collect() } else { vec![text.as_str()] };
        for (index, segment) in segments.iter().enumerate() {
            if matches!(*segment, "" | "." | "..") {
                return Err(BuildError::BadPathValue(name.to_owned()));
            }
            if index > 0 {
                filled.push('/');
            }
            filled.extend(utf8_percent_encode(segment, SEGMENT));
        }
        Ok(())
    }
}

/// A value where there is room for one text: lists and objects are written with commas.
pub(crate) fn simple(name: &str, value: &Value) -> Result<String, BuildError> {
    match value {
        Value::Array(items) => Ok(items.iter().map(|item| scalar(name, item)).collect::<Result<Vec<_>, _>>()?.join(",")),
        Value::Object(fields) => {
            let pair = |(key, field): (&String, &Value)| Ok(format!("{key},{}", scalar(name, field)?));
            Ok(fields.iter().map(pair).collect::<Result<Vec<_>, BuildError>>()?.join(","))
        }
        one => scalar(name, one),
    }
}

pub(crate) fn scalar(name: &str, value: &Value) -> Result<String, BuildError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        _ => Err(BuildError::NotScalar(name.to_owned())),
    }
}
