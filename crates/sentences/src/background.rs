//! Sentences of documents: nobody waits for them, so one thread works through them, and what it made is kept.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use catalog::search::Vectors;

use crate::kept::Kept;
use crate::model;

/// How many new vectors are written to the file together.
const WRITTEN_TOGETHER: usize = 64;

struct Job {
    sentences: Vec<String>,
    done: Box<dyn FnOnce(Vectors) + Send>,
}

/// The thread and its work.
pub(crate) struct Background {
    file: Option<PathBuf>,
    jobs: OnceLock<Sender<Job>>,
}

impl std::fmt::Debug for Background {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Background").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Background {
    pub(crate) fn new(file: Option<PathBuf>) -> Self {
        Self { file, jobs: OnceLock::new() }
    }

    pub(crate) fn add(&self, sentences: Vec<String>, done: Box<dyn FnOnce(Vectors) + Send>) {
        let jobs = self.jobs.get_or_init(|| start(self.file.clone()));
        // It fails only when there is no thread, which was logged.
        let _ = jobs.send(Job { sentences, done });
    }
}

fn start(file: Option<PathBuf>) -> Sender<Job> {
    let (jobs, work) = mpsc::channel();
    let run = move || model::on_this_thread(move || run(&work, file.as_deref()));
    if let Err(error) = thread::Builder::new().name("sentences-later".to_owned()).spawn(run) {
        tracing::error!(%error, "no thread for the sentence model");
    }
    jobs
}

fn run(work: &Receiver<Job>, file: Option<&Path>) {
    while let Ok(job) = work.recv() {
        // Opened for each job, so that the vectors of a large catalog are not held twice while nothing is prepared.
        let mut kept = Kept::open(file);
        if let Some(vectors) = vectors(&job.sentences, &mut kept) {
            (job.done)(vectors);
        }
    }
}

fn vectors(sentences: &[String], kept: &mut Kept) -> Option<Vectors> {
    let mut vectors = Vectors::default();
    let mut new = 0;
    for sentence in sentences {
        if !kept.holds(sentence) {
            // A sentence without a vector, such as a blank one, is near to nothing.
            let vector = model::embed(sentence).unwrap_or_else(|| vec![0.0; model::WIDTH]);
            kept.put(sentence, &vector);
            new += 1;
            if new % WRITTEN_TOGETHER == 0 {
                kept.write();
            }
        }
        vectors.push(kept.get(sentence)?);
    }
    kept.write();
    Some(vectors)
}
