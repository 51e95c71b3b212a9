//! `/environments`, `/environments/variants` and `/environments/revisions`

use crate::histories::history;

history! {
    family: Environment, schema: environment, tag: "Environments", root: "/environments", words: ["an environment", "environments"],
    artifact: [environment, environments, environment_id, "environment_id", environment_refs],
    variant: [
        environment_variant, environment_variants, environment_variant_id, "environment_variant_id", environment_variant_refs,
        environment_variant_ref
    ],
    revision: [
        environment_revision, environment_revisions, environment_revision_id, "environment_revision_id", environment_revision_refs,
        environment_revision_ref
    ],
}
