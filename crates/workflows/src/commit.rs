//! Commits: a new revision from data or from a change, never a change to what was.

use kernel::{RevisionId, Scope, VariantId};
use serde_json::{Map, Value, json};
use store::Tx;
use uuid::Uuid;

use crate::changeset::{Operations, scope};
use crate::{Family, Revision, Variant, WorkflowError, Workflows, data, store as rows};

/// A change to the newest data.
#[derive(Clone, Debug, Default)]
pub struct Delta {
    /// Merged into a workflow's data: objects merge, everything else replaces. In an environment each key is a whole deployment.
    pub set: Option<Map<String, Value>>,
    /// What goes: dotted paths of a workflow's data, keys of an environment's deployments.
    pub remove: Option<Vec<String>>,
}

/// What a commit does to the data.
#[derive(Clone, Debug)]
pub enum Change {
    /// A revision without data, as the first one may be.
    Nothing,
    Data(Value),
    Delta(Delta),
    Operations(Operations),
}

impl Change {
    /// From a request's two ways to say it; both at once is one too many.
    pub fn read(data: Option<Value>, delta: Option<Delta>) -> Result<Self, WorkflowError> {
        match (data, delta) {
            (Some(_), Some(_)) => Err(WorkflowError::BadRequest("Give `data` or `delta`, not both.".to_owned())),
            (Some(data), None) => Ok(Self::Data(data)),
            (None, Some(delta)) => Ok(Self::Delta(delta)),
            (None, None) => Ok(Self::Nothing),
        }
    }
}

/// What a new revision shall be.
#[derive(Clone, Debug)]
pub struct NewRevision {
    pub variant: VariantId,
    pub change: Change,
    /// The revision that the author saw last; a newer one is a conflict.
    pub base: Option<Uuid>,
    pub message: Option<String>,
    /// Whether an agent changes its own configuration; not all of it is its to change.
    pub is_own: bool,
}

impl NewRevision {
    /// The data of the new revision over that of the newest one, checked.
    fn apply_to(&self, family: Family, current: Option<&Value>) -> Result<Option<Value>, WorkflowError> {
        let data = match &self.change {
            Change::Nothing if current.is_some() => {
                return Err(WorkflowError::BadRequest("Give `data` or `delta`: this variant has data already.".to_owned()));
            }
            Change::Nothing => return Ok(None),
            Change::Data(data) => data.clone(),
            Change::Delta(delta) => delta.clone().apply(family, current.cloned())?,
            Change::Operations(operations) => operations.apply(current.cloned().unwrap_or_else(|| json!({})))?,
        };
        if self.is_own {
            scope::check(current.unwrap_or(&Value::Null), &data)?;
        }
        data::check(family, &data)?;
        Ok(Some(data))
    }
}

/// A commit, or the finding that nothing would change.
#[derive(Clone, Debug)]
pub struct Committed {
    pub revision: Revision,
    pub changed: bool,
}

/// The place after a variant's newest revision.
#[derive(Debug)]
pub(crate) struct Next<'a> {
    variant: &'a Variant,
    version: i64,
    message: Option<String>,
}

impl Variant {
    /// The place after the highest version there is.
    pub(crate) fn next(&self, highest: Option<i64>) -> Next<'_> {
        Next { variant: self, version: highest.map_or(0, |version| version + 1), message: None }
    }
}

impl Next<'_> {
    pub(crate) fn message(self, message: Option<String>) -> Self {
        Self { message, ..self }
    }
}

impl Workflows {
    /// Commits data, or a change to the newest data. What would change nothing makes no revision.
    pub async fn commit(&self, scope: Scope, family: Family, new: NewRevision) -> Result<Committed, WorkflowError> {
        let variant = self.variant(scope, family, new.variant).await?;
        let artifact = self.artifact(scope, family, variant.artifact).await?;
        if variant.archived_at.is_some() || artifact.archived_at.is_some() {
            return Err(WorkflowError::BadRequest(format!("'{}' is archived. Unarchive it before committing to it.", artifact.slug)));
        }
        let mut checked = Vec::new();
        loop {
            let mut tx = self.0.db.begin().await?;
            let rows::Head { revision: head, version: highest, is_guarded } =
                rows::head_for_commit(&mut tx, &variant, self.0.clock.now()).await?;
            if is_guarded {
                return Err(WorkflowError::Guarded(artifact.slug));
            }
            if let Some(base) = new.base
                && head.as_ref().is_none_or(|head| head.id.uuid() != base)
            {
                return Err(WorkflowError::Moved { head: head.map_or_else(|| "none".to_owned(), |head| head.id.to_string()) });
            }
            let data = new.apply_to(family, head.as_ref().and_then(|head| head.data.as_ref()))?;
            if let Some(head) = head.filter(|head| data.is_some() && head.data == data) {
                return Ok(Committed { revision: head, changed: false });
            }
            let calls = data.as_ref().map(data::calls).unwrap_or_default();
            if calls != checked {
                // Not under the lock of the rows: looking up what steps call may take a service's time.
                drop(tx);
                self.check_calls(scope, &artifact.slug, &calls).await?;
                checked = calls;
                continue;
            }
            let next = variant.next(highest).message(new.message);
            let revision = self.insert_revision(&mut tx, scope, family, next, data).await?;
            tx.commit().await?;
            return Ok(Committed { revision, changed: true });
        }
    }

