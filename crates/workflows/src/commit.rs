//! Commits: a new revision from data or from a change, never a change to what was.

use std::sync::Arc;

use ::store::Tx;
use kernel::json::{size, size_of_members};
use kernel::{Budget, CallRef, RevisionId, Scope, VariantId};
use serde_json::{Map, Value, json};
use uuid::Uuid;
use work::{LARGE, SMALL};

use crate::changeset::Operations;
use crate::histories::{check_words, checked, taken};
use crate::{ChangeJudge, Family, Revision, Variant, Words, WorkflowError, Workflows, data, flags, headers, store as rows};

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
    /// Who must agree with the change.
    pub judge: Option<&'static dyn ChangeJudge>,
    /// The name by which the revision can be found; one is made if it is left out.
    pub slug: Option<String>,
    pub words: Words,
    /// What would change nothing makes no revision.
    pub skips_equal: bool,
}

impl NewRevision {
    /// A change by nobody in particular, without words; one that changes nothing is skipped.
    pub fn of(variant: VariantId, change: Change) -> Self {
        Self { variant, change, base: None, message: None, judge: None, slug: None, words: Words::default(), skips_equal: true }
    }

    /// About how many bytes it brings.
    fn size(&self) -> usize {
        match &self.change {
            Change::Nothing => 0,
            Change::Data(data) => size(data, LARGE),
            Change::Delta(delta) => delta.set.as_ref().map_or(0, |set| size_of_members(set, LARGE)),
            Change::Operations(operations) => operations.size(LARGE),
        }
    }

    /// The data of the new revision over that of the newest one, checked, and what its steps call.
    fn apply_to(&self, family: Family, current: Option<&Value>) -> Result<Applied, WorkflowError> {
        let data = match &self.change {
            Change::Nothing if family == Family::Environment => {
                return Err(WorkflowError::BadRequest(
                    "Give `data` or `delta`: an environment's revision says what is deployed.".to_owned(),
                ));
            }
            Change::Nothing if current.is_some() => {
                return Err(WorkflowError::BadRequest("Give `data` or `delta`: this variant has data already.".to_owned()));
            }
            Change::Nothing => return Ok((None, Vec::new())),
            Change::Data(data) => data.clone(),
            Change::Delta(delta) => delta.clone().apply(family, current.cloned())?,
            Change::Operations(operations) => operations.apply(current.cloned().unwrap_or_else(|| json!({})))?,
        };
        if let Some(judge) = self.judge {
            judge.judge(current.unwrap_or(&Value::Null), &data)?;
        }
        data::check(family, &data)?;
        let calls = data::calls(&data);
        Ok((Some(data), calls))
    }
}

/// New data, and what its steps call.
type Applied = (Option<Value>, Vec<CallRef>);

/// A commit, or the finding that nothing would change.
#[derive(Clone, Debug)]
pub struct Committed {
    pub revision: Revision,
    pub changed: bool,
}

/// The place after a variant's newest revision.
#[derive(Debug)]
pub(crate) struct Next<'a> {
    pub(crate) variant: &'a Variant,
    pub(crate) version: i64,
    pub(crate) message: Option<String>,
    pub(crate) slug: Option<String>,
    pub(crate) words: Words,
}

impl Variant {
    /// The place after the highest version there is.
    pub(crate) fn next(&self, highest: Option<i64>) -> Next<'_> {
        Next { variant: self, version: highest.map_or(0, |version| version + 1), message: None, slug: None, words: Words::default() }
    }
}

impl Workflows {
    /// Commits data, or a change to the newest data.
    pub async fn commit(&self, scope: Scope, family: Family, new: NewRevision) -> Result<Committed, WorkflowError> {
        let (variant, artifact) = self.open_variant(scope, family, new.variant).await?;
        let new = Arc::new(new);
        let (mut checked, mut looked_up) = (Vec::new(), None);
        let mut prepared: Option<(Option<RevisionId>, Applied)> = None;
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
            let at = head.as_ref().map(|head| head.id);
            let (data, calls) = if let Some((_, applied)) = prepared.take().filter(|(over, _)| *over == at) {
                applied
            } else {
                let current = head.as_ref().and_then(|head| head.data.clone());
                let size = new.size().saturating_add(current.as_ref().map_or(0, |current| size(current, LARGE)));
                if size > SMALL {
                    // Not under the lock of the rows, which on SQLite everybody's writes wait for.
                    drop(tx);
                    let new = new.clone();
                    let work = move |_: &Budget| new.apply_to(family, current.as_ref());
                    prepared = Some((at, self.0.workers.run(scope.project, size, work).await?));
                    continue;
                }
                new.apply_to(family, current.as_ref())?
            };
            if let Some(head) = head.filter(|head| new.skips_equal && data.is_some() && head.data == data) {
                return Ok(Committed { revision: head, changed: false });
            }
            let agent = |data: &Value| data::is_own_agent(data).then(|| data.clone());
            let posts = data.as_ref().and_then(|data| headers::naming_secrets(data).or_else(|| agent(data)));
            if calls != checked || posts != looked_up {
                // Not under the lock of the rows: looking up what steps call may take a service's time.
                drop(tx);
                self.check_calls(scope, &artifact.slug, &calls).await?;
                if let Some(data) = &data {
                    self.check_secrets(scope, data).await?;
                    self.check_agent(scope, data).await?;
                }
                looked_up = posts;
                checked.clone_from(&calls);
                prepared = Some((at, (data, calls)));
                continue;
            }
            let next = Next { message: new.message.clone(), slug: new.slug.clone(), words: new.words.clone(), ..variant.next(highest) };
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
        let Next { variant, version, message, slug, words } = next;
        let digests = check_words(&words)?;
        let slug = match slug {
            Some(slug) => checked(&slug)?.to_string(),
            None => free_slug(tx, family, variant, version).await?,
        };
        let now = self.0.clock.now();
        let traits = data.as_ref().filter(|_| family != Family::Environment).map(flags::traits);
        let revision = Revision {
            id: RevisionId::new(),
            project: scope.project,
            artifact: variant.artifact,
            artifact_slug: variant.artifact_slug.clone(),
            variant: variant.id,
            variant_slug: variant.slug.clone(),
            slug,
            version,
            name: words.name,
            description: words.description,
            tags: words.tags,
            meta: words.meta,
            roles: variant.roles,
            traits,
            data,
            message,
            created_at: now,
            updated_at: now,
            archived_at: None,
            created_by: Some(scope.author()),
            updated_by: None,
            archived_by: None,
        };
        let made = rows::insert_revision(tx, family, &revision, digests.as_deref()).await;
        made.map_err(|error| taken(error, family, " revision", &revision.slug))?;
        Ok(revision)
    }
}

/// The slug of a revision that is given none: the variant's with the version, or more where somebody has that.
async fn free_slug(tx: &mut Tx, family: Family, variant: &Variant, version: i64) -> Result<String, WorkflowError> {
    let usual = format!("{}-{version}", variant.slug);
    if rows::is_slug_taken(tx, variant.project, family, &usual).await? {
        return Ok(format!("{usual}-{}", &Uuid::new_v4().simple().to_string()[..8]));
    }
    Ok(usual)
}

impl Delta {
    /// The data with the change made.
    pub fn apply(self, family: Family, data: Option<Value>) -> Result<Value, WorkflowError> {
        match family {
            Family::Environment => self.deploy_into(data.unwrap_or_else(|| json!({"references": {}}))),
            Family::Workflow | Family::Application | Family::Evaluator => self.merge_into(data.unwrap_or_else(|| json!({}))),
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
