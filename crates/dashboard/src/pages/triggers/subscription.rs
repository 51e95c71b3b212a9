//! One subscription.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::mapping::mapping_text;
use super::model::{Subscription, SubscriptionAnswer};
use super::{SUBSCRIPTIONS, subscription_page};
use crate::form::Form;
use crate::frame::{Frame, Section, see_other, show_refused};
use crate::pages::connections::{self, Seen};
use crate::pages::deliveries::{Row, newest_rows};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

const TOLD: [(&str, &str); 6] = [
    ("made", "The trigger is made."),
    ("saved", "Saved. Runs act for you from now on."),
    ("start", "Resumed."),
    ("stop", "Paused. Events that come are kept and start nothing."),
    ("refresh", "Valid again. Resume it to let it run."),
    ("revoke", "Revoked and stopped."),
];
/// How many of its deliveries a trigger's page shows.
const SHOWN: usize = 10;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OneQuery {
    told: Option<String>,
}

#[derive(Template)]
#[template(path = "subscription.html")]
struct OnePage {
    frame: Frame,
    subscription: Subscription,
    here: String,
    all: String,
    connection: Option<(String, Option<String>)>,
    mapping: String,
    may_edit: bool,
    rows: Vec<Row>,
    deliveries: String,
}

pub(super) async fn one(visit: Visit, Segments((_, id)): Segments<(String, String)>, Query(query): Query<OneQuery>) -> PageResult {
    show_one(&visit, &id, query.told.as_deref(), None).await
}

async fn show_one(visit: &Visit, id: &str, told: Option<&str>, refusal: Option<&Refusal>) -> PageResult {
    let subscription = visit.get::<SubscriptionAnswer>(Path::new(SUBSCRIPTIONS).at(id)).await?.subscription;
    let rows = newest_rows(visit, json!({"subscription_id": subscription.id}), SHOWN).await?;
    let page = OnePage {
        frame: Frame::new(visit, Section::Triggers, subscription.title()).told(told, &TOLD).refused(refusal),
        here: subscription_page(visit, id).into(),
        all: visit.page("triggers").into(),
        connection: connection_of(visit, &subscription).await,
        mapping: mapping_text(subscription.data.get("inputs_fields")),
        may_edit: visit.may("edit_triggers") && !subscription.labels.is_deleted(),
        rows,
        deliveries: visit.page("deliveries").with("trigger", &subscription.id).into(),
        subscription,
    };
    show_refused(refusal, &page)
}

/// The name of its connection and where that is shown; its id where it is gone.
async fn connection_of(visit: &Visit, subscription: &Subscription) -> Option<(String, Option<String>)> {
    let id = subscription.connection_id.as_ref()?;
    Some(match connections::connection(visit, Seen::WithTriggers, id).await {
        Ok(found) => (found.slug.clone(), Some(found.page(visit))),
        Err(_) => (id.clone(), None),
    })
}

pub(super) async fn act(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let action = form.text("action");
    if !["start", "stop", "refresh", "revoke"].contains(&action) {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "Nothing was chosen to do."));
    }
    match visit.post::<Value>(Path::new(SUBSCRIPTIONS).at(&id).at(action), json!({})).await {
        Ok(_) => see_other(subscription_page(&visit, &id).with("told", action)),
        Err(refusal) if refusal.is_missing() => Err(refusal),
        Err(refusal) => show_one(&visit, &id, None, Some(&refusal)).await,
    }
}

#[derive(Template)]
#[template(path = "trigger_delete.html")]
pub(super) struct DeletePage {
    pub(super) frame: Frame,
    pub(super) title: String,
    pub(super) words: String,
    pub(super) here: String,
    pub(super) back: String,
}

pub(super) async fn ask_delete(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    show_delete(&visit, &id, None).await
}

async fn show_delete(visit: &Visit, id: &str, refusal: Option<&Refusal>) -> PageResult {
    let subscription = visit.get::<SubscriptionAnswer>(Path::new(SUBSCRIPTIONS).at(id)).await?.subscription;
    let runs = subscription.runs().map_or_else(String::new, |runs| format!(" and {runs} is not run for it any more"));
    let words = if subscription.is_webhook() {
        format!("Its address stops working{runs}. Deliveries that still wait end without a run; those that were made stay to be read.")
    } else {
        format!(
            "{} is not watched any more{runs}. Deliveries that still wait end without a run; those that were made stay to be read.",
            subscription.event()
        )
    };
    let page = DeletePage {
        frame: Frame::new(visit, Section::Triggers, format!("Delete {}", subscription.title())).refused(refusal),
        title: subscription.title().to_owned(),
        words,
        here: subscription_page(visit, id).at("delete").into(),
        back: subscription_page(visit, id).into(),
    };
    show_refused(refusal, &page)
}

pub(super) async fn delete(visit: Visit, Segments((_, id)): Segments<(String, String)>, _: Form) -> PageResult {
    match visit.delete(Path::new(SUBSCRIPTIONS).at(&id)).await {
        Ok(()) => see_other(visit.page("triggers").with("told", "deleted")),
        Err(refusal) if refusal.is_missing() => Err(refusal),
        Err(refusal) => show_delete(&visit, &id, Some(&refusal)).await,
    }
}
