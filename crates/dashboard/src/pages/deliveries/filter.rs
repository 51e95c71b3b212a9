//! Which deliveries are meant, in an address and for the API.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::pages::triggers::{Schedule, ScheduleAnswer, SchedulesAnswer, Subscription, SubscriptionAnswer, SubscriptionsAnswer};
use crate::path::Path;
use crate::refusal::Refusal;
use crate::visit::Visit;

pub(super) const STATES: [&str; 6] = ["ready", "leased", "waiting", "done", "dead", "cancelled"];
/// More triggers than this do not help in a list.
const CHOICES: usize = 200;

/// What the address asks for. `trigger` is the id of a subscription or a schedule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Filter {
    pub(super) status: Option<String>,
    pub(super) trigger: Option<String>,
    pub(super) code: Option<String>,
    pub(super) since: Option<String>,
    pub(super) event: Option<String>,
}

/// A trigger to choose.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) id: String,
    pub(super) label: String,
    pub(super) is_schedule: bool,
}

impl From<Subscription> for Choice {
    fn from(row: Subscription) -> Self {
        let label = if row.title() == row.event() { row.event().to_owned() } else { format!("{} ({})", row.title(), row.event()) };
        Self { label, id: row.id, is_schedule: false }
    }
}

impl From<Schedule> for Choice {
    fn from(row: Schedule) -> Self {
        let label = if row.title() == row.cron() { row.cron().to_owned() } else { format!("{} ({})", row.title(), row.cron()) };
        Self { label, id: row.id, is_schedule: true }
    }
}

fn said(value: Option<&String>) -> Option<&str> {
    value.map(|value| value.trim()).filter(|value| !value.is_empty())
}

impl Filter {
    pub(super) fn status(&self) -> Option<&str> {
        said(self.status.as_ref())
    }

    pub(super) fn trigger(&self) -> Option<&str> {
        said(self.trigger.as_ref())
    }

    pub(super) fn code(&self) -> Option<&str> {
        said(self.code.as_ref())
    }

    pub(super) fn since(&self) -> Option<&str> {
        said(self.since.as_ref())
    }

    pub(super) fn event(&self) -> Option<&str> {
        said(self.event.as_ref())
    }

    pub(super) fn with_status(&self, status: Option<&str>) -> Self {
        Self { status: status.map(str::to_owned), ..self.clone() }
    }

    /// The address of a page with this filter.
    pub(super) fn on(&self, page: Path) -> Path {
        page.with_some("status", self.status())
            .with_some("trigger", self.trigger())
            .with_some("code", self.code())
            .with_some("since", self.since())
            .with_some("event", self.event())
    }

    /// The filter for the API. Whoever asks knows whether the trigger is a schedule.
    pub(super) fn body(&self, trigger: Option<&Choice>) -> Value {
        let of = |is_schedule: bool| trigger.filter(|trigger| trigger.is_schedule == is_schedule).map(|trigger| trigger.id.as_str());
        json!({"state": self.status(), "status": self.code().map(|code| json!({"code": code})), "event_id": self.event(),
            "subscription_id": of(false), "schedule_id": of(true)})
    }

    /// Each part in words, for people.
    pub(super) fn words(&self, trigger: Option<&Choice>) -> Vec<(&'static str, String)> {
        let trigger = trigger.map(|trigger| trigger.label.as_str());
        [("Trigger", trigger), ("Code", self.code()), ("Since", self.since()), ("Event id", self.event())]
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?.to_owned())))
            .collect()
    }
}

/// Triggers to choose from, with the one that the filter names, and that one.
pub(super) async fn choices(visit: &Visit, filter: &Filter) -> Result<(Vec<Choice>, Option<Choice>), Refusal> {
    let subscriptions: SubscriptionsAnswer = visit.get(Path::new("/triggers/subscriptions").with("limit", CHOICES)).await?;
    let schedules: SchedulesAnswer = visit.get(Path::new("/triggers/schedules").with("limit", CHOICES)).await?;
    let mut choices: Vec<Choice> = subscriptions.subscriptions.into_iter().map(Choice::from).collect();
    choices.extend(schedules.schedules.into_iter().map(Choice::from));
    let Some(wanted) = filter.trigger() else { return Ok((choices, None)) };
    if let Some(chosen) = choices.iter().find(|choice| choice.id == wanted).cloned() {
        return Ok((choices, Some(chosen)));
    }
    let chosen = trigger(visit, wanted).await?;
    choices.push(chosen.clone());
    Ok((choices, Some(chosen)))
}

/// The trigger that the filter names, which may be deleted.
pub(super) async fn chosen(visit: &Visit, filter: &Filter) -> Result<Option<Choice>, Refusal> {
    match filter.trigger() {
        Some(id) => trigger(visit, id).await.map(Some),
        None => Ok(None),
    }
}

async fn trigger(visit: &Visit, id: &str) -> Result<Choice, Refusal> {
    match visit.get::<SubscriptionAnswer>(Path::new("/triggers/subscriptions").at(id)).await {
        Ok(found) => Ok(found.subscription.into()),
        Err(refusal) if refusal.is_missing() => {
            Ok(visit.get::<ScheduleAnswer>(Path::new("/triggers/schedules").at(id)).await?.schedule.into())
        }
        Err(refusal) => Err(refusal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_the_same_in_an_address_and_for_the_api() {
        let filter = Filter {
            status: Some("dead".to_owned()),
            trigger: Some("1".to_owned()),
            code: Some(" ".to_owned()),
            since: Some("2h".to_owned()),
            event: None,
        };
        assert_eq!(filter.on(Path::new("/x")).to_string(), "/x?status=dead&trigger=1&since=2h");
        let chosen = Choice { id: "1".to_owned(), label: "mornings".to_owned(), is_schedule: true };
        let body = filter.body(Some(&chosen));
        assert_eq!(
            (&body["state"], &body["schedule_id"], &body["subscription_id"], &body["status"]),
            (&json!("dead"), &json!("1"), &Value::Null, &Value::Null)
        );
        assert_eq!(filter.words(Some(&chosen)), [("Trigger", "mornings".to_owned()), ("Since", "2h".to_owned())]);
    }
}
