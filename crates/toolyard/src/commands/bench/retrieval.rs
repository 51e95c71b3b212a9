//! `toolyard bench retrieval`: how well and how fast search finds the right tools for judged queries.
//!
//! A set is a folder with `tools.jsonl`, `queries.jsonl` and `qrels.tsv` (query id, tool id).

mod figures;
mod set;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;
use catalog::search::{Index, Options, search};

use figures::Figures;
use set::Set;

use super::{millis, percentile};
use crate::commands::print;

/// How many answers are looked at.
const DEPTH: usize = 10;

/// Measures every set in the folder, or the folder itself when it is one.
pub(super) fn run(folder: &Path) -> anyhow::Result<()> {
    let sets = set::read_all(folder)?;
    ensure!(!sets.is_empty(), "no `tools.jsonl` in `{}` or in the folders in it", folder.display());
    print::out(&format!("{:<20} {:>6} {:>7}  R@1   R@5   R@10  NDCG   p50 ms  p99 ms  index MB  built ms\n", "set", "tools", "queries"));
    for set in &sets {
        measure(set);
    }
    Ok(())
}

fn measure(set: &Set) {
    let started = Instant::now();
    let index = Index::build(&set.documents);
    let built = started.elapsed();
    let mut figures = Vec::with_capacity(set.queries.len());
    let mut times: Vec<Duration> = Vec::with_capacity(set.queries.len());
    for (text, relevant) in &set.queries {
        let started = Instant::now();
        let hits = search(&[&index], text, DEPTH, &Options::default()).hits;
        times.push(started.elapsed());
        figures.push(Figures::of(&hits.iter().map(|hit| hit.document).collect::<Vec<_>>(), relevant));
    }
    let mean = Figures::mean(&figures);
    print::out(&format!(
        "{:<20} {:>6} {:>7}  {mean}  {:>6.2}  {:>6.2}  {:>8.1}  {:>8.0}\n",
        set.name,
        set.documents.len(),
        set.queries.len(),
        millis(percentile(&mut times, 0.5)),
        millis(percentile(&mut times, 0.99)),
        megabytes(index.size().0),
        millis(built),
    ));
}

#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}
