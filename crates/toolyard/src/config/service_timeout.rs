//! How long services may take to answer, as the operator writes it.

use std::collections::HashMap;
use std::time::Duration;

use operations::TimeLimits;

const LONGEST: u64 = 3600;

/// Reads seconds for all, and `integration=seconds` for others, separated by commas.
pub fn read_service_timeout(text: &str) -> Result<TimeLimits, String> {
    let (mut usual, mut others) = (None, HashMap::new());
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, given) = part.split_once('=').map_or((None, part), |(name, given)| (Some(name.trim()), given.trim()));
        let seconds = given.parse().ok().filter(|seconds| (1..=LONGEST).contains(seconds));
        let seconds = seconds.ok_or_else(|| format!("`{part}`: `{given}` must be seconds, 1 to {LONGEST}"))?;
        let Some(name) = name else {
            usual = Some(Duration::from_secs(seconds));
            continue;
        };
        let (provider, key) = name.split_once('/').unwrap_or((native::KEY, name));
        if key.is_empty() || ![native::KEY, openapi::KEY].contains(&provider) {
            return Err(format!("`{part}`: name a native integration, such as `github`, or an import, such as `openapi/orders`"));
        }
        others.insert((provider.to_owned(), key.to_owned()), Duration::from_secs(seconds));
    }
    Ok(TimeLimits::new(usual, others))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_time_for_all_and_others_by_name() {
        let seconds = Duration::from_secs;
        let named = |provider: &str, key: &str| (provider.to_owned(), key.to_owned());
        assert_eq!(read_service_timeout(""), Ok(TimeLimits::default()));
        let limits = read_service_timeout("10, github=60,openapi/orders=120").unwrap();
        let others = HashMap::from([(named("native", "github"), seconds(60)), (named("openapi", "orders"), seconds(120))]);
        assert_eq!(limits, TimeLimits::new(Some(seconds(10)), others));
        assert_eq!(limits.named("native").collect::<Vec<_>>(), ["github"]);
        for wrong in ["x", "0", "3601", "github=", "github=x", "=5", "mcp/files=5", "openapi/=5"] {
            assert!(read_service_timeout(wrong).is_err(), "{wrong}");
        }
    }
}
