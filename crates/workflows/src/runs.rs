//! Run records: what was run, with what, and how it ended.

use std::time::Duration;

use kernel::{ArtifactId, KeyId, ProjectId, RevisionId, RunId, Scope, Timestamp};
use serde_json::Value;
use store::{PageSize, Row, StoreError, args};
use uuid::Uuid;

use crate::{WorkflowError, Workflows};

macro_rules! columns {
    () => {
        "project_id, id, workflow_id, revision_id, key_id, code, message, inputs, outputs, duration_us, created_at"
    };
}

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    pub id: RunId,
    pub project: ProjectId,
    pub workflow: ArtifactId,
    pub revision: RevisionId,
    pub key: KeyId,
    pub code: i64,
    pub message: Option<String>,
    pub inputs: Value,
    pub outputs: Option<Value>,
    pub duration: Duration,
    pub created_at: Timestamp,
}

/// Which runs to list.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    pub workflow: Option<ArtifactId>,
    pub limit: Option<i64>,
    pub cursor: Option<Uuid>,
}

/// One page of runs, newest first.
#[derive(Clone, Debug)]
pub struct RunPage {
    pub runs: Vec<Run>,
    pub cursor: Option<String>,
}

fn read(row: &Row) -> Result<Run, StoreError> {
    let micros: i64 = row.get("duration_us")?;
    Ok(Run {
        id: row.get("id")?,
        project: row.get("project_id")?,
        workflow: row.get("workflow_id")?,
        revision: row.get("revision_id")?,
        key: row.get("key_id")?,
        code: row.get("code")?,
        message: row.get("message")?,
        inputs: row.get("inputs")?,
        outputs: row.get("outputs")?,
        duration: Duration::from_micros(u64::try_from(micros).unwrap_or(0)),
        created_at: row.get("created_at")?,
    })
}

impl Workflows {
    /// Writes a run, once: a caller that goes away may make a second try of it.
    pub(crate) async fn record(&self, run: &Run) -> Result<(), StoreError> {
        let sql = concat!(
            "insert into workflow_runs (",
            columns!(),
            ") values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) on conflict do nothing"
        );
        let micros = i64::try_from(run.duration.as_micros()).unwrap_or(i64::MAX);
        let message = run.message.as_ref().map(|text| text.replace('\0', ""));
        let args = args![
            run.project,
            run.id,
            run.workflow,
            run.revision,
            run.key,
            run.code,
            message,
            &run.inputs,
            run.outputs.as_ref(),
            micros,
            run.created_at
        ];
        self.0.db.execute(sql, args).await.map(|_| ())
    }

    pub async fn runs(&self, scope: Scope, filter: &RunFilter) -> Result<RunPage, WorkflowError> {
        let page = PageSize::asked(filter.limit);
        let sql = concat!(
            "select ",
            columns!(),
            " from workflow_runs where project_id = $1 and ($2 is null or workflow_id = $2) and ($3 is null or id < $3) order by id desc limit $4"
        );
        let rows = self.0.db.all(sql, args![scope.project, filter.workflow, filter.cursor, page.rows()]).await?;
        let mut runs: Vec<Run> = rows.iter().map(read).collect::<Result<_, _>>()?;
        let cursor = page.cut(&mut runs, |last| last.id.to_string());
        Ok(RunPage { runs, cursor })
    }

    pub async fn run(&self, scope: Scope, id: RunId) -> Result<Run, WorkflowError> {
        let sql = concat!("select ", columns!(), " from workflow_runs where project_id = $1 and id = $2");
        let row = self.0.db.optional(sql, args![scope.project, id]).await?.ok_or_else(|| WorkflowError::NotFound("Run".to_owned()))?;
        Ok(read(&row)?)
    }
}
