//! What a run may use, what it has used, and what that costs. Functions of values.

use std::time::Duration;

use models::Usage;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::config::{known, positive};

/// What a run may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    pub turns: u64,
    pub tool_calls: u64,
    /// Read and written tokens together.
    pub tokens: u64,
    pub usd: Option<f64>,
    /// The time in which the run is at work; waiting for people does not count.
    pub seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { turns: 20, tool_calls: 50, tokens: 500_000, usd: None, seconds: 900 }
    }
}

/// The most that an author may ask for.
const MOST: Limits = Limits { turns: 1000, tool_calls: 5000, tokens: 1_000_000_000, usd: None, seconds: 86_400 };
const NAMES: [&str; 5] = ["turns", "tool_calls", "tokens", "usd", "seconds"];

impl Limits {
    pub(crate) fn read(value: Option<&Value>) -> Result<Self, String> {
        let mut limits = Self::default();
        let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(limits) };
        let fields = value.as_object().ok_or("`data.limits` must be an object")?;
        known(fields, "data.limits", &NAMES)?;
        let within = |name: &str, default: u64, most: u64| match positive(fields, "data.limits", name)? {
            None => Ok(default),
            Some(number) if number <= most => Ok(number),
            Some(_) => Err(format!("`data.limits.{name}` may be {most} at most")),
        };
        limits.turns = within("turns", limits.turns, MOST.turns)?;
        limits.tool_calls = within("tool_calls", limits.tool_calls, MOST.tool_calls)?;
        limits.tokens = within("tokens", limits.tokens, MOST.tokens)?;
        limits.seconds = within("seconds", limits.seconds, MOST.seconds)?;
        limits.usd = match fields.get("usd").filter(|usd| !usd.is_null()) {
            None => None,
            Some(usd) => Some(usd.as_f64().filter(|usd| *usd > 0.0).ok_or("`data.limits.usd` must be a positive number")?),
        };
        Ok(limits)
    }

    /// What is used up, in words.
    pub(crate) fn exceeded(&self, used: &Used) -> Option<String> {
        let usd = self.usd.filter(|usd| used.usd >= *usd);
        if used.turns >= self.turns {
            Some(format!("{} turns", self.turns))
        } else if used.calls_wanted > self.tool_calls {
            Some(format!("{} tool calls", self.tool_calls))
        } else if used.tokens.input + used.tokens.output >= self.tokens {
            Some(format!("{} tokens", self.tokens))
        } else if let Some(usd) = usd {
            Some(format!("{usd} US dollars"))
        } else if used.active >= Duration::from_secs(self.seconds) {
            Some(format!("{} seconds", self.seconds))
        } else {
            None
        }
    }

    /// How much of its time a run has left.
    pub(crate) fn time_left(&self, used: &Used) -> Duration {
        Duration::from_secs(self.seconds).saturating_sub(used.active)
    }
}

/// What a run has used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    pub turns: u64,
    /// Calls that were made.
    pub tool_calls: u64,
    /// Calls that the model asked for, also those that the limit kept from being made.
    pub(crate) calls_wanted: u64,
    pub tokens: Usage,
    pub usd: f64,
    pub active: Duration,
}

impl Used {
    /// As answers show it.
    pub fn shown(&self) -> Value {
        json!({
            "turns": self.turns,
            "tool_calls": self.tool_calls,
            "input_tokens": self.tokens.input,
            "output_tokens": self.tokens.output,
            "cached_input_tokens": self.tokens.cached_input,
            "usd": (self.usd * 1e6).round() / 1e6,
            "seconds": (self.active.as_secs_f64() * 1000.0).round() / 1000.0,
        })
    }
}

/// What a million tokens cost, in US dollars. No list of prices is ours to keep, so authors give them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    pub input: f64,
    pub output: f64,
    pub cached_input: Option<f64>,
}

impl Prices {
    pub(crate) fn read(fields: &Map<String, Value>) -> Result<Self, String> {
        known(fields, "data.model.prices", &["input", "output", "cached_input"])?;
        let price = |name: &str| match fields.get(name).filter(|price| !price.is_null()) {
            None => Ok(None),
            Some(price) => price
                .as_f64()
                .filter(|price| *price >= 0.0)
                .map(Some)
                .ok_or_else(|| format!("`data.model.prices.{name}` must be a number of US dollars for a million tokens")),
        };
        let needed = |name: &str| price(name)?.ok_or_else(|| format!("`data.model.prices.{name}` is missing"));
        Ok(Self { input: needed("input")?, output: needed("output")?, cached_input: price("cached_input")? })
    }

    #[expect(clippy::cast_precision_loss, reason = "tokens are far fewer than what a float holds exactly")]
    pub(crate) fn cost(&self, usage: Usage) -> f64 {
        let cached = usage.cached_input.min(usage.input);
        let fresh = usage.input - cached;
        let cached_price = self.cached_input.unwrap_or(self.input);
        (fresh as f64 * self.input + cached as f64 * cached_price + usage.output as f64 * self.output) / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_refused_in_words() {
        assert_eq!(Limits::read(None).unwrap(), Limits::default());
        let read = Limits::read(Some(&json!({"turns": 3, "usd": 0.5, "seconds": null}))).unwrap();
        assert_eq!((read.turns, read.usd, read.seconds), (3, Some(0.5), 900));
        for (limits, part) in [
            (json!([]), "must be an object"),
            (json!({"turn": 3}), "Did you mean `turns`?"),
            (json!({"turns": 0}), "`data.limits.turns` must be a positive number"),
            (json!({"turns": 5000}), "may be 1000 at most"),
            (json!({"usd": -1}), "`data.limits.usd`"),
        ] {
            let error = Limits::read(Some(&limits)).unwrap_err();
            assert!(error.contains(part), "{limits}: {error}");
        }
    }

    #[test]
    fn each_limit_is_named_when_it_is_reached() {
        let limits = Limits { turns: 5, tool_calls: 3, tokens: 1000, usd: Some(0.25), seconds: 10 };
        let used = Used::default();
        assert_eq!(limits.exceeded(&used), None);
        for (used, said) in [
            (Used { turns: 5, ..used }, "5 turns"),
            (Used { calls_wanted: 4, tool_calls: 3, ..used }, "3 tool calls"),
            (Used { tokens: Usage { input: 900, output: 100, ..Usage::default() }, ..used }, "1000 tokens"),
            (Used { usd: 0.25, ..used }, "0.25 US dollars"),
            (Used { active: Duration::from_secs(10), ..used }, "10 seconds"),
        ] {
            assert_eq!(limits.exceeded(&used).as_deref(), Some(said));
        }
        assert_eq!(limits.exceeded(&Used { calls_wanted: 3, ..used }), None, "exactly as many as there may be");
    }

    #[test]
    fn cached_tokens_cost_what_they_cost() {
        let prices = Prices { input: 3.0, output: 15.0, cached_input: Some(0.3) };
        let usage = Usage { input: 1_000_000, output: 100_000, cached_input: 500_000, ..Usage::default() };
        assert!((prices.cost(usage) - (1.5 + 0.15 + 1.5)).abs() < 1e-9);
        let plain = Prices { cached_input: None, ..prices };
        assert!((plain.cost(usage) - 4.5).abs() < 1e-9);
    }
}
