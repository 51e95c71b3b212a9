//! What a mapping can pick from: the event, its trigger and the project. Nothing secret is in it.

use kernel::Timestamp;
use serde_json::{Value, json};

use crate::mapping::Miss;
use crate::model::{Delivery, EventRow, Labels, Lifecycle, Schedule, Subscription};
use crate::schedule;

/// The context of one delivery.
pub(crate) fn of(delivery: &Delivery, event: Option<&EventRow>, about: &Value, now: Timestamp) -> Value {
    if let Some(event) = event {
        let project = json!(delivery.project);
        let attributes = event.attributes.clone();
        return whole(&delivery.event_id, &event.event_type, event.received_at, delivery.created_at, attributes, about, &project);
    }
    let slot = slot(&delivery.event_id);
    let attributes = json!({"timestamp": slot.map_or_else(|| now.to_string(), schedule::iso)});
    let timestamp = slot.unwrap_or(now);
    whole(&delivery.event_id, &delivery.event_key, timestamp, delivery.created_at, attributes, about, &json!(delivery.project))
}

/// The same for an event that somebody pasted.
pub(crate) fn pasted(event_key: &str, attributes: Value, about: &Value, project: &Value, now: Timestamp) -> Value {
    whole("preview", event_key, now, now, attributes, about, project)
}

fn whole(id: &str, kind: &str, timestamp: Timestamp, created: Timestamp, attributes: Value, about: &Value, project: &Value) -> Value {
    json!({
        "event": {"event_id": id, "event_type": kind, "timestamp": timestamp, "created_at": created, "attributes": attributes},
        "subscription": about,
        "scope": {"project_id": project},
    })
}

/// What the context of every event of a subscription has; what is `null` here may hold anything.
pub(crate) fn known() -> Value {
    json!({
        "event": {"event_id": null, "event_type": null, "timestamp": null, "created_at": null, "attributes": null},
        "subscription": {"id": null, "name": null, "tags": null, "meta": null, "created_at": null, "updated_at": null},
        "scope": {"project_id": null},
    })
}

/// The same for a schedule, whose events hold their time and nothing else.
pub(crate) fn known_of_schedule() -> Value {
    let mut known = known();
    known["event"]["attributes"] = json!({"timestamp": null});
    known
}

/// The slot in a schedule's event id.
fn slot(event_id: &str) -> Option<Timestamp> {
    Timestamp::read_iso(event_id.split_once(':')?.1)
}

fn about(id: &Value, labels: &Labels, life: &Lifecycle) -> Value {
    json!({
        "id": id,
        "name": labels.name,
        "tags": labels.tags,
        "meta": labels.meta,
        "created_at": life.created_at,
        "updated_at": life.updated_at,
    })
}

pub(crate) fn subscription(row: &Subscription) -> Value {
    about(&json!(row.id), &row.labels, &row.life)
}

pub(crate) fn schedule(row: &Schedule) -> Value {
    about(&json!(row.id), &row.labels, &row.life)
}

/// The selectors that found nothing.
pub(crate) fn misses(missed: &[Miss]) -> Value {
    missed.iter().map(|miss| json!({"place": miss.place, "selector": miss.selector})).collect()
}
