//! One delivery: what came, what became of it, and what another mapping would make of it.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use http::StatusCode;
use jiff::{Timestamp, Unit};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::DELIVERIES;
use super::model::{Attempt, Delivery, DeliveryAnswer, trigger_page};
use crate::form::Form;
use crate::frame::{Frame, Section, see_other, show_refused};
use crate::pages::triggers::{ScheduleAnswer, SubscriptionAnswer, mapping_of, mapping_text};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui::{self, duration_ms};
use crate::visit::Visit;

const TOLD: [(&str, &str); 4] = [
    ("run", "It runs now. Load the page again to see what became of it."),
    ("retry", "It is run once more. Load the page again to see what became of it."),
    ("cancel", "Cancelled. What the run did before stays done."),
    ("complete", "Its end is noted."),
];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OneQuery {
    told: Option<String>,
}

#[derive(Debug, Deserialize)]
struct EventAnswer {
    event: StoredEvent,
}

/// The event as it came in.
#[derive(Debug, Deserialize)]
struct StoredEvent {
    event_type: String,
    #[serde(default)]
    headers: Map<String, Value>,
    body: Option<String>,
    body_base64: Option<String>,
    #[serde(default)]
    attributes: Value,
    received_at: String,
}

impl StoredEvent {
    fn headers(&self) -> Vec<(&str, String)> {
        let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.headers.iter().map(|(name, value)| (name.as_str(), shown(value))).collect()
    }
}

/// What a mapping makes of the event.
#[derive(Debug, Deserialize)]
struct Preview {
    inputs: Value,
    #[serde(default)]
    missed: Vec<Miss>,
}

#[derive(Clone, Debug, Deserialize)]
struct Miss {
    #[serde(default)]
    place: String,
    #[serde(default)]
    selector: String,
}

#[derive(Template)]
#[template(path = "delivery.html")]
struct OnePage {
    frame: Frame,
    delivery: Delivery,
    here: String,
    all: String,
    trigger: Option<String>,
    approval: Option<String>,
    runs: String,
    run: Option<String>,
    event: Option<StoredEvent>,
    missed: Vec<Miss>,
    outputs: Option<Value>,
    mapping: String,
    preview: Option<Preview>,
    may_edit: bool,
    may_complete: bool,
    typed: Completion,
}

/// How a dispatched run ended, as it was typed.
#[derive(Debug)]
struct Completion {
    code: String,
    message: String,
    outputs: String,
}

impl Default for Completion {
    fn default() -> Self {
        Self { code: "200".to_owned(), message: String::new(), outputs: String::new() }
    }
}

impl OnePage {
    fn attempts(&self) -> &[Attempt] {
        self.delivery.attempts.as_deref().unwrap_or_default()
    }

    fn inputs(&self) -> Option<&Value> {
        self.delivery.data.get("inputs").filter(|inputs| !inputs.is_null())
    }
}

impl Attempt {
    /// How long it took.
    fn took(&self) -> String {
        let (Ok(start), Ok(end)) = (self.started_at.parse::<Timestamp>(), self.ended_at.parse::<Timestamp>()) else { return String::new() };
        end.since(start).ok().and_then(|took| took.total(Unit::Millisecond).ok()).map(duration_ms).unwrap_or_default()
    }
}

/// What a form on the page came to.
#[derive(Debug, Default)]
struct After<'a> {
    told: Option<&'a str>,
    refusal: Option<&'a Refusal>,
    mapping: Option<&'a str>,
    preview: Option<Preview>,
    typed: Option<Completion>,
}

pub(super) async fn one(visit: Visit, Segments((_, id)): Segments<(String, String)>, Query(query): Query<OneQuery>) -> PageResult {
    show_one(&visit, &id, After { told: query.told.as_deref(), ..After::default() }).await
}

async fn show_one(visit: &Visit, id: &str, after: After<'_>) -> PageResult {
    let delivery = visit.get::<DeliveryAnswer>(Path::new(DELIVERIES).at(id)).await?.delivery;
    let mapping = match after.mapping {
        Some(typed) => typed.to_owned(),
        None => saved_mapping(visit, &delivery).await,
    };
    let runs = visit.page("workflows").at("runs");
    let page = OnePage {
        frame: Frame::new(visit, Section::Deliveries, format!("Delivery of {}", delivery.title()))
            .told(after.told, &TOLD)
            .refused(after.refusal),
        here: visit.page("deliveries").at(id).into(),
        all: visit.page("deliveries").into(),
        trigger: trigger_page(visit, &delivery),
        approval: delivery.approval().map(|approval| visit.page("approvals").at(approval).into()),
        run: delivery.run().map(|run| runs.clone().at(run).into()),
        runs: runs.into(),
        event: stored_event(visit, &delivery).await,
        missed: delivery.data.get("missed").and_then(|missed| serde_json::from_value(missed.clone()).ok()).unwrap_or_default(),
        outputs: delivery.data.get("result").and_then(|result| result.get("outputs")).filter(|outputs| !outputs.is_null()).cloned(),
        mapping,
        preview: after.preview,
        may_edit: visit.may("edit_triggers"),
        may_complete: visit.may("run_triggers") && delivery.is_dispatched(),
        typed: after.typed.unwrap_or_default(),
        delivery,
    };
    show_refused(after.refusal, &page)
}

