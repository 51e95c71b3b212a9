//! Histories on the wire: artifact, variant and revision. Workflows and environments have the same routes; only the names of their fields
//! differ, so `bodies` and `routes` write both from one text.

mod bodies;
mod list;
mod routes;

use ::workflows::changeset::Operations;
use ::workflows::embed::{EmbedLimits, ErrorPolicy};
use ::workflows::{Change, Delta, Edit, Family, NewArtifact, References, Retrieved, WorkflowError};
use kernel::{RevisionId, Scope, VariantId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::App;
use crate::edge::{ApiError, ApiResult};

pub(crate) use bodies::bodies;
pub(crate) use list::{Ask, artifacts, log, revisions, variants};
pub(crate) use routes::routes;

/// Bodies and handlers of one family.
macro_rules! history {
    (family: $family:ident, $($names:tt)*) => {
        const FAMILY: ::workflows::Family = ::workflows::Family::$family;

        crate::histories::bodies! { $($names)* }
        crate::histories::routes! { $($names)* }
    };
}

pub(crate) use history;

const MAX_DEPTH: usize = 20;
const MAX_EMBEDS: usize = 500;

/// What a new workflow or environment shall be. Unknown keys are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub struct NewArtifactBody {
    /// Letters, digits, `-` and single `_`.
    pub slug: String,
    pub name: Option<String>,
    pub description: Option<String>,
    #[schema(value_type = Option<Object>)]
    pub flags: Option<Map<String, Value>>,
    #[schema(value_type = Option<Object>)]
    pub tags: Option<Value>,
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Map<String, Value>>,
}

impl From<NewArtifactBody> for NewArtifact {
    fn from(body: NewArtifactBody) -> Self {
        Self {
            slug: body.slug,
            name: body.name,
            description: body.description,
            flags: body.flags.map(Value::Object),
            tags: body.tags,
            meta: body.meta.map(Value::Object),
        }
    }
}

/// New words for a workflow or environment; what is left out stays.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct EditBody {
    /// The same as in the path, or left out.
    pub id: Option<Uuid>,
    pub name: Option<String>,
    pub description: Option<String>,
    #[schema(value_type = Option<Object>)]
    pub flags: Option<Map<String, Value>>,
    #[schema(value_type = Option<Object>)]
    pub tags: Option<Value>,
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Map<String, Value>>,
}

impl EditBody {
    /// The change, if it is meant for what the path names.
    pub(crate) fn of(self, id: Uuid) -> ApiResult<Edit> {
        if self.id.is_some_and(|named| named != id) {
            return Err(ApiError::bad_request("The id in the body is not the one in the path."));
        }
        Ok(Edit {
            name: self.name,
            description: self.description,
            flags: self.flags.map(Value::Object),
            tags: self.tags,
            meta: self.meta.map(Value::Object),
        })
    }
}

/// A name for one row.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct RefBody {
    pub id: Option<Uuid>,
    pub slug: Option<String>,
}

/// Which rows to list, by their words.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct FilterBody {
    /// The whole slug.
    pub slug: Option<String>,
    /// Part of the slug or name.
    pub name: Option<String>,
}

/// Which page to list.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct WindowingBody {
    /// 100 by default, 500 at most.
    pub limit: Option<i64>,
    /// `windowing.next` of the page before.
    pub next: Option<Uuid>,
}

/// Where the next page begins.
#[derive(Debug, Serialize, ToSchema)]
pub struct NextBody {
    pub next: Uuid,
}

/// A change to the newest data.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeltaBody {
    /// Merged into a workflow's data; in an environment each key is a whole deployment.
    #[schema(value_type = Option<Object>)]
    pub set: Option<Map<String, Value>>,
    /// Dotted paths of a workflow's data, keys of an environment's deployments.
    pub remove: Option<Vec<String>>,
    /// Ordered operations on a workflow's data, in place of the two above.
    #[schema(value_type = Option<Vec<Object>>)]
    pub operations: Option<Value>,
}

/// What a commit does to the data; every way of saying it excludes the others.
pub(crate) fn change(family: Family, data: Option<Value>, delta: Option<DeltaBody>) -> Result<Change, WorkflowError> {
    let Some(DeltaBody { set, remove, operations: Some(operations) }) = delta else {
        return Change::read(data, delta.map(|body| Delta { set: body.set, remove: body.remove }));
    };
    if data.is_some() || set.is_some() || remove.is_some() || family != Family::Workflow {
        return Err(WorkflowError::BadRequest("`delta.operations` of a workflow stand alone: give no data, set or remove.".to_owned()));
    }
    Ok(Change::Operations(Operations::parse(&operations)?))
}

/// References to the levels of a history: each is `{id?, slug?, version?}`. `application` and `evaluator` are other names of `workflow`.
#[derive(Debug, ToSchema)]
#[expect(dead_code, clippy::struct_field_names, reason = "it documents fields that are read as a map")]
pub struct ReferenceFields {
    workflow_ref: Option<VersionedRef>,
    workflow_variant_ref: Option<VersionedRef>,
    workflow_revision_ref: Option<VersionedRef>,
    environment_ref: Option<VersionedRef>,
    environment_variant_ref: Option<VersionedRef>,
    environment_revision_ref: Option<VersionedRef>,
}

/// A name for one row, or for one of its versions.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it documents fields that are read as a map")]
pub struct VersionedRef {
    id: Option<Uuid>,
    slug: Option<String>,
    #[schema(example = "3")]
    version: Option<String>,
}

