//! `/tools/imports`: integrations that a project makes from something of its own.

use std::collections::BTreeMap;
use std::fmt;

use axum::extract::State;
use document::{IntoParams, ToSchema};
use http::StatusCode;
use imports::{Import, ImportError, ImportMode, Made, Order, Origin};
use kernel::{ConnectionId, ImportId, Scope};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::App;
use crate::edge::auth::{EditTools, ViewTools};
use crate::edge::{ApiResult, Json, LargePayload, NoFilters, PathOf, Payload, QueryOf, Scoped};

/// An import.
#[derive(Debug, Serialize, ToSchema)]
pub struct ImportBody {
    /// Absent in a dry run that would make a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    pub provider_key: String,
    pub integration_key: String,
    pub name: String,
    /// `url`, if it was fetched, and the `settings` it was imported with.
    #[schema(value_type = Object)]
    pub source: Value,
    /// Where credentials are sent.
    pub origins: Vec<String>,
    pub actions_count: i64,
    /// Counts from one, with every change.
    pub version: i64,
    pub created_at: String,
    pub updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_by_id: Option<Uuid>,
}

impl From<Import> for ImportBody {
    fn from(import: Import) -> Self {
        Self {
            id: Some(import.id.uuid()),
            provider_key: import.provider,
            integration_key: import.key,
            name: import.name,
            source: import.source.json(),
            origins: import.origins.into_iter().collect(),
            actions_count: import.actions_count,
            version: import.version,
            created_at: import.created_at.to_string(),
            updated_at: import.updated_at.to_string(),
            created_by_id: import.created_by,
            updated_by_id: import.updated_by,
        }
    }
}

/// One import in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ImportAnswer {
    pub count: usize,
    pub import: ImportBody,
}

/// Imports in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ImportsAnswer {
    pub count: usize,
    pub imports: Vec<ImportBody>,
}

/// What an import came to, or would come to.
#[derive(Debug, Serialize, ToSchema)]
pub struct MadeAnswer {
    pub count: usize,
    pub import: ImportBody,
    /// Whether nothing was written.
    pub dry_run: bool,
    pub is_new: bool,
    pub difference: DifferenceBody,
    /// What did not become an action.
    pub skipped: Vec<SkippedBody>,
    pub warnings: Vec<String>,
    /// Connections whose credentials were taken away, because they would have gone to other hosts.
    pub disconnected: Vec<Uuid>,
}

/// The actions that come, go and change, by key.
#[derive(Debug, Serialize, ToSchema)]
pub struct DifferenceBody {
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub changed: Vec<String>,
    pub unchanged_count: usize,
}

/// Something that did not become an action.
#[derive(Debug, Serialize, ToSchema)]
pub struct SkippedBody {
    pub what: String,
    pub why: String,
}

/// How far an import shall go.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ImportOptions {
    /// Say what would happen, and write nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// Take credentials away where they would go to other hosts than they were given for.
    #[serde(default)]
    pub force: bool,
}

impl From<ImportOptions> for ImportMode {
    fn from(options: ImportOptions) -> Self {
        Self { dry_run: options.dry_run, force: options.force, unasked: false }
    }
}

/// How an import is removed.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct DeleteImport {
    /// Delete its connections and OAuth apps too.
    #[serde(default)]
    pub force: bool,
}

/// A request to import an OpenAPI document.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportOpenapi {
    pub import: OpenapiBody,
}

/// An OpenAPI document, 3.0 or 3.1: either `url` or `document`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenapiBody {
    /// The integration's key: lower-case letters, digits and hyphens. Made from the document's title if nothing is said.
    pub key: Option<String>,
    /// The integration's name; the document's title if nothing is said.
    pub name: Option<String>,
    /// Where the document is.
    #[schema(value_type = Option<crate::shapes::UrlText>)]
    pub url: Option<String>,
    /// The document itself: an object, or text in JSON or YAML.
    #[schema(value_type = Option<crate::shapes::ObjectOrText>)]
    pub document: Option<Value>,
    /// The address of the API in place of the document's servers.
    #[schema(value_type = Option<crate::shapes::UrlText>)]
    pub server_url: Option<String>,
    /// Security schemes in place of the document's, in OpenAPI's own words.
    #[schema(value_type = Option<Object>)]
    pub security_schemes: Option<Map<String, Value>>,
}

