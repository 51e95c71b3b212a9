//! Reading what servers send: small messages where they arrive, large ones on the threads of `work`, within the share of their project.

use kernel::json::{Unread, parse};
use kernel::{Budget, ProjectId};
use serde_json::Value;
use work::Workers;

use crate::fault::ServerError;

/// Reads for one project.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    workers: Workers,
    project: ProjectId,
}

impl Reader {
    pub(crate) fn new(workers: Workers, project: ProjectId) -> Self {
        Self { workers, project }
    }

    /// The value of a message, which the budget must have room for.
    pub(crate) async fn parse(&self, text: impl AsRef<[u8]> + Send + 'static) -> Result<Value, ServerError> {
        let size = text.as_ref().len();
        self.work(size, move |budget| {
            parse(text.as_ref(), budget).map_err(|error| match error {
                Unread::Json(error) => ServerError::Unreadable(error.to_string()),
                Unread::Exceeded(exceeded) => ServerError::TooMuch(exceeded.into()),
            })
        })
        .await
    }

    /// Does something with a message of about this size.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnOnce(&Budget) -> Result<T, ServerError> + Send + 'static,
    ) -> Result<T, ServerError> {
        self.workers.run(self.project, size, work).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_message_of_too_many_values_is_told_from_one_that_is_none() {
        let reader = Reader::new(Workers::default(), ProjectId::new());
        assert_eq!(reader.parse("{\"id\": 1}").await.unwrap()["id"], 1);
        assert!(matches!(reader.parse("hello").await, Err(ServerError::Unreadable(_))));
        let many = format!("[{}0]", "0,".repeat(2_000_000));
        assert!(matches!(reader.parse(many).await, Err(ServerError::TooMuch(_))));
        let long = format!("[\"{}\"]", "0".repeat(4_000_000));
        assert!(reader.parse(long).await.is_ok());
    }
}
