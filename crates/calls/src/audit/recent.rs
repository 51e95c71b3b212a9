//! What a project called of late, for whoever ranks actions by it.

use catalog::Called;
use discovery::RecentCalls;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kernel::{CallRef, ProjectId};
use store::{Db, StoreError, args};

/// How many of a project's newest calls are looked at.
const NEWEST: i64 = 500;

/// The newest calls of each project.
#[derive(Clone, Debug)]
pub struct NewestCalls(Db);

impl NewestCalls {
    pub fn new(db: Db) -> Self {
        Self(db)
    }

    async fn of(&self, project: ProjectId) -> Result<Vec<Called>, StoreError> {
        let sql = "select tool, count(*) as times from (select tool, outcome from tool_calls where project_id = $1 order by id desc limit $2) newest \
                   where outcome = 'ok' and tool is not null group by tool";
        let mut called: Vec<Called> = Vec::new();
        for row in self.0.all(sql, args![project, NEWEST]).await? {
            let (tool, times): (String, i64) = (row.get("tool")?, row.get("times")?);
            let Ok(CallRef::Gateway { provider, integration, action, .. }) = tool.parse() else { continue };
            let times = u32::try_from(times).unwrap_or(u32::MAX);
            let is_same = |known: &&mut Called| known.provider == provider && known.integration == integration && known.action == action;
            match called.iter_mut().find(is_same) {
                Some(known) => known.times = known.times.saturating_add(times),
                None => called.push(Called { provider, integration, action, times }),
            }
        }
        Ok(called)
    }
}

impl RecentCalls for NewestCalls {
    fn succeeded(&self, project: ProjectId) -> BoxFuture<'_, Result<Vec<Called>, StoreError>> {
        self.of(project).boxed()
    }
}
