//! Reads JSON and query strings: what does not fit is named with its place and the nearest that would, what is not used is noted.

use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderValue;
use kernel::suggest;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use serde_path_to_error::{Segment, Track};

use super::ApiError;
use super::node::{Findings, Place, Reader, Step};

/// A member that clients of the systems behind these routes send and that means nothing here.
pub type Unused = Option<IgnoredAny>;

/// What such clients put into every query string. A key belongs to one project, so it says nothing.
pub(crate) const CONTEXT: [&str; 4] = ["project_id", "workspace_id", "organization_id", "application_id"];

const MAX_NAMED: usize = 20;
const MAX_NAME: usize = 80;

/// What a request says and nobody uses, for the `warning` of its answer.
#[derive(Clone, Debug, Default)]
pub struct Ignored(Arc<Mutex<Vec<String>>>);

impl Ignored {
    pub(super) fn add(&self, names: Vec<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(names);
    }

    /// The header that names it, if there is something.
    pub(super) fn warning(&self) -> Option<HeaderValue> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if names.is_empty() {
            return None;
        }
        let plain = |name: &String| -> String {
            let shown = |letter: char| if letter.is_ascii_graphic() && !r#"",\"#.contains(letter) { letter } else { '?' };
            name.chars().take(MAX_NAME).map(shown).collect()
        };
        let mut listed = names.iter().take(MAX_NAMED).map(plain).collect::<Vec<_>>().join(", ");
        if names.len() > MAX_NAMED {
            listed.push_str(", ...");
        }
        HeaderValue::from_str(&format!("299 toolyard \"ignored: {listed}\"")).ok()
    }
}

/// A value and the members that nobody uses.
type Read<T> = Result<(T, Vec<String>), ApiError>;

/// Reads a JSON body.
pub(super) fn json<T: DeserializeOwned>(body: &[u8]) -> Read<T> {
    let node = serde_json::from_slice(body).map_err(|cause| not_json(&cause))?;
    let findings = Findings::up_to(MAX_NAMED + 1);
    match T::deserialize(Reader { node, place: Place::Body, findings: &findings }) {
        Ok(value) => Ok((value, findings.unused().iter().map(|steps| dotted(steps)).collect())),
        Err(cause) => Err(wrong_body(&cause, findings)),
    }
}

fn wrong_body(cause: &serde_json::Error, findings: Findings) -> ApiError {
    let steps = findings.wrong().into_iter().map(|step| match step {
        Step::Member(name) => json!(name),
        Step::Element(index) => json!(index),
    });
    let place = std::iter::once(json!("body")).chain(steps).collect();
    ApiError::invalid("value_error", place, explain(&cause.to_string()))
}

/// A place as people write it.
fn dotted(steps: &[Step]) -> String {
    let written = steps.iter().map(|step| match step {
        Step::Member(name) => name.clone(),
        Step::Element(index) => index.to_string(),
    });
    written.collect::<Vec<_>>().join(".")
}

/// Keeps no more than can be shown.
fn note(unused: &mut Vec<String>, path: &serde_ignored::Path) {
    if unused.len() <= MAX_NAMED {
        // A member that may be absent is a step of its own in serde's path.
        unused.push(path.to_string().replace(".?", ""));
    }
}

fn not_json(cause: &serde_json::Error) -> ApiError {
    ApiError::invalid("json_invalid", vec![json!("body"), json!(cause.column())], format!("JSON decode error: {cause}"))
}

/// Reads a query string.
pub(super) fn query<T: DeserializeOwned>(text: &str) -> Read<T> {
    let mut pairs: Vec<(String, String)> = url::form_urlencoded::parse(text.as_bytes()).into_owned().collect();
    let mut context = Vec::new();
    loop {
        let text = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&pairs).finish();
        let (place, message) = match read_query(&text) {
            Ok((value, mut unused)) => {
                unused.append(&mut context);
                return Ok((value, unused));
            }
            Err(failure) => failure,
        };
        let unknown = unknown_name(&message).map(|(name, _)| name);
        let Some(name) = CONTEXT.into_iter().find(|name| unknown == Some(name) && pairs.iter().any(|(key, _)| key == name)) else {
            return Err(ApiError::invalid("query_invalid", place, explain(&message)));
        };
        pairs.retain(|(key, _)| key != name);
        context.push(name.to_owned());
    }
}

fn read_query<T: DeserializeOwned>(text: &str) -> Result<(T, Vec<String>), (Vec<Value>, String)> {
    let mut track = Track::new();
    let mut unused = Vec::new();
    let reader = serde_html_form::Deserializer::from_bytes(text.as_bytes());
    let tracked = serde_path_to_error::Deserializer::new(reader, &mut track);
    match serde_ignored::deserialize(tracked, |path| note(&mut unused, &path)) {
        Ok(value) => Ok((value, unused)),
        Err(cause) => Err((place("query", &track.path()), cause.to_string())),
    }
}

fn place(root: &str, path: &serde_path_to_error::Path) -> Vec<Value> {
    let inner = path.iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(json!(index)),
        Segment::Map { key } => Some(json!(key)),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    std::iter::once(json!(root)).chain(inner).collect()
}

/// The name that serde says it does not know, and its words about those that it does.
fn unknown_name(message: &str) -> Option<(&str, &str)> {
    let rest = message.strip_prefix("unknown field `").or_else(|| message.strip_prefix("unknown variant `"))?;
    rest.rsplit_once("`, expected ").or_else(|| rest.rsplit_once("`, there are no "))
}

/// serde's message, with the nearest of the names that it expected.
fn explain(message: &str) -> String {
    // The names of our types mean nothing to whoever sent the body.
    if let Some((told, _)) = message.split_once(", expected struct ").filter(|_| message.starts_with("invalid type: ")) {
        return format!("{told}, expected an object");
    }
    let Some((name, expected)) = unknown_name(message) else { return message.to_owned() };
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    match suggest::did_you_mean(name, known) {
        nearest if nearest.is_empty() => message.to_owned(),
        nearest => format!("{message}.{nearest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_comes_with_the_nearest_known() {
        let message = "unknown field `permision`, expected one of `id`, `permission`";
        assert_eq!(explain(message), format!("{message}. Did you mean `permission`?"));
        assert_eq!(explain("unknown field `x`, there are no fields"), "unknown field `x`, there are no fields");
        assert_eq!(explain("invalid type: null, expected a string"), "invalid type: null, expected a string");
    }

    #[test]
    fn what_is_ignored_fits_into_a_header() {
        let ignored = Ignored::default();
        assert!(ignored.warning().is_none());
        ignored.add(vec!["data.\"x\"\n".to_owned(), "é".to_owned()]);
        assert_eq!(ignored.warning().unwrap(), "299 toolyard \"ignored: data.?x??, ?\"");
        ignored.add(vec!["y".repeat(500); 500]);
        assert!(ignored.warning().unwrap().len() < 2000);
    }
}
