//! Sentence vectors of an OpenAI-compatible embeddings API: asked for in the background, kept by content, never waited for. It must never
//! know what the sentences are for, nor who asked.

mod api;
mod kept;
mod vector;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use catalog::search::{Embedder, RemoteCounts, RemoteEmbedder};
use catalog::{Catalog, IndexedSentences};
use egress::Egress;
use kernel::Clock;
use quick_cache::sync::Cache;
use store::Db;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use api::{Api, Hash};
pub use api::{EmbeddingsError, Settings};
use kept::Kept;
use vector::Vector;

/// How many sentences one request asks about.
const BATCH: usize = 64;
/// How much of a sentence is sent: small models read no more.
const MOST_CHARACTERS: usize = 1_000;
/// Use cases that may wait to be asked about, and whose vectors are remembered, in memory only.
const MOST_WAITING: usize = 256;
const MOST_REMEMBERED: usize = 1_000;
/// How long the API is left alone after it failed: twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// How often what is stale is dropped.
const TIDY_EVERY: Duration = Duration::from_hours(24);

/// An embeddings API, and what it said.
#[derive(Debug)]
pub struct Embeddings {
    api: Arc<Api>,
    kept: Kept,
    use_cases: Cache<Hash, Vector>,
    waiting: mpsc::Sender<String>,
    to_ask: Mutex<Option<mpsc::Receiver<String>>>,
    indexed: Notify,
    answered: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

impl Embeddings {
    pub fn new(settings: Settings, egress: Egress, db: Db, clock: Clock) -> Result<Self, EmbeddingsError> {
        let (waiting, to_ask) = mpsc::channel(MOST_WAITING);
        Ok(Self {
            api: Arc::new(Api::new(settings, egress)?),
            kept: Kept::new(db, clock),
            use_cases: Cache::new(MOST_REMEMBERED),
            waiting,
            to_ask: Mutex::new(Some(to_ask)),
            indexed: Notify::new(),
            answered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        })
    }

    /// Asks for the vectors of use cases and of what the catalog indexes, until it is told to stop.
    pub async fn run(self: Arc<Self>, catalog: Catalog, stop: CancellationToken) {
        let to_ask = self.to_ask.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(to_ask) = to_ask else { return };
        stop.run_until_cancelled(async { tokio::join!(self.embed_use_cases(to_ask), self.embed_lists(&catalog)) }).await;
    }

    async fn embed_use_cases(&self, mut to_ask: mpsc::Receiver<String>) {
        let (mut waiting, mut pause) = (Vec::new(), Pause::default());
        while to_ask.recv_many(&mut waiting, BATCH).await > 0 {
            let distinct: HashSet<String> = waiting.drain(..).filter(|text| self.use_cases.peek(&self.api.hash(text)).is_none()).collect();
            let texts: Vec<&str> = distinct.iter().map(String::as_str).collect();
            match self.ask(&texts).await {
                Ok(vectors) => {
                    pause.end();
                    for (hash, vector) in vectors {
                        self.use_cases.insert(hash, vector);
                    }
                }
                // Whoever asks again has it asked about again.
                Err(error) => pause.after(&error).await,
            }
        }
    }

    async fn embed_lists(&self, catalog: &Catalog) {
        let mut pause = Pause::default();
        loop {
            let mut todo = catalog.indexed_sentences();
            todo.retain(|list| !list.are_embedded());
            for list in &todo {
                match self.embed_list(list).await {
                    Ok(()) => pause.end(),
                    Err(error) => pause.after(&error).await,
                }
            }
            if todo.is_empty() {
                if let Err(error) = self.kept.tidy().await {
                    tracing::warn!(%error, "old vectors of the embeddings API could not be dropped");
                }
                let _ = tokio::time::timeout(TIDY_EVERY, self.indexed.notified()).await;
            }
        }
    }

