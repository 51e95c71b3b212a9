//! Every trigger of the project.

use std::collections::HashMap;

use askama::Template;
use axum::extract::Query;
use serde::Deserialize;
use serde_json::json;

use super::model::{Schedule, SchedulesAnswer, Subscription, SubscriptionsAnswer};
use super::{SCHEDULES, SUBSCRIPTIONS, schedule_page, subscription_page};
use crate::frame::{Frame, Section, show};
use crate::pages::connections::{self, Seen};
use crate::pages::deliveries::{Delivery, newest};
use crate::path::Path;
use crate::refusal::PageResult;
use crate::ui;
use crate::visit::Visit;

const TOLD: [(&str, &str); 1] = [("deleted", "Deleted. Its deliveries stay.")];
const PAGE: usize = 50;
/// So many deliveries are looked through for the last one of each trigger.
const LOOKED_THROUGH: usize = 200;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ListQuery {
    search: Option<String>,
    subscriptions: Option<String>,
    schedules: Option<String>,
    told: Option<String>,
}

struct SubscriptionRow {
    subscription: Subscription,
    href: String,
    connection: Option<(String, String)>,
    last: Last,
}

struct ScheduleRow {
    schedule: Schedule,
    href: String,
    last: Last,
}

/// The newest delivery of a trigger, where it is among the newest of the project.
struct Last {
    delivery: Option<(Delivery, String)>,
    all: String,
}

#[derive(Template)]
#[template(path = "triggers.html")]
struct ListPage {
    frame: Frame,
    here: String,
    search: String,
    may_edit: bool,
    subscriptions: Vec<SubscriptionRow>,
    more_subscriptions: Option<String>,
    schedules: Vec<ScheduleRow>,
    more_schedules: Option<String>,
}

pub(super) async fn list(visit: Visit, Query(query): Query<ListQuery>) -> PageResult {
    let search = query.search.as_deref().map(str::trim).filter(|search| !search.is_empty());
    let window = |cursor: &Option<String>| json!({"limit": PAGE, "next": cursor.as_deref().filter(|cursor| !cursor.is_empty())});
    let asked = json!({"subscription": {"name": search}, "windowing": window(&query.subscriptions)});
    let subscriptions: SubscriptionsAnswer = visit.post(Path::new(SUBSCRIPTIONS).at("query"), asked).await?;
    let asked = json!({"schedule": {"name": search}, "windowing": window(&query.schedules)});
    let schedules: SchedulesAnswer = visit.post(Path::new(SCHEDULES).at("query"), asked).await?;

    let names = connection_names(&visit).await;
    let mut last = last_deliveries(&visit).await;
    let here = visit.page("triggers").with_some("search", search);
    let page = ListPage {
        frame: Frame::new(&visit, Section::Triggers, "Triggers").told(query.told.as_deref(), &TOLD),
        here: visit.page("triggers").into(),
        search: search.unwrap_or_default().to_owned(),
        may_edit: visit.may("edit_triggers"),
        more_subscriptions: subscriptions.cursor.map(|cursor| here.clone().with("subscriptions", cursor).into()),
        more_schedules: schedules.cursor.map(|cursor| here.clone().with("schedules", cursor).into()),
        subscriptions: subscriptions.subscriptions.into_iter().map(|row| subscription_row(&visit, row, &names, &mut last)).collect(),
        schedules: schedules
            .schedules
            .into_iter()
            .map(|schedule| ScheduleRow {
                href: schedule_page(&visit, &schedule.id).into(),
                last: last_of(&visit, &schedule.id, &mut last),
                schedule,
            })
            .collect(),
    };
    show(&page)
}

fn subscription_row(
    visit: &Visit,
    subscription: Subscription,
    names: &HashMap<String, String>,
    last: &mut HashMap<String, Delivery>,
) -> SubscriptionRow {
    let connection =
        subscription.connection_id.as_ref().and_then(|id| Some((names.get(id)?.clone(), visit.page("connections").at(id).into())));
    SubscriptionRow {
        href: subscription_page(visit, &subscription.id).into(),
        connection,
        last: last_of(visit, &subscription.id, last),
        subscription,
    }
}

fn last_of(visit: &Visit, trigger: &str, last: &mut HashMap<String, Delivery>) -> Last {
    let all = visit.page("deliveries");
    let delivery = last.remove(trigger).map(|delivery| {
        let href = all.clone().at(&delivery.id).into();
        (delivery, href)
    });
    Last { delivery, all: all.with("trigger", trigger).into() }
}

async fn last_deliveries(visit: &Visit) -> HashMap<String, Delivery> {
    let deliveries = newest(visit, json!({}), LOOKED_THROUGH).await.unwrap_or_default();
    let mut last = HashMap::new();
    for delivery in deliveries {
        if let Some(trigger) = delivery.trigger_id().map(str::to_owned) {
            last.entry(trigger).or_insert(delivery);
        }
    }
    last
}

/// The slugs of connections, by id.
async fn connection_names(visit: &Visit) -> HashMap<String, String> {
    let found = connections::query(visit, Seen::WithTriggers, None).await.unwrap_or_default();
    found.into_iter().map(|connection| (connection.id, connection.slug)).collect()
}
