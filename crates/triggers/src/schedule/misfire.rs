//! What happens to slots that passed while nobody was there to fire them.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

/// What to do with slots that were missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub enum Misfire {
    /// Drop them.
    Skip,
    /// Fire once for all of them.
    #[default]
    FireOnce,
    /// Fire the newest of them, each on its own.
    CatchUp(Limit),
}

/// How many missed slots may be caught up with at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(u16);

/// Why a value is no misfire policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MisfireError {
    #[error("`{0}` is not a misfire policy; hint: use `skip`, `fire_once` or `catch_up`")]
    Policy(String),
    #[error("`limit` of `catch_up` must be a whole number from 1 to {max}, found `{0}`", max = Limit::MAX.0)]
    Limit(String),
}

impl Limit {
    pub const MAX: Self = Self(1000);

    pub fn new(limit: u64) -> Result<Self, MisfireError> {
        match u16::try_from(limit) {
            Ok(limit @ 1..=1000) => Ok(Self(limit)),
            _ => Err(MisfireError::Limit(limit.to_string())),
        }
    }

    pub fn get(self) -> usize {
        self.0.into()
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self(10)
    }
}

/// Either the name of a policy, or `{"policy": "catch_up", "limit": 10}`.
impl TryFrom<Value> for Misfire {
    type Error = MisfireError;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let policy = value.get("policy").unwrap_or(&value);
        match policy.as_str() {
            Some("skip") => Ok(Self::Skip),
            Some("fire_once") => Ok(Self::FireOnce),
            Some("catch_up") => limit(value.get("limit")).map(Self::CatchUp),
            Some(other) => Err(MisfireError::Policy(other.to_owned())),
            None => Err(MisfireError::Policy(policy.to_string())),
        }
    }
}

fn limit(value: Option<&Value>) -> Result<Limit, MisfireError> {
    match value {
        None | Some(Value::Null) => Ok(Limit::default()),
        Some(value) => Limit::new(value.as_u64().ok_or_else(|| MisfireError::Limit(value.to_string()))?),
    }
}

impl Serialize for Misfire {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Skip => serializer.serialize_str("skip"),
            Self::FireOnce => serializer.serialize_str("fire_once"),
            Self::CatchUp(limit) => json!({"policy": "catch_up", "limit": limit.0}).serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_and_objects() {
        for (value, expected, written) in [
            (json!("skip"), Misfire::Skip, json!("skip")),
            (json!({"policy": "skip"}), Misfire::Skip, json!("skip")),
            (json!("fire_once"), Misfire::FireOnce, json!("fire_once")),
            (json!("catch_up"), Misfire::CatchUp(Limit(10)), json!({"policy": "catch_up", "limit": 10})),
            (json!({"policy": "catch_up", "limit": 1000}), Misfire::CatchUp(Limit::MAX), json!({"policy": "catch_up", "limit": 1000})),
        ] {
            let misfire: Misfire = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(misfire, expected, "{value}");
            assert_eq!(serde_json::to_value(misfire).unwrap(), written);
        }
    }

    #[test]
    fn refuses_the_rest_by_name() {
        for (value, message) in [
            (json!("later"), "`later` is not a misfire policy; hint: use `skip`, `fire_once` or `catch_up`"),
            (json!(3), "`3` is not a misfire policy; hint: use `skip`, `fire_once` or `catch_up`"),
            (json!({"limit": 3}), "`{\"limit\":3}` is not a misfire policy; hint: use `skip`, `fire_once` or `catch_up`"),
            (json!({"policy": "catch_up", "limit": 0}), "`limit` of `catch_up` must be a whole number from 1 to 1000, found `0`"),
            (json!({"policy": "catch_up", "limit": 1001}), "`limit` of `catch_up` must be a whole number from 1 to 1000, found `1001`"),
            (json!({"policy": "catch_up", "limit": "all"}), "`limit` of `catch_up` must be a whole number from 1 to 1000, found `\"all\"`"),
        ] {
            assert_eq!(serde_json::from_value::<Misfire>(value).unwrap_err().to_string(), message);
        }
    }
}
