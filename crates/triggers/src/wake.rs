//! Waking the engines: this node's at once, those of other nodes through the database. Each of them also looks by itself now and then.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::Triggers;

const CHANNEL: &str = "toolyard_deliveries";
/// Others are told so often at most, however much comes in.
const TELL_EVERY: Duration = Duration::from_millis(50);
const AGAIN: Duration = Duration::from_secs(1);

impl Triggers {
    /// There are new deliveries, for whichever node has a free place.
    pub(crate) fn wake_all(&self) {
        self.0.wake.notify_one();
        self.0.news.notify_one();
    }

    pub(crate) async fn run_telling(self, stop: CancellationToken) {
        let tell = async {
            loop {
                self.0.news.notified().await;
                if let Err(error) = self.0.db.tell(CHANNEL, "").await {
                    tracing::debug!(%error, "other nodes could not be told of deliveries; they find them by themselves");
                }
                tokio::time::sleep(TELL_EVERY).await;
            }
        };
        stop.run_until_cancelled(tell).await;
    }

    pub(crate) async fn run_listening(self, stop: CancellationToken) {
        let listen = async {
            loop {
                if let Err(error) = self.0.db.listen(CHANNEL, |_| self.0.wake.notify_one()).await {
                    tracing::debug!(%error, "other nodes are not heard now; their deliveries are found by looking");
                }
                tokio::time::sleep(AGAIN).await;
            }
        };
        stop.run_until_cancelled(listen).await;
    }
}
