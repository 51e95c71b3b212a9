//! `/applications` and `/simple/applications`: workflows that are used as applications.

use document::ToSchema;

use crate::histories::VersionedRef;

/// References to the levels of an application and of an environment: each is `{id?, slug?, version?}`.
#[derive(Debug, ToSchema)]
#[expect(dead_code, clippy::struct_field_names, reason = "it documents fields that are read as a map")]
pub struct ApplicationReferences {
    application_ref: Option<VersionedRef>,
    application_variant_ref: Option<VersionedRef>,
    application_revision_ref: Option<VersionedRef>,
    environment_ref: Option<VersionedRef>,
    environment_variant_ref: Option<VersionedRef>,
    environment_revision_ref: Option<VersionedRef>,
}

pub mod history {
    crate::histories::history! {
        family: Application, schema: application, tag: "Workflow aliases", references: crate::aliases::applications::ApplicationReferences, words: ["an application", "applications"],
        artifact: [application, applications, application_id, application_slug, application_refs],
        variant: [application_variant, application_variants, application_variant_id, application_variant_slug, application_variant_refs, application_variant_ref],
        revision: [application_revision, application_revisions, application_revision_id, application_revision_refs, application_revision_ref],
        create: ["create_application", "/applications"],
        fetch: "fetch_application", edit: "edit_application", at: ["/applications/{application_id}", "application_id"],
        archive: ["archive_application", "/applications/{application_id}/archive"], unarchive: ["unarchive_application", "/applications/{application_id}/unarchive"],
        query: ["query_applications", "/applications/query"],
        create_variant: ["create_application_variant", "/applications/variants"],
        fetch_variant: "fetch_application_variant", edit_variant: "edit_application_variant",
        variant_at: ["/applications/variants/{application_variant_id}", "application_variant_id"],
        archive_variant: ["archive_application_variant", "/applications/variants/{application_variant_id}/archive"],
        unarchive_variant: ["unarchive_application_variant", "/applications/variants/{application_variant_id}/unarchive"],
        query_variants: ["query_application_variants", "/applications/variants/query"],
        fork: ["fork_application_variant", "/applications/variants/fork"],
        create_revision: ["create_application_revision", "/applications/revisions"],
        commit: ["commit_application_revision", "/applications/revisions/commit"],
        fetch_revision: "fetch_application_revision", edit_revision: "edit_application_revision",
        revision_at: ["/applications/revisions/{application_revision_id}", "application_revision_id"],
        archive_revision: ["archive_application_revision", "/applications/revisions/{application_revision_id}/archive"],
        unarchive_revision: ["unarchive_application_revision", "/applications/revisions/{application_revision_id}/unarchive"],
        query_revisions: ["query_application_revisions", "/applications/revisions/query"],
        log: ["log_application_revisions", "/applications/revisions/log"],
        retrieve: ["retrieve_application_revision", "/applications/revisions/retrieve"],
        resolve: ["resolve_application_revision", "/applications/revisions/resolve"],
    }
}

pub mod simple {
    crate::histories::simple! {
        family: Application, schema: application, tag: "Workflow aliases", words: ["an application", "applications"],
        names: [application, applications],
        create: ["create_simple_application", "/simple/applications"],
        fetch: "fetch_simple_application", edit: "edit_simple_application", at: ["/simple/applications/{application_id}", "application_id"],
        archive: ["archive_simple_application", "/simple/applications/{application_id}/archive"], unarchive: ["unarchive_simple_application", "/simple/applications/{application_id}/unarchive"],
        query: ["query_simple_applications", "/simple/applications/query"],
    }
}

pub mod deploy {
    crate::histories::deployment! {
        family: Application, schema: application, tag: "Workflow aliases", references: crate::aliases::applications::ApplicationReferences, revision: application_revision,
        deploy: ["deploy_application_revision", "/applications/revisions/deploy"],
    }
}
