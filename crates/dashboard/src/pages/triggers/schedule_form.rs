//! Making and changing a schedule, with its times before it is saved.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use serde_json::{Map, Value, json};

use super::binding::{Binding, Source, set};
use super::model::{Schedule, ScheduleAnswer, text};
use super::schedule::{Upcoming, upcoming};
use super::subscription_draft::unreadable;
use super::subscription_form::WorkflowQuery;
use super::{SCHEDULES, schedule_page};
use crate::form::Form;
use crate::frame::{Frame, Section, see_other, show_refused};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::visit::Visit;

const EVENT: &str = "SCHEDULE";
/// What becomes of times at which no server ran; the first is what happens where nothing is said.
const MISFIRES: [(&str, &str); 4] = [
    ("", "as usual: once for all of them"),
    ("skip", "skip: dropped"),
    ("fire_once", "fire_once: once for all of them"),
    ("catch_up", "catch_up: each of them"),
];

/// Where the names of time zones begin that people use.
const AREAS: [&str; 9] = ["Africa", "America", "Antarctica", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"];

/// What was typed, or what a schedule says now.
#[derive(Clone, Debug, Default)]
struct Draft {
    cron: String,
    zone: String,
    event: String,
    start: String,
    end: String,
    misfire: String,
    limit: String,
    jitter: String,
    is_paused: bool,
    binding: Binding,
}

impl Draft {
    fn typed(form: &Form) -> Self {
        let typed = |name: &str| form.text(name).to_owned();
        Self {
            cron: typed("schedule"),
            zone: typed("timezone"),
            event: typed("event_key"),
            start: typed("start_time"),
            end: typed("end_time"),
            misfire: typed("misfire"),
            limit: typed("limit"),
            jitter: typed("jitter_seconds"),
            is_paused: form.has("paused"),
            binding: Binding::typed(form),
        }
    }

    /// The time zone that it means.
    fn zone(&self) -> &str {
        if self.zone.is_empty() { "UTC" } else { &self.zone }
    }

    fn saved(schedule: &Schedule) -> Self {
        let data = &schedule.data;
        let said = |name: &str| text(data, name).to_owned();
        let (misfire, limit) = match data.get("misfire") {
            Some(Value::Object(policy)) => {
                (text(policy, "policy").to_owned(), policy.get("limit").map(Value::to_string).unwrap_or_default())
            }
            _ => (said("misfire"), String::new()),
        };
        Self {
            cron: said("schedule"),
            zone: said("timezone"),
            event: said("event_key"),
            start: said("start_time"),
            end: said("end_time"),
            misfire,
            limit,
            jitter: data.get("jitter_seconds").filter(|jitter| !jitter.is_null()).map(Value::to_string).unwrap_or_default(),
            is_paused: !schedule.flags.is_active,
            binding: Binding::saved(&schedule.labels, data),
        }
    }

    /// When it fires. What the form does not show stays as it was.
    fn times(&self, old: Option<&Schedule>) -> Result<Map<String, Value>, String> {
        let mut data = old.map(|old| old.data.clone()).unwrap_or_default();
        let event = if self.event.is_empty() { EVENT } else { &self.event };
        data.insert("event_key".to_owned(), event.into());
        data.insert("schedule".to_owned(), self.cron.as_str().into());
        for (name, value) in [("timezone", &self.zone), ("start_time", &self.start), ("end_time", &self.end)] {
            set(&mut data, name, (!value.is_empty()).then(|| value.as_str().into()));
        }
        set(&mut data, "misfire", self.misfire()?);
        set(&mut data, "jitter_seconds", number("Jitter", &self.jitter)?);
        Ok(data)
    }

    fn misfire(&self) -> Result<Option<Value>, String> {
        let limit = number("The limit", &self.limit)?;
        Ok(match (self.misfire.as_str(), limit) {
            ("", _) => None,
            ("catch_up", Some(limit)) => Some(json!({"policy": "catch_up", "limit": limit})),
            (policy, _) => Some(policy.into()),
        })
    }

    fn body(&self, old: Option<&Schedule>) -> Result<Value, Refusal> {
        let mut data = self.times(old).map_err(unreadable)?;
        self.binding.write(&mut data).map_err(unreadable)?;
        let mut body = json!({"name": self.binding.name(), "description": self.binding.description(), "data": data, "flags": {"is_active": !self.is_paused}});
        if let Some(old) = old {
            body["id"] = old.id.as_str().into();
            body["tags"] = old.labels.tags.clone().unwrap_or_default();
            body["meta"] = old.labels.meta.clone().unwrap_or_default();
        }
        Ok(json!({"schedule": body}))
    }
}

fn number(label: &str, text: &str) -> Result<Option<Value>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse::<u32>().map(|number| Some(number.into())).map_err(|_| format!("{label} must be a whole number: `{text}` is not."))
}

/// Whether a time zone is worth suggesting: the database has many old names besides.
fn is_usual(zone: &str) -> bool {
    zone == "UTC" || zone.split_once('/').is_some_and(|(area, _)| AREAS.contains(&area))
}

#[derive(Template)]
#[template(path = "schedule_form.html")]
struct FormPage {
    frame: Frame,
    heading: String,
    here: String,
    back: String,
    is_new: bool,
    draft: Draft,
    binding: Binding,
    zones: Vec<String>,
    /// The next times, where they were asked for.
    times: Option<Vec<Upcoming>>,
}

impl FormPage {
    fn says_more(&self) -> bool {
        let Draft { start, end, misfire, limit, jitter, event, .. } = &self.draft;
        [start, end, misfire, limit, jitter].iter().any(|text| !text.is_empty()) || !(event.is_empty() || event == EVENT)
    }

