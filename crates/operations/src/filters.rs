//! Template filters for the shapes that well-known APIs want.

use std::sync::LazyLock;

use kernel::template::{Engine, text_filter};
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind};

/// The engine of all operations.
pub(crate) static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::trusted(register));

fn register(env: &mut Environment<'static>) {
    env.add_filter("wrap", wrap);
    env.add_filter("recipients", recipients);
    env.add_filter("rich_text", rich_text);
    env.add_filter("adf", adf);
    env.add_function("mime", mime);
}

/// `["a", "b"]` to `[{"key": "a"}, {"key": "b"}]`; a single value becomes a list of one.
fn wrap(value: Value, key: String) -> Result<Value, Error> {
    each(value, |item| Value::from_pairs([(key.clone(), item)]))
}

/// Addresses to Microsoft Graph recipients.
fn recipients(value: Value) -> Result<Value, Error> {
    each(value, |address| Value::from_pairs([("emailAddress", Value::from_pairs([("address", address)]))]))
}

/// Text to Notion's rich text.
fn rich_text(value: Value) -> Result<Value, Error> {
    each(value, |text| Value::from_pairs([("type", Value::from("text")), ("text", Value::from_pairs([("content", text)]))]))
}

/// Text to Atlassian's document format, a paragraph per line.
fn adf(value: Value) -> Result<Value, Error> {
    if is_missing(&value) {
        return Ok(Value::UNDEFINED);
    }
    let Some(text) = value.as_str() else { return Err(wrong("expected text")) };
    let paragraphs: Vec<Value> = text
        .lines()
        .map(|line| {
            let runs: Vec<Value> = if line.is_empty() {
                Vec::new()
            } else {
                vec![Value::from_pairs([("type", Value::from("text")), ("text", Value::from(line))])]
            };
            Value::from_pairs([("type", Value::from("paragraph")), ("content", Value::from(runs))])
        })
        .collect();
    Ok(Value::from_pairs([("type", Value::from("doc")), ("version", Value::from(1)), ("content", Value::from(paragraphs))]))
}

fn each(value: Value, apply: impl Fn(Value) -> Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(Value::UNDEFINED),
        ValueKind::Seq | ValueKind::Iterable => Ok(Value::from(value.try_iter()?.map(apply).collect::<Vec<_>>())),
        _ => Ok(Value::from(vec![apply(value)])),
    }
}

/// An e-mail message as RFC 5322 text: `mime(to=..., subject=..., body=..., cc=..., bcc=..., html=..., in_reply_to=...)`.
fn mime(parts: Kwargs) -> Result<String, Error> {
    let mut message = String::new();
    for (header, name) in [("From", "from"), ("To", "to"), ("Cc", "cc"), ("Bcc", "bcc"), ("Reply-To", "reply_to")] {
        if let Some(addresses) = addresses(parts.get::<Option<Value>>(name)?)? {
            push_header(&mut message, header, &addresses)?;
        }
    }
    if let Some(subject) = present(parts.get::<Option<Value>>("subject")?) {
        push_header(&mut message, "Subject", &encoded_word(&subject.to_string()))?;
    }
    if let Some(id) = present(parts.get::<Option<Value>>("in_reply_to")?) {
        push_header(&mut message, "In-Reply-To", &id.to_string())?;
        push_header(&mut message, "References", &id.to_string())?;
    }
    let html = present(parts.get::<Option<Value>>("html")?).is_some_and(|html| html.is_true());
    let body = present(parts.get::<Option<Value>>("body")?).map(|body| body.to_string()).unwrap_or_default();
    parts.assert_all_used()?;
    push_header(&mut message, "MIME-Version", "1.0")?;
    push_header(&mut message, "Content-Type", if html { "text/html; charset=UTF-8" } else { "text/plain; charset=UTF-8" })?;
    push_header(&mut message, "Content-Transfer-Encoding", "base64")?;
    message.push_str("\r\n");
    let encoded = text_filter(&Value::from(body), base64_text)?.to_string();
    for line in encoded.as_bytes().chunks(76) {
        message.push_str(&String::from_utf8_lossy(line));
        message.push_str("\r\n");
    }
    Ok(message)
}

fn base64_text(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn addresses(value: Option<Value>) -> Result<Option<String>, Error> {
    let Some(value) = present(value) else { return Ok(None) };
    let list = match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => value.try_iter()?.map(|item| item.to_string()).collect::<Vec<_>>().join(", "),
        _ => value.to_string(),
    };
    Ok((!list.is_empty()).then_some(list))
}

fn push_header(message: &mut String, name: &str, value: &str) -> Result<(), Error> {
    if value.contains(['\r', '\n', '\0']) {
        return Err(wrong(&format!("the {name} of a message may not hold a line break")));
    }
    message.push_str(name);
    message.push_str(": ");
    message.push_str(value);
    message.push_str("\r\n");
    Ok(())
}

/// RFC 2047, in words short enough for a header line.
fn encoded_word(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = (1..=rest.len().min(42)).rev().find(|&end| rest.is_char_boundary(end)).unwrap_or(rest.len());
        words.push(format!("=?UTF-8?B?{}?=", base64_text(&rest[..end])));
        rest = &rest[end..];
    }
    words.join(" ")
}

fn present(value: Option<Value>) -> Option<Value> {
    value.filter(|value| !is_missing(value))
}

fn is_missing(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Undefined | ValueKind::None)
}

fn wrong(message: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn render(template: &Value, context: &Value) -> Value {
        ENGINE.compile(template).unwrap().render(context, &kernel::Budget::default()).unwrap().unwrap()
    }

    #[test]
    fn recipients_take_one_or_many() {
        let one = render(&json!({"to": "{{ to | recipients }}", "cc": "{{ cc | recipients }}"}), &json!({"to": "a@example.com"}));
        assert_eq!(one, json!({"to": [{"emailAddress": {"address": "a@example.com"}}]}));
        let many = render(&json!("{{ ids | wrap('id') }}"), &json!({"ids": [1, 2]}));
        assert_eq!(many, json!([{"id": 1}, {"id": 2}]));
    }

    #[test]
    fn a_message_has_headers_and_an_encoded_body() {
        let context = json!({"to": ["a@example.com", "b@example.com"], "subject": "Grüße", "body": "hello"});
        let message = render(&json!("{{ mime(to=to, subject=subject, body=body, cc=cc) }}"), &context);
        let message = message.as_str().unwrap();
        assert!(message.starts_with("To: a@example.com, b@example.com\r\nSubject: =?UTF-8?B?R3LDvMOfZQ==?=\r\n"), "{message}");
        assert!(message.ends_with("\r\n\r\naGVsbG8=\r\n"), "{message}");
    }

    #[test]
    fn a_header_cannot_be_smuggled_in() {
        let template = ENGINE.compile(&json!("{{ mime(to=to, subject='x', body='y') }}")).unwrap();
        assert!(template.render(&json!({"to": "a@example.com\r\nBcc: b@example.com"}), &kernel::Budget::default()).is_err());
    }

    #[test]
    fn lines_become_paragraphs() {
        let document = render(&json!("{{ text | adf }}"), &json!({"text": "one\n\ntwo"}));
        assert_eq!(document["content"][0], json!({"type": "paragraph", "content": [{"type": "text", "text": "one"}]}));
        assert_eq!(document["content"][1], json!({"type": "paragraph", "content": []}));
    }
}
