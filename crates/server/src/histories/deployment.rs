//! `…/revisions/deploy` of one family, written once for all that can be deployed.

/// A family's route to deploy a revision, with the rows of its history.
macro_rules! deployment {
    (
        family: $family:ident, schema: $schema:ident, tag: $tag:tt, references: $references:path, revision: $revision:ident,
        deploy: [$deploy:tt, $deploy_path:tt],
    ) => {
        use axum::extract::State;
        use serde::{Deserialize, Serialize};
        use serde_json::{Map, Value};
        use document::ToSchema;

        use super::history::Revision;
        use $crate::App;
        use $crate::edge::auth::EditWorkflows;
        use $crate::edge::{ApiResult, Json, Payload, Scoped};
        use $crate::environments;

        /// Which revision to deploy, and where.
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::DeployRevision)]
        pub struct DeployRevision {
            /// `{slug}.revision` if it is left out.
            pub key: Option<String>,
            pub message: Option<String>,
            #[serde(flatten)]
            #[schema(value_type = $references)]
            pub references: Map<String, Value>,
        }

        /// What is deployed now.
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema::DeployAnswer)]
        pub struct DeployAnswer {
            pub count: usize,
            pub $revision: Revision,
            pub environment_revision: environments::history::Revision,
            /// `committed`, or `no_change` when it was deployed there already.
            pub status: &'static str,
        }

        #[document::path(post, path = $deploy_path, operation_id = $deploy, tag = $tag, summary = "Deploy a revision to an environment",
            description = "Name one revision, or what it belongs to, and one environment. From now on the environment leads to exactly this revision.",
            security(("key" = ["edit_workflows"])), request_body = DeployRevision,
            responses((status = 200, body = DeployAnswer), (status = 404, description = "No such revision or environment, or it is archived"),
                (status = 409, description = "The environment is guarded")))]
        pub(crate) async fn deploy(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            Payload(body): Payload<DeployRevision>,
        ) -> ApiResult<Json<DeployAnswer>> {
            let references = ::workflows::References::read(&body.references)?;
            let deploy = ::workflows::Deploy { references, key: body.key, message: body.message };
            let deployed = app.workflows.deploy(scope, ::workflows::Family::$family, deploy).await?;
            let status = if deployed.environment.changed { "committed" } else { "no_change" };
            Ok(Json(DeployAnswer {
                count: 1,
                $revision: deployed.revision.into(),
                environment_revision: deployed.environment.revision.into(),
                status,
            }))
        }
    };
}

pub(crate) use deployment;
