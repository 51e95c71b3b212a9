//! One sentence through the model, on the thread that asks.

use std::sync::OnceLock;

use pocket_encoder::Encoder;

/// The coordinates of a vector.
pub(crate) const WIDTH: usize = 384;

/// Names the space of the vectors: those of another model or other weights mean something else.
pub(crate) fn space() -> String {
    let model = pocket_encoder::model_info();
    format!("{} {} {}", model.id, model.revision, model.tokenizer_sha256)
}

/// The unit vector of a sentence; none for a blank one, or when the model fails.
pub(crate) fn embed(sentence: &str) -> Option<Vec<f32>> {
    static ENCODER: OnceLock<Option<Encoder>> = OnceLock::new();
    let load =
        || Encoder::new().inspect_err(|error| tracing::error!(%error, "the sentence model cannot be loaded; search goes by words")).ok();
    let encoder = ENCODER.get_or_init(load).as_ref()?;
    let vector = encoder.embed(&[sentence]).ok()?.pop()?;
    (vector.len() == WIDTH).then_some(vector)
}

/// Runs `work` so that the model's own threads are this one alone: for short sentences, handing parts around costs more than it saves.
pub(crate) fn on_this_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}
