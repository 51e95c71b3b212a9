//! What a benchmark found: each figure as the median of its rounds, with its spread, for people and on one line for programs.

use std::fmt::Write as _;

use clap::Args;
use serde_json::{Map, Value, json};

use super::print;

/// How a benchmark is run.
#[derive(Clone, Debug, Args)]
pub(crate) struct Rounds {
    /// An empty PostgreSQL database to measure instead of a SQLite file; it is not cleaned up
    #[arg(long, value_name = "URL")]
    pub(super) database_url: Option<String>,
    /// How often to measure, after a warm-up
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) repeat: u32,
}

/// Figures by name, in the order they were first given.
#[derive(Debug, Default)]
pub(super) struct Report(Vec<Figure>);

#[derive(Debug)]
struct Figure {
    name: &'static str,
    text: String,
    unit: &'static str,
    values: Vec<f64>,
}

impl Figure {
    fn sorted(&self) -> Vec<f64> {
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        values
    }

    /// The median, the least and the most.
    fn spread(&self) -> (f64, f64, f64) {
        let values = self.sorted();
        let (first, last) = (values.first().copied().unwrap_or_default(), values.last().copied().unwrap_or_default());
        let (low, high) = (values.get(values.len().saturating_sub(1) / 2), values.get(values.len() / 2));
        (f64::midpoint(low.copied().unwrap_or_default(), high.copied().unwrap_or_default()), first, last)
    }
}

impl Report {
    /// Adds what one round found, under a name for programs and a text for people.
    pub(super) fn add(&mut self, name: &'static str, text: impl Into<String>, unit: &'static str, value: f64) {
        match self.0.iter_mut().find(|figure| figure.name == name) {
            Some(figure) => figure.values.push(value),
            None => self.0.push(Figure { name, text: text.into(), unit, values: vec![value] }),
        }
    }

    /// Prints the figures, and all of them again as one line of JSON.
    pub(super) fn print(&self, bench: &str, rounds: &Rounds) {
        let width = self.0.iter().map(|figure| figure.text.len()).max().unwrap_or_default();
        let mut text = String::new();
        let mut figures = Map::new();
        for figure in &self.0 {
            let (median, least, most) = figure.spread();
            let places = if most >= 100.0 { 0 } else { 3 };
            let _ = write!(text, "{:<width$}  {median:>9.places$} {}", figure.text, figure.unit);
            if figure.values.len() > 1 {
                let _ = write!(text, "  ({least:.places$} to {most:.places$})");
            }
            text.push('\n');
            figures.insert(
                figure.name.to_owned(),
                json!({"median": round(median), "min": round(least), "max": round(most), "unit": figure.unit}),
            );
        }
        let database = if rounds.database_url.is_some() { "postgres" } else { "sqlite" };
        let line = json!({"bench": bench, "database": database, "repeat": rounds.repeat, "figures": Value::Object(figures)});
        print::out(&format!("{text}{line}\n"));
    }
}

/// As exact as such a figure is.
fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_median_of_its_rounds() {
        let mut report = Report::default();
        for value in [3.0, 1.0, 10.0] {
            report.add("p50", "p50", "ms", value);
        }
        assert_eq!(report.0[0].spread(), (3.0, 1.0, 10.0));
        report.add("p50", "p50", "ms", 4.0);
        assert_eq!(report.0[0].spread(), (3.5, 1.0, 10.0));
    }
}