    /// The policies, with one that a later version of the API may know.
    fn misfires(&self) -> Vec<(&str, &str)> {
        let mut all = MISFIRES.to_vec();
        let current = self.draft.misfire.as_str();
        if !all.iter().any(|(value, _)| *value == current) {
            all.push((current, current));
        }
        all
    }
}

async fn form_page(
    visit: &Visit,
    old: Option<&Schedule>,
    mut draft: Draft,
    times: Option<Vec<Upcoming>>,
    refusal: Option<&Refusal>,
) -> PageResult {
    let heading = old.map_or_else(|| "New schedule".to_owned(), |old| format!("Edit {}", old.title()));
    let mut binding = std::mem::take(&mut draft.binding);
    binding.find_workflows(visit).await;
    let new = visit.page("triggers").at("new");
    let page = FormPage {
        frame: Frame::new(visit, Section::Triggers, heading.clone()).refused(refusal),
        heading,
        here: old.map_or_else(|| new.clone().at("schedule"), |old| schedule_page(visit, &old.id).at("edit")).into(),
        back: old.map_or(new, |old| schedule_page(visit, &old.id)).into(),
        is_new: old.is_none(),
        draft,
        binding,
        zones: jiff::tz::db().available().map(|zone| zone.to_string()).filter(|zone| is_usual(zone)).collect(),
        times,
    };
    show_refused(refusal, &page)
}

/// Shows the form again with the times of what stands in it.
async fn preview(visit: &Visit, old: Option<&Schedule>, draft: Draft) -> PageResult {
    let times = match draft.times(old) {
        Ok(data) => upcoming(visit, &data).await,
        Err(words) => Err(unreadable(words)),
    };
    match times {
        Ok(times) => form_page(visit, old, draft, Some(times), None).await,
        Err(refusal) => form_page(visit, old, draft, None, Some(&refusal)).await,
    }
}

pub(super) async fn new(visit: Visit, Query(query): Query<WorkflowQuery>) -> PageResult {
    let binding = match query.workflow {
        Some(workflow) => Binding::to(&visit, &workflow, Source::Clock).await,
        None => Binding::default(),
    };
    form_page(&visit, None, Draft { binding, ..Draft::default() }, None, None).await
}

pub(super) async fn create(visit: Visit, form: Form) -> PageResult {
    let draft = Draft::typed(&form);
    if form.text("action") == "preview" {
        return preview(&visit, None, draft).await;
    }
    let made = match draft.body(None) {
        Ok(body) => visit.post::<ScheduleAnswer>(SCHEDULES, body).await,
        Err(refusal) => Err(refusal),
    };
    match made {
        Ok(made) => see_other(schedule_page(&visit, &made.schedule.id).with("told", "made")),
        Err(refusal) => form_page(&visit, None, draft, None, Some(&refusal)).await,
    }
}

pub(super) async fn edit(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    let old = visit.get::<ScheduleAnswer>(Path::new(SCHEDULES).at(&id)).await?.schedule;
    form_page(&visit, Some(&old), Draft::saved(&old), None, None).await
}

pub(super) async fn save(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let old = visit.get::<ScheduleAnswer>(Path::new(SCHEDULES).at(&id)).await?.schedule;
    let draft = Draft::typed(&form);
    if form.text("action") == "preview" {
        return preview(&visit, Some(&old), draft).await;
    }
    let kept = match draft.body(Some(&old)) {
        Ok(body) => visit.put::<Value>(Path::new(SCHEDULES).at(&id), body).await,
        Err(refusal) => Err(refusal),
    };
    match kept {
        Ok(_) => see_other(schedule_page(&visit, &id).with("told", "saved")),
        Err(refusal) => form_page(&visit, Some(&old), draft, None, Some(&refusal)).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(data: Value) -> Schedule {
        let row = json!({"id": "1", "flags": {"is_active": true}, "data": data, "name": "mornings", "tags": ["a"], "created_at": "", "updated_at": ""});
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn what_is_shown_is_saved_again() {
        for misfire in [json!("skip"), json!({"policy": "catch_up", "limit": 4}), json!("catch_up")] {
            let data = json!({"event_key": "tick", "schedule": "0 9 * * *", "timezone": "Europe/Berlin", "start_time": "2026-01-01T00:00", "misfire": misfire,
                "jitter_seconds": 30, "references": {"workflow": {"slug": "a"}}, "own": 1});
            let old = schedule(data.clone());
            let body = Draft::saved(&old).body(Some(&old)).unwrap();
            assert_eq!(body["schedule"]["data"], data);
            assert_eq!((&body["schedule"]["tags"], &body["schedule"]["flags"]), (&json!(["a"]), &json!({"is_active": true})));
        }
    }

    #[test]
    fn old_names_of_zones_are_not_suggested() {
        assert!(is_usual("Europe/Berlin") && is_usual("UTC") && is_usual("America/Argentina/Salta"));
        assert!(!is_usual("US/Eastern") && !is_usual("Etc/GMT+1") && !is_usual("Zulu"));
    }

    #[test]
    fn numbers_are_numbers() {
        let draft = Draft { jitter: "soon".to_owned(), ..Draft::default() };
        assert_eq!(draft.times(None).unwrap_err(), "Jitter must be a whole number: `soon` is not.");
    }

    #[test]
    fn an_event_has_a_name() {
        let data = Draft { cron: "* * * * *".to_owned(), ..Draft::default() }.times(None).unwrap();
        assert_eq!(Value::Object(data), json!({"event_key": "SCHEDULE", "schedule": "* * * * *"}));
    }
}
