//! How long renewals of credentials took, for whoever wants to know. It is kept with the task that waits for them.

use std::cell::Cell;
use std::time::{Duration, Instant};

tokio::task_local! {
    static RENEWING: Cell<Duration>;
}

/// Does the work, and says how long it waited for credentials to be renewed.
pub async fn renewing<F: Future>(work: F) -> (F::Output, Duration) {
    RENEWING.scope(Cell::default(), async { (work.await, RENEWING.with(Cell::get)) }).await
}

/// Waits for a renewal, and notes how long that took for whoever asked.
pub(crate) async fn noted<F: Future>(renewal: F) -> F::Output {
    let started = Instant::now();
    let renewed = renewal.await;
    // Nobody asked where this is no work of `renewing`.
    let _ = RENEWING.try_with(|waited| waited.set(waited.get() + started.elapsed()));
    renewed
}
