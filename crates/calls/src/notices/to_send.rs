//! Who is still to be told of which approval: rows that are made with their approvals, so that no stop loses one. Whoever works on a row has
//! it until a time; one that nobody has any more is taken up by whichever node looks first. A receiver may so be told twice, with the same id.

use std::time::Duration;

use futures_util::future::join_all;
use kernel::{ApprovalId, NoticeId, ProjectId, Timestamp};
use store::{Db, Row, StoreError, Tx, args};

use crate::Calls;

/// Longer than all tries of one notice take.
const TAKEN_FOR: Duration = Duration::from_mins(1);
/// How often is looked for what others left.
const LOOK: Duration = Duration::from_secs(15);
/// How many are taken up in one go.
const BATCH: i64 = 50;

/// One thing to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToSend {
    pub(super) project: ProjectId,
    pub(super) approval: ApprovalId,
    pub(super) notice: NoticeId,
}

impl ToSend {
    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self { project: row.get("project_id")?, approval: row.get("approval_id")?, notice: row.get("notice_id")? })
    }
}

/// Writes down, with an approval, who is to be told of it. They are taken by this process already.
pub(crate) async fn write(tx: &mut Tx, project: ProjectId, approval: ApprovalId, now: Timestamp) -> Result<(), StoreError> {
    let sql = "insert into notices_to_send (project_id, approval_id, notice_id, taken_until) \
               select project_id, $2, id, $3 from approval_notices where project_id = $1";
    tx.execute(sql, args![project, approval, now.plus(TAKEN_FOR)]).await?;
    Ok(())
}

impl Calls {
    /// Tells what stopped servers left untold, from now on.
    pub(crate) async fn start_telling(&self) -> Result<(), StoreError> {
        if let Db::Sqlite(_) = &self.0.db {
            // A SQLite file has one server, so nobody else works on what is there.
            self.0.db.execute("update notices_to_send set taken_until = 0", args![]).await?;
        }
        let (calls, stop) = (self.clone(), self.0.stop.clone());
        let telling = async move {
            loop {
                if let Err(error) = calls.tell_what_is_left().await {
                    tracing::warn!(%error, "notices that are left to send could not be looked for");
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        self.0.tasks.spawn(async move { stop.run_until_cancelled(telling).await });
        Ok(())
    }

    /// Takes up what nobody works on; how much that was.
    #[kernel::boxed]
    pub async fn tell_what_is_left(&self) -> Result<usize, StoreError> {
        let mut told = 0;
        loop {
            let sql = "select project_id, approval_id, notice_id, taken_until from notices_to_send where taken_until <= $1 \
                       order by taken_until limit $2";
            let rows = self.0.db.all(sql, args![self.0.clock.now(), BATCH]).await?;
            let mut taken = Vec::new();
            for row in &rows {
                let one = ToSend::read(row)?;
                if self.take_free(one, row.get("taken_until")?).await? {
                    taken.push(one);
                }
            }
            told += taken.len();
            join_all(taken.into_iter().map(|one| self.tell(one))).await;
            if rows.is_empty() {
                return Ok(told);
            }
        }
    }

    /// Takes what nobody works on; not where another node was faster.
    async fn take_free(&self, one: ToSend, seen: Timestamp) -> Result<bool, StoreError> {
        let sql = "update notices_to_send set taken_until = $4 where project_id = $1 and approval_id = $2 and notice_id = $3 and taken_until = $5";
        let until = self.0.clock.now().plus(TAKEN_FOR);
        Ok(self.0.db.execute(sql, args![one.project, one.approval, one.notice, until, seen]).await? > 0)
    }

    /// The rest of what one approval has to be told to.
    pub(super) async fn left_of(&self, project: ProjectId, approval: ApprovalId) -> Result<Vec<ToSend>, StoreError> {
        let sql = "select project_id, approval_id, notice_id from notices_to_send where project_id = $1 and approval_id = $2";
        self.0.db.all(sql, args![project, approval]).await?.iter().map(ToSend::read).collect()
    }

    /// Holds on to it once its turn has come; not where it is done.
    pub(super) async fn keep_taken(&self, one: ToSend) -> Result<bool, StoreError> {
        let sql = "update notices_to_send set taken_until = $4 where project_id = $1 and approval_id = $2 and notice_id = $3";
        let until = self.0.clock.now().plus(TAKEN_FOR);
        Ok(self.0.db.execute(sql, args![one.project, one.approval, one.notice, until]).await? > 0)
    }

    pub(super) async fn settle_notice(&self, one: ToSend) -> Result<(), StoreError> {
        let sql = "delete from notices_to_send where project_id = $1 and approval_id = $2 and notice_id = $3";
        self.0.db.execute(sql, args![one.project, one.approval, one.notice]).await?;
        Ok(())
    }
}
