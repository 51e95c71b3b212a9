//! Calling a tool by hand: finding it, filling in its arguments, running it, and the same call for a program.

mod choice;
mod code;
mod find;
mod page;
mod result;
mod tool;

use axum::Router;
use axum::routing::{get, post};
use serde_json::Value;

use crate::refusal::Refusal;
use crate::visit::Visit;

/// Whether a ref names something that can be called here.
pub(crate) fn can_be_tried(call_ref: &str) -> bool {
    choice::Choice::of_ref(call_ref).is_some()
}

/// A tool as a step of a workflow needs it.
#[derive(Debug)]
pub(crate) struct Callable {
    pub(crate) title: String,
    pub(crate) call_ref: String,
    /// The last word of its name that says what it does.
    pub(crate) action: String,
    pub(crate) schema: Value,
}

pub(crate) async fn callable(visit: &Visit, call_ref: &str) -> Result<Option<Callable>, Refusal> {
    let Some(choice) = choice::Choice::of_ref(call_ref) else { return Ok(None) };
    let tool = tool::read(visit, &choice).await?;
    Ok(Some(Callable { title: tool.title, call_ref: tool.call_ref, action: choice.name().to_owned(), schema: tool.schema }))
}

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/{project}/try", get(page::show_page)).route("/{project}/try/run", post(page::run))
}
