//! `/simple/environments`: an environment with what is deployed there in one request, and its guard.

crate::histories::simple! {
    family: Environment, schema: environment, tag: "Environments", words: ["an environment", "environments"],
    names: [environment, environments],
    create: ["create_simple_environment", "/simple/environments"],
    fetch: "fetch_simple_environment", edit: "edit_simple_environment", at: ["/simple/environments/{environment_id}", "environment_id"],
    archive: ["archive_simple_environment", "/simple/environments/{environment_id}/archive"], unarchive: ["unarchive_simple_environment", "/simple/environments/{environment_id}/unarchive"],
    query: ["query_simple_environments", "/simple/environments/query"],
}

/// Keep an environment from being deployed to
#[document::path(post, path = "/simple/environments/{environment_id}/guard", operation_id = "guard_environment", tag = "Environments",
    security(("key" = ["edit_workflows"])), params(("environment_id" = Uuid, Path)),
    responses((status = 200, body = SimpleAnswer), (status = 404, description = "No such environment")))]
pub(crate) async fn guard(
    Scoped(scope, _): Scoped<EditWorkflows>,
    State(app): State<App>,
    PathOf(id): PathOf<ArtifactId>,
) -> ApiResult<Json<SimpleAnswer>> {
    app.workflows.guard(scope, id, true).await?;
    Ok(Json(app.workflows.simple(scope, FAMILY, id).await?.into()))
}

/// Let an environment be deployed to again
#[document::path(post, path = "/simple/environments/{environment_id}/unguard", operation_id = "unguard_environment", tag = "Environments",
    security(("key" = ["edit_workflows"])), params(("environment_id" = Uuid, Path)),
    responses((status = 200, body = SimpleAnswer), (status = 404, description = "No such environment")))]
pub(crate) async fn unguard(
    Scoped(scope, _): Scoped<EditWorkflows>,
    State(app): State<App>,
    PathOf(id): PathOf<ArtifactId>,
) -> ApiResult<Json<SimpleAnswer>> {
    app.workflows.guard(scope, id, false).await?;
    Ok(Json(app.workflows.simple(scope, FAMILY, id).await?.into()))
}
