//! Subscriptions and schedules: what starts workflows.

mod binding;
mod choose;
mod list;
mod mapping;
mod model;
mod schedule;
mod schedule_form;
mod subscription;
mod subscription_draft;
mod subscription_form;
mod subscription_made;
mod subscription_test;
mod watched;

use axum::Router;
use axum::extract::Path as Segments;
use axum::routing::{get, post};

pub(crate) use mapping::{mapping_of, mapping_text};
pub(crate) use model::{Schedule, ScheduleAnswer, SchedulesAnswer, Subscription, SubscriptionAnswer, SubscriptionsAnswer};

use crate::frame::see_other;
use crate::path::Path;
use crate::refusal::PageResult;
use crate::visit::Visit;

const SUBSCRIPTIONS: &str = "/triggers/subscriptions";
const SCHEDULES: &str = "/triggers/schedules";
/// The event of webhooks that no integration knows.
const WEBHOOK_EVENT: &str = "WEBHOOK_RECEIVED";

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/{project}/triggers", get(list::list))
        .route("/{project}/triggers/new", get(choose::choose).post(subscription_form::create))
        .route("/{project}/triggers/new/webhook", get(subscription_form::new_webhook).post(subscription_form::create_webhook))
        .route("/{project}/triggers/new/schedule", get(schedule_form::new).post(schedule_form::create))
        .route("/{project}/triggers/test", post(subscription_test::test_draft))
        .route("/{project}/triggers/{trigger}", get(either))
        .route("/{project}/triggers/subscriptions/{subscription}", get(subscription::one).post(subscription::act))
        .route("/{project}/triggers/subscriptions/{subscription}/edit", get(subscription_form::edit).post(subscription_form::save))
        .route("/{project}/triggers/subscriptions/{subscription}/delete", get(subscription::ask_delete).post(subscription::delete))
        .route("/{project}/triggers/subscriptions/{subscription}/test", get(subscription_test::ask).post(subscription_test::test_saved))
        .route("/{project}/triggers/schedules/{schedule}", get(schedule::one).post(schedule::act))
        .route("/{project}/triggers/schedules/{schedule}/edit", get(schedule_form::edit).post(schedule_form::save))
        .route("/{project}/triggers/schedules/{schedule}/delete", get(schedule::ask_delete).post(schedule::delete))
}

pub(crate) fn subscription_page(visit: &Visit, id: &str) -> Path {
    visit.page("triggers").at("subscriptions").at(id)
}

pub(crate) fn schedule_page(visit: &Visit, id: &str) -> Path {
    visit.page("triggers").at("schedules").at(id)
}

/// Where only the id of a trigger is known.
async fn either(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    match visit.get::<SubscriptionAnswer>(Path::new(SUBSCRIPTIONS).at(&id)).await {
        Ok(_) => see_other(subscription_page(&visit, &id)),
        Err(refusal) if refusal.is_missing() => {
            visit.get::<ScheduleAnswer>(Path::new(SCHEDULES).at(&id)).await?;
            see_other(schedule_page(&visit, &id))
        }
        Err(refusal) => Err(refusal),
    }
}
