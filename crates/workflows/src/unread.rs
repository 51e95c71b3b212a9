//! Rows of versions before this one say nothing yet that queries could filter by; it is read out of their JSON once.

use store::{Many, row};

use crate::{WorkflowError, Workflows, flags, store as rows, tags};

const AT_ONCE: i64 = 200;

impl Workflows {
    /// Reads what rows of earlier versions say: the digests of their tags, and what revisions are. How many there were.
    #[kernel::boxed]
    pub async fn read_old_rows(&self) -> Result<usize, WorkflowError> {
        let mut read = 0;
        loop {
            let artifacts = rows::unread_artifacts(&self.0.db, AT_ONCE).await?;
            let revisions = rows::unread_revisions(&self.0.db, AT_ONCE).await?;
            if artifacts.is_empty() && revisions.is_empty() {
                return Ok(read);
            }
            read += artifacts.len() + revisions.len();
            if !artifacts.is_empty() {
                let found =
                    artifacts.iter().map(|(project, id, tags)| row! { project_id: *project, id: *id, digests: tags::digests(tags) });
                let sql =
                    "update artifacts set tag_digests = v.digests from v where artifacts.project_id = v.project_id and artifacts.id = v.id";
                self.0.db.write_many(Many::with(found, sql)).await?;
            }
            if !revisions.is_empty() {
                let found = revisions.iter().map(|(project, id, data)| row! { project_id: *project, id: *id, traits: flags::traits(data) });
                let sql = "update revisions set traits = v.traits from v where revisions.project_id = v.project_id and revisions.id = v.id";
                self.0.db.write_many(Many::with(found, sql)).await?;
            }
        }
    }
}
