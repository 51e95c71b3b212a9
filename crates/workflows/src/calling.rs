//! Which workflows call something, as their newest revisions say.

use kernel::{ArtifactId, CallRef, ProjectId};
use serde::Deserialize;
use store::{Row, StoreError, args, holding};

use crate::{Family, Workflows};

/// How many workflows are looked at with one query.
const AT_ONCE: i64 = 200;

/// A workflow whose steps call something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallingWorkflow {
    pub id: ArtifactId,
    pub slug: String,
    pub name: Option<String>,
}

/// What a revision says of its steps; the rest of it is passed over.
#[derive(Default, Deserialize)]
struct Called {
    #[serde(default)]
    steps: Vec<CalledStep>,
}

#[derive(Deserialize)]
struct CalledStep {
    call: String,
}

impl Workflows {
    /// The workflows whose newest revision has a step that fits. Every ref that fits holds `text`, so that the database finds the few that
    /// are worth reading. What is embedded is known only when it runs.
    pub async fn calling(
        &self,
        project: ProjectId,
        text: &str,
        fits: impl Fn(&CallRef) -> bool + Sync,
    ) -> Result<Vec<CallingWorkflow>, StoreError> {
        // By `revisions_artifact`, the newest of each; texts are compared only where they lie.
        let sql = "select a.id, a.slug, a.name, r.id as revision_id from artifacts a join revisions r on r.project_id = a.project_id \
                   and r.id = (select n.id from revisions n where n.project_id = a.project_id and n.artifact_id = a.id \
                   and n.archived_at is null order by n.id desc limit 1) \
                   where a.project_id = $1 and a.family = $2 and a.archived_at is null and ($3 is null or a.id > $3) \
                   and lower(r.data) like $4 escape '\\' order by a.id limit $5";
        let (family, pattern) = (Family::Workflow.kept_as(), holding(text));
        let (mut found, mut after) = (Vec::new(), None::<ArtifactId>);
        loop {
            let rows = self.0.db.all(sql, args![project, family, after, pattern.as_str(), AT_ONCE]).await?;
            for row in &rows {
                if self.calls(project, row).await?.iter().any(&fits) {
                    found.push(CallingWorkflow { id: row.get("id")?, slug: row.get("slug")?, name: row.get("name")? });
                }
            }
            match rows.last() {
                Some(last) if rows.len() == usize::try_from(AT_ONCE).unwrap_or(usize::MAX) => after = Some(last.get("id")?),
                _ => return Ok(found),
            }
        }
    }

    /// What the steps of a revision call; one revision at a time, because each may be large.
    async fn calls(&self, project: ProjectId, row: &Row) -> Result<Vec<CallRef>, StoreError> {
        let sql = "select data from revisions where project_id = $1 and id = $2";
        let Some(row) = self.0.db.optional(sql, args![project, row.get::<uuid::Uuid>("revision_id")?]).await? else {
            return Ok(Vec::new());
        };
        let data: String = row.get::<Option<String>>("data")?.unwrap_or_default();
        Ok(work::in_place(data.len(), || called(&data)))
    }
}

fn called(data: &str) -> Vec<CallRef> {
    let called: Called = serde_json::from_str(data).unwrap_or_default();
    called.steps.iter().filter_map(|step| step.call.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_and_everything_else_is_passed_over() {
        let data = r#"{"kind": "steps", "steps": [{"name": "a", "call": "tools.native.fake.GET.main", "arguments": {"x": [1]}},
            {"name": "b", "call": "workflow.variant.echo"}], "result": "{{ steps.a }}"}"#;
        let refs: Vec<String> = called(data).iter().map(ToString::to_string).collect();
        assert_eq!(refs, ["tools.native.fake.GET.main", "workflow.variant.echo"]);
        for none in ["", "null", r#"{"kind": "echo"}"#, r#"{"steps": {"@embed": "x"}}"#, r#"{"steps": [{"call": 1}]}"#] {
            assert!(called(none).is_empty(), "{none}");
        }
    }
}
