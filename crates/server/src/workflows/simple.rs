//! `/simple/workflows`: a workflow with its variant and data in one request.

crate::histories::simple! {
    family: Workflow, schema: workflow, tag: "Workflows", words: ["a workflow", "workflows"],
    names: [workflow, workflows],
    create: ["create_simple_workflow", "/simple/workflows"],
    fetch: "fetch_simple_workflow", edit: "edit_simple_workflow", at: ["/simple/workflows/{workflow_id}", "workflow_id"],
    archive: ["archive_simple_workflow", "/simple/workflows/{workflow_id}/archive"], unarchive: ["unarchive_simple_workflow", "/simple/workflows/{workflow_id}/unarchive"],
    query: ["query_simple_workflows", "/simple/workflows/query"],
}
