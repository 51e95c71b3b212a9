//! Versions of toolkits in Composio's form, `YYYYMMDD_NN`.
//!
//! Ours is a fingerprint of what can be called, written as a day and a number, because SDKs and people expect that form. It needs no row:
//! every node and every project says the same of the same integration, and it changes exactly when the integration does. Only the current
//! version runs.

use catalog::Integration;

use crate::Refusal;

/// What stands for the current version.
const CURRENT: [&str; 3] = ["latest", "00000000_00", ""];
/// Days of 28 days a month, from 2020 to 2099, and a hundred numbers a day.
const DAYS: u64 = 80 * 12 * 28;

/// The version of an integration.
pub fn version(integration: &Integration) -> String {
    let print = u64::from_str_radix(integration.version(), 16).unwrap_or_default();
    let (day, number) = (print / 100 % DAYS, print % 100);
    format!("{:04}{:02}{:02}_{number:02}", 2020 + day / (12 * 28), day / 28 % 12 + 1, day % 28 + 1)
}

/// Refuses a version that is not the one that runs.
pub fn check(integration: &Integration, toolkit: &str, wanted: Option<&str>) -> Result<(), Refusal> {
    let Some(wanted) = wanted.map(str::trim).filter(|wanted| !CURRENT.contains(wanted)) else { return Ok(()) };
    let current = version(integration);
    if wanted == current {
        return Ok(());
    }
    let shown: String = wanted.chars().filter(|letter| !letter.is_control()).take(40).collect();
    Err(Refusal::tool_not_found(format!("Toolkit `{toolkit}` has no version `{shown}`; only the current one runs, which is `{current}`."))
        .fix(format!("Leave the version out, or name `{current}`.")))
}

#[cfg(test)]
mod tests {
    use catalog::{Action, Draft};
    use serde_json::json;

    use super::*;

    fn integration(schema: serde_json::Value) -> Integration {
        let action = Action::new("READ".to_owned(), "Read".to_owned(), "Reads".to_owned(), &schema);
        Integration::new("native", Draft { key: "x".to_owned(), actions: vec![action], ..Draft::default() })
    }

    #[test]
    fn a_version_is_that_of_what_can_be_called() {
        let (one, same, other) = (integration(json!({})), integration(json!({})), integration(json!({"type": "object"})));
        let current = version(&one);
        assert_eq!(current, version(&same));
        assert_ne!(current, version(&other));
        let (day, number) = current.split_once('_').unwrap();
        assert_eq!((day.len(), number.len()), (8, 2), "{current}");
        let month: u32 = day[4..6].parse().unwrap();
        assert!((1..=12).contains(&month), "{current}");
        for good in [None, Some("latest"), Some("00000000_00"), Some(""), Some(current.as_str())] {
            assert_eq!(check(&one, "x", good), Ok(()), "{good:?}");
        }
        let refused = check(&one, "x", Some("19990101_00")).unwrap_err();
        assert_eq!((refused.status, refused.code), (404, 2401));
    }
}
