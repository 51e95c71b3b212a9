//! How much was called, and what came in, over a day or a week.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::path::Path;
use crate::ui::{Bar, Bars, Markup, Top, bars, duration_ms};
use crate::visit::Visit;

/// How far back a page looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    Day,
    Week,
}

impl Span {
    pub(super) const ALL: [Self; 2] = [Self::Day, Self::Week];

    pub(super) fn of(word: Option<&str>) -> Self {
        if word == Some(Self::Week.word()) { Self::Week } else { Self::Day }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
        }
    }

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Day => "Last 24 hours",
            Self::Week => "Last 7 days",
        }
    }

    /// The same as the API takes it.
    pub(super) fn since(self) -> &'static str {
        match self {
            Self::Day => "24h",
            Self::Week => "7d",
        }
    }

    /// How many bars a chart has.
    fn buckets(self) -> i32 {
        match self {
            Self::Day => 24,
            Self::Week => 28,
        }
    }
}

#[derive(Debug, Deserialize)]
struct CallStats {
    calls: u64,
    errors: u64,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
    #[serde(default)]
    buckets: Vec<CallBucket>,
    #[serde(default)]
    failing: Vec<Failing>,
}

#[derive(Debug, Deserialize)]
struct CallBucket {
    from: String,
    calls: u32,
    errors: u32,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
}

/// A tool with errors.
#[derive(Debug, Deserialize)]
pub(super) struct Failing {
    pub(super) tool: String,
    pub(super) calls: u64,
    pub(super) errors: u64,
    last_message: Option<String>,
}

impl Failing {
    pub(super) fn words(&self) -> String {
        let count = format!("{} of {} failed", self.errors, counted(self.calls, "call"));
        self.last_message.as_ref().map_or_else(|| format!("{count}."), |message| format!("{count}, the last with: {message}"))
    }
}

#[derive(Debug, Deserialize)]
struct TriggerStats {
    events: u64,
    #[serde(default)]
    deliveries: BTreeMap<String, u64>,
    #[serde(default)]
    buckets: Vec<EventBucket>,
}

#[derive(Debug, Deserialize)]
struct EventBucket {
    from: String,
    events: u32,
    #[serde(default)]
    dead: u32,
}

#[derive(Debug, Deserialize)]
struct RunStats {
    runs: u64,
    #[serde(default)]
    states: BTreeMap<String, u64>,
    #[serde(default)]
    buckets: Vec<RunBucket>,
}

#[derive(Debug, Deserialize)]
struct RunBucket {
    from: String,
    runs: u32,
    failed: u32,
}

/// What the API said; what it refused to say is absent.
#[derive(Debug)]
pub(super) struct Stats {
    calls: Option<CallStats>,
    triggers: Option<TriggerStats>,
    runs: Option<RunStats>,
}

pub(super) async fn look(visit: &Visit, span: Span) -> Stats {
    let stats = |path: &str| Path::new(path).with("since", span.since()).with("buckets", span.buckets());
    let (calls, triggers, runs) = tokio::join!(
        visit.get(stats("/tools/calls/stats")),
        visit.get(stats("/triggers/stats")),
        visit.get(stats("/workflows/runs/stats"))
    );
    Stats { calls: calls.ok(), triggers: triggers.ok(), runs: runs.ok() }
}

/// The cards of the page.
#[derive(Debug)]
pub(super) struct Activity {
    pub(super) cards: Vec<Card>,
}

/// Some figures with names, and a chart where there is one.
#[derive(Debug)]
pub(super) struct Card {
    pub(super) title: &'static str,
    pub(super) figures: Vec<(String, &'static str)>,
    pub(super) chart: Option<Markup>,
    pub(super) note: Option<String>,
}

impl Stats {
    pub(super) fn failing(&self) -> Option<&[Failing]> {
        self.calls.as_ref().map(|calls| &calls.failing[..])
    }

