//! Commits: a new revision from data or from a change, never a change to what was.

use std::sync::Arc;

use ::store::Tx;
use kernel::json::{size, size_of_members};
use kernel::{Budget, CallRef, RevisionId, Scope, VariantId};
use serde_json::{Map, Value, json};
use uuid::Uuid;
use work::LARGE;

use crate::changeset::Operations;
use crate::histories::{check_words, checked, taken};
use crate::{ChangeJudge, Family, Revision, Variant, Words, WorkflowError, Workflows, data, flags, store as rows};

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

    /// The data of the new revision over that of the newest one, checked.
    fn apply_to(&self, family: Family, current: Option<&Value>) -> Result<Option<RevisionData>, WorkflowError> {
        let data = match &self.change {
            Change::Nothing if family == Family::Environment => {
                return Err(WorkflowError::BadRequest(
                    "Give `data` or `delta`: an environment's revision says what is deployed.".to_owned(),
                ));
            }
            Change::Nothing if current.is_some() => {
                return Err(WorkflowError::BadRequest("Give `data` or `delta`: this variant has data already.".to_owned()));
            }
            Change::Nothing => return Ok(None),
            Change::Data(data) => data.clone(),
            Change::Delta(delta) => delta.clone().apply(family, current.cloned())?,
            Change::Operations(operations) => operations.apply(current.cloned().unwrap_or_else(|| json!({})))?,
        };
        if let Some(judge) = self.judge {
            judge.judge(current.unwrap_or(&Value::Null), &data)?;
        }
        data::check(family, &data)?;
        let is_same = self.skips_equal && current == Some(&data);
        Ok(Some(RevisionData { calls: data::calls(&data), is_same, ..data.into() }))
    }
}

/// The data of a new revision with what is made of it before any row is held: its text, and what its steps call.
#[derive(Debug)]
pub(crate) struct RevisionData {
    value: Value,
    text: String,
    calls: Vec<CallRef>,
    /// Whether the newest revision has the same, and another one is not wanted.
    is_same: bool,
}

impl From<Value> for RevisionData {
    fn from(value: Value) -> Self {
        Self { text: value.to_string(), value, calls: Vec::new(), is_same: false }
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
    #[kernel::boxed]
    pub async fn commit(&self, scope: Scope, family: Family, new: NewRevision) -> Result<Committed, WorkflowError> {
        let (variant, artifact) = self.open_variant(scope, family, new.variant).await?;
        let may_commit = |is_guarded: bool, newest: Option<RevisionId>| {
            if is_guarded {
                return Err(WorkflowError::Guarded(artifact.slug.clone()));
            }
            match new.base {
                Some(base) if newest.is_none_or(|newest| newest.uuid() != base) => {
                    Err(WorkflowError::Moved { head: newest.map_or_else(|| "none".to_owned(), |newest| newest.to_string()) })
                }
                _ => Ok(()),
            }
        };
        let next =
            |version| Next { message: new.message.clone(), slug: new.slug.clone(), words: new.words.clone(), ..variant.next(version) };
        let change = Arc::new(new.clone());
        loop {
            // Everything that takes time is done before the rows are held, which on SQLite everybody's writes wait for.
            let newest = rows::newest_revision(&self.0.db, &variant).await?;
            let over = newest.as_ref().map(|newest| newest.id);
            may_commit(artifact.is_guarded, over)?;
            let (data, newest) = self.prepare_commit(scope, family, &artifact.slug, change.clone(), newest).await?;
            if let Some(revision) = newest.filter(|_| data.as_ref().is_some_and(|data| data.is_same)) {
                return Ok(Committed { revision, changed: false });
            }
            let mut tx = self.0.db.begin().await?;
            let head = rows::head_for_commit(&mut tx, &variant, self.0.clock.now()).await?;
            may_commit(head.is_guarded, head.newest)?;
            if head.newest != over {
                continue;
            }
            let revision = self.insert_revision(&mut tx, scope, family, next(head.version), data).await?;
            tx.commit().await?;
            return Ok(Committed { revision, changed: true });
        }
    }

    /// What a change makes of the newest revision, checked in every way; and that revision again.
    async fn prepare_commit(
        &self,
        scope: Scope,
        family: Family,
        slug: &str,
        change: Arc<NewRevision>,
        newest: Option<Revision>,
    ) -> Result<(Option<RevisionData>, Option<Revision>), WorkflowError> {
        let current = newest.as_ref().and_then(|newest| newest.data.as_ref());
        let size = change.size().saturating_add(current.map_or(0, |current| size(current, LARGE)));
        let work = move |_: &Budget| {
            let current = newest.as_ref().and_then(|newest| newest.data.as_ref());
            Ok::<_, WorkflowError>((change.apply_to(family, current)?, newest))
        };
        let (data, newest) = self.0.workers.run(scope.project, size, work).await?;
        if let Some(data) = data.as_ref().filter(|data| !data.is_same) {
            self.check_calls(scope, slug, &data.calls).await?;
            self.check_secrets(scope, &data.value).await?;
            self.check_agent(scope, &data.value).await?;
        }
        Ok((data, newest))
    }

    pub(crate) async fn insert_revision(
        &self,
        tx: &mut Tx,
        scope: Scope,
        family: Family,
        next: Next<'_>,
        data: Option<RevisionData>,
    ) -> Result<Revision, WorkflowError> {
        let Next { variant, version, message, slug, words } = next;
        let digests = check_words(&words)?;
        let slug = match slug {
            Some(slug) => checked(&slug)?.to_string(),
            None => free_slug(tx, family, variant, version).await?,
        };
        let now = self.0.clock.now();
        let (data, text) = data.map(|data| (data.value, data.text)).unzip();
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
        let made = rows::insert_revision(tx, family, &revision, text, digests.as_deref()).await;
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
