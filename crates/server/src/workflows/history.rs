//! `/workflows`, `/workflows/variants` and `/workflows/revisions`

use crate::histories::history;

history! {
    family: Workflow, schema: workflow, tag: "Workflows", root: "/workflows", words: ["a workflow", "workflows"],
    artifact: [workflow, workflows, workflow_id, "workflow_id", workflow_refs],
    variant: [workflow_variant, workflow_variants, workflow_variant_id, "workflow_variant_id", workflow_variant_refs, workflow_variant_ref],
    revision: [
        workflow_revision, workflow_revisions, workflow_revision_id, "workflow_revision_id", workflow_revision_refs, workflow_revision_ref
    ],
}
