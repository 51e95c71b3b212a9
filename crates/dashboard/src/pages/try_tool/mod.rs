//! Calling a tool by hand: finding it, filling in its arguments, running it, and the same call for a program.

mod choice;
mod code;
mod find;
mod page;
mod result;
mod tool;

use axum::Router;
use axum::routing::{get, post};

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/{project}/try", get(page::show_page)).route("/{project}/try/run", post(page::run))
}
