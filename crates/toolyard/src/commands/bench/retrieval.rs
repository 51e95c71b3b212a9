//! `toolyard bench retrieval`: how well and how fast search finds the right tools for judged queries.
//!
//! A set is a folder with `tools.jsonl`, `queries.jsonl` and `qrels.tsv` (query id, tool id).

mod figures;
mod set;

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use catalog::search::{Document, Embedder, Index, Options, search, sentences, sentences_of};
use sentences::Sentences;

use figures::Figures;
use set::Set;

use super::{millis, percentile};
use crate::commands::print;

/// How many answers are looked at.
const DEPTH: usize = 10;

/// Nobody waits that long.
const PATIENT: Duration = Duration::from_hours(1);

/// Measures every set in the folder, or the folder itself when it is one; then the time that a larger catalog takes, where one is asked for.
pub(super) fn run(folder: &Path, words_only: bool, tools: Option<usize>) -> anyhow::Result<()> {
    let sets = set::read_all(folder)?;
    ensure!(!sets.is_empty(), "no `tools.jsonl` in `{}` or in the folders in it", folder.display());
    let kept = std::env::temp_dir().join(format!("toolyard-bench-{}.vectors", std::process::id()));
    let model = (!words_only).then(|| Sentences::new(Some(kept.clone())));
    let heading = "R@1   R@5   R@10  NDCG   p50 ms  p99 ms  index MB  vectors MB  built ms";
    print::out(&format!("{:<20} {:>6} {:>7}  {heading}\n", "set", "tools", "queries"));
    for set in &sets {
        measure(set, model.as_ref())?;
    }
    if let Some(tools) = tools {
        measure(&Set::grown(sets, tools), model.as_ref())?;
    }
    if !words_only {
        std::fs::remove_file(&kept).with_context(|| format!("cannot remove `{}`", kept.display()))?;
    }
    Ok(())
}

fn measure(set: &Set, model: Option<&Sentences>) -> anyhow::Result<()> {
    let started = Instant::now();
    let index = Index::build(&set.documents);
    let built = started.elapsed();
    if let Some(model) = model {
        embed(&index, &set.documents, model)?;
    }
    let mut figures = Vec::with_capacity(set.queries.len());
    let mut times: Vec<Duration> = Vec::with_capacity(set.queries.len());
    for (text, relevant) in &set.queries {
        let started = Instant::now();
        let vectors: Vec<Vec<f32>> = model.map(|model| model.ask(&sentences_of(text), PATIENT)).into_iter().flatten().flatten().collect();
        let hits = search(&[&index], text, DEPTH, &Options { vectors: &vectors, ..Options::default() }).hits;
        times.push(started.elapsed());
        figures.push(Figures::of(&hits.iter().map(|hit| hit.document).collect::<Vec<_>>(), relevant));
    }
    let mean = Figures::mean(&figures);
    let (words, vectors) = index.size();
    print::out(&format!(
        "{:<20} {:>6} {:>7}  {mean}  {:>6.2}  {:>6.2}  {:>8.1}  {:>10.1}  {:>8.0}\n",
        set.name,
        set.documents.len(),
        set.queries.len(),
        millis(percentile(&mut times, 0.5)),
        millis(percentile(&mut times, 0.99)),
        megabytes(words),
        megabytes(vectors),
        millis(built),
    ));
    Ok(())
}

fn embed(index: &Index, documents: &[Document], model: &Sentences) -> anyhow::Result<()> {
    let (done, ready) = mpsc::channel();
    model.prepare(sentences(documents), Box::new(move |vectors| _ = done.send(vectors)));
    index.embed(ready.recv().context("the sentence model failed")?);
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}