/// The event, as long as it is kept; times of schedules have none.
async fn stored_event(visit: &Visit, delivery: &Delivery) -> Option<StoredEvent> {
    let id = delivery.event_row_id.as_ref()?;
    visit.get::<EventAnswer>(Path::new("/triggers/events").at(id)).await.ok().map(|answer| answer.event)
}

/// The mapping that the trigger has now.
async fn saved_mapping(visit: &Visit, delivery: &Delivery) -> String {
    let data = match (&delivery.subscription_id, &delivery.schedule_id) {
        (Some(id), _) => {
            visit.get::<SubscriptionAnswer>(Path::new("/triggers/subscriptions").at(id)).await.ok().map(|found| found.subscription.data)
        }
        (_, Some(id)) => visit.get::<ScheduleAnswer>(Path::new("/triggers/schedules").at(id)).await.ok().map(|found| found.schedule.data),
        _ => None,
    };
    mapping_text(data.unwrap_or_default().get("inputs_fields"))
}

pub(super) async fn act(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let action = form.text("action");
    let asked = Path::new(DELIVERIES).at(&id).at(action);
    let done = match action {
        "retry" | "cancel" => visit.post::<Value>(asked, json!({})).await,
        "complete" => match completion(&form) {
            Ok(body) => visit.post::<Value>(asked, body).await,
            Err(words) => Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, words)),
        },
        _ => return Err(Refusal::new(StatusCode::BAD_REQUEST, "Nothing was chosen to do.")),
    };
    match done {
        Ok(_) => see_other(visit.page("deliveries").at(&id).with("told", action)),
        Err(refusal) if refusal.is_missing() => Err(refusal),
        Err(refusal) => {
            let typed = (action == "complete").then(|| Completion {
                code: form.text("code").to_owned(),
                message: form.text("message").to_owned(),
                outputs: form.raw("outputs").to_owned(),
            });
            show_one(&visit, &id, After { refusal: Some(&refusal), typed, ..After::default() }).await
        }
    }
}

fn completion(form: &Form) -> Result<Value, String> {
    let code: u16 =
        form.text("code").parse().map_err(|_| format!("The code must be a number such as 200: `{}` is not.", form.text("code")))?;
    let outputs: Option<Map<String, Value>> = match form.some("outputs") {
        Some(text) => Some(serde_json::from_str(text).map_err(|error| format!("The outputs are not a JSON object: {error}."))?),
        None => None,
    };
    Ok(json!({"status": {"code": code, "message": form.some("message")}, "outputs": outputs}))
}

/// Tries a mapping on the event. Nothing is kept, so that the page itself is the answer.
pub(super) async fn preview(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let typed = form.raw("mapping");
    let tried = match mapping_of(typed) {
        Ok(mapping) => visit.post::<Preview>("/triggers/preview", json!({"delivery_id": id, "inputs_fields": mapping})).await,
        Err(words) => Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, words)),
    };
    match tried {
        Ok(preview) => show_one(&visit, &id, After { mapping: Some(typed), preview: Some(preview), ..After::default() }).await,
        Err(refusal) if refusal.is_missing() => Err(refusal),
        Err(refusal) => show_one(&visit, &id, After { mapping: Some(typed), refusal: Some(&refusal), ..After::default() }).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(fields: &[(&str, &str)]) -> Form {
        Form(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn an_end_has_a_code_and_maybe_outputs() {
        let body = completion(&form(&[("code", "200"), ("message", ""), ("outputs", "{\"a\": 1}")])).unwrap();
        assert_eq!(body, json!({"status": {"code": 200, "message": null}, "outputs": {"a": 1}}));
        assert!(completion(&form(&[("code", "fine")])).unwrap_err().contains("`fine`"));
        assert!(completion(&form(&[("code", "200"), ("outputs", "[1]")])).unwrap_err().contains("JSON object"));
    }

    #[test]
    fn attempts_tell_how_long_they_took() {
        let attempt = json!({"number": 1, "code": "200", "started_at": "2026-11-17T07:30:07.490Z", "ended_at": "2026-11-17T07:30:09Z"});
        let attempt: Attempt = serde_json::from_value(attempt).unwrap();
        assert_eq!(attempt.took(), "1.5 s");
    }
}
