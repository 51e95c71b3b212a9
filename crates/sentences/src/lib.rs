//! The sentence model that ships in the binary, and the vectors it made before. It must never know what the sentences are for.
//!
//! Nothing is loaded before somebody asks: the weights take some 90 MB of memory. Whoever asks waits for as long as they say;
//! sentences of documents are worked through in the background and kept in a file.

mod background;
mod kept;
mod model;
mod queue;
mod recent;

use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use catalog::search::{Embedder, Vectors};

use background::Background;
use queue::Queue;
use recent::Recent;

/// How many sentences that were asked for are remembered with their vectors.
const REMEMBERED: usize = 2048;

/// The model, ready to be loaded.
#[derive(Debug)]
pub struct Sentences {
    queue: Queue,
    background: Background,
}

impl Sentences {
    /// Keeps the vectors of documents in `file`, or nowhere.
    pub fn new(file: Option<PathBuf>) -> Self {
        Self { queue: Queue::new(Recent::new(REMEMBERED)), background: Background::new(file) }
    }
}

impl Embedder for Sentences {
    fn ask(&self, sentences: &[&str], within: Duration) -> Vec<Option<Vec<f32>>> {
        let deadline = Instant::now() + within;
        let (reply, replies) = mpsc::channel();
        let mut vectors = vec![None; sentences.len()];
        let mut missing = 0;
        for (at, sentence) in sentences.iter().enumerate() {
            vectors[at] = self.queue.remembered(sentence);
            if vectors[at].is_none() {
                self.queue.add(sentence, at, reply.clone());
                missing += 1;
            }
        }
        drop(reply);
        while missing > 0 {
            let Ok((at, vector)) = replies.recv_timeout(deadline.saturating_duration_since(Instant::now())) else { break };
            vectors[at] = vector;
            missing -= 1;
        }
        vectors
    }

    fn prepare(&self, sentences: Vec<String>, done: Box<dyn FnOnce(Vectors) + Send>) {
        self.background.add(sentences, done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENT: Duration = Duration::from_mins(2);

    #[test]
    fn near_sentences_have_near_vectors() {
        let model = Sentences::new(None);
        let all = model.ask(&["send an email", "write a mail to somebody", "delete a repository", " "], PATIENT);
        let [Some(send), Some(write), Some(delete), None] = all.as_slice() else { panic!("three vectors and a blank") };
        let cosines = Vectors::new(&[write.clone(), delete.clone()]).cosines(send);
        assert!(cosines[0] > cosines[1] + 0.2, "{cosines:?}");
    }

    #[test]
    fn whoever_cannot_wait_goes_without() {
        let model = Sentences::new(None);
        assert_eq!(model.ask(&["nobody has asked this before"], Duration::ZERO), [None]);
        assert!(model.ask(&["nobody has asked this before"], PATIENT)[0].is_some());
        assert!(model.ask(&["nobody has asked this before"], Duration::ZERO)[0].is_some(), "it is remembered");
    }

    #[test]
    fn documents_are_prepared_once_and_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("vectors");
        let prepare = |texts: &[&str]| {
            let model = Sentences::new(Some(file.clone()));
            let (send, receive) = mpsc::channel();
            let texts = texts.iter().map(|text| (*text).to_owned()).collect();
            model.prepare(texts, Box::new(move |vectors| send.send(vectors).expect("somebody waits")));
            receive.recv_timeout(PATIENT).expect("vectors")
        };
        let first = prepare(&["create an issue", "list all files"]);
        let size = std::fs::metadata(&file).expect("a file").len();
        let again = prepare(&["list all files", "create an issue"]);
        assert_eq!(std::fs::metadata(&file).expect("a file").len(), size, "nothing new was embedded");
        let asked = Sentences::new(None).ask(&["create an issue"], PATIENT).remove(0).expect("a vector");
        let (first, again) = (first.cosines(&asked), again.cosines(&asked));
        assert!(first[0] > 0.99 && (first[0] - again[1]).abs() < 1e-6, "{first:?} {again:?}");
    }
}
