//! Who is told when a call waits: an address that is posted to, or a tool that is called.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::form::Form;
use crate::frame::{Frame, Section, see_other, show_with};
use crate::pages::connections::{self, Connection, Seen};
use crate::pages::try_tool::callable;
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui::{self, Markup, json_object, json_tree};
use crate::visit::Visit;

const NOTICES: &str = "/tools/approvals/notices";
const TOLD: [(&str, &str); 2] =
    [("added", "Added. Test it to see whether it arrives."), ("removed", "Removed. Nobody is told that way any more.")];
/// The actions that tell people something, by integration; each is offered where an account of it is connected.
const MESSAGES: [(&str, &str); 10] = [
    ("slack", "SEND_A_MESSAGE"),
    ("microsoft-teams", "SEND_A_CHANNEL_MESSAGE"),
    ("discord", "SEND_A_MESSAGE"),
    ("mattermost", "CREATE_A_POST"),
    ("telegram", "SEND_A_MESSAGE"),
    ("gmail", "SEND_AN_EMAIL"),
    ("outlook", "SEND_MAIL"),
    ("resend", "SEND_AN_EMAIL"),
    ("sendgrid", "SEND_AN_EMAIL"),
    ("twilio", "SEND_AN_SMS"),
];
/// Arguments that hold what is said, under the names that they have in schemas.
const TEXTS: [&str; 5] = ["text", "message", "content", "body", "html"];
const TEXT: &str = "{{ approval.call_ref }} waits: {{ approval.url }}";
const SUBJECT: &str = "A call waits for approval";
/// What a message could be made of; the places in it are filled in when a call waits.
const EXAMPLE: &str = "{\n  \"channel\": \"#ops\",\n  \"text\": \"{{ approval.call_ref }} waits: {{ approval.url }}\"\n}";

#[derive(Debug, Deserialize)]
struct NoticesAnswer {
    notices: Vec<Notice>,
}

#[derive(Debug, Deserialize)]
struct Notice {
    id: String,
    #[serde(default)]
    kind: String,
    url: Option<String>,
    call_ref: Option<String>,
    arguments: Option<Map<String, Value>>,
    last_error: Option<String>,
    last_at: Option<String>,
}

impl Notice {
    fn is_webhook(&self) -> bool {
        self.kind == "webhook"
    }

    /// Where it goes.
    fn target(&self) -> &str {
        self.url.as_deref().or(self.call_ref.as_deref()).unwrap_or(&self.id)
    }

    fn arguments(&self) -> Option<Markup> {
        self.arguments.as_ref().map(|arguments| json_tree(&Value::Object(arguments.clone())))
    }
}

#[derive(Debug, Deserialize)]
struct AddedAnswer {
    notice: Added,
}

#[derive(Debug, Deserialize)]
struct Added {
    secret: Option<String>,
}

#[derive(Debug, Deserialize)]
struct TestAnswer {
    ok: bool,
    message: Option<String>,
}

/// What was typed, to be shown again.
#[derive(Debug)]
struct Typed {
    url: String,
    call_ref: String,
    arguments: String,
}

impl Default for Typed {
    fn default() -> Self {
        Self { url: String::new(), call_ref: String::new(), arguments: EXAMPLE.to_owned() }
    }
}

#[derive(Template)]
#[template(path = "approval_notices.html")]
struct Page {
    frame: Frame,
    here: String,
    all: String,
    may_edit: bool,
    notices: Vec<Notice>,
    typed: Typed,
    /// Accounts that can tell somebody, each with the page on which its message is written.
    ways: Vec<(String, String)>,
    /// The secret of a notice that was just made. It is shown once, here, and kept nowhere.
    secret: Option<String>,
}

