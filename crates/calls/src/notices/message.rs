//! What a notice says of an approval, and the texts that are filled in with it.

use std::sync::LazyLock;
use std::time::Duration;

use kernel::suggest::did_you_mean;
use kernel::template::{Engine, Template};
use kernel::{ApprovalId, Timestamp};
use serde_json::{Map, Value, json};

use crate::CallError;

static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::strict);

const NAMES: [&str; 4] = ["id", "call_ref", "url", "expires_at"];

/// What is told: no arguments, because they may be anybody's business but the receiver's.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) id: ApprovalId,
    pub(super) call_ref: String,
    /// Where a person decides.
    pub(super) url: String,
    pub(super) expires_at: Timestamp,
    pub(super) is_test: bool,
}

impl Message {
    /// One that is about no call.
    pub(super) fn test(url: String, now: Timestamp) -> Self {
        let expires_at = now.plus(Duration::from_hours(24));
        Self { id: ApprovalId::new(), call_ref: "test".to_owned(), url, expires_at, is_test: true }
    }

    fn fields(&self) -> Value {
        json!({"id": self.id, "call_ref": self.call_ref, "url": self.url, "expires_at": self.expires_at.to_string()})
    }

    /// What texts are filled in from.
    pub(super) fn context(&self) -> Value {
        json!({"approval": self.fields()})
    }

    /// The body of a post.
    pub(super) fn body(&self, now: Timestamp) -> String {
        let mut data = self.fields();
        if self.is_test {
            data["test"] = json!(true);
        }
        json!({"type": "approval.created", "timestamp": now.to_string(), "data": data}).to_string()
    }
}

/// Reads arguments with texts that hold `{{ approval... }}`, and refuses other names.
pub(super) fn template(arguments: &Map<String, Value>) -> Result<Template, CallError> {
    let invalid = |place: &str, message: &str| CallError::NoticeInvalid(format!("`arguments{place}`: {message}"));
    let template = ENGINE.compile(&Value::Object(arguments.clone())).map_err(|error| invalid(&error.place, &error.message))?;
    for reference in template.references() {
        let (root, name) = (reference.path.first().map(String::as_str), reference.path.get(1).map(String::as_str));
        match (root, name) {
            (Some("approval"), None) => {}
            (Some("approval"), Some(name)) if NAMES.contains(&name) => {}
            (Some("approval"), Some(name)) => {
                let near = did_you_mean(name, NAMES);
                return Err(invalid(&reference.place, &format!("there is no `approval.{name}`; there are {}.{near}", NAMES.join(", "))));
            }
            (other, _) => {
                let near = did_you_mean(other.unwrap_or_default(), ["approval"]);
                return Err(invalid(&reference.place, &format!("there is only `approval`, not `{}`.{near}", other.unwrap_or_default())));
            }
        }
    }
    Ok(template)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_there_are_not_are_refused() {
        let read = |text: &str| template(json!({"text": text}).as_object().unwrap());
        assert!(read("{{ approval.call_ref }} waits: {{ approval.url }}").is_ok());
        for (text, words) in [
            ("{{ approval.arguments }}", "no `approval.arguments`"),
            ("{{ approval.call_reff }}", "Did you mean `call_ref`?"),
            ("{{ aproval.url }}", "Did you mean `approval`?"),
            ("{{ approval.url", "`arguments/text`"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_post_says_which_call_waits_and_nothing_of_its_arguments() {
        let now = Timestamp::from_micros(1_800_000_000_000_000);
        let message = Message { is_test: false, ..Message::test("https://h/app/p/approvals/1".to_owned(), now) };
        let body: Value = serde_json::from_str(&message.body(now)).unwrap();
        assert_eq!((&body["type"], &body["data"]["call_ref"]), (&json!("approval.created"), &json!("test")));
        assert_eq!(body["data"].as_object().unwrap().keys().collect::<Vec<_>>(), NAMES);
    }
}
