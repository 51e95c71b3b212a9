//! What an agent may change about itself, as functions of the data before and after.

mod grants;
mod scope;

use serde_json::Value;
use workflows::{ChangeJudge, RefusedChange};

/// Judges the commits of an agent to its own configuration.
#[derive(Debug)]
pub struct OwnChange;

impl ChangeJudge for OwnChange {
    fn judge(&self, before: &Value, after: &Value) -> Result<(), RefusedChange> {
        scope::check(before, after).map_err(|error| RefusedChange {
            code: error.code(),
            place: error.place().to_owned(),
            message: error.to_string(),
        })
    }
}
