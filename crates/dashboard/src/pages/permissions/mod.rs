//! What the project says about calls: its default, its rules, and what they would do to a call.

mod explain;
mod policy;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::{get, post};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use self::explain::{Explain, Explanation};
use self::policy::{DEFAULTS, Row, edited, rows};
use crate::form::Form;
use crate::frame::{Frame, Section, see_other, show_with};
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

const TOLD: [(&str, &str); 1] = [("saved", "Saved. Calls from now on keep to it.")];
const CHANGED: &str = "Somebody changed the permissions while this page was open. Nothing was saved. What you typed is still here; what holds now stands below it.";

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/{project}/permissions", get(show_page).post(save)).route("/{project}/permissions/explain", post(explain_call))
}

#[derive(Debug, Deserialize)]
struct PolicyAnswer {
    permissions: Value,
}

async fn current(visit: &Visit) -> Result<Value, Refusal> {
    Ok(visit.get::<PolicyAnswer>("/tools/permissions").await?.permissions)
}

#[derive(Template)]
#[template(path = "permissions.html")]
struct Page {
    frame: Frame,
    here: String,
    explain_here: String,
    may_edit: bool,
    /// The policy that this page was made from, to see whether somebody changed it meanwhile.
    shown: String,
    default: String,
    defaults: Vec<(String, &'static str)>,
    rows: Vec<Row>,
    /// The pattern that stands in the row for a new rule.
    pattern: String,
    /// What holds now, where it is not what the page was made from.
    now: Option<Vec<Row>>,
    explain: Explain,
}

/// A page with the policy in its form. `shown` is the policy that the form was made from.
fn page(visit: &Visit, policy: &Value, shown: String, refusal: Option<&Refusal>) -> Page {
    let here = visit.page("permissions");
    let default = policy["default"].as_str().unwrap_or_default().to_owned();
    Page {
        frame: Frame::new(visit, Section::Permissions, "Permissions").refused(refusal),
        explain_here: here.clone().at("explain").into(),
        here: here.into(),
        may_edit: visit.may("edit_tools"),
        shown,
        defaults: defaults(&default),
        default,
        rows: rows(policy, refusal.map(|refusal| refusal.words.as_str())),
        pattern: String::new(),
        now: None,
        explain: Explain::default(),
    }
}

/// The words for a default, with one that is set already even if it is not known here.
fn defaults(current: &str) -> Vec<(String, &'static str)> {
    let mut all: Vec<_> = DEFAULTS.into_iter().map(|(word, label)| (word.to_owned(), label)).collect();
    if all.iter().all(|(word, _)| word != current) {
        all.push((current.to_owned(), ""));
    }
    all
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PageQuery {
    told: Option<String>,
    #[serde(rename = "ref")]
    call_ref: String,
    /// What a new rule is to be about.
    pattern: String,
}

async fn show_page(visit: Visit, Query(query): Query<PageQuery>) -> PageResult {
    let policy = current(&visit).await?;
    let mut page = page(&visit, &policy, policy.to_string(), None);
    page.frame = page.frame.told(query.told.as_deref(), &TOLD);
    page.explain.call_ref = query.call_ref;
    page.pattern = query.pattern;
    show_with(StatusCode::OK, &page)
}

/// Writes the whole policy as it was typed, unless somebody else wrote it since.
async fn save(visit: Visit, form: Form) -> PageResult {
    let shown: Value = serde_json::from_str(form.raw("shown")).unwrap_or_default();
    if !shown.is_object() {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "The form is not complete. Open the page again."));
    }
    let wanted = edited(&shown, &form);
    let now = current(&visit).await?;
    if now != shown {
        let refusal = Refusal::new(StatusCode::CONFLICT, CHANGED);
        let mut page = page(&visit, &wanted, shown.to_string(), Some(&refusal));
        page.now = Some(rows(&now, None));
        return show_with(refusal.status, &page);
    }
    match visit.put::<Value>("/tools/permissions", json!({"permissions": wanted})).await {
        Ok(_) => see_other(visit.page("permissions").with("told", "saved")),
        Err(refusal) => show_with(refusal.status, &page(&visit, &wanted, shown.to_string(), Some(&refusal))),
    }
}

async fn explain_call(visit: Visit, form: Form) -> PageResult {
    let policy = current(&visit).await?;
    let mut page = page(&visit, &policy, policy.to_string(), None);
    page.explain = Explain::of_form(&form);
    let asked = match page.explain.asked() {
        Ok(body) => visit.post::<Explanation>("/tools/permissions/explain", body).await,
        Err(words) => Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, words)),
    };
    let status = match asked {
        Ok(answer) => {
            page.explain.answer = Some(answer);
            StatusCode::OK
        }
        Err(refusal) => {
            page.explain.error = Some(refusal.words);
            refusal.status
        }
    };
    show_with(status, &page)
}
