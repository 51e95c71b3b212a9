//! `/admin/projects`

use accounts::Project;
use axum::extract::State;
use document::ToSchema;
use http::StatusCode;
use kernel::ProjectId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::App;
use crate::edge::{ApiResult, Json, NoFilters, Operator, PathOf, Payload, QueryOf};

/// A project.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProjectBody {
    pub id: Uuid,
    pub slug: String,
    pub name: String,
    pub created_at: String,
}

impl From<Project> for ProjectBody {
    fn from(project: Project) -> Self {
        Self { id: project.id.uuid(), slug: project.slug, name: project.name, created_at: project.created_at.to_string() }
    }
}

/// One project in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProjectAnswer {
    pub count: usize,
    pub project: ProjectBody,
}

/// Projects in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProjectsAnswer {
    pub count: usize,
    pub projects: Vec<ProjectBody>,
}

/// What a new project shall be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProject {
    #[schema(value_type = crate::shapes::SlugText)]
    pub slug: String,
    pub name: Option<String>,
}

/// A request to make a project.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateProject {
    pub project: NewProject,
}

/// Create a project
#[document::path(post, path = "/admin/projects", operation_id = "create_project", tag = "Admin", security(("operator" = [])),
    request_body = CreateProject, responses((status = 200, body = ProjectAnswer), (status = 409, description = "The slug is taken")))]
pub(crate) async fn create(_: Operator, State(app): State<App>, Payload(body): Payload<CreateProject>) -> ApiResult<Json<ProjectAnswer>> {
    let project = app.accounts.create_project(&body.project.slug, body.project.name.as_deref()).await?;
    Ok(Json(ProjectAnswer { count: 1, project: project.into() }))
}

/// List projects
#[document::path(get, path = "/admin/projects", operation_id = "list_projects", tag = "Admin", security(("operator" = [])),
    responses((status = 200, body = ProjectsAnswer)))]
pub(crate) async fn list(_: Operator, State(app): State<App>, _: QueryOf<NoFilters>) -> ApiResult<Json<ProjectsAnswer>> {
    let projects: Vec<ProjectBody> = app.accounts.list_projects().await?.into_iter().map(Into::into).collect();
    Ok(Json(ProjectsAnswer { count: projects.len(), projects }))
}

/// Delete a project and everything in it
#[document::path(delete, path = "/admin/projects/{project_id}", operation_id = "delete_project", tag = "Admin", security(("operator" = [])),
    params(("project_id" = Uuid, Path)), responses((status = 204), (status = 404, description = "No such project")))]
pub(crate) async fn delete(_: Operator, State(app): State<App>, PathOf(id): PathOf<ProjectId>) -> ApiResult<StatusCode> {
    let left = app.triggers.leftovers(&[id]).await?;
    app.accounts.delete_project(id).await?;
    app.triggers.remove_leftovers(left);
    Ok(StatusCode::NO_CONTENT)
}
