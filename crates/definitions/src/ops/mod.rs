//! Platform ops: what an agent may ask of Toolyard itself. The catalog says which ops there are, `bind` what the model may not choose,
//! `direct` which request a call becomes. Nothing here sends anything.

mod bind;
mod catalog;
mod direct;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::Verdict;

pub use bind::{BindError, FieldPath, Stripped, apply_bindings, bind_arguments, bound_values, strip_ephemeral, visible_schema};
pub use catalog::{ABSENT, Absent, Handler, Method, Op, OpTarget, UnknownOp, all, call_ref, check, check_all, find, lookup, other_refs};
pub use direct::{Assembled, DirectError, DirectTool, Mount, RESULT_MAX_BYTES, ToolCall, assemble, cap_text, failure_text};

/// How a runner reaches an op.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Dispatch {
    /// A request of its own.
    Direct { call: ToolCall },
    /// By name, at `/tools/call`.
    #[serde(rename_all = "camelCase")]
    Handler {
        call_ref: String,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        context_bindings: BTreeMap<String, String>,
    },
}

/// What an op adds to a resolved callback spec, in its wire shape.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpecParts {
    pub input_schema: Value,
    #[serde(flatten)]
    pub dispatch: Dispatch,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    pub read_only: bool,
    /// What the author chose. Left out, the run's policy decides; a default sent as a choice would silence the author's rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<Verdict>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub ephemeral_args: &'static [&'static str],
}

/// The parts of the resolved spec of an op, for a runner whose callback sits under `mount`.
pub fn spec_parts(op: &Op, mount: &Mount, authored: Option<Verdict>) -> SpecParts {
    SpecParts {
        input_schema: visible_schema(op),
        dispatch: dispatch(op, mount),
        timeout_ms: op.timeout_ms,
        read_only: op.read_only,
        permission: authored,
        ephemeral_args: op.ephemeral_args(),
    }
}

fn dispatch(op: &Op, mount: &Mount) -> Dispatch {
    match &op.target {
        OpTarget::Endpoint { method, path } => Dispatch::Direct { call: ToolCall::new(op, *method, mount.join(path)) },
        OpTarget::Handler { handler } => Dispatch::Handler { call_ref: handler.call_ref(), context_bindings: op.context_bindings.clone() },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parts(name: &str, mount: &str, authored: Option<Verdict>) -> Value {
        let mut parts = serde_json::to_value(spec_parts(find(name).unwrap(), &Mount::new(mount), authored)).unwrap();
        parts.as_object_mut().unwrap().remove("inputSchema").unwrap();
        parts
    }

    #[test]
    fn ops_resolve_to_the_wire_shape() {
        let cases = [
            ("list_schedules", "", None, json!({"call": {"method": "GET", "path": "/triggers/schedules/"}, "readOnly": true})),
            (
                "find_capabilities",
                "/api",
                Some(Verdict::Deny),
                json!({"call": {"method": "POST", "path": "/api/tools/discover"}, "readOnly": true, "permission": "deny"}),
            ),
            (
                "create_schedule",
                "/api",
                None,
                json!({
                    "call": {
                        "method": "POST",
                        "path": "/api/triggers/schedules/",
                        "context": {"schedule.data.references.workflow_variant.id": "$ctx.workflow.variant.id"},
                        "args_into": "schedule",
                    },
                    "readOnly": false,
                }),
            ),
            (
                "test_run",
                "/api",
                Some(Verdict::Ask),
                json!({
                    "callRef": "tools.agenta.test_run",
                    "contextBindings": {"target.workflow_variant_id": "$ctx.workflow.variant.id"},
                    "timeoutMs": 120_000,
                    "readOnly": false,
                    "permission": "ask",
                    "ephemeralArgs": ["description"],
                }),
            ),
        ];
        for (name, mount, authored, expected) in cases {
            assert_eq!(parts(name, mount, authored), expected, "{name}");
        }
    }

    #[test]
    fn every_spec_has_exactly_one_way_to_be_reached() {
        for op in all() {
            let parts = parts(&op.op, "", None);
            assert_ne!(parts.get("call").is_some(), parts.get("callRef").is_some(), "{}", op.op);
        }
    }
}
