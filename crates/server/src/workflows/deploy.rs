//! `POST /workflows/revisions/deploy`

crate::histories::deployment! {
    family: Workflow, schema: workflow, tag: "Workflows", references: crate::histories::ReferenceFields, revision: workflow_revision,
    deploy: ["deploy_workflow_revision", "/workflows/revisions/deploy"],
}