impl OpenapiBody {
    fn order(self, scope: Scope) -> Result<Order, ImportError> {
        let mut settings = Map::new();
        settings.extend(self.server_url.map(|url| ("server_url".to_owned(), json!(url))));
        settings.extend(self.security_schemes.map(|schemes| ("security_schemes".to_owned(), Value::Object(schemes))));
        let from = origin(self.url.as_deref(), self.document)?;
        Ok(Order { project: scope.project, key: self.key, name: self.name, from, settings, secret: None, account: None, again: None })
    }
}

/// A request to import an MCP server.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportMcp {
    pub import: McpBody,
}

/// An MCP server: either `url`, or a `command` that the operator lets projects run.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct McpBody {
    /// The integration's key: lower-case letters, digits and hyphens. Made from the server's name if nothing is said.
    pub key: Option<String>,
    /// The integration's name; the server's own if nothing is said.
    pub name: Option<String>,
    /// Where the server is, by Streamable HTTP.
    #[schema(value_type = Option<crate::shapes::UrlText>)]
    pub url: Option<String>,
    /// Headers that every request to the server has. They are kept sealed and never shown.
    pub headers: Option<BTreeMap<String, String>>,
    /// The program to run; it is spoken to over its input and output.
    pub command: Option<String>,
    /// The program's arguments. They are shown, so secrets belong into `env`.
    pub args: Option<Vec<String>>,
    /// Variables of the program's environment, which has nothing else but `PATH` and `HOME`. They are kept sealed and never shown.
    pub env: Option<BTreeMap<String, String>>,
}

impl fmt::Debug for ImportMcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportMcp").field("key", &self.import.key).finish_non_exhaustive()
    }
}

impl fmt::Debug for McpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpBody").field("key", &self.key).finish_non_exhaustive()
    }
}

impl McpBody {
    fn order(self, scope: Scope) -> Result<Order, ImportError> {
        let mut settings = Map::new();
        let from = match (&self.url, &self.command) {
            (Some(url), None) if self.args.is_none() && self.env.is_none() => address(url)?,
            (None, Some(command)) if self.headers.is_none() => {
                settings.insert("command".to_owned(), json!(command));
                settings.insert("args".to_owned(), json!(self.args.unwrap_or_default()));
                Origin::Settings
            }
            _ => {
                let text = "give either `url`, which may have `headers`, or `command`, which may have `args` and `env`";
                return Err(ImportError::Invalid(text.to_owned()));
            }
        };
        let names = |given: &Option<BTreeMap<String, String>>| given.iter().flat_map(BTreeMap::keys).cloned().collect::<Vec<_>>();
        for (kind, names) in [("headers", names(&self.headers)), ("env", names(&self.env))] {
            if !names.is_empty() {
                settings.insert(kind.to_owned(), json!(names));
            }
        }
        let is_secret = self.headers.is_some() || self.env.is_some();
        let secret =
            is_secret.then(|| json!({"headers": self.headers.unwrap_or_default(), "env": self.env.unwrap_or_default()}).to_string().into());
        Ok(Order { project: scope.project, key: self.key, name: self.name, from, settings, secret, account: None, again: None })
    }
}

fn address(url: &str) -> Result<Origin, ImportError> {
    let url =
        url.parse().map_err(|_| ImportError::Invalid(format!("`{}` is not a web address", url.chars().take(200).collect::<String>())))?;
    Ok(Origin::Url(url))
}

/// Exactly one of an address and a document.
fn origin(url: Option<&str>, document: Option<Value>) -> Result<Origin, ImportError> {
    match (url, document) {
        (Some(url), None) => address(url),
        (None, Some(Value::String(text))) => Ok(Origin::Text(text)),
        (None, Some(document @ Value::Object(_))) => Ok(Origin::Json(document)),
        (None, Some(_)) => Err(ImportError::Invalid("`document` is an object, or text in JSON or YAML".to_owned())),
        (None, None) | (Some(_), Some(_)) => Err(ImportError::Invalid("give either `url` or `document`".to_owned())),
    }
}

fn answer(made: Made, mode: ImportMode) -> Json<MadeAnswer> {
    let mut import = ImportBody::from(made.import);
    if mode.dry_run && made.is_new {
        import.id = None;
    }
    let difference = made.difference;
    Json(MadeAnswer {
        count: 1,
        import,
        dry_run: mode.dry_run,
        is_new: made.is_new,
        difference: DifferenceBody {
            added: difference.added,
            removed: difference.removed,
            changed: difference.changed,
            unchanged_count: difference.unchanged,
        },
        skipped: made.skipped.into_iter().map(|skipped| SkippedBody { what: skipped.what, why: skipped.why }).collect(),
        warnings: made.warnings,
        disconnected: made.released.into_iter().map(ConnectionId::uuid).collect(),
    })
}