    pub(crate) async fn insert_revision(
        &self,
        tx: &mut Tx,
        scope: Scope,
        family: Family,
        next: Next<'_>,
        data: Option<Value>,
    ) -> Result<Revision, WorkflowError> {
        let Next { variant, version, message } = next;
        let revision = Revision {
            id: RevisionId::new(),
            project: scope.project,
            artifact: variant.artifact,
            variant: variant.id,
            slug: format!("{}-{version}", variant.slug),
            version,
            data,
            message,
            created_at: self.0.clock.now(),
            archived_at: None,
            created_by: Some(scope.author()),
        };
        rows::insert_revision(tx, family, &revision).await?;
        Ok(revision)
    }
}

impl Delta {
    /// The data with the change made.
    pub fn apply(self, family: Family, data: Option<Value>) -> Result<Value, WorkflowError> {
        match family {
            Family::Workflow => self.merge_into(data.unwrap_or_else(|| json!({}))),
            Family::Environment => self.deploy_into(data.unwrap_or_else(|| json!({"references": {}}))),
        }
    }

    fn merge_into(self, mut data: Value) -> Result<Value, WorkflowError> {
        if let Some(set) = self.set {
            merge(&mut data, Value::Object(set));
        }
        for path in self.remove.unwrap_or_default() {
            if !remove(&mut data, &path) {
                return Err(WorkflowError::Invalid(format!("`{path}` cannot be removed: it is not there")));
            }
        }
        Ok(data)
    }

    fn deploy_into(self, mut data: Value) -> Result<Value, WorkflowError> {
        let Some(deployments) = data.get_mut("references").and_then(Value::as_object_mut) else {
            return Err(WorkflowError::Invalid("the environment's data has no `references`".to_owned()));
        };
        deployments.extend(self.set.unwrap_or_default());
        for key in self.remove.unwrap_or_default() {
            if deployments.shift_remove(&key).is_none() {
                return Err(WorkflowError::Invalid(format!("`{key}` cannot be removed: it is not deployed")));
            }
        }
        Ok(data)
    }
}

fn merge(target: &mut Value, change: Value) {
    match (target, change) {
        (Value::Object(target), Value::Object(change)) => {
            for (name, value) in change {
                merge(target.entry(name).or_insert(Value::Null), value);
            }
        }
        (target, change) => *target = change,
    }
}

/// Removes what a dotted path names; a key that holds dots itself is found first.
fn remove(target: &mut Value, path: &str) -> bool {
    let Value::Object(fields) = target else { return false };
    if fields.shift_remove(path).is_some() {
        return true;
    }
    path.match_indices('.').any(|(dot, _)| fields.get_mut(&path[..dot]).is_some_and(|inner| remove(inner, &path[dot + 1..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(set: Value, remove: &[&str]) -> Delta {
        Delta { set: set.as_object().cloned(), remove: Some(remove.iter().map(ToString::to_string).collect()) }
    }

    #[test]
    fn a_workflow_merges_what_is_set_and_loses_what_is_removed() {
        let data = json!({"a.b": 1, "parameters": {"model": "a", "old": {"deep": 1, "kept": 2}, "list": [1, 2]}});
        let change = delta(json!({"parameters": {"model": "b", "new": {"x": 1}, "list": [3]}}), &["parameters.old.deep", "a.b"]);
        let expected = json!({"parameters": {"model": "b", "old": {"kept": 2}, "list": [3], "new": {"x": 1}}});
        assert_eq!(change.apply(Family::Workflow, Some(data)).unwrap(), expected);
        assert!(delta(json!({}), &["nope"]).apply(Family::Workflow, None).is_err());
    }

    #[test]
    fn an_environment_replaces_whole_deployments_and_removed_ones_stay_removed() {
        let set = |key: &str, slug: &str| json!({key: {"workflow": {"slug": slug}}});
        let one = delta(set("a.revision", "a"), &[]).apply(Family::Environment, None).unwrap();
        let none = delta(json!({}), &["a.revision"]).apply(Family::Environment, Some(one)).unwrap();
        assert_eq!(none, json!({"references": {}}));
        let other = delta(set("b.revision", "b"), &[]).apply(Family::Environment, Some(none)).unwrap();
        assert_eq!(other, json!({"references": {"b.revision": {"workflow": {"slug": "b"}}}}));
        assert!(delta(json!({}), &["c.revision"]).apply(Family::Environment, Some(other)).is_err());
    }
}