async fn page(visit: &Visit) -> Result<Page, Refusal> {
    let answer: NoticesAnswer = visit.get(NOTICES).await?;
    let all = visit.page("approvals");
    let here = all.clone().at("notices");
    Ok(Page {
        frame: Frame::new(visit, Section::Approvals, "Notices"),
        ways: ways(&connections::query(visit, Seen::WithTools, None).await.unwrap_or_default(), &here),
        here: here.into(),
        all: all.into(),
        may_edit: visit.may("edit_tools"),
        notices: answer.notices,
        typed: Typed::default(),
        secret: None,
    })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ListQuery {
    told: Option<String>,
    /// The tool that is to tell somebody.
    #[serde(rename = "ref")]
    call_ref: String,
}

fn ways(found: &[Connection], here: &Path) -> Vec<(String, String)> {
    let usable = found.iter().filter(|one| one.provider_key == "native" && one.end_user.is_none() && one.trouble().is_none());
    let way = |one: &Connection| {
        let (_, action) = MESSAGES.into_iter().find(|(integration, _)| *integration == one.integration_key)?;
        let call_ref = format!("tools.native.{}.{action}.{}", one.integration_key, one.slug);
        Some((format!("{} ({})", one.integration_key, one.title()), format!("{}#tool", here.clone().with("ref", call_ref))))
    };
    usable.filter_map(way).collect()
}

/// The arguments that a tool must be given, with the message where a message belongs; the rest is for a person to fill in.
fn message(schema: &Value) -> String {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let value = |name: &str| match (name, schema["properties"][name]["type"].as_str()) {
        (name, _) if TEXTS.contains(&name) => TEXT.into(),
        ("subject", _) => SUBJECT.into(),
        (_, Some("array")) => json!([""]),
        (_, Some("object")) => json!({}),
        _ => "".into(),
    };
    let mut arguments: Map<String, Value> = required.map(|name| (name.to_owned(), value(name))).collect();
    let has_text = TEXTS.iter().any(|name| arguments.contains_key(*name));
    let text = TEXTS.into_iter().find(|name| schema["properties"].get(name).is_some());
    if let Some(text) = text.filter(|_| !has_text) {
        arguments.insert(text.to_owned(), TEXT.into());
    }
    serde_json::to_string_pretty(&arguments).unwrap_or_default()
}

pub(super) async fn list(visit: Visit, Query(query): Query<ListQuery>) -> PageResult {
    let mut page = page(&visit).await?;
    page.frame = page.frame.told(query.told.as_deref(), &TOLD);
    if let Some(tool) = callable(&visit, &query.call_ref).await? {
        page.typed = Typed { arguments: message(&tool.schema), call_ref: tool.call_ref, ..Typed::default() };
    }
    show_with(StatusCode::OK, &page)
}

pub(super) async fn add(visit: Visit, form: Form) -> PageResult {
    let made = match wanted(&form) {
        Ok(notice) => visit.post::<AddedAnswer>(NOTICES, json!({"notice": notice})).await,
        Err(words) => Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, words)),
    };
    match made {
        Ok(AddedAnswer { notice: Added { secret: Some(secret) } }) => {
            let mut page = page(&visit).await?;
            page.frame = page.frame.told(Some("added"), &TOLD);
            page.secret = Some(secret);
            show_with(StatusCode::OK, &page)
        }
        Ok(_) => see_other(visit.page("approvals").at("notices").with("told", "added")),
        Err(refusal) => {
            let mut page = page(&visit).await?;
            page.frame = page.frame.refused(Some(&refusal));
            page.typed = typed(&form);
            show_with(refusal.status, &page)
        }
    }
}

/// Each form has its own fields; those of the other keep what they begin with.
fn typed(form: &Form) -> Typed {
    let text = |name: &str| form.raw(name).to_owned();
    let arguments = if form.has("arguments") { text("arguments") } else { EXAMPLE.to_owned() };
    Typed { url: text("url"), call_ref: text("call_ref"), arguments }
}

fn wanted(form: &Form) -> Result<Value, String> {
    if form.text("kind") == "webhook" {
        return Ok(json!({"kind": "webhook", "url": form.text("url")}));
    }
    Ok(json!({"kind": "tool", "call_ref": form.text("call_ref"), "arguments": json_object(form.raw("arguments"))?}))
}

pub(super) async fn test(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    let answer = visit.post::<TestAnswer>(Path::new(NOTICES).at(&id).at("test"), json!({})).await;
    let mut page = page(&visit).await?;
    let (told, error, status) = match answer {
        Ok(TestAnswer { ok: true, message }) => (Some(message.unwrap_or_else(|| "The test arrived.".to_owned())), None, StatusCode::OK),
        Ok(TestAnswer { message, .. }) => (None, Some(message.unwrap_or_else(|| "The test did not arrive.".to_owned())), StatusCode::OK),
        Err(refusal) => (None, Some(refusal.words), refusal.status),
    };
    page.frame = Frame { told, error, ..page.frame };
    show_with(status, &page)
}

pub(super) async fn remove(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    visit.delete(Path::new(NOTICES).at(&id)).await?;
    see_other(visit.page("approvals").at("notices").with("told", "removed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(fields: &[(&str, &str)]) -> Form {
        Form(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_message_stands_where_the_tool_takes_one() {
        let read = |schema: Value| serde_json::from_str::<Value>(&message(&schema)).unwrap();
        let mail = json!({"required": ["to", "subject", "body"], "properties": {"to": {"type": "array"}, "subject": {}, "body": {"type": "string"}}});
        assert_eq!(read(mail), json!({"to": [""], "subject": SUBJECT, "body": TEXT}));
        let chat = json!({"required": ["channel"], "properties": {"channel": {"type": "string"}, "text": {"type": "string"}}});
        assert_eq!(read(chat), json!({"channel": "", "text": TEXT}));
    }

    #[test]
    fn a_form_becomes_a_notice() {
        assert_eq!(wanted(&form(&[("kind", "webhook"), ("url", " https://a ")])), Ok(json!({"kind": "webhook", "url": "https://a"})));
        let tool = wanted(&form(&[("kind", "tool"), ("call_ref", "tools.a"), ("arguments", EXAMPLE)])).unwrap();
        assert_eq!(tool["arguments"]["channel"], "#ops");
        assert!(wanted(&form(&[("kind", "tool"), ("arguments", "{")])).is_err());
    }
}
