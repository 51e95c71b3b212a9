//! How much was called, and what came in, over a day or a week.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::path::Path;
use crate::ui::{Bars, Markup, bars, duration_ms};
use crate::visit::Visit;

/// Runs come with all they were given, so no more than these are read for a chart.
const RUNS: usize = 100;

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

    fn length(self) -> SignedDuration {
        match self {
            Self::Day => SignedDuration::from_hours(24),
            Self::Week => SignedDuration::from_hours(7 * 24),
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
struct RunsAnswer {
    runs: Vec<Run>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Run {
    status: RunStatus,
    created_at: String,
}

#[derive(Debug, Deserialize)]
struct RunStatus {
    code: i64,
}

/// What the API said; what it refused to say is absent.
#[derive(Debug)]
pub(super) struct Stats {
    calls: Option<CallStats>,
    triggers: Option<TriggerStats>,
    runs: Option<RunsAnswer>,
}

pub(super) async fn look(visit: &Visit, span: Span) -> Stats {
    let stats = |path: &str| Path::new(path).with("since", span.since()).with("buckets", span.buckets());
    let (calls, triggers, runs) = tokio::join!(
        visit.get(stats("/tools/calls/stats")),
        visit.get(stats("/triggers/stats")),
        visit.get(Path::new("/workflows/runs").with("limit", RUNS))
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

    pub(super) fn shown(self, span: Span) -> Activity {
        let Self { calls, triggers, runs } = self;
        let cards = [
            calls.as_ref().map(calls_card),
            calls.as_ref().and_then(duration_card),
            triggers.as_ref().map(events_card),
            triggers.as_ref().and_then(deliveries_card),
            runs.map(|runs| runs_card(&runs, span, Timestamp::now())),
        ];
        Activity { cards: cards.into_iter().flatten().collect() }
    }
}

fn calls_card(stats: &CallStats) -> Card {
    let label = format!("{}, {}", counted(stats.calls, "call"), counted(stats.errors, "error"));
    let bars_of = stats.buckets.iter().map(|one| {
        let title = format!("{}: {}, {}", hour(&one.from), counted(one.calls.into(), "call"), counted(one.errors.into(), "error"));
        (f64::from(one.calls.saturating_sub(one.errors)), f64::from(one.errors), title)
    });
    let chart = bars(&Bars { label, bars: bars_of.collect() });
    let figures = vec![(stats.calls.to_string(), "calls"), (stats.errors.to_string(), "errors")];
    Card { title: "Calls", figures, chart: Some(chart), note: None }
}

fn duration_card(stats: &CallStats) -> Option<Card> {
    let figures = [(stats.p50_ms, "p50"), (stats.p95_ms, "p95")];
    let figures: Vec<_> = figures.into_iter().filter_map(|(ms, name)| Some((duration_ms(ms?), name))).collect();
    let note = "Half of the calls took no longer than p50; 95 in 100 no longer than p95.".to_owned();
    (!figures.is_empty()).then_some(Card { title: "How long calls take", figures, chart: None, note: Some(note) })
}

fn events_card(stats: &TriggerStats) -> Card {
    let dead: u64 = stats.buckets.iter().map(|one| u64::from(one.dead)).sum();
    let label = format!("{}, {}", counted(stats.events, "event"), died(dead));
    let bars_of = stats.buckets.iter().map(|one| {
        let title = format!("{}: {}, {}", hour(&one.from), counted(one.events.into(), "event"), died(one.dead.into()));
        (f64::from(one.events.saturating_sub(one.dead)), f64::from(one.dead), title)
    });
    let chart = bars(&Bars { label, bars: bars_of.collect() });
    let figures = vec![(stats.events.to_string(), "events"), (dead.to_string(), "deliveries died")];
    Card { title: "Events", figures, chart: Some(chart), note: None }
}

/// How deliveries stand now, whenever they began.
fn deliveries_card(stats: &TriggerStats) -> Option<Card> {
    let states =
        [("ready", "ready"), ("leased", "running"), ("waiting", "waiting"), ("done", "done"), ("dead", "dead"), ("cancelled", "cancelled")];
    let figures: Vec<_> = states.into_iter().filter_map(|(state, name)| Some((stats.deliveries.get(state)?.to_string(), name))).collect();
    (!figures.is_empty()).then_some(Card { title: "Deliveries now", figures, chart: None, note: None })
}

fn runs_card(answer: &RunsAnswer, span: Span, now: Timestamp) -> Card {
    let counts = by_time(&answer.runs, span, now);
    let (good, bad) = counts.iter().fold((0, 0), |sum, (_, good, bad)| (sum.0 + good, sum.1 + bad));
    let is_cut = answer.cursor.is_some() && good + bad == answer.runs.len().try_into().unwrap_or(u32::MAX);
    let label = format!("{}, {} failed", counted((good + bad).into(), "run"), bad);
    let bars_of = counts.iter().map(|(from, good, bad)| {
        let title = format!("{}: {}, {bad} failed", hour(from), counted((good + bad).into(), "run"));
        (f64::from(*good), f64::from(*bad), title)
    });
    let chart = bars(&Bars { label, bars: bars_of.collect() });
    let more = if is_cut { "+" } else { "" };
    let figures = vec![(format!("{}{more}", good + bad), "runs"), (format!("{bad}{more}"), "failed")];
    let note = is_cut.then(|| format!("Of the newest {} runs.", answer.runs.len()));
    Card { title: "Workflow runs", figures, chart: Some(chart), note }
}

/// How many runs began in each part of the span and ended well, or not.
fn by_time(runs: &[Run], span: Span, now: Timestamp) -> Vec<(String, u32, u32)> {
    let step = span.length() / span.buckets();
    let start = now.saturating_sub(span.length()).unwrap_or(now);
    let begins = (0..span.buckets()).map(|at| start.saturating_add(step * at).unwrap_or(now));
    let mut counts: Vec<(Timestamp, u32, u32)> = begins.map(|begin| (begin, 0, 0)).collect();
    for run in runs {
        let Ok(at) = run.created_at.parse::<Timestamp>() else { continue };
        let Some(bucket) = counts.iter_mut().rev().find(|(begin, ..)| *begin <= at) else { continue };
        if (200..300).contains(&run.status.code) { bucket.1 += 1 } else { bucket.2 += 1 }
    }
    counts.into_iter().map(|(begin, good, bad)| (begin.to_string(), good, bad)).collect()
}

/// The time of a bar; charts are pictures, so it stays in UTC.
fn hour(text: &str) -> String {
    text.parse::<Timestamp>().map_or_else(|_| text.to_owned(), |at| at.strftime("%b %-d %H:%M UTC").to_string())
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
    fn runs_are_counted_where_they_began() {
        let now: Timestamp = "2026-11-17T12:00:00Z".parse().unwrap();
        let run = |at: &str, code| Run { status: RunStatus { code }, created_at: at.to_owned() };
        let runs = [
            run("2026-11-17T11:30:00Z", 200),
            run("2026-11-17T11:00:00Z", 500),
            run("2026-11-16T12:00:00Z", 200),
            run("2026-11-16T11:59:00Z", 200),
            run("?", 200),
        ];
        let counts = by_time(&runs, Span::Day, now);
        assert_eq!(counts.len(), 24);
        assert_eq!((counts[23].1, counts[23].2), (1, 1));
        assert_eq!(counts[0], ("2026-11-16T12:00:00Z".to_owned(), 1, 0));
        assert_eq!(counts.iter().map(|(_, good, bad)| good + bad).sum::<u32>(), 3);
    }

    #[test]
    fn a_chart_of_cut_runs_says_so() {
        let now: Timestamp = "2026-11-17T12:00:00Z".parse().unwrap();
        let answer = |cursor| RunsAnswer {
            runs: vec![Run { status: RunStatus { code: 200 }, created_at: "2026-11-17T11:30:00Z".to_owned() }],
            cursor,
        };
        assert_eq!(runs_card(&answer(Some("x".to_owned())), Span::Day, now).figures[0].0, "1+");
        assert_eq!(runs_card(&answer(None), Span::Day, now).figures[0].0, "1");
    }

    #[test]
    fn stats_become_cards() {
        let body = json!({"calls": 3, "errors": 1, "p50_ms": 12.0, "buckets": [{"from": "2026-11-17T08:00:00Z", "calls": 3, "errors": 1}]});
        let stats: CallStats = serde_json::from_value(body).unwrap();
        let chart = calls_card(&stats).chart.unwrap().to_string();
        assert!(chart.contains("aria-label=\"3 calls, 1 error\"") && chart.contains("Nov 17 08:00 UTC: 3 calls, 1 error"), "{chart}");
        assert_eq!(duration_card(&stats).unwrap().figures, [("12 ms".to_owned(), "p50")]);
    }

    #[test]
    fn a_failing_tool_says_how_often() {
        let failing =
            |message: Option<&str>| Failing { tool: "t".to_owned(), calls: 1, errors: 1, last_message: message.map(str::to_owned) }.words();
        assert_eq!(failing(None), "1 of 1 call failed.");
        assert_eq!(failing(Some("no")), "1 of 1 call failed, the last with: no");
    }
}
