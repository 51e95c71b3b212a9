use serde_json::Value;
use tools::Suggestion;
#[derive(Debug, thiserror::Error)]
#[error("malformed")]
pub struct Malformed;
pub fn translate(_: &Value, _: &[&str]) -> Result<Vec<Suggestion>, Malformed> {
    Err(Malformed)
}
