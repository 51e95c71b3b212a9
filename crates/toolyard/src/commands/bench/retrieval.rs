//! `toolyard bench retrieval`: how well and how fast search finds the right tools for judged queries, and whether it knows how sure it is.
//!
//! A set is a folder with `tools.jsonl`, `queries.jsonl` and `qrels.tsv` (query id, tool id), and where there are questions that no tool of
//! it answers, with `nothing.txt`.

mod calibration;
mod figures;
mod set;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;
use catalog::search::{Answer, Embedder, Index, Options, search};
use sentences::Sentences;
use serde_json::{Value, json};

use calibration::Calibration;
use figures::Figures;
use set::Set;

use super::{millis, percentile};
use crate::commands::print;

/// How many answers are looked at.
const DEPTH: usize = 10;

/// What to measure.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) folder: &'a Path,
    pub(super) words_only: bool,
    /// The sizes of larger catalogs whose time is taken.
    pub(super) tools: &'a [usize],
    pub(super) json: bool,
}

/// Measures every set in the folder, or the folder itself when it is one; then the time that larger catalogs take.
pub(super) fn run(wanted: &Wanted<'_>) -> anyhow::Result<()> {
    let sets = set::read_all(wanted.folder)?;
    ensure!(!sets.is_empty(), "no `tools.jsonl` in `{}` or in the folders in it", wanted.folder.display());
    let model = (!wanted.words_only).then(Sentences::new);
    let model = model.as_ref().map(|model| -> &dyn Embedder { model });
    if !wanted.json {
        let heading = "R@1   R@5   R@10  NDCG   p50 ms  p99 ms  index MB  vectors MB  built ms";
        print::out(&format!("{:<20} {:>6} {:>7}  {heading}\n", "set", "tools", "queries"));
    }
    let (mut measured, mut calibration) = (Vec::new(), Calibration::default());
    let mut report = |set: &Set, calibration: &mut Calibration| {
        let one = Measured::of(set, model, calibration);
        if wanted.json {
            measured.push(one.json());
        } else {
            print::out(&one.line());
        }
    };
    for set in &sets {
        report(set, &mut calibration);
    }
    for tools in wanted.tools.iter().filter(|tools| **tools > 0) {
        report(&Set::grown(&sets, *tools), &mut Calibration::default());
    }
    if wanted.json {
        print::out(&format!("{:#}\n", json!({"sets": measured, "calibration": calibration.json()})));
    } else {
        print::out(&format!("\n{calibration}"));
    }
    Ok(())
}

/// The figures of one set.
struct Measured {
    name: String,
    tools: usize,
    queries: usize,
    /// None where right answers are not known.
    figures: Option<Figures>,
    p50: Duration,
    p99: Duration,
    words_size: usize,
    vectors_size: usize,
    built: Duration,
}

impl Measured {
    fn of(set: &Set, model: Option<&dyn Embedder>, calibration: &mut Calibration) -> Self {
        let started = Instant::now();
        let index = Index::build(&set.documents, model);
        let built = started.elapsed();
        let ask = |text: &str| -> Answer { search(&[&index], text, DEPTH, &Options { embedder: model, ..Options::default() }) };
        let mut figures = Vec::with_capacity(set.queries.len());
        let mut times: Vec<Duration> = Vec::with_capacity(set.queries.len());
        for (text, relevant) in &set.queries {
            let started = Instant::now();
            let answer = ask(text);
            times.push(started.elapsed());
            figures.push(Figures::of(&answer.hits.iter().map(|hit| hit.document).collect::<Vec<_>>(), relevant));
            calibration.add(&answer, relevant);
        }
        for text in &set.nothing {
            calibration.add_nothing(&ask(text));
        }
        let (words_size, vectors_size) = index.size();
        Self {
            name: set.name.clone(),
            tools: set.documents.len(),
            queries: set.queries.len(),
            figures: set.is_judged.then(|| Figures::mean(&figures)),
            p50: percentile(&mut times, 0.5),
            p99: percentile(&mut times, 0.99),
            words_size,
            vectors_size,
            built,
        }
    }

    fn line(&self) -> String {
        let Self { name, tools, queries, .. } = self;
        let figures = self.figures.map_or_else(|| format!("{:22}", ""), |figures| figures.to_string());
        format!(
            "{name:<20} {tools:>6} {queries:>7}  {figures}  {:>6.2}  {:>6.2}  {:>8.1}  {:>10.1}  {:>8.0}\n",
            millis(self.p50),
            millis(self.p99),
            megabytes(self.words_size),
            megabytes(self.vectors_size),
            millis(self.built),
        )
    }

    fn json(&self) -> Value {
        json!({
            "set": self.name,
            "tools": self.tools,
            "queries": self.queries,
            "figures": self.figures.map(Figures::json),
            "p50_ms": millis(self.p50),
            "p99_ms": millis(self.p99),
            "index_mb": megabytes(self.words_size),
            "vectors_mb": megabytes(self.vectors_size),
            "built_ms": millis(self.built),
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}
