//! How long requests waited for their rate limits, for whoever wants to know. It is kept with the task, so that nothing between the asker
//! and the client has to hand it through.

use std::cell::Cell;
use std::time::Duration;

tokio::task_local! {
    static WAITED: Cell<Duration>;
}

/// Does the work, and says how long its requests waited for rate limits. What it has others do in tasks of their own is not known.
pub async fn queued<F: Future>(work: F) -> (F::Output, Duration) {
    WAITED.scope(Cell::default(), async { (work.await, WAITED.with(Cell::get)) }).await
}

/// Notes a wait for whoever asked.
pub(crate) fn note(wait: Duration) {
    // Nobody asked where this is no work of `queued`.
    let _ = WAITED.try_with(|waited| waited.set(waited.get() + wait));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waits_add_up_for_whoever_asked() {
        let second = Duration::from_secs(1);
        note(second);
        let work = async {
            note(second);
            tokio::task::yield_now().await;
            note(second);
            7
        };
        assert_eq!(queued(work).await, (7, second * 2));
        assert_eq!(queued(async {}).await.1, Duration::ZERO);
    }
}