/// Import an OpenAPI document
#[document::path(post, path = "/tools/imports/openapi", operation_id = "import_openapi", tag = "Tools", security(("key" = ["edit_tools"])),
    params(ImportOptions), request_body = ImportOpenapi,
    responses((status = 200, body = MadeAnswer), (status = 409, description = "The key is taken, credentials would go to other hosts, or the project has as many imports as it may"),
        (status = 422, description = "The document cannot be imported"), (status = 424, description = "The address could not be read")))]
pub(crate) async fn openapi(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    QueryOf(options): QueryOf<ImportOptions>,
    LargePayload(request): LargePayload<ImportOpenapi>,
) -> ApiResult<Json<MadeAnswer>> {
    let mode = options.into();
    let made = app.imports.make(scope, "openapi", request.import.order(scope)?, mode).await?;
    Ok(answer(made, mode))
}

/// Import an MCP server
///
/// A server that shows its tools only to accounts is imported without them; they are read once the first account is connected.
#[document::path(post, path = "/tools/imports/mcp", operation_id = "import_mcp", tag = "Tools", security(("key" = ["edit_tools"])),
    params(ImportOptions), request_body = ImportMcp,
    responses((status = 200, body = MadeAnswer), (status = 409, description = "The key is taken, credentials would go to other hosts, or the project has as many imports as it may"),
        (status = 422, description = "The server cannot be imported, or projects may not run the program"),
        (status = 424, description = "The server could not be reached or started")))]
pub(crate) async fn mcp(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    QueryOf(options): QueryOf<ImportOptions>,
    Payload(request): Payload<ImportMcp>,
) -> ApiResult<Json<MadeAnswer>> {
    let mode = options.into();
    let made = app.imports.make(scope, "mcp", request.import.order(scope)?, mode).await?;
    Ok(answer(made, mode))
}

/// List the project's imports
#[document::path(get, path = "/tools/imports", operation_id = "list_imports", tag = "Tools", security(("key" = ["view_tools"])),
    responses((status = 200, body = ImportsAnswer)))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    _: QueryOf<NoFilters>,
) -> ApiResult<Json<ImportsAnswer>> {
    let imports: Vec<ImportBody> = app.imports.list(scope.project).await?.into_iter().map(ImportBody::from).collect();
    Ok(Json(ImportsAnswer { count: imports.len(), imports }))
}

/// Read an import
#[document::path(get, path = "/tools/imports/{import_id}", operation_id = "fetch_import", tag = "Tools", security(("key" = ["view_tools"])),
    params(("import_id" = Uuid, Path)), responses((status = 200, body = ImportAnswer), (status = 404, description = "No such import")))]
pub(crate) async fn fetch(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    PathOf(id): PathOf<ImportId>,
) -> ApiResult<Json<ImportAnswer>> {
    Ok(Json(ImportAnswer { count: 1, import: app.imports.get(scope.project, id).await?.into() }))
}

/// Fetch the source of an import again
#[document::path(post, path = "/tools/imports/{import_id}/refresh", operation_id = "refresh_import", tag = "Tools", security(("key" = ["edit_tools"])),
    params(("import_id" = Uuid, Path), ImportOptions),
    responses((status = 200, body = MadeAnswer), (status = 404, description = "No such import"),
        (status = 409, description = "Credentials would go to other hosts, or there is nothing to fetch")))]
pub(crate) async fn refresh(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    PathOf(id): PathOf<ImportId>,
    QueryOf(options): QueryOf<ImportOptions>,
) -> ApiResult<Json<MadeAnswer>> {
    let mode = options.into();
    let made = app.imports.refresh(scope, id, mode).await?;
    Ok(answer(made, mode))
}

/// Delete an import
#[document::path(delete, path = "/tools/imports/{import_id}", operation_id = "delete_import", tag = "Tools", security(("key" = ["edit_tools"])),
    params(("import_id" = Uuid, Path), DeleteImport),
    responses((status = 204), (status = 404, description = "No such import"), (status = 409, description = "It is connected")))]
pub(crate) async fn delete(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    PathOf(id): PathOf<ImportId>,
    QueryOf(options): QueryOf<DeleteImport>,
) -> ApiResult<StatusCode> {
    app.imports.delete(scope, id, options.force).await?;
    Ok(StatusCode::NO_CONTENT)
}