    pub(super) fn shown(self) -> Activity {
        let Self { calls, triggers, runs } = self;
        let cards = [
            calls.as_ref().map(calls_card),
            calls.as_ref().and_then(duration_card),
            triggers.as_ref().map(events_card),
            triggers.as_ref().and_then(deliveries_card),
            runs.as_ref().map(runs_card),
        ];
        Activity { cards: cards.into_iter().flatten().collect() }
    }
}

fn calls_card(stats: &CallStats) -> Card {
    let label = format!("{}, {}", counted(stats.calls, "call"), counted(stats.errors, "error"));
    let bars_of = stats.buckets.iter().map(|one| {
        let words = format!("{}, {}", counted(one.calls.into(), "call"), counted(one.errors.into(), "error"));
        part(&one.from, one.calls, one.errors, words)
    });
    let chart = bars(&Bars { label, top: Top::Bad, all: bars_of.collect() });
    let figures = vec![figure(stats.calls, "call", "calls"), figure(stats.errors, "error", "errors")];
    Card { title: "Calls", figures, chart: Some(chart), note: None }
}

fn duration_card(stats: &CallStats) -> Option<Card> {
    let figures = [(stats.p50_ms, "p50"), (stats.p95_ms, "p95")];
    let figures: Vec<_> = figures.into_iter().filter_map(|(ms, name)| Some((duration_ms(ms?), name))).collect();
    if figures.is_empty() {
        return None;
    }
    let label = figures.iter().map(|(figure, name)| format!("{name} {figure}")).collect::<Vec<_>>().join(", ");
    let bars_of = stats.buckets.iter().map(|one| {
        let (p50, p95) = (one.p50_ms.unwrap_or_default(), one.p95_ms.unwrap_or_default());
        let words = if one.calls == 0 { "no calls".to_owned() } else { format!("p50 {}, p95 {}", duration_ms(p50), duration_ms(p95)) };
        Bar { from: one.from.clone(), low: p50, high: (p95 - p50).max(0.0), words }
    });
    let chart = bars(&Bars { label, top: Top::More, all: bars_of.collect() });
    let note = "Half of the calls took no longer than p50, the dark part of a bar; 95 in 100 no longer than p95, the whole bar.".to_owned();
    Some(Card { title: "How long calls take", figures, chart: Some(chart), note: Some(note) })
}

/// A bar of which a part went wrong.
fn part(from: &str, all: u32, bad: u32, words: String) -> Bar {
    Bar { from: from.to_owned(), low: f64::from(all.saturating_sub(bad)), high: f64::from(bad), words }
}

fn events_card(stats: &TriggerStats) -> Card {
    let dead: u64 = stats.buckets.iter().map(|one| u64::from(one.dead)).sum();
    let label = format!("{}, {}", counted(stats.events, "event"), died(dead));
    let bars_of = stats.buckets.iter().map(|one| {
        let words = format!("{}, {}", counted(one.events.into(), "event"), died(one.dead.into()));
        part(&one.from, one.events, one.dead, words)
    });
    let chart = bars(&Bars { label, top: Top::Bad, all: bars_of.collect() });
    let figures = vec![figure(stats.events, "event", "events"), figure(dead, "delivery died", "deliveries died")];
    Card { title: "Events", figures, chart: Some(chart), note: None }
}

/// How deliveries stand now, whenever they began.
fn deliveries_card(stats: &TriggerStats) -> Option<Card> {
    let states =
        [("ready", "ready"), ("leased", "running"), ("waiting", "waiting"), ("done", "done"), ("dead", "dead"), ("cancelled", "cancelled")];
    let figures: Vec<_> = states.into_iter().filter_map(|(state, name)| Some((stats.deliveries.get(state)?.to_string(), name))).collect();
    (!figures.is_empty()).then_some(Card { title: "Deliveries now", figures, chart: None, note: None })
}

fn runs_card(stats: &RunStats) -> Card {
    let count = |state: &str| stats.states.get(state).copied().unwrap_or_default();
    let label = format!("{}, {} failed", counted(stats.runs, "run"), count("failed"));
    let bars_of = stats.buckets.iter().map(|one| {
        let words = format!("{}, {} failed", counted(one.runs.into(), "run"), one.failed);
        part(&one.from, one.runs, one.failed, words)
    });
    let chart = bars(&Bars { label, top: Top::Bad, all: bars_of.collect() });
    let mut figures = vec![figure(stats.runs, "run", "runs"), (count("failed").to_string(), "failed")];
    if count("waiting") > 0 {
        figures.push((count("waiting").to_string(), "waited for approval"));
    }
    Card { title: "Workflow runs", figures, chart: Some(chart), note: None }
}

/// A number with its noun.
fn figure(count: u64, one: &'static str, many: &'static str) -> (String, &'static str) {
    (count.to_string(), if count == 1 { one } else { many })
}

fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn died(count: u64) -> String {
    if count == 1 { "1 delivery died".to_owned() } else { format!("{count} deliveries died") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_that_waits_has_not_failed() {
        let body = json!({"runs": 3, "states": {"succeeded": 1, "failed": 1, "waiting": 1, "cancelled": 0},
            "buckets": [{"from": "2026-11-17T08:00:00Z", "runs": 3, "failed": 1}]});
        let card = runs_card(&serde_json::from_value(body).unwrap());
        let figures: Vec<_> = card.figures.iter().map(|(count, name)| format!("{count} {name}")).collect();
        assert_eq!(figures, ["3 runs", "1 failed", "1 waited for approval"]);
        assert!(card.chart.unwrap().to_string().contains("Nov 17 08:00 UTC: 3 runs, 1 failed"));
    }

    #[test]
    fn stats_become_cards() {
        let body = json!({"calls": 3, "errors": 1, "p50_ms": 12.0,
            "buckets": [{"from": "2026-11-17T08:00:00Z", "calls": 3, "errors": 1, "p50_ms": 12.0, "p95_ms": 40.0}, {"from": "2026-11-17T09:00:00Z", "calls": 0, "errors": 0}]});
        let stats: CallStats = serde_json::from_value(body).unwrap();
        let chart = calls_card(&stats).chart.unwrap().to_string();
        assert!(chart.contains("aria-label=\"3 calls, 1 error\"") && chart.contains("Nov 17 08:00 UTC: 3 calls, 1 error"), "{chart}");
        let durations = duration_card(&stats).unwrap();
        assert_eq!(durations.figures, [("12 ms".to_owned(), "p50")]);
        let chart = durations.chart.unwrap().to_string();
        assert!(chart.contains("08:00 UTC: p50 12 ms, p95 40 ms") && chart.contains("09:00 UTC: no calls"), "{chart}");
    }

    #[test]
    fn a_failing_tool_says_how_often() {
        let failing =
            |message: Option<&str>| Failing { tool: "t".to_owned(), calls: 1, errors: 1, last_message: message.map(str::to_owned) }.words();
        assert_eq!(failing(None), "1 of 1 call failed.");
        assert_eq!(failing(Some("no")), "1 of 1 call failed, the last with: no");
    }
}
