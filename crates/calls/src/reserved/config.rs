//! `read_config` and `commit_revision`: an agent reads and changes its own configuration.

use definitions::OwnChange;
use kernel::Scope;
use serde_json::{Map, Value, json};
use workflows::changeset::{self, Operations, ReadError, Segment};
use workflows::{Change, Delta, Family, NewRevision, References};

use super::{AgentError, Answer, Refusal, variant};
use crate::Calls;

const MAX_BYTES: usize = 65_536;

impl Calls {
    pub(super) async fn read_config(&self, scope: Scope, arguments: &Map<String, Value>) -> Answer {
        let target = &arguments["target"];
        let variant = variant(arguments, "target")?;
        let head = self.0.workflows.retrieve(scope, &References::variant(variant.uuid()), None).await?;
        let path = target.get("path").filter(|path| !path.is_null()).cloned().unwrap_or_else(|| json!([]));
        let segments: Vec<Segment> =
            serde_json::from_value(path.clone()).map_err(|error| AgentError::new("invalid_arguments", error.to_string()))?;
        let limit = arguments.get("max_bytes").and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok()).unwrap_or(MAX_BYTES);
        let mut stored = head.revision.data.clone().unwrap_or_else(|| json!({}));
        if let (Some(fields), Some(flags)) = (stored.as_object_mut(), head.artifact.flags()) {
            fields.insert("flags".to_owned(), flags);
        }
        let read = changeset::read(&stored, &segments, limit).map_err(|error| unreadable(&error))?;
        Ok(json!({
            "revision": {
                "id": head.revision.id,
                "version": head.revision.version.to_string(),
                "workflow_variant_id": head.variant.id,
                "created_at": head.revision.created_at,
            },
            "base_revision_id": head.revision.id,
            "is_draft": target.get("run_is_draft").and_then(Value::as_bool).unwrap_or(false),
            "path": path,
            "value": read.value,
            "bytes": read.bytes,
        }))
    }

    pub(super) async fn commit_revision(&self, scope: Scope, arguments: &Map<String, Value>) -> Answer {
        let asked = &arguments["workflow_revision"];
        let variant = variant(arguments, "workflow_revision")?;
        let (change, message) = change(asked)?;
        let base = asked.get("base_revision_id").and_then(Value::as_str).and_then(|id| id.parse().ok());
        if matches!(change, Change::Operations(_)) && base.is_none() {
            let error = AgentError::new("invalid_arguments", "Operations need `base_revision_id`, the revision they were made for.");
            return Err(error.next("Call read_config and commit with the base_revision_id it returns.").into());
        }
        let new = NewRevision { base, message: Some(message), judge: Some(&OwnChange), ..NewRevision::of(variant, change) };
        let committed = self.0.workflows.commit(scope, Family::Workflow, new).await?;
        let revision = committed.revision;
        Ok(json!({
            "status": if committed.changed { "committed" } else { "no_change" },
            "workflow_revision": {
                "id": revision.id,
                "slug": revision.slug,
                "version": revision.version.to_string(),
                "workflow_id": revision.artifact,
                "workflow_variant_id": revision.variant,
                "message": revision.message,
                "created_at": revision.created_at,
            },
            "warnings": [],
        }))
    }
}

/// The change that was asked for, and what the history says of it.
fn change(asked: &Value) -> Result<(Change, String), Refusal> {
    let delta = &asked["delta"];
    if let Some(operations) = delta.get("operations") {
        let operations = Operations::parse(operations).map_err(workflows::WorkflowError::from)?;
        let message = changeset::describe(&operations);
        return Ok((Change::Operations(operations), message));
    }
    let set = delta.get("set").and_then(Value::as_object).cloned();
    let remove = delta.get("remove").cloned().and_then(|remove| serde_json::from_value(remove).ok());
    let message = asked.get("message").and_then(Value::as_str).unwrap_or("changed by the agent").to_owned();
    Ok((Change::Delta(Delta { set, remove }), message))
}

fn unreadable(error: &ReadError) -> AgentError {
    let refused = AgentError::new(error.code(), error.to_string());
    match error {
        ReadError::TooLarge { children, .. } => {
            let children: Vec<Value> = children.iter().map(|child| json!({"name": child.name, "bytes": child.bytes})).collect();
            refused.next("Read one of the children.").details(json!({"children": children}))
        }
        _ => refused,
    }
}
