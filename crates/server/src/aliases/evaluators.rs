//! `/evaluators` and `/simple/evaluators`: workflows that are used as evaluators.

use document::ToSchema;

use crate::histories::VersionedRef;

/// References to the levels of an evaluator and of an environment: each is `{id?, slug?, version?}`.
#[derive(Debug, ToSchema)]
#[expect(dead_code, clippy::struct_field_names, reason = "it documents fields that are read as a map")]
pub struct EvaluatorReferences {
    evaluator_ref: Option<VersionedRef>,
    evaluator_variant_ref: Option<VersionedRef>,
    evaluator_revision_ref: Option<VersionedRef>,
    environment_ref: Option<VersionedRef>,
    environment_variant_ref: Option<VersionedRef>,
    environment_revision_ref: Option<VersionedRef>,
}

pub mod history {
    crate::histories::history! {
        family: Evaluator, schema: evaluator, tag: "Workflow aliases", references: crate::aliases::evaluators::EvaluatorReferences, words: ["an evaluator", "evaluators"],
        artifact: [evaluator, evaluators, evaluator_id, evaluator_slug, evaluator_refs],
        variant: [evaluator_variant, evaluator_variants, evaluator_variant_id, evaluator_variant_slug, evaluator_variant_refs, evaluator_variant_ref],
        revision: [evaluator_revision, evaluator_revisions, evaluator_revision_id, evaluator_revision_refs, evaluator_revision_ref],
        create: ["create_evaluator", "/evaluators"],
        fetch: "fetch_evaluator", edit: "edit_evaluator", at: ["/evaluators/{evaluator_id}", "evaluator_id"],
        archive: ["archive_evaluator", "/evaluators/{evaluator_id}/archive"], unarchive: ["unarchive_evaluator", "/evaluators/{evaluator_id}/unarchive"],
        query: ["query_evaluators", "/evaluators/query"],
        create_variant: ["create_evaluator_variant", "/evaluators/variants"],
        fetch_variant: "fetch_evaluator_variant", edit_variant: "edit_evaluator_variant",
        variant_at: ["/evaluators/variants/{evaluator_variant_id}", "evaluator_variant_id"],
        archive_variant: ["archive_evaluator_variant", "/evaluators/variants/{evaluator_variant_id}/archive"],
        unarchive_variant: ["unarchive_evaluator_variant", "/evaluators/variants/{evaluator_variant_id}/unarchive"],
        query_variants: ["query_evaluator_variants", "/evaluators/variants/query"],
        fork: ["fork_evaluator_variant", "/evaluators/variants/fork"],
        create_revision: ["create_evaluator_revision", "/evaluators/revisions"],
        commit: ["commit_evaluator_revision", "/evaluators/revisions/commit"],
        fetch_revision: "fetch_evaluator_revision", edit_revision: "edit_evaluator_revision",
        revision_at: ["/evaluators/revisions/{evaluator_revision_id}", "evaluator_revision_id"],
        archive_revision: ["archive_evaluator_revision", "/evaluators/revisions/{evaluator_revision_id}/archive"],
        unarchive_revision: ["unarchive_evaluator_revision", "/evaluators/revisions/{evaluator_revision_id}/unarchive"],
        query_revisions: ["query_evaluator_revisions", "/evaluators/revisions/query"],
        log: ["log_evaluator_revisions", "/evaluators/revisions/log"],
        retrieve: ["retrieve_evaluator_revision", "/evaluators/revisions/retrieve"],
        resolve: ["resolve_evaluator_revision", "/evaluators/revisions/resolve"],
    }
}

pub mod simple {
    crate::histories::simple! {
        family: Evaluator, schema: evaluator, tag: "Workflow aliases", words: ["an evaluator", "evaluators"],
        names: [evaluator, evaluators],
        create: ["create_simple_evaluator", "/simple/evaluators"],
        fetch: "fetch_simple_evaluator", edit: "edit_simple_evaluator", at: ["/simple/evaluators/{evaluator_id}", "evaluator_id"],
        archive: ["archive_simple_evaluator", "/simple/evaluators/{evaluator_id}/archive"], unarchive: ["unarchive_simple_evaluator", "/simple/evaluators/{evaluator_id}/unarchive"],
        query: ["query_simple_evaluators", "/simple/evaluators/query"],
    }
}

pub mod deploy {
    crate::histories::deployment! {
        family: Evaluator, schema: evaluator, tag: "Workflow aliases", references: crate::aliases::evaluators::EvaluatorReferences, revision: evaluator_revision,
        deploy: ["deploy_evaluator_revision", "/evaluators/revisions/deploy"],
    }
}
