//! Leaving out of a service's words and results the secrets that it repeats, also in the forms in which they were sent.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use memchr::memmem::Finder;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// A shorter secret is not looked for: it would be found in words that have nothing to do with it.
pub const SHORTEST: usize = 8;
const MARK: &str = "…";
/// What a URL leaves as it is.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Takes secrets out of texts and values. It cannot be printed.
#[derive(Clone, Default)]
pub struct Scrubber {
    /// The longest first, so that a part of one form does not spoil the whole of another.
    forms: Arc<[Finder<'static>]>,
}

impl fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scrubber").field("forms", &self.forms.len()).finish()
    }
}

impl Scrubber {
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut forms: Vec<String> = secrets.into_iter().filter(|secret| secret.len() >= SHORTEST).flat_map(forms).collect();
        forms.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        forms.dedup();
        Self { forms: forms.iter().map(|form| Finder::new(form).into_owned()).collect() }
    }

    /// One that takes out what either does.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut forms: Vec<Finder<'static>> = self.forms.iter().chain(&*other.forms).cloned().collect();
        forms.sort_by_key(|form| std::cmp::Reverse(form.needle().len()));
        Self { forms: forms.into() }
    }

    /// The text without the secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for form in &*self.forms {
            if text.len() >= form.needle().len() && form.find(text.as_bytes()).is_some() {
                text = Cow::Owned(without(&text, form));
            }
        }
        text
    }

    /// The same for a text that was cut: the beginning of a secret may be its end.
    pub fn cut_text(&self, text: &str) -> String {
        let mut text = self.text(text).into_owned();
        let at_end = |form: &Finder<'static>| {
            let form = form.needle();
            (SHORTEST..form.len()).rev().find(|length| text.as_bytes().ends_with(&form[..*length]))
        };
        if let Some(length) = self.forms.iter().filter_map(at_end).max() {
            text.truncate(text.len() - length);
            text.push_str(MARK);
        }
        text
    }

    /// Takes the secrets out of every text of a value, names of fields included.
    pub fn value(&self, value: &mut Value) {
        if self.forms.is_empty() {
            return;
        }
        match value {
            Value::String(text) => {
                if let Cow::Owned(scrubbed) = self.text(text) {
                    *text = scrubbed;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|field| self.value(field));
                if fields.keys().any(|name| matches!(self.text(name), Cow::Owned(_))) {
                    *fields = std::mem::take(fields).into_iter().map(|(name, field)| (self.text(&name).into_owned(), field)).collect();
                }
            }
            Value::Number(_) => self.number(value),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// A secret of digits comes back as a number where it was sent as one.
    fn number(&self, value: &mut Value) {
        let digits = value.to_string();
        if let Cow::Owned(scrubbed) = self.text(&digits) {
            *value = Value::String(scrubbed);
        }
    }
}

fn without(text: &str, form: &Finder<'_>) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = form.find(rest.as_bytes()) {
        kept.push_str(&rest[..at]);
        kept.push_str(MARK);
        rest = &rest[at + form.needle().len()..];
    }
    kept + rest
}

/// A secret as it is, and as it stands in a URL, a form, JSON, and at the beginning of something in base64.
fn forms(secret: &str) -> Vec<String> {
    let encoded = utf8_percent_encode(secret, UNRESERVED).to_string();
    let escaped = Value::from(secret).to_string();
    let escaped = escaped[1..escaped.len() - 1].to_owned();
    let whole = &secret.as_bytes()[..secret.len() / 3 * 3];
    let mut forms = vec![secret.to_owned(), encoded.replace("%20", "+"), encoded, escaped.replace('/', "\\/"), escaped];
    for engine in [&STANDARD, &URL_SAFE] {
        forms.extend([engine.encode(secret), engine.encode(whole)]);
    }
    forms
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const KEY: &str = "k/9 \"x&y\\z+secret";

    #[test]
    fn every_form_in_which_a_secret_is_sent_is_taken_out() {
        let scrubber = Scrubber::new([KEY, "short"]);
        let basic = STANDARD.encode(format!("{KEY}:x"));
        for (echo, kept) in [
            (format!("key {KEY}, again {KEY}"), "key …, again …"),
            ("k%2F9%20%22x%26y%5Cz%2Bsecret".to_owned(), "…"),
            ("a=k%2F9+%22x%26y%5Cz%2Bsecret&b=1".to_owned(), "a=…&b=1"),
            (r#"{"key":"k/9 \"x&y\\z+secret"}"#.to_owned(), r#"{"key":"…"}"#),
            (r#"{"key":"k\/9 \"x&y\\z+secret"}"#.to_owned(), r#"{"key":"…"}"#),
            ("a short word".to_owned(), "a short word"),
        ] {
            assert_eq!(scrubber.text(&echo), kept, "{echo}");
        }
        assert!(scrubber.text(&format!("Basic {basic}")).starts_with("Basic …"), "{basic}");
        assert!(!format!("{scrubber:?}").contains("secret"));
    }

    #[test]
    fn values_are_scrubbed_with_their_names_and_the_rest_stays() {
        let scrubber = Scrubber::new(["s3cr3t-k3y", "12345678901"]);
        let mut value =
            json!({"a": ["s3cr3t-k3y", 7, null], "s3cr3t-k3y": {"b": "x s3cr3t-k3y"}, "pin": 12_345_678_901_u64, "z": "s3cr3t"});
        scrubber.value(&mut value);
        assert_eq!(value, json!({"a": ["…", 7, null], "…": {"b": "x …"}, "pin": "…", "z": "s3cr3t"}));
    }

    #[test]
    fn a_secret_that_a_cut_left_half_is_taken_out_too() {
        let scrubber = Scrubber::new(["abcdefghijklmnop"]);
        for cut in 8..=16 {
            assert_eq!(scrubber.cut_text(&format!("said: {}", &"abcdefghijklmnop"[..cut])), "said: …", "{cut}");
        }
        assert_eq!(scrubber.cut_text("said: abc"), "said: abc");
    }

    proptest! {
        #[test]
        fn no_text_keeps_a_secret(before in "\\PC{0,20}", secret in "\\PC{8,40}", after in "\\PC{0,20}") {
            let scrubber = Scrubber::new([secret.as_str()]);
            let scrubbed = scrubber.text(&format!("{before}{secret}{after}")).into_owned();
            // What stands before and after may spell it once more around the mark.
            prop_assert!(!scrubbed.contains(&secret) || secret.contains(MARK));
        }
    }
}
