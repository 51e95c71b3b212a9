//! One schedule.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::mapping::mapping_text;
use super::model::{Schedule, ScheduleAnswer, text};
use super::subscription::DeletePage;
use super::{SCHEDULES, schedule_page};
use crate::form::Form;
use crate::frame::{Frame, Section, see_other, show_refused};
use crate::pages::deliveries::{Row, newest_rows};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui::{self, Markup};
use crate::visit::Visit;

const TOLD: [(&str, &str); 4] = [
    ("made", "The schedule is made."),
    ("saved", "Saved. Runs act for you from now on."),
    ("start", "Resumed."),
    ("stop", "Paused. Times that pass meanwhile do not come back."),
];
/// How many of its deliveries a trigger's page shows.
const SHOWN: usize = 10;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OneQuery {
    told: Option<String>,
}

#[derive(Debug, Deserialize)]
struct UpcomingAnswer {
    times: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct RunAnswer {
    delivery: Made,
}

#[derive(Debug, Deserialize)]
struct Made {
    id: String,
}

/// A time to come, for the reader and on the schedule's own clock.
#[derive(Clone, Debug)]
pub(super) struct Upcoming {
    pub(super) at: Markup,
    pub(super) local: String,
}

/// The next ten times of what a schedule says.
pub(super) async fn upcoming(visit: &Visit, data: &Map<String, Value>) -> Result<Vec<Upcoming>, Refusal> {
    let asked = json!({"schedule": {"data": data}});
    let found: UpcomingAnswer = visit.post(Path::new(SCHEDULES).at("preview"), asked).await?;
    let zone = Some(text(data, "timezone")).filter(|zone| !zone.is_empty()).unwrap_or("UTC");
    Ok(found.times.iter().map(|time| Upcoming { at: ui::time(time), local: local(time, zone) }).collect())
}

fn local(time: &str, zone: &str) -> String {
    let moment = time.parse::<Timestamp>().ok().and_then(|moment| moment.in_tz(zone).ok());
    moment.map(|moment| moment.strftime("%a %Y-%m-%d %H:%M %:z").to_string()).unwrap_or_default()
}

#[derive(Template)]
#[template(path = "schedule.html")]
struct OnePage {
    frame: Frame,
    schedule: Schedule,
    here: String,
    all: String,
    mapping: String,
    may_edit: bool,
    facts: Vec<(&'static str, String)>,
    times: Vec<Upcoming>,
    rows: Vec<Row>,
    deliveries: String,
}

pub(super) async fn one(visit: Visit, Segments((_, id)): Segments<(String, String)>, Query(query): Query<OneQuery>) -> PageResult {
    show_one(&visit, &id, query.told.as_deref(), None).await
}

async fn show_one(visit: &Visit, id: &str, told: Option<&str>, refusal: Option<&Refusal>) -> PageResult {
    let schedule = visit.get::<ScheduleAnswer>(Path::new(SCHEDULES).at(id)).await?.schedule;
    let rows = newest_rows(visit, json!({"schedule_id": schedule.id}), SHOWN).await?;
    let page = OnePage {
        frame: Frame::new(visit, Section::Triggers, schedule.title()).told(told, &TOLD).refused(refusal),
        here: schedule_page(visit, id).into(),
        all: visit.page("triggers").into(),
        mapping: mapping_text(schedule.data.get("inputs_fields")),
        may_edit: visit.may("edit_triggers") && !schedule.labels.is_deleted(),
        facts: facts(&schedule.data),
        times: upcoming(visit, &schedule.data).await.unwrap_or_default(),
        rows,
        deliveries: visit.page("deliveries").with("trigger", &schedule.id).into(),
        schedule,
    };
    show_refused(refusal, &page)
}

/// What it says besides when and what.
fn facts(data: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let names = [("From", "start_time"), ("Until", "end_time"), ("Missed times", "misfire"), ("Jitter, seconds", "jitter_seconds")];
    names.into_iter().filter_map(|(label, name)| Some((label, shown(data.get(name).filter(|value| !value.is_null())?)))).collect()
}

pub(super) async fn act(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let action = form.text("action");
    let asked = Path::new(SCHEDULES).at(&id).at(action);
    let done = match action {
        "start" | "stop" => visit.post::<Value>(asked, json!({})).await.map(|_| schedule_page(&visit, &id).with("told", action)),
        "run" => {
            let run = visit.post::<RunAnswer>(asked, json!({})).await;
            run.map(|run| visit.page("deliveries").at(run.delivery.id).with("told", "run"))
        }
        _ => return Err(Refusal::new(StatusCode::BAD_REQUEST, "Nothing was chosen to do.")),
    };
    match done {
        Ok(page) => see_other(page),
        Err(refusal) if refusal.is_missing() => Err(refusal),
        Err(refusal) => show_one(&visit, &id, None, Some(&refusal)).await,
    }
}

pub(super) async fn ask_delete(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    show_delete(&visit, &id, None).await
}

async fn show_delete(visit: &Visit, id: &str, refusal: Option<&Refusal>) -> PageResult {
    let schedule = visit.get::<ScheduleAnswer>(Path::new(SCHEDULES).at(id)).await?.schedule;
    let runs = schedule.runs().unwrap_or_else(|| "Nothing".to_owned());
    let page = DeletePage {
        frame: Frame::new(visit, Section::Triggers, format!("Delete {}", schedule.title())).refused(refusal),
        title: schedule.title().to_owned(),
        words: format!(
            "{runs} is not run at {} any more. Deliveries that still wait end without a run; those that were made stay to be read.",
            schedule.cron()
        ),
        here: schedule_page(visit, id).at("delete").into(),
        back: schedule_page(visit, id).into(),
    };
    show_refused(refusal, &page)
}

pub(super) async fn delete(visit: Visit, Segments((_, id)): Segments<(String, String)>, _: Form) -> PageResult {
    match visit.delete(Path::new(SCHEDULES).at(&id)).await {
        Ok(()) => see_other(visit.page("triggers").with("told", "deleted")),
        Err(refusal) if refusal.is_missing() => Err(refusal),
        Err(refusal) => show_delete(&visit, &id, Some(&refusal)).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_on_the_schedules_clock() {
        assert_eq!(local("2026-11-17T08:00:00Z", "Europe/Berlin"), "Tue 2026-11-17 09:00 +01:00");
        assert_eq!(local("2026-11-17T08:00:00Z", "Nowhere/None"), "");
    }

    #[test]
    fn facts_are_what_is_said() {
        let data = json!({"schedule": "* * * * *", "misfire": {"policy": "catch_up", "limit": 4}, "jitter_seconds": 30, "end_time": null});
        let shown = facts(data.as_object().unwrap());
        assert_eq!(shown, [("Missed times", "{\"policy\":\"catch_up\",\"limit\":4}".to_owned()), ("Jitter, seconds", "30".to_owned())]);
    }
}