/// Which revision to read.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct RetrieveRevision {
    /// The key of a deployment; `{workflow slug}.revision` if it is left out.
    pub key: Option<String>,
    /// Put embeds in place.
    #[serde(default)]
    pub resolve: bool,
    #[serde(flatten)]
    #[schema(value_type = ReferenceFields)]
    pub references: Map<String, Value>,
}

/// How far embeds may reach and what becomes of those that fail.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct EmbedOptions {
    /// 10 by default, 20 at most.
    pub max_depth: Option<usize>,
    /// 100 by default, 500 at most.
    pub max_embeds: Option<usize>,
    /// `exception` (the default), `placeholder` or `keep`.
    #[schema(value_type = Option<String>)]
    pub error_policy: Option<ErrorPolicy>,
}

impl EmbedOptions {
    fn limits(&self) -> ApiResult<EmbedLimits> {
        let usual = EmbedLimits::default();
        let within = |name: &str, asked: Option<usize>, usual: usize, most: usize| match asked {
            Some(asked) if asked > most => {
                Err(ApiError::invalid("value_error", vec![json!("body"), json!(name)], format!("at most {most}")))
            }
            asked => Ok(asked.unwrap_or(usual)),
        };
        Ok(EmbedLimits {
            max_depth: within("max_depth", self.max_depth, usual.max_depth, MAX_DEPTH)?,
            max_embeds: within("max_embeds", self.max_embeds, usual.max_embeds, MAX_EMBEDS)?,
        })
    }
}

/// How embeds were put in place.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct ResolutionInfo {
    pub embeds_resolved: usize,
    pub depth_reached: usize,
}

/// How a revision was found.
#[derive(Debug, Serialize, ToSchema)]
pub struct RetrievalInfo {
    /// Exact references to what was found.
    #[schema(value_type = Object)]
    pub references: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<SelectorBody>,
}

/// The deployment that was followed.
#[derive(Debug, Serialize, ToSchema)]
pub struct SelectorBody {
    pub key: String,
}

impl RetrievalInfo {
    pub(crate) fn of(family: Family, found: &Retrieved) -> Self {
        let Retrieved { artifact, variant, revision, key } = found;
        let family = family.name();
        let references = json!({
            family: {"id": artifact.id, "slug": artifact.slug},
            format!("{family}_variant"): {"id": variant.id, "slug": variant.slug},
            format!("{family}_revision"): {"id": revision.id, "slug": revision.slug, "version": revision.version.to_string()},
        });
        Self { references, selector: key.clone().map(|key| SelectorBody { key }) }
    }
}

/// The revision that the references name.
pub(crate) async fn retrieve(
    app: &App,
    scope: Scope,
    family: Family,
    fields: &Map<String, Value>,
    key: Option<&str>,
) -> ApiResult<Retrieved> {
    let references = References::read(fields)?;
    Ok(match family {
        Family::Workflow => app.workflows.retrieve(scope, &references, key).await?,
        Family::Environment => app.workflows.retrieve_environment(scope, &references).await?,
    })
}

/// The data with its embeds in place.
pub(crate) async fn resolve(app: &App, scope: Scope, data: Value, options: &EmbedOptions) -> ApiResult<(Value, ResolutionInfo)> {
    let resolved = app.workflows.resolve(scope, data, options.limits()?, options.error_policy.unwrap_or_default()).await;
    let resolved = resolved.map_err(::workflows::WorkflowError::from)?;
    Ok((resolved.value, ResolutionInfo { embeds_resolved: resolved.count, depth_reached: resolved.depth }))
}

/// The flags of an artifact as they are shown; of an environment they say whether it is guarded.
pub(crate) fn flags(family: Family, artifact: &::workflows::Artifact) -> Option<Value> {
    let flags = artifact.flags.clone();
    if family == Family::Workflow {
        return flags;
    }
    let mut flags = flags.unwrap_or_else(|| json!({}));
    flags["is_guarded"] = json!(artifact.is_guarded);
    Some(flags)
}

/// The variant to fork: by its id, or by the id or slug in a reference.
pub(crate) async fn fork_source(
    app: &App,
    scope: Scope,
    family: Family,
    id: Option<Uuid>,
    reference: Option<&RefBody>,
) -> ApiResult<VariantId> {
    let named = id.or_else(|| reference.and_then(|reference| reference.id));
    if let Some(id) = named {
        return Ok(VariantId::from(id));
    }
    let Some(slug) = reference.and_then(|reference| reference.slug.clone()) else {
        return Err(ApiError::bad_request("Name the variant to fork by id or slug."));
    };
    let ask = Ask { variant_refs: vec![RefBody { id: None, slug: Some(slug) }], include_archived: true, ..Ask::default() };
    let found = variants(app, scope, family, ask).await?.rows.pop();
    Ok(found.ok_or_else(|| ApiError::not_found(format!("{} variant not found", family.title())))?.id)
}

/// The variant whose history is asked for, and the version it begins with.
pub(crate) async fn log_start(
    app: &App,
    scope: Scope,
    family: Family,
    [artifact, variant, revision]: [Option<Uuid>; 3],
) -> ApiResult<(VariantId, Option<i64>)> {
    if let Some(id) = revision {
        let found = app.workflows.revision(scope, family, RevisionId::from(id)).await?;
        return Ok((found.variant, Some(found.version)));
    }
    if let Some(id) = variant {
        return Ok((app.workflows.variant(scope, family, VariantId::from(id)).await?.id, None));
    }
    let Some(id) = artifact else { return Err(ApiError::bad_request("Name a variant, a revision or the whole by id.")) };
    let fields = Map::from_iter([(family.name().to_owned(), json!({"id": id}))]);
    Ok((retrieve(app, scope, family, &fields, None).await?.variant.id, None))
}
