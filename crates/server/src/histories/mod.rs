//! Histories on the wire: artifact, variant and revision. Workflows, environments and the aliases of workflows have the same routes; only
//! the names of their fields differ, so `history!` and `simple!` write each from one text, and their handlers hand over to what is here.

mod answers;
mod deployment;
mod handlers;
mod list;
mod params;
mod requests;
mod simple;
mod work;

use ::workflows::changeset::Operations;
use ::workflows::embed::{EmbedLimits, ErrorPolicy};
use ::workflows::{Change, Delta, Edit, Family, NewArtifact, Reference, References, Retrieved, RowKind, Simple, Words, WorkflowError};
use document::ToSchema;
use kernel::{ArtifactId, RevisionId, Scope, VariantId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::App;
use crate::edge::{ApiError, ApiResult, Code, Unused};

pub(crate) use answers::answers;
pub(crate) use deployment::deployment;
pub(crate) use handlers::history;
pub(crate) use list::{Filter, HistoryQuery, Page, artifacts, logged, revisions, simples, variants};
pub(crate) use params::{FilterPairs, FilterParams};
pub(crate) use requests::requests;
pub(crate) use simple::simple;
pub(crate) use work::{
    CommitRequest, FoundRevision, LogRequest, ResolveRequest, ResolvedRevision, RetrieveRequest, commit, log, resolve, retrieve,
};

const MAX_DEPTH: usize = 20;
const MAX_EMBEDS: usize = 500;

/// What a new workflow or environment shall be. Unknown keys are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub struct NewArtifactBody {
    #[schema(value_type = crate::shapes::SlugText)]
    pub slug: String,
    #[schema(value_type = Option<crate::shapes::NameText>)]
    pub name: Option<String>,
    pub description: Option<String>,
    #[schema(value_type = Option<Object>)]
    pub flags: Option<Map<String, Value>>,
    pub tags: Option<Value>,
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Map<String, Value>>,
}

impl From<NewArtifactBody> for NewArtifact {
    fn from(body: NewArtifactBody) -> Self {
        Self { slug: body.slug, words: words(body.name, body.description, body.tags, body.meta), flags: body.flags }
    }
}

/// What people write on a row.
pub(crate) fn words(name: Option<String>, description: Option<String>, tags: Option<Value>, meta: Option<Map<String, Value>>) -> Words {
    Words { name, description, tags, meta: meta.map(Value::Object) }
}

/// New words for a row; what is left out stays. Flags of variants and revisions are not people's to write.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct EditBody {
    /// The same as in the path, or left out.
    pub id: Option<Uuid>,
    #[schema(value_type = Option<crate::shapes::NameText>)]
    pub name: Option<String>,
    pub description: Option<String>,
    #[schema(value_type = Option<Object>)]
    pub flags: Option<Map<String, Value>>,
    pub tags: Option<Value>,
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Map<String, Value>>,
}

impl EditBody {
    /// The change, if it is meant for what the path names.
    pub(crate) fn of(self, id: Uuid) -> ApiResult<Edit> {
        if self.id.is_some_and(|named| named != id) {
            return Err(ApiError::new(Code::IdMismatch, "The id in the body is not the one in the path."));
        }
        Ok(Edit { words: words(self.name, self.description, self.tags, self.meta), flags: self.flags })
    }
}

/// A name for one row.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct RefBody {
    pub id: Option<Uuid>,
    pub slug: Option<String>,
    /// Rows of lists have none.
    #[schema(value_type = Option<String>)]
    pub version: Unused,
}

impl RefBody {
    pub(crate) fn id(id: Uuid) -> Self {
        Self { id: Some(id), slug: None, version: None }
    }

    pub(crate) fn slug(slug: String) -> Self {
        Self { id: None, slug: Some(slug), version: None }
    }
}

impl From<RefBody> for Reference {
    fn from(body: RefBody) -> Self {
        Self { id: body.id, slug: body.slug, version: None }
    }
}

/// The rows that a query names in a list, and the one that its filter names by id.
pub(crate) fn refs(named: Option<Vec<RefBody>>, id: Option<Uuid>) -> Vec<RefBody> {
    let mut refs = named.unwrap_or_default();
    refs.extend(id.map(RefBody::id));
    refs
}