    async fn embed_list(&self, list: &IndexedSentences) -> Result<(), EmbeddingsError> {
        let all = list.clone();
        let sentences = tokio::task::spawn_blocking(move || all.all()).await.unwrap_or_default();
        let sentences: HashMap<Hash, &str> = sentences.iter().map(|one| cut(one)).map(|one| (self.api.hash(one), one)).collect();
        let mut vectors = self.kept.read(sentences.keys()).await?;
        let missing: Vec<&str> = sentences.iter().filter(|(hash, _)| !vectors.contains_key(*hash)).map(|(_, one)| *one).collect();
        for batch in missing.chunks(BATCH) {
            let made = match self.ask(batch).await {
                Err(error) if error.is_about_the_sentences() => self.ask_one_by_one(batch, error).await?,
                made => made?,
            };
            self.kept.keep(&made).await?;
            let width = made.first().map_or(0, |(_, vector)| vector.width());
            if vectors.values().any(|known| known.width() != width) {
                // Another model goes by the same name now: what the one before said is of no use.
                self.kept.forget_others(width).await?;
                return Err(EmbeddingsError::Malformed("vectors of another width than before"));
            }
            vectors.extend(made);
        }
        tracing::info!(vectors = vectors.len(), asked = missing.len(), "a list of tools has the vectors of the embeddings API");
        let (known, list) = (KnownVectors { api: self.api.clone(), vectors }, list.clone());
        let _ = tokio::task::spawn_blocking(move || list.embed(&known)).await;
        Ok(())
    }

    /// What the API takes of a batch that it refused. Where it takes nothing, the sentences are not to blame.
    async fn ask_one_by_one(&self, batch: &[&str], refused: EmbeddingsError) -> Result<Vec<(Hash, Vector)>, EmbeddingsError> {
        let mut made = Vec::new();
        for sentence in batch {
            match self.ask(&[*sentence]).await {
                Ok(one) => made.extend(one),
                Err(error) if error.is_about_the_sentences() => {}
                Err(error) => return Err(error),
            }
        }
        if made.is_empty() { Err(refused) } else { Ok(made) }
    }

    async fn ask(&self, sentences: &[&str]) -> Result<Vec<(Hash, Vector)>, EmbeddingsError> {
        if sentences.is_empty() {
            return Ok(Vec::new());
        }
        let answer = self.api.embed(sentences).await;
        let count = if answer.is_ok() { &self.answered } else { &self.failed };
        count.fetch_add(1, Ordering::Relaxed);
        Ok(sentences.iter().map(|sentence| self.api.hash(sentence)).zip(answer?).collect())
    }
}

impl RemoteEmbedder for Embeddings {
    fn embedded(&self, use_case: &str) -> Option<Vec<f32>> {
        let use_case = cut(use_case);
        let known = self.use_cases.get(&self.api.hash(use_case));
        if known.is_none() && self.waiting.try_send(use_case.to_owned()).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        known.map(|vector| vector.unit())
    }

    fn indexed(&self) {
        self.indexed.notify_one();
    }

    fn counts(&self) -> RemoteCounts {
        RemoteCounts {
            answered: self.answered.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }
}

/// Vectors of sentences, ready to be asked for.
#[derive(Debug)]
struct KnownVectors {
    api: Arc<Api>,
    vectors: HashMap<Hash, Vector>,
}

impl Embedder for KnownVectors {
    fn embed(&self, sentence: &str) -> Option<Vec<f32>> {
        self.vectors.get(&self.api.hash(cut(sentence))).map(Vector::unit)
    }
}

/// As much of a sentence as is sent.
fn cut(sentence: &str) -> &str {
    let end = sentence.char_indices().nth(MOST_CHARACTERS).map_or(sentence.len(), |(at, _)| at);
    sentence[..end].trim()
}

/// Leaves an API alone that fails.
#[derive(Debug, Default)]
struct Pause {
    failures: u32,
}

impl Pause {
    fn end(&mut self) {
        self.failures = 0;
    }

    async fn after(&mut self, error: &EmbeddingsError) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16)).min(LONGEST_PAUSE);
        self.failures += 1;
        tracing::warn!(%error, again_in = ?pause, "no vectors of the embeddings API; search goes on with the table in the binary");
        tokio::time::sleep(pause).await;
    }
}
