//! Reading a source waits for somebody else's server; making actions of it is work for this machine, within the project's share.

use kernel::ProjectId;
use work::{LARGE, Limits, Workers};

use crate::ImportError;

/// Does what takes time of this machine: parsing, converting.
pub async fn convert<T: Send + 'static>(
    workers: &Workers,
    project: ProjectId,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, ImportError> {
    workers.within(Limits::DOCUMENT, project, LARGE, move |_| work().map_err(ImportError::Invalid)).await
}
