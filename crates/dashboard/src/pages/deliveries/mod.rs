//! Deliveries: one for each event and each time, run until it succeeds or is given up.

mod filter;
mod list;
mod live;
mod model;
mod one;
mod replay;

use axum::Router;
use axum::routing::{get, post};
use serde_json::{Value, json};

pub(crate) use model::{Delivery, Row};

use crate::path::Path;
use crate::refusal::Refusal;
use crate::visit::Visit;
use model::DeliveriesAnswer;

const DELIVERIES: &str = "/triggers/deliveries";

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/{project}/deliveries", get(list::list))
        .route("/{project}/deliveries/live", get(live::live))
        .route("/{project}/deliveries/replay", get(replay::ask).post(replay::replay))
        .route("/{project}/deliveries/{delivery}", get(one::one).post(one::act))
        .route("/{project}/deliveries/{delivery}/preview", post(one::preview))
}

/// The newest deliveries that fit.
pub(crate) async fn newest(visit: &Visit, filter: Value, limit: usize) -> Result<Vec<Delivery>, Refusal> {
    let asked = json!({"delivery": filter, "windowing": {"limit": limit}});
    Ok(visit.post::<DeliveriesAnswer>(Path::new(DELIVERIES).at("query"), asked).await?.deliveries)
}

/// The newest deliveries that fit, as rows of a table.
pub(crate) async fn newest_rows(visit: &Visit, filter: Value, limit: usize) -> Result<Vec<Row>, Refusal> {
    Ok(newest(visit, filter, limit).await?.into_iter().map(|delivery| Row::new(visit, delivery)).collect())
}
