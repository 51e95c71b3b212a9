//! Who is told when a call waits: an address that is posted to, or a tool that is called.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::form::Form;
use crate::frame::{Frame, Section, see_other, show_with};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui::{self, Markup, json_object, json_tree};
use crate::visit::Visit;

const NOTICES: &str = "/tools/approvals/notices";
const TOLD: [(&str, &str); 2] =
    [("added", "Added. Test it to see whether it arrives."), ("removed", "Removed. Nobody is told that way any more.")];
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
    /// The secret of a notice that was just made. It is shown once, here, and kept nowhere.
    secret: Option<String>,
}

async fn page(visit: &Visit) -> Result<Page, Refusal> {
    let answer: NoticesAnswer = visit.get(NOTICES).await?;
    let all = visit.page("approvals");
    Ok(Page {
        frame: Frame::new(visit, Section::Approvals, "Notices"),
        here: all.clone().at("notices").into(),
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
}

pub(super) async fn list(visit: Visit, Query(query): Query<ListQuery>) -> PageResult {
    let mut page = page(&visit).await?;
    page.frame = page.frame.told(query.told.as_deref(), &TOLD);
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
    fn a_form_becomes_a_notice() {
        assert_eq!(wanted(&form(&[("kind", "webhook"), ("url", " https://a ")])), Ok(json!({"kind": "webhook", "url": "https://a"})));
        let tool = wanted(&form(&[("kind", "tool"), ("call_ref", "tools.a"), ("arguments", EXAMPLE)])).unwrap();
        assert_eq!(tool["arguments"]["channel"], "#ops");
        assert!(wanted(&form(&[("kind", "tool"), ("arguments", "{")])).is_err());
    }
}
