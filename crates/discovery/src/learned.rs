//! What a project learned: use cases that led to a call that succeeded, and what it calls. Both rank an action higher the next time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use catalog::{Examples, Learned};
use kernel::{ProjectId, Scope, Timestamp, UseCaseId};
use store::{PageSize, Row, StoreError, args, page_sql};

use crate::offers::ActionName;
use crate::{Discovery, DiscoveryError};

/// How many use cases a project keeps; the one that was not used the longest goes first.
const MOST: i64 = 500;
/// How long a node may go on with what it read before.
const REMEMBERED: Duration = Duration::from_secs(2);
const MAX_PROJECTS: usize = 1_000;

/// A use case that led to a call.
#[derive(Clone, Debug)]
pub struct LearnedUseCase {
    pub id: UseCaseId,
    pub use_case: String,
    pub provider: String,
    pub integration: String,
    pub action: String,
    pub uses: i64,
    pub created_at: Timestamp,
    pub used_at: Timestamp,
}

impl LearnedUseCase {
    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            use_case: row.get("use_case")?,
            provider: row.get("provider_key")?,
            integration: row.get("integration_key")?,
            action: row.get("action_key")?,
            uses: row.get("uses")?,
            created_at: row.get("created_at")?,
            used_at: row.get("used_at")?,
        })
    }
}

/// One page of learned use cases, newest first.
#[derive(Clone, Debug)]
pub struct LearnedPage {
    pub learns: bool,
    pub use_cases: Vec<LearnedUseCase>,
    pub cursor: Option<UseCaseId>,
}

/// What projects that searched a moment ago have learned.
#[derive(Debug, Default)]
pub(crate) struct LearnedCache(Mutex<HashMap<ProjectId, (Instant, Arc<Examples>)>>);

impl LearnedCache {
    fn recent(&self, project: ProjectId) -> Option<Arc<Examples>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&project).filter(|(since, _)| since.elapsed() < REMEMBERED).map(|(_, examples)| examples.clone())
    }

    fn remember(&self, project: ProjectId, examples: Arc<Examples>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_PROJECTS {
            known.retain(|_, (since, _)| since.elapsed() < REMEMBERED);
        }
        known.insert(project, (Instant::now(), examples));
    }

    fn forget(&self, project: ProjectId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&project);
    }
}

impl Discovery {
    /// What the project learned, as an index to search beside the catalog.
    pub(crate) async fn examples(&self, project: ProjectId) -> Result<Arc<Examples>, StoreError> {
        if let Some(examples) = self.0.learned.recent(project) {
            return Ok(examples);
        }
        if !self.learns(project).await? {
            let nothing = Arc::new(self.0.catalog.examples(project, &[], &[]));
            self.0.learned.remember(project, nothing.clone());
            return Ok(nothing);
        }
        let sql = "select use_case, provider_key, integration_key, action_key from learned_use_cases where project_id = $1 order by id";
        let rows = self.0.db.all(sql, args![project]).await?;
        let learned = rows.iter().map(|row| {
            Ok(Learned {
                use_case: row.get("use_case")?,
                provider: row.get("provider_key")?,
                integration: row.get("integration_key")?,
                action: row.get("action_key")?,
            })
        });
        let learned = learned.collect::<Result<Vec<_>, StoreError>>()?;
        let called = self.0.recent_calls.succeeded(project).await?;
        let examples = Arc::new(self.0.catalog.examples(project, &learned, &called));
        self.0.learned.remember(project, examples.clone());
        Ok(examples)
    }

    /// Learns from a call that succeeded, if a use case led to it. The caller does not wait for it.
    pub fn learn(&self, scope: Scope, called: ActionName) {
        let Some(use_case) = self.0.offers.take(scope, &called) else { return };
        let discovery = self.clone();
        self.0.tasks.spawn(async move {
            if let Err(error) = discovery.keep(scope, &use_case, &called).await {
                tracing::warn!(%error, "a use case could not be remembered");
            }
        });
    }

    async fn keep(&self, scope: Scope, use_case: &str, called: &ActionName) -> Result<(), StoreError> {
        let mut tx = self.0.db.begin().await?;
        let sql = "insert into learned_use_cases (project_id, id, use_case, provider_key, integration_key, action_key, uses, created_at, used_at) \
                   select $1, $2, $3, $4, $5, $6, 1, $7, $7 \
                   where not exists (select 1 from discovery_settings where project_id = $1 and not learns) \
                   on conflict (project_id, use_case, provider_key, integration_key, action_key) \
                   do update set uses = learned_use_cases.uses + 1, used_at = excluded.used_at";
        let ActionName { provider, integration, action } = called;
        let now = self.0.clock.now();
        tx.execute(sql, args![scope.project, UseCaseId::new(), use_case, provider.as_str(), integration.as_str(), action.as_str(), now])
            .await?;
        let sql = "delete from learned_use_cases where project_id = $1 and id in \
                   (select id from learned_use_cases where project_id = $1 order by used_at desc, id desc limit 1000000 offset $2)";
        tx.execute(sql, args![scope.project, MOST]).await?;
        tx.commit().await?;
        self.0.learned.forget(scope.project);
        Ok(())
    }

    /// What the project learned, newest first.
    #[kernel::boxed]
    pub async fn learned(&self, scope: Scope, limit: Option<i64>, cursor: Option<UseCaseId>) -> Result<LearnedPage, DiscoveryError> {
        let page = PageSize::asked(limit);
        let sql = page_sql!(
            select "id, use_case, provider_key, integration_key, action_key, uses, created_at, used_at",
            bytes "octet_length(use_case)",
            from "learned_use_cases",
            where "project_id = $1 and ($2 is null or id < $2)",
            by id "desc",
            limit "$3"
        );
        let rows = self.0.db.all(sql, args![scope.project, cursor, page.rows()]).await?;
        let page = page.read(&rows, LearnedUseCase::read)?;
        let cursor = page.cursor(|last| last.id);
        Ok(LearnedPage { learns: self.learns(scope.project).await?, use_cases: page.rows, cursor })
    }

    async fn learns(&self, project: ProjectId) -> Result<bool, StoreError> {
        let row = self.0.db.optional("select learns from discovery_settings where project_id = $1", args![project]).await?;
        row.map_or(Ok(true), |row| row.get("learns"))
    }

    /// Switches learning on or off. What was learned stays, and is not looked at while it is off.
    #[kernel::boxed]
    pub async fn set_learns(&self, scope: Scope, learns: bool) -> Result<(), DiscoveryError> {
        let sql = "insert into discovery_settings (project_id, learns, updated_at, updated_by_id) values ($1, $2, $3, $4) \
                   on conflict (project_id) do update set learns = excluded.learns, updated_at = excluded.updated_at, updated_by_id = excluded.updated_by_id";
        self.0.db.execute(sql, args![scope.project, learns, self.0.clock.now(), scope.author()]).await?;
        self.0.learned.forget(scope.project);
        Ok(())
    }

    /// Forgets one use case, or all of them; how many there were.
    #[kernel::boxed]
    pub async fn forget_learned(&self, scope: Scope, id: Option<UseCaseId>) -> Result<u64, DiscoveryError> {
        let sql = "delete from learned_use_cases where project_id = $1 and ($2 is null or id = $2)";
        let forgotten = self.0.db.execute(sql, args![scope.project, id]).await?;
        self.0.learned.forget(scope.project);
        if id.is_some() && forgotten == 0 { Err(DiscoveryError::UseCaseNotFound) } else { Ok(forgotten) }
    }
}