/// Which rows to list, by their words.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct FilterBody {
    /// The whole slug.
    pub slug: Option<String>,
    /// Any of these slugs.
    pub slugs: Option<Vec<String>>,
    /// Part of the slug or name.
    pub name: Option<String>,
    pub description: Option<String>,
    /// What the row shows.
    #[schema(value_type = Option<Object>)]
    pub flags: Option<Map<String, Value>>,
    /// What the row's tags contain.
    pub tags: Option<Value>,
}

impl From<FilterBody> for Filter {
    fn from(body: FilterBody) -> Self {
        let FilterBody { slug, slugs, name, description, flags, tags } = body;
        let slugs = slug.map_or(slugs, |slug| Some(vec![slug]));
        Self { slugs, name, description, flags, tags }
    }
}

/// Which page to list.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct WindowingBody {
    /// 100 by default, 500 at most.
    pub limit: Option<i64>,
    /// `windowing.next` of the page before, or the id of the last row seen.
    pub next: Option<Uuid>,
    pub order: Option<Order>,
    /// Rows that were not made after this time.
    pub newest: Option<String>,
    /// Rows that were not made before this time.
    pub oldest: Option<String>,
}

/// Which rows come first: `descending`, the newest, unless something else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    Ascending,
    Descending,
}

impl Order {
    fn read(text: &str) -> Option<Self> {
        serde_json::from_value(json!(text)).ok()
    }
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
    if data.is_some() || set.is_some() || remove.is_some() || family == Family::Environment {
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
    #[schema(value_type = Option<crate::shapes::VersionNumber>)]
    version: Option<String>,
}

/// How far embeds may reach and what becomes of those that fail.
#[derive(Debug, Default)]
pub struct EmbedOptions {
    pub max_depth: Option<usize>,
    pub max_embeds: Option<usize>,
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
    /// What each embed that was put in place refers to, in that order.
    #[schema(value_type = Vec<Object>)]
    pub references_used: Vec<Value>,
    pub depth_reached: usize,
    pub embeds_resolved: usize,
    /// What failed and was left as it was, or has a placeholder.
    pub errors: Vec<String>,
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
        let selector = found.deployment.as_ref().map(|deployment| SelectorBody { key: deployment.key.clone() });
        Self { references: Value::Object(found.all_references(family)), selector }
    }
}

/// The revision that the references name, if they lead to one.
pub(crate) async fn find(
    app: &App,
    scope: Scope,
    family: Family,
    fields: &Map<String, Value>,
    key: Option<&str>,
) -> ApiResult<Option<Retrieved>> {
    Ok(app.workflows.look_up(scope, family, &References::read(fields)?, key).await?)
}

/// The data with its embeds in place.
pub(crate) async fn in_place(app: &App, scope: Scope, data: Value, options: &EmbedOptions) -> ApiResult<(Value, ResolutionInfo)> {
    let resolved = app.workflows.resolve(scope, data, options.limits()?, options.error_policy.unwrap_or_default()).await;
    let resolved = resolved.map_err(::workflows::WorkflowError::from)?;
    let info = ResolutionInfo {
        references_used: resolved.references.iter().map(|reference| Value::Object(reference.entities())).collect(),
        depth_reached: resolved.depth,
        embeds_resolved: resolved.count,
        errors: resolved.errors.iter().map(ToString::to_string).collect(),
    };
    Ok((resolved.value, info))
}

/// The flags of an artifact as they are shown; of an environment they say whether it is guarded.
pub(crate) fn flags(family: Family, artifact: &::workflows::Artifact) -> Option<Value> {
    match family {
        Family::Environment => Some(json!({"is_guarded": artifact.is_guarded})),
        Family::Workflow | Family::Application | Family::Evaluator => artifact.flags(),
    }
}

/// The same for an artifact with its newest revision, whose flags are shown.
pub(crate) fn simple_flags(family: Family, simple: &Simple) -> Option<Value> {
    match family {
        Family::Environment => flags(family, &simple.artifact),
        Family::Workflow | Family::Application | Family::Evaluator => simple.flags(),
    }
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
    let found = app.workflows.simple(scope, family, ArtifactId::from(id)).await?.variant;
    Ok((found.ok_or_else(|| ApiError::new(RowKind::from(family).into(), format!("{} variant not found", family.title())))?, None))
}
